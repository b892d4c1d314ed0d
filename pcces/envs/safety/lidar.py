"""The pseudo-lidar: how near the nearest object of a kind is, direction by direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BINS = 16
REACH = 3.0


def lidar(
    offsets: NDArray[np.float64],
    kinds: NDArray[np.intp],
    count: int,
    *,
    bins: int = BINS,
    reach: float = REACH,
) -> NDArray[np.float64]:
    """Return the readings (k, count * bins) of k agents for objects at ``offsets`` (k, n, 2) from them.

    Offsets are in the agent's own frame; ``kinds`` (n,) says to which of the ``count`` lidars each object belongs. A bin
    holds ``max(0, 1 - distance / reach)`` of the nearest object in it. So that readings move smoothly as an object moves
    from bin to bin, the object also shows in the two neighbours, in proportion to how far across its bin it is.

    >>> ahead = lidar(np.array([[[1.5, 0.0]]]), np.array([0]), 1)  # on the border of the last bin and the first
    >>> [(int(i), float(ahead[0, i])) for i in ahead[0].nonzero()[0]]
    [(0, 0.5), (15, 0.5)]
    """
    x, y = offsets[..., 0], offsets[..., 1]
    strength = np.maximum(0.0, reach - np.hypot(x, y)) / reach
    turn = np.arctan2(y, x) * (bins / (2 * np.pi)) + bins  # in bins, and never negative
    whole = turn.astype(np.intp)
    fraction = turn - whole
    readings = np.zeros((len(offsets), count * bins))
    start = kinds * bins + (np.arange(len(offsets)) * (count * bins))[:, None]
    flat = readings.reshape(-1)
    np.maximum.at(flat, start + whole % bins, strength)
    np.maximum.at(flat, start + (whole + 1) % bins, fraction * strength)
    np.maximum.at(flat, start + (whole - 1) % bins, (1 - fraction) * strength)
    return readings
