"""Constraints: the extreme barrier of Eq. 4, projection (Remark 1), equalities, hidden constraints, restoration.

Everything downstream sees one vector c of inequalities c <= 0. An equality h = 0 enters as the pair h - tol, -h - tol,
and an evaluation that failed (exception, nan, inf) as f = +inf, c = +inf: infeasible, and worse than anything measured.
"""

from __future__ import annotations

from pcces.core.arrays import Array, array_namespace


def violation(c: Array, allowance: Array | float = 0.0) -> Array:
    """By how much the worst constraint is broken: max(0, max_i c_i - allowance). The last axis is the constraints.

    `allowance` is eps_c sigma_k in Eq. 4; a negative one asks for a margin.

    >>> import numpy as np
    >>> violation(np.array([[-1.0, 0.5], [-1.0, -2.0]]), allowance=0.1)
    array([0.4, 0. ])
    """
    xp = array_namespace(c)
    if c.shape[-1] == 0:
        return xp.zeros(c.shape[:-1], dtype=c.dtype)
    worst = xp.max(c - allowance, axis=-1)
    return xp.maximum(worst, 0.0)


def barrier(f: Array, broken: Array) -> Array:
    """Eq. 4: f where the constraints hold, +inf where they are broken (or where f is not a number).

    >>> import numpy as np
    >>> barrier(np.array([1.0, 2.0, np.nan]), np.array([0.0, 0.3, 0.0]))
    array([ 1., inf, inf])
    """
    xp = array_namespace(f)
    return xp.where((broken > 0) | xp.isnan(f), xp.inf, f)


def feasible_first(f: Array, broken: Array) -> Array:
    """A fitness that ranks feasible points by f and, behind all of them, infeasible ones by their violation.

    It is finite where f is, so that a recombination can use its values: an infeasible point gets the worst feasible f
    plus its violation in units of the spread of f. Failed evaluations stay +inf.

    >>> import numpy as np
    >>> feasible_first(np.array([3.0, 1.0, 2.0]), np.array([0.0, 0.5, 0.0]))
    array([3. , 3.5, 2. ])
    """
    xp = array_namespace(f)
    usable = xp.isfinite(f) & xp.isfinite(broken)
    feasible = usable & (broken <= 0)
    worst = xp.max(xp.where(feasible, f, -xp.inf))
    best = xp.min(xp.where(feasible, f, xp.inf))
    spread = xp.where(worst > best, worst - best, 1.0)
    base = xp.where(xp.any(feasible), worst, 0.0)
    return xp.where(feasible, f, xp.where(usable, base + spread * broken, xp.inf))


def comparable(
    f_trial: Array, broken_trial: Array, f_incumbent: Array, broken_incumbent: Array, rho: float | None = None
) -> tuple[Array, Array]:
    """The two numbers that Step 4 compares: (f~_trial, f_k), or their stand-ins during restoration.

    With a feasible incumbent this is Eq. 4. With an infeasible one the search has to find its way back first, and the
    paper has no rule for it: then the violation itself is minimised (`rho=None`), or the merit f + rho violation,
    which does not forget the objective. A trial point that is feasible always beats an infeasible incumbent.

    >>> import numpy as np
    >>> one = np.float64
    >>> comparable(one(5.0), one(0.0), one(1.0), one(0.0))
    (array(5.), array(1.))
    >>> comparable(one(5.0), one(0.2), one(1.0), one(0.7))
    (array(0.2), array(0.7))
    """
    xp = array_namespace(f_trial)
    restoring = ~(broken_incumbent <= 0)
    if rho is None:
        merit_trial, merit_incumbent = broken_trial, broken_incumbent
    else:
        merit_trial, merit_incumbent = f_trial + rho * broken_trial, f_incumbent + rho * broken_incumbent
    failed = ~xp.isfinite(f_trial)
    merit_trial = xp.where(failed, xp.inf, xp.where(broken_trial <= 0, -xp.inf, merit_trial))
    return (
        xp.where(restoring, merit_trial, barrier(f_trial, broken_trial)),
        xp.where(restoring, merit_incumbent, f_incumbent),
    )


def anneal(allowance0: float, k: Array, iterations: float) -> Array:
    """Constraint annealing (the paper's future work): an extra allowance that falls linearly to zero.

    >>> import numpy as np
    >>> anneal(2.0, np.array([5, 12]), 10)
    array([1., 0.])
    """
    xp = array_namespace(k)
    return allowance0 * xp.clip(1 - k / iterations, 0.0, None)
