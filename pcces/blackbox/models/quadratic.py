"""Regression models as Psi_k: quadratic fits to everything evaluated near x_k, and the step that minimises them.

The theorem asks of d_k only that ||d_k|| <= d_max, so a step that uses all evaluations is as provable as a weighted
mean of lambda of them, and wastes far less: under noise hundreds of old samples average each other's errors out, and
without noise the step is that of sequential quadratic programming. Host only (NumPy): it serves black boxes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from pcces.blackbox.models.archive import Archive
from pcces.blackbox.models.qp import Solution, quadratic_program, whitened_program

ROWS = 4  # points a coefficient, or a fit says nothing of noise
REACH = 1.5  # under noise a model uses all points within this many spreads


class Model(NamedTuple):
    """Quadratics in u, y(u) = value + gradient u + 1/2 u' hessian u, a row per output (f, c_1, .., c_r)."""

    value: np.ndarray  # (1 + r,)
    gradient: np.ndarray  # (1 + r, n)
    hessian: np.ndarray  # (1 + r, n, n)
    spread: np.ndarray  # (1 + r,) standard deviation of the data around its mean
    error: np.ndarray  # (1 + r,) of a prediction near the centre: misfit, and noise that did not average out
    points: int  # how many went in
    misfit: np.ndarray | float = 0.0  # (1 + r,) that is surely not noise
    noise: np.ndarray | float = 0.0  # (1 + r,) its standard deviation at the centre, where it was asked for,
    noise_slope: np.ndarray | float = 0.0  # (1 + r, n) and how that changes

    def __call__(self, U: np.ndarray) -> np.ndarray:
        """Predict all outputs at the rows of U."""
        bend = (U @ self.hessian) * U  # (1 + r, k, n)
        return self.value + U @ self.gradient.T + 0.5 * bend.sum(-1).T


def coefficients(n: int) -> int:
    """How many coefficients a quadratic in n variables has.

    >>> coefficients(2)
    6
    """
    return (n + 1) * (n + 2) // 2


