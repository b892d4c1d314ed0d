"""The certificate: its bounds hold as often as they say, also at the end of a search that looked for luck."""

import json
import math

import numpy as np
import pytest
from scipy.optimize import LinearConstraint
from scipy.stats import binom

import pcces
from pcces.blackbox import limits
from pcces.core.bounds import student_bound
from pcces.core.certificate import Certificate
from pcces.core.limits import CVaR, Mean, Probability, Quantile


def no_more_often_than(wrong, runs, probability):
    """Whether `wrong` of `runs` is compatible with an error probability of at most `probability`."""
    return binom.sf(wrong - 1, runs, probability) > 1e-3


# -- at the end of a search -----------------------------------------------------------------------------------------------------


def noisy_problem(seed, constraint, scale=0.1):
    rng = np.random.default_rng(10_000 + seed)

    def fun(X):
        f = ((X - 1) ** 2).sum(1) + scale * rng.standard_normal(len(X))
        return f, constraint(X, rng)

    return fun


def search(fun, seed, budget=100, strategy="model", **options):
    """By quadratic models, which take a tenth of the time of Gaussian processes, where it is about certificates alone."""
    options |= {"max_evaluations": budget, "rng": seed, "strategy": strategy}
    return pcces.minimize(fun, [0.0, 0.0], bounds=[(-2, 2)] * 2, vectorized=True, **options)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "runs", "budget"), [("model", 200, 100), ("gp", 20, 50)])
def test_answers_near_an_active_constraint_are_truly_feasible(strategy, runs, budget):
    certified, wrong = 0, 0
    for seed in range(runs):
        fun = noisy_problem(seed, lambda X, rng: X.sum(1) - 1 + 0.3 * rng.standard_normal(len(X)), scale=0.3)
        res = search(fun, seed, budget=budget, confidence=0.9, strategy=strategy)
        certified += res.certificate.holds  # also where f did not get better, which is no success
        wrong += bool(res.certificate.holds and res.x.sum() > 1)
        assert bool(res.certificate.holds) == (max(res.certificate.upper_bounds) <= 0)
    assert certified > 0.6 * runs  # it does find certifiable answers
    assert no_more_often_than(wrong, runs, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("confidence", "strategy", "constraint"),
    [
        (0.95, "model", lambda X, rng: 1e-6 + 0.1 * rng.standard_normal(len(X))),
        (0.7, "model", lambda X, rng: 1e-6 + 0.1 * rng.standard_normal(len(X))),
        (0.7, "gp", lambda X, rng: 1e-6 + 0.1 * rng.standard_normal(len(X))),
        (0.7, "model", lambda X, rng: 1e-6 + 0.1 * (X**2).sum(1) + 0.1 * rng.standard_normal(len(X))),
        (0.7, "model", lambda X, rng: np.stack([X[:, 0], 1e-6 - X[:, 0]], 1) + 0.1 * rng.standard_normal((len(X), 2))),
    ],
    ids=["everywhere 0.95", "everywhere 0.7", "everywhere 0.7, gp", "bowl", "corridor"],
)
def test_where_nothing_is_feasible_certificates_are_as_rare_as_promised(confidence, strategy, constraint):
    """The sharpest case: every point misses feasibility by less than any sample can tell, so each certificate is false."""
    runs, budget = (120, 100) if strategy == "model" else (20, 50)
    options = {"confidence": confidence, "strategy": strategy, "budget": budget}
    wrong = sum(search(noisy_problem(seed, constraint), seed, **options).success for seed in range(runs))
    assert no_more_often_than(wrong, runs, 1 - confidence)


def test_rare_failures_with_a_stated_range():
    runs, wrong, alarms = 80, 0, 0
    for seed in range(runs):
        fun = noisy_problem(seed, lambda X, rng: 1e-6 + (rng.random(len(X)) < 0.3) - 0.3)
        res = search(fun, seed, confidence=0.8, constraint_range=[(-0.3, 0.7 + 1e-5)])
        alarms += res.certificate.method == "dependent"  # samples seldom look as if they depended on each other
        assert res.certificate.method == "betting" or not res.certificate.guaranteed
        wrong += res.success
    assert alarms < 5 and no_more_often_than(wrong, runs, 0.2)


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
            strategy="model",
        )
        wrong += bool(res.success and res.x[0] > 0.1)
    assert no_more_often_than(wrong, 20, 0.05)


