"""Do sixteen workers keep busy where evaluations take unequally long? Prints markdown tables.

    make bench-async

Durations are exponentially distributed. On a simulated clock, on problems with noisy constraints (`few/problems.py`): how many
times faster sixteen workers are than one (work done over time taken), and what comes of the answers; batch by batch, as
`minimize` goes about it unless told otherwise, and asynchronously. Then the same with processes that sleep.
"""

import argparse
import heapq
import sys
import time
from pathlib import Path

import numpy as np

import pcces

sys.path.insert(0, str(Path(__file__).parent / "few"))
from problems import PROBLEMS, Problem

WORKERS = 16


def simulated(problem: Problem, evaluations: int, seed: int, asynchronous: bool) -> tuple[pcces.Optimizer, float]:
    """A search, and its speed-up on a clock that is not a real one."""
    opt = pcces.Optimizer(problem.x0, bounds=problem.bounds, max_evaluations=evaluations, rng=seed)
    durations, noise = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    clock = work = 0.0
    running: list[tuple[float, int, pcces.blackbox.batch.Batch, int, float]] = []
    begun = 0
    while not opt.stop():
        if not asynchronous:
            batch = opt.ask()
            ends = [0.0] * WORKERS
            for took in durations.exponential(size=len(batch)):
                heapq.heappush(ends, heapq.heappop(ends) + took)
                work += took
            clock += max(ends)
            told = [problem.simulate(x, noise) for x in batch.points]
            opt.tell(batch, [f for f, _ in told], [c for _, c in told])
            continue
        if len(running) < WORKERS:
            batch = opt.ask(WORKERS - len(running))
            for row in range(len(batch)):
                begun += 1
                took = durations.exponential()
                heapq.heappush(running, (clock + took, begun, batch, row, took))
        if not opt.stop():
            clock, _, batch, row, took = heapq.heappop(running)
            work += took
            opt.tell(batch, *problem.simulate(batch.points[row], noise), rows=row)
    return opt, work / clock


def by_simulation(names: list[str], budgets: list[int], seeds: int) -> None:
    """The table of simulated searches."""
    print(
        f"| evaluations | | speed-up, {WORKERS} workers | certified | false claims | feasible and within 5 % | median gap |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for evaluations in budgets:
        for asynchronous in (False, True):
            speeds, gaps, false, near, runs = [], [], 0, 0, 0
            for name in names:
                for seed in range(seeds):
                    opt, speed = simulated(PROBLEMS[name], evaluations, seed, asynchronous)
                    res, runs = opt.result, runs + 1
                    speeds.append(speed)
                    if res.certificate.holds:
                        gaps.append(PROBLEMS[name].gap(res.x))
                        feasible = PROBLEMS[name].feasible(res.x)
                        near, false = near + (feasible and gaps[-1] <= 0.05), false + (not feasible)
            words = "asynchronous" if asynchronous else "batch by batch"
            print(
                f"| {evaluations} | {words} | {np.mean(speeds):.1f} | {len(gaps)} of {runs} | {false} | {near} | "
                f"{100 * np.median(gaps):.1f} % |",
                flush=True,
            )


class Sleeping:
    """A problem whose evaluations take their time."""

    def __init__(self, name: str, seconds: float):
        self.name, self.seconds = name, seconds

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        rng = np.random.default_rng()
        time.sleep(rng.exponential(self.seconds))
        return PROBLEMS[self.name].simulate(x, rng)


def by_sleeping(name: str, evaluations: int, seconds: float) -> None:
    """The table of processes that sleep."""
    print(f"\n| {evaluations} evaluations of {seconds:g} s | seconds | speed-up, {WORKERS} processes | certified |")
    print("| --- | --- | --- | --- |")
    problem = PROBLEMS[name]
    for asynchronous in (False, True):
        began = time.monotonic()
        res = pcces.minimize(
            Sleeping(name, seconds), problem.x0, bounds=problem.bounds, max_evaluations=evaluations, rng=0,
            workers=WORKERS, asynchronous=asynchronous, progress=False, strategy="model",
        )  # fmt: skip
        took = time.monotonic() - began
        words = "asynchronous" if asynchronous else "batch by batch"
        print(f"| {words} | {took:.0f} | {res.nfev * seconds / took:.1f} | {res.certificate.holds} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=["pid", "cantilever", "valleys", "queues"], metavar="NAME")
    parser.add_argument("--budgets", nargs="+", type=int, default=[100, 200, 500, 2000], metavar="N")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a sleeping evaluation; 0: none sleep")
    arguments = parser.parse_args()
    by_simulation(arguments.problems, arguments.budgets, arguments.seeds)
    if arguments.seconds:
        by_sleeping("cantilever", 1000, arguments.seconds)


if __name__ == "__main__":
    main()
