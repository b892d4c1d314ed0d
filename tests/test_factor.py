"""Small matrices, on a CPU and as the GPU's kernel computes them (by the interpreter, which needs no GPU)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu import lowered

from pcces.core import arrays, linalg
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


@pytest.mark.parametrize("way", WAYS)
def test_small_numbers_are_numbers_like_others(way):
    rng = np.random.default_rng(4)
    root = (1e-3 * rng.normal(size=(5, 5))).astype(np.float32)
    a = root @ root.T + 1e-6 * np.eye(5, dtype=np.float32)
    factor, rank = WAYS[way](a)
    assert int(rank) == 5 and rank.dtype == np.float32
    np.testing.assert_allclose(np.asarray(factor) @ a @ np.asarray(factor).T, np.eye(5), atol=2e-3)


@pytest.mark.parametrize(
    ("kind", "tolerance", "dropped", "kept"),
    [
        (np.float64, 1e-4, 0.9e-8, 1.1e-8),  # the square of the tolerance
        (np.float64, 0.5, 0.24, 0.26),
        (np.float32, 1e-4, 1.8e-6, 2.0e-6),  # 16 units in the last place of float32, which are more
    ],
)
def test_directions_of_too_little_energy_are_dropped(kind, tolerance, dropped, kept):
    for energy, rank in ((dropped, 1), (kept, 2)):
        assert int(inverse_factor(np.diag([3.0, 3.0 * energy]).astype(kind), tolerance)[1]) == rank
    assert int(inverse_factor(np.diag([3.0, 3.3e-8]))[1]) == 2 and int(inverse_factor(np.diag([3.0, 2.7e-8]))[1]) == 1


def test_the_kernel_drops_rows_that_nearly_depend_on_those_before():
    for left, rank in ((0.5e-5, 1), (2e-5, 2)):  # what is left of the second row, beside `least`
        product = np.sqrt(1 - left)
        a = jnp.asarray([[4.0, 2 * product], [2 * product, 1.0]], jnp.float32)
        assert int(eliminated(a, 1e-5, interpret=True)[1]) == rank


@pytest.fixture
def on_a_gpu(monkeypatch):
    """As if there were one: the kernel is run by the interpreter, and its calls are counted."""
    sizes = []

    def counted(a, *args):
        sizes.append(a.shape[0])
        return eliminated(a, *args, interpret=True)

    monkeypatch.setattr(linalg, "gpu_kernels", lambda: True)
    monkeypatch.setattr(linalg, "eliminated", counted)
    return sizes


def test_a_gpu_factors_in_the_kernel_and_numpy_never_does(on_a_gpu):
    weak = jnp.asarray([[1.0, 0.0], [0.0, 1.0]]) - 0.9999 * jnp.asarray([[0.0, 1.0], [1.0, 0.0]])
    assert int(inverse_factor(weak, 0.1)[1]) == 1 and int(inverse_factor(weak, 0.001)[1]) == 2  # its own tolerance
    assert on_a_gpu == [2, 2]
    inverse_factor(np.eye(6))  # NumPy's arrays are not on it
    assert on_a_gpu == [2, 2]


def test_whether_there_are_kernels(monkeypatch):
    a = jax.ShapeDtypeStruct((6, 6), jnp.float32)
    assert not arrays.gpu_kernels()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert arrays.gpu_kernels() and lowered(lambda a: inverse_factor(a), a).count("triton") == 1
    asked = []
    monkeypatch.setattr(arrays, "find_spec", lambda name: asked.append(name))
    assert not arrays.gpu_kernels() and asked == ["jax.experimental.pallas.triton"]
    assert "triton" not in lowered(lambda a: inverse_factor(a), a)
