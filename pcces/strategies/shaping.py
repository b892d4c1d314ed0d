"""Fitness shaping: what the recombination sees instead of the raw barrier values (lower is better in, lower is better out)."""

from __future__ import annotations

from collections.abc import Callable

from pcces.arrays import Array, array_namespace


def raw(f: Array) -> Array:
    """The values themselves, as in the paper's Psi_k."""
    return f


def standardised(f: Array) -> Array:
    """Zero mean and unit standard deviation: the step no longer depends on the scale of f.

    >>> import numpy as np
    >>> standardised(np.array([1.0, 3.0]))
    array([-1.,  1.])
    """
    xp = array_namespace(f)
    centred = f - xp.mean(f)
    deviation = xp.sqrt(xp.mean(centred**2))
    return xp.where(deviation > 0, centred / xp.where(deviation > 0, deviation, xp.ones_like(deviation)), centred)


def centred_rank(f: Array) -> Array:
    """Ranks spread evenly over [-1/2, 1/2] (Salimans et al. 2017): insensitive to outliers. Ties share their mean rank.

    >>> import numpy as np
    >>> centred_rank(np.array([10.0, -3.0, 7.0]))
    array([ 0.5, -0.5,  0. ])
    """
    xp = array_namespace(f)
    below = xp.sum(xp.astype(f[None, :] < f[:, None], f.dtype), axis=1)
    equal = xp.sum(xp.astype(f[None, :] == f[:, None], f.dtype), axis=1)
    rank = below + 0.5 * (equal - 1)
    return rank / max(f.shape[0] - 1, 1) - 0.5


SHAPINGS: dict[str, Callable[[Array], Array]] = {"raw": raw, "standardised": standardised, "rank": centred_rank}
