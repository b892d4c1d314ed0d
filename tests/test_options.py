"""Every option changes what it says it changes. The last test checks that none is without a test here."""

import math
from dataclasses import fields

import numpy as np
import pytest

import pcces
from pcces.blackbox.options import PAPER, PRESETS, make_options
from pcces.core.limits import CVaR, Mean, Probability

COVERED: set[str] = set()


def shows(*names):
    """Mark a test as the one that shows what these options change."""
    COVERED.update(names)
    return lambda test: test


class Run:
    """A search on (x - target)^2 under x.sum() <= limit, with everything it asked for."""

    def __init__(self, noise=0.0, x0=(0.0, 0.0), target=1.0, limit=1.0, constrained=True, unit=1.0, seed=0, **options):
        options = {"bounds": [(-2, 2)] * len(x0), "max_evaluations": 400, "rng": seed, "strategy": "model", **options}
        opt = pcces.Optimizer(np.array(x0), **options)
        rng = np.random.default_rng(seed)
        self.batches = []
        while not opt.stop():
            batch = opt.ask()
            X = np.asarray(batch.points)
            e = noise * rng.standard_normal((2, len(X)))
            f = unit * (((X - target) ** 2).sum(1) + e[0])
            opt.tell(batch, f, X.sum(1) - limit + e[1] if constrained else None)
            self.batches.append(batch)
        self.opt, self.history, self.res = opt, opt.history, opt.result

    def phase(self, name):
        return [batch for batch in self.batches if batch.phase == name]

    @property
    def first_step(self):
        """From x0 to the first trial point, in units of the box."""
        return (self.phase("trial")[0].points[0] - self.batches[0].points[0]) / 4


# -- Algorithm 1 ----------------------------------------------------------------------------------------------------------------


@shows("population")
def test_population():
    assert {len(batch) for batch in Run(population=22).phase("sample")} == {22}
    assert {len(batch) for batch in Run().phase("sample")} == {12}  # 2 (4 + 3 ln 2)
    for wrong in (7, 2):
        with pytest.raises(ValueError, match=f"population must be an even number of at least 4 .* got {wrong}"):
            Run(population=wrong)


@shows("sigma0", "sigma_es0")
def test_sigma0_and_sigma_es0():
    def spread(**options):
        return np.std(Run(population=200, max_evaluations=1000, **options).phase("sample")[0].points / 4)

    assert spread(sigma0=0.1) == pytest.approx(0.1, rel=0.1)
    assert spread(sigma0=0.01) == pytest.approx(0.01, rel=0.1)
    assert spread(sigma0=0.1, sigma_es0=0.03) == pytest.approx(0.03, rel=0.1)
    run = Run(sigma0=0.1, sigma_es0=0.03, gamma=2.0)
    assert run.history["sigma"][0] in (0.05, 0.2)  # the step size is another thing


@shows("sigma_es")
def test_sigma_es():
    tied, fixed = Run(sigma_es="tied", sigma_es0=0.3), Run(sigma_es="fixed")
    assert tied.history["sigma_es"] == pytest.approx(2 * tied.history["sigma"])
    assert np.ptp(tied.history["sigma_es"]) > 0
    assert set(fixed.history["sigma_es"]) == {0.15}
    adapted = Run(noise=0.5, sigma_es="adapted", max_evaluations=1500)
    assert np.all(adapted.history["sigma_es"] >= adapted.history["sigma"] * (1 - 1e-12))
    assert np.any(adapted.history["sigma_es"] > 1.5 * adapted.history["sigma"])
    noisy_and_tied = Run(noise=0.5, sigma_es="tied", max_evaluations=1500)
    assert noisy_and_tied.history["sigma_es"] == pytest.approx(noisy_and_tied.history["sigma"])


@shows("kappa")
def test_kappa():
    assert Run(kappa=1e9).history["success"].sum() == 0
    assert Run(kappa=1e-4).history["success"].sum() > 5
    # it is in units of the spread of f: the scale of f changes no decision
    ordinary, large = Run(strategy="gaussian", kappa=1.0), Run(strategy="gaussian", kappa=1.0, unit=2.0**20)
    assert np.array_equal(ordinary.history["success"], large.history["success"])
    assert 0 < ordinary.history["success"].sum() < len(ordinary.history)


