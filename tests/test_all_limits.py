"""A certificate claims that all limits hold: each is tested at the whole error probability, and the claim is no likelier wrong."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from pcces.blackbox import limits
from pcces.core.certificate import Column, judge
from pcces.core.limits import Probability


def no_more_often_than(wrong, runs, probability):
    """Whether `wrong` of `runs` is compatible with an error probability of at most `probability`."""
    return binom.sf(wrong - 1, runs, probability) > 1e-3


def looked_at(rng, columns, draw, error=0.05):
    """Whether one of three candidates is certified: two looks at each, as a search has them, at a fifth of the error probability
    that is left, and at the last look all of it."""
    left = error
    for candidate in range(3):
        x = draw(rng, 36)
        for size in (12, 36):
            last = candidate == 2 and size == 36
            look = left if last else limits.FIRST_LOOK * left
            left -= look
            if judge(x[:size], columns, look).holds:
                return True
    return False


@pytest.mark.parametrize(
    ("r", "alike", "others"), [(2, 0.0, 0.0), (2, 0.7, -0.2), (2, 1.0, 0.0), (3, 0.0, -9.0), (3, 1.0, -0.2)]
)
def test_all_limits_hold_wrongly_no_more_often_than_the_error(r, alike, others):
    """One limit is broken by nothing to speak of, the others are kept: each is tested at the whole error probability."""
    truth = np.array([1e-9, *[others] * (r - 1)])

    def draw(rng, n):
        return truth + alike * rng.standard_normal((n, 1)) + math.sqrt(1 - alike**2) * rng.standard_normal((n, r))

    rng, runs = np.random.default_rng(1), 2000
    wrong = sum(looked_at(rng, [Column()] * r, draw) for _ in range(runs))
    assert no_more_often_than(wrong, runs, 0.05)
    if alike == 1.0 or others == -9.0:  # and nothing is given away
        assert wrong > 0.6 * 0.05 * runs


@pytest.mark.parametrize("alike", [False, True])
def test_guaranteed_claims_on_three_limits_are_wrong_no_more_often_than_the_error(alike):
    columns = [Column(Probability(at_most=0.2)), Column(values=(-0.3, 0.7), stated=True), Column(range=(-1.0, 1.0))]
    rng, runs = np.random.default_rng(2), 1000

    def draw(rng, n):
        u = rng.random((n, 1)) if alike else rng.random((n, 3))
        return np.stack([u[:, 0] - 0.8, (u[:, -1] > 0.7) - 0.3, 2 * u[:, u.shape[1] // 2] - 1], axis=1)

    assert no_more_often_than(sum(looked_at(rng, columns, draw) for _ in range(runs)), runs, 0.05)


def test_limits_that_do_not_share_the_error_are_shown_more_often():
    rng, runs, columns = np.random.default_rng(3), 2000, [Column()] * 3
    samples = [rng.standard_normal((40, 3)) - 0.4 for _ in range(runs)]
    whole, shared = (sum(judge(x, columns, error).holds for x in samples) / runs for error in (0.05, 0.05 / 3))
    assert whole > shared + 0.2
    both = judge(samples[0], columns, 0.05).bounds
    assert both == pytest.approx([judge(samples[0][:, [j]], [Column()], 0.05).bounds[0] for j in range(3)])
