"""The bounds: wrong no more often than they say, as tight as the book's, and planned for as they turn out."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2, t

from pcces.core import plans, tails
from pcces.core.bounds import (
    betting_bound,
    binomial_bound,
    dependence,
    jump_bound,
    plausible_deviation,
    quantile_bound,
    student_bound,
)
from pcces.core.certificate import Column, judge
from pcces.core.limits import CVaR, Mean, Probability, Quantile


def no_more_often_than(wrong, runs, probability):
    """Whether `wrong` of `runs` is compatible with an error probability of at most `probability`."""
    return binom.sf(wrong - 1, runs, probability) > 1e-3


# -- Student's ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [3, 10, 30])
@pytest.mark.parametrize("error", [0.05, 0.3])
def test_the_t_bound_holds_for_normal_noise(n, error):
    rng = np.random.default_rng(0)
    runs = 4000
    wrong = sum(student_bound(3.0 + 2.0 * rng.standard_normal(n), error) < 3.0 for _ in range(runs))
    assert no_more_often_than(wrong, runs, error)
    assert wrong > (0.7 if n > 5 else 0.5) * error * runs  # and is not wastefully wide


def test_where_samples_are_not_skewed_it_is_students():
    x = np.array([-1.0, 1.0, -2.0, 2.0])
    assert student_bound(x, 0.05) == pytest.approx(t.ppf(0.95, 3) * x.std(ddof=1) / 2)
    low, high = np.array([0.0] * 9 + [1.0]), np.array([1.0] * 9 + [0.0])
    usual = t.ppf(0.95, 9) * low.std(ddof=1) / math.sqrt(10)
    assert student_bound(high, 0.05) == pytest.approx(0.9 + usual)  # skewed downwards: no credit for it
    assert student_bound(low, 0.05) > 0.1 + 1.5 * usual  # upwards: Hall's


@pytest.mark.parametrize("n", [15, 60, 400])
def test_skewed_noise_fools_it_less_than_students(n):
    rng, runs, error = np.random.default_rng(1), 4000, 0.02
    x = rng.exponential(1.0, (runs, n))
    student = x.mean(1) + x.std(1, ddof=1) / math.sqrt(n) * t.ppf(1 - error, n - 1)
    wrong, wrong_by_student = sum(student_bound(row, error) < 1 for row in x), int((student < 1).sum())
    assert wrong < 0.75 * wrong_by_student and wrong / runs < (2.3 if n == 15 else 1.6) * error


def test_too_few_samples_bound_nothing():
    assert student_bound(np.array([-9.0]), 0.05) == math.inf
    assert student_bound(np.full(50, -9.0), 0.05) == math.inf  # what never varied, neither
    assert student_bound(np.arange(9.0), 0.05, effective=1.5) == math.inf
    assert student_bound(np.arange(9.0), 0.05, effective=4) > student_bound(np.arange(9.0), 0.05)


def test_samples_that_vary_too_little_count_with_the_noise_of_the_search():
    rng = np.random.default_rng(6)
    normal = rng.standard_normal(20)
    assert student_bound(normal, 0.05, noise=1.0) == pytest.approx(student_bound(normal, 0.05))  # nothing suspicious
    calm = np.full(20, -0.05)
    assert plausible_deviation(calm[:, None], 0.0) == 0.0  # not what rounding makes of it
    assert student_bound(calm, 0.05, noise=0.2) == pytest.approx(-0.05 + 0.2 * t.ppf(0.95, 19) / math.sqrt(20))
    wrong = sum(student_bound(rng.standard_normal(5), 0.1, noise=1.0) < 0 for _ in range(4000))
    assert 0.03 < wrong / 4000 < 0.1  # cautious, not blind


@pytest.mark.parametrize("n", [2, 8, 50])
def test_the_noise_known_counts_where_nine_in_ten_would_vary_more(n):
    x = np.array([1.0, -1.0] * (n // 2))[:, None]
    known = x.std(ddof=1) / math.sqrt(chi2.ppf(0.1, n - 1) / (n - 1))
    assert plausible_deviation(x, 0.999 * known)[0] == x.std(ddof=1)
    assert plausible_deviation(x, 1.001 * known)[0] == 1.001 * known
    assert plausible_deviation(x[:1], 0.3)[0] == 0.3


def test_room_is_left_for_jumps_as_the_search_saw_them():
    rng = np.random.default_rng(0)
    x = 0.1 * rng.standard_normal(300)
    at_most = binomial_bound(0, 300, 0.05)
    assert jump_bound(x, 0.05, 50.0) == pytest.approx(x.mean() + 50 * at_most)
    x[7] += 50.0
    assert jump_bound(x, 0.05, 50.0) == pytest.approx(np.delete(x, 7).mean() + 50 * binomial_bound(1, 300, 0.05))
    assert jump_bound(x, 0.05, 0.3) == jump_bound(x, 0.05, 0.0) == -math.inf  # no larger than noise is


# -- bets -----------------------------------------------------------------------------------------------------------------------

DISTRIBUTIONS = {
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "rare failures": (lambda rng, n: (rng.random(n) < 0.05).astype(float), 0.05),
    "mostly failures": (lambda rng, n: (rng.random(n) < 0.9).astype(float), 0.9),
    "skewed": (lambda rng, n: rng.beta(0.2, 2.0, n), 0.2 / 2.2),
    "skewed the other way": (lambda rng, n: 1 - rng.beta(0.2, 2.0, n), 2.0 / 2.2),
    "constant": (lambda rng, n: np.full(n, 0.5), 0.5),
}


def bets(x, error, low=0.0, high=1.0, at=None):
    x = x[:, None] if x.ndim == 1 else x
    r = x.shape[1]
    return betting_bound(x, error, np.full(r, low), np.full(r, high), None if at is None else np.full(r, at))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [5, 60])
def test_the_betting_bound_holds_for_any_bounded_noise(name, n):
    draw, mean = DISTRIBUTIONS[name]
    rng = np.random.default_rng(2)
    runs, error, low, high = 300, 0.2, -3.0, 5.0
    truth = low + (high - low) * mean
    wrong = 0
    for _ in range(runs):
        bound = bets(low + (high - low) * draw(rng, n), error, low, high, at=truth - 1e-9)[0]
        assert low <= bound <= high
        wrong += bound < truth - 1e-9
    assert no_more_often_than(wrong, runs, error)


def by_the_book(x, error, candidates):
    """The largest candidate that a gambler who aims at a wealth of 1 / error does not refute, one bet after the other, and
    the next one: what is refuted are all means from one candidate to the next."""
    standing = []
    for m in candidates:
        wealth, squares, n = 1.0, m * (1 - m) if m > 0.5 else 0.25 + (m - 0.5) ** 2, len(x)
        for past, value in enumerate(x):
            spread = squares / (past + 1)
            bet = min(math.sqrt(2 * math.log(1 / error / wealth) / (spread * (n - past))), 0.9 / (1 - m))
            wealth *= 1 + bet * (m - value)
            if wealth >= 1 / error:
                break
            squares += (value - m) ** 2
        standing.append(wealth < 1 / error)
    last = max((i for i, stands in enumerate(standing) if stands), default=-1)
    return candidates[last + 1] if last + 1 < len(candidates) else 1.0


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_the_betting_bound_is_that_of_the_book(name, n):
    samples = DISTRIBUTIONS[name][0](np.random.default_rng(n), n)
    near = np.geomspace(1e-5, 1.0, 100)
    candidates = np.concatenate([0.3 - near, [0.3], 0.3 + near, np.linspace(0, 1, 99)])
    candidates = np.clip(np.sort(candidates), 1e-9, 1 - 1e-9)
    assert bets(samples, 0.1, at=0.3)[0] == pytest.approx(by_the_book(samples, 0.1, candidates), abs=1e-10)


def test_the_betting_bound_tightens_and_knows_the_variance():
    rng = np.random.default_rng(3)
    wide, narrow = rng.random(2000), 0.45 + 0.1 * rng.random(2000)
    by_size = [bets(narrow[:n], 0.05)[0] for n in (20, 200, 2000)]
    assert by_size[0] > by_size[1] > by_size[2] > 0.5 > by_size[2] - 0.02
    assert bets(wide, 0.05)[0] - 0.5 > 3 * (by_size[2] - 0.5)
    assert bets(wide[:0], 0.05)[0] == 1.0  # no sample, no knowledge


def test_it_is_nearly_as_tight_as_students_where_that_is_exact():
    rng, gaps = np.random.default_rng(0), []
    for _ in range(20):
        x = rng.random(300)
        gaps.append((bets(x, 0.05, at=0.5)[0] - x.mean(), student_bound(x, 0.05) - x.mean()))
    betting, student = np.mean(gaps, axis=0)
    assert betting < 1.25 * student  # Hoeffding's: 2.5 times


def test_several_columns_are_judged_one_by_one():
    rng = np.random.default_rng(4)
    x = np.column_stack([DISTRIBUTIONS[name][0](rng, 80) for name in ("uniform", "rare failures", "skewed")])
    together = bets(x, 0.2)
    assert [bets(x[:, j], 0.2)[0] for j in range(3)] == pytest.approx(together.tolist())


def test_a_sample_outside_its_stated_range_is_an_error():
    for outside in (1.2, -0.2):
        with pytest.raises(ValueError, match=r"constraint 1 has a sample outside its stated range \[0, 1\]"):
            bets(np.array([[0.5, outside]]), 0.05)
    bets(np.array([[0.0, 1.0]]), 0.05)  # its ends belong to it


# -- counts ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("n", [10, 100, 400])
def test_the_binomial_bound_is_exact(share, n):
    """By summing over all outcomes: the probability of a bound below the truth, and with one event more it would be too large."""
    error = 0.05
    bounds = np.array([binomial_bound(k, n, error) for k in range(n + 1)])
    wrong = binom.pmf(np.arange(n + 1), n, share)[bounds < share].sum()
    assert wrong <= error and np.all(np.diff(bounds) >= 0) and bounds[-1] == 1.0
    k = int((bounds < share).sum())
    assert k == n + 1 or binom.cdf(k, n, share) > error or bounds[k] == pytest.approx(share)
    assert binomial_bound(0, n, error) == pytest.approx(1 - error ** (1 / n))


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_the_quantile_bound_holds_for_any_noise_and_is_exact(q):
    rng, runs, n, error = np.random.default_rng(5), 3000, 60, 0.1
    x = rng.exponential(1.0, (runs, n))
    truth = -math.log(1 - q)
    wrong = sum(quantile_bound(row, q, error) < truth for row in x)
    assert no_more_often_than(wrong, runs, error) and wrong > 0.4 * error * runs
    assert quantile_bound(np.arange(5.0), 0.9, 0.05) == math.inf
    assert quantile_bound(np.arange(100.0), 0.9, 0.05, effective=30) > quantile_bound(np.arange(100.0), 0.9, 0.05)


# -- dependence -----------------------------------------------------------------------------------------------------------------


def remembering(rng, n, memory):
    """Normal noise that remembers: x_t = memory x_t-1 + ..."""
    x, noise = np.empty(n), rng.standard_normal(n)
    x[0] = noise[0]
    for i in range(1, n):
        x[i] = memory * x[i - 1] + math.sqrt(1 - memory**2) * noise[i]
    return x


INDEPENDENT = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "rare": lambda rng, n: (rng.random(n) < 0.02).astype(float),
    "heavy tails": lambda rng, n: rng.standard_t(2, n),
}


@pytest.mark.parametrize("name", INDEPENDENT)
@pytest.mark.parametrize("n", [30, 300])
def test_independent_samples_seldom_look_dependent(name, n):
    rng = np.random.default_rng(0)
    assert sum(dependence(INDEPENDENT[name](rng, n)) > 1 for _ in range(300)) < 12
    assert dependence(np.zeros(n)) == dependence(np.arange(5.0)) == 1.0


def test_what_remembers_or_drifts_is_seen_and_its_mean_is_less_sure():
    rng = np.random.default_rng(0)
    seen = np.array([dependence(remembering(rng, 600, 0.9)) for _ in range(40)])
    ends = seen[seen < math.inf]  # of most it is seen where the dependence ends
    assert seen.min() > 4 and 12 < np.mean(ends) < 40 and len(ends) > 25  # 19 for very many samples
    drifts = [dependence(rng.standard_normal(600) + np.linspace(-0.5, 0.5, 600)) for _ in range(50)]
    assert np.mean(np.array(drifts) > 1) > 0.9 and np.mean(np.array(drifts) == math.inf) > 0.7
    wrong = sum(judge(remembering(rng, 600, 0.9)[:, None], [Column()], 0.05).bounds[0] < 0 for _ in range(300))
    naive = sum(student_bound(remembering(rng, 600, 0.9), 0.05) < 0 for _ in range(300))
    assert wrong < 25 < 90 < naive


def test_dependence_that_others_showed_counts():
    x = np.random.default_rng(0).normal(-1, 1, (100, 1))
    fresh, after, wide = (
        judge(x, [Column(range=(-9, high), memory=memory)], 0.05) for high, memory in ((9, 1.0), (9, 4.0), (90, 4.0))
    )
    assert fresh.methods == ("betting",) and after.methods == ("dependent",)
    assert fresh.memory == [1.0] and after.memory == [4.0]
    plain = judge(x, [Column(memory=4.0)], 0.05).bounds
    assert plain == pytest.approx(student_bound(x[:, 0], 0.05, effective=25))
    # Dependence never makes a bound tighter: the larger of the two.
    tight = judge(x, [Column(range=(-9, 9), memory=50 / 9)], 0.05).bounds
    assert after.bounds == fresh.bounds > plain and wide.bounds > after.bounds and tight >= fresh.bounds
    drift = judge(x + np.linspace(-3, 3, 100)[:, None], [Column()], 0.05)
    assert drift.bounds == [math.inf] and drift.memory == [100 / 8]  # which more samples may see the end of


def test_rare_failures_in_bursts_are_seen():
    rng, seen = np.random.default_rng(3), 0
    for _ in range(50):
        starts = rng.random(300) < 0.03
        bursts = np.convolve(starts, np.ones(4))[:300] > 0
        seen += dependence(bursts.astype(float)) > 1
    assert seen >= 48


def test_a_guarantee_is_not_claimed_of_samples_that_depend_on_each_other():
    rng = np.random.default_rng(0)
    x = np.clip(0.3 * remembering(rng, 600, 0.8) - 0.5, -2, 1)
    bound = judge(np.column_stack([x, x]), [Column(range=(-2, 1)), Column(Probability(at_most=0.2))], 0.05)
    assert bound.methods == ("dependent", "dependent") and bound.holds
    worse = judge(np.repeat(x[:12], 50)[:, None], [Column()], 0.05)
    assert worse.methods == ("dependent",) and worse.bounds[0] == math.inf  # they are worth too few
    drift = rng.standard_normal(400) + np.linspace(-9, -6, 400)
    for known in (Column(), Column(range=(-20, 20)), Column(Probability()), Column(CVaR(0.1)), Column(Quantile(0.9))):
        refused = judge(drift[:, None], [known], 0.05)
        assert refused.methods == ("dependent",) and refused.bounds[0] == math.inf


# -- which bound, by what is known ----------------------------------------------------------------------------------------------


def method_of(x, **known):
    return judge(np.asarray(x, dtype=float)[:, None], [Column(**known)], 0.05).methods[0]


def bound_of(x, **known):
    return float(judge(np.asarray(x, dtype=float)[:, None], [Column(**known)], 0.05).bounds[0])


def test_bounds_are_chosen_by_what_is_known():
    rng = np.random.default_rng(0)
    x, failures = rng.normal(-1, 0.5, 100), (rng.random(100) < 0.04) - 0.1
    assert method_of(x) == "t" and bound_of(x) == student_bound(x, 0.05)
    assert method_of(x, range=(-4, 4)) == "betting" == method_of(np.full(100, -1.0), range=(-4, 4))
    assert method_of(x, deterministic=True) == "stated" and bound_of(x, deterministic=True) == x.max()
    assert method_of(failures) == "two values" == method_of(failures, values=(-0.1, 0.9))
    assert method_of(failures, values=(-0.1, 0.9), stated=True) == "binomial"
    assert method_of(failures, values=(-0.1, 0.9), range=(-0.1, 0.9)) == "binomial"  # the range's ends, and no others
    assert method_of(failures, range=(-0.1, 0.9)) == "betting"  # the search saw others
    k = int((failures > 0).sum())
    assert bound_of(failures, values=(-0.1, 0.9)) == pytest.approx(-0.1 + binomial_bound(k, 100, 0.05))
    assert method_of(x, limit=Probability(at_most=0.1)) == "binomial" == method_of(x, limit=Quantile(0.9))
    assert method_of(x[:7]) == "t" and bound_of(x[:7]) == math.inf  # too few
    assert method_of(x, limit=CVaR(0.2)) == "t" and method_of(x, limit=CVaR(0.2), range=(-4, 4)) == "betting"


def test_what_never_varied_is_bounded_by_what_repeats_exclude():
    same = np.full(50, -0.3)
    rare = binomial_bound(0, 50, 0.05)
    assert method_of(same) == "repeats" and bound_of(same) == -0.3
    assert bound_of(same, jump=5.0) == pytest.approx(-0.3 + 5 * rare)  # events that the search saw elsewhere
    assert bound_of(same, constant=True) == pytest.approx(-0.3 + rare)  # never another value: like an outcome of 0 or 1
    assert bound_of(same, values=(-0.3, 0.7)) == pytest.approx(-0.3 + rare)
    assert bound_of(same, deviation=2.0) > -0.3 + 2 * 1.6 / math.sqrt(50)
    assert bound_of(same, range=(-1, 1)) > -0.3 + rare  # a stated range always means the finite-sample bound


def test_a_third_value_counts_as_the_worse_one():
    x = np.full(100, -0.1)
    x[[7, 40, 83]] = 0.2, 0.9, 0.9
    for known in ({"stated": True}, {"range": (-0.1, 0.9)}):
        assert bound_of(x, values=(-0.1, 0.9), **known) == pytest.approx(-0.1 + binomial_bound(3, 100, 0.05))


def test_stated_limits_without_noise():
    assert bound_of([0.2], limit=Probability(at_most=0.05), deterministic=True) == 0.95
    assert bound_of([-0.2], limit=Probability(at_most=0.05), deterministic=True) == -0.05
    for limit in (Quantile(0.9), CVaR(0.1), Mean()):
        assert bound_of([-0.2], limit=limit, deterministic=True) == -0.2


CVAR_CASES = {
    "normal": (lambda rng, n: rng.normal(0, 1, n), 1.7549833193248676),
    "exponential": (lambda rng, n: rng.exponential(1, n), 1 + math.log(10)),
    "uniform": (lambda rng, n: rng.random(n), 0.95),
}


@pytest.mark.parametrize("name", CVAR_CASES)
@pytest.mark.parametrize("level", [None, "known"])
def test_the_bound_on_a_cvar(name, level):
    draw, truth = CVAR_CASES[name]
    rng, runs, error, n = np.random.default_rng(7), 400, 0.05, 400
    known = {"limit": CVaR(0.1), "level": None if level is None else float(np.quantile(draw(rng, 10**5), 0.9))}
    if name == "uniform":
        known["range"] = (-truth, 1 - truth)
    wrong, widths = 0, []
    for _ in range(runs):
        x = draw(rng, n)
        if name == "uniform":
            known["level"] = None if level is None else 0.9 - truth
            bound = bound_of(x - truth, **known) + truth
        else:
            bound = bound_of(x, **known)
        wrong += bound < truth
        widths.append(bound - truth)
    assert no_more_often_than(wrong, runs, 1.6 * error if name != "uniform" else error)
    assert np.median(widths) < (0.05 if name == "uniform" else 1.1)
    if name == "uniform":  # the bound of Thomas and Learned-Miller (2019), by the band around the distribution function
        x = np.sort(draw(rng, n))
        band = np.arange(n + 1) / n - math.sqrt(math.log(1 / error) / (2 * n)) - 0.9
        theirs = 1 - float((np.diff(np.append(x, 1.0)) * np.maximum(band[1:], 0)).sum()) / 0.1
        assert np.median(widths) < 0.8 * (theirs - truth)


# -- planning -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [30, 600])
@pytest.mark.parametrize("ranges", [None, (-2.0, 2.0), (-5.2, 3.2), (-9.0, 1.0)])
def test_the_margin_planned_is_the_one_needed(n, ranges):
    rng = np.random.default_rng(5)
    deviation = 0.1 / math.sqrt(3)
    known = Column(range=ranges, deviation=deviation)
    planned = plans.mean_width(known, n, 0.02)[0]
    bounds = [bound_of_mean(rng.uniform(-0.1, 0.1, n) - planned, known) for _ in range(50)]
    assert abs(np.median(bounds)) < 0.2 * planned


def bound_of_mean(x, known):
    return float(judge(x[:, None], [known], 0.02).bounds[0])


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_outcomes_planned_rarely_enough_pass_as_often_as_planned(share):
    rng, n, error = np.random.default_rng(0), 500, 0.02
    p = plans.passing_share(share, n, error, 0.8)
    passed = np.mean([binomial_bound(int(k), n, error) <= share for k in rng.binomial(n, p, 2000)])
    assert passed == pytest.approx(0.8, abs=0.03)
    needed, deviation = plans.mean_width(Column(values=(-share, 1 - share)), n, error)
    assert 0 < needed < share and deviation == pytest.approx(math.sqrt((share - needed) * (1 - share + needed)))


def test_the_most_events_that_pass():
    for n in (10, 60, 300):
        for share in (0.01, 0.05, 0.3):
            passing = [k for k in range(n) if binomial_bound(k, n, 0.05) <= share]
            assert plans.passable(share, n, 0.05) == max(passing, default=-1)


def test_plans_for_jumps_and_for_nothing_to_plan():
    assert plans.mean_width(Column(deviation=1.0, jump=100.0), 100, 0.05)[0] == pytest.approx(
        100 * binomial_bound(0, 100, 0.05)
    )
    assert plans.mean_width(Column(constant=True), 100, 0.05) == (0.0, 0.0)
    assert plans.mean_width(Column(deterministic=True, deviation=1.0), 100, 0.05) == (0.0, 0.0)
    widths = [plans.student_width(0.1, n, 0.02) for n in (1, 2, 3)]
    assert math.inf > widths[0] == widths[1] > widths[2]


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_all_looks_together_spend_no_more_than_allowed(confidence):
    spent = [plans.spend(confidence, look) for look in range(1, 60)]
    assert all(s > 0 for s in spent) and sum(spent) <= 1 - confidence
    assert sum(spent) == pytest.approx(1 - confidence)


@given(
    st.lists(st.integers(-5, 5) | st.floats(-1e6, 1e6), min_size=2, max_size=60),
    st.floats(0, 1) | st.sampled_from([0.0, 0.05, 0.5, 0.95, 1.0]),
)
def test_quantiles_are_numpys_to_the_bit(samples, q):
    x = np.array(samples, dtype=float)
    assert tails.quantile(x, q) == np.quantile(x, q)
    assert tails.quantile(np.column_stack([x, x])[:, 1], q) == np.quantile(x, q)  # a column of a table
    assert np.array_equal(x, np.array(samples, dtype=float))


def test_tails_go_on_beyond_what_was_seen():
    rng = np.random.default_rng(0)
    exponential, normal = rng.exponential(1.0, 2000), rng.standard_normal(2000)
    for share in (0.2, 0.01, 1e-4):
        assert tails.tail_quantile(exponential, share) == pytest.approx(-math.log(share), rel=0.15)
        assert tails.tail_mean(exponential, share) == pytest.approx(1 - math.log(share), rel=0.15)
    assert tails.tail_quantile(normal, 0.01) == pytest.approx(2.33, rel=0.1)
    assert 3.1 < tails.tail_quantile(normal, 0.001) < 3.6  # cautious
    assert tails.tail_quantile(normal[:10], 0.05) == pytest.approx(1.645, abs=1e-3)
    assert tails.tail_share(normal[:10], 1.645) == pytest.approx(0.05, abs=1e-3)
    assert tails.tail_mean(normal[:10], 0.05) == pytest.approx(2.063, abs=1e-3)