def ratios(run):
    sigma = np.concatenate([[0.15], run.history["sigma"]])
    success = run.history["success"].astype(bool)
    return sigma[1:][success] / sigma[:-1][success], sigma[1:][~success] / sigma[:-1][~success]


@shows("gamma", "shrink")
def test_gamma_and_shrink():
    up, down = ratios(Run(gamma=1.2, sigma_max=10.0, strategy="cma"))
    assert len(up) > 3 and len(down) > 3
    assert up == pytest.approx(1.2) and down == pytest.approx(1 / 1.2)
    up, down = ratios(Run(gamma=1.2, shrink=0.6, sigma_max=10.0, strategy="cma"))
    assert up == pytest.approx(1.2) and down == pytest.approx(0.6)


@shows("sigma_min", "sigma_max")
def test_sigma_min_and_sigma_max():
    run = Run(sigma_min=0.1, sigma_max=0.2, gamma=2.0)
    assert (run.history["sigma"].min(), run.history["sigma"].max()) == (0.1, 0.2)
    free = Run(sigma_max=9.0, gamma=2.0)
    assert free.history["sigma"].min() < 0.1 and free.history["sigma"].max() > 0.2


@shows("d_max")
def test_d_max():
    assert np.linalg.norm(Run(strategy="gaussian").first_step) > 0.02
    assert np.linalg.norm(Run(strategy="gaussian", d_max=0.1).first_step) == pytest.approx(0.15 * 0.1)


@shows("shaping")
def test_shaping():
    def step(shaping, unit=1.0):
        return Run(strategy="gaussian", shaping=shaping, unit=unit, constrained=False, bounds=None).first_step

    assert step("raw", 0.5) == pytest.approx(0.5 * step("raw"))
    for shaping in ("standardised", "rank"):
        assert step(shaping, 0.5) == pytest.approx(step(shaping))
    assert not np.allclose(step("rank"), step("standardised"))
    assert not np.allclose(step("raw"), step("standardised"))


# -- constraints ----------------------------------------------------------------------------------------------------------------


@shows("eps_c")
def test_eps_c():
    def worst_accepted(eps_c):
        history = Run(strategy="cma", eps_c=eps_c).history
        before = np.concatenate([[0.15], history["sigma"][:-1]])
        accepted = history["success"].astype(bool)
        return (history["constr"][accepted, 0] / before[accepted]).max()

    assert worst_accepted(0.0) <= 0
    assert 0 < worst_accepted(1.0) <= 1.0


@shows("equality_tolerance")
def test_equality_tolerance():
    for tolerance in (1e-2, 1e-6):
        run = Run(equalities=[0], equality_tolerance=tolerance, limit=0.4, max_evaluations=1000)
        assert run.res.success and abs(run.res.x.sum() - 0.4) <= tolerance * (1 + 1e-9)
        assert run.res.x == pytest.approx([0.2, 0.2], abs=2e-2)
    wide = Run(equalities=[0], equality_tolerance=0.1, limit=0.4, max_evaluations=1000)
    assert wide.res.x.sum() == pytest.approx(0.5, abs=1e-3)  # it is used to the full


@shows("constraint_z")
def test_constraint_z():
    def depth(z):
        """How far inside the accepted points are."""
        values = []
        for seed in range(6):
            run = Run(noise=0.3, constraint_z=z, strategy="cma", seed=seed, max_evaluations=600)
            values.append(run.history["constr"][run.history["success"].astype(bool)].mean())
        return np.mean(values)

    assert depth(2.0) < depth(-2.0) - 0.05


