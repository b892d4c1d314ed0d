"""Reading the constraints given to `minimize`: callables, and those of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pcces.blackbox.evaluator import WrongReturnError, constraint_values
from pcces.blackbox.naming import name_of, names_of
from pcces.blackbox.variables import Choice, Integer, Log

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint, NonlinearConstraint

    from pcces.blackbox.coding import Variables


def read_constraints(
    given: Any, variables: Variables | None = None
) -> tuple[list[LinearConstraint], list[Callable[[Any], Any]], list[int]]:
    """Linear constraints, functions whose values must be <= 0 (or 0), and which values are equalities.

    Plain callables and SciPy's dictionaries of inequalities come first, because how many values they return is not known
    before they are called: equalities are counted from the end.
    """
    from scipy.optimize import LinearConstraint, NonlinearConstraint

    if callable(given) or isinstance(given, LinearConstraint | NonlinearConstraint | dict):
        given = [given]
    linear: list[LinearConstraint] = []
    plain: list[Callable[[Any], Any]] = []
    one_sided: list[OneSided] = []
    for constraint in given:
        if isinstance(constraint, dict):
            constraint = from_dict(constraint)
        if isinstance(constraint, LinearConstraint) and variables is not None:
            constraint = _on_variables(constraint, variables)
        if isinstance(constraint, LinearConstraint):
            linear.append(constraint)
        elif isinstance(constraint, NonlinearConstraint):
            one_sided.append(OneSided(constraint))
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


def from_dict(constraint: dict[str, Any]) -> Callable[[Any], Any] | NonlinearConstraint:
    """SciPy's older form, with SciPy's sign: {"type": "ineq", "fun": g} means g(x) >= 0, {"type": "eq", ..} g(x) = 0."""
    from scipy.optimize import NonlinearConstraint

    fun, kind = constraint.get("fun"), str(constraint.get("type")).lower()
    if not callable(fun) or kind not in ("ineq", "eq"):
        raise ValueError(
            f'a dict constraint needs a "fun" and the "type" "ineq" (fun(x) >= 0, as in SciPy) or "eq", got {constraint!r}'
        )
    fun = WithArguments(fun, constraint.get("args", ()))
    return Negative(fun) if kind == "ineq" else NonlinearConstraint(fun, 0.0, 0.0)


def _on_variables(constraint: LinearConstraint, variables: Variables) -> LinearConstraint | NonlinearConstraint:
    """A linear constraint on integers, or on what is searched on a logarithmic scale, is one like any other."""
    from scipy.optimize import NonlinearConstraint

    A = np.atleast_2d(constraint.A.toarray() if hasattr(constraint.A, "toarray") else np.asarray(constraint.A))
    used = [kind for kind, column in zip(variables.kinds, A.T) if np.any(column)]
    if not any(isinstance(kind, Integer | Log) for kind in used) or any(isinstance(kind, Choice) for kind in used):
        return constraint
    low, high = (np.broadcast_to(side, len(A)) for side in (constraint.lb, constraint.ub))
    return NonlinearConstraint(Product(A), low, high)


class Product:
    """x -> A x.

    >>> Product(np.array([[1.0, 2.0]]))([3.0, 4.0])
    array([11.])
    """

    def __init__(self, A: np.ndarray):
        self.A = A

    def __call__(self, x: Any) -> np.ndarray:
        """The values at x."""
        return self.A @ np.asarray(x, dtype=float)


class WithArguments:
    """A function with further arguments behind those it is called with.

    >>> WithArguments(pow, (3,))(2)
    8
    """

    def __init__(self, fun: Callable[..., Any], arguments: Any):
        self.fun, self.arguments = fun, arguments if isinstance(arguments, tuple) else (arguments,)
        self.__name__ = name_of(fun)

    def __call__(self, *given: Any) -> Any:
        """The function's value."""
        return self.fun(*given, *self.arguments)


class Negative:
    """g(x) >= 0 as values that are <= 0."""

    def __init__(self, fun: Callable[[Any], Any]):
        self.fun = fun
        self.__name__ = f"-{name_of(fun)}" if name_of(fun) else ""

    def __call__(self, x: Any) -> np.ndarray:
        """The values at x."""
        return -constraint_values(self.fun(x)).astype(float)


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
        self.labels = self._labels()
        self.outputs = int(self.upper.sum() + self.lower.sum() + self.both.sum())
        self.equal = range(self.outputs - int(self.both.sum()), self.outputs)

    def _labels(self) -> list[str]:
        """What the values are called, by the function and the side."""
        names = names_of(self.fun, len(self.low))
        if not any(names):
            return [""] * int(self.upper.sum() + self.lower.sum() + self.both.sum())
        sides = ((self.upper, " (upper)"), (self.lower, " (lower)"), (self.both, ""))
        return [name + side for used, side in sides for name, its in zip(names, used) if its]

    def __call__(self, x: Any) -> np.ndarray:
        """The values at x."""
        g = constraint_values(self.fun(x))
        if len(g) != len(self.low):
            raise WrongReturnError(
                f"a NonlinearConstraint's fun returned {len(g)} values, but its lb and ub limit {len(self.low)}: "
                "give a limit for each value"
            )
        upper, lower, both = self.upper, self.lower, self.both
        return np.concatenate([g[upper] - self.high[upper], self.low[lower] - g[lower], g[both] - self.low[both]])
