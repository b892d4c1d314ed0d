"""The pseudo-lidar: how near the nearest object of a kind is, direction by direction."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BINS = 16
REACH = 3.0
_MIDDLES = (np.arange(BINS) + 0.5 + BINS / 2) % BINS - BINS / 2  # of the bins, between -8 and 8


def lidar(
    offsets: NDArray[np.float64], starts: Sequence[int] | NDArray[np.intp], out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the readings (k, kinds, 16) of k agents for objects at ``offsets`` (k, n, 2) from them.

    Offsets are in the agent's own frame, one kind after the other; ``starts`` says where each kind begins. A bin holds
    ``max(0, 1 - distance / 3)`` of the nearest object in it. So that readings move smoothly as an object moves from bin
    to bin, the object also shows in the two neighbours, in proportion to how far across its bin it is.

    >>> ahead = lidar(np.array([[[1.5, 0.0]]]), [0])  # on the border of the last bin and the first
    >>> [(int(i), float(ahead[0, 0, i])) for i in ahead[0, 0].nonzero()[0]]
    [(0, 0.5), (15, 0.5)]
    """
    x, y = offsets[..., 0], offsets[..., 1]
    strength = np.hypot(x, y)
    strength *= -1 / REACH
    strength += 1
    np.maximum(strength, 0.0, out=strength)
    turn = np.arctan2(y, x)
    turn *= BINS / (2 * math.pi)
    # Its own bin shows an object in full, the neighbours by how near it is to them: a trapezoid in the distance d
    # around the circle from the bin's middle, 1.5 - d cut off at 0 and 1. On the circle d = 8 - | |difference| - 8 |.
    share = turn[..., None] - _MIDDLES
    np.abs(share, out=share)
    share -= BINS / 2
    np.abs(share, out=share)
    share -= BINS / 2 - 1.5
    np.minimum(share, 1.0, out=share)
    share *= strength[..., None]
    return np.maximum(np.maximum.reduceat(share, starts, axis=1), 0.0, out=out)
