"""Several starting points, and what was known before the search began."""

import numpy as np
import pytest

import pcces

BOX = [(-5.0, 5.0)] * 2
STARTS = [
    [-3.5, -3.5],
    [0.0, 0.0],
    [3.0, 1.0],
]  # f = 5.5, 18 and 4; in the last valley lies the optimum, (2.5, 2.5) with 0.5


def valleys(x):
    """A valley at (3, 3), cut off by the limit, and a higher one at (-3, -3)."""
    x = np.asarray(x)
    return min(((x - 3) ** 2).sum(), ((x + 3) ** 2).sum() + 5), x.sum() - 5


def noisy(x, rng):
    return valleys(x)[0] + 0.1 * rng.standard_normal(), valleys(x)[1] + 0.1 * rng.standard_normal()


def solve(x0, fun=noisy, **options):
    options = {"common_random_numbers": fun is noisy, "max_evaluations": 600, "rng": 0, **options}
    return pcces.minimize(fun, x0, bounds=BOX, **options)


# -- several starting points -------------------------------------------------------------------------------------------------------


def test_the_picture_shows_all_starting_points(tmp_path):
    figure = solve(STARTS, max_evaluations=60).plot(tmp_path / "search.png")
    (marks,) = (
        line
        for axes in figure.axes
        for line in axes.get_lines()
        if line.get_label() == "start" and line.get_marker() == "|"
    )
    assert len(marks.get_xdata()) == 3


@pytest.mark.parametrize(
    "options",
    [{"max_evaluations": 60}, {}, {"fun": valleys, "strategy": "gaussian"}, {"asynchronous": True, "strategy": "cma"}],
    ids=["few", "model", "gaussian", "asynchronous"],
)
def test_the_search_begins_at_the_best_of_several_starting_points(options):
    alone, several = solve(STARTS[0], restarts=False, **options), solve(STARTS, restarts=False, **options)
    assert several.setting.x0.tolist() == STARTS and alone.setting.x0.tolist() == STARTS[0]
    assert several.status == 0 and np.linalg.norm(several.x - 2.5) < 0.8 and several.fun < 1.3
    assert several.improvement.value == pytest.approx(4.0 - several.fun, abs=0.4)  # over the best of them
    points, why = several.evaluations.points, several.evaluations["why"]
    assert all((points[why == "start"] == start).all(1).any() for start in STARTS)
    if "max_evaluations" not in options:
        assert np.linalg.norm(alone.x + 3) < 0.5  # no way leads out of the higher valley


def test_starting_points_may_fail_or_break_limits_and_later_runs_begin_at_them_in_their_order():
    def fun(x):
        return valleys(x) if x[0] > 0 else (np.nan, [np.nan])

    opt = pcces.Optimizer([STARTS[0], [4.0, 4.0], [3.0, 1.0], [-4.0, 1.0]], bounds=BOX, max_evaluations=400, rng=0)
    batch = opt.ask()
    assert batch.points.tolist() == [STARTS[0], STARTS[0], [4.0, 4.0], [3.0, 1.0], [-4.0, 1.0]]
    told = [fun(x) for x in batch.points]
    opt.tell(batch, [f for f, _ in told], [np.reshape(c, -1) for _, c in told])
    assert opt.result.x.tolist() == [3.0, 1.0]
    for later in ([4.0, 4.0], STARTS[0], [-4.0, 1.0]):  # over the limit, and two that failed
        assert opt.search._another_run() and opt.space.to_x(opt.state.run.es.x).tolist() == later
    assert opt.search._another_run() and not (opt.space.to_x(opt.state.run.es.x) == np.array(STARTS)).all(1).any()


