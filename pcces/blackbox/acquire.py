"""Where to evaluate next, by Gaussian processes of objective and constraints.

Next is the point with the largest expected improvement over x_k, times the probability that it keeps the limits by the margin
that the certificate will need; where nothing keeps them yet, that probability alone. It is looked for in a box around x_k,
2 sigma_k wide and with sides by the processes' lengths, now and then anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pcces.blackbox import limits
from pcces.blackbox.batch import CLOUD
from pcces.blackbox.models import bends
from pcces.blackbox.models.gaussian_process import Data, Posterior, fit

if TYPE_CHECKING:
    from pcces.blackbox.models.archive import Archive
    from pcces.blackbox.search import Search

MOST = 400  # evaluated points that the processes know: the nearest to x_k
OFTEN = 1.05  # times the evaluations, and the processes' parameters are looked for anew
BEND_OFTEN = 1.25  # times the points, and so are the bends of the outputs
CLOUD_POINTS = 500
EVERYWHERE = 4  # in so many proposals, one is from anywhere
LEAST_SIDE = 1e-6
FAR = 4.0  # times sigma_0 from x_k, where there are no bounds
UNSURE = 0.2  # half the share of successes between where an evaluation hardly ever and where it nearly always succeeds
LOG_ROOT = 0.5 * math.log(2 * math.pi)


def learn(search: Search) -> None:
    """Look for the processes' parameters anew, if there is enough that is new; and take over what they say of the noise."""
    state, archive = search.state, search.archive
    assert archive is not None
    if not len(archive.points):
        return
    made, r = state.budget.evaluations, archive.outputs.shape[1]
    known = state.theta if state.theta.shape == (r, search.space.n + 2) else None
    if known is not None and made < max(OFTEN * state.fitted, state.fitted + 1):
        return
    _fit(search, known)
    state.fitted = made
    if state.noise.present:
        noise = posterior(search).noise
        without = archive.freedom > 0 and archive.within == 0  # repeated evaluations were equal
        state.noise = state.noise._replace(deviation=np.where(without, 0.0, noise))


def _fit(search: Search, known: np.ndarray | None) -> None:
    """Find the processes' parameters; and now and then the bends of the outputs that make these most probable."""
    state, archive = search.state, search.archive
    assert archive is not None
    Y, noise = archive.outputs, state.noise.deviation
    if known is None or len(state.bends) != Y.shape[1] or len(Y) >= BEND_OFTEN * state.bent:
        choices = [[bends.NONE, *bends.knees(y, j == 0, float(noise[j]))] for j, y in enumerate(Y.T)]
        state.bent = len(Y)
    else:
        choices = [[(float(origin), float(unit))] for origin, unit in state.bends]
    rows = _rows(search)
    theta, chosen = [], []
    for j, y in enumerate(Y[rows].T):
        start = None if known is None else known[j]
        ends: list[tuple[float, int, np.ndarray, tuple[float, float]]] = []
        for bend in choices[j]:
            one = _data(search, rows, [(j, bend)])
            at, loss = fit(one, 0, start, 40 if start is None else 15)
            ends.append((loss - bends.log_slopes(y, j == 0, bend), len(ends), at, bend))
        theta.append(min(ends)[2])
        chosen.append(min(ends)[3])
    state.theta, state.bends = np.array(theta), np.array(chosen)


def posterior(search: Search) -> Posterior:
    """What the processes say, with the parameters as they are."""
    archive, theta = search.archive, search.state.theta
    assert archive is not None
    made_of = theta, float(archive.counts.sum()), search.state.run.es.x
    known = search.posterior
    if known is None or any(a is not b for a, b in zip(made_of[::2], known[0][::2])) or made_of[1] != known[0][1]:
        bent = (
            search.state.bends if len(search.state.bends) else np.array([bends.NONE] * len(theta))
        )  # from an old file
        data = _data(search, _rows(search), enumerate(bent))
        search.posterior = known = made_of, Posterior(data, theta), _succeeding(archive)
    return known[1]


def _succeeding(archive: Archive) -> Posterior | None:
    """Where evaluations succeed (1) and where they fail (0), if any failed."""
    if not len(archive.failed):
        return None
    failed = archive.failed[-MOST:]
    points = np.vstack([archive.points[-MOST:], failed])
    k = len(points)
    told = Data(points, (np.arange(k) < k - len(failed))[:, None].astype(float), np.ones(k), np.zeros(1), 0.0)
    return Posterior(told, fit(told, 0)[0][None])


