"""Few evaluations: Gaussian processes, what they propose, and the certificate that is left enough."""

import numpy as np
import pytest
import scipy

import pcces
from pcces.blackbox import acquire, candidate
from pcces.blackbox.models import bends, gaussian_process
from pcces.blackbox.models.bends import tamed
from pcces.blackbox.models.gaussian_process import Data, Posterior, fit

BOX = [(-2.0, 2.0)] * 2


def data(k=25, n=2, noise=0.1, seed=0, counts=None):
    rng = np.random.default_rng(seed)
    X = rng.random((k, n))
    y = np.sin(4 * X[:, :1]) + X[:, 1:2] + noise * rng.standard_normal((k, 1))
    return Data(X, y, np.ones(k) if counts is None else counts, np.zeros(1), 0.0)


def noisy(noise=0.05, seed=0):
    """(x - 1)^2 under x.sum() <= 1: the optimum is 0.5 at (0.5, 0.5)."""
    rng = np.random.default_rng(seed)

    def fun(x):
        e = noise * rng.standard_normal(2)
        return float(((x - 1) ** 2).sum()) + e[0], [float(x.sum()) - 1 + e[1]]

    return fun


# -- the processes --------------------------------------------------------------------------------------------------------------


def test_the_posterior_is_that_of_a_normal_distribution():
    some, Z = data(12), np.array([[0.3, 0.4], [0.9, 0.1]])
    theta = np.log(np.array([[0.4, 0.8, 1.5, 0.02]]))
    mean, error = Posterior(some, theta)(Z)
    unit, y = some.outputs.std(), some.outputs[:, 0] - some.outputs.mean()

    def kernel(A, B):
        s = np.sqrt(5 * (((A[:, None] - B[None]) / [0.4, 0.8]) ** 2).sum(-1))
        trend = gaussian_process.MEAN + gaussian_process.LINEAR * A @ B.T
        return 1.5 * (1 + s + s**2 / 3) * np.exp(-s) + trend

    K = kernel(some.points, some.points) + (0.02 + gaussian_process.FLOOR) * np.eye(12)
    k = kernel(Z, some.points)
    assert np.allclose(mean[:, 0], some.outputs.mean() + k @ np.linalg.solve(K, y))
    variance = np.diagonal(kernel(Z, Z)) - (k * np.linalg.solve(K, k.T).T).sum(1)
    assert np.allclose(error[:, 0], unit * np.sqrt(variance), rtol=1e-5)


def test_slopes_are_those_of_mean_and_error():
    some = data()
    posterior, z, h = Posterior(some, np.array([fit(some, 0)[0]])), np.array([0.33, 0.61]), 1e-5
    mean, error, d_mean, d_error = posterior.slopes(z)
    assert np.allclose((mean, error), np.array(posterior(z[None]))[:, 0])
    for i in range(2):
        up, down = z + h * np.eye(2)[i], z - h * np.eye(2)[i]
        (m1, e1), (m0, e0) = posterior(up[None]), posterior(down[None])
        assert d_mean[0, i] == pytest.approx((m1 - m0)[0, 0] / (2 * h), rel=1e-4)
        assert d_error[0, i] == pytest.approx((e1 - e0)[0, 0] / (2 * h), rel=1e-2)


def test_the_fit_is_a_minimum_of_what_it_minimises(monkeypatch):
    losses, minimize = [], scipy.optimize.minimize
    monkeypatch.setattr(
        scipy.optimize, "minimize", lambda loss, *a, **k: losses.append(loss) or minimize(loss, *a, **k)
    )
    some = data(counts=np.arange(1.0, 26.0))._replace(within=np.array([0.7]), freedom=50.0)
    theta, _ = fit(some, 0)
    for at in (theta, theta + 0.3):  # its gradient is the one it says
        value, gradient = losses[0](at)
        numeric = [(losses[0](at + 1e-6 * d)[0] - losses[0](at - 1e-6 * d)[0]) / 2e-6 for d in np.eye(4)]
        assert np.allclose(gradient, numeric, atol=1e-4)
        assert value >= losses[0](theta)[0]


