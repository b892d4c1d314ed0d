"""The convergence theorem: its constants, its decrease in expectation, its step sizes, its limit points."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.stats import norm

import pcces
from pcces import strategies
from pcces.blackbox.options import PAPER, TheoryWarning, lost_assumptions, make_options
from pcces.core.algorithm import Rule, decide, init, sample_points, trial_point
from pcces.core.barrier import barrier, feasible_first, violation
from pcces.core.theory import Constants

# -- the constants --------------------------------------------------------------------------------------------------------------

rules = st.builds(Constants.for_rule, st.floats(1e-3, 1e2), st.floats(1.01, 3.0), st.floats(0.51, 0.999))


@given(rules)
def test_the_most_lenient_constants_fit_and_nothing_more_lenient_does(c):
    assert c.fits() and c.broken() == []
    p, nu, kappa, gamma, eps_f, eps_v = c.p, c.nu, c.kappa, c.gamma, c.eps_f, c.eps_v
    odds = 0.99 * nu / (1 - nu)
    less_nu = Constants(p, odds / (1 + odds), kappa, gamma, eps_f, eps_v)
    assert len(less_nu.broken()) == 1 and less_nu.broken()[0].startswith("nu / (1 - nu)")
    assert Constants(p, nu, kappa, gamma, 1.01 * eps_f, eps_v).broken()[0].startswith("eps_f")
    assert Constants(p, nu, kappa, gamma, eps_f, 1.01 * eps_v).broken()[0].startswith("p / sqrt(1 - p)")


def test_the_conditions_are_the_corrected_ones():
    gamma, kappa, p = 1.5, 2.0, 0.8
    c = Constants.for_rule(kappa, gamma, p)
    assert c.nu / (1 - c.nu) == pytest.approx(8 * (gamma**2 - 1) / kappa)  # the paper's statement has 4
    assert p / math.sqrt(1 - p) == pytest.approx(4 * c.nu * c.eps_v / ((1 - c.nu) * (1 - gamma**-2)))
    assert c.eps_f < kappa / 4 < 1.01 * c.eps_f
    assert c.alpha == pytest.approx(0.5 * (1 - c.nu) * p * (1 - gamma**-2))


def test_broken_conditions_are_named():
    assert "p = 0.5" in Constants(0.5, 0.9, 1.0, 1.1, 0.1, 1e-3).broken()[0]
    assert "eps_f = 0.3" in Constants(0.9, 0.9, 1.0, 1.1, 0.3, 1e-3).broken()[0]
    assert len(Constants(0.4, 0.01, 1.0, 1.1, 0.3, 10.0).broken()) >= 3
    exact = Constants(1.0, 0.9, 1.0, 1.1, 0.1, 1e9)  # estimates that are always accurate need no variance condition
    assert exact.fits()
    assert exact.samples(1e-4, 0.1) > 0  # though no finite number of samples makes them so
    assert Constants(1.5, 0.9, 1.0, 1.1, 0.1, 1e-3).broken() == ["p = 1.5 must lie in (1/2, 1]"]
    assert Constants(0.9, 0.9, 1.0, 1.1, 0.0, 1e-3).broken() == ["eps_f = 0 must lie in (0, kappa / 4 = 0.25)"]
    assert Constants(0.9, 0.9, 1.0, 1.1, 0.25, 1e-3).broken() == ["eps_f = 0.25 must lie in (0, kappa / 4 = 0.25)"]
    assert Constants(0.75, 0.5, 2.0, 1.5, 0.1, 5 / 36).broken() == [
        "nu / (1 - nu) = 1 must be at least 8 (gamma^2 - 1) / kappa = 5"
    ]
    assert Constants(0.75, 5 / 6, 2.0, 1.5, 0.1, 1.0).broken() == ["p / sqrt(1 - p) = 1.5 must be at least 36"]


def test_constants_are_for_nine_estimates_in_ten_unless_told_otherwise():
    assert Constants.for_rule(1.0, 1.1) == Constants.for_rule(1.0, 1.1, 0.9)


@pytest.mark.parametrize("wrong", [(0.0, 1.1, 0.9), (1.0, 1.0, 0.9), (1.0, 1.1, 0.5), (1.0, 1.1, 1.0)])
def test_no_constants_fit_a_rule_without_forcing_or_growth(wrong):
    with pytest.raises(ValueError, match="needs kappa > 0, gamma > 1"):
        Constants.for_rule(*wrong)


def test_samples_and_lyapunov_trace():
    c = Constants.for_rule(1.0, 1.1, 0.9)
    N = c.samples(variance=1e-4, sigma=0.1)
    assert max(16 / c.eps_f**2 * math.log(20), 1 / c.eps_v**2) <= N
    assert c.samples(1e-4, 0.05) == pytest.approx(16 * N, rel=2e-3)
    trace = c.lyapunov(np.array([2.0, 1.0]), np.array([0.0, 2.0]))
    assert trace == pytest.approx([2 * c.nu, c.nu + 4 * (1 - c.nu)])


# -- the theorem on problems whose f is known -------------------------------------------------------------------------------------


class Quadratic:
    """f, its gradient, and constraints with theirs; estimates just as accurate as the assumptions ask, no better."""

    def __init__(self, constrained, constants, eps_c=0.02):
        self.constrained, self.constants, self.eps_c = constrained, constants, eps_c
        self.H, self.target = np.array([1.0, 4.0, 0.5]), np.array([1.0, 0.5, 2.0])
        # F - f is normal with standard deviation s sigma^2: both accurate with probability p, and the variance condition
        z = norm.ppf((1 + math.sqrt(constants.p)) / 2)
        self.s = min(constants.eps_f / z, constants.eps_v)

    def f(self, x):
        return (0.5 * self.H * (x - self.target) ** 2).sum(-1)

    def gradient(self, x):
        return self.H * (x - self.target)

    def c(self, x):
        if not self.constrained:
            return np.zeros((*x.shape[:-1], 0))
        return np.stack([x.sum(-1) - 1.0, (x**2).sum(-1) - 1.5], axis=-1)

    def constraint_gradients(self, x):
        return np.stack([np.ones(3), 2 * x])

    def estimates(self, x, sigma, rng):
        f = self.f(x) + self.s * sigma**2 * rng.standard_normal(x.shape[:-1])
        c = self.c(x)
        return f, c + self.eps_c * sigma * rng.uniform(-1, 1, c.shape)  # accurate almost surely


def iterate(problem, strategy, state, own, rule, rng, half=6):
    """One iteration of Algorithm 1."""
    z = rng.standard_normal((half, strategy.normals(3)))
    d = strategies.mirrored(strategy.directions(own, z))
    f, c = problem.estimates(sample_points(state.x, state.sigma_es, d), state.sigma, rng)
    allowance = problem.eps_c * state.sigma
    weights = strategy.weights(strategies.SHAPINGS["standardised"](feasible_first(f, violation(c, allowance))))
    d_k = weights @ d
    x_trial = trial_point(state, d_k, rule)
    f_trial, c_trial = problem.estimates(x_trial, state.sigma, rng)
    f_k, _ = problem.estimates(state.x, state.sigma, rng)  # F_k^0: renewed at every iteration
    f_trial = barrier(np.asarray(f_trial), violation(c_trial, allowance))
    after, success = decide(state, x_trial, f_trial, f_k, rule)
    own = strategy.update(own, d, weights, (after.x - state.x) / state.sigma, d_k)
    return after._replace(sigma_es=after.sigma), own, bool(success), d_k


MAKERS = {"cma": strategies.cma, "gaussian": strategies.gaussian}
START = np.array([-0.5, -0.3, 0.0])


@pytest.mark.parametrize("constrained", [False, True], ids=["unconstrained", "constrained"])
@pytest.mark.parametrize("name", MAKERS)
def test_the_lyapunov_function_falls_by_alpha_sigma_squared_in_expectation(name, constrained):
    gamma, kappa, p = 1.3, 0.5, 0.9
    constants = Constants.for_rule(kappa, gamma, p)
    problem, strategy, rule = Quadratic(constrained, constants), MAKERS[name](), Rule.conform(gamma, kappa=kappa)
    rng = np.random.default_rng(3)
    minimum = problem.target - (2.5 / 3.25 / problem.H + 1e-9 if constrained else 0.0)  # on the linear constraint
    accepted = 0
    # far from the minimum, at it (where only noise speaks for a step), and with steps too long and tiny
    for x, sigma in ((START, 0.3), (START, 1e-3), (minimum, 0.5), (minimum, 0.05), (minimum, 1e-4), (START, 2.0)):
        if constrained:
            assert np.all(problem.c(x) <= 0)
        state, own = init(x, sigma, sigma), strategy.init(x)
        before = constants.lyapunov(problem.f(x), sigma)
        changes = []
        for _ in range(400):
            after, _, success, _ = iterate(problem, strategy, state, own, rule, rng, half=3)
            changes.append(constants.lyapunov(problem.f(after.x), after.sigma) - before)
            accepted += success
        scaled = np.array(changes) / sigma**2
        assert scaled.mean() <= -constants.alpha + 3 * scaled.std() / math.sqrt(len(scaled)) + 1e-12
    assert 400 < accepted < 2000  # both kinds of iteration were seen


def runs(name, constrained, count, iterations, gamma, kappa):
    constants = Constants.for_rule(kappa, gamma, 0.9)
    problem, strategy, rule = Quadratic(constrained, constants), MAKERS[name](), Rule.conform(gamma, kappa=kappa)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        state, own = init(START, 0.5, 0.5), strategy.init(START)
        sigmas, f = [0.5], [problem.f(START)]
        for _ in range(iterations):
            state, own, success, _ = iterate(problem, strategy, state, own, rule, rng)
            if success:  # the barrier lets nothing through but what allowance and error explain
                assert np.all(problem.c(state.x) <= 2 * problem.eps_c * sigmas[-1])
            sigmas.append(float(state.sigma))
            f.append(problem.f(state.x))
        yield constants, problem, state.x, np.array(sigmas), np.array(f)


@pytest.mark.parametrize("constrained", [False, True], ids=["unconstrained", "constrained"])
@pytest.mark.parametrize("name", MAKERS)
def test_step_sizes_are_square_summable_and_go_to_zero(name, constrained):
    sums = []
    for constants, problem, x, sigmas, _ in runs(name, constrained, count=5, iterations=300, gamma=1.5, kappa=0.2):
        sums.append((sigmas**2).sum())
        assert sigmas[-1] < 1e-5 and sigmas[-100:].max() < 1e-2 * sigmas.max()
        assert (sigmas[200:] ** 2).sum() < 1e-4 * sums[-1]  # the tail of the sum is gone
        assert np.all(problem.c(x) <= 2 * problem.eps_c * sigmas.max())  # allowance and error at the last success
        promised = (constants.lyapunov(problem.f(START), 0.5) - constants.nu * 0.0) / constants.alpha
    assert np.mean(sums) <= promised  # E sum Sigma_k^2 <= (Phi_0 - nu f_low) / alpha


def steepest_feasible_descent(problem, x):
    """The largest slope -grad f d over unit directions d of the tangent cone (0 at a stationary point)."""
    g = problem.gradient(x)
    if not problem.constrained:
        return np.linalg.norm(g)
    active = problem.c(x) > -0.02
    if not active.any():
        return np.linalg.norm(g)
    return nnls(problem.constraint_gradients(x)[active].T, -g)[1]


@pytest.mark.parametrize("constrained", [False, True], ids=["unconstrained", "constrained"])
def test_the_limit_point_has_no_feasible_descent_direction(constrained):
    for _, problem, x, sigmas, f in runs("cma", constrained, count=4, iterations=400, gamma=1.2, kappa=0.01):
        start = steepest_feasible_descent(problem, START)
        assert start > 1.0
        assert steepest_feasible_descent(problem, x) < 0.02 * start
        assert sigmas[-1] < 1e-3 and np.all(problem.c(x) <= 2e-3)
        assert f[-1] < f[0]
        if constrained:
            # an acute angle with every direction that stays inside
            inside = np.random.default_rng(0).standard_normal((2000, 3))
            inside /= np.linalg.norm(inside, axis=1, keepdims=True)
            active = problem.c(x) > -0.02
            assert active.any()
            inside = inside[np.all(inside @ problem.constraint_gradients(x)[active].T <= 0, axis=1)]
            assert (inside @ problem.gradient(x)).min() > -0.02 * start


def test_without_the_forcing_function_the_step_size_does_not_vanish():
    """What kappa is for: accepting on luck keeps sigma from going to zero, and Phi does not fall."""
    constants = Constants.for_rule(0.5, 1.3, 0.9)
    problem, rng = Quadratic(False, constants), np.random.default_rng(0)
    problem.s, strategy, x = 1.0, strategies.gaussian(), np.array([1.0, 0.5, 2.0])
    state = init(x, 1e-4, 1e-4)
    changes = []
    for _ in range(600):
        after, _, _, _ = iterate(problem, strategy, state, strategy.init(x), Rule.conform(1.3, kappa=1e-12), rng, 3)
        changes.append((constants.lyapunov(problem.f(after.x), after.sigma) - constants.lyapunov(0.0, 1e-4)) / 1e-8)
    assert np.mean(changes) > -constants.alpha


# -- warnings -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sigma_min": 1e-3}, "cannot go to zero"),
        ({"incumbent": "kept"}, "not renewed"),
        ({"samples": 5}, "fixed N_k"),
        ({"gamma": 1.01, "shrink": 0.99}, "not 1 / gamma"),
        ({"samples": "accuracy", "eps_f": 0.3}, "not below kappa / 4"),
    ],
)
def test_options_that_give_up_the_theorem_warn(options, words):
    assert [words in line for line in lost_assumptions(make_options(**options))] == [True]
    assert [words in line for line in pcces.Optimizer([1.0], **options).lost_assumptions] == [True]  # it does not warn
    with pytest.warns(TheoryWarning, match="the convergence theorem no longer applies") as caught:
        pcces.minimize(lambda x: x[0] ** 2, [1.0], max_evaluations=30, rng=0, **options)
    assert len(caught) == 1 and words in str(caught[0].message)
    assert caught[0].filename == __file__  # it points at the caller's line


def test_options_that_keep_it_are_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in (
            {},
            {"gamma": 2.0, "shrink": 0.5},
            {"samples": "accuracy"},
            {"samples": 1, "deterministic": True},
        ):
            assert lost_assumptions(make_options(**options)) == []
            pcces.minimize(lambda x: x[0] ** 2, [1.0], max_evaluations=30, rng=0, **options)


def test_the_papers_table_4_gives_up_four_things():
    assert len(lost_assumptions(make_options("paper"))) == 4
    assert make_options("paper").sigma_min == PAPER["sigma_min"] == 0.001