def _rows(search: Search) -> np.ndarray:
    """The evaluated points that the processes know."""
    archive, x, theta = search.archive, search.state.run.es.x, search.state.theta
    assert archive is not None
    if len(archive.points) <= MOST:
        return np.arange(len(archive.points))
    lengths = np.exp(theta[:, : search.space.n].mean(0)) if len(theta) else 1.0
    nearest = np.argsort((((archive.points - x) / lengths) ** 2).sum(1), kind="stable")
    return np.sort(nearest[:MOST])


def _data(search: Search, rows: np.ndarray, bent: Iterable[tuple[int, Sequence[float]]]) -> Data:
    """What the processes of some outputs know, with their bends."""
    archive, bent = search.archive, list(bent)
    assert archive is not None
    outputs = [bends.bent(archive.outputs[rows, j], j == 0, (float(bend[0]), float(bend[1]))) for j, bend in bent]
    within = archive.within if archive.freedom else np.zeros(archive.outputs.shape[1])
    columns = [j for j, _ in bent]
    return Data(archive.points[rows], np.stack(outputs, axis=1), archive.counts[rows], within[columns], archive.freedom)


def design(search: Search, count: int, first: int | None = None) -> np.ndarray:
    """Points z (count, n) that fill the space evenly: half of them all of it, half of them the middle around x_k. With `first`
    those of a sequence from there on, whenever they are asked for."""
    n, rng = search.space.n, search.streams(CLOUD, search.state.budget.batches if first is None else 0)
    first = first or 0
    golden = 1.0
    for _ in range(40):  # of n dimensions: the root of g^(n+1) = g + 1
        golden = (1 + golden) ** (1 / (n + 1))
    u = (rng.random(n) + np.arange(first + 1, first + count + 1)[:, None] * golden ** -np.arange(1.0, n + 1)) % 1.0
    low, high = everywhere(search)
    points = low + u * (high - low)
    near = np.arange(first, first + count) % 2 == 1
    x = search.state.run.es.x
    points[near] = x + 0.4 * (points[near] - x)
    return search.space.project(points)


def everywhere(search: Search) -> tuple[np.ndarray, np.ndarray]:
    """The lower and the upper ends of where points may be; without bounds not too far from x_k."""
    space, x, far = search.space, search.state.run.es.x, FAR * search.options.sigma0
    low = np.where(np.isfinite(space.z_lower), space.z_lower, x - far)
    return low, np.where(np.isfinite(space.z_upper), space.z_upper, x + far)


