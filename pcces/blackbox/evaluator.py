"""Calling the user's functions: one at a time, on workers (processes, Ray), through a map or an executor, or vectorised.

Whatever goes wrong in an evaluation (an exception, nan, inf, on workers also a hang or a crash of the process) is a failed
evaluation, which the search treats as a hidden constraint. Only KeyboardInterrupt and SystemExit pass through, and a mistake
in the program that shows at once: a first call that returns no number.
"""

from __future__ import annotations

import functools
import math
import pickle
import reprlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from pcces.blackbox.batch import Batch
from pcces.blackbox.naming import names_of, rearranged
from pcces.core.estimation import FARTHEST
from pcces.engines.pool import Lost, Pool, Watchdog

Function = Callable[..., Any]
PointAndSeed = tuple[np.ndarray, int]
ENGINES = ("local", "ray")


class Evaluation(NamedTuple):
    """What came of an evaluation."""

    f: float
    c: np.ndarray | None  # None: failed
    error: str = ""
    wrong: bool = False  # a function returned what is no number
    names: tuple[str, ...] = ()  # of the constraints; none where nothing but an array was returned


class WrongReturnError(TypeError):
    """One of the user's functions returned something else than numbers."""


class UserFunctions:
    """The user's functions behind one call: (x, seed) -> (f, c), nan where it failed."""

    def __init__(self, fun: Function, constraints: Sequence[Function], seeded: bool):
        self.fun, self.constraints, self.seeded = fun, tuple(constraints), seeded

    def __call__(self, task: PointAndSeed) -> Evaluation:
        """One evaluation."""
        x, seed = task
        try:  # each function gets a copy of its own: what one writes into it must not reach the others or the search
            own = x.copy()
            value = self.fun(own, np.random.default_rng(int(seed))) if self.seeded else self.fun(own)
            f, c = split(value)
            if not math.isfinite(f):  # failed, and that may be all that it said
                return Evaluation(f, None)
            parts = [c, *(constraint_values(g(x.copy())) for g in self.constraints)]
            names = self._names(value, [part.size for part in parts])
            if (most := max(abs(f), *(float(np.abs(part).max(initial=0.0)) for part in parts))) > FARTHEST:
                return Evaluation(np.nan, None, f"a value of {most:.3g}, which is beyond {FARTHEST:g}")
            return Evaluation(f, np.concatenate([part for part in parts if part.size] or parts), names=names)
        except WrongReturnError as error:
            return Evaluation(np.nan, None, f"TypeError: {error}", wrong=True)
        except Exception as error:  # a crashing simulator is data here: a hidden constraint
            return Evaluation(np.nan, None, f"{type(error).__name__}: {error}")

    def _names(self, value: Any, sizes: Sequence[int]) -> tuple[str, ...]:
        """What the constraints are called, in their order."""
        named = isinstance(value, tuple) and isinstance(value[1], Mapping)
        if not named and not self.constraints:
            return ()
        own = map(str, value[1]) if named else [""] * sizes[0]
        return (*own, *(name for g, size in zip(self.constraints, sizes[1:]) for name in names_of(g, size)))


def split(value: Any) -> tuple[float, np.ndarray]:
    """(f, c) from what fun returned: a number, or a pair; c may be a dictionary.

    >>> split((1.0, [2, 3])), split((1.0, {"heat": 2, "load": 3}))
    ((1.0, array([2., 3.])), (1.0, array([2., 3.])))
    """
    pair = value if isinstance(value, tuple) else (value, ())
    if len(pair) == 2 and isinstance(pair[1], Mapping):
        pair = pair[0], list(pair[1].values())
    f, c = map(numbers, pair) if len(pair) == 2 else (None, None)
    if f is None or f.size != 1 or c is None:
        raise WrongReturnError(
            f"fun returned {shown(value)}; it must return a number, or a tuple (f, c) of a number and the constraints: "
            "numbers, or a dictionary of them"
        )
    return float(f.reshape(())), c.ravel()


def constraint_values(value: Any) -> np.ndarray:
    """What a constraint returned, as a vector.

    >>> constraint_values(2)
    array([2.])
    """
    c = numbers(value)
    if c is None:
        raise WrongReturnError(f"a constraint returned {shown(value)}; it must return a number, or an array of numbers")
    return c.ravel()


