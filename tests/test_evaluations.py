"""The table of evaluations, the improvement over x0, and the status for no progress."""

import numpy as np
import pandas
import pytest

import pcces
from pcces.blackbox import evaluations
from pcces.blackbox.evaluations import Evaluations

BOX = [(-2.0, 2.0)] * 2


def noisy(seed=0, noise=0.05):
    rng = np.random.default_rng(seed)

    def fun(x):
        a, b = noise * rng.standard_normal(2)
        return (x[0] - 1) ** 2 + (x[1] - 1) ** 2 + a, [x[0] + x[1] - 1 + b, -9.0]

    return fun


def test_the_table_has_every_evaluation_as_it_was():
    called, problem = [], noisy()

    def fun(x):
        out = np.nan if x[0] > 1.2 else problem(x)
        called.append((*x, *([out[0], *out[1]] if isinstance(out, tuple) else [np.nan] * 3)))
        return out

    res = pcces.minimize(fun, [0.0, 0.0], bounds=BOX, max_evaluations=400, rng=0, strategy="model")
    table = pandas.DataFrame(res.evaluations)
    assert list(table) == ["x0", "x1", "f", "c0", "c1", "seed", "seconds", "why"] == res.evaluations.columns
    assert np.array_equal(table[["x0", "x1", "f", "c0", "c1"]], called, equal_nan=True) and len(table) == res.nfev
    assert table.f.isna().sum() == res.failures > 0
    assert table.seconds.is_monotonic_increasing and 0 < table.seconds.iloc[-1] < 60 and table.seed.is_unique
    counts = table.why.value_counts()
    assert set(counts.index) == {"start", "sample", "trial", "incumbent", "certify"}
    assert counts["certify"] == res.certificate.samples
    fresh = table[table.why == "certify"]
    assert np.all(fresh[["x0", "x1"]] == res.x) and fresh.f.mean() == pytest.approx(res.fun)
    assert np.array_equal(res.evaluations["c0"], table.c0, equal_nan=True)
    assert res.evaluations[-1] == res.evaluations[len(table) - 1] == table.iloc[-1].to_dict()
    with pytest.raises(KeyError, match="no column 'c2'; there are x0, x1, f, c0"):
        res.evaluations["c2"]


def test_a_long_run_keeps_the_newest(monkeypatch):
    monkeypatch.setattr(evaluations, "MOST_NUMBERS", 3000)
    table = Evaluations(["x0"])
    for k in range(1000):
        table.add(np.full((7, 1), k), np.arange(7), ["sample"] * 7, np.arange(7.0) + 7 * k, np.zeros((7, 1)))
    assert len(table) + table.dropped == 7000 and 150 <= len(table) <= 300
    assert np.array_equal(table["f"], np.arange(7000.0)[-len(table) :]) and table["x0"][-1] == 999
    assert f"({table.dropped} older ones were dropped)" in repr(table)
    other = Evaluations(["x0"])
    other.restore(table.arrays())
    assert other[:] == table[:] and other.dropped == table.dropped and other.seconds >= table["seconds"][-1]
    other.add(np.zeros((1, 1)), np.zeros(1, int), ["trial"], np.array([np.inf]), None)
    assert np.isnan(other[-1]["f"]) and np.isnan(other[-1]["c0"])
    with pytest.raises(ValueError, match="damaged"):
        other.restore(table.arrays() | {"evaluations_f": np.zeros(3)})