@pytest.mark.filterwarnings("ignore::pcces.blackbox.options.TheoryWarning")
def test_noise_behind_a_start_that_fails():
    methods = []
    for seed in range(3):
        fun = noisy_problem(seed, lambda X, rng: X.sum(1) - 1 + 0.1 * rng.standard_normal(len(X)))

        def failing_at_the_start(X, fun=fun):
            f, c = fun(X)
            return np.where(np.all(X == 0, axis=1), np.nan, f), c

        methods.append(search(failing_at_the_start, seed, budget=400, samples=1).certificate.method)
    assert methods.count("t") >= 2  # one may look dependent by chance


def test_what_cannot_be_certified_is_not():
    fun = noisy_problem(0, lambda X, rng: -0.01 + 10 * rng.standard_normal(len(X)))
    res = search(fun, 0)
    assert not res.success and not res.certificate.holds
    assert res.status in (1, 2) and max(res.certificate.upper_bounds) > 0
    assert "Not certified" in str(res.certificate)
    assert "could not be certified" in res.message or "no feasible point" in res.message


def test_looks_feasible_but_could_not_be_certified():
    rng = np.random.default_rng(0)
    opt = pcces.Optimizer([0.0], bounds=[(-1, 1)], max_evaluations=60, rng=0)
    while not opt.stop():
        batch = opt.ask()
        k = len(batch)
        c = np.full(k, -0.5) + rng.standard_normal(k) * (3.0 if batch.phase == "certify" else 0.01)
        opt.tell(batch, (batch.points**2).sum(1), c)
    assert (opt.result.success, opt.result.status) == (False, 1)
    assert "looks feasible but could not be certified" in opt.result.message


def test_without_noise_repeats_say_what_they_exclude_and_a_statement_guarantees():
    def fun(x):
        return (x[0] - 1) ** 2, x[0] - 0.5

    res = pcces.minimize(fun, [0.0], bounds=[(-1, 2)], max_evaluations=300, rng=0)
    assert res.success and res.certificate.method == "repeats" and res.certificate.samples == 15
    assert (
        res.certificate.grade == "asymptotic"
        and "15 equal repeats exclude only what happens in more than 18 %" in res.message
    )
    assert "deterministic=True" in res.message
    stated = pcces.minimize(fun, [0.0], bounds=[(-1, 2)], max_evaluations=300, rng=0, deterministic=True)
    assert (
        stated.certificate.grade == "guaranteed" and stated.certificate.samples == 1 and "fooled" not in stated.message
    )
    assert "evaluations have no noise, as was stated" in stated.certificate.assumes
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
    assert res.certificate.holds
    first = next(i for i, (batch, *_) in enumerate(log) if batch.phase == "certify")
    assert all(batch.phase == "certify" for batch, *_ in log[first:])
    at_answer = [(f, c) for batch, f, c in log[first:] if np.array_equal(batch.points[0], res.x)]
    f, c = (np.concatenate(parts) for parts in zip(*at_answer))
    assert res.certificate.samples == len(c)
    assert res.constr == pytest.approx([c.mean()]) and res.fun == pytest.approx(f.mean())
    looks = len(log) - first
    assert res.certificate.upper_bounds == pytest.approx([student_bound(c, 0.01 if looks == 1 else 0.04)])
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
    assert opt.result.certificate.holds and opt.result.certificate.tested >= 2
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
    holds = Certificate(True, 0.95, (-0.2, -0.1), 400, "t", for_a_guarantee="state a range")
    assert str(holds).startswith(
        "Certified: with 95 % confidence all limits hold; largest upper bound -0.1; 400 fresh samples; Student t (asymptotic). "
        "It could be fooled by rare large values"
    )
    assert "all mean constraints are <= 0; largest" in holds.sentence(())
    assert str(holds).endswith("; for a guarantee state a range") and "once in 133 times" in str(holds)
    fails = Certificate(False, 0.95, (-0.2, 0.1), 400, "betting")
    assert (
        str(fails)
        == "Not certified: the largest upper bound is 0.1, but must be <= 0; 400 fresh samples; betting bound"
    )
    sure = Certificate(True, 0.95, (-0.2, -0.1), 400, "betting, binomial")
    assert str(sure).endswith("largest upper bound -0.1; 400 fresh samples; betting bound, binomial bound (guaranteed)")
    assert (holds.grade, fails.grade, sure.grade) == ("asymptotic", "not certified", "guaranteed")
    assert sure.guaranteed and not holds.guaranteed and not fails.guaranteed
    mixed = Certificate(True, 0.95, (-0.2, -0.1), 400, "betting, t")
    assert mixed.grade == "asymptotic" and len(mixed.assumes) == 3 and len(mixed.could_be_fooled_by) == 1
    free, failed = (Certificate(fine, 0.95, (), 0, "none") for fine in (True, False))
    assert str(free) == "Feasible: there are no constraints but the bounds" and free.guaranteed
    assert str(failed) == "Not certified: there was no point to test"
    one = Certificate(True, 0.95, (-0.2,), 1, "stated", tolerance=0.5)
    assert (
        "all mean constraints are <= 0.5; largest upper bound -0.2; 1 fresh sample; no noise" in one.sentence(())
        and len(one.assumes) == 1
    )
    for certificate in (holds, fails, sure, mixed, free, one):
        as_json = json.loads(json.dumps(certificate.to_dict()))
        assert as_json["upper_bounds"] == list(certificate.upper_bounds) and as_json["grade"] == certificate.grade
        assert as_json["assumes"] == list(certificate.assumes)
        assert as_json["could_be_fooled_by"] == list(certificate.could_be_fooled_by)
        assert Certificate.from_dict(as_json) == certificate


