"""What a user told of evaluations, as rows of numbers (f, inequalities, equalities both ways)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pcces.blackbox.evaluations import within_reach
from pcces.blackbox.state import Constraints
from pcces.core.estimation import Estimate
from pcces.core.limits import Mean

if TYPE_CHECKING:
    from pcces.blackbox.search import Search


class Told(NamedTuple):
    """f (k,) and c (k, m), None while there is none."""

    f: np.ndarray
    c: np.ndarray | None


def checked(search: Search, f: Any, c: Any, k: int) -> Told:
    """What was told of k evaluations as arrays; a ValueError says what is wrong with them."""
    f = within_reach(np.asarray(f, dtype=float))
    if f.shape != (k,):
        raise ValueError(f"f must have shape ({k},), one value per point, got {f.shape}")
    if c is None:
        return Told(f, None)
    boolean = np.asarray(c).dtype == bool
    c = within_reach(np.asarray(c, dtype=float))
    c = c[:, None] if c.ndim == 1 and len(c) == k else c
    m = search.state.constraints.number
    if c.ndim != 2 or len(c) != k:
        raise ValueError(f"c must have shape ({k}, number of constraints), got {c.shape}")
    if m >= 0 and c.shape[1] != m:
        raise ValueError(f"c has {c.shape[1]} constraints now but had {m} before")
    _check_range(search, f, c)
    return Told(f, c.astype(bool) if boolean else c)


def _check_range(search: Search, f: np.ndarray, c: np.ndarray) -> None:
    """Every c must lie in the range that was stated for it; failed evaluations have none."""
    given = search.options.constraint_range
    if given is None:
        return
    if len(given) != c.shape[1]:
        raise ValueError(f"constraint_range has {len(given)} pairs for {c.shape[1]} constraints")
    low, high = np.array(given, dtype=float).reshape(-1, 2).T
    slack = 1e-9 * (high - low)
    failed = ~(np.isfinite(f) & np.isfinite(c).all(axis=1))
    outside = np.argwhere(((c < low - slack) | (c > high + slack)) & ~failed[:, None])
    if len(outside):
        i, j = outside[0]
        raise ValueError(
            f"constraint {j} was {c[i, j]:.9g}, outside its constraint_range ({low[j]:g}, {high[j]:g}): "
            "give a range that holds at every point, or leave constraint_range out"
        )


def as_rows(search: Search, told: Told) -> np.ndarray:
    """(f, inequalities, equalities both ways) as rows; failed evaluations are rows of +inf. The first that did not fail says
    how many constraints there are."""
    state, options, f = search.state, search.options, told.f
    m, k, finite = state.constraints.number, len(f), np.isfinite(f)
    c_given = told.c is not None or bool(finite.any())
    if told.c is None:
        c, boolean = np.full((k, max(m, 0)), np.nan if m > 0 and not finite.any() else 0.0), False
        if m > 0 and finite.any():
            raise ValueError(f"c has 0 constraints now but had {m} before")
        if m >= 0 or c_given:
            _check_range(search, f, c)
    else:
        c, boolean = told.c.astype(float), told.c.dtype == bool
    if m < 0 and c_given:
        _learn_constraints(search, c.shape[1], boolean)
    equal = state.constraints.equal
    state.seen.boolean &= boolean or bool(np.isin(c[finite], (0.0, 1.0)).all())
    if options.limits is not None and c_given:
        c = c - [limit.origin for limit in options.limits]
    columns = [f[:, None], c]
    if len(equal):
        h, tolerance = c[:, equal], options.equality_tolerance
        columns = [f[:, None], np.delete(c, equal, axis=1), h - tolerance, -h - tolerance]
    rows = np.concatenate(columns, axis=1)
    rows[~np.isfinite(rows).all(axis=1)] = np.inf
    return rows


def _learn_constraints(search: Search, m: int, boolean: bool) -> None:
    """How many constraints there are, and so which are equalities."""
    limits, state = search.options.limits, search.state
    if limits is not None and len(limits) != m:
        raise ValueError(f"limits has {len(limits)} limits for {m} constraints: give one for each, in their order")
    if any(not -m <= i < m for i in search.equalities):
        raise ValueError(f"equalities {search.equalities} name constraints beyond the {m} given")
    equal = np.array([i % m for i in search.equalities], dtype=int)
    if limits is not None and any(limits[i] != Mean() for i in equal):
        raise ValueError("an equality is about a mean: leave its limit Mean()")
    width = 1 + m + len(equal)
    state.constraints = Constraints(m, equal, state.constraints.given_names)
    state.noise = state.noise._replace(deviation=np.zeros(width), jump=np.zeros(width))
    state.seen.begin(width - 1)
    state.seen.boolean = boolean
    state.run.multipliers = np.zeros(width - 1)
    start = state.run.incumbent
    if start.estimate.n > 0:  # it failed, or this would have been known
        start.estimate = Estimate(start.estimate.n, np.full(width, np.inf), np.zeros(width))


@dataclass(eq=False)
class Parts:
    """What was told of a batch of k evaluations so far, part by part.

    >>> parts = Parts(np.zeros(3, dtype=bool), np.zeros(3))
    >>> parts.take(np.array([2]), Told(np.array([5.0]), np.array([[1.0]])))
    >>> parts.take(np.array([0, 1]), Told(np.array([np.nan, 4.0]), None))
    >>> parts.complete, parts.whole
    (True, Told(f=array([nan,  4.,  5.]), c=array([[nan],
           [nan],
           [ 1.]])))
    """

    told: np.ndarray  # (k,)
    f: np.ndarray  # (k,)
    c: np.ndarray | None = None  # (k, m)
    boolean: bool = field(default=True)  # every c so far

    def take(self, rows: np.ndarray, part: Told) -> None:
        """Take in some rows; a ValueError if one of them is there already."""
        again = rows[self.told[rows]]
        if len(again) or len(np.unique(rows)) < len(rows):
            raise ValueError(f"row {int((*again, *rows)[0])} of the batch was already told: tell each evaluation once")
        if part.c is not None:
            if self.c is None:
                self.c = np.full((len(self.f), part.c.shape[1]), np.nan)
            if self.c.shape[1] != part.c.shape[1]:
                raise ValueError(f"c has {part.c.shape[1]} constraints now but had {self.c.shape[1]} before")
            self.c[rows] = part.c
        self.f[rows], self.told[rows] = part.f, True
        self.boolean = self.boolean and part.c is not None and part.c.dtype == bool

    @property
    def complete(self) -> bool:
        """Whether all was told."""
        return bool(self.told.all())

    @property
    def whole(self) -> Told:
        """All of it."""
        return Told(self.f, self.c if self.c is None or not self.boolean else self.c.astype(bool))

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file."""
        arrays = {"parts_told": self.told, "parts_f": self.f, "parts_boolean": np.array(self.boolean)}
        return arrays if self.c is None else arrays | {"parts_c": self.c}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray]) -> Parts | None:
        """What `arrays` gave, if it did."""
        if "parts_told" not in arrays:
            return None
        told, f, boolean = (arrays[f"parts_{name}"] for name in ("told", "f", "boolean"))
        return cls(told.copy(), f.copy(), arrays.get("parts_c"), bool(boolean))


def chosen_rows(batch_rows: np.ndarray | None, rows: int | Sequence[int] | None, k: int) -> np.ndarray | None:
    """Which rows of a batch of k are told: those given, as the part of it that one has counts them; None: all."""
    if rows is None:
        return batch_rows
    chosen = np.atleast_1d(np.asarray(rows, dtype=int))
    outside = chosen[(chosen < -k) | (chosen >= k)]
    if chosen.ndim != 1 or len(outside):
        raise ValueError(f"rows must be numbers from 0 to {k - 1}, of rows of the batch, got {rows!r}")
    return np.arange(k)[chosen] if batch_rows is None else batch_rows[chosen]
