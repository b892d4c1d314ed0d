"""The SciPy-like front door: `pcces.minimize`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pcces.blackbox.coding import as_points, read_variables
from pcces.blackbox.constraints import WithArguments, read_constraints
from pcces.blackbox.evaluator import Evaluator
from pcces.blackbox.habits import translated
from pcces.blackbox.loop import ask_and_tell
from pcces.blackbox.optimizer import OWN, Optimizer
from pcces.blackbox.options import TheoryWarning, check_names
from pcces.strategies import Strategy

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult


def minimize(
    fun: Callable[..., Any],
    x0: Any = None,
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
    asynchronous: bool = False,
    rng: int | np.random.Generator | None = None,
    callback: Callable[[OptimizeResult], Any] | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
    initial_data: Any = None,
    args: Any = (),
    tol: float | None = None,
    maxiter: int | None = None,
    maxfev: int | None = None,
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> OptimizeResult:
    """Minimise a noisy function under constraints, and certify that the answer keeps them.

    `fun(x)` returns a float, or a pair (f, c) if one simulation gives the objective and the constraints. c <= 0 is feasible; c is
    one or several numbers, or a dictionary that names them. With `common_random_numbers=True` it is called as fun(x, rng).
    `constraints` are callables c(x) <= 0, or SciPy's in any form (in its dictionaries "ineq" means >= 0, as in SciPy). Bounds and
    linear constraints are kept by projection: fun is never called outside the bounds. `equalities` lists the c of the pair that
    must be 0, not <= 0. An exception, nan, inf or a number beyond 1e100 is a failed evaluation: its point is infeasible, and the
    search continues. With `failures="missing"` it is a missing value. If the first call returns no number, TypeError is raised.

    Bounds are pairs or SciPy's. `pcces.Integer(low, high)`, `pcces.Log(low, high)` and `pcces.Choice("a", "b")` are bounds too,
    and `integrality` works as in scipy.optimize.milp. A dictionary of bounds gives names to the variables: fun then gets a
    dictionary, and `x` is one. Without x0 the search starts in the middle of the bounds. `x0` may be several points: the search
    starts at the best of them, and later runs start at the others. `initial_data` are earlier evaluations: (points, f),
    (points, f, c), or a table with the columns of `res.evaluations`. Models learn from them, and without x0 the search starts at
    the best. They do not count, and certificates only use fresh evaluations.

    `workers` is the number of processes that evaluate (-1: one per core), or a map-like callable, or an executor. With
    `engine="ray"` the workers are actors of the Ray cluster at `ray_address` (None: one on this machine). A worker that dies is
    replaced, and its evaluation is repeated. Repeats count, and `message` gives their number; only those of the certificate's
    samples may exceed `max_evaluations`. An evaluation that takes longer than `timeout` seconds has failed. With
    `asynchronous=True` workers do not wait for each other, which helps if evaluations have different durations. The answer then
    depends on which evaluations finish first (the certificate does not). Otherwise it does not even depend on the number of
    workers. With `vectorized=True` fun gets all points at once (k, n), and returns f (k,) or (f, c) with c (k, m).
    `max_evaluations` (default 2000 n) counts all calls, including those of the certificate. `callback(result)` is called after
    each iteration; if it returns True or raises StopIteration, the search ends. `pcces.Options` has further options.

    With `checkpoint="run.npz"` the search is saved to this file every few seconds, and after each slow batch. If the file exists,
    the search continues from it. An exception that ends the search early, such as Ctrl-C or an error in the callback, has the
    best point so far as its attribute `result`.

    For SciPy's users: `args` are passed to fun after x (and rng), `maxfev` is max_evaluations, `maxiter` is max_iterations, `tol`
    is the step size at which the search has converged (sigma_stop), and `options` holds further arguments.
    `scipy.optimize.minimize(fun, x0, method=pcces.minimize, ...)` works too. The parameter of a callback may be called
    `intermediate_result`.

    The result is a scipy.optimize.OptimizeResult. x is the best point that could be *certified*, not the luckiest point seen.

    Many parameters: it is the front door, with the names that SciPy's users know.

    >>> rng = np.random.default_rng(0)
    >>> def noisy(x):
    ...     f = (x[0] - 1) ** 2 + (x[1] - 1) ** 2 + 0.01 * rng.standard_normal()
    ...     c = x[0] + x[1] - 1 + 0.01 * rng.standard_normal()
    ...     return f, c
    >>> res = minimize(noisy, [0.0, 0.0], bounds=[(-2, 2), (-2, 2)], rng=1)
    >>> res.success, bool(np.allclose(res.x, 0.5, atol=0.05)), bool(res.x.sum() <= 1)
    (True, True, True)
    """
    given = translated(locals(), DEFAULTS)
    check_names(given, [*DEFAULTS, *OWN])
    evaluator = {name: given.pop(name) for name in ("workers", "vectorized", "engine", "timeout", "ray_address")}
    callback, progress, checkpoint, args = map(given.pop, ("callback", "progress", "checkpoint", "args"))
    asynchronous = given.pop("asynchronous")
    if asynchronous and vectorized:
        raise ValueError("asynchronous=True evaluates points one by one: leave out vectorized=True")
    starts = as_points(x0)
    variables = read_variables(bounds, len(starts[0]) if starts else None, given.pop("integrality", None))
    if variables is not None:
        given["bounds"] = variables
    fun, (linear, functions, from_the_end) = given.pop("fun"), read_constraints(given.pop("constraints"), variables)
    if args is not None and not (isinstance(args, tuple) and len(args) == 0):
        fun = WithArguments(fun, args)
    equalities = [*given.pop("equalities"), *from_the_end]
    optimizer = Optimizer(linear=linear, equalities=equalities, **given)
    for line in optimizer.lost_assumptions:
        warnings.warn(f"the convergence theorem no longer applies: {line}", TheoryWarning, stacklevel=2)
    if checkpoint is not None:
        from pcces.blackbox.storage import resumed

        optimizer = resumed(optimizer, checkpoint, seeded=rng is not None)
        if optimizer.state.desk is not None and not asynchronous:
            raise ValueError(f"the search in {checkpoint} is asynchronous: give asynchronous=True")
    with Evaluator(
        fun, functions, common_random_numbers=optimizer.search.common_random_numbers, **evaluator
    ) as evaluate:
        return ask_and_tell(optimizer, evaluate, callback, progress, checkpoint, asynchronous)


DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(minimize).parameters.items()}