def test_a_trend_goes_on_beyond_the_data():
    some = data(noise=0.01)
    points = np.hstack([0.5 * some.points[:, :1], some.points[:, 1:]])
    plane = some._replace(points=points, outputs=points @ [[3.0], [-1.0]])
    theta = np.log([[0.3, 0.3, 0.1, 1e-4]])
    mean, _ = Posterior(plane, theta)(np.array([[1.2, 0.5]]))  # two lengths from the nearest point
    assert 1.8 < mean[0, 0] < 3.1 and plane.outputs.max() < 1.5  # 0.4 without a trend


def test_noise_and_lengths_are_found():
    rng = np.random.default_rng(1)
    X = rng.random((120, 2))
    some = Data(X, (np.sin(8 * X[:, :1]) + 0.1 * rng.standard_normal((120, 1))), np.ones(120), np.zeros(1), 0.0)
    theta, _ = fit(some, 0)
    assert Posterior(some, theta[None]).noise[0] == pytest.approx(0.1, rel=0.3)
    assert theta[1] > theta[0] + 1.5  # the second variable does not matter


def test_repeated_evaluations_tell_the_noise():
    some = data(10, noise=0.0)._replace(within=np.array([0.25 * 200]), freedom=200.0)
    assert Posterior(some, fit(some, 0)[0][None]).noise[0] == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize(
    "y", [np.full(12, 3.0), np.where(np.arange(12) % 2, 0.0, 1.0), 1e12 * np.arange(12.0), 1e-12 * np.arange(12.0), [0.0] * 11 + [1e30]],
    ids=["constant", "two values", "huge", "tiny", "a heavy tail"],
)  # fmt: skip
def test_outputs_of_any_kind(y):
    X = np.vstack([np.random.default_rng(0).random((11, 2)), np.zeros((1, 2))])
    X[3] = X[4]  # equal points
    some = Data(X, tamed(np.asarray(y, dtype=float), True)[:, None], np.ones(12), np.zeros(1), 0.0)
    mean, error = Posterior(some, fit(some, 0)[0][None])(X)
    assert np.all(np.isfinite(mean)) and np.all(np.isfinite(error)) and np.all(error > 0)


def test_tails_are_tamed_where_they_do_not_matter():
    y = np.array([-1.0, 0.0, 1.0, 2.0, 1e9])
    assert np.all(np.diff(tamed(y, True)) > 0) and tamed(y, True)[-1] < 100
    c = np.array([-1e9, -1.0, -0.1, 0.2, 1.0])
    assert np.array_equal(np.sign(tamed(c, False)), np.sign(c)) and np.array_equal(tamed(c, False)[2:4], c[2:4])
    assert np.array_equal(tamed(y[:4], True), y[:4])


def test_a_bend_is_smooth_and_its_slopes_count_in_the_likelihood():
    y, bend, h = np.array([0.3, 1.9, 2.1, 2.5, 50.0]), (0.0, 2.0), 1e-6
    assert np.array_equal(bends.bent(y, True, bend)[:2], y[:2])
    slopes = (bends.bent(y + h, True, bend) - bends.bent(y - h, True, bend)) / (2 * h)
    assert np.log(slopes).sum() == pytest.approx(bends.log_slopes(y, True, bend), abs=1e-6)
    assert bends.log_slopes(y[:4], True, bends.NONE) == 0.0 > bends.log_slopes(y, True, bends.NONE)  # tails are tamed
    noisy = bends.knees(y, True, 1.0)
    assert noisy == [(0.3, 6.0), (0.3, 6.0)]  # a knee stays clear of the noise
    assert bends.knees(np.full(5, 2.0), True, 0.0) == []


def test_the_likelihood_bends_a_steep_wall_and_leaves_a_plain_output_alone():
    X, rng = np.random.default_rng(0).random((40, 2)), np.random.default_rng(1)
    plain = np.abs(X[:, 0] - 0.4) + 0.01 * rng.standard_normal(40)
    for y, is_bent in ((plain, False), (plain * np.exp(4 * X[:, 1]), True)):
        choices = [bends.NONE, *bends.knees(y, True, 0.01)]
        seen = [Data(X, bends.bent(y, True, bend)[:, None], np.ones(40), np.zeros(1), 0.0) for bend in choices]
        losses = [fit(each, 0)[1] - bends.log_slopes(y, True, bend) for each, bend in zip(seen, choices)]
        assert (int(np.argmin(losses)) > 0) == is_bent


