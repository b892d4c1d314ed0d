"""The variables of a search, in the three forms that points have.

The search knows numbers in a box only. A logarithm makes an interval of a scale, a choice of k is k numbers between 0 and 1
of which the largest wins (one number for a choice of two), and what must be whole is rounded *before* it is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from pcces.blackbox.variables import KINDS, Choice, Integer, Log, Real, Variable
from pcces.support.jsonable import interval, jsonable
from pcces.support.text import suggestion

STEP, ANOTHER = 0.7, 0.35  # probabilities: that an integer changes by one only; that one change more is made
PLAIN = (str, int, float, bool, type(None))  # options of a choice that a file can hold


class NamedPoint(dict[str, Any]):
    """A point with named variables: a dictionary, and for NumPy the numbers (for a choice, the index of its option).

    >>> np.asarray(NamedPoint({"rate": 0.5, "metal": "steel"}, np.array([0.5, 1.0])))
    array([0.5, 1. ])
    """

    def __init__(self, values: Mapping[str, Any], numbers: np.ndarray):
        super().__init__(values)
        self._numbers = numbers

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._numbers, dtype=dtype)

    def copy(self) -> NamedPoint:
        """Another one with the same values."""
        return NamedPoint(self, self._numbers.copy())

    def __reduce__(self) -> Any:  # dictionaries are pickled by their items otherwise
        return NamedPoint, (dict(self), self._numbers)


@dataclass(eq=False)
class Variables:
    """The variables of a search, one after the other, and their names if they have any.

    A point has three forms: as the user sees it (`shown`), as numbers, one a variable (`numbers`; for a choice, the index of its option), and
    as coordinates in a box (`coordinates`), in which the search moves.

    >>> v = Variables([Log(0.01, 1.0), Choice("a", "b", "c"), Integer(0, 9)], ["rate", "kind", "count"])
    >>> u = v.coordinates(v.numbers({"rate": 0.1, "kind": "b", "count": 4}))
    >>> u.round(3), v.shown(v.decoded(u).round(3))
    (array([-2.303,  0.   ,  1.   ,  0.   ,  4.   ]), {'rate': 0.1, 'kind': 'b', 'count': 4})
    """

    kinds: Sequence[Variable]
    names: list[str] | None = None
    at: list[slice] = field(init=False)  # the coordinates of each

    def __post_init__(self) -> None:
        ends = np.cumsum([self._width(kind) for kind in self.kinds]).tolist()
        self.at = [slice(begin, end) for begin, end in zip([0, *ends], ends)]

    @staticmethod
    def _width(kind: Variable) -> int:
        return len(kind.options) if isinstance(kind, Choice) and len(kind.options) > 2 else 1

    @property
    def plain(self) -> bool:
        """Whether they are numbers in a box, and no more."""
        return self.names is None and all(isinstance(kind, Real) for kind in self.kinds)

    @property
    def labels(self) -> list[str]:
        """Their names, or x0, x1, .."""
        return self.names or [f"x{i}" for i in range(len(self.kinds))]

    @property
    def discrete(self) -> np.ndarray:
        """Which coordinates are rounded."""
        flags = [isinstance(kind, Integer | Choice) for kind in self.kinds]
        return np.repeat(flags, [self._width(kind) for kind in self.kinds])

    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest coordinates."""
        low: list[float] = []
        high: list[float] = []
        for kind in self.kinds:
            if isinstance(kind, Choice):
                low += [0.0] * self._width(kind)
                high += [1.0] * self._width(kind)
            else:
                low.append(math.log(kind.low) if kind.scaled else float(kind.low))
                high.append(math.log(kind.high) if kind.scaled else float(kind.high))
        return np.array(low), np.array(high)

    # -- from form to form -------------------------------------------------------------------------------------------------

    def numbers(self, point: Any) -> np.ndarray:
        """A user's point as one number a variable; a ValueError says what is wrong with it."""
        if self.names is not None:
            if not isinstance(point, Mapping):
                raise TypeError(f"the variables have names: give a dictionary with {', '.join(self.names)}")
            for name in point:
                if name not in self.names:
                    raise ValueError(f"unknown variable {name!r}; {suggestion(str(name), self.names)}")
            if missing := [name for name in self.names if name not in point]:
                raise ValueError(f"give {', '.join(missing)} too")
            point = [point[name] for name in self.names]
        if len(point) != len(self.kinds):
            raise ValueError(f"a point has {len(point)} values, but there are {len(self.kinds)} variables")
        return np.array([self._number(*each) for each in zip(self.labels, self.kinds, point)])

    @staticmethod
    def _number(name: str, kind: Variable, value: Any) -> float:
        if isinstance(kind, Choice):
            same = [i for i, option in enumerate(kind.options) if option == value]
            if not same:
                raise ValueError(f"{name} = {value!r} is not one of {', '.join(map(repr, kind.options))}")
            return float(same[0])
        number = float(value)
        if not kind.low <= number <= kind.high:
            raise ValueError(
                f"{name} = {number:g} lies outside its bounds [{kind.low:g}, {kind.high:g}]; start inside them"
            )
        if isinstance(kind, Integer) and not number.is_integer():
            raise ValueError(f"{name} = {number:g} must be a whole number")
        return number

    def coordinates(self, numbers: np.ndarray) -> np.ndarray:
        """Where points lie in the box, (.., number of variables) -> (.., number of coordinates)."""
        numbers = np.asarray(numbers, dtype=float)
        out = np.empty((*numbers.shape[:-1], self.at[-1].stop))
        for i, (kind, at) in enumerate(zip(self.kinds, self.at)):
            value = numbers[..., i]
            if isinstance(kind, Choice) and self._width(kind) > 1:
                out[..., at] = value[..., None] == np.arange(self._width(kind))
            else:
                out[..., at.start] = np.log(value) if kind.scaled else value
        return out

    def decoded(self, coordinates: np.ndarray) -> np.ndarray:
        """The points at coordinates: rounded, and within their bounds to the last bit."""
        out = np.empty((*coordinates.shape[:-1], len(self.kinds)))
        for i, (kind, at) in enumerate(zip(self.kinds, self.at)):
            u = coordinates[..., at]
            if isinstance(kind, Choice):
                out[..., i] = u.argmax(-1) if self._width(kind) > 1 else u[..., 0] > 0.5
                continue
            value = np.exp(u[..., 0]) if kind.scaled else u[..., 0]
            value = np.rint(value) if isinstance(kind, Integer) else value
            out[..., i] = np.clip(value, kind.low, kind.high)
        return out

    def shown(self, numbers: np.ndarray) -> Any:
        """A point as the user sees it: an array, or a dictionary with the variables' names."""
        if self.names is None:
            chosen = [kind.options[int(v)] if isinstance(kind, Choice) else v for kind, v in zip(self.kinds, numbers)]
            return np.array(chosen, dtype=float)
        values = {}
        for name, kind, number in zip(self.names, self.kinds, numbers.tolist()):
            whole = isinstance(kind, Integer | Choice)
            values[name] = kind.options[int(number)] if isinstance(kind, Choice) else int(number) if whole else number
        return NamedPoint(values, np.array(numbers))

    def allowed(self, numbers: np.ndarray) -> bool:
        """Whether these are points within the bounds, whole where they must be."""
        for kind, column in zip(self.kinds, numbers.T):
            low, high = (0, len(kind.options) - 1) if isinstance(kind, Choice) else (kind.low, kind.high)
            whole = not isinstance(kind, Integer | Choice) or np.all(column == np.rint(column))
            if not (whole and np.all((low <= column) & (column <= high))):
                return False
        return True

    def all_shown(self, numbers: np.ndarray) -> Any:
        """Points, one per row, as the user sees them: an array, or a list of dictionaries."""
        rows = [self.shown(row) for row in numbers]
        return rows if self.names is not None else np.array(rows).reshape(numbers.shape)

    def columns(self, A: np.ndarray) -> np.ndarray:
        """Linear constraints on the variables, rewritten for the coordinates. A ValueError if they would not be linear there."""
        out = np.zeros((len(A), self.at[-1].stop))
        for i, (kind, at) in enumerate(zip(self.kinds, self.at)):
            if isinstance(kind, Real):
                out[:, at.start] = A[:, i]
            elif np.any(A[:, i]):
                raise ValueError(
                    f"a LinearConstraint on {self.labels[i]}, a {type(kind).__name__}, cannot be kept by projection: give "
                    "it as a constraint c(x) <= 0"
                )
        return out

    def column(self, i: int, numbers: np.ndarray) -> np.ndarray:
        """Variable i of many points, as the user sees it."""
        kind = self.kinds[i]
        if isinstance(kind, Choice):
            return np.array([kind.options[int(number)] for number in numbers])
        return numbers.astype(int) if isinstance(kind, Integer) else numbers

    # -- steps -------------------------------------------------------------------------------------------------------------

    def middle(self) -> np.ndarray:
        """The middle of all bounds, as numbers; the first option of a choice."""
        low, high = self.box()
        if not np.all(np.isfinite(low) & np.isfinite(high)):
            raise ValueError(
                "x0 may only be left out if every variable has two finite bounds: the search then starts in the middle"
            )
        first = [isinstance(kind, Choice) for kind in self.kinds]
        return np.where(first, 0.0, self.decoded(0.5 * (low + high)))

    def varied(self, numbers: np.ndarray, around: np.ndarray, rng: np.random.Generator, share: float) -> np.ndarray:
        """Points (k, variables), a share of them with one discrete variable or several changed from their values in `around`:
        integers by a step, sometimes more, and choices to another option."""
        discrete = [i for i, kind in enumerate(self.kinds) if isinstance(kind, Integer | Choice)]
        out = np.array(numbers)
        for row in np.flatnonzero(rng.random(len(out)) < share):
            several = min(int(rng.geometric(1 - ANOTHER)), len(discrete))
            for i in rng.choice(discrete, size=several, replace=False):
                out[row, i] = self._neighbour(self.kinds[i], float(around[i]), rng)
        return out

    @staticmethod
    def _neighbour(kind: Variable, value: float, rng: np.random.Generator) -> float:
        """Another value of a discrete variable, near this one."""
        if isinstance(kind, Choice):
            return float((value + 1 + rng.integers(len(kind.options) - 1)) % len(kind.options))
        assert isinstance(kind, Integer)
        step = float(rng.geometric(STEP / max(1.0, 0.1 * value) if kind.log else STEP))
        up = bool(rng.random() < 0.5)
        other = value + step if up else value - step
        if not kind.low <= other <= kind.high:  # otherwise in the other direction, as far as the bounds allow
            other = min(max(2 * value - other, kind.low), kind.high)
        return other if other != value else value + 1 if value < kind.high else value - 1

    # -- files -------------------------------------------------------------------------------------------------------------

    def plain_data(self) -> dict[str, Any]:
        """For a file."""
        kinds: list[list[Any]] = []
        for kind in self.kinds:
            if isinstance(kind, Choice):
                if not all(isinstance(option, PLAIN) for option in kind.options):
                    raise ValueError("a search can only be saved if its choices are strings and numbers")
                kinds.append(["Choice", *kind.options])
            else:
                ends = jsonable([kind.low, kind.high])
                kinds.append([type(kind).__name__, *ends, *([kind.log] if isinstance(kind, Integer) else [])])
        return {"kinds": kinds, "names": self.names}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Variables:
        """What `plain_data` gave."""
        kinds = []
        for name, *given in data["kinds"]:
            if name == "Choice" and not all(isinstance(option, PLAIN) for option in given):
                raise ValueError("choices are of texts and numbers")
            if name != "Choice":
                given[:2] = interval(given[:2])
            kinds.append(KINDS[name](*given))
        return cls(kinds, data["names"])


