"""Observation normalisation from running statistics, frozen in the end so that the objective stays one function."""

from __future__ import annotations

from typing import Any, NamedTuple

from pcces.arrays import array_namespace
from pcces.rl.policy import Policy

Array = Any
CLIP = 10.0
CONSTANT = 1e-3  # what varies by less is left in its own units: noise must not be blown up into a signal


class Normalizer(NamedTuple):
    """Sums over the observations seen, and the shift and scale that policies see."""

    count: Array
    total: Array  # (size,)
    squares: Array  # (size,)
    mean: Array  # (size,) in use
    std: Array  # (size,) in use


def identity(like: Array) -> Normalizer:
    """Before anything is seen: nothing is shifted or scaled. `like` gives size and type.

    >>> import numpy as np
    >>> normalise(identity(np.zeros(2)), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    xp = array_namespace(like)
    zero = xp.zeros_like(like)
    return Normalizer(xp.sum(zero), zero, zero, zero, xp.ones_like(like))


def normalise(normalizer: Normalizer, observations: Array) -> Array:
    """What the policy sees of observations (size, ...)."""
    xp = array_namespace(observations)
    mean, std = (xp.reshape(part, (-1, *(1,) * (observations.ndim - 1))) for part in (normalizer.mean, normalizer.std))
    return xp.clip((observations - mean) / std, -CLIP, CLIP)


def update(normalizer: Normalizer, count: Array, total: Array, squares: Array, frozen: Array) -> Normalizer:
    """Take in more observations (how many, their sums and sums of squares); the shift and scale follow unless frozen.

    >>> import numpy as np
    >>> seen = np.array([[1.0, 3.0]])
    >>> n = update(identity(np.zeros(1)), np.float64(2), seen.sum(1), (seen**2).sum(1), np.bool_(False))
    >>> n.mean, n.std
    (array([2.]), array([1.]))
    """
    xp = array_namespace(total)
    count, total, squares = normalizer.count + count, normalizer.total + total, normalizer.squares + squares
    mean = total / xp.clip(count, 1.0, None)
    variance = squares / xp.clip(count, 1.0, None) - mean**2
    varies = variance > CONSTANT**2
    std = xp.where(varies, xp.sqrt(xp.where(varies, variance, xp.ones_like(variance))), xp.ones_like(variance))
    still = frozen | (count < 1)
    return Normalizer(
        count,
        total,
        squares,
        xp.where(still, normalizer.mean, mean),
        xp.where(still, normalizer.std, std),
    )


def carry_over(policy: Policy, x: Array, old: Normalizer, new: Normalizer) -> Array:
    """Parameters that make with the new normalisation the policy that x makes with the old one (clipping aside).

    So a normalisation that still learns changes the coordinates of the search, and never the policy found so far.

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
    weights = xp.reshape(x[: a * b], (a, b))
    shift = ((new.mean - old.mean) / old.std) @ weights
    scaled = weights * (new.std / old.std)[:, None]
    return xp.concat([xp.reshape(scaled, (-1,)), x[a * b : a * b + b] + shift, x[a * b + b :]])
