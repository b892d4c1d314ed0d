"""Where to evaluate next, and what to certify, by Gaussian processes of objective and constraints.

Next is the point with the largest expected improvement over x_k, times the probability that it keeps the limits by the margin
that the certificate will need; where nothing keeps them yet, that probability alone. It is looked for in a box around x_k,
2 sigma_k wide and with sides by the processes' lengths, now and then anywhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from pcces.blackbox import limits
from pcces.blackbox.batch import CLOUD
from pcces.blackbox.models.gaussian_process import Data, Posterior, fit, tamed

if TYPE_CHECKING:
    from pcces.blackbox.models.archive import Archive
    from pcces.blackbox.search import Search

MOST = 400  # evaluated points that the processes know: the nearest to x_k
OFTEN = 1.05  # times the evaluations, and the processes' parameters are looked for anew
CLOUD_POINTS = 500
EVERYWHERE = 4  # in so many proposals, one is from anywhere
SHARED = True
LITTLE = 0.02  # of an equal share of the error probability, for a limit that is far away
SURELY = 3.0  # standard errors by which it is
DOUBT = 1.0  # standard errors of f that a candidate is worse than expected
EXPLOIT = 0
EXPLOIT_FROM = 0.0
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
    data = _data(search)
    starts = [None] * r if known is None else list(known)
    state.theta = np.array([fit(data, j, start, 40 if start is None else 15) for j, start in enumerate(starts)])
    state.fitted = made
    if state.noise.present:
        noise = posterior(search).noise
        without = archive.freedom > 0 and archive.within == 0  # repeated evaluations were equal
        state.noise = state.noise._replace(deviation=np.where(without, 0.0, noise))


def posterior(search: Search) -> Posterior:
    """What the processes say, with the parameters as they are."""
    archive, theta = search.archive, search.state.theta
    assert archive is not None
    made_of = theta, float(archive.counts.sum()), search.state.run.es.x
    known = search.posterior
    if known is None or any(a is not b for a, b in zip(made_of[::2], known[0][::2])) or made_of[1] != known[0][1]:
        search.posterior = known = made_of, Posterior(_data(search), theta), _succeeding(archive)
    return known[1]


def _succeeding(archive: Archive) -> Posterior | None:
    """Where evaluations succeed (1) and where they fail (0), if any failed."""
    if not len(archive.failed):
        return None
    failed = archive.failed[-MOST:]
    points = np.vstack([archive.points[-MOST:], failed])
    k = len(points)
    told = Data(points, (np.arange(k) < k - len(failed))[:, None].astype(float), np.ones(k), np.zeros(1), 0.0)
    return Posterior(told, fit(told, 0)[None])


def _data(search: Search) -> Data:
    archive, x, n = search.archive, search.state.run.es.x, search.space.n
    assert archive is not None
    rows = np.arange(len(archive.points))
    if len(rows) > MOST:
        theta = search.state.theta
        lengths = np.exp(theta[:, :n].mean(0)) if len(theta) else 1.0
        rows = np.sort(np.argsort((((archive.points - x) / lengths) ** 2).sum(1), kind="stable")[:MOST])
    outputs = archive.outputs[rows]
    outputs = np.stack([tamed(y, j == 0) for j, y in enumerate(outputs.T)], axis=1)
    within = archive.within if archive.freedom else np.zeros(outputs.shape[1])
    return Data(archive.points[rows], outputs, archive.counts[rows], within, archive.freedom)


def design(search: Search, count: int, first: int | None = None) -> np.ndarray:
    """Points z (count, n) that fill the space evenly: half of them all of it, half of them the middle around x_k. With `first`
    those of a sequence from there on, whenever they are asked for."""
    n, rng = search.space.n, search.streams(CLOUD, search.state.budget.batches if first is None else 0)
    first = first or 0
    golden = 1.0
    for _ in range(40):  # of n dimensions: the root of g^(n+1) = g + 1
        golden = (1 + golden) ** (1 / (n + 1))
    u = (rng.random(n) + np.arange(first + 1, first + count + 1)[:, None] * golden ** -np.arange(1.0, n + 1)) % 1.0
    low, high = _everywhere(search)
    points = low + u * (high - low)
    near = np.arange(first, first + count) % 2 == 1
    x = search.state.run.es.x
    points[near] = x + 0.4 * (points[near] - x)
    return search.space.project(points)


def _everywhere(search: Search) -> tuple[np.ndarray, np.ndarray]:
    space, x, far = search.space, search.state.run.es.x, FAR * search.options.sigma0
    low = np.where(np.isfinite(space.z_lower), space.z_lower, x - far)
    return low, np.where(np.isfinite(space.z_upper), space.z_upper, x + far)


def _box(search: Search, model: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """The trust region."""
    x, (low, high) = search.state.run.es.x, _everywhere(search)
    half = np.maximum(float(search.state.run.es.sigma) * model.sides, LEAST_SIDE)
    return np.maximum(x - half, low), np.minimum(x + half, high)


def next_points(search: Search, count: int, pending: np.ndarray | None = None, turn: int | None = None) -> np.ndarray:
    """The points z (count, n) to evaluate next, beside those that are pending; `turn` is how many there were before."""
    model, number = posterior(search), search.state.budget.batches
    rng = search.streams(CLOUD, number)
    if pending is not None and len(pending):
        model = model.believing(pending)
    chosen, turn = [], int(search.state.run.es.k) * count if turn is None else turn
    for i in range(count):
        anywhere = (turn + i) % EVERYWHERE == EVERYWHERE - 1
        z = None
        if EXPLOIT and (turn + i) % EXPLOIT == EXPLOIT - 1 and count == 1 and search.limited and search.state.noise.present and search.state.constraints.number > 0:
            used = 1 - (search.state.budget.left - search.reserve()) / (search.max_evaluations - search.reserve())
            if used > EXPLOIT_FROM:
                z = candidate(search, search.reserve())[0]
        if z is None:
            z = _best(search, model, rng, anywhere)
        chosen.append(z)
        if i + 1 < count:
            model = model.believing(z)
    return np.array(chosen)


def _best(search: Search, model: Posterior, rng: np.random.Generator, anywhere: bool) -> np.ndarray:
    space = search.space
    low, high = _everywhere(search) if anywhere else _box(search, model)
    cloud = _allowed(search, _cloud(search, low, high, rng))
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


def _allowed(search: Search, cloud: np.ndarray) -> np.ndarray:
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


def candidate(search: Search, samples: int) -> tuple[np.ndarray | None, np.ndarray]:
    """What to certify on so many fresh samples, and the limits' shares of the error probability then."""
    shares = np.ones(len(limits.columns(search)))
    if search.state.theta.size == 0:
        return None, shares
    z = _candidate(search, Hope(search, samples, shares))
    far = _far(search, z, samples)
    if SHARED and 0 < far.sum() < len(far):
        shares = np.where(far, LITTLE, 1.0)
        shares *= len(shares) / shares.sum()
        z = _candidate(search, Hope(search, samples, shares), z)
    return z, shares


