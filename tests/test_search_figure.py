"""The picture of a search, and the names that stand in it."""

import pickle

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import pcces

BOX = [(-2.0, 2.0)] * 2


def noise(seed=0, size=0.05):
    rng = np.random.default_rng(seed)
    return lambda: size * rng.standard_normal()


def panels(result):
    figure = result.plot()
    figure.canvas.draw()  # whatever would fail when it is drawn fails here
    return {axes.get_title(loc="left").split()[0]: axes for axes in figure.axes}


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def line(axes, label):
    (found,) = [each for each in axes.lines if each.get_label() == label]
    return found


# -- names -------------------------------------------------------------------------------------------------------------


def heat(x):
    return x[0] - 1.0


def loads(x):
    return [x[1] - 1.0, x[0] - 9.0]


def test_functions_give_constraints_their_names():
    constraints = [
        heat, lambda x: x[1] - 9, {"type": "ineq", "fun": heat}, loads, NonlinearConstraint(loads, [-5, -99], [5, np.inf])
    ]  # fmt: skip
    res = pcces.minimize(lambda x: (x**2).sum(), [1.5, 0.0], constraints, BOX, max_evaluations=60, rng=0)
    assert res.setting.constraints == (
        "heat", "c1", "-heat", "loads[0]", "loads[1]", "loads[0] (upper)", "loads[0] (lower)", "loads[1] (lower)"
    )  # fmt: skip
    assert res.setting.labels[:2] == ["heat <= 0", "c1 <= 0"] and "8 constraints: heat <= 0" in repr(res.setting)


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_dictionary_of_constraints_gives_them_names_in_any_order(vectorized):
    def fun(x):
        x = np.atleast_2d(x)
        c = {"load": x[:, 0] - 0.5, "heat": x[:, 1] - 9.0}
        if x[0, 0] > 0.1:  # others come first, and nothing is mixed up
            c = dict(reversed(c.items()))
        f = ((x - 1) ** 2).sum(1)
        return (f, c) if vectorized else (float(f[0]), {name: float(values[0]) for name, values in c.items()})

    res = pcces.minimize(fun, [0.0, 0.0], bounds=BOX, max_evaluations=300, rng=0, vectorized=vectorized)
    assert res.success and res.x == pytest.approx([0.5, 1.0], abs=1e-3)
    assert res.constr == pytest.approx([0.0, -8.0], abs=1e-2) and res.setting.constraints == ("load", "heat")
    assert "(constraint 0 (load))" in res.message


def test_other_names_later_are_refused():
    def fun(x):
        return x[0] ** 2, {"heat": -1.0} if x[0] > 0.5 else {"cold": -1.0}

    with pytest.raises(ValueError, match="constraints called cold, but heat before"):
        pcces.minimize(fun, [1.0], bounds=[(-2, 2)], max_evaluations=100, rng=0)


def test_names_are_told_and_kept_in_files(tmp_path):
    opt = pcces.Optimizer([1.0, 1.0], max_evaluations=100, rng=0)
    batch = opt.ask()
    k = len(batch)
    opt.tell(batch, np.ones(k), {"heat": np.full(k, -1.0), "load": np.full(k, 2.0)})
    assert opt.result.setting.constraints == ("heat", "load")
    opt.save(tmp_path / "search.npz")
    again = pcces.Optimizer.load(tmp_path / "search.npz")
    batch = again.ask()
    k = len(batch)
    again.tell(batch, np.ones(k), {"load": np.full(k, 2.0), "heat": np.full(k, -1.0)})
    assert again.result.setting.constraints == ("heat", "load")
    assert np.all(again.evaluations["c0"] == -1) and np.all(again.evaluations["c1"] == 2)
    with pytest.raises(ValueError, match="called cold, load now, but were heat, load before"):
        again.tell(again.ask(), np.ones(1), {"cold": [1.0], "load": [1.0]})


# -- the picture ---------------------------------------------------------------------------------------------------------


