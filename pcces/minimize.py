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

    `fun(x)` returns a float, or a pair (f, c) when one simulation gives objective and constraints (c <= 0 is feasible; numbers,
    or a dictionary that names them); with `common_random_numbers=True` it is called as fun(x, rng). `constraints` are
    callables c(x) <= 0 or SciPy's, of any form (in its dictionaries "ineq" means >= 0, as there). Bounds and linear constraints
    are kept by projection: fun is never called outside the bounds. `equalities` names the c of the pair that must be 0, not <= 0. An exception, nan, inf
    or a number beyond 1e100 is a failed evaluation: infeasible, counted, never fatal (or, with `failures="missing"`, a missing value). A first call that returns no number is a mistake, and raises
    TypeError.

    Bounds are pairs or SciPy's, and `pcces.Integer(low, high)`, `pcces.Log(low, high)`, `pcces.Choice("a", "b")` are bounds,
    too; `integrality` is that of scipy.optimize.milp. Bounds in a dictionary give the variables names: fun gets a dictionary,
    and `x` is one. Without x0 the search starts in the middle of the bounds. `x0` may be several points: the search begins at the
    best of them, and later runs begin at the others. `initial_data` are evaluations made before, (points, f) or (points, f, c), or a
    table with the columns of `res.evaluations`: models learn from them, and without x0 the search starts at the best. They are
    not counted, and certificates take fresh evaluations only.

    `workers`: how many processes evaluate (an integer; -1: one a core), or a map-like callable, or an executor. With
    `engine="ray"` they are actors of the Ray cluster at `ray_address` (None: one on this machine). A worker that dies is
    replaced, and what it was evaluating is evaluated again, which counts (`message` says how often; only the certificate's samples
    may so exceed `max_evaluations`); an evaluation that takes longer than `timeout` seconds has failed.
    `asynchronous=True` keeps all workers busy where evaluations take unequally long: none of them waits for another's, and the
    search goes on with what it has. Then the answer depends on which evaluations were quick (the certificate does not);
    without it, it does not even depend on how many workers there are.
    `vectorized=True` hands fun all points at once (k, n) and wants f (k,) or (f, c) with c (k, m).
    `max_evaluations` (default 2000 n) counts every call, the certificate's included. `callback(result)` is called once an
    iteration; returning True or raising StopIteration ends the search. Further options: `pcces.Options`.

    `checkpoint="run.npz"`: the search is written to this file every few seconds, and after each batch that takes long. If the
    file is there already, the search goes on from it. Whatever ends the search early, Ctrl-C or an error of the callback, is
    raised with the best so far as its attribute `result`.

    For SciPy's users: `args` go to fun behind x (and rng), `maxfev` is max_evaluations, `maxiter` max_iterations, `tol` the
    step size at which the search has converged (sigma_stop), `options` holds further arguments. So this works, too:
    `scipy.optimize.minimize(fun, x0, method=pcces.minimize, ...)`. A callback may call its parameter `intermediate_result`.

    The result is a scipy.optimize.OptimizeResult: x is the best point that could be *certified*, not the luckiest one seen.

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
        raise ValueError("asynchronous=True evaluates points one by one: leave vectorized=True out")
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
            raise ValueError(f"the search in {checkpoint} is an asynchronous one: give asynchronous=True")
    with Evaluator(
        fun, functions, common_random_numbers=optimizer.search.common_random_numbers, **evaluator
    ) as evaluate:
        return ask_and_tell(optimizer, evaluate, callback, progress, checkpoint, asynchronous)


DEFAULTS = {name: parameter.default for name, parameter in inspect.signature(minimize).parameters.items()}