def _far(search: Search, z: np.ndarray, samples: int) -> np.ndarray:
    """Which limits are so far away that a little of the error probability is enough for them."""
    mean, error = posterior(search)(z[None])
    needed, deviation = limits.widths(search, samples, np.full(len(mean[0]) - 1, LITTLE))
    spread = np.sqrt(deviation**2 / max(samples, 2) + error[0, 1:] ** 2)
    return np.asarray(mean[0, 1:] + needed + SURELY * spread <= 0)


def _candidate(search: Search, hope: Hope, before: np.ndarray | None = None) -> np.ndarray:
    """The least f, as far as it is known, of the points that will be certified with the wanted chance, all limits together; or
    what comes nearest to that."""
    model, space, x = posterior(search), search.space, search.state.run.es.x
    rng = search.streams(CLOUD, search.state.budget.batches + 2**33)
    low, high = _everywhere(search)
    clouds = [model.data.points, x[None], *([] if before is None else [before[None]])]
    for reach in (0.01, 0.03, 0.1, 0.3):
        clouds.append(x + reach * model.sides * rng.standard_normal((200, space.n)))
    cloud = _allowed(search, np.clip(np.vstack(clouds), low, high))
    mean, error = model(cloud)
    lacking = np.maximum(-hope(mean, error), 0.0)
    succeeding: Posterior | None = search.posterior[2]
    if succeeding is not None:
        lacking = lacking + np.where(succeeding(cloud)[0][:, 0] < 0.5, np.ptp(lacking) + 1.0, 0.0)
    z = cloud[np.lexsort((mean[:, 0] + DOUBT * error[:, 0], lacking))[0]]
    if space.linear or space.rounds or succeeding is not None:
        return space.project(z)
    unit = max(float(np.ptp(mean[:, 0])), 1e-300)

    def f(at: np.ndarray) -> tuple[float, np.ndarray]:
        m, e, d, de = model.slopes(at)
        return float(m[0] + DOUBT * e[0]) / unit, (d[0] + DOUBT * de[0]) / unit

    box = 0.5 * model.sides
    kept: Any = {
        "type": "ineq", "fun": lambda at: hope(*model.slopes(at)[:2]), "jac": lambda at: hope.slope(*model.slopes(at))
    }  # fmt: skip
    end = scipy.optimize.minimize(
        f, z, jac=True, method="SLSQP", bounds=list(zip(np.maximum(z - box, low), np.minimum(z + box, high))),
        constraints=kept, options={"maxiter": 30},
    )  # fmt: skip
    if not np.all(np.isfinite(end.x)):
        return space.project(z)
    at = space.project(end.x)
    m, e = model(np.stack([z, at]))
    lack = np.maximum(-hope(m, e), 0.0)
    worth = m[:, 0] + DOUBT * e[:, 0]
    better = (lack[1] > 1e-6 and lack[1] < lack[0]) or (lack[1] <= 1e-6 + lack[0] and worth[1] < worth[0])
    return at if better else space.project(z)