def test_constraints_are_labelled_and_drawn_as_they_were():
    a = noise()

    def fun(x):
        return float(((x - 1) ** 2).sum() + a()), {"heat $": x.sum() - 1 + a(), "load": x[0] - 1.5 + a()}

    res = pcces.minimize(fun, [0.0, 0.0], bounds=BOX, max_evaluations=200, rng=0)
    drawn = panels(res)
    assert legend(drawn["constraints"]) == [r"heat \$ ≤ 0", "load ≤ 0"]
    assert np.array_equal(line(drawn["constraints"], "load ≤ 0").get_ydata(), res.history["excess"][:, 1])
    assert np.array_equal(line(drawn["objective"], "feasible").get_xdata(), res.history["evaluations"])
    low, high = drawn["constraints"].get_ylim()
    assert low < res.history["excess"].min() * 0.5 and high > 0


def test_limits_that_are_not_on_means_are_drawn_as_what_is_limited():
    a, b = noise(), noise(1, 0.2)
    limits = ["P(> 0.1) <= 0.2", "mean <= 0.5"]
    res = pcces.minimize(
        lambda x: (float(((x - 1) ** 2).sum() + a()), [x.sum() - 1 + b(), x[0] + b()]), [0.0, 0.0], bounds=BOX,
        limits=limits, max_evaluations=1500, rng=0,
    )  # fmt: skip
    drawn = panels(res)
    assert legend(drawn["constraints"]) == ["c0: P(> 0.1) ≤ 0.2", "c1: mean ≤ 0.5"]
    share = line(drawn["constraints"], "c0: P(> 0.1) ≤ 0.2").get_ydata()
    assert share.min() >= -0.2 and share.max() <= 0.8 and np.ptp(share) > 0.02
    mean = line(drawn["constraints"], "c1: mean ≤ 0.5").get_ydata()
    assert mean == pytest.approx(res.history["constr"][:, 1])  # the limit is taken off there, too


def test_an_equality_is_one_line():
    res = pcces.minimize(
        lambda x: (float(x @ x), [x.sum() - 1, x[0] - 1.5]), [0.0, 0.0], bounds=BOX, equalities=[0], maxfev=400, rng=0
    )
    assert res.history["excess"].shape[1] == 2 < res.history["constr"].shape[1]
    assert {"c0 = 0", "c1 ≤ 0"} == set(legend(panels(res)["constraints"]))


def test_of_many_constraints_the_closest_are_drawn():
    slopes = np.random.default_rng(3).standard_normal((30, 2))
    res = pcces.minimize(lambda x: (x @ x, slopes @ x - np.arange(1, 31)), [0.5, 0.5], maxfev=60, rng=0)
    labels = legend(panels(res)["constraints"])
    assert len(labels) == 9 and labels[-1] == "and 22 farther away" and labels[0] == "c0 ≤ 0"


