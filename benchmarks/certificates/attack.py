"""Attacks on certificates: how often does one hold that is false, and how often is one given that is true?

    make bench-certificates                                        # all of it, and the tables; goes on where it stopped
    python benchmarks/certificates/attack.py --seconds 300         # a slice of five minutes
    python benchmarks/certificates/attack.py --cases failure       # a part; --first-seed 0 for whoever changes something
    python benchmarks/certificates/rates.py                        # markdown, from out/certificates.jsonl
    python benchmarks/certificates/widths.py                       # the bounds beside those of others

Each run is a search on a cheap function whose truth is known: x is feasible or it is not. Nothing was tuned on the seeds
that are reported. It needs NumPy, SciPy and the folder pcces; of the extra rl, for four cases of policies, JAX.
"""

import argparse
import json
import math
import os
import sys
import time
import types
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes are the parallel part here
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(1, str(Path(__file__).parents[2]))
if find_spec("threadpoolctl") is None:  # which would see to what has just been seen to
    stand_in = types.ModuleType("threadpoolctl")
    stand_in.ThreadpoolController = lambda: types.SimpleNamespace(lib_controllers=[])  # type: ignore[attr-defined]
    sys.modules["threadpoolctl"] = stand_in

import numpy as np
from cases import RUNS, Case, cases

import pcces

OUT = Path("out/certificates.jsonl")
FIRST_SEED = 1000


def solved(case: Case, seed: int) -> dict[str, Any]:
    """One run: what the certificate says, and what is true."""
    began = time.process_time()
    problem = case.make(np.random.default_rng([seed, 7]))
    if isinstance(problem, dict):
        return {
            "case": case.key,
            "seed": seed,
            **problem,
            "gap": None,
            "seconds": round(time.process_time() - began, 3),
        }

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


def by_name(key: str, seed: int) -> dict[str, Any]:
    """Likewise, in another process."""
    return solved(next(case for case in cases() if case.key == key), seed)


def missing(arguments: argparse.Namespace) -> list[tuple[Case, int]]:
    """The runs that the file does not have: of all cases, quick ones first, in the order they are listed in."""
    done = {(row["case"], row["seed"]) for row in read(arguments.out)}
    chosen = [case for case in cases() if case.key.startswith(arguments.cases) or f": {arguments.cases}" in case.key]
    if find_spec("jax") is None:
        left_out = [case for case in chosen if "policy" in case.key]
        print(f"there is no JAX here: {len(left_out)} cases of policies are left out")
        chosen = [case for case in chosen if case not in left_out]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.runs)
    wanted = [(case, seed) for case in sorted(chosen, key=lambda case: case.slow) for seed in seeds]
    return [(case, seed) for case, seed in wanted if (case.key, seed) not in done]


def read(path: Path) -> list[dict[str, Any]]:
    """The runs in the file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    """Run what is missing in the file, until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="", help="what their names begin with, with or without the group")
    parser.add_argument("--runs", type=int, default=RUNS, help="so many a case")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--seconds", type=float, default=math.inf, help="no new runs after that")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    left = missing(arguments)
    print(f"{len(left)} runs are missing", flush=True)
    until, made = time.monotonic() + arguments.seconds, 0
    with arguments.out.open("a") as file, ProcessPoolExecutor(arguments.workers) as pool:
        # No more at a time than keeps all busy, so that it can stop.
        waiting, running = iter(left), set()
        for case, seed in waiting:
            running.add(pool.submit(by_name, case.key, seed))
            if len(running) < 4 * arguments.workers:
                continue
            done = next(as_completed(running))
            running.remove(done)
            made += keep(done.result(), file)
            if time.monotonic() > until:
                break
        for done in as_completed(running):
            made += keep(done.result(), file)
    print(f"{len(left) - made} are left")


def keep(row: dict[str, Any], file: Any) -> int:
    """Write a run into the file: one more."""
    file.write(json.dumps(row) + "\n")
    file.flush()
    return 1


if __name__ == "__main__":
    main()