@shows("restoration", "rho")
def test_restoration_and_rho():
    def way_back(**options):
        """f and violation of the incumbents from an infeasible start, where f pulls the other way."""
        run = Run(x0=(1.5, 1.5), target=2.0, limit=1.0, strategy="cma", sigma0=0.02, **options)
        return run.history["fun"], np.maximum(run.history["constr"][:, 0], 0)

    f, broken = way_back(restoration="violation")
    assert np.all(np.diff(broken) <= 0) and broken[-1] == 0  # straight back, whatever f says
    lost = broken > 0
    assert lost.sum() > 3 and np.any(np.diff((f + 0.01 * broken)[lost]) > 0)
    f, broken = way_back(restoration="merit", rho=0.01)
    assert np.all(np.diff(f + 0.01 * broken) <= 0) and broken[-1] > 0  # not at that price
    assert f[-1] < 0.1 * f[0]  # but on to the minimum of the merit: samples are ranked by it, too
    f, broken = way_back(restoration="merit", rho=1000.0)
    assert broken[-1] == 0 and np.all(np.diff((f + 1000 * broken)[broken > 0]) <= 0)


@shows("anneal")
def test_anneal():
    plain, annealed = Run(strategy="cma"), Run(strategy="cma", anneal=(0.5, 15))
    assert np.all(plain.history["constr"] <= 0)
    early = annealed.history["constr"][:10]
    assert early.max() > 0.05  # accepted although infeasible
    assert early.max() <= 0.5
    accepted_late = annealed.history["success"].astype(bool) & (np.arange(len(annealed.history)) >= 15)
    assert np.all(annealed.history["constr"][accepted_late][-1] <= 0)
    assert annealed.res.success and annealed.res.constr[0] <= 0


# -- estimation -----------------------------------------------------------------------------------------------------------------


@shows("deterministic")
def test_deterministic():
    found_out, told = Run(), Run(deterministic=True)
    assert (len(found_out.batches[0]), len(told.batches[0])) == (2, 1)
    certificates = found_out.res.certificate, told.res.certificate
    assert [c.method for c in certificates] == ["repeats", "stated"] and [c.samples for c in certificates] == [20, 1]
    assert [c.grade for c in certificates] == ["asymptotic", "guaranteed"]
    assert Run(noise=0.1).res.certificate.method == "t"
    assert set(found_out.history["samples_trial"]) == set(told.history["samples_trial"]) == {1}
    assert {len(batch) for batch in told.phase("trial")} == {1}
    twice = [len(batch) == 2 for batch in found_out.phase("trial")]  # one evaluation in so many is a repeat of x_k
    assert 0.3 < np.mean(twice) < 0.7


def test_the_option_of_before_says_what_took_its_place():
    with pytest.raises(TypeError, match=r"the option noisy no longer exists: .* deterministic=True"):
        make_options(noisy=False)


def test_a_statement_that_turns_out_to_be_false():
    run = Run(noise=0.1, deterministic=True, max_evaluations=2000)
    assert run.res.certificate.method == "t" and run.res.certificate.grade != "guaranteed"
    assert "stated to have no noise, but differ at the same point" in run.res.message


@shows("samples", "samples_max")
def test_samples_and_samples_max():
    assert set(Run(noise=0.3, samples=5).history["samples_trial"]) == {5}
    raced = Run(noise=0.3, samples="race", max_evaluations=2000).history["samples_trial"]
    assert raced.min() == 2 and raced.max() == 64 and len(set(raced)) >= 4
    short = Run(noise=0.3, samples="race", samples_max=8, max_evaluations=2000).history["samples_trial"]
    assert short.max() == 8
    for wrong in (0, "rice"):
        with pytest.raises(ValueError, match="samples must be a positive integer, 'race' or 'accuracy'"):
            make_options(samples=wrong)


@pytest.mark.parametrize("number", [5, np.int64(5), np.int16(5), 5.0, np.float32(5)], ids=lambda v: type(v).__name__)
def test_counts_of_any_type_are_counts(number):
    opt = pcces.Optimizer([1.0, 1.0], samples=number, max_iterations=number, max_evaluations=100 * number, rng=0)
    assert len(opt.ask()) == 5 == opt.options.max_iterations and opt.search.max_evaluations == 500
    assert "samples = 5: a fixed N_k" in opt.lost_assumptions[0]


