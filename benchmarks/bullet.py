"""PCCES on PyBullet's tasks: trains what docs/engines.md shows, keeps the curves, draws them.

    make bench-bullet                                             # the pendulums, seeds 0 to 2; goes on where it stopped
    python benchmarks/bullet.py --tasks HopperBulletEnv-v0 --seeds 0 --iterations 1000
    python benchmarks/bullet.py --draw                            # only the figure and the table, from docs/data/bullet

Population 120, two layers of 64 and the entropy bounds of the paper; all else as `pcces train` has it.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

HERE = Path(__file__).parent.parent
DATA, FIGURE, RUNS = HERE / "docs" / "data" / "bullet", HERE / "docs" / "img" / "bullet.png", HERE / "runs" / "bullet"
ITERATIONS = {"InvertedPendulumBulletEnv-v0": 32, "InvertedDoublePendulumBulletEnv-v0": 200}
COLUMNS = ("iteration", "return", "entropy", "length", "sigma", "steps", "seconds")
LINES = 60  # kept of a curve


def train(task: str, seed: int, iterations: int, workers: int | None) -> None:
    import pcces

    folder = RUNS / f"{task}-seed{seed}"
    there = (folder / "config.json").exists()
    run = pcces.train(
        task,
        iterations=iterations,
        population=120,
        hidden=(64, 64),
        seed=seed,
        workers=workers,
        out=folder,
        resume=there,
    )
    keep(folder)
    print(task, seed, run.words(), flush=True)


def keep(folder: Path) -> None:
    """A finished run as a small file: some lines of its metrics, and what its certified policy did on fresh episodes."""
    config = json.loads((folder / "config.json").read_text())
    with (folder / "metrics.csv").open() as file:
        lines = list(csv.DictReader(file))
    every = max(1, len(lines) // LINES)
    kept = [line for i, line in enumerate(lines) if i % every == 0 or i == len(lines) - 1]
    said = json.loads((folder / "certificate.json").read_text())
    fresh = said["fresh_episodes"]
    data = {
        "task": config["task"],
        "seed": config["seed"],
        "settings": {name: config["settings"][name] for name in ("population", "hidden", "iterations", "log_std")},
        "certified": said["certificate"]["holds"],
        "return": fresh["return"],
        "return_error": fresh["return_error"],
        "episodes": fresh["episodes"],
        "curve": {name: [round(float(line[name]), 3) for line in kept] for name in COLUMNS},
    }
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{config['task']}-seed{config['seed']}.json").write_text(json.dumps(data) + "\n")


def draw() -> None:
    from matplotlib.figure import Figure

    found = [json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))]
    tasks = list(dict.fromkeys(run["task"] for run in found))
    figure = Figure(figsize=(4.5 * len(tasks), 3.2), layout="constrained")
    axes = figure.subplots(1, len(tasks), squeeze=False)[0]
    for axis, task in zip(axes, tasks):
        for run in (run for run in found if run["task"] == task):
            axis.plot(run["curve"]["steps"], run["curve"]["return"], label=f"seed {run['seed']}")
        axis.set(title=task, xlabel="environment steps", ylabel="return")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    figure.savefig(FIGURE, dpi=110)
    print("| task | seed | iterations | steps | minutes | certified | return, fresh episodes |")
    print("| --- | ---: | ---: | ---: | ---: | --- | ---: |")
    for run in found:
        steps, seconds = run["curve"]["steps"][-1], run["curve"]["seconds"][-1]
        print(
            f"| {run['task']} | {run['seed']} | {run['settings']['iterations']} | {steps / 1e6:.2f} M | {seconds / 60:.1f} | "
            f"{'yes' if run['certified'] else 'no'} | {run['return']:.0f} +- {run['return_error']:.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true")
    parser.add_argument("--keep", type=Path, nargs="*", default=[], help="folders of finished runs to take in")
    parser.add_argument("--tasks", nargs="*", default=list(ITERATIONS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--workers", type=int)
    options = parser.parse_args()
    for folder in options.keep:
        keep(folder)
    if not options.draw and not options.keep:
        for task in options.tasks:
            for seed in options.seeds:
                train(task, seed, options.iterations or ITERATIONS[task], options.workers)
    draw()


if __name__ == "__main__":
    main()
