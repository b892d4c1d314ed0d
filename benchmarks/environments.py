"""Environments of users, with defaults: PCCES beside ppo-lag and cpo after equally many steps.

Those in `examples/`, of which only the battery and the drone were looked at while defaults were chosen, and Gymnasium's hopper
with a limit on its speed. Trains the runs that the file does not have yet, and prints a table.
"""

import argparse
import importlib
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import markdown, records, run_all

ROOT = Path(__file__).parent.parent
OUT = ROOT / "out" / "environments.jsonl"
ALGORITHMS = ("pcces", "ppo-lag", "cpo")
FIRST_SEED = 10  # seeds 0 to 9 and 1000 up were seen while defaults were chosen


class Arm(NamedTuple):
    """An environment, where it is from, the steps it is trained for, and what `train` is told of it."""

    example: str
    task: str
    steps: float
    asked: dict[str, Any] | None = None


ARMS = {
    "battery": Arm("battery", "Battery-v0", 2e6),
    "battery, rewards x 100": Arm("battery", "BatteryCents-v0", 2e6),
    "drone": Arm("drone", "Drone-v0", 0.5e6),
    "drone, at most 5 % enter": Arm("drone", "DroneStrict-v0", 0.5e6),
    "greenhouse": Arm("greenhouse", "Greenhouse-v0", 1e6),
    "cruise": Arm("cruise", "Cruise-v0", 1e6),
    "insulin": Arm("insulin", "Insulin-v0", 1e6),
    "reservoir": Arm("reservoir", "Reservoir-v0", 1e6),
    "servers": Arm("servers", "Servers-v0", 1e6),
    "hopper's speed": Arm("", "SafetyHopperVelocity-v1", 2e6),
    "lunar lander's fuel": Arm("lunar_fuel", "LunarFuel-v0", 3.4e6, {"threshold": 60.0, "cost_bounds": (0.0, 1.1)}),
}
SIMULATORS = ("hopper's speed", "lunar lander's fuel")  # slow: on workers, a seed at a time


def in_cents() -> None:
    """Registers the battery with rewards a hundred times as large."""
    from battery import Battery

    from pcces.envs import register_task

    @register_task
    class BatteryCents(Battery):
        name = "BatteryCents-v0"

        def step(self, state: Any, action: Any, key: Any) -> Any:
            step = super().step(state, action, key)
            return step._replace(reward=100 * step.reward)


def train(name: str, algorithm: str, seeds: list[int], workers: int) -> list[dict]:
    """A record for each of these seeds."""
    import pcces

    arm = ARMS[name]
    sys.path.insert(0, str(ROOT / "examples"))
    if arm.example:
        importlib.import_module(arm.example)
    if arm.task == "BatteryCents-v0":
        in_cents()
    further = {"engine": "local", "workers": workers} if name in SIMULATORS else {}
    since = time.perf_counter()
    runs = pcces.train_seeds(
        arm.task, seeds, algorithm, steps=arm.steps, progress=False, **further, **(arm.asked or {})
    )
    seconds = time.perf_counter() - since
    return [record(name, algorithm, run, seconds / len(seeds)) for run in runs]


def record(name: str, algorithm: str, run: Any, seconds: float) -> dict:
    """What is told of a run: its policy on fresh episodes, and how often the search stood above a limit."""
    limits = run.problem.cost_limits
    over = [np.asarray(run.metrics[f"cost_{limit.what}"]) > limit.value for limit in limits if limit.kind == "mean"]
    return {
        "environment": name, "algorithm": algorithm, "seed": run.config["seed"], "return": run.final["return"],
        "costs": run.final["costs"], "certified": bool(run.certificate.holds),
        "over": float(np.mean(np.any(over, axis=0))), "seconds": seconds,
    }  # fmt: skip


def key(record: dict) -> tuple[str, str, int]:
    return record["environment"], record["algorithm"], record["seed"]


def table(made: list[dict]) -> str:
    """A row an environment: return of the certified policies, how many are certified, share of iterations over a limit."""
    arms = defaultdict(list)
    for each in made:
        arms[each["environment"], each["algorithm"]].append(each)
    rows = [
        [f"{name} ({arm.steps / 1e6:g} M steps)", *(cell(arms[name, algorithm]) for algorithm in ALGORITHMS)]
        for name, arm in ARMS.items()
    ]
    return markdown(["", *ALGORITHMS], rows)


def cell(runs: list[dict]) -> str:
    """Mean return of the certified ± its standard error, certified of all, iterations over the limit.

    >>> cell([{"return": 4.0, "certified": True, "over": 0.25}, {"return": 9.0, "certified": False, "over": 0.75}])
    '4; 1 of 2; 50 %'
    """
    if not runs:
        return "-"
    returns = [run["return"] for run in runs if run["certified"]]
    error = f" ± {np.std(returns, ddof=1) / len(returns) ** 0.5:.2g}" if len(returns) > 1 else ""
    mean = f"{np.mean(returns):.4g}{error}" if returns else "none"
    return f"{mean}; {len(returns)} of {len(runs)}; {100 * np.mean([run['over'] for run in runs]):.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(ARMS), choices=list(ARMS), help="these environments")
    parser.add_argument("--algorithms", nargs="*", default=list(ALGORITHMS))
    parser.add_argument("--processes", type=int, default=1, help="trainings at a time")
    parser.add_argument("--workers", type=int, default=2, help="of each training of a simulator")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no training begins")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="only print the table")
    given = parser.parse_args()
    if not given.table:
        have = set(map(key, records(given.out)))
        numbers = [FIRST_SEED + i for i in range(given.seeds)]
        todo = []
        for name in given.only:
            for algorithm in given.algorithms:
                missing = [seed for seed in numbers if (name, algorithm, seed) not in have]
                groups = [[seed] for seed in missing] if name in SIMULATORS else [missing] * bool(missing)
                todo += [(name, algorithm, seeds) for seeds in groups]
        run_all(partial(train, workers=given.workers), todo, given.out, given.processes, key, given.minutes)
    print(table(records(given.out)))


if __name__ == "__main__":
    main()