@pytest.mark.parametrize("name", ["samples", "samples_max", "population", "max_iterations", "max_evaluations"])
@pytest.mark.parametrize("wrong", [2.5, math.inf, math.nan, "5"])
def test_half_a_count_is_refused(name, wrong):
    with pytest.raises(ValueError, match=f"{name} must be a (whole number|positive)"):
        pcces.Optimizer([1.0, 1.0], **{name: wrong})


def test_the_cap_on_samples_may_be_any_number():
    assert Run(noise=0.3, samples_max=10, max_evaluations=2000).history["samples_trial"].max() == 10


@shows("eps_f", "eps_v", "p")
def test_the_accuracy_rule():
    def counts(**options):
        run = Run(
            noise=1e-2, samples="accuracy", samples_max=10**6, max_evaluations=200_000, max_iterations=6, kappa=0.5,
            strategy="gaussian", **options,
        )  # fmt: skip
        sigma = np.concatenate([[0.15], run.history["sigma"][:-1]])
        return run.history["samples_trial"], sigma

    n, sigma = counts()
    assert n * sigma**4 == pytest.approx(np.full(6, (n * sigma**4)[0]), rel=0.5)  # N_k follows sigma_k^-4
    assert n.max() > 3 * n.min()
    first = n[0]
    assert counts(eps_f=0.125)[0][0] == pytest.approx(4 * first, rel=0.1)
    assert counts(p=0.99)[0][0] == pytest.approx(first * np.log(200) / np.log(20), rel=0.1)
    assert counts(eps_v=0.01)[0][0] > 2 * first
    assert set(Run(noise=0.3, samples="accuracy", samples_max=7).history["samples_trial"]) == {7}


