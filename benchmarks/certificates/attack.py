"""Attacks on certificates: how often does one hold that is false, and how often is one given that is true?

    make bench-certificates                                        # all of it, and the tables; goes on where it stopped
    python -m benchmarks.certificates.attack --minutes 5           # a slice
    python -m benchmarks.certificates.attack --cases failure       # a part; --first-seed 0 for whoever changes something
    python -m benchmarks.certificates.rates                        # markdown, from out/certificates.jsonl
    python -m benchmarks.certificates.widths                       # the bounds beside those of others

Each run is a search on a cheap function whose truth is known: x is feasible or it is not. Nothing was tuned on the seeds
that are reported. It needs NumPy, SciPy and the folder pcces; of the extra rl, for four cases of policies, JAX.
"""

import argparse
import math
import sys
import time
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if find_spec("threadpoolctl") is None:  # which would see to what has just been seen to
    stand_in = types.ModuleType("threadpoolctl")
    stand_in.ThreadpoolController = lambda: types.SimpleNamespace(lib_controllers=[])  # type: ignore[attr-defined]
    sys.modules["threadpoolctl"] = stand_in

import numpy as np

import pcces
from benchmarks.certificates.cases import RUNS, Case, cases
from benchmarks.harness import records, run_all

OUT = Path("out/certificates.jsonl")
FIRST_SEED = 1000
AT_A_TIME = 10  # quick runs that a process makes before it hands them over


def solved(case: Case, seed: int) -> dict[str, Any]:
    """One run: what the certificate says, and what is true."""
    began = time.process_time()
    problem = case.make(np.random.default_rng([seed, 7]))
    if isinstance(problem, dict):
        spent = round(time.process_time() - began, 3)
        return {"case": case.key, "seed": seed, **problem, "gap": None, "seconds": spent}

    def callback(result: Any) -> bool:
        return case.stop_after is not None and result.nit >= case.stop_after

    res = pcces.minimize(
        problem.fun, problem.x0, bounds=problem.bounds, max_evaluations=case.budget, rng=seed, progress=False,
        callback=None if case.stop_after is None else callback, **case.options,
    )  # fmt: skip
    gap = (problem.objective(res.x) - problem.best) / problem.best
    return {
        "case": case.key, "seed": seed, "grade": res.certificate.grade, "method": res.certificate.method,
        "feasible": problem.feasible(res.x), "gap": None if math.isnan(gap) else round(gap, 4), "nfev": int(res.nfev),
        "seconds": round(time.process_time() - began, 3),
    }  # fmt: skip


def by_name(key: str, seeds: tuple[int, ...]) -> list[dict[str, Any]]:
    """Some runs of a case, in another process."""
    case = next(case for case in cases() if case.key == key)
    return [solved(case, seed) for seed in seeds]


def missing(arguments: argparse.Namespace) -> list[tuple[str, tuple[int, ...]]]:
    """The runs that the file does not have, some at a time: of all cases, quick ones first, in the order they are listed in."""
    done = {named(row) for row in records(arguments.out)}
    chosen = [case for case in cases() if case.key.startswith(arguments.cases) or f": {arguments.cases}" in case.key]
    if find_spec("jax") is None:
        left_out = [case for case in chosen if "policy" in case.key]
        print(f"there is no JAX here: {len(left_out)} cases of policies are left out", flush=True)
        chosen = [case for case in chosen if case not in left_out]
    tasks = []
    for case in sorted(chosen, key=lambda case: case.slow):
        seeds = range(arguments.first_seed, arguments.first_seed + arguments.runs)
        left = tuple(seed for seed in seeds if (case.key, seed) not in done)
        size = 1 if case.slow else AT_A_TIME
        tasks += [(case.key, left[i : i + size]) for i in range(0, len(left), size)]
    return tasks


def named(row: dict[str, Any]) -> tuple[str, int]:
    """Which run it is."""
    return row["case"], row["seed"]


def main() -> None:
    """Run what is missing in the file, until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="", help="what their names begin with, with or without the group")
    parser.add_argument("--runs", type=int, default=RUNS, help="so many a case")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--minutes", type=float, default=math.inf, help="no new runs after that")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    tasks = missing(arguments)
    print(f"{sum(len(seeds) for _, seeds in tasks)} runs are missing", flush=True)
    run_all(by_name, tasks, arguments.out, arguments.workers, named, arguments.minutes)


if __name__ == "__main__":
    main()
