"""Small matrices, on a CPU and as the GPU's kernel computes them (by the interpreter, which needs no GPU)."""

import jax.numpy as jnp
import numpy as np
import pytest

from pcces.core.linalg import eliminated, inverse_factor

WAYS = {
    "numpy": inverse_factor,
    "jax": lambda a: inverse_factor(jnp.asarray(a)),
    "kernel": lambda a: eliminated(jnp.asarray(a), 1e-5, interpret=True),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rank", [1, 3, 7])
def test_a_factor_makes_an_orthonormal_basis_of_the_rows(way, rank):
    rng = np.random.default_rng(rank)
    rows = (rng.normal(size=(7, rank)) @ rng.normal(size=(rank, 12))).astype(np.float32)
    rows[4] = 0  # a place in the archive that is still empty
    rank = min(rank, 6)
    factor, dimension = WAYS[way](rows @ rows.T)
    basis = np.asarray(factor) @ rows
    assert int(dimension) == rank
    sizes = np.sort(np.diag(basis @ basis.T))
    np.testing.assert_allclose(sizes, [0] * (7 - rank) + [1] * rank, atol=2e-3)
    np.testing.assert_allclose(rows @ basis.T @ basis, rows, atol=5e-3)


@pytest.mark.parametrize("way", WAYS)
def test_a_factor_solves_positive_systems(way):
    rng = np.random.default_rng(2)
    root = rng.normal(size=(6, 6)).astype(np.float32)
    a, b = root @ root.T + np.eye(6, dtype=np.float32), rng.normal(size=6)
    factor = np.asarray(WAYS[way](a)[0])
    np.testing.assert_allclose(factor.T @ (factor @ b), np.linalg.solve(a, b), rtol=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_nothing_has_rank_nought(way):
    factor, rank = WAYS[way](np.zeros((3, 3), np.float32))
    assert int(rank) == 0
    assert not np.any(np.asarray(factor))
