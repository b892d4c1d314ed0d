"""Runs solvers over problems, seeds and budgets, and appends one JSON line a run and budget to out/few.jsonl.

    python -m benchmarks.few.run --solvers pcces
    python -m benchmarks.few.run --solvers botorch-qlognei botorch-scbo optuna-tpe optuna-gp pycma cobyqa --processes 16

What the file already holds is not run again: delete its lines (or the file) to repeat a solver. A solver whose next point
does not depend on how many evaluations there are in all makes one run for all its budgets.
"""

import argparse
import importlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.few.oracle import Oracle
from benchmarks.few.peers import ANYTIME, PLANNED
from benchmarks.few.problems import PROBLEMS, Problem
from benchmarks.harness import Answer, records, run_all

OUT = Path("out/few.jsonl")
BUDGETS = (50, 100, 200, 500)
LARGEST = {"botorch-qlognei": 200, "botorch-scbo": 200}  # budget: more would take hours
NEEDS = {
    "pcces": "pcces", "pycma": "cma", "optuna-tpe": "optuna", "optuna-gp": "optuna", "botorch-qlognei": "botorch",
    "botorch-scbo": "botorch",
}  # fmt: skip
SEEDS = 10
FIRST_SEED = 0  # pcces was tuned on seeds from 100


def pcces(oracle: Oracle, problem: Problem, seed: int) -> Answer:
    """All defaults."""
    from pcces import minimize

    result = minimize(oracle, problem.x0, bounds=problem.bounds, max_evaluations=oracle.budget, rng=seed)
    return Answer(np.asarray(result.x, dtype=float), bool(result.success))


AT_ONCE: dict[str, Callable[[Oracle, Problem, int], Answer]] = {"pcces": pcces, **PLANNED}
SOLVERS = [*AT_ONCE, *ANYTIME]


def answers(solver: str, oracle: Oracle, seed: int, budgets: list[int]) -> Iterator[Answer]:
    """The solver's answer at each budget."""
    if solver in ANYTIME:
        yield from ANYTIME[solver](oracle, oracle.problem, seed, budgets)
    else:
        yield AT_ONCE[solver](oracle, oracle.problem, seed)


def run(solver: str, name: str, seed: int, budgets: list[int]) -> list[dict]:
    """One run, judged at each budget. A solver that raises gives no answer, and claims nothing."""
    problem, made, error = PROBLEMS[name], [], None
    if solver in NEEDS:  # what an import takes is not the solver's time
        importlib.import_module(NEEDS[solver])
    oracle = Oracle(problem, seed, budgets[-1])
    solving, began = answers(solver, oracle, seed, budgets), time.process_time()
    for budget in budgets:
        try:
            answer = next(solving)
        except Exception as exception:  # behind the first one only StopIteration
            error = error or f"{type(exception).__name__}: {exception}"
            answer = Answer(np.full(problem.n, np.nan), False)
        own = time.process_time() - began - oracle.seconds
        x = np.asarray(answer.x, dtype=float)
        inside = bool(np.all((x >= problem.lower) & (x <= problem.upper)))
        made.append({
            "solver": solver, "problem": name, "seed": seed, "budget": budget, "evaluations": oracle.evaluations,
            "claims_feasible": answer.claims_feasible, "feasible": inside and problem.feasible(x),
            "gap": problem.gap(x) if inside else None, "seconds": round(own, 3), "x": x.tolist(), "error": error,
        })  # fmt: skip
    return made


def key(record: dict) -> tuple:
    return record["solver"], record["problem"], record["budget"], record["seed"]


def tasks(args: argparse.Namespace) -> Iterator[tuple]:
    """What is not in the file yet; seeds outermost, so that a table made half way compares like with like."""
    done = set(map(key, records(args.out)))
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for solver in args.solvers:
            for name in args.problems:
                most = LARGEST.get(solver, max(BUDGETS))
                missing = [b for b in sorted(args.budgets) if b <= most and (solver, name, b, seed) not in done]
                if solver in ANYTIME:
                    missing = [missing] if missing else []
                else:
                    missing = [[b] for b in missing]
                yield from ((solver, name, seed, budgets) for budgets in missing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solvers", nargs="+", default=["pcces"], choices=SOLVERS)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    parser.add_argument("--budgets", nargs="+", type=int, default=list(BUDGETS))
    parser.add_argument("--seeds", type=int, default=SEEDS, help="how many")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="tune on others than the reported ones")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no new run after so many")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    run_all(run, list(tasks(args)), args.out, args.processes, key, args.minutes)


if __name__ == "__main__":
    main()
