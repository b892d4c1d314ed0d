"""Every point evaluated so far with the mean of its evaluations: what the regression models learn from."""

from __future__ import annotations

import numpy as np


class Archive:
    """Points z (k, n), mean outputs (k, 1 + r) and evaluation counts (k,), growing by doubling.

    >>> archive = Archive(2)
    >>> row = archive.add(np.zeros((1, 2)), np.array([[1.0]]))[0]
    >>> archive.merge(row, np.array([3.0]), 1)
    >>> archive.outputs, archive.counts
    (array([[2.]]), array([2.]))
    """

    def __init__(self, n: int):
        self._points = np.empty((0, n))
        self._outputs = np.empty((0, 0))
        self._counts = np.empty(0)
        self.size = 0

    def add(self, points: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Append new points, one evaluation each; returns their rows (-1 for a failed evaluation, which is not kept)."""
        good = np.isfinite(outputs).all(axis=1)
        rows = np.where(good, self.size - 1 + np.cumsum(good), -1)
        if not good.all():
            points, outputs = points[good], outputs[good]
        needed = self.size + len(points)
        if needed > len(self._points) or self._outputs.shape[1] != outputs.shape[1]:
            self._grow(max(needed, 2 * len(self._points), 256), outputs.shape[1])
        self._points[self.size : needed] = points
        self._outputs[self.size : needed] = outputs
        self._counts[self.size : needed] = 1
        self.size = needed
        return rows

    def merge(self, row: int, mean: np.ndarray, count: int) -> None:
        """Add `count` more evaluations with this mean to a point."""
        total = self._counts[row] + count
        self._outputs[row] += (mean - self._outputs[row]) * (count / total)
        self._counts[row] = total

    def _grow(self, capacity: int, outputs: int) -> None:
        points, values, counts = (
            np.empty((capacity, self._points.shape[1])),
            np.empty((capacity, outputs)),
            np.empty(capacity),
        )
        if self.size:
            points[: self.size], values[: self.size] = self.points, self.outputs
            counts[: self.size] = self.counts
        self._points, self._outputs, self._counts = points, values, counts

    @property
    def points(self) -> np.ndarray:
        """(k, n)"""
        return self._points[: self.size]

    @property
    def outputs(self) -> np.ndarray:
        """(k, 1 + r) means"""
        return self._outputs[: self.size]

    @property
    def counts(self) -> np.ndarray:
        """(k,) evaluations behind each mean"""
        return self._counts[: self.size]

    def restore(self, points: np.ndarray, outputs: np.ndarray, counts: np.ndarray) -> None:
        """Take over saved content."""
        self._points, self._outputs, self._counts, self.size = points, outputs, counts, len(points)