def test_x_is_shown_between_its_bounds_with_names_scales_and_choices():
    bounds = {
        "rate": pcces.Log(1e-4, 1),
        "count": pcces.Integer(0, 10),
        "fuel": pcces.Choice("gas", "coal", "oil"),
        "p": (0, 4),
    }
    start = {"rate": 0.01, "count": 5, "fuel": "coal", "p": 1.0}

    def fun(d):
        return abs(np.log10(d["rate"]) + 3) + (d["count"] - 7) ** 2 + (d["fuel"] != "oil") + (d["p"] - 3) ** 2

    res = pcces.minimize(fun, start, bounds=bounds, max_evaluations=300, rng=0)
    axes = panels(res)["x,"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["rate", "count", "fuel", "p"]
    assert [text.get_text() for text in axes.texts] == [
        res.setting.variables[0].text(res.x["rate"]),
        "7",
        "oil",
        f"{res.x['p']:.5g}",
    ]
    markers = {mark: [each.get_xdata()[0] for each in axes.lines if each.get_marker() == mark] for mark in "o|"}
    assert markers["|"] == pytest.approx([0.5, 0.5, 0.5, 0.25])
    rate = (np.log10(res.x["rate"]) + 4) / 4
    assert markers["o"] == pytest.approx([rate, 0.7, 1.0, res.x["p"] / 4])
    cloud = axes.lines[0].get_xdata()
    assert cloud == pytest.approx((np.log10(res.evaluations["rate"]) + 4) / 4)


@pytest.mark.parametrize("n", [1, 2, 30, 100, 130])
def test_any_number_of_variables(n):
    opt = pcces.Optimizer(np.linspace(-1, 1, n), bounds=[(-2, 2)] * n, max_evaluations=200, rng=0)
    while not opt.stop():
        batch = opt.ask()
        x = np.asarray(batch.points)
        opt.tell(batch, (x**2).sum(1), x[:, 0] - 1)
    axes = panels(opt.result)["x,"]
    starts = [each.get_xdata()[0] for each in axes.lines if each.get_marker() == "|"]
    assert starts == pytest.approx((np.linspace(-1, 1, n)[:100] + 2) / 4)
    assert ("the first 100 of 130" in axes.get_title(loc="left")) == (n == 130)


def test_variables_without_bounds_lie_between_the_least_and_the_largest_evaluated():
    res = pcces.minimize(lambda x: (x[0] - 1) ** 2, [5.0], max_evaluations=100, rng=0)
    axes = panels(res)["x,"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["least", "largest"]
    low, high = res.evaluations["x0"].min(), res.evaluations["x0"].max()
    (answer,) = [each.get_xdata()[0] for each in axes.lines if each.get_marker() == "o"]
    assert answer == pytest.approx((res.x[0] - low) / (high - low))


def written(axes):
    return [text.get_text() for text in axes.texts]


def test_a_search_that_has_hardly_begun():
    opt = pcces.Optimizer([0.0, 1.0], bounds=BOX, max_evaluations=300, rng=0, strategy="model")
    drawn = panels(opt.result)
    assert written(drawn["objective"]) == ["nothing is evaluated yet"] and written(drawn["constraints"]) == [
        "not known yet"
    ]
    assert written(drawn["x,"]) == ["0", "1"]
    rng = np.random.default_rng(0)
    while not len(opt.history):
        batch = opt.ask()
        x = batch.points
        opt.tell(batch, (x**2).sum(1) + 0.1 * rng.standard_normal(len(x)), np.stack([x[:, 0] - 1, x[:, 1] - 2], 1))
        if len(opt.evaluations) < 10:
            assert written(panels(opt.result)["step"]) == ["no iteration is finished yet"]
    drawn = panels(opt.result)
    assert len(opt.history) == 1 and line(drawn["step"], "step size σ").get_marker() == "o"
    assert line(drawn["constraints"], "c1 ≤ 0").get_ydata() == pytest.approx(opt.history["excess"][:, 1])
    assert drawn["objective"].figure.get_suptitle() == "still searching: nothing is certified yet"


def test_a_search_of_which_every_evaluation_failed():
    res = pcces.minimize(lambda x: np.nan, [0.0, 0.0], bounds=BOX, max_evaluations=60, rng=0)
    drawn = panels(res)
    assert written(drawn["objective"]) == ["nothing was evaluated without failing"]
    assert "no point could be evaluated without failing" in drawn["x,"].figure.get_suptitle()


def test_the_headline_has_the_colour_of_the_grade(tmp_path):
    def colour(**options):
        res = pcces.minimize(lambda x: (x @ x, 0.5 - x[0]), [1.0, 1.0], bounds=BOX, maxfev=200, rng=0, **options)
        return res.certificate.grade, res.plot()._suptitle.get_color()

    colours = dict([colour(), colour(deterministic=True)])
    assert set(colours) == {"asymptotic", "guaranteed"} and colours["asymptotic"] != colours["guaranteed"]


def test_a_result_that_was_pickled_is_drawn_as_before(tmp_path):
    res = pcces.minimize(lambda x: (x @ x, 0.5 - x[0]), [1.0, 1.0], bounds=BOX, maxfev=200, rng=0)
    res.plot(tmp_path / "a.png")
    pickle.loads(pickle.dumps(res)).plot(tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
