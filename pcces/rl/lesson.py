"""What the steps of some episodes teach: sums for the policy gradient, the Fisher information, critic and normalisation."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from pcces.core.arrays import array_namespace
from pcces.rl import surrogate
from pcces.rl.normalizer import Normalizer, Seen, normalise
from pcces.rl.policy import Policy

Array = Any


class Learning(NamedTuple):
    """What is to be learnt, and by what rewards and advantages are measured."""

    kind: str
    """"observations" for the normalisation, "gradient" for critic and policy gradient too, "natural" for the Fisher
    information as well, "measured" for some of the states too"""
    critic: Array
    """weights of the linear critic"""
    prices: Array
    """of the costs"""


class Lesson(NamedTuple):
    """Sums over the steps of some episodes, and some of their states, as columns. What was not asked for is empty."""

    seen: Seen
    gradient: Array
    information: Array
    gram: Array
    moment: Array
    states: Array  # (size, count), normalised


def lesson_of(
    policy: Policy,
    learning: Learning,
    seen: Seen,
    x: Array,
    normalizer: Normalizer,
    observations: Array,
    actions: Array,
    rewards: Array,
    costs: Array,
    alive: Array | None,
    discount: float,
    horizon: int,
) -> Lesson:
    """The lesson of one episode (NumPy, in a worker) or of many side by side (on the device).

    Raw observations are (size, T) or (size, T, B), actions (T,), (dims, T) or with B, rewards (T,) or (T, B), costs (r, T) or
    (r, T, B); x is (n,) or (n, B). `alive` (T, B) is 1 on the steps that count.

    Many parameters: everything a step consists of.
    """
    xp = array_namespace(observations)
    normalised = normalise(normalizer, observations)
    phi = surrogate.features(normalised, horizon)
    phi = phi if alive is None else phi * alive
    phi = xp.reshape(phi, (phi.shape[0], -1))
    to_go = surrogate.returns_to_go(surrogate.priced(rewards, costs, learning.prices), discount)
    advantages = to_go - xp.reshape(learning.critic @ phi, to_go.shape)
    slopes = surrogate.slopes(policy, x, normalised, actions)
    gradient = surrogate.policy_gradient(slopes, advantages if alive is None else advantages * alive)
    empty = xp.zeros((0,), dtype=gradient.dtype)
    information = surrogate.fisher(slopes, alive) if learning.kind in ("natural", "measured") else empty
    states = xp.zeros((observations.shape[0], 0), dtype=gradient.dtype)
    if learning.kind == "measured":
        lengths = np.asarray(observations.shape[1]) if alive is None else xp.sum(alive, axis=0)
        states = surrogate.states_of(normalised, lengths)
    return Lesson(seen, gradient, information, phi @ phi.T, phi @ xp.reshape(to_go, (-1,)), states)


def observations_only(seen: Seen) -> Lesson:
    """The lesson where only the normalisation learns."""
    xp = array_namespace(seen.total)
    empty = xp.zeros((0,), dtype=seen.total.dtype)
    return Lesson(seen, empty, empty, empty, empty, empty[None])


def joined(lessons: Iterable[Lesson | None]) -> Lesson | None:
    """The lesson of all episodes together (NumPy); None, if none of them had one."""
    there = [lesson for lesson in lessons if lesson is not None]
    if not there:
        return None
    seen, *sums, states = zip(*there)
    total = [functools.reduce(operator.add, parts) for parts in sums]
    together = Seen(*(functools.reduce(operator.add, parts) for parts in zip(*seen)))
    return Lesson._make([together, *total, np.concatenate(states, axis=1)])