def test_named_starting_points_are_dictionaries_and_files_know_them(tmp_path):
    bounds = {"k": pcces.Integer(0, 20), "way": pcces.Choice("a", "b", "c")}
    starts = [{"k": 1, "way": "a"}, {"k": 3, "way": "b"}]
    path, calls = tmp_path / "run.npz", []

    def fun(x):
        calls.append(dict(x))
        if len(calls) == 12:
            raise KeyboardInterrupt
        return (x["k"] - 6) ** 2 + 10.0 * (x["way"] != "b"), x["k"] - 8.0

    given = {"bounds": bounds, "rng": 0, "max_evaluations": 60, "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        pcces.minimize(fun, starts, **given)
    assert calls[2] == starts[1]
    with pytest.raises(ValueError, match="it differs in x0"):
        pcces.minimize(fun, starts[:1], **given)
    res, whole = pcces.minimize(fun, starts, **given), pcces.minimize(fun, starts, **given | {"checkpoint": None})
    assert res.x == {"k": 6, "way": "b"} and np.array_equal(res.evaluations["f"], whole.evaluations["f"])


def test_starting_points_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match=r"x0\[1\]\[0\] = 7 lies outside its bounds \[-5, 5\]"):
        solve([[0.0, 0.0], [7.0, 0.0]])
    with pytest.raises(ValueError, match=r"x0\[1\] has 3 numbers, but x0\[0\] has 2"):
        pcces.Optimizer([np.zeros(2), np.zeros(3)])
    with pytest.raises(ValueError, match="x0 has 40 starting points: too many for 60 evaluations"):
        solve(np.zeros((40, 2)), max_evaluations=60)


# -- earlier data ------------------------------------------------------------------------------------------------------------------


def data(k, seed=1):
    rng = np.random.default_rng(seed)
    points = rng.uniform(-5, 5, (k, 2))
    told = [noisy(x, rng) for x in points]
    return points, np.array([f for f, _ in told]), np.array([[c] for _, c in told])


def test_earlier_data_take_the_place_of_first_points():
    earlier = data(30)
    without, opt = (
        pcces.Optimizer(x0, bounds=BOX, max_evaluations=50, rng=0, initial_data=given)
        for x0, given in (([-3.5, -3.5], None), (None, earlier))
    )
    points, f, c = earlier
    best = points[np.flatnonzero(c[:, 0] <= 0)[np.argmin(f[c[:, 0] <= 0])]]
    assert opt.ask().points.tolist() == [best.tolist()] * 2 and opt.evaluations_left == 50
    lengths = []
    for each in (without, opt):
        for _ in range(2):
            batch = each.ask()
            told = [noisy(x, np.random.default_rng(seed)) for x, seed in zip(batch.points, batch.seeds)]
            each.tell(batch, [f for f, _ in told], [c for _, c in told])
        lengths.append(len(batch))
    assert lengths == [5, 1]  # first points that fill the space; a point that promises much
    assert opt.state.phase == "propose" and len(opt.search.archive.points) == 32
    assert np.linalg.norm(opt.ask().points[0] - 2.5) < 2


@pytest.mark.parametrize("options", [{"max_evaluations": 30}, {"max_evaluations": 30, "asynchronous": True}])
def test_with_earlier_data_few_evaluations_are_enough(options):
    res = solve(None, initial_data=data(40), **options)
    assert res.status == 0 and res.nfev <= 30 and len(res.evaluations) == res.nfev
    assert res.fun < 1.2 and res.certificate.samples <= 30
    assert solve([-3.5, -3.5], **options).fun > res.fun
    known = [[2.4, 2.4], [0.0, 0.0], [4.0, 4.0]], [0.7, 18.0, 2.0], [-0.2, -5.0, 3.0]
    stays = solve(None, initial_data=known, **options)
    assert stays.status == 0 and np.allclose(stays.x, 2.4, atol=0.5)  # a certificate for what was known is a success


def test_tables_of_earlier_searches_are_earlier_data(tmp_path):
    pandas = pytest.importorskip("pandas")
    first = solve([-1.0, 2.0], max_evaluations=40)
    points, table = first.evaluations.points, first.evaluations
    given = points, table["f"], table["c0"]
    tables = [given, table, pandas.DataFrame(table), {name: table[name] for name in table.columns}]
    asked = [pcces.Optimizer(bounds=BOX, max_evaluations=40, rng=0, initial_data=each) for each in tables]
    for opt in asked:
        assert np.array_equal(opt.search.archive.points, asked[0].search.archive.points)
        assert np.array_equal(opt.search.archive.counts, asked[0].search.archive.counts)
        assert opt.ask().points.tolist() == asked[0].ask().points.tolist()
    assert asked[0].search.archive.counts.max() > 8  # repeated evaluations are known as such


