"""The points of an `Optimizer` one at a time, each with a name of its own, and their outcomes one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pcces.blackbox.optimizer import Optimizer

Key = tuple[int, int]  # number of a batch, and row in it


class Hands:
    """Hands out what an optimizer asks for, row by row."""

    def __init__(self, optimizer: Optimizer):
        self.optimizer = optimizer
        self.points: dict[Key, dict[str, Any]] = {}  # all that were handed out
        self.phases: dict[Key, str] = {}  # and what they were for
        self.told: set[Key] = set()
        self._outcomes: dict[int, tuple[float, Any]] = {}  # of the batch at hand, by row
        self._next = 0  # row of it

    def ask(self) -> Key | None:
        """The next point, if one can be handed out before others have come back."""
        if self.optimizer.stop():
            return None
        batch = self.optimizer.ask()
        if self._next >= len(batch):
            return None
        key = batch.number, self._next
        self._next += 1
        self.points[key], self.phases[key] = dict(batch.points[key[1]]), batch.phase
        return key

    def tell(self, key: Key, f: float | None, c: Any) -> None:
        """The outcome of a point that was handed out; f is None where it failed."""
        self.told.add(key)
        self._outcomes[key[1]] = np.nan if f is None else f, None if f is None else c
        batch = self.optimizer.ask()
        if len(self._outcomes) < len(batch):
            return
        rows = [self._outcomes[row] for row in range(len(batch))]
        self._outcomes, self._next = {}, 0
        self.optimizer.tell(batch, [f for f, _ in rows], together([c for _, c in rows]))

    @property
    def out(self) -> list[Key]:
        """What was handed out and has not come back, the oldest first."""
        return [key for key in self.points if key not in self.told]


def together(constraints: list[Any]) -> Any:
    """The constraints of several points as `Optimizer.tell` takes them: None of a point that failed.

    >>> together([{"heat": 1.0}, None])["heat"], together([None, [1.0, 2.0]]), together([None])
    (array([ 1., nan]), array([[nan, nan],
           [ 1.,  2.]]), None)
    """
    known = next((c for c in constraints if c is not None), None)
    if known is None:
        return None
    missing = [np.nan] * len(known)
    if isinstance(known, Mapping):
        rows = np.array([missing if c is None else [c[name] for name in known] for c in constraints])
        return {name: rows[:, j] for j, name in enumerate(known)}
    return np.array([missing if c is None else c for c in constraints]).reshape(len(constraints), len(known))
