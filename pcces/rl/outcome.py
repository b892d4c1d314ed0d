"""What episodes come to, wherever they were played; the last axis of every array is episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

from pcces.core.arrays import array_namespace

Array = Any


class Outcome(NamedTuple):
    """What an episode came to; the last axis is episodes."""

    returns: Array  # sum of rewards
    discounted: Array  # sum of discounted rewards
    costs: Array  # (r, B) sums
    entropy: Array  # summed over the episode
    length: Array  # steps taken


class Spent(NamedTuple):
    """What was played in all."""

    steps: Array
    costs: Array  # (r,)

    @classmethod
    def on(cls, *outcomes: Outcome) -> Spent:
        """All of these episodes, as far as they did not fail.

        >>> import numpy as np
        >>> gone, cost = np.array([3.0, np.nan]), np.array([[5.0, np.nan]])
        >>> spent = Spent.on(Outcome(gone, gone, cost, gone, gone), Outcome(gone, gone, cost, gone, gone))
        >>> print(spent.steps, spent.costs)
        6.0 [10.]
        """
        xp = array_namespace(outcomes[0].length)

        def total(values: Array) -> Array:
            return xp.sum(xp.where(xp.isnan(values), 0.0, values), axis=-1)

        steps, costs = zip(*((total(outcome.length), total(outcome.costs)) for outcome in outcomes))
        return cls(sum(steps[1:], steps[0]), sum(costs[1:], costs[0]))

    def plus(self, other: Spent) -> Spent:
        """The sum with what was played elsewhere."""
        return Spent(self.steps + other.steps, self.costs + other.costs)


class Trajectory(NamedTuple):
    """Every step, time first and episodes last. Steps after an episode's end are not `alive` and hold zeros."""

    observations: Array  # (T, size, B), raw
    actions: Array  # (T, B) integers, or (T, dims, B)
    rewards: Array  # (T, B)
    costs: Array  # (T, r, B)
    alive: Array  # (T, B)
