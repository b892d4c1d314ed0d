"""The user's functions run here, on our workers, on an executor, or through a map.

A runner evaluates a list of points at once (`map`), or takes one point at a time and says which are done (`submit`, `collect`).
"""

from __future__ import annotations

import functools
import pickle
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from pcces.engines.pool import Lost, Pool, Repeats, Watchdog

if TYPE_CHECKING:
    from pcces.blackbox.evaluator import UserFunctions

ALL = -1  # in a call: every function, one after the other


class Call(NamedTuple):
    """A point to evaluate on a seed, by all functions or one of them."""

    x: Any
    seed: int
    function: int = ALL


class Evaluation(NamedTuple):
    """What came of an evaluation."""

    f: float
    c: np.ndarray | None  # None: failed
    error: str = ""
    wrong: bool = False  # a function returned what is no number
    names: tuple[str, ...] = ()  # of the constraints; none where nothing but an array was returned


class Runner(Protocol):
    """Evaluates calls."""

    @property
    def repeats(self) -> Repeats:
        """Evaluations that were made again, because their worker died."""

    @property
    def capacity(self) -> int:
        """How many it can evaluate at once."""

    def map(self, calls: list[Call]) -> list[Evaluation]:
        """All of them, in their order."""

    def submit(self, call: Call) -> int:
        """Begin one, and get its number."""

    def collect(self) -> list[tuple[int, Evaluation]]:
        """Those that are done; it waits until one is."""

    def close(self) -> None:
        """Let workers go."""


class Here:
    """One after the other, in this process."""

    capacity = 1

    def __init__(self, functions: UserFunctions):
        self.functions, self.repeats = functions, Repeats()
        self._waiting: deque[tuple[int, Call]] = deque()
        self._latest = 0

    def map(self, calls: list[Call]) -> list[Evaluation]:
        """All of them, in their order."""
        return [self.functions(call) for call in calls]

    def submit(self, call: Call) -> int:
        """It is evaluated when it is collected."""
        self._latest += 1
        self._waiting.append((self._latest, call))
        return self._latest

    def collect(self) -> list[tuple[int, Evaluation]]:
        """Evaluate the next one."""
        number, call = self._waiting.popleft()
        return [(number, self.functions(call))]

    def close(self) -> None:
        """There is nobody to let go."""


class Mapped(Here):
    """Through a callable that works like `map`."""

    def __init__(self, functions: UserFunctions, map_like: Callable[..., Any]):
        super().__init__(functions)
        self.map_like = map_like

    def map(self, calls: list[Call]) -> list[Evaluation]:
        """All of them, in their order."""
        return list(self.map_like(self.functions, calls))

    def submit(self, call: Call) -> int:
        """A map hands out everything at once."""
        raise TypeError("asynchronous=True needs an integer or an executor as workers")


class OnExecutor:
    """Evaluation on the user's executor."""

    def __init__(self, functions: UserFunctions, executor: Executor):
        from pcces.engines.processes import cores

        self.functions, self.executor, self.repeats = functions, executor, Repeats()
        self.capacity = int(getattr(executor, "_max_workers", None) or cores())
        self._running: dict[Future[Evaluation], int] = {}
        self._latest = 0

    def map(self, calls: list[Call]) -> list[Evaluation]:
        """All of them, in their order."""
        return spread(
            self.functions, calls, self.capacity, lambda parts: list(self.executor.map(self.functions, parts))
        )

    def submit(self, call: Call) -> int:
        """Begin one."""
        self._latest += 1
        self._running[self.executor.submit(self.functions, call)] = self._latest
        return self._latest

    def collect(self) -> list[tuple[int, Evaluation]]:
        """Those that are done."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        return sorted((self._running.pop(future), future.result()) for future in done)

    def close(self) -> None:
        """The executor is the user's; what it has not begun need not be done."""
        for future in self._running:
            future.cancel()
        self._running = {}


