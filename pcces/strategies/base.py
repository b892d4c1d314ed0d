"""What a strategy is: a search distribution D_k (Step 1), its recombination Psi_k (Step 3) and its update (Step 5).

A strategy is a bundle of pure functions over a state of its own, so it can be jitted, vmapped and saved. Sampling is
mirrored throughout: from `half` rows of standard normals come `half` directions d^i, and the population is
(d^1 .. d^half, -d^1 .. -d^half). Directions are never scaled by sigma^ES here; the algorithm does that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pcces.core.arrays import Array, array_namespace


class Strategy(NamedTuple):
    """One search distribution with its recombination, which is linear in the directions: d_k = weights @ directions."""

    name: str
    init: Callable[[Array], Any]
    """x0 -> state"""
    normals: Callable[[int], int]
    """n -> how many standard normals a direction is made of"""
    directions: Callable[[Any, Array], Array]
    """state, z (rows, normals(n)) -> the first half of the directions (rows, n)"""
    weights: Callable[[Array], Array]
    """fitness of all directions (lower is better, +inf: failed) -> their weights in Psi_k"""
    update: Callable[[Any, Array, Array, Array, Array], Any]
    """Step 5: state, directions (may be None where a strategy needs only d_k), weights, the step that was taken in units
    of sigma (zero after a failure), a surrogate gradient or d_k itself -> state"""
    lazy: bool = False
    """whether a population need not be held: directions are linear in z, and update asks for d_k only"""


def descent_weights(fitness: Array, beta: float) -> Array:
    """Psi_k of guided ES: d_k = -beta / lambda sum_i (f^i - f^{i + lambda'}) d^i (Eq. 12 without sigma_k).

    A pair with a failed member says nothing about the slope and gets no weight.

    >>> import numpy as np
    >>> from pcces.core.algorithm import mirrored
    >>> d = mirrored(np.eye(2))
    >>> descent_weights(d @ np.array([3.0, 0.0]), beta=2.0) @ d
    array([-3.,  0.])
    """
    xp = array_namespace(fitness)
    half = fitness.shape[0] // 2
    finite = xp.isfinite(fitness)
    usable = finite[:half] & finite[half:]
    both = xp.concat([usable, usable])
    return xp.where(both, -beta / (2 * half) * fitness, 0.0)
