"""Integers, choices, logarithmic scales and names: what fun sees, what comes back, and that the optimum is found."""

import itertools

import numpy as np
import pandas
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, NonlinearConstraint

import pcces
from pcces.blackbox.coding import NamedPoint, Variables, read_variables
from pcces.blackbox.space import Space
from pcces.blackbox.variables import Choice, Integer, Log, Real

REACTOR = {"rate": Log(1e-4, 10.0), "kind": Choice("a", "b", "c"), "count": Integer(0, 30), "heat": (0.0, 1.0)}
START = {"rate": 1.0, "kind": "a", "count": 2, "heat": 0.9}
OFFSET = {"a": 1.0, "b": 0.0, "c": 0.5}


def reactor(d):
    """Least, 0, at rate 0.01, kind b, count 7, heat 0.3; at least 5 of count are needed."""
    f = (np.log10(d["rate"]) + 2) ** 2 + OFFSET[d["kind"]] + 0.1 * (d["count"] - 7) ** 2 + (d["heat"] - 0.3) ** 2
    return f, 5 - d["count"]


# -- forms of points ------------------------------------------------------------------------------------------------------

kinds = st.one_of(
    st.tuples(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3)).map(lambda p: Real(p[0], p[0] + p[1])),
    st.tuples(st.integers(-50, 50), st.integers(1, 50)).map(lambda p: Integer(p[0], p[0] + p[1])),
    st.tuples(st.integers(1, 50), st.integers(1, 500)).map(lambda p: Integer(p[0], p[0] + p[1], log=True)),
    st.tuples(st.floats(1e-6, 1.0), st.floats(1.5, 1e6)).map(lambda p: Log(p[0], p[0] * p[1])),
    st.integers(2, 5).map(lambda k: Choice(*"abcde"[:k])),
)


@settings(max_examples=100)
@given(st.lists(kinds, min_size=1, max_size=5), st.integers(0, 2**32))
def test_points_are_within_their_bounds_and_come_back(given_kinds, seed):
    names = [f"v{i}" for i in range(len(given_kinds))]
    space = Space(None, dict(zip(names, given_kinds)))
    rng = np.random.default_rng(seed)
    for z in (space.z0, space.project(rng.normal(0.5, 0.5, space.n)), np.zeros(space.n), np.ones(space.n)):
        point = space.shown(space.to_x(z))
        for kind, value in zip(given_kinds, point.values()):
            if isinstance(kind, Choice):
                assert value in kind.options
            else:
                assert kind.low <= value <= kind.high and isinstance(value, int) == isinstance(kind, Integer)
        again = space.shown(space.to_x(space.project(space.to_z(space.variables.numbers(point)))))
        assert list(again) == names
        assert all(
            a == b if not isinstance(a, float) else a == pytest.approx(b, rel=1e-9)
            for a, b in zip(point.values(), again.values())
        )
    rounded = space.project(z)
    assert np.allclose(space.project(rounded), rounded, atol=1e-12)


def test_a_scale_is_searched_evenly():
    space = Space([0.01, 8], [Log(1e-4, 1.0), Integer(1, 64, log=True)])
    assert space.z0 == pytest.approx([0.5, 0.5])
    assert space.to_x(np.array([0.25, 1 / 3])) == pytest.approx([1e-3, 4.0])


def test_neighbours_change_discrete_variables_only_and_stay_inside():
    variables = read_variables([Integer(0, 3), (0.0, 1.0), Choice(10, 20, 30)], 3)
    around = np.array([3.0, 0.5, 1.0])
    out = variables.varied(np.tile(around, (2000, 1)), around, np.random.default_rng(0), 1.0)
    assert np.all(out[:, 1] == 0.5) and set(np.unique(out[:, 0])) <= {0.0, 1.0, 2.0, 3.0}
    assert np.all((out[:, 0] != 3) | (out[:, 2] != 1)) and set(np.unique(out[:, 2])) == {0.0, 1.0, 2.0}
    both = np.mean((out[:, 0] != 3) & (out[:, 2] != 1))
    assert 0.25 < both < 0.45
    same = variables.varied(np.tile(around, (2000, 1)), around, np.random.default_rng(0), 0.25)
    assert np.mean(np.any(same != around, axis=1)) == pytest.approx(0.25, abs=0.05)