class Hope:
    """The chance that so many fresh samples certify a point, all limits together, as a normal quantile: how far it is above
    the one that is wanted. A limit with room to spare takes nothing of it from the others."""

    def __init__(self, search: Search, samples: int, shares: np.ndarray):
        self.needed, deviation = limits.widths(search, samples, shares)
        self.of_samples = deviation**2 / max(samples, 2)
        self.wanted = limits.chance(search)

    def _each(self, mean: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        spread = np.sqrt(self.of_samples + error[..., 1:] ** 2) + 1e-300
        return -(mean[..., 1:] + self.needed) / spread, spread

    def __call__(self, mean: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Of means and standard deviations (.., 1 + r)."""
        u, _ = self._each(mean, error)
        return np.asarray(_quantile(scipy.special.log_ndtr(u).sum(-1)) - scipy.special.ndtri(self.wanted))

    def slope(self, mean: np.ndarray, error: np.ndarray, d_mean: np.ndarray, d_error: np.ndarray) -> np.ndarray:
        """Its gradient at a point (n,), by those (1 + r, n) of mean and error."""
        u, spread = self._each(mean, error)
        each = scipy.special.log_ndtr(u)
        all_kept = each.sum()
        weight = np.exp(0.5 * (_quantile(all_kept) ** 2 - u * u) - each + all_kept)
        d_spread = (error[1:] / spread)[:, None] * d_error[1:]
        return np.asarray(-((weight / spread)[:, None] * (d_mean[1:] + u[:, None] * d_spread)).sum(0))


def _quantile(log_p: np.ndarray) -> np.ndarray:
    """The normal quantile of a probability that is given by its logarithm; at most about 8."""
    return np.asarray(scipy.special.ndtri_exp(np.minimum(log_p, -1e-15)))
