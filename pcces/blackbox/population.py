"""The populations of Step 1, also those too large to be held: rows of normals by seed, cut from one shared table.

With n = 1e6 a population of 240 is 1 GB of points and drawing its normals takes seconds. As in Salimans et al. (2017)
the rows are then slices of one table of normals at random offsets: nothing is drawn, nothing is stored, and any process
that knows the seed can rebuild any row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from pcces.blackbox.batch import NORMALS, Streams
from pcces.blackbox.space import Space
from pcces.core import algorithm
from pcces.strategies import Strategy

DRAWN_NUMBERS = 50_000  # more normals come from the table: drawing them would cost more than the rest of ask and tell
LAZY_NUMBERS = 10_000_000  # populations with more numbers than this are lazy
TABLE = 1 << 22  # numbers in the table, or sixteen rows where that is more
BLOCK_ROWS, BLOCK_NUMBERS = 16, 50_000  # at least so many are multiplied at a time: enough for a fast matrix product
PIECE_NUMBERS = 1_000_000  # and no more are scaled and shifted at a time: that wants the cache


@lru_cache(maxsize=2)
def _table(size: int, dtype: str) -> np.ndarray:
    """The same for every seed, which picks the offsets: searches in one process share it."""
    table = np.random.Generator(np.random.SFC64(0)).standard_normal(size, dtype=np.float32).astype(dtype, copy=False)
    table.flags.writeable = False
    return table


class Normals:
    """Rows of standard normals: slices of a table, at the given offsets."""

    def __init__(self, table: np.ndarray, offsets: np.ndarray, width: int):
        self.table, self.offsets, self.width = table, offsets, width
        self.shape = (len(offsets), width)

    def rows(self, first: int, last: int) -> np.ndarray:
        """A few rows as an array."""
        out = np.empty((last - first, self.width), dtype=self.table.dtype)
        for row, offset in zip(out, self.offsets[first:last].tolist()):
            row[:] = self.table[offset : offset + self.width]
        return out

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Row ranges small enough to handle at once."""
        return ranges(0, len(self.offsets), self.block_size)

    @property
    def block_size(self) -> int:
        """How many rows are handled at once."""
        return max(BLOCK_ROWS, BLOCK_NUMBERS // self.width)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        """weights @ rows."""
        total = np.zeros(self.width, dtype=self.table.dtype)
        for weight, offset in zip(weights, self.offsets.tolist()):
            total += weight * self.table[offset : offset + self.width]
        return total


def ranges(first: int, last: int, size: int) -> Iterator[tuple[int, int]]:
    """Cut first .. last into ranges of that size.

    >>> list(ranges(0, 5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    return ((i, min(i + size, last)) for i in range(first, last, size))


def population_normals(streams: Streams, k: int, rows: int, width: int, dtype: Any) -> Normals:
    """The standard normals of iteration k, a pure function of seed and k.

    >>> population_normals(Streams(1), 0, 2, 3, np.float64).rows(0, 2).shape
    (2, 3)
    """
    generator = streams(NORMALS, k)
    if rows * width <= DRAWN_NUMBERS:
        own = generator.standard_normal(rows * width).astype(dtype, copy=False)
        return Normals(own, np.arange(0, rows * width, width), width)
    size = max(TABLE, 16 * width)
    return Normals(_table(size, np.dtype(dtype).name), generator.integers(size - width, size=rows), width)


class LazyPoints:
    """A population whose points are built when they are looked at, a block at a time.

    `points[i]` is one point, `for x in points` goes through all, `numpy.asarray(points)` builds them all at once; to the
    same bits, whichever way.
    """

    def __init__(self, normals: Normals, strategy: Strategy, own: Any, es: algorithm.State, space: Space):
        self.normals, self.strategy, self.own, self.space = normals, strategy, own, space
        self.shape = (2 * normals.shape[0], space.n)
        self._centre, self._unit = space.to_x(es.x), space.scale * es.sigma_es
        self._latest: tuple[int, np.ndarray] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def _offsets(self, block: tuple[int, int]) -> Iterator[tuple[slice, np.ndarray]]:
        """A block of the first half of the directions as offsets from x_k in the user's variables, piece by piece."""
        first, last = block
        directions = self.strategy.directions(self.own, self.normals.rows(first, last))
        for i, j in ranges(0, last - first, max(1, PIECE_NUMBERS // self.space.n)):
            yield slice(first + i, first + j), directions[i:j] * self._unit

    def __getitem__(self, i: int) -> np.ndarray:
        i = range(len(self))[i]
        half, size = len(self) // 2, self.normals.block_size
        first = i % half // size * size
        if self._latest is None or self._latest[0] != first:  # whole blocks: a row alone would be rounded differently
            rows = self.normals.rows(first, min(first + size, half))
            self._latest = first, self.strategy.directions(self.own, rows)
        offset = self._latest[1][i % half - first] * self._unit
        return self.space.confine(self._centre + offset if i < half else self._centre - offset)

    def __iter__(self) -> Iterator[np.ndarray]:
        for sign in (np.add, np.subtract):
            for block in self.normals.blocks():
                for _, offsets in self._offsets(block):
                    yield from self.space.confine(sign(self._centre, offsets, out=offsets))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        points = np.empty(self.shape, dtype=self.space.dtype)
        plus, minus = points[: len(points) // 2], points[len(points) // 2 :]
        for block in self.normals.blocks():
            for rows, offsets in self._offsets(block):
                np.add(self._centre, offsets, out=plus[rows])
                np.subtract(self._centre, offsets, out=minus[rows])
        points = self.space.confine(points)
        return points if dtype is None else points.astype(dtype, copy=False)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        """weights @ directions, a block at a time."""
        weights = weights.astype(self.space.dtype)
        plus, minus = weights[: len(self) // 2], weights[len(self) // 2 :]
        if not self.space.confined:  # directions are linear in the normals: sum those first
            return self.strategy.directions(self.own, self.normals.combine(plus - minus)[None])[0]
        total = np.zeros(self.space.n, dtype=self.space.dtype)
        for block in self.normals.blocks():
            for rows, offsets in self._offsets(block):
                total += plus[rows] @ (self.space.confine(self._centre + offsets) - self._centre)
                total += minus[rows] @ (self.space.confine(self._centre - offsets) - self._centre)
        return total / self._unit