@pytest.mark.parametrize(("n", "said"), [(2, "78 %"), (15, "18 %"), (300, "0.99 %")])
def test_no_noise_seen_is_worded_by_what_equal_repeats_exclude(n, said):
    certificate = Certificate(True, 0.95, (-0.1,), n, "repeats")
    assert certificate.grade == "asymptotic"
    assert (
        f"none was seen, but {n} equal repeats exclude only what happens in more than {said} of the evaluations"
        in str(certificate)
    )
    assert binom.pmf(0, n, certificate.excluded) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("method", "holds", "grade"),
    [
        ("t", True, "asymptotic"),
        ("betting", True, "guaranteed"),
        ("exact", True, "asymptotic"),
        ("betting", False, "not certified"),
    ],
)
def test_certificates_of_a_time_before_grades(method, holds, grade):
    old = {"holds": holds, "confidence": 0.9, "upper_bounds": [-1.0], "samples": 9, "method": method, "tested": 2}
    certificate = Certificate.from_dict(old | {"tolerance": 0.0})
    assert (certificate.grade, certificate.tested, certificate.upper_bounds) == (grade, 2, (-1.0,))
    with pytest.raises(ValueError, match="it calls itself 'certain', but is"):
        Certificate.from_dict(old | {"grade": "certain"})
    with pytest.raises(ValueError, match="there is no method magic of certificates"):
        Certificate.from_dict(old | {"method": "t, magic"})


# -- noise that hides -----------------------------------------------------------------------------------------------------------


def rare_cost(seed, rate, size=1.0):
    """x0 <= 0.5 on the mean, by a cost that seldom comes, and is then large; nothing else is noisy."""
    rng = np.random.default_rng(seed)

    def fun(x):
        return -x[0], x[0] - 0.5 + size * ((rng.random() < rate) - rate) + 1e-9

    return fun


@pytest.mark.parametrize("rate", [0.05, 0.02])
def test_a_range_means_the_finite_sample_bound_also_where_no_noise_was_seen(rate):
    runs, wrong, certified = 25, 0, 0
    for seed in range(runs):
        span = (-1.5 - rate, 1.5)
        res = pcces.minimize(
            rare_cost(seed, rate), [0.0], bounds=[(-1, 1)], max_evaluations=400, rng=seed, strategy="model",
            constraint_range=[span],
        )  # fmt: skip
        assert res.certificate.method == "betting"
        wrong += bool(res.success and res.x[0] > 0.5)
        certified += res.success
    assert wrong <= 1 and certified > 12


def test_noise_that_shows_late_is_noticed_and_the_search_goes_on_as_a_noisy_one():
    noticed = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        opt = pcces.Optimizer([-1.0], bounds=[(-2, 2)], max_evaluations=1200, rng=seed)
        phases = []
        while not opt.stop():
            batch = opt.ask()
            phases.append(batch.phase)
            x = batch.points[:, 0]
            noise = np.where(x > 0, 0.1 * rng.standard_normal(len(x)), 0.0)  # x0 lies where there is none
            opt.tell(batch, (x - 1) ** 2 + noise, x - 0.5 + noise)
        noticed += opt.state.noise.present
        assert phases.count("start") > 1 and opt.result.certificate.method == "t"
        assert opt.history["samples_trial"][-5:].max() > 1
        assert not opt.result.success or opt.result.x[0] <= 0.5
    assert noticed == 10