def numbers(value: Any) -> np.ndarray | None:
    """The value as floats, or None where it is something else. What is true or false stays so.

    >>> numbers([1, True]), numbers([False, True]), numbers("1"), numbers(None)
    (array([1., 1.]), array([False,  True]), None, None)
    """
    try:
        array = np.asarray(value)
        kind = array.dtype.kind
        return None if value is None or kind in "SUcmM" else array if kind == "b" else array.astype(float)
    except (TypeError, ValueError):
        return None


def shown(value: Any) -> str:
    """A value in a few words.

    >>> shown(np.zeros((2, 2)))
    'array([[0., 0... [0., 0.]])'
    """
    return " ".join(reprlib.repr(value).split())


class EvaluationWorker:
    """What a worker does (pcces.engines): a list of evaluations at a time, each within `timeout` seconds."""

    def __init__(self, functions: UserFunctions, timeout: float | None):
        self.functions, self.watchdog = functions, Watchdog(timeout)

    def share(self, value: Any) -> None:
        """Nothing is shared: every task says all."""

    def run(self, task: list[PointAndSeed]) -> list[Evaluation]:
        """Evaluate."""
        try:
            return [self._evaluate(each) for each in task]
        finally:
            self.watchdog.rest()

    def _evaluate(self, task: PointAndSeed) -> Evaluation:
        self.watchdog.beat()
        return self.functions(task)

    def parts(self, task: list[PointAndSeed]) -> list[list[PointAndSeed]]:
        """Single evaluations."""
        return [[each] for each in task]

    def join(self, results: list[list[Evaluation] | Lost]) -> list[Evaluation]:
        """One list; an evaluation that took its worker down is a failed one."""
        parts = [[Evaluation(np.nan, None, r.reason)] if isinstance(r, Lost) else r for r in results]
        return [evaluation for part in parts for evaluation in part]