def test_earlier_data_of_named_variables_and_in_files(tmp_path):
    bounds = {"k": pcces.Integer(0, 20), "way": pcces.Choice("a", "b", "c")}
    rows = [{"k": k, "way": way} for k in (1, 5, 12) for way in "abc"]

    def fun(x):
        return (x["k"] - 6.0) ** 2 + 10.0 * (x["way"] != "b"), x["k"] - 8.0

    f, c = zip(*map(fun, rows))
    path, calls = tmp_path / "run.npz", []

    def interrupted(x):
        calls.append(x)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return fun(x)

    given = {"bounds": bounds, "rng": 0, "max_evaluations": 30, "initial_data": (rows, f, c)}
    with pytest.raises(KeyboardInterrupt):
        pcces.minimize(interrupted, checkpoint=path, **given)
    assert calls[0] == {"k": 5, "way": "b"}
    with pytest.raises(ValueError, match="it differs in initial_data"):
        pcces.minimize(fun, calls[0], checkpoint=path, **given | {"initial_data": None})
    res, whole = pcces.minimize(fun, checkpoint=path, **given), pcces.minimize(fun, **given)
    assert res.x == {"k": 6, "way": "b"} and np.array_equal(res.evaluations["f"], whole.evaluations["f"])
    table = {"k": [1, 5], "way": ["a", "b"], "f": [35.0, 1.0], "c0": [-7.0, -3.0]}
    assert pcces.Optimizer(bounds=bounds, initial_data=table).ask().points[0] == {"k": 5, "way": "b"}


def test_points_of_ones_own_can_be_told_at_any_time():
    opt = pcces.Optimizer([-3.5, -3.5], bounds=BOX, max_evaluations=60, rng=0)
    batch = opt.ask()
    with pytest.raises(RuntimeError, match="first tell the batch that was asked for"):
        opt.add([[2.0, 2.0]], [2.0], [-1.0])
    while opt.state.phase == "start" or opt.state.f_scale is None:
        told = [noisy(x, np.random.default_rng(seed)) for x, seed in zip(batch.points, batch.seeds)]
        opt.tell(batch, [f for f, _ in told], [c for _, c in told])
        batch = opt.ask() if opt.state.f_scale is None else batch
    left, violations = opt.evaluations_left, opt.result.violations
    opt.add([[2.0, 2.0], [2.4, 2.4], [4.0, 4.0]], [2.0, 0.7, 2.0], [[-1.0], [-0.2], [3.0]])
    assert opt.evaluations_left == left and opt.result.violations == violations
    batch = opt.ask()
    told = [noisy(x, np.random.default_rng(seed)) for x, seed in zip(batch.points, batch.seeds)]
    opt.tell(batch, [f for f, _ in told], [c for _, c in told])
    assert np.linalg.norm(opt.result.x - 2.4) < 0.5  # the search is there now


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([[0.0, 0.0]],), r"got 1 parts"),
        (([[0.0, 0.0], [1.0, 1.0]], [1.0]), r"of 2 points f must have shape \(2,\)"),
        (([[0.0, 0.0, 0.0]], [1.0]), r"2 pairs|3 pairs"),
        (([[0.0, 0.0], [9.0, 0.0]], [1.0, 2.0]), "point 1 of initial_data lies outside the bounds"),
        ({"x0": [1.0], "f": [2.0], "x2": [1.0]}, "has no column x1; it has x0, f, x2"),
        ({"a": [1.0], "f": [2.0]}, "has no column x0; it has a, f"),
    ],
)
def test_earlier_data_that_make_no_sense_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        pcces.Optimizer(bounds=BOX, initial_data=given)