def test_of_points_that_are_very_long_only_outputs_are_kept(monkeypatch):
    monkeypatch.setattr(evaluations, "WIDEST", 3)
    table = Evaluations([f"x{i}" for i in range(4)])
    table.add(object(), np.zeros(2, int), ["start"] * 2, np.array([1.0, 2.0]), np.array([[3.0], [4.0]]))
    assert table[1] == {"f": 2.0, "c0": 4.0, "seed": 0, "seconds": table[1]["seconds"], "why": "start"}


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.5])
def test_the_improvement_is_that_of_the_true_means(noise):
    misses = []
    for seed in range(8):
        res = pcces.minimize(noisy(seed, noise), [0.0, 0.0], bounds=BOX, max_evaluations=600, rng=seed)
        true = 2.0 - ((res.x - 1) ** 2).sum()
        assert res.improvement.error < 6 * noise / 20**0.5 + 1e-12
        misses.append((res.improvement.value - true) / max(res.improvement.error, 1e-9))
    assert np.abs(misses).max() < 4 and np.mean(np.abs(misses)) < 1.7
    assert "±" in str(res.improvement)


def flat(n, gain=1e-4):
    """Next to nothing can be gained in so many variables and so few evaluations."""
    rng = np.random.default_rng(1)

    def fun(X):
        noise = 0.01 * rng.standard_normal((2, len(X)))
        return 5.5 + gain * ((X - 1) ** 2 - 1).sum(1) + noise[0], X[:, 0] - 0.5 + noise[1]

    return pcces.minimize(fun, np.zeros(n), bounds=[(-2, 2)] * n, max_evaluations=1000, vectorized=True, rng=0)


def test_no_progress_is_no_success():
    res = flat(500)
    assert res.certificate.holds and not res.success and res.status == 4
    assert res.message.startswith("no progress: ") and res.improvement.value < 0.01
    assert "give more evaluations" in res.message


def test_steps_that_shrink_to_nothing_under_noise_are_no_progress_either():
    """In so many variables hardly a trial is clearly better: that looks like convergence."""
    rng = np.random.default_rng(2)

    def fun(X):
        noise = 0.05 * rng.standard_normal((2, len(X)))
        return 5.5 * ((X - 1) ** 2).mean(1) + noise[0], X.mean(1) - 0.5 + noise[1]

    n = 2000
    res = pcces.minimize(fun, np.zeros(n), bounds=[(-2, 2)] * n, max_evaluations=8000, vectorized=True, rng=0)
    assert "converged: the step size" in res.message and 5.5 * ((res.x - 1) ** 2).mean() > 5.4
    assert res.certificate.holds and res.status == 4 and not res.success


def test_progress_is_a_success_also_where_it_is_small():
    res = flat(3, gain=0.3)
    assert res.success and res.status == 0 and res.improvement.value > 0.2


def test_a_start_at_the_optimum_has_nothing_to_gain_once_converged():
    res = pcces.minimize(lambda x: (x**2).sum(), [0.0, 0.0], max_evaluations=4000, rng=0)
    assert res.success and res.improvement == (0.0, 0.0) and "converged" in res.message
    early = pcces.minimize(lambda x: (x**2).sum(), [0.0, 0.0], max_evaluations=20, rng=0)
    assert early.status == 4 and "no better point than x0 was found" in early.message


def test_that_a_search_converged_is_known_from_its_file(tmp_path):
    opt = pcces.Optimizer([0.0, 0.0], max_evaluations=4000, rng=0)
    while not opt.stop():
        batch = opt.ask()
        opt.tell(batch, (batch.points**2).sum(1))
    opt.save(tmp_path / "search.npz")
    again = pcces.Optimizer.load(tmp_path / "search.npz")
    assert again.stop().startswith("converged: ") and again.result.status == opt.result.status == 0


def test_a_start_that_is_not_feasible_is_improved_upon_by_any_that_is():
    res = pcces.minimize(lambda x: (-x[0], x[0] - 1), [3.0], bounds=[(0, 4)], max_evaluations=300, rng=0)
    assert res.improvement.value < 0 and res.success


def test_a_start_that_fails_has_no_improvement():
    res = pcces.minimize(lambda x: np.nan if x[0] > 2 else x[0] ** 2, [3.0], max_evaluations=300, rng=0)
    assert np.isnan(res.improvement.value) and res.success
