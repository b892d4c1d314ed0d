"""Averages of repeated evaluations: pooling, sample sizes, and when to stop sampling."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pcces.blackbox.trial import ACCEPT, SURE, undecided
from pcces.core.estimation import Estimate, NoiseLevel, estimate, pool, required_samples

table = arrays(float, st.tuples(st.integers(2, 12), st.just(3)), elements=st.floats(-1e3, 1e3))


@given(table, st.integers(1, 11))
def test_pooling_equals_averaging_all_samples(samples, cut):
    cut = min(cut, len(samples) - 1)
    pooled, together = pool(estimate(samples[:cut]), estimate(samples[cut:])), estimate(samples)
    assert float(pooled.n) == len(samples)
    assert np.allclose(pooled.mean, samples.mean(0), atol=1e-9)
    assert np.allclose(pooled.variance, samples.var(0, ddof=1), rtol=1e-6, atol=1e-6)
    assert np.allclose(together.variance, samples.var(0, ddof=1), rtol=1e-9, atol=1e-9)


@given(table)
def test_pooling_one_by_one(samples):
    e = estimate(samples[:1])
    for row in samples[1:]:
        e = pool(e, estimate(row[None]))
    assert np.allclose(e.mean, samples.mean(0), atol=1e-9)
    assert np.allclose(e.squares, ((samples - samples.mean(0)) ** 2).sum(0), rtol=1e-6, atol=1e-5)


def test_single_precision_stays_single():
    assert {part.dtype for part in estimate(np.ones((3, 2), np.float32))} == {np.dtype(np.float32)}


def test_f_and_c_of_an_estimate():
    e = estimate(np.array([[1.0, -2.0, 5.0], [3.0, -4.0, 5.0]]))
    assert (float(e.f), e.c.tolist(), e.variance.tolist()) == (2.0, [-3.0, 5.0], [2.0, 2.0, 0.0])
    assert math.isnan(estimate(np.array([[1.0]])).variance[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_failed_evaluation_is_never_averaged_away(bad):
    samples = np.zeros((100, 2))
    samples[37, 1] = bad  # even one output of one evaluation
    e = estimate(samples)
    assert e.mean.tolist() == [np.inf, np.inf]
    good = estimate(np.ones((50, 2)))
    for pooled in (pool(e, good), pool(good, e), pool(pool(good, e), good)):
        assert pooled.mean.tolist() == [np.inf, np.inf]
        assert pooled.squares.tolist() == [0.0, 0.0]


# -- N_k ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("noise", ["normal", "skewed"])
def test_required_samples_make_both_estimates_accurate(p, noise):
    variance, sigma, eps_f = 4.0, 0.9, 2.5
    N = required_samples(variance, sigma, eps_f, eps_v=1e9, p=p)
    rng = np.random.default_rng(1)
    draw = rng.standard_normal if noise == "normal" else lambda size: rng.exponential(size=size) - 1
    errors = math.sqrt(variance) * draw((4000, 2, N)).mean(-1)
    accurate = np.all(np.abs(errors) <= eps_f * sigma**2, axis=1)
    assert accurate.mean() >= p  # Definition 1: F^0 and F^1 together


@pytest.mark.parametrize("eps_v", [0.05, 0.5])
def test_required_samples_meet_the_variance_condition(eps_v):
    variance, sigma = 0.3, 0.5
    N = required_samples(variance, sigma, eps_f=1e9, eps_v=eps_v, p=0.9)
    assert variance / N <= eps_v**2 * sigma**4 < variance / max(N - 1, 1e-9)  # and no more than it takes
    rng = np.random.default_rng(0)
    if N < 2000:
        means = math.sqrt(variance) * rng.standard_normal((2000, N)).mean(1)
        assert np.mean(means**2) <= 1.15 * eps_v**2 * sigma**4


def test_required_samples_is_the_larger_of_both_bounds():
    assert required_samples(1e-4, 0.1, 1.0, 1.0, 0.9) == math.ceil(16 * math.log(20))
    assert required_samples(1e-4, 0.1, 1.0, 0.01, 0.9) == pytest.approx(10_000, abs=1)
    assert required_samples(1e-4, 0.1, 0.5, 1.0, 0.9) == math.ceil(64 * math.log(20))
    assert required_samples(0.0, 0.1, 1.0, 1.0, 0.9) == 1
    assert required_samples(1.0, 1e-10, 1.0, 1.0, 0.9) == 2**62  # not an overflow
    assert required_samples(1.3 * 2.0**58 / math.log(20), 1.0, 1.0, 1e9, 0.9) == 2**62  # one bit more fits no int64
    # halving sigma costs sixteen times the samples
    assert required_samples(1.0, 0.05, 1.0, 1.0, 0.9) == pytest.approx(
        16 * required_samples(1.0, 0.1, 1.0, 1.0, 0.9), rel=1e-3
    )


@pytest.mark.parametrize("p", [0.5, 1.0, 0.0])
def test_required_samples_needs_a_p_above_one_half(p):
    with pytest.raises(ValueError, match="p must lie"):
        required_samples(1.0, 0.1, 1.0, 1.0, p)


# -- racing -------------------------------------------------------------------------------------------------------------------


def test_a_race_ends_when_the_answer_is_clear():
    none = np.zeros(0)

    def open_(difference, error, samples, clearance=none, clearance_error=none):
        return undecided(difference, error, clearance, clearance_error, samples, False)

    assert not open_(2.0, 1.0, 2)  # surely worse: few samples are enough to say no
    assert open_(0.5, 1.0, 2)
    assert open_(-2.0, 1.0, 15)  # looks better, but too few to accept
    assert not open_(-2.0, 1.0, 16)
    assert open_(-0.5, 1.0, 16)
    assert not open_(math.inf, 1.0, 2)
    assert not open_(-2.0, 1.0, 16, np.array([2.0]), np.array([1.0]))  # surely infeasible
    assert open_(-2.0, 1.0, 16, np.array([0.5]), np.array([1.0]))
    assert not open_(-2.0, 1.0, 16, np.array([-0.5]), np.array([1.0]))


def test_what_is_just_as_large_as_its_errors_is_not_sure():
    def open_(difference, samples, clearance=-9.0, error=0.5, certain=False):
        return undecided(difference, error, np.array([clearance]), np.array([0.5]), samples, certain)

    sure = 0.5 * SURE
    assert open_(sure, 2) and not open_(1.01 * sure, 2)  # surely worse
    assert open_(-9.0, 2, clearance=sure) and not open_(-9.0, 2, clearance=1.01 * sure)  # surely infeasible
    assert open_(-sure, ACCEPT) and not open_(-1.01 * sure, ACCEPT)  # surely better
    assert not open_(-9.0, ACCEPT, clearance=0.0) and open_(
        -9.0, ACCEPT, clearance=0.01
    )  # and feasible, at the limit too
    assert not open_(-9.0, 2, clearance=-sure, error=0.0, certain=True)
    assert open_(-9.0, 2, clearance=-0.99 * sure, error=0.0, certain=True)


# -- noise ----------------------------------------------------------------------------------------------------------------------


def test_what_is_learnt_of_noise_averages_variances():
    e = estimate(np.array([[0.0, 1.0], [2.0, 1.0]]))  # variances 2 and 0
    noise = NoiseLevel(True, np.array([2.0, 2.0]))
    assert noise.learn(e, 0.5).deviation == pytest.approx([math.sqrt(3), math.sqrt(2)])
    assert noise.learn(e, 1.0).deviation == pytest.approx([math.sqrt(2), 0.0])
    assert noise.learn(e, 0.0).deviation == pytest.approx(noise.deviation)


def test_noise_that_is_seen_for_the_first_time_counts_in_full():
    e = estimate(np.array([[0.0, 1.0], [2.0, 1.0]]))
    # where earlier repeats did not differ, they count as well: as if there had been eight in all
    assert NoiseLevel(True, np.zeros(2)).learn(e, 0.1).deviation == pytest.approx([math.sqrt(2 / 7), 0.0])
    for before in (0.0, 3.0):
        present, deviation, _ = NoiseLevel(None, np.full(2, before)).learn(e, 0.1)
        assert present is True and deviation == pytest.approx([math.sqrt(2), 0.0])
    little = estimate(np.array([[0.0], [0.2]]))
    assert NoiseLevel(True, np.zeros(1)).learn(little, 0.1).deviation == pytest.approx([0.1 * math.sqrt(2 / 7)])
    assert NoiseLevel(None, np.zeros(1)).learn(estimate(np.ones((3, 1)))).present is False
    later = NoiseLevel(False, np.zeros(2)).learn(e, 0.1)  # where none was seen, it may show later
    assert later.present is True and later.deviation == pytest.approx([math.sqrt(2), 0.0])
    assert NoiseLevel(False, np.zeros(1)).learn(estimate(np.ones((3, 1)))).present is False


def test_the_largest_jump_above_what_is_usual_is_kept():
    noise = NoiseLevel(True, np.ones(2)).saw(np.array([[1.0, 0.0], [1.0, 0.0], [1.5, 7.0], [0.0, 0.0]]))
    assert noise.jump.tolist() == [0.5, 7.0]
    assert noise.saw(np.array([[0.0, 0.0], [0.0, 9.0]])).jump.tolist() == [0.5, 9.0]  # of two, the lower is usual
    for nothing in (np.array([[0.0, 99.0]]), np.array([[0.0, 0.0], [np.inf, np.inf]])):
        assert noise.saw(nothing) is noise


def test_a_single_or_failed_evaluation_says_nothing_about_noise():
    noise = NoiseLevel(None, np.zeros(1))
    assert noise.learn(estimate(np.array([[1.0]]))) is noise
    assert noise.learn(estimate(np.array([[1.0], [np.inf]]))) is noise


def test_pooling_with_no_evaluation_changes_nothing():
    nothing = Estimate(np.float64(0), np.full(1, np.inf), np.zeros(1))
    for samples in (np.array([[1.0, -0.0], [3.0, -0.0]]), np.full((2, 2), np.inf)):
        for pooled, alone in zip(pool(nothing, estimate(samples)), estimate(samples)):
            assert np.array_equal(pooled, alone) and np.array_equal(np.signbit(pooled), np.signbit(alone))


def test_equal_numbers_show_no_noise():
    e = estimate(np.full((20, 1), -0.05))
    assert e.mean[0] == -0.05 and e.squares[0] == 0.0
    assert pool(e, estimate(np.full((7, 1), -0.05))).squares[0] == 0.0
