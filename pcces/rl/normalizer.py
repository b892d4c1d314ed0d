"""Observation normalisation from running statistics, frozen in the end so that the objective stays one function."""

from __future__ import annotations

from typing import Any, NamedTuple

from pcces.core.arrays import array_namespace
from pcces.rl.policy import Policy

Array = Any
CLIP = 10.0
CONSTANT = 1e-5  # what varies by less, in units of its mean, is left in its own units: rounding is no signal
MOST_GROWTH = 10.0  # of a deviation, from one look to the next, that weights are carried over by
BLIND = 1e30  # a standard deviation so large that every observation becomes zero


class Normalizer(NamedTuple):
    """What is known of the observations seen, and the shift and scale that policies see."""

    count: Array
    average: Array  # (size,) of all that was seen
    spread: Array  # (size,) summed squares of the differences from it
    mean: Array  # (size,) in use
    std: Array  # (size,) in use


class Seen(NamedTuple):
    """How many observations a population met, and sums over them of their differences from the mean in use.

    Differences, because an observation that is always 9.81 must not seem to vary for the rounding of large sums.
    """

    count: Array
    total: Array  # (size,)
    squares: Array  # (size,)


def identity(like: Array) -> Normalizer:
    """Before anything is seen: nothing is shifted or scaled. `like` gives size and type.

    >>> import numpy as np
    >>> normalise(identity(np.zeros(2)), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    xp = array_namespace(like)
    zero = xp.zeros_like(like)
    return Normalizer(xp.sum(zero), zero, zero, zero, xp.ones_like(like))


def blind(like: Array) -> Normalizer:
    """A normalisation with which a policy sees nothing: what it does then has no units of observations in it.

    >>> import numpy as np
    >>> normalise(blind(np.zeros(2)), np.array([3.0, 4.0])).round()
    array([0., 0.])
    """
    nothing = identity(like)
    return nothing._replace(std=BLIND * nothing.std)


def frozen(mean: Array, std: Array) -> Normalizer:
    """A normalisation as it is kept with a policy, which learns no more."""
    zero = 0 * mean
    return Normalizer(zero.sum(), zero, zero, mean, std)


def counted(normalizer: Normalizer, count: float) -> Normalizer:
    """A normalisation as it would be after so many observations, so that it learns on from there.

    >>> import numpy as np
    >>> n = counted(frozen(np.array([2.0]), np.array([3.0])), 100.0)
    >>> update(n, seen_in(np.array([[5.0]]), np.ones(1), n.mean), np.bool_(False)).mean.round(2)
    array([2.03])
    """
    count = count + 0 * normalizer.count
    return normalizer._replace(count=count, average=normalizer.mean, spread=count * normalizer.std**2)


def normalise(normalizer: Normalizer, observations: Array) -> Array:
    """What the policy sees of observations (size, ...)."""
    xp = array_namespace(observations)
    mean, std = (xp.reshape(part, (-1, *(1,) * (observations.ndim - 1))) for part in (normalizer.mean, normalizer.std))
    return xp.clip((observations - mean) / std, -CLIP, CLIP)


def nothing_seen(normalizer: Normalizer) -> Seen:
    """Where every episode failed."""
    zeros = 0 * normalizer.mean
    return Seen(0 * normalizer.count, zeros, zeros)


def seen_in(observations: Array, counts: Array, mean: Array) -> Seen:
    """What there is to learn from observations (size, ...), of which those count where `counts` (...) is 1.

    >>> import numpy as np
    >>> seen_in(np.array([[1.0, 3.0, 7.0]]), np.array([1.0, 1.0, 0.0]), np.array([1.0])).total
    array([2.])
    """
    xp = array_namespace(observations)
    axes = tuple(range(1, observations.ndim))
    off = (observations - xp.reshape(mean, (-1, *(1,) * len(axes)))) * counts
    return Seen(xp.sum(counts), xp.sum(off, axis=axes), xp.sum(off**2, axis=axes))


def update(normalizer: Normalizer, seen: Seen, frozen: Array) -> Normalizer:
    """Take in more observations; the shift and scale follow unless frozen.

    >>> import numpy as np
    >>> start = identity(np.zeros(1))
    >>> n = update(start, seen_in(np.array([[1.0, 3.0]]), np.ones(2), start.mean), np.bool_(False))
    >>> n.mean, n.std
    (array([2.]), array([1.]))
    """
    xp = array_namespace(seen.total)
    many = xp.clip(seen.count, 1.0, None)
    count = normalizer.count + seen.count
    share = seen.count / xp.clip(count, 1.0, None)
    off = normalizer.mean + seen.total / many - normalizer.average
    average = normalizer.average + off * share
    within = xp.clip(seen.squares - seen.total**2 / many, 0.0, None)
    spread = normalizer.spread + within + off**2 * normalizer.count * share
    variance = spread / xp.clip(count, 1.0, None)
    varies = variance > (CONSTANT * average) ** 2
    std = xp.where(varies, xp.sqrt(xp.where(varies, variance, xp.ones_like(variance))), xp.ones_like(variance))
    still = frozen | (count < 1)
    mean, std = xp.where(still, normalizer.mean, average), xp.where(still, normalizer.std, std)
    learnt = Normalizer(count, average, spread, mean, std)
    return Normalizer(*(xp.astype(new, old.dtype) for new, old in zip(learnt, normalizer)))


def carry_over(policy: Policy, x: Array, old: Normalizer, new: Normalizer) -> Array:
    """Parameters that make with the new normalisation the policy that x makes with the old one (clipping aside). Inputs behind the
    observations stay as they are.

    So a normalisation that still learns changes the coordinates of the search, and never the policy found so far: but where an
    observation suddenly varies far more than ever before, what the policy made of its tiny changes is not blown up.

    >>> import numpy as np
    >>> from pcces.envs.task import Discrete
    >>> from pcces.rl.policy import forward
    >>> policy, o = Policy(2, Discrete(2)), np.array([0.5, -1.0])
    >>> x, old = np.arange(policy.size) / policy.size, identity(np.zeros(2))
    >>> new = old._replace(mean=np.array([1.0, 2.0]), std=np.array([3.0, 0.5]))
    >>> moved = carry_over(policy, x, old, new)
    >>> np.allclose(*(forward(policy.unpack(a)[0], normalise(n, o)) for a, n in ((x, old), (moved, new))))
    True
    """
    xp = array_namespace(x)
    a, b = policy.shapes[0]
    seen = old.mean.shape[0]
    weights = xp.reshape(x[: seen * b], (seen, b))
    shift = ((new.mean - old.mean) / old.std) @ weights
    scaled = weights * xp.clip(new.std / old.std, None, MOST_GROWTH)[:, None]
    return xp.concat([xp.reshape(scaled, (-1,)), x[seen * b : a * b], x[a * b : a * b + b] + shift, x[a * b + b :]])