@shows("incumbent")
def test_incumbent():
    kept, fresh, pooled = (
        Run(noise=0.3, samples=4, incumbent=how, max_evaluations=600, strategy="gaussian")
        for how in ("kept", "fresh", "pooled")
    )
    assert min(len(run.phase("trial")) for run in (kept, fresh, pooled)) > 5
    assert all(batch.at_trial == len(batch) for batch in kept.phase("trial"))  # the old estimate is never renewed
    for run in (fresh, pooled):
        assert all(batch.at_trial == len(batch) // 2 for batch in run.phase("trial"))
    assert set(fresh.history["samples_incumbent"]) == {4}
    assert pooled.history["samples_incumbent"].max() > 8
    stays = np.flatnonzero(~kept.history["success"].astype(bool)[1:]) + 1
    assert stays.size > 3
    assert np.array_equal(kept.history["fun"][stays], kept.history["fun"][stays - 1])
    stays = np.flatnonzero(~fresh.history["success"].astype(bool)[1:]) + 1
    assert stays.size > 3
    assert not np.any(fresh.history["fun"][stays] == fresh.history["fun"][stays - 1])


# -- certificate and stopping ---------------------------------------------------------------------------------------------------


@shows("certify_share")
def test_certify_share():
    for share in (0.1, 0.6):
        run = Run(noise=0.3, certify_share=share, max_evaluations=1000)
        searched = sum(len(batch) for batch in run.batches if batch.phase != "certify")
        assert 1000 * (1 - share) - 80 < searched <= 1000 * (1 - share)


@shows("constraint_range")
def test_constraint_range():
    run = Run(noise=0.01, target=0.2, constraint_range=[(-6.0, 6.0)], max_evaluations=1000)
    assert run.res.certificate.method == "betting" and run.res.success
    assert Run(noise=0.01, seed=1).res.certificate.method == "t"
    with pytest.raises(ValueError, match="constraint_range has 2 pairs for 1 constraints"):
        Run(noise=0.01, constraint_range=[(-6.0, 6.0)] * 2)


@shows("limits")
def test_limits():
    """The same noise, another share of it above the limit."""
    sums = {
        limit: np.median([Run(noise=0.1, max_evaluations=2000, seed=s, limits=limit).res.x.sum() for s in range(3)])
        for limit in ("mean <= 0", "mean <= 0.2", "P(> 0) <= 0.1", "CVaR0.1 <= 0")
    }
    assert 0.95 < sums["mean <= 0"] <= 1.0 and 1.15 < sums["mean <= 0.2"] <= 1.2
    assert 0.8 < sums["P(> 0) <= 0.1"] < 1 - 0.12 and 0.74 < sums["CVaR0.1 <= 0"] < 1 - 0.16
    assert make_options(limits=0.5).limits == make_options(limits=[Mean(0.5)]).limits == (Mean(0.5),)
    for wrong in ("median <= 3", [None], object()):
        with pytest.raises(ValueError, match="a limit"):
            make_options(limits=wrong)


@shows("objective")
def test_objective():
    """Noise that grows with x: in the mean x = 1 is best, in the worst tenth less."""

    def best(objective):
        rng = np.random.default_rng(0)
        fun = lambda x: (x[0] - 1) ** 2 + 0.4 * x[0] * rng.standard_normal()  # noqa: E731
        return pcces.minimize(fun, [0.5], bounds=[(0, 2)], max_evaluations=3000, rng=0, objective=objective).x[0]

    assert best(Mean()) == pytest.approx(1.0, abs=0.15)
    assert best(CVaR(0.1)) == pytest.approx(1 - 0.2 * 1.755, abs=0.2)  # (x - 1)^2 + 0.4 x 1.755
    for wrong in (Probability(), Mean(1.0), "best"):
        with pytest.raises(ValueError, match=r"objective must be|a limit"):
            make_options(objective=wrong)


@shows("cautious")
def test_cautious():
    """A disc in which it pays to be at the rim, and a measurement with noise: points beyond the rim are what it is about."""

    def search(cautious, noise, limit=0.0):
        rng, evaluated = np.random.default_rng(0), []

        def fun(X):
            c = (X**2).sum(1) - 1
            evaluated.extend(c)
            return (X[:, 0] - 2) ** 2 + X[:, 1] ** 2, c + noise * rng.standard_normal(len(X))

        res = pcces.minimize(
            fun, [0.0, 0.0], bounds=[(-2, 2)] * 2, vectorized=True, max_evaluations=800, rng=0, cautious=cautious,
            limits=limit,
        )  # fmt: skip
        return np.array(evaluated), res

    for noise in (0.0, 0.05):
        (reckless, free), (wary, safe) = search(None, noise), search(0.95, noise)
        assert np.mean(reckless > 0) > 0.1 > 0.05 > np.mean(wary > 1e-9) and wary.max() < 0.1 < 1 < reckless.max()
        assert (
            free.success
            and safe.success
            and safe.fun < 1.15
            and safe.violations.worst[0] < 0.3 < free.violations.worst[0]
        )
    above, res = search(0.95, 0.05, "P(> 0) <= 0.1")
    assert res.success and np.mean(above > -0.05 * 1.28) < 0.05  # the limit's own share counts
    with pytest.raises(ValueError, match="cautious needs a model"):
        pcces.Optimizer(np.zeros(41), cautious=0.9)
    with pytest.raises(ValueError, match=r"cautious must lie in \[0.5, 1\), got 0.1"):
        make_options(cautious=0.1)


@shows("max_iterations")
def test_max_iterations():
    assert Run(max_iterations=3).res.nit == 3 == len(Run(max_iterations=3).history)


@shows("sigma_stop")
def test_sigma_stop():
    run = Run(sigma_stop=0.01, restarts=False, max_evaluations=5000)
    assert run.res.nfev < 2000 and "converged: the step size fell below 0.01" in run.res.message
    assert run.history["sigma"][-1] < 0.01 <= run.history["sigma"][:-1].min()


@shows("restarts")
def test_restarts():
    options = {"sigma_stop": 0.02, "max_evaluations": 3000, "strategy": "cma"}
    once, again = Run(restarts=False, **options), Run(restarts=True, **options)
    assert {tuple(batch.points[0]) for batch in once.phase("start")} == {(0.0, 0.0)}
    assert len({tuple(batch.points[0]) for batch in again.phase("start")}) >= 3
    assert once.res.nfev < 1000 and again.res.nfev > 2000
    assert again.res.fun <= once.res.fun + 1e-2  # the best of all ends


def test_restarts_find_the_better_of_two_valleys():
    def two_valleys(x):
        return min((x[0] + 1.5) ** 2 + 0.5, 4 * (x[0] - 1.5) ** 2) + x[1] ** 2

    def solve(restarts):
        return pcces.minimize(two_valleys, [-1.5, 0.3], bounds=[(-2, 2)] * 2, max_evaluations=3000, rng=0,
                              restarts=restarts, sigma0=0.05, sigma_stop=1e-4)  # fmt: skip

    assert solve(False).fun == pytest.approx(0.5, abs=1e-3)
    assert solve(True).fun == pytest.approx(0.0, abs=1e-3)


# -- the lot --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigma0": 0.0}, "sigma0 must be a positive number"),
        ({"kappa": -1.0}, "kappa must be a positive number"),
        ({"d_max": float("inf")}, "d_max must be a positive number"),
        ({"gamma": 1.0}, "gamma must be greater than 1"),
        ({"shrink": 1.0}, "shrink must lie between 0 and 1"),
        ({"sigma_min": 1.0}, "sigma_min must be at least 0 and below sigma_max"),
        ({"sigma_max": 0.0}, "sigma_max must be positive"),
        ({"eps_c": -0.1}, "eps_c must not be negative"),
        ({"equality_tolerance": -0.1}, "equality_tolerance must not be negative"),
        ({"p": 0.5}, r"p must lie in \(1/2, 1\)"),
        ({"certify_share": 1.0}, "certify_share must lie between 0 and 1"),
        ({"sigma_es": "loose"}, "sigma_es must be one of adapted, tied, fixed, got 'loose'"),
        ({"shaping": "log"}, "shaping must be one of raw, standardised, rank"),
        ({"restoration": "hope"}, "restoration must be one of violation, merit"),
        ({"incumbent": "stale"}, "incumbent must be one of pooled, fresh, kept"),
        ({"max_iterations": 0}, "max_iterations must be a positive number"),
    ],
)
def test_values_that_make_no_sense(wrong, message):
    with pytest.raises(ValueError, match=message):
        make_options(**wrong)