def test_from_the_certificate_back_to_the_search():
    """The answer's repeats show noise that nothing showed before, early enough."""
    rng = np.random.default_rng(0)
    opt = pcces.Optimizer([0.0], bounds=[(-2, 2)], max_evaluations=2000, rng=0, max_iterations=12)
    phases = []
    while not opt.stop():
        batch = opt.ask()
        phases += [batch.phase] if not phases or phases[-1] != batch.phase else []
        x = batch.points[:, 0]
        noise = 0.05 * rng.standard_normal(len(x)) * ("certify" in phases)
        opt.tell(batch, (x - 1) ** 2 + noise, x - 0.5 + noise)
    first = phases.index("certify")
    assert phases[first + 1] == "start" and phases[-1] == "certify" and opt.result.certificate.method == "t"
    assert opt.result.nfev <= 2000 and opt.state.test.looks >= 1


def failing(seed):
    """An outcome of 0 or 1 that is 1 with probability 0.2 x^2, and an objective that wants x large."""
    rng = np.random.default_rng(seed)
    return lambda x: ((x[0] - 1) ** 2 + 0.01 * rng.standard_normal(), float(rng.random() < 0.2 * x[0] ** 2))


FORMS = {
    "seen": (lambda c: c - 0.05, {}, ("two values", "asymptotic")),
    "range": (lambda c: c - 0.05, {"constraint_range": [(-0.05, 0.95)]}, ("binomial", "guaranteed")),
    "true or false": (bool, {"limits": [Mean(at_most=0.05)]}, ("binomial", "guaranteed")),
    "probability": (float, {"limits": [Probability(at_most=0.05)]}, ("binomial", "guaranteed")),
}


@pytest.mark.parametrize("form", FORMS)
def test_two_values_are_recognised_and_bounded_exactly(form):
    convert, stated, how = FORMS[form]
    certified, reached = 0, []
    for seed in range(5):
        fun = failing(seed)

        def outcome(x, fun=fun):
            f, c = fun(x)
            return f, convert(c)

        res = pcces.minimize(outcome, [0.1], bounds=[(0, 1)], max_evaluations=3000, rng=seed, **stated)
        assert not res.success or 0.2 * res.x[0] ** 2 <= 0.05
        assert res.certificate.method == how[0] and res.certificate.grade in (how[1], "not certified")
        certified += res.success
        reached.append(res.x[0])
    assert certified >= 3 and np.median(reached) > 0.15


def test_a_failure_that_never_happened_is_not_certified_to_be_rare():
    """P(failure) <= 0.001, from a few hundred evaluations without one: they cannot know."""
    for f_noise in (0.0, 0.1):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            res = pcces.minimize(
                lambda x, rng=rng, f_noise=f_noise: (x[0] ** 2 + f_noise * rng.standard_normal(), (rng.random() < 0.002) - 0.001),
                [1.0], bounds=[(-1, 1)], max_evaluations=300, rng=seed,
            )  # fmt: skip
            assert not res.success


def test_noise_that_remembers_is_told():
    rng, wrong, seen = np.random.default_rng(0), 0, 0
    for seed in range(20):
        state = {"noise": rng.standard_normal()}

        def fun(x, state=state):
            state["noise"] = 0.95 * state["noise"] + math.sqrt(1 - 0.95**2) * rng.standard_normal()
            return (x[0] - 1) ** 2, x[0] - 0.5 + 0.3 * state["noise"]

        res = pcces.minimize(fun, [0.0], bounds=[(-2, 2)], max_evaluations=1500, rng=seed)
        wrong += bool(res.success and res.x[0] > 0.5)
        seen += "dependent" in res.certificate.method
    assert seen >= 18 and wrong <= 2


# -- other limits ---------------------------------------------------------------------------------------------------------------

TRUTHS = {
    "mean": (Mean(at_most=0.2), 0.7),
    "probability": (Probability(above=0.5, at_most=0.05), 1.0 - 0.1 * 1.6449),
    "quantile": (Quantile(0.9, at_most=0.3), 0.8 - 0.1 * 1.2816),
    "cvar": (CVaR(0.2, at_most=0.1), 0.6 - 0.1 * 1.3998),
}


@pytest.mark.parametrize("kind", TRUTHS)
def test_limits_of_all_kinds_are_certified_near_their_best(kind):
    """c = x - 0.5 plus normal noise of 0.1, and the objective wants x large."""
    limit, best = TRUTHS[kind]
    certified = wrong = near = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        res = pcces.minimize(
            lambda x, rng=rng: ((x[0] - 2) ** 2 + 0.05 * rng.standard_normal(), x[0] - 0.5 + 0.1 * rng.standard_normal()),
            [0.0], bounds=[(-2, 2)], max_evaluations=3000, rng=seed, limits=[limit],
        )  # fmt: skip
        certified += res.success
        wrong += bool(res.success and res.x[0] > best)
        assert res.success == (res.certificate.upper_bounds[0] <= 0)
        assert not res.success or res.constr[0] <= limit.at_most
        near += bool(res.x[0] > best - 0.08)
    assert certified >= 7 and wrong <= 1 and near >= 7
    assert (res.certificate.grade == "guaranteed") == (kind in ("probability", "quantile"))


