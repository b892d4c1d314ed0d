"""Calls of the user's functions: one at a time, on workers (processes, Ray), through a map or an executor, or vectorised.

An evaluation that goes wrong (an exception, nan, inf, and on workers also a hang or a crash of the process) has failed, and
the search treats this as a hidden constraint. Only KeyboardInterrupt and SystemExit are raised, and a mistake that shows at
once: a first call that returns no number.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from pcces.blackbox.batch import Batch
from pcces.blackbox.naming import names_of, rearranged
from pcces.blackbox.runners import Call, Evaluation, make_runner
from pcces.core.estimation import FARTHEST

Function = Callable[..., Any]
ENGINES = ("local", "ray")


class WrongReturnError(TypeError):
    """One of the user's functions did not return numbers."""


class UserFunctions:
    """The user's functions behind one call: (x, seed) -> (f, c), nan where it failed."""

    def __init__(self, fun: Function, constraints: Sequence[Function], seeded: bool):
        self.fun, self.constraints, self.seeded = fun, tuple(constraints), seeded

    def __call__(self, call: Call) -> Evaluation:
        """One evaluation, or the part of it that one function makes."""
        x, seed, function = call
        try:  # each function gets a copy of its own: what one writes into it must not reach the others or the search
            if function > 0:
                return self._constraint(x, self.constraints[function - 1])
            own = x.copy()
            value = self.fun(own, np.random.default_rng(int(seed))) if self.seeded else self.fun(own)
            f, c = split(value)
            if not math.isfinite(f):  # failed, and that may be all that it said
                return Evaluation(f, None)
            names = tuple(map(str, value[1])) if _named(value) else ("",) * c.size
            if function == 0:
                return Evaluation(f, c, names=names)
            return self.put_together(
                [Evaluation(f, c, names=names), *map(partial(self._constraint, x), self.constraints)]
            )
        except WrongReturnError as error:
            return Evaluation(np.nan, None, f"TypeError: {error}", wrong=True)
        except Exception as error:  # a crashing simulator is data here: a hidden constraint
            return Evaluation(np.nan, None, f"{type(error).__name__}: {error}")

    @staticmethod
    def _constraint(x: Any, g: Function) -> Evaluation:
        c = constraint_values(g(x.copy()))
        return Evaluation(0.0, c, names=tuple(names_of(g, c.size)))

    def put_together(self, parts: list[Evaluation]) -> Evaluation:
        """An evaluation from its parts: what fun said, and what each constraint said."""
        for part in parts:
            if part.c is None:
                return part
        c = [part.c for part in parts if part.c is not None]
        if (most := max(abs(parts[0].f), *(float(np.abs(each).max(initial=0.0)) for each in c))) > FARTHEST:
            return Evaluation(np.nan, None, f"a value of {most:.3g}, which is beyond {FARTHEST:g}")
        names = tuple(name for part in parts for name in part.names)
        known = names if self.constraints or any(names) else ()  # fun alone, and nothing but an array
        return Evaluation(parts[0].f, np.concatenate([each for each in c if each.size] or c), names=known)


def _named(value: Any) -> bool:
    """Whether fun returned its constraints in a dictionary."""
    return isinstance(value, tuple) and isinstance(value[1], Mapping)


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


class Evaluator:
    """Evaluate batches for `Optimizer.tell`. It is a context manager, because it may own workers.

    `workers` is the number of processes on this machine (-1: one per core), a map-like callable, or an executor. With
    `engine="ray"` it is the number of actors (None: one per CPU) on the Ray cluster at `ray_address`, or on this machine. A worker
    that dies is replaced, and its evaluation is repeated; `repeated` counts this for `tell`. An evaluation that takes longer than
    `timeout` seconds has failed.

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
            raise ValueError("ray_address needs engine='ray'")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, got {timeout}")
        own_workers = workers is None or isinstance(workers, int)
        if vectorized and (workers is not None or timeout or engine == "ray" or common_random_numbers or constraints):
            raise ValueError(
                "vectorized=True passes whole batches to fun: leave out workers, engine, timeout, constraints and "
                "common_random_numbers"
            )
        if not own_workers and (timeout or engine == "ray"):
            raise ValueError("timeout and engine='ray' need an integer as workers, or none")
        self.functions = UserFunctions(fun, constraints, common_random_numbers)
        self.vectorized = vectorized
        self.constraints = -1  # unknown until an evaluation succeeds
        self.names: tuple[str, ...] = ()  # what they are called, then
        self.last_error = ""
        self.repeated = 0  # evaluations that were made again for the last answer, because their worker died
        self._first = True
        self.runner = make_runner(self.functions, workers, engine, timeout, ray_address)

    def __call__(self, batch: Batch, spare: float = math.inf) -> tuple[np.ndarray, np.ndarray | None]:
        """f (k,) and c (k, m); c is None while no evaluation has succeeded yet.

        At most `spare` evaluations are made again if workers die; others that a worker took down with it have failed.
        """
        if self.vectorized:
            return self._whole(batch)
        with self._counted(spare):
            evaluations = self.runner.map(_calls(batch))
        return self._read(evaluations)

    def submit(self, batch: Batch) -> list[int]:
        """Begin the evaluations of a batch, and get their numbers; `collect` says what came of them."""
        if self.vectorized:
            raise TypeError("asynchronous=True evaluates points one by one: leave out vectorized=True")
        return [self.runner.submit(call) for call in _calls(batch)]

    def collect(self, spare: float = math.inf) -> list[tuple[int, np.ndarray, np.ndarray | None]]:
        """The numbers of evaluations that are done, f (1,) and c (1, m); it waits until one is."""
        with self._counted(spare):
            done = self.runner.collect()
        return [(number, *self._read([evaluation])) for number, evaluation in done]

    @contextmanager
    def _counted(self, spare: float) -> Iterator[None]:
        """How many evaluations are made again inside: at most `spare`."""
        repeats = self.runner.repeats
        before, repeats.left = repeats.made, spare
        yield
        self.repeated = repeats.made - before

    def _read(self, evaluations: list[Evaluation]) -> tuple[np.ndarray, np.ndarray | None]:
        """f and c; an error where a function is wrong, not the point."""
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
            raise ValueError(f"fun returned constraints called {', '.join(names)}, but {', '.join(self.names)} before")
        return c[rearranged(names, self.names)]

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
        self.runner.close()


def _calls(batch: Batch) -> list[Call]:
    return [Call(x, seed) for x, seed in zip(batch.points, batch.seeds)]