def test_unknown_options_are_offered_the_nearest():
    with pytest.raises(TypeError, match="unknown option 'sigma'; did you mean 'sigma0'"):
        make_options(sigma=0.1)
    with pytest.raises(TypeError, match="unknown option 'zzz'; there are population, sigma0"):
        make_options(zzz=0.1)


def test_presets():
    paper = make_options("paper")
    assert {name: getattr(paper, name) for name in PAPER} == PAPER
    assert make_options("paper", kappa=1.0).kappa == 1.0
    assert make_options() == pcces.Options() and set(PRESETS) == {"default", "paper"}
    assert make_options(**pcces.Options(kappa=3.0).to_dict()) == pcces.Options(kappa=3.0)


@shows("failures")
def test_failures():
    def fails(x, rng):
        if rng.random() < 0.1:
            raise RuntimeError("no licence")
        return ((x - 1) ** 2).sum() + 0.1 * rng.standard_normal(), x.sum() - 1 + 0.1 * rng.standard_normal()

    rates = {}
    for failures in ("infeasible", "missing", 0.01):
        given = {"failures": failures, "max_evaluations": 400, "common_random_numbers": True, "strategy": "cma"}
        res = pcces.minimize(fails, [0.0, 0.0], bounds=[(-2, 2)] * 2, rng=0, **given)
        rates[failures] = res.certificate.failure_rate, res.success
    assert rates["infeasible"] == (None, False) and rates["missing"][0] > 0.1 and rates["missing"][1]
    assert rates[0.01][0] > 0.1 and not rates[0.01][1]  # more fail than are allowed


def test_every_option_has_a_test():
    assert {field.name for field in fields(pcces.Options)} == COVERED
