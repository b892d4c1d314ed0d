"""What the steps of some episodes teach: sums for policy gradient, critic and normalisation."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

from pcces.core.arrays import array_namespace
from pcces.rl import surrogate
from pcces.rl.normalizer import Normalizer, Seen, normalise
from pcces.rl.policy import Policy

Array = Any


class Learning(NamedTuple):
    """What to learn in addition to the normalisation, and the critic that gives the advantages."""

    gradient: bool
    """whether critic and policy gradient are to learn, too"""
    critic: Array
    """weights of the linear critic"""


class Lesson(NamedTuple):
    """Sums over the steps of some episodes. What was not asked for is empty."""

    seen: Seen
    gradient: Array
    gram: Array
    moment: Array


def lesson_of(
    policy: Policy,
    learning: Learning,
    seen: Seen,
    x: Array,
    normalizer: Normalizer,
    observations: Array,
    actions: Array,
    rewards: Array,
    alive: Array | None,
    discount: float,
    horizon: int,
) -> Lesson:
    """The lesson of one episode (NumPy, in a worker) or of many side by side (on the device).

    Raw observations are (size, T) or (size, T, B), actions (T,), (dims, T) or with B, rewards (T,) or (T, B); x is (n,) or
    (n, B). `alive` (T, B) is 1 on the steps that count.

    Many parameters: everything a step consists of.
    """
    xp = array_namespace(observations)
    normalised = normalise(normalizer, observations)
    phi = surrogate.features(normalised, horizon)
    phi = phi if alive is None else phi * alive
    phi = xp.reshape(phi, (phi.shape[0], -1))
    to_go = surrogate.returns_to_go(rewards, discount)
    advantages = to_go - xp.reshape(learning.critic @ phi, to_go.shape)
    advantages = advantages if alive is None else advantages * alive
    gradient = surrogate.policy_gradient(policy, x, normalised, actions, advantages)
    return Lesson(seen, gradient, phi @ phi.T, phi @ xp.reshape(to_go, (-1,)))


def observations_only(seen: Seen) -> Lesson:
    """The lesson where only the normalisation learns."""
    xp = array_namespace(seen.total)
    empty = xp.zeros((0,), dtype=seen.total.dtype)
    return Lesson(seen, empty, empty, empty)


def joined(lessons: Iterable[Lesson | None]) -> Lesson | None:
    """The lesson of all episodes together (NumPy); None, if none of them had one."""
    there = [lesson for lesson in lessons if lesson is not None]
    if not there:
        return None
    seen, *sums = zip(*there)
    together = Seen(*(functools.reduce(operator.add, parts) for parts in zip(*seen)))
    return Lesson(together, *(functools.reduce(operator.add, parts) for parts in sums))