class OnPool:
    """Evaluation on our workers: processes of this machine, or actors of a Ray cluster."""

    def __init__(self, functions: UserFunctions, pool: Pool):
        self.functions, self.pool = functions, pool

    @property
    def repeats(self) -> Repeats:
        """Evaluations that were made again, because their worker died."""
        return self.pool.repeats

    @property
    def capacity(self) -> int:
        """How many workers there are."""
        return max(1, self.pool.workers)

    def map(self, calls: list[Call]) -> list[Evaluation]:
        """All of them, in their order."""
        return spread(self.functions, calls, self.capacity, self._map)

    def _map(self, calls: list[Call]) -> list[Evaluation]:
        size = max(1, len(calls) // (4 * self.capacity))
        return joined(self.pool.map([calls[i : i + size] for i in range(0, len(calls), size)]))

    def submit(self, call: Call) -> int:
        """Begin one."""
        return self.pool.submit([call])

    def collect(self) -> list[tuple[int, Evaluation]]:
        """Those that are done."""
        return [(number, joined([result])[0]) for number, result in self.pool.collect()]

    def close(self) -> None:
        """Let the workers go."""
        self.pool.close()


class EvaluationWorker:
    """What a worker does (pcces.engines): a list of evaluations at a time, each within `timeout` seconds."""

    def __init__(self, functions: UserFunctions, timeout: float | None):
        self.functions, self.watchdog = functions, Watchdog(timeout)

    def share(self, value: Any) -> None:
        """Nothing is shared: every call says all."""

    def run(self, call: list[Call]) -> list[Evaluation]:
        """Evaluate."""
        try:
            return [self._evaluate(each) for each in call]
        finally:
            self.watchdog.rest()

    def _evaluate(self, call: Call) -> Evaluation:
        self.watchdog.beat()
        return self.functions(call)

    def parts(self, call: list[Call]) -> list[list[Call]]:
        """Single evaluations."""
        return [[each] for each in call]

    def join(self, results: list[list[Evaluation] | Lost]) -> list[Evaluation]:
        """One list."""
        return joined(results)


def joined(results: Sequence[list[Evaluation] | Lost]) -> list[Evaluation]:
    """Lists of evaluations as one; an evaluation that took its worker down is a failed one."""
    parts = [[Evaluation(np.nan, None, r.reason)] if isinstance(r, Lost) else r for r in results]
    return [evaluation for part in parts for evaluation in part]


def spread(
    functions: UserFunctions, calls: list[Call], capacity: int, run: Callable[[list[Call]], list[Evaluation]]
) -> list[Evaluation]:
    """Evaluate; with more workers than points, objective and constraints that are functions of their own at the same time."""
    count = 1 + len(functions.constraints)
    if count == 1 or len(calls) >= capacity:
        return run(calls)
    parts = run([call._replace(function=i) for call in calls for i in range(count)])
    return [functions.put_together(parts[i : i + count]) for i in range(0, len(parts), count)]


def make_runner(
    functions: UserFunctions, workers: Any, engine: str, timeout: float | None, ray_address: str | None
) -> Runner:
    """The runner that is meant by `workers` and `engine` (see `Evaluator`)."""
    if workers is None or isinstance(workers, int):
        if engine == "ray" or timeout is not None or workers not in (None, 0, 1):
            return OnPool(functions, _make_pool(functions, workers, engine, timeout, ray_address))
        return Here(functions)
    if isinstance(workers, Executor):
        return OnExecutor(functions, workers)
    if callable(workers):
        return Mapped(functions, workers)
    raise TypeError(f"workers must be an integer, a map-like callable or an executor, got {type(workers).__name__}")


def _make_pool(
    functions: UserFunctions, workers: int | None, engine: str, timeout: float | None, ray_address: str | None
) -> Pool:
    recipe = functools.partial(EvaluationWorker, functions, timeout)
    if engine == "ray":
        from pcces.engines.ray import RayPool

        return RayPool(recipe, workers or None, ray_address)
    try:
        pickle.dumps(recipe)
    except Exception as error:
        raise TypeError(
            f"workers={workers} needs functions that can be pickled ({error}); define them at the top "
            "of a module, or pass a concurrent.futures.ThreadPoolExecutor as workers"
        ) from error
    from pcces.engines.processes import (  # with multiprocessing behind it: only for those who want it
        LocalPool,
        cores,
    )

    return LocalPool(recipe, cores() if workers is not None and workers < 0 else workers or 1)
