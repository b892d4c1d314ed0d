"""The certificate: its bounds hold as often as they say, also at the end of a search that looked for luck."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binom, chi2

import pcces
from pcces.core.certificate import (
    LARGEST_BET,
    Certificate,
    betting_bound,
    expected_width,
    plausible_deviation,
    spend,
    t_bound,
    upper_bounds,
)


def no_more_often_than(wrong, runs, probability):
    """Whether `wrong` of `runs` is compatible with an error probability of at most `probability`."""
    return binom.sf(wrong - 1, runs, probability) > 1e-3


# -- the bounds -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("error", [0.05, 0.3])
def test_the_t_bound_is_exact_for_normal_noise(n, error):
    rng = np.random.default_rng(0)
    runs = 4000
    wrong = sum(t_bound(3.0 + 2.0 * rng.standard_normal((n, 1)), error)[0] < 3.0 for _ in range(runs))
    assert no_more_often_than(wrong, runs, error)
    assert wrong > 0.85 * error * runs  # and not wastefully wide


@pytest.mark.parametrize("correlated", [False, True])
def test_the_t_bound_holds_jointly_over_constraints(correlated):
    rng = np.random.default_rng(1)
    runs, error, truth = 3000, 0.1, np.array([0.0, 1.0, -5.0, 2.0])
    wrong = 0
    for _ in range(runs):
        noise = rng.standard_normal((8, 4))
        if correlated:
            noise = 0.3 * noise + noise[:, :1]
        wrong += bool(np.any(t_bound(truth + noise, error) < truth))
    assert no_more_often_than(wrong, runs, error)
    assert correlated or wrong > 0.8 * error * runs


def test_one_sample_bounds_nothing():
    assert t_bound(np.array([[-9.0, -9.0]]), 0.05).tolist() == [math.inf, math.inf]


DISTRIBUTIONS = {
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "rare failures": (lambda rng, n: (rng.random(n) < 0.05).astype(float), 0.05),
    "mostly failures": (lambda rng, n: (rng.random(n) < 0.9).astype(float), 0.9),
    "skewed": (lambda rng, n: rng.beta(0.2, 2.0, n), 0.2 / 2.2),
    "skewed the other way": (lambda rng, n: 1 - rng.beta(0.2, 2.0, n), 2.0 / 2.2),
    "constant": (lambda rng, n: np.full(n, 0.5), 0.5),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [5, 60])
def test_the_betting_bound_holds_for_any_bounded_noise(name, n):
    draw, mean = DISTRIBUTIONS[name]
    rng = np.random.default_rng(2)
    runs, error, low, high = 300, 0.2, -3.0, 5.0
    truth = low + (high - low) * mean
    wrong = 0
    for _ in range(runs):
        bound = betting_bound(low + (high - low) * draw(rng, n)[:, None], error, np.array([low]), np.array([high]))[0]
        assert low <= bound <= high
        wrong += bound < truth - 1e-9
    assert no_more_often_than(wrong, runs, error)


def test_the_betting_bound_tightens_and_knows_the_variance():
    rng = np.random.default_rng(3)
    zero, one = np.zeros(1), np.ones(1)
    wide, narrow = rng.random((2000, 1)), 0.45 + 0.1 * rng.random((2000, 1))
    by_size = [betting_bound(narrow[:n], 0.05, zero, one)[0] for n in (20, 200, 2000)]
    assert by_size[0] > by_size[1] > by_size[2] > 0.5 > by_size[2] - 0.02
    assert betting_bound(wide, 0.05, zero, one)[0] - 0.5 > 3 * (by_size[2] - 0.5)
    assert betting_bound(wide[:0], 0.05, zero, one)[0] == 1.0  # no sample, no knowledge


def by_the_book(x, error, steps=50):
    """The hedged capital of Waudby-Smith and Ramdas, one bet after the other, on samples from 0 to 1."""

    def rejected(m):
        wealth, total, squares, variance = 1.0, 0.5, 0.25, 0.25
        for t, value in enumerate(x, 1):
            bet = min(math.sqrt(2 * math.log(1 / error) / (variance * len(x))), 0.75 / (1 - m))
            wealth *= 1 + bet * (m - value)
            if wealth >= 1 / error:
                return True
            total += value
            squares += (value - total / (t + 1)) ** 2
            variance = squares / (t + 1)
        return False

    low, high = 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return high


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_the_betting_bound_is_that_of_the_book(name, n):
    samples = DISTRIBUTIONS[name][0](np.random.default_rng(n), n)
    bound = betting_bound(samples[:, None], 0.1, np.zeros(1), np.ones(1))[0]
    assert bound == pytest.approx(by_the_book(samples, 0.1), abs=1e-10)


def test_the_betting_bound_holds_jointly():
    rng = np.random.default_rng(4)
    runs, wrong = 200, 0
    truth = np.array([0.5, 0.05, 0.2 / 2.2])
    for _ in range(runs):
        samples = np.column_stack([DISTRIBUTIONS[name][0](rng, 80) for name in ("uniform", "rare failures", "skewed")])
        wrong += bool(np.any(betting_bound(samples, 0.2, np.zeros(3), np.ones(3)) < truth))
    assert no_more_often_than(wrong, runs, 0.2)
    joint = betting_bound(samples, 0.2, np.zeros(3), np.ones(3))
    alone = betting_bound(samples[:, :1], 0.2, np.zeros(1), np.ones(1))
    assert joint[0] > alone[0]  # the error is shared


def test_a_sample_outside_its_stated_range_is_an_error():
    for outside in (1.2, -0.2):
        with pytest.raises(ValueError, match=r"constraint 1 has a sample outside its stated range \[0, 1\]"):
            betting_bound(np.array([[0.5, outside]]), 0.05, np.zeros(2), np.ones(2))
    betting_bound(np.array([[0.0, 1.0]]), 0.05, np.zeros(2), np.ones(2))  # its ends belong to it


def test_upper_bounds_choose_by_what_is_known():
    samples = np.random.default_rng(0).random((50, 2))
    bounds, method = upper_bounds(samples, 0.05)
    assert method == "t" and np.array_equal(bounds, t_bound(samples, 0.05))
    assert np.array_equal(upper_bounds(samples, 0.05, noise=9.0)[0], t_bound(samples, 0.05, 9.0)) and bounds.max() < 1
    bounds, method = upper_bounds(samples, 0.05, [(0, 1), (0, 2)])
    assert method == "betting"
    assert np.array_equal(bounds, betting_bound(samples, 0.05, np.zeros(2), np.array([1.0, 2.0])))


@pytest.mark.parametrize("n", [30, 600])
@pytest.mark.parametrize("ranges", [None, [(-2.0, 2.0)], [(-5.2, 3.2)], [(-1.1, 9.0)]])
def test_the_margin_planned_is_the_one_needed(n, ranges):
    rng = np.random.default_rng(5)
    deviation = 0.1 / math.sqrt(3)
    planned = expected_width(np.array([deviation]), n, 0.02, ranges)[0]
    if ranges is not None and planned + 0.1 > -ranges[0][0]:  # so few samples of so wide a range can say nothing
        assert (n, *ranges) == (30, (-1.1, 9.0))
        assert upper_bounds(rng.uniform(-1.1, -0.9, (n, 1)), 0.02, ranges)[0][0] > 0
        return
    bounds = [upper_bounds(rng.uniform(-0.1, 0.1, (n, 1)) - planned, 0.02, ranges)[0][0] for _ in range(50)]
    assert abs(np.median(bounds)) < 0.1 * planned


def test_a_margin_is_planned_for_two_samples_at_least():
    width = [expected_width(np.array([0.1]), samples, 0.02)[0] for samples in (1, 2, 3)]
    assert math.inf > width[0] == width[1] > width[2]
    bounded = expected_width(np.array([0.1]), 2, 0.02, [(-5.2, 3.2)])[0]  # no bet on so few could be large enough
    assert bounded == pytest.approx(3.2 / LARGEST_BET)


def test_margins_are_planned_jointly_and_up_to_the_ends_of_a_range():
    ranges = [(-5.2, 3.2)]
    both = expected_width(np.array([0.1, 0.1]), 100, 0.05, 2 * ranges)
    assert both[0] == both[1] == expected_width(np.array([0.1]), 100, 0.025, ranges)[0]
    at_zero, beyond = (expected_width(np.array([0.1]), 100, 0.05, [(-1.0, high)])[0] for high in (0.0, 1e-6))
    assert 0 < at_zero == pytest.approx(beyond, rel=1e-4)


def test_samples_that_vary_too_little_count_with_the_noise_of_the_search():
    rng = np.random.default_rng(6)
    normal = rng.standard_normal((20, 1))
    assert t_bound(normal, 0.05, noise=1.0) == pytest.approx(t_bound(normal, 0.05))  # nothing suspicious about them
    calm = np.full((20, 1), -0.05)
    assert plausible_deviation(calm, 0.0) == 0.0  # not what rounding makes of it
    assert t_bound(calm, 0.05, noise=0.2) == pytest.approx(-0.05 + t_bound(np.zeros((20, 1)), 0.05, noise=0.2))
    assert t_bound(calm, 0.05, noise=0.2) > 0 > t_bound(calm, 0.05)
    wrong = sum(t_bound(rng.standard_normal((5, 1)), 0.1, noise=1.0)[0] < 0 for _ in range(4000))
    assert 0.05 < wrong / 4000 < 0.1  # cautious, not blind


@pytest.mark.parametrize("n", [2, 5, 40])
def test_less_than_nine_samples_in_ten_would_vary_is_implausible(n):
    samples = np.random.default_rng(n).standard_normal((n, 1))
    samples *= math.sqrt(chi2.ppf(0.1, n - 1) / (n - 1)) / samples.std(ddof=1)  # as much as one sample in ten, or less
    assert plausible_deviation(0.999 * samples, 1.0) == 1.0
    assert plausible_deviation(1.001 * samples, 1.0) == pytest.approx(1.001 * samples.std(ddof=1))


def test_a_value_never_seen_to_vary_needs_samples_all_the_same():
    assert t_bound(np.full((13, 1), -1.0), 0.05)[0] == math.inf
    assert t_bound(np.full((14, 1), -1.0), 0.05)[0] == -1.0


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_all_looks_together_spend_no_more_than_allowed(confidence):
    spent = [spend(confidence, look) for look in range(1, 60)]
    assert all(s > 0 for s in spent) and sum(spent) <= 1 - confidence
    assert sum(spent) == pytest.approx(1 - confidence)


# -- at the end of a search -----------------------------------------------------------------------------------------------------


def noisy_problem(seed, constraint, scale=0.1):
    rng = np.random.default_rng(10_000 + seed)

    def fun(X):
        f = ((X - 1) ** 2).sum(1) + scale * rng.standard_normal(len(X))
        return f, constraint(X, rng)

    return fun


def search(fun, seed, budget=100, **options):
    return pcces.minimize(
        fun, [0.0, 0.0], bounds=[(-2, 2)] * 2, vectorized=True, max_evaluations=budget, rng=seed, **options
    )


@pytest.mark.slow
def test_answers_near_an_active_constraint_are_truly_feasible():
    runs, certified, wrong = 200, 0, 0
    for seed in range(runs):
        fun = noisy_problem(seed, lambda X, rng: X.sum(1) - 1 + 0.3 * rng.standard_normal(len(X)), scale=0.3)
        res = search(fun, seed, budget=100, confidence=0.9)
        certified += res.success
        wrong += bool(res.success and res.x.sum() > 1)
        assert res.success == bool(res.certificate.holds) == (max(res.certificate.upper_bounds) <= 0)
    assert certified > 0.6 * runs  # it does find certifiable answers
    assert no_more_often_than(wrong, runs, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("confidence", "constraint"),
    [
        (0.95, lambda X, rng: 1e-6 + 0.1 * rng.standard_normal(len(X))),
        (0.7, lambda X, rng: 1e-6 + 0.1 * rng.standard_normal(len(X))),
        (0.7, lambda X, rng: 1e-6 + 0.1 * (X**2).sum(1) + 0.1 * rng.standard_normal(len(X))),
        (0.7, lambda X, rng: np.stack([X[:, 0], 1e-6 - X[:, 0]], 1) + 0.1 * rng.standard_normal((len(X), 2))),
    ],
    ids=["everywhere 0.95", "everywhere 0.7", "bowl", "corridor"],
)
def test_where_nothing_is_feasible_certificates_are_as_rare_as_promised(confidence, constraint):
    """The sharpest case: every point misses feasibility by less than any sample can tell, so each certificate is false."""
    runs = 120
    wrong = sum(search(noisy_problem(seed, constraint), seed, confidence=confidence).success for seed in range(runs))
    assert no_more_often_than(wrong, runs, 1 - confidence)


def test_rare_failures_with_a_stated_range():
    runs, wrong = 80, 0
    for seed in range(runs):
        fun = noisy_problem(seed, lambda X, rng: 1e-6 + (rng.random(len(X)) < 0.3) - 0.3)
        res = search(fun, seed, confidence=0.8, constraint_range=[(-0.3, 0.7 + 1e-5)])
        assert res.certificate.method == "betting"
        wrong += res.success
    assert no_more_often_than(wrong, runs, 0.2)


def test_a_stated_range_leaves_answers_that_can_be_certified():
    certified = 0
    for seed in range(6):
        fun = noisy_problem(seed, lambda X, rng: X.sum(1) - 1 + 0.1 * rng.uniform(-1, 1, len(X)))
        certified += search(fun, seed, budget=2000, constraint_range=[(-5.2, 3.2)]).success
    assert certified >= 4  # 6 of 6 by the t bound


@pytest.mark.parametrize("rate", [0.3, 0.05])
def test_rare_failures_without_a_stated_range(rate):
    runs, wrong = 60, 0
    for seed in range(runs):
        fun = noisy_problem(seed, lambda X, rng: 1e-6 + (rng.random(len(X)) < rate) - rate)
        wrong += search(fun, seed, confidence=0.8).success
    assert no_more_often_than(wrong, runs, 0.2)


def test_noise_that_begins_away_from_the_start():
    wrong = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        res = pcces.minimize(
            lambda x, rng=rng: (-x[0], float(rng.random() < x[0]) - 0.1),
            [0.0],
            bounds=[(0, 1)],
            max_evaluations=400,
            rng=seed,
        )
        wrong += bool(res.success and res.x[0] > 0.1)
    assert no_more_often_than(wrong, 20, 0.05)


@pytest.mark.filterwarnings("ignore::pcces.blackbox.options.TheoryWarning")
def test_noise_behind_a_start_that_fails():
    fun = noisy_problem(0, lambda X, rng: X.sum(1) - 1 + 0.1 * rng.standard_normal(len(X)))

    def failing_at_the_start(X):
        f, c = fun(X)
        return np.where(np.all(X == 0, axis=1), np.nan, f), c

    assert search(failing_at_the_start, 0, budget=400, samples=1).certificate.method == "t"


def test_what_cannot_be_certified_is_not():
    fun = noisy_problem(0, lambda X, rng: -0.01 + 10 * rng.standard_normal(len(X)))
    res = search(fun, 0)
    assert not res.success and not res.certificate.holds
    assert res.status in (1, 2) and max(res.certificate.upper_bounds) > 0
    assert "NOT certified" in str(res.certificate)
    assert "could not be certified" in res.message or "no feasible point" in res.message


def test_looks_feasible_but_could_not_be_certified():
    rng = np.random.default_rng(0)
    opt = pcces.Optimizer([0.0], bounds=[(-1, 1)], max_evaluations=60, rng=0)
    while not opt.stop():
        batch = opt.ask()
        k = len(batch)
        c = np.full(k, -0.5) + rng.standard_normal(k) * (30.0 if batch.phase == "certify" else 0.01)
        opt.tell(batch, (batch.points**2).sum(1), c)
    assert (opt.result.success, opt.result.status) == (False, 1)
    assert "looks feasible but could not be certified" in opt.result.message


def test_without_noise_the_certificate_is_exact():
    res = pcces.minimize(lambda x: ((x[0] - 1) ** 2, x[0] - 0.5), [0.0], bounds=[(-1, 2)], max_evaluations=300, rng=0)
    assert res.success and res.certificate.method == "exact" and res.certificate.samples == 7
    assert res.certificate.upper_bounds == pytest.approx((res.x[0] - 0.5,), abs=1e-12)
    assert res.x[0] == pytest.approx(0.5, abs=1e-4) and res.x[0] <= 0.5


# -- fresh samples --------------------------------------------------------------------------------------------------------------


def told(opt, values):
    """Run an optimizer to its end; returns all batches with what they were told."""
    log = []
    while not opt.stop():
        batch = opt.ask()
        f, c = values(np.asarray(batch.points), batch)
        opt.tell(batch, f, c)
        log.append((batch, f, c))
    return log


def test_the_certificate_uses_its_own_samples_only():
    rng = np.random.default_rng(5)

    def values(X, batch):
        k = len(X)
        return (X**2).sum(1) + 0.1 * rng.standard_normal(k), X.sum(1) - 1 + 0.1 * rng.standard_normal(k)

    opt = pcces.Optimizer([0.0, 0.0], bounds=[(-2, 2)] * 2, max_evaluations=400, rng=3)
    log = told(opt, values)
    res = opt.result
    assert res.success
    first = next(i for i, (batch, *_) in enumerate(log) if batch.phase == "certify")
    assert all(batch.phase == "certify" for batch, *_ in log[first:])
    at_answer = [(f, c) for batch, f, c in log[first:] if np.array_equal(batch.points[0], res.x)]
    f, c = (np.concatenate(parts) for parts in zip(*at_answer))
    assert res.certificate.samples == len(c)
    assert res.constr == pytest.approx([c.mean()]) and res.fun == pytest.approx(f.mean())
    looks = len(log) - first
    assert res.certificate.upper_bounds == pytest.approx(t_bound(c[:, None], spend(0.95, looks)))
    seeds = np.concatenate([batch.seeds for batch, *_ in log])
    fresh = np.concatenate([batch.seeds for batch, *_ in log[first:]])
    assert np.isin(seeds, fresh).sum() == len(fresh)  # no random number was seen before


@pytest.mark.parametrize("common", [False, True])
def test_luck_during_the_search_is_worth_nothing(common):
    rng = np.random.default_rng(6)

    def values(X, batch):
        k = len(X)
        truth = 0.2 if batch.phase == "certify" else -1.0
        return (X**2).sum(1) + 0.1 * rng.standard_normal(k), truth + 0.1 * rng.standard_normal(k)

    opt = pcces.Optimizer([0.5, 0.5], max_evaluations=500, rng=3, common_random_numbers=common)
    told(opt, values)
    assert not opt.result.success and max(opt.result.certificate.upper_bounds) > 0.1


def test_the_bounds_of_an_uncertified_answer_are_its_own():
    rng = np.random.default_rng(9)

    def values(X, batch):
        shift = 10 * np.abs(X).max(1) if batch.phase == "certify" else -1.0  # each candidate is bad in its own way
        return (X**2).sum(1) + 0.1 * rng.standard_normal(len(X)), shift + 0.1 * rng.standard_normal(len(X))

    opt = pcces.Optimizer([0.5, 0.5], max_evaluations=500, rng=3)
    log = told(opt, values)
    res = opt.result
    at_answer = [c for batch, _, c in log if batch.phase == "certify" and np.array_equal(batch.points[0], res.x)]
    assert not res.success and res.certificate.tested > 1
    assert res.certificate.samples == sum(map(len, at_answer))
    assert res.certificate.upper_bounds[0] == pytest.approx(10 * np.abs(res.x).max(), abs=0.5)


def test_a_candidate_that_fails_is_followed_by_another():
    rng = np.random.default_rng(7)
    first = []

    def values(X, batch):
        k = len(X)
        c = X.sum(1) - 1 + 0.1 * rng.standard_normal(k)
        if batch.phase == "certify":
            first.append(X[0])
            c = c + 5.0 * np.all(first[0] == X, axis=1)  # the first candidate turns out to be bad
        return ((X - 1) ** 2).sum(1) + 0.1 * rng.standard_normal(k), c

    opt = pcces.Optimizer([0.0, 0.0], bounds=[(-2, 2)] * 2, max_evaluations=1000, rng=1)
    told(opt, values)
    assert opt.result.success and opt.result.certificate.tested >= 2
    assert not np.array_equal(opt.result.x, first[0])


def test_an_evaluation_that_fails_while_certifying_disqualifies():
    rng = np.random.default_rng(8)

    def values(X, batch):
        f = ((X - 1) ** 2).sum(1) + 0.1 * rng.standard_normal(len(X))
        if batch.phase == "certify":
            f[0] = np.nan
        return f, X.sum(1) - 1 + 0.1 * rng.standard_normal(len(X))

    opt = pcces.Optimizer([0.0, 0.0], bounds=[(-2, 2)] * 2, max_evaluations=400, rng=1)
    told(opt, values)
    assert not opt.result.success


def test_certificate_in_words_and_as_data():
    holds = Certificate(True, 0.95, (-0.2, -0.1), 400, "t")
    fails = Certificate(False, 0.95, (-0.2, 0.1), 400, "betting")
    words = "feasible with 95 % confidence: every upper bound is at most 0 (worst -0.1; 400 fresh samples, t bound)"
    assert str(holds) == words
    assert str(fails) == "NOT certified: the worst upper bound is 0.1, above 0 (400 fresh samples, betting bound)"
    exact = Certificate(True, 0.95, (-0.2,), 1, "exact", tolerance=0.5)
    assert str(exact) == "feasible: every upper bound is at most 0.5 (worst -0.2; evaluations without noise)"
    free, failed = (Certificate(fine, 0.95, (), 0, "exact") for fine in (True, False))
    assert str(free) == "feasible: there are no constraints but the bounds"
    assert str(failed) == "NOT certified: the worst upper bound is -inf, above 0 (evaluations without noise)"
    assert json.loads(json.dumps(holds.to_dict()))["upper_bounds"] == [-0.2, -0.1]
    assert Certificate.from_dict(json.loads(json.dumps(holds.to_dict()))) == holds
