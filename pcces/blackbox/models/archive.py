"""Every point evaluated so far with the mean of its evaluations: what the regression models learn from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np


@dataclass(eq=False)
class Archive:
    """Points z, mean outputs and evaluation counts, in arrays that grow by doubling.

    >>> archive = Archive()
    >>> row = archive.record(-1, np.zeros(2), np.array([[1.0], [3.0]]))
    >>> archive.points, archive.outputs, archive.counts
    (array([[0., 0.]]), array([[2.]]), array([2.]))
    """

    points: np.ndarray = field(default_factory=partial(np.empty, (0, 0)))  # (k, n)
    outputs: np.ndarray = field(default_factory=partial(np.empty, (0, 0)))  # (k, 1 + r) means
    counts: np.ndarray = field(default_factory=partial(np.empty, 0))  # (k,) evaluations behind each mean
    within: np.ndarray = field(
        default_factory=partial(np.zeros, 0)
    )  # (1 + r,) squared deviations from those means, summed
    freedom: float = 0.0  # and how many degrees of freedom they have
    failed: np.ndarray = field(default_factory=partial(np.empty, (0, 0)))  # (k, n) points whose evaluation failed
    _room: list[np.ndarray] = field(
        default_factory=list, init=False, repr=False
    )  # the arrays those three are the beginnings of

    def add(self, points: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Append new points, one evaluation each; returns their rows (-1 for a failed evaluation, which is not kept)."""
        good = np.isfinite(outputs).all(axis=1)
        size = len(self.points)
        rows = np.where(good, size - 1 + np.cumsum(good), -1)
        if not good.all():
            self.failed = np.vstack([self.failed, points[~good]]) if len(self.failed) else points[~good]
            points, outputs = points[good], outputs[good]
        needed = size + len(points)
        if not self._room or needed > len(self._room[2]) or self._room[1].shape[1] != outputs.shape[1]:
            self._grow(max(needed, 2 * size, 256), points.shape[1], outputs.shape[1])
        for array, new in zip(self._room, (points, outputs, 1.0)):
            array[size:needed] = new
        self.points, self.outputs, self.counts = [array[:needed] for array in self._room]
        return rows

    def record(self, row: int, point: np.ndarray, outputs: np.ndarray) -> int:
        """Take in evaluations of the point in a row, or of a new one (-1); returns its row. Failures are not kept."""
        if len(outputs) == 0 or not np.all(np.isfinite(outputs)):
            return row
        if row < 0:
            row, outputs = int(self.add(point[None], outputs[:1])[0]), outputs[1:]
        if len(outputs):
            before, more = self.counts[row], len(outputs)
            total = before + more
            shift = outputs.mean(0) - self.outputs[row]
            squares = ((outputs - outputs.mean(0)) ** 2).sum(0) + shift**2 * (before * more / total)
            self.within, self.freedom = squares + (self.within if self.freedom else 0.0), self.freedom + more
            self.outputs[row] += (outputs.mean(0) - self.outputs[row]) * (len(outputs) / total)
            self.counts[row] = total
        return row

    def place(self, points: np.ndarray, outputs: np.ndarray) -> None:
        """Take in one evaluation of each point, also of points that are there already."""
        for point, row in zip(points, outputs):
            same = np.flatnonzero((self.points == point).all(1)) if len(self.points) else np.zeros(0, dtype=int)
            if same.size and np.all(np.isfinite(row)):
                self.record(int(same[0]), point, row[None])
            else:
                self.add(point[None], row[None])

    def _grow(self, capacity: int, n: int, width: int) -> None:
        self._room = [np.empty((capacity, n)), np.empty((capacity, width)), np.empty(capacity)]
        if len(self.points):
            for array, kept in zip(self._room, (self.points, self.outputs, self.counts)):
                array[: len(kept)] = kept
