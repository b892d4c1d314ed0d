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


@pytest.mark.parametrize(
    "options",
    [{"max_evaluations": 60}, {}, {"fun": valleys, "strategy": "gaussian"}, {"asynchronous": True, "strategy": "cma"}],
    ids=["few", "model", "gaussian", "asynchronous"],
)
def test_the_search_begins_at_the_best_of_several_starting_points(options):
    alone, several = solve(STARTS[0], restarts=False, **options), solve(STARTS, restarts=False, **options)
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
