"""Calling the user's functions: one at a time, in worker processes, through a map or an executor, or vectorised.

Whatever goes wrong in an evaluation (an exception, nan, inf) is a failed evaluation, which the search treats as a hidden
constraint. Only KeyboardInterrupt and SystemExit pass through.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from pcces.points import Batch

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Function = Callable[..., Any]


class Problem:
    """The user's functions behind one call: (x, seed) -> (f, c), nan where it failed."""

    def __init__(self, fun: Function, constraints: Sequence[Function], seeded: bool):
        self.fun, self.constraints, self.seeded = fun, tuple(constraints), seeded

    def __call__(self, task: tuple[np.ndarray, int]) -> tuple[float, np.ndarray | None, str]:
        """f, c (None: failed) and the error's text."""
        x, seed = task
        try:  # each function gets a copy of its own: what one writes into it must not reach the others or the search
            own = np.array(x)
            f, c = split(self.fun(own, np.random.default_rng(int(seed))) if self.seeded else self.fun(own))
            parts = [c, *(np.atleast_1d(np.asarray(g(np.array(x)), dtype=float)).ravel() for g in self.constraints)]
            return float(f), np.concatenate(parts), ""
        except Exception as error:  # a crashing simulator is data here: a hidden constraint
            return np.nan, None, f"{type(error).__name__}: {error}"


def split(value: Any) -> tuple[float, np.ndarray]:
    """(f, c) from what fun returned: a number, or a pair.

    >>> split((1.0, [2, 3]))
    (1.0, array([2., 3.]))
    """
    f, c = value if isinstance(value, tuple) else (value, ())
    f = np.asarray(f, dtype=float)
    if f.size != 1:
        raise TypeError(f"fun must return one number, or a pair (f, c); got an objective of shape {f.shape}")
    return float(f.reshape(())), np.atleast_1d(np.asarray(c, dtype=float)).ravel()


class Evaluator:
    """Evaluates batches; a context manager, because it may own worker processes.

    >>> from pcces.points import Batch
    >>> with Evaluator(lambda x: (x[0], -1.0), (), None, False, False) as evaluate:
    ...     evaluate(Batch(np.array([[2.0]]), np.array([0]), 0, "start"))
    (array([2.]), array([[-1.]]))
    """

    def __init__(
        self,
        fun: Function,
        constraints: Sequence[Function],
        workers: Any,
        vectorized: bool,
        common_random_numbers: bool,
    ):
        if not callable(fun):
            raise TypeError(f"fun must be callable, got {type(fun).__name__}")
        if vectorized and (workers is not None or common_random_numbers or constraints):
            raise ValueError(
                "vectorized=True hands fun whole batches: leave workers, constraints and common_random_numbers out"
            )
        self.problem = Problem(fun, constraints, common_random_numbers)
        self.vectorized = vectorized
        self.constraints = -1  # unknown until an evaluation succeeds
        self.last_error = ""
        self._pool: Executor | None = None
        self._map: Callable[..., Any] = map
        if workers is None or (isinstance(workers, int) and workers in (0, 1)):
            return
        if isinstance(workers, int):
            self._pool = _process_pool(self.problem, os.cpu_count() if workers < 0 else workers)
            self._map = self._pool.map
        elif isinstance(workers, Executor):
            self._map = workers.map
        elif callable(workers):
            self._map = workers
        else:
            raise TypeError(
                f"workers must be an integer, a map-like callable or an executor, got {type(workers).__name__}"
            )

    def __call__(self, batch: Batch) -> tuple[np.ndarray, np.ndarray | None]:
        """f (k,) and c (k, m); c is None while no evaluation has succeeded yet."""
        if self.vectorized:
            return self._whole(batch)
        tasks = list(zip(batch.points, batch.seeds))
        if self._pool is not None:
            outcomes = list(self._map(_in_worker, tasks, chunksize=max(1, len(tasks) // (4 * self._pool._max_workers))))  # type: ignore[attr-defined]
        else:
            outcomes = list(self._map(self.problem, tasks))
        errors = [message for *_, message in outcomes if message]
        self.last_error = errors[-1] if errors else self.last_error
        sizes = {len(c) for _, c, _ in outcomes if c is not None} | ({self.constraints} - {-1})
        if len(sizes) > 1:
            raise ValueError(f"fun returned different numbers of constraints: {sorted(sizes)}")
        f = np.array([f for f, *_ in outcomes])
        if not sizes:
            return f, None
        self.constraints = sizes.pop()
        missing = np.full(self.constraints, np.nan)
        return f, np.array([missing if c is None else c for _, c, _ in outcomes]).reshape(len(f), self.constraints)

    def _whole(self, batch: Batch) -> tuple[np.ndarray, np.ndarray | None]:
        try:
            value = self.problem.fun(np.asarray(batch.points))
        except Exception as error:
            self.last_error = f"{type(error).__name__}: {error}"
            return np.full(len(batch), np.nan), None
        f, c = value if isinstance(value, tuple) else (value, None)
        return np.asarray(f, dtype=float), None if c is None else np.asarray(c, dtype=float)

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


_worker_problem: Problem | None = None


def _start_worker(pickled: bytes) -> None:
    global _worker_problem
    _worker_problem = pickle.loads(pickled)


def _in_worker(task: tuple[np.ndarray, int]) -> Any:
    assert _worker_problem is not None
    return _worker_problem(task)


def _process_pool(problem: Problem, workers: int | None) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor  # with multiprocessing behind it: only for those who want it

    try:
        pickled = pickle.dumps(problem)
    except Exception as error:
        raise TypeError(
            f"workers={workers} needs functions that can be sent to other processes ({error}); define them at the top of a "
            "module, or pass a concurrent.futures.ThreadPoolExecutor as workers"
        ) from error
    return ProcessPoolExecutor(workers, initializer=_start_worker, initargs=(pickled,))