@lru_cache(maxsize=4)
def _pairs(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The products u_i u_j of a quadratic's second-order terms, and their factors: 1/2 u' hessian u."""
    i, j = np.triu_indices(n)
    return i, j, np.where(i == j, 0.5, 1.0)


def _features(U: np.ndarray, quadratic: bool) -> np.ndarray:
    """1, u_i and u_i u_j, a row each: products of rows are faster than products of columns."""
    k, n = U.shape
    phi = np.empty((coefficients(n) if quadratic else n + 1, k))
    phi[0] = 1.0
    phi[1 : n + 1] = U.T
    if quadratic:
        i, j, factors = _pairs(n)
        products = np.multiply(phi[i + 1], phi[j + 1], out=phi[n + 1 :])
        products *= factors[:, None]
    return phi


def fit(
    U: np.ndarray, Y: np.ndarray, kernel: np.ndarray, counts: np.ndarray, noise: np.ndarray, ridge: float = 0.1,
    with_noise: bool = False,
) -> Model:  # fmt: skip
    """Weighted ridge regression of the outputs Y (k, 1 + r) at the points U (k, n), whose spread is about 1.

    `counts` are the evaluations behind each row of Y, `noise` the standard deviation of one of them. With too few points
    for a quadratic the ridge keeps the curvature smallest; with fewer than 2 n + 1 the model is linear.

    >>> U = np.random.default_rng(0).standard_normal((20, 2))
    >>> model = fit(U, (U[:, :1] - 1) ** 2, np.ones(20), np.ones(20), noise=np.zeros(1))
    >>> model.gradient.round(4), model.hessian.round(4)[0, 0, 0]
    (array([[-2.,  0.]]), np.float64(2.0))
    """
    n, quadratic = U.shape[1], len(U) >= 2 * U.shape[1] + 1
    phi = _features(U, quadratic)
    noisy = bool((noise > 0).any())
    weights = kernel * counts / (1 + counts / 20) if noisy else kernel  # many repeats at one point say little elsewhere
    share = weights / weights.sum()
    centre = share @ Y
    Z = Y - centre
    spread = np.sqrt(share @ Z**2) + 1e-300
    Z /= spread
    relative = min(float((noise / spread).min()), 1.0) ** 2
    penalty = np.full(len(phi), ridge * relative + 1e-8)
    penalty[1 : n + 1] = 1e-3 * relative + 1e-12
    penalty[0] = 1e-10
    weighted = phi * weights
    normal = phi @ weighted.T
    normal.flat[:: len(normal) + 1] += penalty
    # LAPACK without the checks, which cost more than small solves do.
    factor, B, info = scipy.linalg.lapack.dposv(normal, weighted @ Z, lower=1)
    if info:
        raise np.linalg.LinAlgError(f"not positive definite (dposv: {info})")

    hessian = np.zeros((Y.shape[1], n, n))
    if quadratic:
        i, j, _ = _pairs(n)
        hessian[:, i, j] = hessian[:, j, i] = (B[n + 1 :] * spread).T
    residual = (Z - phi.T @ B) * spread
    from_noise = noise**2 * (share / counts).sum()
    seen = share @ residual**2
    error, misfit = (np.sqrt(np.maximum(seen - part * from_noise, 0)) for part in (1, 1 + 2 * math.sqrt(2 / len(U))))
    if noisy:
        first, _ = scipy.linalg.lapack.dtrtrs(factor, np.eye(len(factor))[0], lower=1)
        error = error + noise * np.linalg.norm(first)
    model = Model(B[0] * spread + centre, (B[1 : n + 1] * spread).T, hessian, spread, error, len(U), misfit)
    if not with_noise:
        return model
    line = _noise_line(phi[: n + 1], residual, weights, counts)
    return model._replace(noise=line[0], noise_slope=line[1:].T)


def residuals(U: np.ndarray, Y: np.ndarray) -> np.ndarray | None:
    """What a quadratic in U (k, n) does not explain of Y (k, r), by least squares; a linear function where points are few,
    and None where they are too few for that.

    >>> U = np.random.default_rng(0).standard_normal((40, 2))
    >>> bool(np.allclose(residuals(U, U**2), 0)), residuals(U[:9], U[:9])
    (True, None)
    """
    k, n = U.shape
    if k < ROWS * (n + 1):
        return None
    phi = _features(U, quadratic=k >= ROWS * coefficients(n)).T
    return Y - phi @ np.linalg.lstsq(phi, Y, rcond=None)[0]


def _noise_line(phi: np.ndarray, residual: np.ndarray, weights: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The noise's standard deviation, from how large the residuals are: a line through them, (1 + n, 1 + r)."""
    size = math.sqrt(math.pi / 2) * np.abs(residual) * np.sqrt(counts)[:, None]  # of normal noise, sigma on the mean
    weighted = phi * weights
    normal = weighted @ phi.T
    normal.flat[len(normal) + 1 :: len(normal) + 1] += 10 * weights.sum() / len(weights)
    return np.linalg.solve(normal, weighted @ size)


def minimise(
    model: Model,
    starts: list[np.ndarray],
    radius: float,
    backoff: np.ndarray,
    half_spaces: tuple[np.ndarray, np.ndarray],
    multipliers: np.ndarray,
    rounds: int = 3,
    keep_slack: float = 0.01,
) -> Solution | None:
    """The u with the least modelled f under modelled c + backoff <= 0, G u <= h and |u_i| <= radius.

    A few rounds of sequential quadratic programming on the model from each of `starts`; the best end wins. Of the slack
    at the centre a hundredth is kept, so that rounding cannot push an exactly modelled boundary over. Where the
    constraints cannot all be met the step reduces their violation. The multipliers are those of the constraints.

    >>> line = Model(*map(np.array, ([0.0], [[-1.0, 0.0]], [[[1e-3, 0], [0, 1e-3]]], [1.0], [0.0])), points=9)
    >>> everywhere = np.zeros((0, 2)), np.zeros(0)
    >>> minimise(line, [np.zeros(2)], 2.0, np.zeros(0), everywhere, multipliers=np.zeros(0)).x
    array([2., 0.])
    """
    n, r = model.gradient.shape[1], len(model.value) - 1
    G, h = half_spaces
    backoff = backoff + 1e-12
    backoff = backoff + keep_slack * np.maximum(-(model.value[1:] + backoff), 0)
    rows = np.vstack([np.zeros((r, n)), np.eye(n), -np.eye(n), G])  # the first r are for the slopes of the constraints
    limits = np.concatenate([np.zeros(r), np.full(2 * n, radius), h])
    tolerance = 1e-9 + 0.1 * backoff.max(initial=0.0)
    best: tuple[tuple[float, float], Solution] | None = None
    visited: list[np.ndarray] = []
    for start in starts:
        u, lam = np.clip(start, -radius, radius), multipliers
        visited.append(u)
        for _ in range(rounds):
            step = _sequential_step(model, u, lam, backoff, rows, limits)
            if step is None:
                break
            u = u + step[0]
            if step[1] is not None:
                lam = step[1]
                if np.abs(np.array(visited) - u).max(1).min() < 1e-6 * radius:
                    break  # converged, or where another start has led
            visited.append(u)
        y = model(u[None])[0]
        violation = max(0.0, float(np.max(y[1:] + backoff, initial=0.0)))
        key = (violation if violation > tolerance else 0.0, float(y[0]))
        if np.all(np.isfinite(u)) and (best is None or key < best[0]):
            best = key, Solution(u, np.minimum(lam, 1e8))
    return None if best is None else best[1]


def _sequential_step(
    model: Model, u: np.ndarray, lam: np.ndarray, backoff: np.ndarray, rows: np.ndarray, limits: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None] | None:
    """The step of one quadratic program, with the model's constraints made linear at u, and their multipliers.

    Where the constraints cannot all be met, some of their violation may stay, or else the step reduces it (and there are
    no multipliers). None where nothing helps.
    """
    n, r = len(u), len(model.value) - 1
    slope = model.gradient[0] + model.hessian[0] @ u
    bend = model.hessian[1:] @ u
    slopes = np.add(model.gradient[1:], bend, out=rows[:r])
    c = model.value[1:] + (slopes - 0.5 * bend) @ u + backoff
    room = limits - rows @ u
    curvature = (np.minimum(lam, 1e8) @ model.hessian[1:].reshape(r, n * n)).reshape(n, n)
    W = _whitening(model.hessian[0] + curvature, slope)
    for kept in (0.0, 0.5, 0.9):  # the share of a violation that may stay
        room[:r] = -np.where(c > 0, (1 - kept) * c, c)
        answer = whitened_program(W, slope, rows, room)
        if answer is not None:
            return answer.x, answer.multipliers[:r]
    broken = c > 0
    if not broken.any():
        return None
    A = slopes[broken]
    gauss_newton = A.T @ A
    gauss_newton += 1e-3 * max(np.trace(gauss_newton) / n, 1e-300) * np.eye(n)
    answer = quadratic_program(gauss_newton, A.T @ c[broken], rows[r:], room[r:])
    return None if answer is None else (answer.x, None)


def _whitening(H: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """W with (W W')^-1 the nearest usable curvature: eigenvalues lifted to a sliver of the largest."""
    values, vectors = np.linalg.eigh(H)
    scale = max(float(np.abs(values).max()), 1e-3 * math.sqrt(float(slope @ slope)), 1e-300)
    return vectors / np.sqrt(np.maximum(values, 1e-7 * scale))


class LocalModel(NamedTuple):
    """A model around x_k in the coordinates u = factor^-1 (z - x_k) / length."""

    model: Model
    x: np.ndarray
    factor: np.ndarray
    inverse: np.ndarray
    length: float

    def raised(self, offset: np.ndarray, tails: np.ndarray) -> LocalModel:
        """The model of outputs that are so much higher, and so many standard deviations of a noise that changes."""
        model = self.model
        value = model.value + offset + tails * model.noise
        gradient = model.gradient + tails[:, None] * model.noise_slope
        return self._replace(model=model._replace(value=value, gradient=gradient))

    def to_u(self, offsets: np.ndarray) -> np.ndarray:
        """Offsets z - x_k, as rows, in the model's coordinates."""
        return offsets @ self.inverse.T / self.length

    def predict(self, offsets: np.ndarray) -> np.ndarray:
        """All outputs at offsets z - x_k, rows both."""
        return self.model(self.to_u(offsets))

    def explains(self, offsets: np.ndarray, outputs: np.ndarray, noise: np.ndarray) -> bool | None:
        """Whether the outputs are no farther from what it predicts than noise takes them from a perfect model in four
        populations out of five; None where there is too little to tell."""
        usable = np.isfinite(outputs[:, 0])
        matters = np.concatenate([[True], self.model.value[1:] + 2 * self.model.spread[1:] > 0]) & (noise > 0)
        if self.model.points < 1.5 * coefficients(offsets.shape[1]) or not usable.any() or not matters.any():
            return None
        miss = (outputs[usable] - self.predict(offsets[usable]))[:, matters] / noise[matters]
        k, q = len(miss), int(matters.sum())
        usual = 2 * float(scipy.special.gammaincinv(k / 2, 0.8 ** (1 / q)))
        return bool(np.max((miss**2).sum(0)) < usual)

    def step(
        self, half_spaces: tuple[np.ndarray, np.ndarray], radius: float, backoff: np.ndarray, multipliers: np.ndarray,
        other_starts: np.ndarray | None = None,
    ) -> Solution | None:  # fmt: skip
        """The best step z - x_k (`minimise`) within half-spaces of z, looked for from no step and from others (rows)."""
        G, h = half_spaces
        to_z = self.factor * self.length
        starts = [np.zeros(len(self.x))]
        if other_starts is not None:
            starts += list(self.to_u(other_starts))
        best = minimise(self.model, starts, radius, backoff, (G @ to_z, h - G @ self.x), multipliers)
        return None if best is None else best._replace(x=to_z @ best.x)


def local_model(
    archive: Archive, x: np.ndarray, factor: np.ndarray, spread: float, noise: np.ndarray, everything: bool = False,
    with_noise: bool = False,
) -> LocalModel | None:  # fmt: skip
    """Fit a model to the evaluated points nearest to x in the metric of the search distribution, or None if there are
    too few. Under noise it takes all within `REACH` spreads, as many as are affordable. It looks through the
    recent part of the archive only, unless asked to look through everything."""
    n, size = len(x), len(archive.points)
    if size < n + 3:
        return None
    p = coefficients(n)
    noisy = bool(np.any(noise > 0))
    recent = 0 if everything else max(0, size - (60 if noisy else 10) * p - 800)
    inverse = factor.T / (factor**2).sum(0)[:, None]  # its columns are orthogonal: the axes of the covariance
    U = (archive.points[recent:] - x) @ (inverse.T / spread)
    distance = np.sqrt(np.einsum("ij,ij->i", U, U))
    wanted = 2 * p + 2 * n + 8
    within = np.flatnonzero(distance < REACH * math.sqrt(n)) if noisy else np.zeros(0, dtype=int)
    if len(within) > wanted:  # the newest of them, for they lie where the search is now, near and far
        near = within[-(min(20 * p, int(4e7 / p**2)) + wanted) :]
    else:
        near = np.argpartition(distance, wanted - 1)[:wanted] if wanted < len(U) else np.arange(len(U))
    distance = distance[near]
    reach = max(float(distance.max()), 1e-12) * 1.0001
    # Without noise nearer is better; with it every point within reach counts, or the newest, at the rim, would not.
    kernel = np.ones(len(near)) if noisy else (1 - (distance / reach) ** 2) ** 2 + 1e-3
    counts = archive.counts[recent:][near]
    weights = kernel * counts / (1 + counts / 20) if noisy else kernel
    length = math.sqrt(float((weights * distance**2).sum() / weights.sum()) / n) + 1e-12
    length = max(length, 0.3) if noisy else length
    try:
        outputs = archive.outputs[recent:][near]
        model = fit(U[near] / length, outputs, kernel, counts, noise, with_noise=with_noise)
    except np.linalg.LinAlgError:  # all points on one line, say: the recombination takes over
        return None
    return LocalModel(model, x, factor, inverse, length * spread)