# -- searches -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_reactor_with_variables_of_all_kinds(noise):
    rng, seen = np.random.default_rng(0), []

    def fun(d):
        assert type(d) is NamedPoint and type(d["count"]) is int and type(d["rate"]) is float
        assert d["kind"] in "abc" and 1e-4 <= d["rate"] <= 10 and 0 <= d["count"] <= 30
        seen.append(dict(d))
        f, c = reactor(d)
        return f + noise * rng.standard_normal(), c + noise * rng.standard_normal()

    res = pcces.minimize(fun, START, bounds=REACTOR, max_evaluations=1500, rng=1)
    assert res.success and res.failures == 0
    assert (res.x["kind"], res.x["count"]) == ("b", 7)
    assert res.x["rate"] == pytest.approx(0.01, rel=0.5 if noise else 1e-2) and res.x["heat"] == pytest.approx(
        0.3, abs=0.3
    )
    assert dict(res.x) in seen  # what is returned was evaluated, and as often as the certificate says
    assert seen.count(dict(res.x)) >= res.certificate.samples > 0
    assert np.asarray(res.x)[1] == 1.0 and np.asarray(res.x).dtype == float
    table = pandas.DataFrame(res.evaluations)
    assert list(table)[:4] == list(REACTOR) and table.to_dict("records")[-1]["kind"] in "abc"
    assert table[list(REACTOR)].to_dict("records") == seen and np.array_equal(res.evaluations["kind"], table.kind)
    assert res.evaluations[0]["count"] == 2


def test_without_changes_of_their_own_integers_would_be_stuck(monkeypatch):
    """From the corner, across a valley that is one unit wide: only neighbours lead there."""

    def valley(x):
        return (x[0] - 9) ** 2 + 100 * (x[1] - 0.1 * x[0]) ** 2

    def ends(**options):
        return [
            pcces.minimize(
                valley, [0, 0.0], bounds=[Integer(0, 20), (0, 2)], max_evaluations=300, sigma0=0.02, rng=seed, **options
            ).x[0]
            for seed in range(5)
        ]  # fmt: skip

    assert ends(strategy="cma", restarts=False) == [9.0] * 5
    monkeypatch.setattr("pcces.blackbox.discrete.SHARE", 0.0)
    assert min(ends(strategy="cma", restarts=False)) < 5


def test_a_knapsack():
    value, weight = np.array([9, 11, 13, 15, 6, 7, 4, 12.0]), np.array([6, 5, 9, 7, 3, 4, 2, 8.0])
    plans = np.array(list(itertools.product((0, 1), repeat=8)))
    best = (plans @ value)[plans @ weight <= 22].max()
    ends = []
    for seed in range(4):
        res = pcces.minimize(
            lambda x: -value @ x, np.zeros(8), lambda x: weight @ x - 22, [(0, 1)] * 8, integrality=np.ones(8),
            max_evaluations=1000, rng=seed,
        )  # fmt: skip
        assert res.success and weight @ res.x <= 22 and set(res.x) <= {0.0, 1.0}
        ends.append(-res.fun / best)
    assert max(ends) == 1.0 and np.mean(ends) > 0.95


def test_integrality_is_that_of_milp():
    def fun(x):
        return (x[0] - 2.6) ** 2 + (x[1] - 1.4) ** 2

    res = pcces.minimize(fun, [0.0, 0.0], integrality=[1, 0], max_evaluations=600, rng=0)  # without bounds, too
    assert res.x[0] == 3.0 and res.x[1] == pytest.approx(1.4, abs=1e-3)
    res = pcces.minimize(fun, [0.0, 0.0], bounds=[(0, 2.8), (0, 3)], integrality=1, max_evaluations=600, rng=0)
    assert res.x.tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match="integrality must be 1"):
        pcces.minimize(fun, [0.0, 0.0], integrality=[2, 0])


