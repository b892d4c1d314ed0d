"""Reading the constraints given to `minimize`: callables, and those of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pcces.blackbox.evaluator import WrongReturnError, constraint_values

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint, NonlinearConstraint


def read_constraints(given: Any) -> tuple[list[LinearConstraint], list[Callable[[Any], Any]], list[int]]:
    """Linear constraints, functions whose values must be <= 0 (or 0), and which values are equalities.

    Plain callables come first and SciPy's constraints last, because how many values a callable returns is not known
    before it is called: equalities are counted from the end.
    """
    from scipy.optimize import LinearConstraint, NonlinearConstraint

    if callable(given) or isinstance(given, LinearConstraint | NonlinearConstraint | dict):
        given = [given]
    linear: list[LinearConstraint] = []
    plain: list[Callable[[Any], Any]] = []
    one_sided: list[OneSided] = []
    for constraint in given:
        if isinstance(constraint, LinearConstraint):
            linear.append(constraint)
        elif isinstance(constraint, NonlinearConstraint):
            one_sided.append(OneSided(constraint))
        elif isinstance(constraint, dict):
            raise TypeError(
                "dict constraints are ambiguous here ('ineq' means >= 0 in SciPy, we take c(x) <= 0); "
                "use scipy.optimize.NonlinearConstraint or a callable c(x) <= 0"
            )
        elif callable(constraint):
            plain.append(constraint)
        else:
            raise TypeError(f"a constraint must be callable or a SciPy constraint, got {type(constraint).__name__}")
    equalities: list[int] = []
    behind = 0
    for function in reversed(one_sided):
        behind += function.outputs
        equalities += [i - behind for i in function.equal]
    return linear, [*plain, *one_sided], equalities


class OneSided:
    """SciPy's lb <= g(x) <= ub as values that are <= 0, and behind them equalities (lb == ub) as values that are 0.

    >>> import scipy
    >>> constraint = OneSided(scipy.optimize.NonlinearConstraint(lambda x: x, [-1, 0], [1, 0]))
    >>> constraint(np.array([0.5, 0.25])), list(constraint.equal)
    (array([-0.5 , -1.5 ,  0.25]), [2])
    """

    def __init__(self, constraint: NonlinearConstraint):
        low, high = np.broadcast_arrays(np.atleast_1d(constraint.lb), np.atleast_1d(constraint.ub))
        if np.any(low > high):
            raise ValueError("a NonlinearConstraint has lb > ub")
        self.fun, self.low, self.high = constraint.fun, low.astype(float), high.astype(float)
        self.both = low == high
        self.upper, self.lower = ~self.both & np.isfinite(high), ~self.both & np.isfinite(low)
        self.outputs = int(self.upper.sum() + self.lower.sum() + self.both.sum())
        self.equal = range(self.outputs - int(self.both.sum()), self.outputs)

    def __call__(self, x: Any) -> np.ndarray:
        """The values at x."""
        g = constraint_values(self.fun(x))
        if len(g) != len(self.low):
            raise WrongReturnError(
                f"a NonlinearConstraint's fun returned {len(g)} values, but its lb and ub limit {len(self.low)}: "
                "give a limit for each"
            )
        upper, lower, both = self.upper, self.lower, self.both
        return np.concatenate([g[upper] - self.high[upper], self.low[lower] - g[lower], g[both] - self.low[both]])