@pytest.mark.parametrize("v", [-5.0, 0.0, 2.9, 3.1, 10.0, 400.0])
def test_the_logarithm_of_the_expected_improvement(v):
    w = (
        np.linspace(max(v, 0) + (0 if v > 0 else v), max(v, 0) + 40 / max(v, 1), 400001)
        if v > 0
        else np.linspace(v, 40, 400001)
    )
    shift = 0.5 * v * v if v > 0 else 0.0
    integral = scipy.integrate.trapezoid((w - v) * np.exp(shift - 0.5 * w * w), w) / np.sqrt(2 * np.pi)
    assert acquire.log_improvement(np.array([v]))[0] == pytest.approx(np.log(integral) - shift, abs=2e-3)


# -- what is put to the test ----------------------------------------------------------------------------------------------------


def hope(needed, of_samples, wanted=0.9):
    known = candidate.Hope.__new__(candidate.Hope)
    known.needed, known.of_samples, known.wanted = np.array(needed), np.array(of_samples), wanted
    return known


def test_the_hope_is_the_chance_that_all_limits_pass_together():
    mean, error = np.array([7.0, -0.05, -0.04]), np.array([1.0, 0.01, 0.02])
    both = hope([0.02, 0.03], [1e-4, 2e-4])
    chances = scipy.stats.norm.cdf([0.03 / np.sqrt(2e-4), 0.01 / np.sqrt(6e-4)])
    expected = scipy.stats.norm.ppf(chances.prod()) - scipy.stats.norm.ppf(0.9)
    assert both(mean, error) == pytest.approx(expected)
    far = np.array([7.0, -5.0, -0.04])  # a limit that is far away takes nothing of the chance
    assert both(far, error) == pytest.approx(hope([0.03], [2e-4])(far[[0, 2]], error[[0, 2]]))
    assert 6 < both(np.array([7.0, -9.0, -9.0]), error) < 8  # and no chance is infinitely good


def test_the_slope_of_the_hope():
    some, rng = data(), np.random.default_rng(1)
    outputs = np.hstack([some.outputs, some.outputs - 0.7, 0.5 - some.outputs**2])
    three = some._replace(outputs=outputs, within=np.zeros(3))
    posterior = Posterior(three, np.array([fit(three, j)[0] for j in range(3)]))
    known, h = hope([0.02, 0.03], [1e-4, 2e-4]), 1e-5
    for z in rng.random((4, 2)):
        ends = [[known(*posterior.slopes(z + side * e)[:2]) for side in (1, -1)] for e in h * np.eye(2)]
        assert known.slope(*posterior.slopes(z)) == pytest.approx([(a - b) / (2 * h) for a, b in ends], rel=1e-3)


def test_nothing_is_tested_where_f_is_only_hoped_to_be_low():
    """Beside its points the process of f says nothing; what is tested is one that it knows."""
    opt = pcces.Optimizer([0.0, 0.0], bounds=BOX, max_evaluations=60, rng=0)
    fun = noisy()
    while opt.state.phase != "certify":
        batch = opt.ask()
        opt.tell(batch, *map(np.array, zip(*map(fun, batch.points))))
    z = candidate.best(opt.search, 15)
    _, error = acquire.posterior(opt.search)(z[None])
    assert error[0, 0] < 0.1


@pytest.mark.parametrize("passes", [True, False])
def test_behind_a_certificate_a_bolder_candidate_is_tested_and_the_first_one_is_kept(passes):
    opt = pcces.Optimizer([0.0, 0.0], bounds=BOX, max_evaluations=150, rng=0)
    fun, spent = noisy(), []
    while not opt.stop():
        batch = opt.ask()
        f, c = map(np.array, zip(*map(fun, batch.points)))
        first = batch.phase == "certify" and not opt.state.test.kept
        shift = -0.2 if first or passes else 0.2
        opt.tell(batch, f, c + shift if batch.phase == "certify" else c)
        spent.append(opt.state.test.spent)
        if first:
            kept = opt.state.test.answer
    res, test = opt.result, opt.state.test
    assert test.kept and len(test.candidates) == 2 == res.certificate.tested and res.success and res.nfev == 150
    assert spent[-1] == pytest.approx(1) and np.diff(spent).min() >= 0  # no more than the error probability there is
    assert np.array_equal(test.answer.x, test.candidates[1 if passes else 0])
    assert max(res.certificate.upper_bounds) <= 0 and (test.answer is kept) != passes
    assert res.certificate.samples == (30 if passes else 15)
    sums = [z.sum() for z in opt.search.space.to_x(np.array(test.candidates))]
    assert sums[0] < sums[1] <= 1.05  # nearer to the limit


