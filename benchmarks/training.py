"""Trains what docs/training.md reports, ten seeds each, and prints it as Markdown; one JSON line a run in out/training.jsonl.

    make bench-training

What the file already holds is not run again. Seeds 0 to 9 were not used for tuning.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

SEEDS = 10
OUT = Path("out/training.jsonl")

Entry = tuple[str, str, dict[str, Any]]
SAFE = {"CartSafe-v0": (30, 15, 20, 35), "MountainCarContinuousSafe-v0": (10, 5, 15, 20)}
ENTRIES: dict[str, list[Entry]] = {
    "safe": [(task, preset, {"threshold": SAFE[task][0]}) for preset in ("default", "paper") for task in SAFE],
    "cartpole": [("CartPole-v0", preset, {"iterations": 100}) for preset in ("default", "paper")],
    "threshold": [(task, "default", {"threshold": t}) for task in SAFE for t in SAFE[task][1:]],
    "entropy": [
        (task, preset, {"population": population})
        for population in (40, 80, 240)
        for preset in ("default", "paper")
        for task in ("MountainCarContinuous-v0", "MountainCar-v0", "Acrobot-v1", "Pendulum-v1")
    ],
}


def identity(entry: Entry) -> str:
    task, preset, changes = entry
    return " ".join([task, preset, *(f"{name}={value}" for name, value in changes.items())])


def run(entry: Entry, seeds: int) -> list[dict[str, Any]]:
    from pcces.rl.train import train_seeds

    task, preset, changes = entry
    start = time.perf_counter()
    runs = train_seeds(task, range(seeds), preset=preset, progress=True, **changes)
    seconds = time.perf_counter() - start
    records = []
    for r in runs:
        over = r.metrics.get("over_threshold", [0.0])
        records.append(
            {
                "entry": identity(entry),
                "seed": r.config["seed"],
                "return": r.final["return"],
                "costs": r.final["costs"],
                "entropy": r.final["entropy"],
                "certified": r.certificate.holds,
                "upper_bounds": r.certificate.upper_bounds,
                "training_over": float(np.mean(over)),
                "last_return": float(np.mean(r.metrics["return"][-15:])),
                "steps": r.metrics["steps"][-1],
                "seconds": seconds / len(runs),
            }
        )
    return records


def table(records: dict[str, list[dict[str, Any]]]) -> str:
    lines = [
        "| task, preset, changes | return | worst seed | cost | certified | iterations over the threshold | steps a seed | s a seed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, group in records.items():
        returns = np.array([r["return"] for r in group])
        costs = np.array([r["costs"] for r in group])
        cost = f"{costs.mean():.1f} ± {costs.std():.1f}" if costs.size else "-"
        lines.append(
            f"| {name} | {returns.mean():.1f} ± {returns.std():.1f} | {returns.min():.1f} | {cost}"
            f" | {sum(r['certified'] for r in group)} of {len(group)} | {100 * np.mean([r['training_over'] for r in group]):.0f} %"
            f" | {np.mean([r['steps'] for r in group]) / 1e6:.1f} M | {np.mean([r['seconds'] for r in group]):.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(ENTRIES), help=f"of {', '.join(ENTRIES)}")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--population", type=int, help="of the part 'entropy', this population only")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    done: dict[str, list[dict[str, Any]]] = {}
    if args.out.exists():
        for line in args.out.read_text().splitlines():
            record = json.loads(line)
            done.setdefault(record["entry"], []).append(record)
    for entry in [entry for part in args.parts for entry in ENTRIES[part]]:
        if args.population not in (None, entry[2].get("population", args.population)):
            continue
        if len(done.get(identity(entry), [])) < args.seeds:
            records = run(entry, args.seeds)
            with args.out.open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
            done[identity(entry)] = records
    print(table(done))


if __name__ == "__main__":
    main()
