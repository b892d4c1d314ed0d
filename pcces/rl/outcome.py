"""What episodes come to, wherever they were played; the last axis of every array is episodes."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any


class Outcome(NamedTuple):
    """What an episode came to; the last axis is episodes."""

    returns: Array  # sum of rewards
    discounted: Array  # sum of discounted rewards
    costs: Array  # (r, B) sums
    entropy: Array  # summed over the episode
    length: Array  # steps taken


class Trajectory(NamedTuple):
    """Every step, time first and episodes last. Steps after an episode's end are not `alive` and hold zeros."""

    observations: Array  # (T, size, B), raw
    actions: Array  # (T, B) integers, or (T, dims, B)
    rewards: Array  # (T, B)
    costs: Array  # (T, r, B)
    alive: Array  # (T, B)
