"""Batches of points, and populations too large to be held: rows of normals by seed, cut from one shared table.

With n = 1e6 a population of 240 is 2 GB of points and drawing its normals takes seconds. As in Salimans et al. (2017)
the rows are then slices of one table of normals at random offsets: nothing is drawn, nothing is stored, and any process
that knows the seed can rebuild any row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pcces import algorithm
from pcces.space import Space
from pcces.strategies import Strategy

LAZY_NUMBERS = 10_000_000  # populations with more numbers than this are lazy
TABLE = 1 << 24
BLOCK_NUMBERS = 8_000_000  # numbers handled at a time


class Batch(NamedTuple):
    """Points to evaluate, each with its own seed; `number` says which batch it is."""

    points: Any  # (k, n) array, or LazyPoints
    seeds: np.ndarray  # (k,) for simulators that take one; shared where common random numbers want it
    number: int
    phase: str
    at_trial: int = 0  # how many rows repeat the trial point (the rest repeat the incumbent)

    def __len__(self) -> int:
        return len(self.seeds)


@lru_cache(maxsize=1)
def _table(seed: int, size: int, dtype: str) -> np.ndarray:
    generator = np.random.Generator(np.random.SFC64(seed))
    table = generator.standard_normal(size, dtype=np.float32).astype(dtype, copy=False)
    table.flags.writeable = False
    return table


class TableRows:
    """Rows of standard normals that are slices of the shared table."""

    def __init__(self, table: np.ndarray, offsets: np.ndarray, width: int):
        self.table, self.offsets, self.width = table, offsets, width
        self.shape = (len(offsets), width)

    def rows(self, first: int, last: int) -> np.ndarray:
        """A few rows as an array."""
        return np.stack([self.table[o : o + self.width] for o in self.offsets[first:last]])

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Row ranges small enough to handle at once."""
        size = max(1, BLOCK_NUMBERS // self.width)
        for first in range(0, len(self.offsets), size):
            yield first, min(first + size, len(self.offsets))


def population_normals(seed: int, k: int, rows: int, width: int, dtype: Any) -> np.ndarray | TableRows:
    """The standard normals of iteration k, a pure function of (seed, k): an array, or table rows where that is large.

    >>> population_normals(1, 0, 2, 3, np.float64).shape
    (2, 3)
    """
    generator = np.random.Generator(np.random.Philox(key=[seed, 2], counter=[0, 0, 0, k]))
    if 2 * rows * width <= LAZY_NUMBERS:
        return generator.standard_normal((rows, width)).astype(dtype, copy=False)
    size = max(TABLE, 4 * width)
    return TableRows(_table(seed, size, np.dtype(dtype).name), generator.integers(size - width, size=rows), width)


class LazyPoints:
    """A population whose points are built when they are looked at.

    `points[i]` is one point, `for x in points` goes through all, `numpy.asarray(points)` builds them all at once.
    """

    def __init__(self, z: TableRows, strategy: Strategy, strategy_state: Any, state: algorithm.State, space: Space):
        self.z, self.strategy, self.strategy_state, self.state, self.space = z, strategy, strategy_state, state, space
        self.shape = (2 * z.shape[0], space.n)

    def __len__(self) -> int:
        return self.shape[0]

    def directions(self, first: int, last: int) -> np.ndarray:
        """Some of the first half of the directions, before projection."""
        return self.strategy.directions(self.strategy_state, self.z.rows(first, last))

    def _points(self, directions: np.ndarray) -> np.ndarray:
        return self.space.project(algorithm.sample_points(self.state.x, self.state.sigma_es, directions))

    def __getitem__(self, i: int) -> np.ndarray:
        i = range(len(self))[i]
        half = len(self) // 2
        direction = self.directions(i % half, i % half + 1)[0]
        return self.space.to_x(self._points(direction if i < half else -direction))

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        half = np.concatenate([self.directions(*block) for block in self.z.blocks()])
        points = self.space.to_x(self._points(np.concatenate([half, -half])))
        return points if dtype is None else points.astype(dtype)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        """weights @ directions, a block at a time."""
        half = len(self) // 2
        total = np.zeros(self.space.n, dtype=self.space.dtype)
        weights = weights.astype(self.space.dtype)
        plus, minus = weights[:half], weights[half:]
        for first, last in self.z.blocks():
            directions = self.directions(first, last)
            if self.space.bounded or self.space.linear:
                for w, d in ((plus, directions), (minus, -directions)):
                    total += w[first:last] @ ((self._points(d) - self.state.x) / self.state.sigma_es)
            else:
                total += (plus - minus)[first:last] @ directions
        return total


def combine(weights: np.ndarray, directions: np.ndarray | LazyPoints) -> np.ndarray:
    """d_k = Psi_k(d_k^1, .., d_k^lambda), linear in the directions."""
    if isinstance(directions, LazyPoints):
        return directions.combine(weights)
    return weights.astype(directions.dtype) @ directions
