"""Fitness shaping: what the recombination sees instead of the raw barrier values (lower is better in, lower is better out)."""

from __future__ import annotations

from collections.abc import Callable

from pcces.core.arrays import Array, array_namespace

ALL_PAIRS = 500  # fitness values up to which comparing each with each is faster than sorting


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
    return xp.where(deviation > 0, centred / xp.where(deviation > 0, deviation, 1.0), centred)


def pair_spread(f: Array) -> Array:
    """Half the usual difference within mirrored pairs (f^1 .. f^h, f^-1 .. f^-h), of those where none failed; zero if
    there are none. Noise that a pair shares does not count.

    >>> import numpy as np
    >>> pair_spread(np.array([101.0, 12.0, np.inf, 99.0, 10.0, 3.0]))
    np.float64(1.0)
    """
    xp = array_namespace(f)
    half = f.shape[0] // 2
    finite = xp.isfinite(f)
    usable = finite[:half] & finite[half:]
    f = xp.where(xp.concat([usable, usable]), f, 0.0)
    count = xp.sum(xp.astype(usable, f.dtype))
    return xp.sqrt(xp.sum((f[:half] - f[half:]) ** 2) / xp.where(count > 0, count, 1.0)) / 2


def centred_rank(f: Array) -> Array:
    """Ranks spread evenly over [-1/2, 1/2] (Salimans et al. 2017): insensitive to outliers. Ties share their mean rank.

    >>> import numpy as np
    >>> centred_rank(np.array([10.0, -3.0, 7.0]))
    array([ 0.5, -0.5,  0. ])
    """
    xp = array_namespace(f)
    if f.shape[0] > ALL_PAIRS:
        ordered = xp.sort(f)
        below, through = (xp.astype(xp.searchsorted(ordered, f, side=side), f.dtype) for side in ("left", "right"))
        rank = 0.5 * (below + through - 1)
    else:
        below = xp.sum(xp.astype(f[None, :] < f[:, None], f.dtype), axis=1)
        equal = xp.sum(xp.astype(f[None, :] == f[:, None], f.dtype), axis=1)
        rank = below + 0.5 * (equal - 1)
    return rank / max(f.shape[0] - 1, 1) - 0.5


SHAPINGS: dict[str, Callable[[Array], Array]] = {"raw": raw, "standardised": standardised, "rank": centred_rank}