class Evaluator:
    """Evaluates batches, for `Optimizer.tell`; a context manager, because it may own workers.

    `workers` and `engine`: an integer asks for so many processes of this machine (-1: one a core), or with `engine="ray"`
    for so many actors of a Ray cluster (None: one a CPU it has) at `ray_address`, or on this machine. A worker that dies is
    replaced, and what it was evaluating is evaluated again: `repeated` says how often, for `tell`. One that takes longer than `timeout` seconds has failed. `workers` may also be
    a map-like callable or an executor.

    >>> from pcces import Optimizer
    >>> opt = Optimizer([1.0, 1.0], max_evaluations=300, rng=0)
    >>> with Evaluator(lambda x: (x @ x, 0.5 - x[0])) as evaluate:
    ...     while not opt.stop():
    ...         batch = opt.ask()
    ...         opt.tell(batch, *evaluate(batch))
    >>> opt.result.success
    True
    """

    def __init__(
        self,
        fun: Function,
        constraints: Sequence[Function] = (),
        workers: Any = None,
        vectorized: bool = False,
        common_random_numbers: bool = False,
        *,
        engine: str = "local",
        timeout: float | None = None,
        ray_address: str | None = None,
    ):
        if not callable(fun):
            raise TypeError(f"fun must be callable, got {type(fun).__name__}")
        if engine not in ENGINES:
            raise ValueError(f"unknown engine {engine!r}; there are {', '.join(ENGINES)}")
        if ray_address is not None and engine != "ray":
            raise ValueError("ray_address is the address of a Ray cluster: give engine='ray' with it")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout}")
        own_workers = workers is None or isinstance(workers, int)
        if vectorized and (workers is not None or timeout or engine == "ray" or common_random_numbers or constraints):
            raise ValueError(
                "vectorized=True hands fun whole batches: leave workers, engine, timeout, constraints and "
                "common_random_numbers out"
            )
        if not own_workers and (timeout or engine == "ray"):
            raise ValueError("timeout and engine='ray' need workers of our own: give an integer as workers, or none")
        self.functions = UserFunctions(fun, constraints, common_random_numbers)
        self.vectorized = vectorized
        self.constraints = -1  # unknown until an evaluation succeeds
        self.names: tuple[str, ...] = ()  # what they are called, then
        self.last_error = ""
        self.repeated = 0  # evaluations of the last batch that were made again, because their worker died
        self._first = True
        self._pool: Pool | None = None
        self._map: Callable[..., Any] = map
        if own_workers:
            if engine == "ray" or timeout is not None or workers not in (None, 0, 1):
                self._worker = EvaluationWorker(self.functions, timeout)
                self._pool = self._make_pool(engine, workers, timeout, ray_address)
        elif isinstance(workers, Executor):
            self._map = workers.map
        elif callable(workers):
            self._map = workers
        else:
            raise TypeError(
                f"workers must be an integer, a map-like callable or an executor, got {type(workers).__name__}"
            )

    def _make_pool(self, engine: str, workers: int | None, timeout: float | None, ray_address: str | None) -> Pool:
        recipe = functools.partial(EvaluationWorker, self.functions, timeout)
        if engine == "ray":
            from pcces.engines.ray import RayPool

            return RayPool(recipe, workers or None, ray_address)
        try:
            pickle.dumps(recipe)
        except Exception as error:
            raise TypeError(
                f"workers={workers} needs functions that can be sent to other processes ({error}); define them at the top "
                "of a module, or pass a concurrent.futures.ThreadPoolExecutor as workers"
            ) from error
        from pcces.engines.processes import (  # with multiprocessing behind it: only for those who want it
            LocalPool,
            cores,
        )

        return LocalPool(recipe, cores() if workers is not None and workers < 0 else workers or 1)

    def __call__(self, batch: Batch, spare: float = math.inf) -> tuple[np.ndarray, np.ndarray | None]:
        """f (k,) and c (k, m); c is None while no evaluation has succeeded yet.

        At most `spare` evaluations are made again if workers die; others that a worker took down with it have failed.
        """
        if self.vectorized:
            return self._whole(batch)
        tasks = list(zip(batch.points, batch.seeds))
        pool = self._pool
        evaluations = list(self._map(self.functions, tasks)) if pool is None else self._on_workers(pool, tasks, spare)
        if self._first and evaluations[0].wrong:
            raise TypeError(evaluations[0].error.removeprefix("TypeError: "))
        self._first = False
        errors = [each.error for each in evaluations if each.error]
        self.last_error = errors[-1] if errors else self.last_error
        sizes = {len(each.c) for each in evaluations if each.c is not None} | ({self.constraints} - {-1})
        if len(sizes) > 1:
            raise ValueError(f"fun returned different numbers of constraints: {sorted(sizes)}")
        f = np.array([each.f for each in evaluations])
        if not sizes:
            return f, None
        self.constraints = sizes.pop()
        missing = np.full(self.constraints, np.nan)
        c = [missing if each.c is None else self._in_order(each.c, each.names) for each in evaluations]
        return f, np.array(c).reshape(len(f), self.constraints)

    def _in_order(self, c: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        """The constraints in the order of the first evaluation: dictionaries may be in any."""
        if names == self.names:
            return c
        if not self.names:
            self.names = names
            return c
        if sorted(names) != sorted(self.names):
            raise ValueError(f"fun returned constraints called {', '.join(names)}, before {', '.join(self.names)}")
        return c[rearranged(names, self.names)]

    def _on_workers(self, pool: Pool, tasks: list[PointAndSeed], spare: float) -> list[Evaluation]:
        size = max(1, len(tasks) // (4 * max(1, pool.workers)))
        before, pool.repeats.left = pool.repeats.made, spare
        results = pool.map([tasks[i : i + size] for i in range(0, len(tasks), size)])
        self.repeated = pool.repeats.made - before
        return self._worker.join(results)

    def _whole(self, batch: Batch) -> tuple[np.ndarray, np.ndarray | None]:
        try:
            points = batch.points
            named = isinstance(points, list)  # dictionaries become one, of columns
            columns = {name: np.array([x[name] for x in points]) for name in points[0]} if named else np.asarray(points)
            value = self.functions.fun(columns)
        except Exception as error:
            self.last_error = f"{type(error).__name__}: {error}"
            return np.full(len(batch), np.nan), None
        pair = value if isinstance(value, tuple) else (value, None)
        if len(pair) == 2 and isinstance(pair[1], Mapping):
            columns = np.array([numbers(column) for column in pair[1].values()])
            pair = pair[0], self._in_order(columns, tuple(map(str, pair[1]))).T
        f, c = map(numbers, pair) if len(pair) == 2 else (None, None)
        if f is None or (c is None and pair[1] is not None):
            k = len(batch)
            raise TypeError(
                f"fun returned {shown(value)}; with vectorized=True it must return f ({k},), or a tuple (f, c) with c ({k}, m)"
            )
        return f, c

    def __enter__(self) -> Evaluator:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the workers go."""
        if self._pool is not None:
            self._pool.close()