def _box(search: Search, model: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """The trust region."""
    x, (low, high) = search.state.run.es.x, everywhere(search)
    half = np.maximum(float(search.state.run.es.sigma) * model.sides, LEAST_SIDE)
    return np.maximum(x - half, low), np.minimum(x + half, high)


def next_points(search: Search, count: int, pending: np.ndarray | None = None, turn: int | None = None) -> np.ndarray:
    """The points z (count, n) to evaluate next, given the pending ones; `turn` is the number of points proposed before."""
    model, number = posterior(search), search.state.budget.batches
    rng = search.streams(CLOUD, number)
    if pending is not None and len(pending):
        model = model.believing(pending)
    chosen, turn = [], int(search.state.run.es.k) * count if turn is None else turn
    for i in range(count):
        anywhere = (turn + i) % EVERYWHERE == EVERYWHERE - 1
        z = _best(search, model, rng, anywhere)
        chosen.append(z)
        if i + 1 < count:
            model = model.believing(z)
    return np.array(chosen)


def _best(search: Search, model: Posterior, rng: np.random.Generator, anywhere: bool) -> np.ndarray:
    space = search.space
    low, high = everywhere(search) if anywhere else _box(search, model)
    cloud = allowed(search, _cloud(search, low, high, rng))
    worth = Worth(search, model)
    values = worth(cloud)
    order = np.argsort(-values)
    best, best_value = cloud[order[0]], float(values[order[0]])
    free = ~space.discrete
    if space.linear or not free.any() or not math.isfinite(best_value):
        return best
    for i in order[:2]:
        z, value = _climbed(worth, cloud[i], np.where(free, low, cloud[i]), np.where(free, high, cloud[i]))
        if value > best_value:
            best, best_value = space.project(z), value
    return best


def _cloud(search: Search, low: np.ndarray, high: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Points in a box: some anywhere in it, some that differ from x_k in a few variables, some near x_k."""
    x, n, half = search.state.run.es.x, search.space.n, CLOUD_POINTS // 2
    inside = np.clip(x, low, high)
    wide = low + (high - low) * rng.random((half, n))
    some = rng.random((half, n)) < min(1.0, max(0.25, 6 / n))
    wide = np.where(some, wide, inside)
    scale = (high - low) * 10 ** rng.uniform(-2.0, -0.3, (half, 1))
    near = np.clip(inside + scale * rng.standard_normal((half, n)), low, high)
    return np.vstack([wide, near])


def allowed(search: Search, cloud: np.ndarray) -> np.ndarray:
    """The points as they would be evaluated: within linear constraints, on the way from x_k, and rounded."""
    space, x = search.space, search.state.run.es.x
    if space.linear:
        room, steps = np.maximum(space.h - space.G @ x, 0.0), (cloud - x) @ space.G.T
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(steps > room, room / steps, 1.0).min(1)
        cloud = x + 0.999 * shares[:, None] * (cloud - x)
    if space.rounds and space.variables is not None:
        rng = search.streams(CLOUD, search.state.budget.batches + 2**32)
        numbers = space.variables.varied(space.to_x(cloud), space.to_x(x), rng, 0.5)
        cloud = np.where(space.discrete, space.to_z(numbers), cloud)
    return cloud


def _climbed(worth: Worth, z: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, float]:
    end = scipy.optimize.minimize(
        worth.descent, z, jac=True, method="L-BFGS-B", bounds=list(zip(low, high)), options={"maxiter": 20}
    )
    return end.x, -float(end.fun)


class Worth:
    """The logarithm of the expected improvement and of the probability that limits are kept."""

    def __init__(self, search: Search, model: Posterior):
        self.model = model
        self.needed = limits.margin(search) - limits.allowance(search)
        x = search.state.run.es.x
        mean = model(x[None])[0][0]
        feasible = math.isfinite(search.state.run.incumbent.estimate.f) and bool(np.all(mean[1:] + self.needed <= 0))
        self.best = float(mean[0]) if feasible else None
        self.succeeding: Posterior | None = search.posterior[2]

    def __call__(self, Z: np.ndarray) -> np.ndarray:
        """At the rows of Z."""
        mean, error = self.model(Z)
        value = scipy.special.log_ndtr(-(mean[:, 1:] + self.needed) / error[:, 1:]).sum(1)
        if self.best is not None:
            value += np.log(error[:, 0]) + log_improvement((mean[:, 0] - self.best) / error[:, 0])
        if self.succeeding is not None:
            value += scipy.special.log_ndtr((self.succeeding(Z)[0][:, 0] - 0.5) / UNSURE)
        return np.asarray(value)

    def descent(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Its negative at a point, and the gradient of that."""
        mean, error, d_mean, d_error = self.model.slopes(z)
        u = (mean[1:] + self.needed) / error[1:]
        log_p = scipy.special.log_ndtr(-u)
        hazard = np.exp(-0.5 * u * u - LOG_ROOT - log_p)
        value = float(log_p.sum())
        slope = -((hazard / error[1:])[:, None] * (d_mean[1:] - u[:, None] * d_error[1:])).sum(0)
        if self.best is not None:
            v = (float(mean[0]) - self.best) / float(error[0])
            log_h = float(log_improvement(np.array([v]))[0])
            ratio = math.exp(min(float(scipy.special.log_ndtr(-v)) - log_h, 50.0))  # -h'/h
            value += math.log(float(error[0])) + log_h
            slope = slope + d_error[0] / error[0] - ratio * (d_mean[0] - v * d_error[0]) / error[0]
        if self.succeeding is not None:
            share, _, d_share, _ = self.succeeding.slopes(z)
            u = (float(share[0]) - 0.5) / UNSURE
            log_p = float(scipy.special.log_ndtr(u))
            value, slope = value + log_p, slope + math.exp(-0.5 * u * u - LOG_ROOT - log_p) / UNSURE * d_share[0]
        return -value, -slope


def log_improvement(v: np.ndarray) -> np.ndarray:
    """log h with h = phi(v) - v Phi(-v): the expected improvement, in standard deviations, of what is expected to be v of
    them worse.

    >>> log_improvement(np.array([0.0, 20.0, -3.0])).round(4)
    array([  -0.9189, -206.91...,    1.0987])
    """
    density = np.exp(-0.5 * v * v - LOG_ROOT)
    plain = np.log(np.maximum(density - v * scipy.special.ndtr(-v), 1e-300))
    large = np.maximum(v, 3.0)
    # phi(v) - v Phi(-v) = phi(v) (1 - v M(v)) with Mills' ratio M
    mills = math.sqrt(math.pi / 2) * scipy.special.erfcx(large / math.sqrt(2))
    rest = np.where(large > 300, 1 / large**2, 1 - large * mills)
    return np.where(v < 3.0, plain, -0.5 * large**2 - LOG_ROOT + np.log(np.maximum(rest, 1e-300)))