# -- the search -----------------------------------------------------------------------------------------------------------------


def test_fifty_evaluations_find_and_certify_an_answer():
    results = [pcces.minimize(noisy(seed=s), [-1.5, -1.0], bounds=BOX, max_evaluations=60, rng=s) for s in range(4)]
    assert sum(res.success for res in results) >= 3
    for res in results:
        assert res.x.sum() <= 1 and res.nfev <= 60
        assert ((res.x - 1) ** 2).sum() < 0.62
        started = [row["why"] for row in res.evaluations].count("start")
        assert started == 2  # not all at x0


def test_each_model_has_a_name_and_the_default_chooses():
    def phases(**options):
        res = pcces.minimize(noisy(), [0.0, 0.0], bounds=BOX, rng=0, **{"max_evaluations": 60, **options})
        return {row["why"] for row in res.evaluations}

    assert "propose" in phases() & phases(strategy="gp") & phases(strategy="auto")
    assert "propose" not in phases(strategy="model") | phases(strategy="cma") | phases(max_evaluations=2000)
    assert "propose" not in phases(samples=4)  # an option of the other searches
    with pytest.raises(ValueError, match="strategy 'gp' cannot be combined with samples="):
        phases(strategy="gp", samples=4)


def test_without_noise_the_quadratic_model_takes_over():
    res = pcces.minimize(noisy(0.0), [-1.0, -1.0], bounds=BOX, max_evaluations=200, rng=0)
    kinds = list(res.history["kind"])
    assert kinds[0] == "gp" and kinds[-1] != "gp"
    assert res.success and np.allclose(res.x, 0.5, atol=1e-4)


def test_some_points_at_once_are_different_points():
    opt = pcces.Optimizer([0.0, 0.0], bounds=BOX, max_evaluations=80, population=5, rng=0)
    fun, sizes = noisy(), []
    while not opt.stop():
        batch = opt.ask()
        if batch.phase == "propose":
            sizes.append(len(batch))
            assert len(np.unique(batch.points, axis=0)) == len(batch)
        opt.tell(batch, *map(np.array, zip(*map(fun, batch.points))))
    assert 5 in sizes and opt.result.x.sum() <= 1.05


def test_integers_choices_and_failures():
    def fun(x):
        if x["way"] == "c" or x["rate"] > 0.5:
            raise ArithmeticError("no solution")
        f = (x["k"] - 6) ** 2 / 20 + np.log(x["rate"] / 0.01) ** 2 / 10 + (x["way"] == "a")
        return f + 0.02 * rng.standard_normal(), [x["k"] - 8 + 0.02 * rng.standard_normal()]

    rng = np.random.default_rng(0)
    bounds = {"k": pcces.Integer(0, 20), "rate": pcces.Log(1e-4, 1.0), "way": pcces.Choice("a", "b", "c")}
    res = pcces.minimize(fun, {"k": 1, "rate": 0.1, "way": "a"}, bounds=bounds, max_evaluations=90, rng=0)
    assert res.success and res.x["way"] == "b" and res.x["k"] in (5, 6, 7) and 0.004 < res.x["rate"] < 0.025


def test_linear_constraints_are_kept():
    seen = []

    def fun(x):
        seen.append(x.sum())
        return float(((x - 1) ** 2).sum() + 0.05 * rng.standard_normal())

    rng = np.random.default_rng(0)
    limit = scipy.optimize.LinearConstraint([[1.0, 1.0]], -np.inf, 1.0)
    res = pcces.minimize(fun, [0.0, 0.0], limit, BOX, max_evaluations=60, rng=0)
    assert max(seen) <= 1 + 1e-9 and np.allclose(res.x, 0.5, atol=0.2)
