"""The SciPy-like front door: `pcces.minimize`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pcces.blackbox.evaluator import Evaluator, WrongReturnError, constraint_values
from pcces.blackbox.optimizer import Optimizer
from pcces.blackbox.progress import Progress
from pcces.core.theory import warn_about
from pcces.strategies import Strategy

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint, NonlinearConstraint, OptimizeResult


def minimize(
    fun: Callable[..., Any],
    x0: Any,
    constraints: Any = (),
    bounds: Any = None,
    *,
    strategy: str | Strategy = "default",
    max_evaluations: int | None = None,
    confidence: float = 0.95,
    equalities: Sequence[int] = (),
    common_random_numbers: bool = False,
    workers: Any = None,
    engine: str = "local",
    timeout: float | None = None,
    ray_address: str | None = None,
    vectorized: bool = False,
    rng: int | np.random.Generator | None = None,
    callback: Callable[[OptimizeResult], Any] | None = None,
    progress: bool | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimise a noisy function under constraints that may not be broken, and certify the answer.

    `fun(x)` returns a float, or a pair (f, c) when one simulation gives objective and constraints (c <= 0 is feasible);
    with `common_random_numbers=True` it is called as fun(x, rng). `constraints` are callables c(x) <= 0 or SciPy's
    LinearConstraint and NonlinearConstraint. Bounds and linear constraints are kept by projection: fun is never called
    outside the bounds. `equalities` names the c of the pair that must be 0, not <= 0. An exception, nan or inf is a failed evaluation: infeasible, counted, never fatal.
    A first call that returns no number is a mistake, and raises TypeError.

    `workers`: how many processes evaluate (an integer; -1: one a core), or a map-like callable, or an executor. With
    `engine="ray"` they are actors of the Ray cluster at `ray_address` (None: one on this machine). A worker that dies is
    replaced and its evaluations are repeated; an evaluation that takes longer than `timeout` seconds has failed.
    `vectorized=True` hands fun all points at once (k, n) and wants f (k,) or (f, c) with c (k, m).
    `max_evaluations` (default 2000 n) counts every call, the certificate's included. `callback(result)` is called once an
    iteration; returning True or raising StopIteration ends the search. Further options: `pcces.Options`.

    The result is a scipy.optimize.OptimizeResult: x is the best point that could be *certified*, not the luckiest one seen.

    >>> rng = np.random.default_rng(0)
    >>> def noisy(x):
    ...     f = (x[0] - 1) ** 2 + (x[1] - 1) ** 2 + 0.01 * rng.standard_normal()
    ...     c = x[0] + x[1] - 1 + 0.01 * rng.standard_normal()
    ...     return f, c
    >>> res = minimize(noisy, [0.0, 0.0], bounds=[(-2, 2), (-2, 2)], rng=1)
    >>> res.success, bool(np.allclose(res.x, 0.5, atol=0.05)), bool(res.x.sum() <= 1)
    (True, True, True)
    """
    linear, functions, from_the_end = _read_constraints(constraints)
    optimizer = Optimizer(
        x0,
        bounds=bounds,
        linear=linear,
        equalities=[*equalities, *from_the_end],
        strategy=strategy,
        max_evaluations=max_evaluations,
        confidence=confidence,
        common_random_numbers=common_random_numbers,
        rng=rng,
        **options,
    )
    warn_about(optimizer.options)
    with Evaluator(
        fun, functions, workers, vectorized, common_random_numbers,
        engine=engine, timeout=timeout, ray_address=ray_address,
    ) as evaluate:  # fmt: skip
        return _run(optimizer, evaluate, callback, progress)


def _run(optimizer: Optimizer, evaluate: Evaluator, callback: Any, progress: bool | None) -> OptimizeResult:
    iteration = 0
    with Progress(optimizer, progress) as show:
        while not optimizer.stop():
            batch = optimizer.ask()
            optimizer.tell(batch, *evaluate(batch))
            show.update()
            if callback is not None and len(optimizer.history) > iteration:
                iteration = len(optimizer.history)
                try:
                    wants_to_stop = callback(optimizer.result)
                except StopIteration:
                    wants_to_stop = True
                if wants_to_stop:
                    optimizer.finish()
    result = optimizer.result
    if result.failures and evaluate.last_error:
        result["message"] += f" (the last one with {evaluate.last_error})"
    return result


def _read_constraints(constraints: Any) -> tuple[list[LinearConstraint], list[Callable[[Any], Any]], list[int]]:
    """Linear constraints, functions whose values must be <= 0 (or 0), and which values are equalities.

    Plain callables come first and SciPy's constraints last, because how many values a callable returns is not known
    before it is called: equalities are counted from the end.
    """
    from scipy.optimize import LinearConstraint, NonlinearConstraint

    if callable(constraints) or isinstance(constraints, LinearConstraint | NonlinearConstraint | dict):
        constraints = [constraints]
    linear: list[LinearConstraint] = []
    plain: list[Callable[[Any], Any]] = []
    one_sided: list[_OneSided] = []
    for constraint in constraints:
        if isinstance(constraint, LinearConstraint):
            linear.append(constraint)
        elif isinstance(constraint, NonlinearConstraint):
            one_sided.append(_OneSided(constraint))
        elif isinstance(constraint, dict):
            raise TypeError(
                "dict constraints are ambiguous here ('ineq' means >= 0 in SciPy, we take c(x) <= 0); "
                "use scipy.optimize.NonlinearConstraint or a callable c(x) <= 0"
            )
        elif callable(constraint):
            plain.append(constraint)
        else:
            raise TypeError(f"a constraint must be callable or a SciPy constraint, got {type(constraint).__name__}")
    equalities, behind = [], 0
    for scipy_constraint in reversed(one_sided):
        behind += scipy_constraint.outputs
        equalities += [i - behind for i in scipy_constraint.equal]
    return linear, [*plain, *one_sided], equalities


class _OneSided:
    """SciPy's lb <= g(x) <= ub as values that are <= 0, equalities (lb == ub) as values that are 0."""

    def __init__(self, constraint: NonlinearConstraint):
        low, high = np.broadcast_arrays(np.atleast_1d(constraint.lb), np.atleast_1d(constraint.ub))
        if np.any(low > high):
            raise ValueError("a NonlinearConstraint has lb > ub")
        self.fun = constraint.fun
        self.length = len(low)
        equal = low == high
        self.upper = [(int(i), float(high[i])) for i in np.flatnonzero(~equal & np.isfinite(high))]
        self.lower = [(int(i), float(low[i])) for i in np.flatnonzero(~equal & np.isfinite(low))]
        self.both = [(int(i), float(low[i])) for i in np.flatnonzero(equal)]
        self.outputs = len(self.upper) + len(self.lower) + len(self.both)
        self.equal: Sequence[int] = range(self.outputs - len(self.both), self.outputs)

    def __call__(self, x: Any) -> np.ndarray:
        g = constraint_values(self.fun(x))
        if len(g) != self.length:
            raise WrongReturnError(
                f"a NonlinearConstraint's fun returned {len(g)} values, but its lb and ub limit {self.length}: "
                "give a limit for each"
            )
        return np.array(
            [g[i] - limit for i, limit in self.upper]
            + [limit - g[i] for i, limit in self.lower]
            + [g[i] - limit for i, limit in self.both]
        )
