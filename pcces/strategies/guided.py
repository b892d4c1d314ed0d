"""Guided ES (Maheswaranathan et al. 2018; the paper's appendix B): sample mostly where surrogate gradients point.

C_k = alpha / n I + (1 - alpha) / r U_k U_k^T, with U_k an orthonormal basis of the last m surrogates and r its rank.
U_k is never formed by a QR of a half-empty archive (which would turn the empty columns into coordinate axes) and no
n x n matrix appears: the m x m Gram matrix S^T S gives T with T S^T S T^T = I, hence U = S T^T, and what has no energy
drops out.
"""

from __future__ import annotations

from typing import NamedTuple

from pcces.core.arrays import Array, array_namespace
from pcces.core.linalg import inverse_factor
from pcces.strategies.base import Strategy, descent_weights


class GuidedState(NamedTuple):
    """The archive S_k of surrogate gradients, newest first, and the basis U_k it spans."""

    archive: Array  # (m, n) unit rows; rows of zeros are still empty
    basis: Array  # (m, n) orthonormal rows; rows of zeros beyond the rank
    rank: Array


def orthonormal_rows(archive: Array, tolerance: float = 1e-4) -> tuple[Array, Array]:
    """An orthonormal basis of the rows of `archive` (m, n), as rows, and its rank; what is missing stays zero.

    Directions whose share of the energy is below `tolerance` squared are taken for rounding errors.

    >>> import numpy as np
    >>> basis, rank = orthonormal_rows(np.array([[3.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    >>> int(rank), np.round(np.abs(basis).sum(), 6)
    (1, np.float64(1.0))
    """
    mix, rank = inverse_factor(archive @ archive.T, tolerance)
    return mix @ archive, rank


def remember(archive: Array, gradient: Array) -> Array:
    """Put a surrogate in front, drop the oldest. Only its direction matters, so it is stored with unit length."""
    xp = array_namespace(archive)
    length = xp.linalg.vector_norm(gradient)
    usable = xp.isfinite(length) & (length > 0)
    unit = xp.where(usable, gradient / xp.where(usable, length, 1.0), 0.0)
    shifted = xp.concat([xp.astype(unit, archive.dtype)[None, :], archive[:-1]])
    return xp.where(usable, shifted, archive)


def subspace_directions(z: Array, basis: Array, rank: Array, alpha: Array) -> Array:
    """Eq. 10: sqrt(alpha / n) d + sqrt((1 - alpha) / r) U d', isotropic while the subspace is empty."""
    xp = array_namespace(z)
    m, n = basis.shape
    alpha = xp.where(rank > 0, alpha, 1.0)
    inside = xp.sqrt((1 - alpha) / xp.where(rank > 0, rank, 1.0))
    # The few normals of U d' are scaled, not the many numbers they become.
    return xp.astype(xp.sqrt(alpha / n), z.dtype) * z[:, :n] + (xp.astype(inside, z.dtype) * z[:, n : n + m]) @ basis


def guided(m: int = 20, alpha: float = 0.5, beta: float = 5.0) -> Strategy:
    """Guided ES with the paper's settings (Table 4). Directions have total norm ~ 1, not 1 per coordinate.

    `update` takes the surrogate gradient of the caller, or the update direction d_k itself.

    >>> import numpy as np
    >>> s = guided(m=2, alpha=0.0)
    >>> state = s.update(s.init(np.zeros(3)), None, None, None, np.array([0.0, 2.0, 0.0]))
    >>> np.abs(s.directions(state, np.ones((1, 5))))
    array([[0., 1., 0.]])
    """
    if m < 1 or not 0 <= alpha <= 1:
        raise ValueError(f"guided needs m >= 1 and 0 <= alpha <= 1, got m={m}, alpha={alpha}")

    def init(x0: Array) -> GuidedState:
        xp = array_namespace(x0)
        empty = xp.zeros((m, x0.shape[0]), dtype=x0.dtype)
        return GuidedState(empty, empty, xp.asarray(0.0, dtype=x0.dtype))

    def directions(state: GuidedState, z: Array) -> Array:
        xp = array_namespace(z)
        return subspace_directions(z, state.basis, state.rank, xp.asarray(alpha, dtype=z.dtype))

    def update(state: GuidedState, directions: Array, weights: Array, step: Array, surrogate: Array) -> GuidedState:
        archive = remember(state.archive, surrogate)
        return GuidedState(archive, *orthonormal_rows(archive))

    return Strategy(
        "guided", init, lambda n: n + m, directions, lambda fitness: descent_weights(fitness, beta), update, lazy=True
    )
