"""The archive of evaluations and the regression models on it."""

import numpy as np
import pytest
from scipy.optimize import minimize

from pcces.blackbox.models.archive import Archive
from pcces.blackbox.models.quadratic import Model, coefficients, fit, local_model, minimise


def test_the_archive_keeps_means_and_counts():
    rng = np.random.default_rng(0)
    archive, points, samples = Archive(), rng.standard_normal((700, 3)), rng.standard_normal((700, 5, 2))
    rows = np.concatenate([archive.add(points[i : i + 7], samples[i : i + 7, 0]) for i in range(0, 700, 7)])
    assert np.array_equal(rows, np.arange(700)) and len(archive.points) == 700  # it grew past its first size, twice
    for row in (0, 300, 699):
        for more in (samples[row, 1:3], samples[row, 3:]):
            assert archive.record(row, points[row], more) == row
        assert archive.outputs[row] == pytest.approx(samples[row].mean(0)) and archive.counts[row] == 5
    assert np.array_equal(archive.points, points) and archive.counts[1] == 1


def test_failed_evaluations_are_not_archived():
    archive = Archive()
    rows = archive.add(np.arange(4.0)[:, None], np.array([[1.0], [np.inf], [2.0], [np.nan]]))
    assert rows.tolist() == [0, -1, 1, -1] and archive.points.ravel().tolist() == [0.0, 2.0]


def quadratic_outputs(U, value, gradient, hessian):
    return value + U @ gradient.T + 0.5 * np.einsum("ki,oij,kj->ko", U, hessian, U)


def random_quadratic(n, outputs, seed):
    rng = np.random.default_rng(seed)
    hessian = rng.standard_normal((outputs, n, n))
    return rng.standard_normal(outputs), rng.standard_normal((outputs, n)), hessian + hessian.transpose(0, 2, 1)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_quadratic_is_recovered(n):
    value, gradient, hessian = random_quadratic(n, 3, n)
    U = np.random.default_rng(1).standard_normal((3 * coefficients(n), n))
    Y = quadratic_outputs(U, value, gradient, hessian)
    model = fit(U, Y, np.ones(len(U)), np.ones(len(U)), np.zeros(3))
    assert model.value == pytest.approx(value, abs=1e-4) and model.gradient == pytest.approx(gradient, abs=1e-4)
    assert model.hessian == pytest.approx(hessian, abs=1e-4)
    fresh = np.random.default_rng(2).standard_normal((10, n))
    assert model(fresh) == pytest.approx(quadratic_outputs(fresh, value, gradient, hessian), abs=1e-3)
    assert np.all(model.error < 1e-3)


def test_few_points_give_a_linear_model():
    U = np.random.default_rng(0).standard_normal((8, 4))
    slope = np.array([[1.0, -2.0, 3.0, 0.5]])
    model = fit(U, 7 + U @ slope.T, np.ones(8), np.ones(8), np.zeros(1))
    assert np.all(model.hessian == 0) and model.gradient == pytest.approx(slope, abs=1e-6)
    assert model.value == pytest.approx([7.0], abs=1e-6)


def test_noise_averages_out_and_the_error_says_how_far():
    value, gradient, hessian = random_quadratic(2, 1, 3)
    misses, errors = {}, {}
    for points in (40, 1000):
        miss = []
        for seed in range(30):
            rng = np.random.default_rng(seed)
            U = rng.standard_normal((points, 2))
            Y = quadratic_outputs(U, value, gradient, hessian) + rng.standard_normal((points, 1))
            model = fit(U, Y, np.ones(points), np.ones(points), np.ones(1))
            miss.append(model.value[0] - value[0])
        misses[points], errors[points] = np.std(miss), model.error[0]
    assert misses[1000] < 0.4 * misses[40]
    for points in misses:
        assert 0.5 * misses[points] < errors[points] < 4 * misses[points]


