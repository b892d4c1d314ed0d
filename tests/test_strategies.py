"""Search distributions: what they sample, how they recombine, what they learn."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pcces import strategies
from pcces.core.algorithm import mirrored
from pcces.strategies.asebo import active_subspace, asebo
from pcces.strategies.base import descent_weights
from pcces.strategies.cma import cma, default_population, simplex_weights
from pcces.strategies.gaussian import gaussian
from pcces.strategies.guided import guided, orthonormal_rows
from pcces.strategies.shaping import centred_rank, pair_spread, raw, standardised


@pytest.fixture
def rng():
    return np.random.default_rng(2024)


def fed(strategy, n, surrogates):
    state = strategy.init(np.zeros(n))
    for g in surrogates:
        state = strategy.update(state, None, None, np.zeros(n), g)
    return state


def sample_covariance(strategy, state, n, rows=200_000, seed=0):
    z = np.random.default_rng(seed).standard_normal((rows, strategy.normals(n)))
    d = strategy.directions(state, z)
    return d.T @ d / rows


# -- guided ES ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_guided_samples_have_the_covariance_of_appendix_b(alpha, rng):
    n, m = 6, 3
    strategy = guided(m=m, alpha=alpha)
    surrogates = rng.standard_normal((5, n))  # more than m: the oldest two are forgotten
    state = fed(strategy, n, surrogates)
    Q, _ = np.linalg.qr(surrogates[-m:].T)
    expected = alpha / n * np.eye(n) + (1 - alpha) / m * Q @ Q.T
    assert np.abs(sample_covariance(strategy, state, n) - expected).max() < 5e-3


def test_a_half_empty_archive_gives_no_coordinate_axes(rng):
    n, m = 5, 4
    strategy = guided(m=m, alpha=0.0)
    g = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    state = fed(strategy, n, [g])
    assert int(state.rank) == 1
    expected = np.outer(g, g) / 2  # all energy along the only surrogate, and divided by the rank, not by m
    assert np.abs(sample_covariance(strategy, state, n) - expected).max() < 1e-2
    d = strategy.directions(state, rng.standard_normal((50, n + m)))
    assert np.abs(d[:, 2:]).max() == 0.0
    assert np.allclose(d[:, 0], d[:, 1])


def test_an_empty_archive_samples_isotropically():
    strategy = guided(m=3, alpha=0.2)
    covariance = sample_covariance(strategy, strategy.init(np.zeros(4)), 4)
    assert np.abs(covariance - np.eye(4) / 4).max() < 5e-3


def test_duplicates_do_not_raise_the_rank():
    strategy = guided(m=4, alpha=0.0)
    g, other = np.array([1.0, 2.0, 0.0, -1.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    for surrogates, rank in (([g], 1), ([g, 3 * g], 1), ([g, -g, g, g], 1), ([g, g, other], 2)):
        assert int(fed(strategy, 5, surrogates).rank) == rank
    thrice = sample_covariance(strategy, fed(strategy, 5, [g, 2 * g, g]), 5)
    assert np.allclose(thrice, np.outer(g, g) / (g @ g), atol=1e-2)  # not spread over made-up directions


def test_a_surrogate_without_direction_is_not_remembered():
    strategy = guided(m=2, alpha=0.0)
    g = np.array([0.0, 3.0, 4.0])
    state = fed(strategy, 3, [g])
    for nothing in (np.zeros(3), np.full(3, np.nan)):
        after = strategy.update(state, None, None, np.zeros(3), nothing)
        assert np.array_equal(after.archive, state.archive) and int(after.rank) == 1


@given(arrays(float, (3, 5), elements=st.floats(-10, 10)))
def test_the_basis_is_orthonormal_and_spans_the_archive(archive):
    norms = np.linalg.norm(archive, axis=1)
    assume(norms.max() > 1e-3)
    singular = np.linalg.svd(archive, compute_uv=False)
    assume(np.all((singular > 1e-2 * singular[0]) | (singular < 1e-6 * singular[0])))  # a clear rank
    basis, rank = orthonormal_rows(archive)
    assert int(rank) == int((singular > 1e-3 * singular[0]).sum())
    gram = basis @ basis.T
    assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-6)
    assert np.sort(np.diag(gram)).round(6).tolist() == [0.0] * (3 - int(rank)) + [1.0] * int(rank)
    assert np.allclose(archive @ basis.T @ basis, archive, atol=1e-4 * singular[0])


@pytest.mark.parametrize("make", [guided, lambda: asebo(m=20)])
def test_no_n_by_n_matrix_is_ever_made(make, rng):
    n, strategy = 200_000, make()
    tracemalloc.start()
    state = strategy.init(np.zeros(n))
    for g in rng.standard_normal((3, n)):
        state = strategy.update(state, None, None, np.zeros(n), g)
    d = strategy.directions(state, rng.standard_normal((2, strategy.normals(n))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert d.shape == (2, n) and np.all(np.isfinite(d))
    assert peak < 300e6  # a few (m, n) arrays of 32 MB; n x n would be 320 GB


def test_settings_that_make_no_sense_are_refused():
    for wrong in ({"m": 0}, {"alpha": -0.1}, {"alpha": 1.1}):
        with pytest.raises(ValueError, match="guided needs"):
            guided(**wrong)


# -- the recombination Psi_k of mirrored sampling -----------------------------------------------------------------------------


def test_psi_is_the_mean_over_pairs_of_equation_12(rng):
    d = rng.standard_normal((3, 4))
    f = rng.standard_normal(6)
    expected = -2.0 / 6 * sum((f[i] - f[i + 3]) * d[i] for i in range(3))
    assert np.allclose(descent_weights(f, beta=2.0) @ mirrored(d), expected)


@pytest.mark.parametrize("strategy", [gaussian(), guided(m=2, beta=1.0), asebo(m=2)], ids=lambda s: s.name)
def test_the_step_does_not_grow_with_the_population(strategy, rng):
    n, slope = 5, np.array([1.0, -2.0, 0.0, 0.5, 3.0])
    state = strategy.init(np.zeros(n))
    lengths = []
    for half in (50_000, 200_000):
        d = mirrored(strategy.directions(state, rng.standard_normal((half, strategy.normals(n)))))
        step = strategy.weights(d @ slope) @ d
        assert step @ slope < -0.99 * np.linalg.norm(step) * np.linalg.norm(slope)  # downhill
        lengths.append(np.linalg.norm(step))
    assert lengths[1] == pytest.approx(lengths[0], rel=0.03)


def test_gaussian_recovers_the_gradient(rng):
    strategy, slope = gaussian(beta=1.0), np.array([1.0, -2.0, 3.0])
    d = mirrored(strategy.directions(None, rng.standard_normal((300_000, 3))))
    assert np.allclose(strategy.weights(d @ slope) @ d, -slope, atol=0.03)


def test_a_pair_with_a_failed_member_has_no_say():
    d = mirrored(np.eye(2))
    weights = descent_weights(np.array([np.inf, 1.0, 0.0, 2.0]), beta=4.0)
    assert weights.tolist() == [0.0, -1.0, 0.0, -2.0]
    assert (weights @ d).tolist() == [0.0, 1.0]


# -- CMA ----------------------------------------------------------------------------------------------------------------------


@given(arrays(float, st.integers(2, 20).map(lambda h: 2 * h), elements=st.floats(-1e6, 1e6)))
def test_cma_weights_lie_on_the_simplex_and_prefer_the_better(f):
    weights = cma().weights(f)
    assert np.all(weights >= 0) and weights.sum() == pytest.approx(1.0)
    assert (weights > 0).sum() == len(f) // 2
    by_fitness = weights[np.argsort(f, kind="stable")]
    assert np.all(np.diff(by_fitness) <= 0)


def test_simplex_weights_are_those_of_the_tutorial():
    w = np.log(2.5) - np.log([1, 2])
    assert simplex_weights(4) == pytest.approx(w / w.sum())
    assert [default_population(n) for n in (1, 2, 10, 100)] == [8, 12, 20, 34]


def test_failed_evaluations_get_no_weight(rng):
    strategy = cma()
    f = np.array([np.inf, 2.0, np.inf, np.inf, 1.0, np.inf, np.inf, np.inf])
    weights = strategy.weights(f)
    assert weights[[0, 2, 3, 5, 6, 7]].tolist() == [0.0] * 6
    assert weights[4] > weights[1] > 0
    everything_failed = strategy.weights(np.full(8, np.inf))
    assert everything_failed.tolist() == [0.0] * 8
    state = strategy.init(np.zeros(3))
    d = rng.standard_normal((8, 3))
    after = strategy.update(state, d, everything_failed, np.zeros(3), np.zeros(3))
    assert np.allclose(after.covariance, np.eye(3))  # nothing learnt from nothing


def test_the_weight_of_failed_evaluations_goes_to_what_is_known():
    strategy, n, population = cma(), 3, 8
    d = np.vstack([np.eye(3)[:1], np.zeros((7, 3))])
    f = np.array([0.0] + [np.inf] * 7)
    w = strategy.weights(f)
    mu_eff = 1 / (simplex_weights(population) ** 2).sum()
    c_1 = 2 / ((n + 1.3) ** 2 + mu_eff)
    c_mu = 2 * (mu_eff - 2 + 1 / mu_eff) / ((n + 2) ** 2 + mu_eff)
    expected = np.eye(3) * (1 - c_1 - c_mu + c_mu * (1 - w[0])) + c_mu * w[0] * np.diag([1.0, 0.0, 0.0])
    after = strategy.update(strategy.init(np.zeros(3)), d, w, np.zeros(3), np.zeros(3))
    assert np.allclose(after.covariance, expected * 3 / np.trace(expected))


def test_cma_factor_and_trace():
    strategy, n = cma(), 4
    state = strategy.init(np.zeros(n))
    for k in range(30):
        d = mirrored(strategy.directions(state, np.random.default_rng(k).standard_normal((8, n))))
        w = strategy.weights((d**2) @ np.array([1.0, 4.0, 9.0, 16.0]))
        state = strategy.update(state, d, w, w @ d, w @ d)
        assert np.trace(state.covariance) == pytest.approx(n)
        assert np.allclose(state.factor @ state.factor.T, state.covariance)
    z = np.random.default_rng(1).standard_normal((200_000, n))
    d = strategy.directions(state, z)
    assert np.abs(d.T @ d / len(d) - state.covariance).max() < 0.02


@pytest.mark.parametrize("rotated", [False, True])
def test_cma_learns_the_inverse_hessian(rotated):
    n, strategy = 4, cma()
    rng = np.random.default_rng(5)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0] if rotated else np.eye(n)
    eigenvalues = np.array([1.0, 10.0, 100.0, 1000.0])
    H = Q @ np.diag(eigenvalues) @ Q.T
    x, sigma, state = np.full(n, 3.0), 0.5, strategy.init(np.zeros(n))
    f = lambda y: 0.5 * ((y @ H) * y).sum(-1)  # noqa: E731
    for _ in range(400):
        d = mirrored(strategy.directions(state, rng.standard_normal((8, n))))
        w = strategy.weights(f(x + sigma * d))
        step = w @ d
        success = f(x + sigma * step) < f(x)
        x, sigma = (x + sigma * step, 1.3 * sigma) if success else (x, sigma / 1.3)
        state = strategy.update(state, d, w, step * success, step)
    assert f(x) < 1e-8
    root = Q @ np.diag(np.sqrt(eigenvalues)) @ Q.T
    whitened = np.linalg.eigvalsh(root @ state.covariance @ root)  # proportional to the identity if C ~ H^-1
    assert whitened.max() / whitened.min() < 5  # it was 1000 at the start


# -- ASEBO ----------------------------------------------------------------------------------------------------------------------


def test_active_subspace_keeps_the_energy_it_is_asked_for():
    archive = np.diag([10.0, 3.0, 1.0, 0.1])  # energies 100, 9, 1, 0.01: 90.9 %, 99.08 %, 99.99 %
    for threshold, rank in ((0.9, 1), (0.95, 2), (0.995, 3), (1.0, 4)):
        basis, found = active_subspace(archive, threshold, least=1)
        assert int(found) == rank
        assert np.allclose(np.abs(basis[:rank]), np.eye(4)[:rank], atol=1e-9)
        assert np.abs(basis[rank:]).max(initial=0.0) == 0.0
    assert int(active_subspace(archive, 0.5, least=3)[1]) == 3
    flat = np.outer(np.ones(4), [1.0, 2.0, 0.0])
    assert int(active_subspace(flat, 0.995, least=3)[1]) == 1  # no more than there is


def test_alpha_is_the_share_of_energy_outside_the_subspace():
    strategy = asebo(m=3, least=1, alpha_range=(0.1, 0.9))
    e = np.eye(5)
    state = strategy.init(np.zeros(5))
    for _ in range(2):
        state = strategy.update(state, None, None, np.zeros(5), e[0])
        assert float(state.alpha) == 1.0 and int(state.rank) == 0  # isotropic until the archive is full
    state = strategy.update(state, None, None, np.zeros(5), e[0])
    assert int(state.rank) == 1 and np.allclose(np.abs(state.basis[0]), e[0])
    for surrogate, alpha in (
        (e[0], 0.1),  # all inside: clipped to the least exploration
        (e[0] + e[1], 0.5),
        (2 * e[0] + e[1], 0.2),
        (e[1], 0.9),  # all outside
    ):
        assert float(strategy.update(state, None, None, np.zeros(5), surrogate).alpha) == pytest.approx(alpha)


def test_asebo_samples_mix_subspace_and_space():
    strategy = asebo(m=2, least=1, alpha_range=(0.3, 0.3))
    state = strategy.init(np.zeros(4))
    for _ in range(2):
        state = strategy.update(state, None, None, np.zeros(4), np.array([0.0, 0.0, 1.0, 0.0]))
    expected = 0.3 / 4 * np.eye(4) + 0.7 * np.diag([0.0, 0.0, 1.0, 0.0])
    assert np.abs(sample_covariance(strategy, state, 4) - expected).max() < 5e-3


def test_old_gradients_decay():
    strategy = asebo(m=3, least=1, decay=0.5)
    state = fed(strategy, 3, np.eye(3))
    assert state.archive.tolist() == [[0.0, 0.0, 1.0], [0.0, 0.5, 0.0], [0.25, 0.0, 0.0]]


# -- fitness shaping ------------------------------------------------------------------------------------------------------------

values = arrays(float, st.integers(2, 30), elements=st.integers(-1000, 1000).map(float))


@given(values)
def test_ranks_survive_any_increasing_map(f):
    for increasing in (lambda v: 3 * v - 7, lambda v: v**3, np.arctan, lambda v: np.exp(v / 300)):
        assert np.array_equal(centred_rank(increasing(f)), centred_rank(f))


@given(values)
def test_ranks_are_centred_and_ordered(f):
    ranks = centred_rank(f)
    assert ranks.sum() == pytest.approx(0.0, abs=1e-9) and np.abs(ranks).max() <= 0.5
    assert np.array_equal(np.sign(ranks[:, None] - ranks), np.sign(f[:, None] - f))
    if len(set(f)) == len(f):
        assert np.sort(ranks) == pytest.approx(np.linspace(-0.5, 0.5, len(f)))


@given(values, st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_standardised_survives_any_affine_map(f, scale, shift):
    assume(f.std() > 0.1)
    assert np.allclose(standardised(scale * f + shift), standardised(f), atol=1e-6)
    assert standardised(f).mean() == pytest.approx(0.0, abs=1e-9)
    assert standardised(f).std() == pytest.approx(1.0)


def test_shaping_of_equal_values_and_raw():
    assert standardised(np.full(4, 3.0)).tolist() == [0.0] * 4
    assert centred_rank(np.full(4, 3.0)).tolist() == [0.0] * 4
    f = np.array([1.0, 5.0])
    assert raw(f) is f and set(strategies.SHAPINGS) == {"raw", "standardised", "rank"}


@given(st.integers(0, 1000))
def test_the_pair_spread_does_not_see_what_pairs_share(seed):
    rng = np.random.default_rng(seed)
    f, shared = rng.standard_normal(12), 100 * rng.standard_normal(6)
    noisy = f + np.concatenate([shared, shared])
    assert pair_spread(noisy) == pytest.approx(pair_spread(f))
    noisy[[2, 9]] = np.inf  # two pairs fail: the others count
    kept = np.array([0, 1, 4, 5, 6, 7, 10, 11])
    assert pair_spread(noisy) == pytest.approx(pair_spread(f[kept]))
    assert pair_spread(np.full(4, np.inf)) == 0.0