def as_points(x0: Any) -> list[Any]:
    """Starting points as they were given, none, one or several; a bare number is a point with one variable.

    >>> as_points(None), as_points(2.0), as_points([1, 2]), as_points([[1, 2], [3, 4]])
    ([], [[2.0]], [[1, 2]], [[1, 2], [3, 4]])
    >>> as_points([{"rate": 1}, {"rate": 2}])
    [{'rate': 1}, {'rate': 2}]
    """
    if x0 is None or isinstance(x0, Mapping):
        return [] if x0 is None else [x0]
    if not isinstance(x0, Sequence) and np.ndim(x0) == 0:
        return [[x0]]
    first: Any = next(iter(x0), None)
    return list(x0) if isinstance(first, Mapping) or np.ndim(first) > 0 else [x0]


def read_variables(bounds: Any, n: int | None, integrality: Any = None) -> Variables | None:
    """The variables that `bounds` and `integrality` describe; None where they are plain numbers without names.

    `integrality`: as in scipy.optimize.milp, 1 for variables that must be whole and 0 for others.
    """
    if isinstance(bounds, Variables):
        return bounds
    names: list[str] | None = None
    if isinstance(bounds, Mapping):
        names, bounds = [str(name) for name in bounds], list(bounds.values())
    special = names is not None or integrality is not None
    if not special and (bounds is None or isinstance(bounds, scipy.optimize.Bounds)):
        return None
    if not special and not any(isinstance(bound, Integer | Log | Choice) for bound in bounds):
        return None
    if isinstance(bounds, scipy.optimize.Bounds):
        size = n if n is not None else max(np.size(bounds.lb), np.size(bounds.ub))
        bounds = np.column_stack([np.broadcast_to(side, size) for side in (bounds.lb, bounds.ub)]).tolist()
    if bounds is None:
        bounds = [(-math.inf, math.inf)] * (n or 0)
    kinds: list[Variable] = [_kind(bound) for bound in bounds]
    flags = np.broadcast_to(0 if integrality is None else np.asarray(integrality), len(kinds))
    if not np.isin(flags, (0, 1)).all():
        raise ValueError(f"integrality must be 1 (whole) or 0 for each variable, got {integrality!r}")
    for i in np.flatnonzero(flags):
        kinds[i] = _whole(kinds[i])
    if names is None and any(isinstance(kind, Choice) and not _of_numbers(kind) for kind in kinds):
        raise ValueError(
            'a Choice of things that are not numbers needs names: bounds={"metal": pcces.Choice("cast", ..), ..}'
        )
    return Variables(kinds, names)


def _kind(bound: Any) -> Variable:
    if isinstance(bound, Real | Integer | Log | Choice):
        return bound
    try:
        low, high = interval(bound)
    except (TypeError, ValueError):
        raise ValueError(
            f"a variable's bounds must be a pair (low, high), or pcces.Integer, Log or Choice, got {bound!r}"
        ) from None
    return Real(float(low), float(high))


def _whole(kind: Variable) -> Variable:
    if not isinstance(kind, Real):
        return kind
    return Integer(
        math.ceil(kind.low) if math.isfinite(kind.low) else kind.low,
        math.floor(kind.high) if math.isfinite(kind.high) else kind.high,
    )


def _of_numbers(kind: Choice) -> bool:
    return all(isinstance(option, int | float) for option in kind.options)


def middle(bounds: Any) -> np.ndarray:
    """The middle of plain bounds."""
    if bounds is None:
        raise ValueError("give x0, or finite bounds: the search then starts in their middle")
    pairs = (
        list(zip(np.atleast_1d(bounds.lb), np.atleast_1d(bounds.ub)))
        if isinstance(bounds, scipy.optimize.Bounds)
        else bounds
    )
    return Variables([_kind(pair) for pair in pairs]).middle()
