"""What the benchmarks beside other optimisers share: an oracle that counts, runs in processes, files that go on, tables."""

import json
import math
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


class BudgetExhaustedError(RuntimeError):
    """The solver asked for more evaluations than it was given."""


@dataclass(frozen=True)
class Answer:
    x: np.ndarray
    claims_feasible: bool


class CountingOracle:
    """Evaluations with a hard budget: past it every call raises BudgetExhaustedError.

    A call counts whether it returns, returns nan, or raises ArithmeticError (a crash of the simulator). Points outside the
    bounds are an error of the caller, not of the simulator.
    """

    def __init__(self, problem: Any, budget: int):
        self.problem, self.budget, self.evaluations = problem, budget, 0
        self._slack = 1e-9 * (problem.upper - problem.lower)

    @property
    def left(self) -> int:
        return self.budget - self.evaluations

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        p = self.problem
        x = np.asarray(x, dtype=float)
        if not (np.all(x >= p.lower - self._slack) and np.all(x <= p.upper + self._slack)):
            raise ValueError(f"{p.name} was evaluated outside its bounds, at {x}; bounds are {p.bounds}")
        if self.left <= 0:
            raise BudgetExhaustedError(f"{p.name}: all {self.budget} evaluations are used")
        self.evaluations += 1
        return self.evaluate(np.clip(x, p.lower, p.upper))

    def evaluate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f and c, with noise."""
        raise NotImplementedError


def progress(results: Iterable[Any], total: int, named: Callable[[Any], str]) -> Iterator[Any]:
    """Pass results on, with a progress line on standard error: rich's on a terminal that has it, else plain."""
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        track = None
    if track is not None and sys.stderr.isatty():
        yield from track(results, total=total, console=Console(stderr=True))
        return
    start = time.perf_counter()
    for i, result in enumerate(results, 1):
        hours, minutes = divmod(round((time.perf_counter() - start) / i * (total - i) / 60), 60)
        line = f"{i}/{total}  {named(result)}  {hours}:{minutes:02} left"
        print(f"\r{line:<70}" if sys.stderr.isatty() else line, end="", file=sys.stderr, flush=True)
        print(end="" if sys.stderr.isatty() and i < total else "\n", file=sys.stderr, flush=True)
        yield result


def records(path: Path) -> list[dict]:
    """The runs that a file of JSON lines holds; none where there is no file. A line that was being written when its process
    was killed is none."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def run_all(
    run: Callable[..., list[dict]], tasks: list[tuple], path: Path, processes: int, key: Callable[[dict], Hashable],
    minutes: float = math.inf,
) -> None:  # fmt: skip
    """Append the records of `run(*task)` to a file, those that it has not got yet, as they come.

    A run that was killed half way is nowhere in the file, so that the next call makes it again. After so many minutes no
    new run begins.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    done, until = set(map(key, records(path))), time.time() + 60 * minutes
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        path.write_bytes(path.read_bytes().rpartition(b"\n")[0] + b"\n" * bool(done))
    with ProcessPoolExecutor(processes) as pool, path.open("a") as out:
        futures = [pool.submit(_in_time, until, run, *task) for task in tasks]
        ended = (future.result() for future in as_completed(futures))
        for made in progress(ended, len(tasks), lambda made: " ".join(map(str, key(made[-1]))) if made else "not run"):
            for record in made:
                if key(record) not in done:
                    out.write(json.dumps(record) + "\n")
                    out.flush()


def _in_time(until: float, run: Callable[..., list[dict]], *task: Any) -> list[dict]:
    return run(*task) if time.time() < until else []


def markdown(header: list[str], rows: list[list[str]]) -> str:
    """A table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
