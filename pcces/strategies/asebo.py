"""ASEBO's active subspace (Choromanski et al. 2019): sample where past gradient estimates had their energy.

A decayed archive of past ES gradients gives, by PCA, the directions that hold 99.5 % of their variance; sampling mixes
that subspace with the whole space, and the mix alpha follows the share of gradient energy found outside it. As in
guided ES everything happens in the m x m Gram matrix.
"""

from __future__ import annotations

from typing import NamedTuple

from pcces.core.arrays import Array, array_namespace
from pcces.strategies.base import Strategy, descent_weights
from pcces.strategies.guided import subspace_directions


class ActiveSubspace(NamedTuple):
    """Past surrogates, the active subspace, and how far it is trusted."""

    archive: Array  # (m, n) past ES gradients, newest first, decayed
    basis: Array  # (m, n) orthonormal rows of the active subspace; zero beyond its rank
    rank: Array
    alpha: Array  # share of the sampling outside the subspace
    count: Array  # gradients seen


def active_subspace(archive: Array, threshold: float, least: int) -> tuple[Array, Array]:
    """Principal components of the rows that reach `threshold` of their energy, at least `least` of them.

    >>> import numpy as np
    >>> basis, rank = active_subspace(np.array([[9.0, 0.0], [0.0, 0.1]]), threshold=0.99, least=1)
    >>> int(rank), np.abs(basis).round(6)[0]
    (1, array([1., 0.]))
    """
    xp = array_namespace(archive)
    energy, vectors = xp.linalg.eigh(archive @ archive.T)
    energy, vectors = xp.flip(energy), xp.flip(vectors, axis=1)  # largest first
    energy = xp.clip(energy, 0.0, None)
    total = xp.sum(energy)
    before = xp.cumulative_sum(energy) - energy
    index = xp.arange(energy.shape[0])
    wanted = (before < threshold * total) | (index < least)
    keep = wanted & (energy > 1e-8 * energy[0])
    scale = xp.where(keep, 1 / xp.sqrt(xp.where(keep, energy, 1.0)), 0.0)
    return (vectors * scale).T @ archive, xp.sum(xp.astype(keep, archive.dtype))


def asebo(
    m: int = 70,
    beta: float = 1.0,
    threshold: float = 0.995,
    least: int = 10,
    decay: float = 0.99,
    alpha_range: tuple[float, float] = (0.1, 0.9),
) -> Strategy:
    """ASEBO's adaptive sampling as a strategy of Algorithm 1 (the number of samples stays lambda).

    >>> import numpy as np
    >>> s = asebo(m=4, least=1)
    >>> state = s.init(np.zeros(3))
    >>> float(state.alpha)  # isotropic until the archive is full
    1.0
    """

    def init(x0: Array) -> ActiveSubspace:
        xp = array_namespace(x0)
        empty = xp.zeros((m, x0.shape[0]), dtype=x0.dtype)
        zero = xp.asarray(0.0, dtype=x0.dtype)
        return ActiveSubspace(empty, empty, zero, xp.ones_like(zero), xp.asarray(0))

    def directions(state: ActiveSubspace, z: Array) -> Array:
        return subspace_directions(z, state.basis, state.rank, state.alpha)

    def update(
        state: ActiveSubspace, directions: Array, weights: Array, step: Array, surrogate: Array
    ) -> ActiveSubspace:
        xp = array_namespace(surrogate)
        inside = xp.sum((state.basis @ surrogate) ** 2)
        total = xp.sum(surrogate**2)
        outside = xp.where(total > 0, 1 - inside / xp.where(total > 0, total, 1.0), 1.0)
        archive = xp.concat([surrogate[None, :], decay * state.archive[:-1]])
        count = state.count + 1
        warm = count >= m
        basis, rank = active_subspace(archive, threshold, least)
        low, high = alpha_range
        return ActiveSubspace(
            archive,
            xp.where(warm, basis, 0.0),
            xp.where(warm, rank, 0.0),
            xp.astype(xp.where(warm, xp.clip(outside, low, high), 1.0), surrogate.dtype),
            count,
        )

    return Strategy(
        "asebo", init, lambda n: n + m, directions, lambda fitness: descent_weights(fitness, beta), update, lazy=True
    )
