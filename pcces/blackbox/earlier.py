"""Evaluations that the search did not ask for: data from before it began, and points that the user chose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pcces.blackbox import missing
from pcces.blackbox.coding import Variables
from pcces.blackbox.evaluations import Evaluations, column_names
from pcces.blackbox.outputs import as_rows, checked

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

OUTSIDE = 1e-9  # in widths of the bounds: rounding


class Earlier(NamedTuple):
    """Points as numbers (k, n), f (k,), and c (k, m) if there are constraints."""

    points: np.ndarray
    f: np.ndarray
    c: np.ndarray | None

    def best(self, variables: Variables | None) -> Any:
        """The point, as the user sees it, with the lowest f of those that kept the limits when they were evaluated, or that broke
        them least; None if all failed."""
        c = np.zeros((len(self.f), 0)) if self.c is None else self.c.astype(float)
        good = np.isfinite(self.f) & np.isfinite(c).all(axis=1)
        broken = np.where(good, np.maximum(c, 0.0).max(axis=1, initial=0.0), np.inf)
        x = self.points[np.lexsort((self.f, broken))[0]]
        return None if not good.any() else x if variables is None else variables.shown(x)

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file."""
        return {f"earlier_{name}": part for name, part in self._asdict().items() if part is not None}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray]) -> Earlier | None:
        """What `arrays` gave, if it did."""
        if "earlier_f" not in arrays:
            return None
        return cls(arrays["earlier_points"], arrays["earlier_f"], arrays.get("earlier_c"))


def same(a: Earlier | None, b: Earlier | None) -> bool:
    """Whether two are of the same numbers."""
    left, right = (each.arrays() if each is not None else {} for each in (a, b))
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name], equal_nan=True) for name in left)


def read_earlier(given: Any, variables: Variables | None) -> Earlier:
    """Data as (points, f), as (points, f, c), or as a table with the columns of `res.evaluations`.

    >>> read_earlier(([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0]), None)
    Earlier(points=array([[1., 2.],
           [3., 4.]]), f=array([5., 6.]), c=None)
    >>> read_earlier({"x0": [0.1, 0.2], "f": [1.0, 3.0], "c0": [-2.0, 1.0]}, None)
    Earlier(points=array([[0.1],
           [0.2]]), f=array([1., 3.]), c=array([[-2.],
           [ 1.]]))
    """
    if isinstance(given, Sequence) and not isinstance(given, Evaluations | str):
        if len(given) not in (2, 3):
            raise ValueError(
                "initial_data must be (points, f), (points, f, c), or a table with the columns of res.evaluations; got "
                f"{len(given)} parts"
            )
        points, f, c = (*given, None)[:3]
    else:
        points, f, c = _columns(given, variables)
    return as_earlier(points, f, c, variables)


def begun_at(given: Any, x0: Any, bounds: Any) -> tuple[Earlier, Any]:
    """Earlier data, and where the search begins: at x0, or at the best of them.

    >>> begun_at(([[1.0], [2.0]], [5.0, 4.0]), None, None)[1]
    array([2.])
    """
    variables = bounds if isinstance(bounds, Variables) else None
    data = read_earlier(given, variables)
    best = data.best(variables) if x0 is None else None
    return data, x0 if best is None else best


def as_earlier(points: Any, f: Any, c: Any, variables: Variables | None) -> Earlier:
    """Evaluations as arrays; a ValueError says what is wrong with them."""
    numbers = np.array([_numbers(i, point, variables) for i, point in enumerate(points)])
    f = np.asarray(f, dtype=float)
    if not len(numbers) or f.shape != (len(numbers),):
        raise ValueError(
            f"of {len(numbers)} points f must have shape ({len(numbers)},), and there must be one, got {f.shape}"
        )
    if c is not None:
        c = np.asarray(c)
        c = c[:, None] if c.ndim == 1 else c
    return Earlier(numbers, f, c)


def _numbers(i: int, point: Any, variables: Variables | None) -> np.ndarray:
    try:
        return np.array(point, dtype=float) if variables is None else variables.numbers(point)
    except ValueError as error:
        raise ValueError(f"point {i} of initial_data: {error}") from error


def _columns(table: Any, variables: Variables | None) -> tuple[Any, Any, Any]:
    """Points, f and c from a table: what `res.evaluations` is, a pandas.DataFrame, or a dictionary of columns."""
    columns = [str(name) for name in getattr(table, "columns", table)]
    names = [f"x{i}" for i in range(sum(name.startswith("x") and name[1:].isdigit() for name in columns))]
    if variables is not None:
        names = column_names(variables.labels)
    if missing := [name for name in (*names, "f") if name not in columns] or ["x0"] * (not names):
        raise ValueError(f"the table initial_data has no column {', '.join(missing)}; it has {', '.join(columns)}")
    rows: list[Any] = list(zip(*(table[name] for name in names)))
    if variables is not None and variables.names is not None:
        rows = [dict(zip(variables.names, row)) for row in rows]
    limited = [name for name in columns if name.startswith("c") and name[1:].isdigit() and name not in names]
    return rows, table["f"], np.column_stack([table[name] for name in limited]) if limited else None


def take_in(search: Search, data: Earlier) -> None:
    """Let the models learn from evaluations that the search did not ask for. Certificates know nothing of them."""
    state, space = search.state, search.space
    if data.points.shape[1:] != (space.size,):
        raise ValueError(f"points of initial_data have {data.points.shape[1:]} numbers, but x0 has {space.size}")
    z = space.to_z(data.points.astype(space.dtype) if space.variables is None else data.points)
    inside = space.project(z)
    outside = np.flatnonzero((np.abs(z - inside) > OUTSIDE).any(axis=1))
    if len(outside):
        raise ValueError(
            f"point {outside[0]} of initial_data lies outside the bounds or linear constraints: leave out such points"
        )
    outputs = as_rows(search, checked(search, data.f, data.c, len(data.f)))
    good = np.isfinite(outputs[:, 0])
    state.given += int(good.sum())
    state.budget.batches += 1
    if state.constraints.number > 0:
        worst = state.seen.worst  # of the evaluations that the search made
        state.seen.take(outputs[good, 1:], 0, np.zeros(int(good.sum()), dtype=bool))
        state.seen.worst = worst
    if search.archive is not None:
        known = missing.kept(search, outputs)
        search.archive.place(inside[known], outputs[known])
