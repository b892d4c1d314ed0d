"""The feasible region of x: bounds and linear sets kept by projection (Remark 1), and the scaling of the variables.

The search works on z = (x - origin) / scale: the unit box where the bounds are finite. Objective and constraints are
only ever called at `to_x(z)`, which lies within the bounds to the last bit.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from pcces.blackbox.coding import as_points, middle, read_variables
from pcces.blackbox.models.qp import project_polyhedron
from pcces.core.estimation import FARTHEST
from pcces.support.jsonable import interval

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

HELD = 1e-9  # to either side of a value that is held


class Space:
    """Bounds, linear constraints and scale of the variables.

    >>> space = Space(np.array([1.0, 5.0]), bounds=[(0, 2), (0, 10)])
    >>> space.to_z(np.array([1.0, 5.0])), space.to_x(np.array([0.5, 2.0]))
    (array([0.5, 0.5]), array([ 1., 10.]))
    """

    def __init__(
        self,
        x0: Any,
        bounds: Any = None,
        linear: list[LinearConstraint] | None = None,
        scale: Any = None,
        integrality: Any = None,
    ):
        given = as_points(x0)
        self.variables = variables = read_variables(bounds, len(given[0]) if given else None, integrality)
        if variables is not None:
            self.starts = np.array([variables.numbers(each) for each in given] or [variables.middle()])
            given, bounds = list(variables.coordinates(self.starts)), scipy.optimize.Bounds(*variables.box())
        points = [_numbers(each) for each in given or [middle(bounds)]]
        x0 = points[0]
        lower, upper = _read_bounds(bounds, x0.size)
        for i, point in enumerate(points):
            if point.shape != x0.shape:
                raise ValueError(f"x0[{i}] has {point.size} numbers, but x0[0] has {x0.size}")
            points[i] = _started_inside(point, lower, upper, f"x0[{i}]" if i else "x0")
        x0 = points[0]
        self.n, self.dtype = x0.size, x0.dtype
        self.lower, self.upper = -_rounded_down(-lower, self.dtype), _rounded_down(upper, self.dtype)
        if variables is None:
            self.starts = np.array(points, dtype=self.dtype)
        self.x0 = self.starts[0]
        self.size = len(self.x0)  # of a point, as the user counts
        self.discrete = np.zeros(self.n, dtype=bool) if variables is None else variables.discrete
        self.rounds = bool(self.discrete.any())
        finite = np.isfinite(self.lower) & np.isfinite(self.upper)
        with np.errstate(invalid="ignore"):
            width = np.where(finite & (self.upper > self.lower), self.upper - self.lower, np.maximum(np.abs(x0), 1.0))
        self.scale = np.broadcast_to(width if scale is None else np.asarray(scale, dtype=float), x0.shape)
        if np.any(~(self.scale <= FARTHEST) | (self.scale <= 0)):
            raise ValueError("scale must have positive numbers: the typical size of a change in each variable")
        self.scale = self.scale.astype(self.dtype)
        self.origin = np.where(finite, self.lower, x0).astype(self.dtype)
        self.bounded = bool(np.any(np.isfinite(self.lower) | np.isfinite(self.upper)))
        self.z_lower = ((self.lower - self.origin) / self.scale).astype(self.dtype)
        self.z_upper = ((self.upper - self.origin) / self.scale).astype(self.dtype)
        self.lower, self.upper = self.lower.astype(self.dtype), self.upper.astype(self.dtype)
        self.G, self.h = self._half_spaces(linear or [])
        self.linear = len(self.h) > 0
        self.confined = self.bounded or self.linear
        self.z_starts = self.project(self.to_z(self.starts))
        self.z0 = self.z_starts[0]

    def _half_spaces(self, linear: list[LinearConstraint]) -> tuple[np.ndarray, np.ndarray]:
        """All linear constraints as G z <= h."""
        rows: list[np.ndarray] = [np.zeros((0, self.n))]
        limits: list[np.ndarray] = [np.zeros(0)]
        for constraint in linear:
            A = np.atleast_2d(np.asarray(constraint.A.toarray() if hasattr(constraint.A, "toarray") else constraint.A))
            if A.shape[1] != self.size:
                raise ValueError(f"a LinearConstraint has {A.shape[1]} columns, but x0 has {self.size} numbers")
            if self.variables is not None:
                A = self.variables.columns(A)
            low, high = (
                np.broadcast_to(np.asarray(side, dtype=float), len(A)) for side in (constraint.lb, constraint.ub)
            )
            for sign, side in ((1.0, high), (-1.0, low)):
                used = np.isfinite(side)
                rows.append(sign * A[used] * self.scale)
                limits.append(sign * (side[used] - A[used] @ self.origin))
        return np.vstack(rows), np.concatenate(limits)

    @cached_property
    def half_spaces(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds and linear constraints together, as G z <= h."""
        return self._within(self.z_lower, self.z_upper)

    def half_spaces_at(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Likewise, with what is rounded held at its values in z."""
        if not self.rounds:
            return self.half_spaces
        held = self.discrete
        return self._within(np.where(held, z - HELD, self.z_lower), np.where(held, z + HELD, self.z_upper))

    def _within(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        up, down = np.isfinite(upper), np.isfinite(lower)
        identity = np.eye(self.n)
        G = np.vstack([identity[up], -identity[down], self.G])
        return G, np.concatenate([upper[up], -lower[down], self.h])

    def to_z(self, x: np.ndarray) -> np.ndarray:
        """From the user's variables to the search's."""
        if self.variables is not None:
            x = self.variables.coordinates(x)
        return (x - self.origin) / self.scale

    def to_x(self, z: np.ndarray) -> np.ndarray:
        """From the search's variables to the user's, as numbers, never outside the bounds."""
        x = self.scale * z
        x += self.origin
        x = (np.clip(x, self.lower, self.upper) if self.bounded else x).astype(self.dtype, copy=False)
        return x if self.variables is None else self.variables.decoded(x)

    def shown(self, x: np.ndarray) -> Any:
        """A point, or points in a list, as the user sees them."""
        if self.variables is None:
            return x
        return self.variables.shown(x) if x.ndim == 1 else self.variables.all_shown(x)

    def confine(self, x: np.ndarray) -> np.ndarray:
        """`project` in the user's variables."""
        if self.linear:
            return self.to_x(self.project(self.to_z(x)))
        return np.clip(x, self.lower, self.upper) if self.bounded else x

    def project(self, z: np.ndarray) -> np.ndarray:
        """The nearest point (or points, one per row) inside bounds and linear constraints, with what must be whole rounded."""
        return self.rounded(self.inside(z))

    def rounded(self, z: np.ndarray) -> np.ndarray:
        """The points with what must be whole rounded: where they will be evaluated."""
        return np.where(self.discrete, self.to_z(self.to_x(z)), z) if self.rounds else z

    def inside(self, z: np.ndarray) -> np.ndarray:
        """`project` without rounding."""
        if self.linear:
            G, h = self.half_spaces
            rows = np.atleast_2d(z)
            inside = np.array([project_polyhedron(row, G, h) for row in rows], dtype=self.dtype).reshape(z.shape)
            return np.clip(inside, self.z_lower, self.z_upper)
        return np.clip(z, self.z_lower, self.z_upper) if self.bounded else z


def _numbers(x0: Any) -> np.ndarray:
    """A starting point as an array; a ValueError says what is wrong with it."""
    x0 = np.asarray(x0)
    if x0.ndim != 1 or x0.size == 0:
        raise ValueError(f"x0 must be a one-dimensional array with at least one number, got shape {x0.shape}")
    if x0.dtype not in (np.float32, np.float64):
        x0 = x0.astype(float)
    if not np.all(np.isfinite(x0)):
        raise ValueError(f"x0 has nan or inf at position {int(np.flatnonzero(~np.isfinite(x0))[0])}")
    if np.any(np.abs(x0) > FARTHEST):
        raise ValueError(f"x0 has numbers beyond {FARTHEST:g}, whose squares overflow: use other units")
    return x0


def _started_inside(x0: np.ndarray, lower: np.ndarray, upper: np.ndarray, name: str) -> np.ndarray:
    """x0 within its bounds, where it is outside by its own rounding at most: a single-precision 0.7 is less than 0.7.

    Where no single-precision number lies between bounds, it is in double precision from here on.
    """
    crossed = np.flatnonzero(lower > upper)
    if crossed.size:
        i = int(crossed[0])
        raise ValueError(f"the bounds of variable {i} are crossed: {lower[i]:g} > {upper[i]:g}")
    inside, rounding = np.clip(x0.astype(float), lower, upper), np.spacing(np.abs(x0)).astype(float)
    outside = np.flatnonzero(np.abs(inside - x0) > rounding)
    if outside.size:
        i = int(outside[0])
        raise ValueError(
            f"{name}[{i}] = {x0[i]:g} lies outside its bounds [{lower[i]:g}, {upper[i]:g}]; start inside them"
        )
    low, high = -_rounded_down(-lower, x0.dtype), _rounded_down(upper, x0.dtype)
    return np.clip(x0, low, high).astype(x0.dtype) if np.all(low <= high) else inside


def _rounded_down(limit: np.ndarray, dtype: Any) -> np.ndarray:
    """The largest numbers of the type that are not above the limits: a single-precision 0.1 is more than 0.1."""
    near = limit.astype(dtype)
    return np.where(near > limit, np.nextafter(near, np.array(-np.inf, dtype=dtype)), near).astype(float)


def _read_bounds(bounds: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    if bounds is None:
        return np.full(n, -np.inf), np.full(n, np.inf)
    if isinstance(bounds, scipy.optimize.Bounds):
        low, high = np.asarray(bounds.lb).tolist(), np.asarray(bounds.ub).tolist()
    else:
        pairs = list(bounds)
        if len(pairs) != n or any(np.shape(pair) != (2,) for pair in pairs):
            raise ValueError(f"bounds must be scipy.optimize.Bounds or {n} pairs (low, high), one for each variable")
        low, high = zip(*map(interval, pairs))
    lower, upper = (np.array(np.broadcast_to(np.asarray(side, dtype=float), n)) for side in (low, high))
    if np.any(np.isnan(lower) | np.isnan(upper)):
        raise ValueError("bounds contain nan; use -inf, inf or None for an open side")
    return np.where(lower < -FARTHEST, -np.inf, lower), np.where(upper > FARTHEST, np.inf, upper)