def test_repeats_weigh_more_than_single_evaluations():
    U = np.concatenate([np.full((1, 1), 0.0), np.linspace(-1, 1, 20)[:, None]])
    Y = np.concatenate([[[1.0]], np.zeros((20, 1))])
    ones = np.ones(21)
    single = fit(U, Y, ones, ones, np.ones(1)).value[0]
    repeated = fit(U, Y, ones, np.concatenate([[500.0], np.ones(20)]), np.ones(1)).value[0]
    assert repeated > 1.5 * single > 0


@pytest.mark.parametrize("seed", range(8))
def test_the_models_minimum_is_scipys(seed):
    n = 3
    value, gradient, hessian = random_quadratic(n, 2, seed)
    hessian[0] = hessian[0] @ hessian[0] + np.eye(n)  # convex objective, convex constraint
    hessian[1] = 0.3 * (hessian[1] @ hessian[1] + np.eye(n))
    value[1] = -1.0
    model = Model(value, gradient, hessian, np.ones(2), np.zeros(2), 99)
    everywhere = np.zeros((0, n)), np.zeros(0)
    ours, multipliers = minimise(
        model, [np.zeros(n)], 2.0, np.zeros(1), everywhere, np.zeros(1), rounds=30, keep_slack=0.0
    )
    theirs = minimize(
        lambda u: model(u[None])[0, 0],
        np.zeros(n),
        method="SLSQP",
        bounds=[(-2, 2)] * n,
        constraints={"type": "ineq", "fun": lambda u: -model(u[None])[0, 1]},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert model(ours[None])[0, 0] == pytest.approx(theirs.fun, abs=1e-5)
    assert model(ours[None])[0, 1] <= 1e-6 and multipliers[0] >= 0 and np.abs(ours).max() <= 2 + 1e-9


def test_backoff_radius_and_half_spaces_are_kept():
    slope = Model(*map(np.array, ([0.0, -1.0], [[-1.0, 0.0], [1.0, 0.0]])), np.zeros((2, 2, 2)), *np.zeros((2, 2)), 9)
    none = np.zeros((0, 2)), np.zeros(0)

    def reach(radius=5.0, backoff=0.0, G=none[0], h=none[1]):
        return minimise(slope, [np.zeros(2)], radius, np.array([backoff]), (G, h), np.zeros(1), keep_slack=0.0).x[0]

    assert reach() == pytest.approx(1.0, abs=1e-4)  # up to the constraint
    assert reach(backoff=0.25) == pytest.approx(0.75, abs=1e-4)
    assert reach(radius=0.5) == pytest.approx(0.5, abs=1e-4)
    assert reach(G=np.array([[1.0, 0.0]]), h=np.array([0.3])) == pytest.approx(0.3, abs=1e-4)
    assert reach(backoff=2.0) == pytest.approx(-1.0, abs=1e-3)  # back inside, if it starts outside


def test_local_models_need_points_that_span_the_space():
    rng = np.random.default_rng(0)
    archive = Archive()
    archive.add(rng.standard_normal((4, 2)), rng.standard_normal((4, 1)))
    assert local_model(archive, np.zeros(2), np.eye(2), 1.0, np.zeros(1)) is None
    archive.add(rng.standard_normal((30, 2)), np.zeros((30, 1)))
    local = local_model(archive, np.zeros(2), np.eye(2), 1.0, np.zeros(1))
    assert local is not None and np.all(np.isfinite(local.model.gradient))


def test_local_models_see_the_function_near_by():
    rng = np.random.default_rng(0)
    archive = Archive()
    x = np.array([1.0, -1.0])
    points = x + 0.1 * rng.standard_normal((60, 2))
    archive.add(points, np.sin(points).sum(1, keepdims=True))
    factor = np.array([[2.0, 0.0], [1.0, 1.0]])
    local = local_model(archive, x, factor, 0.1, np.zeros(1))
    step = np.array([[0.03, -0.02]])
    assert local.model(local.to_u(step))[0, 0] == pytest.approx(np.sin(x + step).sum(), abs=1e-4)