def test_choices_of_numbers_need_no_names():
    res = pcces.minimize(
        lambda x: (x[0] - 2.2) ** 2 + (x[1] - 1) ** 2,
        [1.0, 0.0],
        bounds=[Choice(1.0, 2.5, 4.0), (0, 3)],
        max_evaluations=400,
        rng=0,
    )
    assert res.x == pytest.approx([2.5, 1.0], abs=1e-3) and set(res.evaluations["x0"]) == {1.0, 2.5, 4.0}


def test_linear_constraints_on_integers_and_scales_are_kept_as_any_other():
    def fun(d):
        return (d["a"] - 8) ** 2 + (d["b"] - 2) ** 2 + (d["c"] - 1) ** 2

    bounds = {"a": Integer(0, 10), "b": Log(0.1, 10), "c": (0, 5)}
    constraints = [LinearConstraint([[1, 1, 0]], ub=6.5), LinearConstraint([[0, 0, 1.0]], lb=2)]
    res = pcces.minimize(fun, {"a": 0, "b": 1.0, "c": 3.0}, constraints, bounds, max_evaluations=1000, rng=0)
    assert res.success and res.x["a"] == 6 and res.x["b"] == pytest.approx(0.5, abs=0.01)
    assert res.x["c"] == pytest.approx(2.0, abs=1e-6) and len(res.constr) == 1
    milp = scipy.optimize.milp(
        [-1, -2],
        constraints=LinearConstraint([[2, 3]], ub=12.5),
        integrality=[1, 1],
        bounds=scipy.optimize.Bounds(0, 9),
    )
    ours = pcces.minimize(
        lambda x: -x[0] - 2 * x[1], [0, 0], LinearConstraint([[2, 3]], ub=12.5), [(0, 9), (0, 9)], integrality=[1, 1],
        max_evaluations=500, rng=0,
    )  # fmt: skip
    assert ours.fun == pytest.approx(milp.fun)
    with pytest.raises(ValueError, match="a LinearConstraint on kind, a Choice"):
        pcces.minimize(reactor, START, LinearConstraint([[0, 1, 0, 0]], ub=1), REACTOR)


def test_constraints_get_names_as_well():
    nonlinear = NonlinearConstraint(lambda d: d["count"] + d["heat"], -np.inf, 6.2)
    res = pcces.minimize(
        lambda d: reactor(d)[0], START, [nonlinear, lambda d: 4 - d["count"]], REACTOR, maxfev=1200, rng=0
    )
    assert res.success and res.x["count"] == 6 and res.x["heat"] <= 0.2


def on_workers(d):
    return reactor(d)


def test_names_on_workers_and_in_columns():
    alone = pcces.minimize(on_workers, START, bounds=REACTOR, max_evaluations=30, rng=0)
    several = pcces.minimize(on_workers, START, bounds=REACTOR, max_evaluations=30, rng=0, workers=2)
    assert several.x == alone.x

    def columns(d):
        rows = [reactor(dict(zip(d, row))) for row in zip(*d.values())]
        return np.array([f for f, _ in rows]), np.array([[c] for _, c in rows])

    assert pcces.minimize(columns, START, bounds=REACTOR, max_evaluations=30, rng=0, vectorized=True).x == alone.x


def test_without_x0_the_search_starts_in_the_middle():
    first = []
    pcces.minimize(lambda d: first.append(dict(d)) or reactor(d), bounds=REACTOR, max_evaluations=30, rng=0)
    assert first[0] == {"rate": pytest.approx(10**-1.5), "kind": "a", "count": 15, "heat": 0.5}
    opt = pcces.Optimizer(bounds=[(0, 2), (2, 4)])
    assert opt.ask().points[0].tolist() == [1.0, 3.0]
    for bounds in (None, [(0, None)]):
        with pytest.raises(ValueError, match=r"(give x0, or finite bounds|x0 may only be left out)"):
            pcces.Optimizer(bounds=bounds)


def test_a_choice_may_be_of_many():
    assert len(pcces.Choice(*range(100_000)).options) == 100_000
    for same in ((1, 2, 1.0), ([1], [2], [1])):
        with pytest.raises(ValueError, match="different options"):
            pcces.Choice(*same)