@pytest.mark.parametrize("limit", [Probability(above=6.0, at_most=0.05), CVaR(0.1, at_most=6.0)])
def test_tails_that_grow_with_the_objective_are_certified(limit):
    """Shares of a portfolio: the mean is known, and what earns more varies more."""
    mean, risk, certified = np.array([0.2, 0.6, 1.4]), np.array([0.8, 4.0, 9.0]), 0
    for seed in range(4):
        res = pcces.minimize(
            lambda x, rng: (-x @ mean, -x @ (mean + risk * rng.standard_normal(3))),
            [0.8, 0.1, 0.1], bounds=[(0, 1)] * 3, constraints=LinearConstraint(np.ones(3), ub=1.0), limits=[limit],
            max_evaluations=3000, common_random_numbers=True, rng=seed,
        )  # fmt: skip
        z = 1.6449 if isinstance(limit, Probability) else 1.7550
        truth = -res.x @ mean + z * np.linalg.norm(res.x * risk)
        assert not res.success or truth <= 6.0
        certified += bool(res.success and res.x @ mean > 0.4)  # at the start it is 0.36, at the best 0.82 and 0.78
    assert certified >= 3


@pytest.mark.parametrize("stated", [{"limits": ["P(> 0) <= 0.1"]}, {"constraint_range": [(-9.0, 9.0)]}, {}])
def test_a_search_that_has_spent_all_its_error_probability_still_has_an_answer(stated):
    rng = np.random.default_rng(0)
    opt = pcces.Optimizer([0.0], bounds=[(-2, 2)], max_evaluations=200, rng=0, **stated)
    told(opt, lambda X, batch: (X[:, 0] ** 2 + 0.1 * rng.standard_normal(len(X)), rng.uniform(-2, -1, len(X))))
    before = limits.margin(opt.search)
    opt.state.test.spent = 1.0  # a last look took what was left
    assert np.all(np.isfinite(limits.margin(opt.search))) and np.all(limits.margin(opt.search) <= before)
    assert opt.result.certificate.holds


def test_limits_are_in_the_order_of_the_constraints():
    rng = np.random.default_rng(0)

    def fun(x):
        noise = 0.1 * rng.standard_normal(2)
        return ((x - 2) ** 2).sum(), [x[0] + noise[0], x[1] + noise[1]]

    limits = [Probability(above=1.0, at_most=0.1), "mean <= 0.5"]
    res = pcces.minimize(fun, [0.0, 0.0], bounds=[(-2, 2)] * 2, max_evaluations=4000, rng=0, limits=limits)
    assert res.success and res.certificate.method == "binomial, t"
    assert 0.75 < res.x[0] <= 1 - 0.12816 and 0.45 < res.x[1] <= 0.5
    assert res.constr[0] < 0.1 and res.constr[1] == pytest.approx(res.x[1], abs=0.02)
    with pytest.raises(ValueError, match="limits has 1 limits for 2 constraints"):
        pcces.minimize(fun, [0.0, 0.0], limits=[0.5])
    with pytest.raises(ValueError, match="an equality is about a mean"):
        pcces.minimize(fun, [0.0, 0.0], limits=[0.5, 0.0], equalities=[0])


def test_the_objective_may_be_a_quantile():
    """The mean falls with x, but the noise grows: the best median is elsewhere than the best 0.95-quantile."""

    def solve(objective, seed):
        rng = np.random.default_rng(seed)
        return pcces.minimize(
            lambda x, rng=rng: -x[0] + 0.5 * x[0] ** 2 * rng.standard_normal(), [0.2], bounds=[(0.0, 1.5)],
            max_evaluations=4000, rng=seed, objective=objective,
        )  # fmt: skip

    for objective, best in ((Quantile(0.95), 1 / 1.6449), (CVaR(0.2), 1 / 1.3998)):
        answers = [solve(objective, seed) for seed in range(3)]
        assert np.median([res.x[0] for res in answers]) == pytest.approx(best, abs=0.35)
    assert solve(Mean(), 0).x[0] > 1.3
