"""The benchmark's optima are optima, and its oracle and judge do what they say."""

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.blackbox.noise import Oracle, judge
from benchmarks.blackbox.problems import PROBLEMS
from benchmarks.harness import BudgetExhaustedError

problems = pytest.mark.parametrize("p", PROBLEMS.values(), ids=PROBLEMS.keys())


def slsqp(p, start):
    """One local search from start, in the unit box; a crash looks very bad. Returns x."""
    width = p.upper - p.lower

    def evaluate(z):
        try:
            f, c = p.evaluate(p.lower + np.clip(z, 0, 1) * width)
        except ArithmeticError:
            f, c = np.nan, np.ones(p.m)
        return (f, c) if np.isfinite(f) else (p.f_star + 10 * p.f_scale, np.ones(p.m))

    constraints = [{"type": "ineq", "fun": lambda z: -evaluate(z)[1][list(p.inequality)]}]
    if p.equality:
        constraints.append({"type": "eq", "fun": lambda z: evaluate(z)[1][list(p.equality)]})
    result = minimize(
        lambda z: (evaluate(z)[0] - p.f_star) / p.f_scale,
        (start - p.lower) / width,
        method="SLSQP",
        bounds=p.n * [(0, 1)],
        constraints=constraints,
        options={"ftol": 1e-12, "maxiter": 300},
    )
    return p.lower + np.clip(result.x, 0, 1) * width


@problems
def test_optimum_is_feasible_and_has_the_stated_value(p):
    f, c = p.evaluate(p.x_star)
    assert f == pytest.approx(p.f_star, rel=1e-12)
    assert p.violation(c) <= 1e-9
    assert np.all(p.x_star >= p.lower) and np.all(p.x_star <= p.upper)
    assert judge(p, 0.0, p.x_star).success and judge(p, 0.0, p.x_star).feasible


@problems
def test_start_is_in_bounds_works_and_is_not_already_good(p):
    assert np.all(p.x0 >= p.lower) and np.all(p.x0 <= p.upper)
    f, c = p.evaluate(p.x0)
    assert np.isfinite(f) and np.all(np.isfinite(c)) and len(c) == p.m
    assert not judge(p, 0.01, p.x0).success


@problems
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_better_is_found(p):
    rng = np.random.default_rng(0)
    starts = [p.x_star, p.x0, *rng.uniform(p.lower, p.upper, (8, p.n))]
    reached = 0
    for start in starts:
        verdict = judge(p, 0.0, slsqp(p, start))
        if verdict.violation <= 1e-7 and verdict.equality <= 1e-7:
            assert verdict.gap > -1e-5  # what a violation of 1e-7 can buy
            reached += verdict.gap < 1e-5
    assert reached >= 1


def test_mix():
    n = [p.n for p in PROBLEMS.values()]
    assert len(n) == 20 and min(n) == 2 and max(n) == 20
    infeasible = [p.name for p in PROBLEMS.values() if p.violation(p.evaluate(p.x0)[1]) > 1e-3]
    assert infeasible == ["hs71", "g06", "g08", "g10", "speed_reducer"]


def test_simulator_crashes_beside_the_optimum():
    p = PROBLEMS["crashing"]
    rng = np.random.default_rng(0)
    outcomes = []
    for x in p.x_star + 0.05 * rng.standard_normal((1000, p.n)):
        try:
            outcomes.append("ok" if np.isfinite(p.evaluate(x)[0]) else "nan")
        except ArithmeticError:
            outcomes.append("raise")
    assert all(outcomes.count(kind) > 30 for kind in ("ok", "nan", "raise"))


def test_oracle_noise_has_the_stated_size_and_is_seeded():
    p = PROBLEMS["g09"]
    samples = [Oracle(p, 0.01, seed)(p.x0) for seed in range(400)]
    f, c = p.evaluate(p.x0)
    assert np.std([s[0] - f for s in samples]) == pytest.approx(0.01 * p.f_scale, rel=0.15)
    np.testing.assert_allclose(np.std([s[1] - c for s in samples], axis=0), 0.01, rtol=0.15)
    again = Oracle(p, 0.01, 7)(p.x0)
    assert again[0] == samples[7][0] and np.array_equal(again[1], samples[7][1])
    exact = Oracle(p, 0.0, 0)(p.x0)
    assert exact[0] == f and np.array_equal(exact[1], c)


def test_oracle_counts_and_stops():
    p = PROBLEMS["crashing"]
    oracle = Oracle(p, 0.0, 0)
    with pytest.raises(ArithmeticError):
        oracle(np.array([1.0, 0.6, 1.0, 0.8, 0.8]))
    with pytest.raises(ValueError, match="outside its bounds"):
        oracle(p.upper + 1)
    assert oracle.evaluations == 1
    for _ in range(2000 * p.n - 1):
        oracle(p.x0)
    with pytest.raises(BudgetExhaustedError):
        oracle(p.x0)
    assert oracle.evaluations == 2000 * p.n


def test_judge_knows_noise_from_truth():
    p = PROBLEMS["three_bar_truss"]
    slightly_out = p.x_star * 0.995
    assert not judge(p, 0.0, slightly_out).success
    assert judge(p, 0.01, slightly_out).success and not judge(p, 0.01, slightly_out).feasible
    crash = PROBLEMS["crashing"]
    inside = judge(crash, 0.01, np.array([1.0, 0.6, 1.0, 0.8, 0.8]))
    assert not inside.success and not inside.feasible