def test_a_search_with_names_resumes_to_the_same_bits(tmp_path):
    def finish(opt, save):
        while not opt.stop():
            if save:
                opt.save(tmp_path / "a.npz")
                opt = pcces.Optimizer.load(tmp_path / "a.npz")
            batch = opt.ask()
            values = [reactor(point) for point in batch.points]
            opt.tell(batch, [f for f, _ in values], [c for _, c in values])
        return opt

    whole, parts = (
        finish(pcces.Optimizer(START, bounds=REACTOR, max_evaluations=60, rng=2), save) for save in (False, True)
    )
    assert parts.result.x == whole.result.x and parts.result.x.keys() == REACTOR.keys()
    assert parts.evaluations[:] != [] and np.array_equal(parts.evaluations["kind"], whole.evaluations["kind"])
    path = tmp_path / "run.npz"
    pcces.minimize(reactor, START, bounds=REACTOR, max_evaluations=30, rng=0, checkpoint=path)
    with pytest.raises(ValueError, match="it differs in bounds"):
        pcces.minimize(
            reactor, START, bounds=REACTOR | {"count": Integer(0, 31)}, max_evaluations=30, rng=0, checkpoint=path
        )


def test_columns_whose_names_are_taken_are_told_apart():
    res = pcces.minimize(lambda d: d["f"] ** 2, {"f": 1.0}, bounds={"f": (-1, 1)}, max_evaluations=30, rng=0)
    assert res.evaluations.columns[:2] == ["x_f", "f"] and res.evaluations[0]["f"] == res.evaluations[0]["x_f"] ** 2


WRONG = [
    (lambda: Integer(3, 3), "low < high"),
    (lambda: Integer(0.5, 3), "whole numbers"),
    (lambda: Integer(0, 3, log=True), "at least 1"),
    (lambda: Log(0, 1), "0 < low < high"),
    (lambda: Choice("a"), "at least two different"),
    (lambda: Choice("a", "a"), "at least two different"),
    (lambda: pcces.Optimizer([1.0], bounds=[Choice("a", "b")]), "needs names"),
    (lambda: pcces.Optimizer([1.5], bounds=[Integer(0, 3)]), "x0 = 1.5 must be a whole number"),
    (lambda: pcces.Optimizer([7], bounds=[Integer(0, 3)]), r"x0 = 7 lies outside its bounds \[0, 3\]"),
    (lambda: pcces.Optimizer({"a": 1}, bounds={"a": 7}), "must be a pair"),
    (lambda: pcces.Optimizer([1, 2], bounds=[Integer(0, 3)]), "a point has 2 values, but there are 1"),
    (lambda: pcces.Optimizer([1], bounds=[7]), "1 pairs"),
    (lambda: pcces.Optimizer(START | {"kind": "z"}, bounds=REACTOR), "kind = 'z' is not one of 'a', 'b', 'c'"),
    (lambda: pcces.Optimizer(START | {"hea": 1}, bounds=REACTOR), "unknown variable 'hea'; did you mean 'heat'"),
    (lambda: pcces.Optimizer({"rate": 1.0}, bounds=REACTOR), "give kind, count, heat too"),
    (lambda: pcces.Optimizer(START, bounds=REACTOR, cautious=0.9), "cautious needs continuous variables"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "says"), WRONG)
def test_what_makes_no_sense_is_said(wrong, says):
    with pytest.raises(ValueError, match=says):
        wrong()
    with pytest.raises(TypeError, match="the variables have names: give a dictionary with rate, kind"):
        pcces.Optimizer([1.0, 2.0, 3.0, 4.0], bounds=REACTOR)


def test_only_plain_choices_can_be_saved(tmp_path):
    with pytest.raises(ValueError, match="a search can only be saved if its choices are strings and numbers"):
        pcces.Optimizer({"a": len}, bounds={"a": Choice(len, max)}).save(tmp_path / "a.npz")
    assert Variables.from_data(read_variables(REACTOR, None).plain_data()).kinds == read_variables(REACTOR, None).kinds
