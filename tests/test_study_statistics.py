"""What some seeds can say: intervals that cover, differences that are paired, luck that is allowed for."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from pcces.studies.statistics import (
    band,
    beside_paper,
    clear_at_once,
    difference,
    interquartile_mean,
    mean_interval,
    verdict,
    wins,
)


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_the_bootstrap_covers_the_mean_as_often_as_it_says(seeds):
    rng, hits = np.random.default_rng(1), 0
    for _ in range(600):
        _, low, high = mean_interval(rng.normal(3.0, 2.0, size=seeds))
        hits += low <= 3.0 <= high
    assert 0.92 <= hits / 600 <= 0.98


def test_one_seed_says_nothing_of_others():
    assert mean_interval([5.0]) == (5.0, -math.inf, math.inf)
    for gap in (mean_interval([9.0]), difference({0: 9.0, 1: 1.0}, {0: 1.0}), beside_paper([9.0], 1.0, 0.1, seeds=5)):
        assert gap.middle > 0 and verdict(gap) == "no clear difference"
    assert all(np.array_equal(part, [9.0, 8.0]) for part in band([[9.0, 8.0]]))


def test_what_is_left_after_the_clearest_is_tested_more_gently():
    """Holm's procedure: the second of two has to pass the test of one."""
    clearest, second = [10.0, 10.1, 9.9, 10.0], [1.0, 2.0, 3.0, 0.9]
    assert 0.025 < ttest_1samp(second, 0.0).pvalue < 0.05
    assert clear_at_once([second, clearest]) == ["higher", "higher"]
    assert clear_at_once([second, [1.0, -1.0, 0.5, -0.4]]) == ["no clear difference"] * 2


def test_a_t_test_of_values_that_are_alike_has_an_answer():
    """SciPy has none: values that are all zero say nothing, others say all that they can."""
    assert clear_at_once([[0.0, 0.0]]) == clear_at_once([[3.0]]) == ["no clear difference"]
    assert clear_at_once([[0.1] * 3, [-0.1] * 3]) == ["higher", "lower"]


def test_the_middle_half_leaves_out_a_quarter_on_each_side():
    values = [100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, -100.0]
    assert interquartile_mean(values) == np.mean([2.0, 3.0, 4.0, 5.0, 6.0, 7.0])  # two of ten at each end
    assert interquartile_mean([1.0, 2.0, 9.0]) == 4.0


def test_differences_are_paired():
    noise = np.random.default_rng(2).normal(0, 100, size=10)
    ours, theirs = ({i: float(v + shift) for i, v in enumerate(noise)} for shift in (1.0, 0.0))
    gap = difference(ours, theirs)
    assert gap.middle == pytest.approx(1.0) and verdict(gap) == "higher"
    assert verdict(difference(theirs, ours)) == "lower"


def test_many_comparisons_allow_for_luck():
    rng, false, seen = np.random.default_rng(3), 0, 0
    for _ in range(150):
        ties = rng.normal(size=(40, 10))
        words = clear_at_once([*ties, rng.normal(3.0, 1.0, size=10)])
        false += set(words[:-1]) != {"no clear difference"}
        seen += words[-1] == "higher"
    assert false / 150 < 0.09 and seen / 150 > 0.9  # one by one, two of forty ties would look clear each time
    assert clear_at_once([[-2.0, -2.0], [0.0, 0.0], [7.0]]) == ["lower", "no clear difference", "no clear difference"]


def test_wins_are_counted_task_by_task():
    assert wins([([1.0, 3.0], [2.0, 2.0])]).middle == 0.5
    sure = wins([(list(range(10, 20)), list(range(10)))] * 3)
    assert sure == (1.0, 1.0, 1.0)
    rng = np.random.default_rng(0)
    for tasks, seeds in ((1, 5), (3, 10)):  # 0.638 is what normal values have that are half a standard deviation apart
        drawn = [[(rng.normal(0.5, 1, seeds), rng.normal(size=seeds)) for _ in range(tasks)] for _ in range(200)]
        assert 0.92 < np.mean([(won := wins(some)).low <= 0.638 <= won.high for some in drawn]) < 0.995
    same = wins([(rng.normal(size=10), rng.normal(size=10)) for _ in range(8)])
    assert same.low < 0.5 < same.high and same.high - same.low < 0.35


def test_a_reported_mean_has_noise_of_its_own():
    ours = np.random.default_rng(0).normal(10.0, 1.0, size=10)
    alone, both = mean_interval(ours), beside_paper(ours, 9.0, 3.0, seeds=5)
    assert both.middle == pytest.approx(alone.middle - 9)
    assert both.high - both.low > 2 * (alone.high - alone.low) and verdict(both) == "no clear difference"


def test_bands_hold_the_mean_of_every_point():
    rows = np.random.default_rng(0).normal(size=(10, 5))
    middle, low, high = band(rows)
    assert np.allclose(middle, rows.mean(0)) and np.all(low < middle) and np.all(middle < high)
    of_one = mean_interval(rows[:, 0])
    assert (low[0], high[0]) == pytest.approx((of_one.low, of_one.high), abs=0.1)
