"""The model near an answer: multipliers with known values, and slices beside the truth."""

import pickle

import numpy as np
import pytest
from scipy.optimize import LinearConstraint

import pcces

BOX = [(-2.0, 2.0)] * 2


def solved(fun, x0=(0.0, 0.0), bounds=BOX, evaluations=200, **options):
    return pcces.minimize(fun, x0, bounds=bounds, max_evaluations=evaluations, rng=0, **options)


def found(res):
    return {each.name: each for each in res.around.multipliers}


def noisy(seed=0, size=0.05):
    rng = np.random.default_rng(seed)
    return lambda: size * rng.standard_normal()


def test_the_multiplier_is_what_a_looser_limit_gains():
    def loosened(by):
        return lambda x: (((x - 1) ** 2).sum(), {"sum": x.sum() - 1 - by, "far": x[0] - 9})

    res = solved(loosened(0.0))
    sums, far = found(res)["sum"], found(res)["far"]
    assert sums.value == pytest.approx(1.0, abs=0.02) and sums.error < 0.05 and sums.kind == "constraint"
    assert sums.binds and sums.near and not far.near and far.value == far.error == 0 and not far.binds
    gain = (solved(loosened(-0.005)).fun - solved(loosened(0.005)).fun) / 0.01
    assert gain == pytest.approx(sums.value, rel=0.03)
    assert res.around.unexplained < 0.05


@pytest.mark.parametrize("evaluations", [100, 1500])  # Gaussian processes search, or quadratic models
def test_under_noise_it_has_an_error_that_tells(evaluations):
    a = noisy(evaluations)
    res = solved(lambda x: (((x - 1) ** 2).sum() + a(), x.sum() - 1 + a()), evaluations=evaluations)
    (sums,) = res.around.multipliers
    exact = float(np.mean(2 * (1 - res.x)))
    assert abs(sums.value - exact) < 4 * sums.error and 0.005 < sums.error < 0.5 and sums.binds


def test_bounds_and_linear_constraints_hold_too():
    bounds = {"a": (0.0, 0.5), "rate": pcces.Log(0.01, 0.1), "c": (-2.0, 2.0)}
    res = solved(lambda d: (d["a"] - 1) ** 2 + np.log(d["rate"]) ** 2 + (d["c"] - 1) ** 2, None, bounds)
    bound = found(res)
    assert set(bound) == {"a: upper bound 0.5", "rate: upper bound 0.1"}
    assert bound["a: upper bound 0.5"].value == pytest.approx(1.0, abs=0.03)
    assert bound["rate: upper bound 0.1"].value == pytest.approx(-2 * np.log(0.1) / 0.1, rel=0.03)  # by a unit of rate
    res = solved(lambda x: ((x - 1) ** 2).sum(), constraints=LinearConstraint([[2.0, 1.0]], ub=1.0))
    (line,) = res.around.multipliers  # 2 (x - 1) = -lambda (2, 1) with 2 x_0 + x_1 = 1
    assert (line.kind, line.binds) == ("linear", True) and line.value == pytest.approx(0.8, abs=0.02)


def test_an_equality_has_a_multiplier_of_any_sign():
    for sign in (1, -1):
        res = solved(lambda x, s=sign: (x @ x, s * (x.sum() - 1)), equalities=[0], evaluations=300)
        (line,) = res.around.multipliers
        assert line.value == pytest.approx(-sign, abs=0.02) and line.binds


def test_limits_that_are_not_on_means():
    a = noisy(size=0.2)
    res = solved(
        lambda x: (((x - 1) ** 2).sum(), x.sum() - 1 + a()), limits=["P(> 0.3) <= 0.1"], evaluations=1500
    )  # fmt: skip
    (sums,) = res.around.multipliers  # x.sum() + 1.28 * 0.2 <= 1.3, and a margin for the certificate
    assert sums.value == pytest.approx(float(np.mean(2 * (1 - res.x))), abs=0.1) and sums.binds
    values, _ = res.around.values
    assert values[1] == pytest.approx(res.x.sum() - 1.3 + 0.256, abs=0.05)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", ["mean <= 1e90", "P(> 9e18) <= 0.1"])
def test_a_limit_beside_which_nothing_is_seen_to_change_has_no_multiplier(far):
    a = noisy(size=0.01)
    res = solved(lambda x: (((x - 1) ** 2).sum() + a(), [x[0] + a(), x[1] + a()]), limits=[far, "mean <= 0.5"])
    first, second = res.around.multipliers
    assert first.value == first.error == 0 and not first.binds
    assert second.value == pytest.approx(2 * (1 - res.x[1]), abs=0.2) and second.binds


def test_an_answer_that_nothing_holds_has_none_and_one_that_could_go_on_says_so():
    free = solved(lambda x: (((x - 1) ** 2).sum(), x[0] - 1.9))
    assert [(each.binds, each.near) for each in free.around.multipliers] == [(False, False)]
    assert free.around.unexplained == 0
    early = solved(lambda x: (((x - 1) ** 2).sum(), x[0] - 1.9), evaluations=60, strategy="model", max_iterations=1)
    assert early.fun > 0.05 and early.around.unexplained > 0.9


def test_discrete_variables_have_slices_and_no_slopes():
    bounds = {"rate": pcces.Log(1e-4, 1), "count": pcces.Integer(0, 10), "fuel": pcces.Choice("gas", "coal", "oil")}

    def fun(d):
        f = (np.log10(d["rate"]) + 3) ** 2 + (d["count"] - 7) ** 2 + {"gas": 2.0, "coal": 1.0, "oil": 0.0}[d["fuel"]]
        return f, {"heat": -2.9 - np.log10(d["rate"])}

    res = solved(fun, {"rate": 0.01, "count": 5, "fuel": "coal"}, bounds, evaluations=300)
    assert found(res)["heat"].value == pytest.approx(0.2, abs=0.1)
    slices = {res.setting.variables[each.variable].name: each for each in res.around.slices()}
    assert list(slices["fuel"].places) == [0, 1, 2] and list(slices["fuel"].values[:, 0].round(1)) == [2.0, 1.0, 0.0]
    count = slices["count"]
    assert set(range(5, 10)) <= set(count.places) and np.all(count.places % 1 == 0)
    near = np.abs(count.places - 7) <= 2
    assert count.values[near, 0] == pytest.approx((count.places[near] - 7) ** 2, abs=0.5)
    only = solved(lambda x: (x[0] - 3) ** 2, None, [pcces.Integer(0, 9)], evaluations=60)
    assert only.around.multipliers == [] and np.isnan(only.around.unexplained) and len(only.around.slices()) == 1


@pytest.mark.parametrize("evaluations", [100, 1500])
def test_slices_are_the_truth_within_their_errors(evaluations):
    a = noisy(evaluations)

    def truth(x):
        return np.stack([(x[:, 0] - 1) ** 2 + 3 * (x[:, 1] - 1) ** 2, np.sin(x[:, 0]) + x[:, 1] - 1], 1)

    def fun(x):
        f, c = truth(np.array([x]))[0]
        return f + a(), c + a()

    res = solved(fun, evaluations=evaluations)
    slices = res.around.slices()
    assert sorted(each.variable for each in slices) == [0, 1]
    for each in slices:
        points = np.repeat(res.x[None], len(each.places), axis=0)
        points[:, each.variable] = each.places
        off = (each.values - truth(points)) / each.errors
        assert np.quantile(np.abs(off), 0.8) < 3 and each.places.min() < res.x[each.variable] < each.places.max()
        assert len(each.near) == len(each.near_values) > 10
        beside = np.repeat(res.x[None], len(each.near), axis=0)
        beside[:, each.variable] = each.near
        assert np.median(np.abs(each.near_values - truth(beside))) < 3 * 0.05  # as noisy as evaluations are


def test_there_is_no_model_of_too_many_variables_or_of_nothing():
    wide = solved(lambda x: x @ x, np.ones(41), None, evaluations=100)
    assert not wide.around.known and wide.around.multipliers == [] and wide.around.slices() == []
    assert not pcces.Optimizer([1.0]).result.around.known
    failed = solved(lambda x: np.nan, evaluations=30)
    assert not failed.around.known and np.isnan(failed.around.unexplained)


def test_it_is_pickled_with_the_result():
    res = solved(lambda x: (((x - 1) ** 2).sum(), x.sum() - 1), evaluations=100)
    again = pickle.loads(pickle.dumps(res)).around
    assert again.multipliers == res.around.multipliers and "multipliers, slices()" in repr(again)


def test_a_search_that_goes_on_has_one(tmp_path):
    opt = pcces.Optimizer([0.0, 0.0], bounds=BOX, max_evaluations=100, rng=0)
    for _ in range(20):
        batch = opt.ask()
        opt.tell(batch, ((batch.points - 1) ** 2).sum(1), batch.points.sum(1) - 1)
    opt.save(tmp_path / "search.npz")
    (first,), (second,) = (
        each.result.around.multipliers for each in (opt, pcces.Optimizer.load(tmp_path / "search.npz"))
    )
    assert first == second and first.value == pytest.approx(1.0, abs=0.2)
