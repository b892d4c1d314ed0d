"""Gaussian processes: what few evaluations say about a function, everywhere, and how sure that is.

Each output has its own: a Matern 5/2 kernel with a length for each variable, an unknown mean, and noise. Lengths, size and noise
are the most probable ones (MAP), by L-BFGS with the gradients of Rasmussen and Williams (2006, chapter 5).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy

LENGTH, LENGTH_SPREAD = 0.6, 1.0  # of the prior on a length (its median in two dimensions) and on its logarithm
SIZE_SPREAD = 1.5
NOISE, NOISE_SPREAD = -4.0, 2.0  # of the logarithm of the noise's variance, for data with variance 1
FLOOR = 1e-7  # under the noise's variance: of what varies by rounding only
MEAN = 4.0  # variance of the unknown mean
LINEAR = 0.5  # and of the slopes of an unknown trend
SQRT5 = math.sqrt(5.0)


class Data(NamedTuple):
    """Points with the means of their evaluations, and what repeated evaluations say of the noise."""

    points: np.ndarray  # (k, n)
    outputs: np.ndarray  # (k, r)
    counts: np.ndarray  # (k,) evaluations behind each row
    within: np.ndarray  # (r,) sum of the squared deviations of repeated evaluations from their means
    freedom: float  # how many degrees of freedom these have


def prior(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the parameters: logarithms of n lengths, of the size and of the noise's variance."""
    length = math.log(LENGTH * math.sqrt(n / 2))
    mean = np.concatenate([np.full(n, length), [0.0, NOISE]])
    return mean, np.concatenate([np.full(n, LENGTH_SPREAD), [SIZE_SPREAD, NOISE_SPREAD]])


def _kernel(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The correlation at scaled distances s, and -5/3 of its slope in s^2: B with d correlation / d s^2 = -B / 10 ."""
    e = np.exp(-s)
    slope = (1 + s) * e
    return slope + s * s / 3 * e, slope


def _trend(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The covariance of an unknown linear function."""
    return MEAN + LINEAR * (A @ B.T)


def fit(data: Data, j: int, start: np.ndarray | None = None, steps: int = 30) -> tuple[np.ndarray, float]:
    """The most probable parameters of output j, looked for from `start` and, while that is cheap, from the prior's middle; and
    minus the logarithm of how probable they are together with the output, but for a constant.

    >>> x = np.linspace(0, 1, 12)[:, None]
    >>> data = Data(x, np.sin(6 * x), np.ones(12), np.zeros(1), 0.0)
    >>> float(np.exp(fit(data, 0)[0][-1])) < 1e-3
    True
    """
    n, k = data.points.shape[1], len(data.points)
    middle, spread = prior(n)
    trend = _trend(data.points, data.points).reshape(-1)
    y, unit = _standardised(data.outputs[:, j])
    first, second = np.triu_indices(k, 1)
    upper, lower = (
        first * k + second,
        second * k + first,
    )  # where each pair stands in a matrix that is laid out in a row
    pairs = (data.points[first] - data.points[second]) ** 2
    within = float(data.within[j]) / unit**2

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        weights, size, noise = np.exp(-2 * theta[:n]), math.exp(theta[n]), math.exp(theta[n + 1])
        s = SQRT5 * np.sqrt(pairs @ weights)
        correlation, slope = _kernel(s)
        off = size * correlation
        covariance = np.empty(k * k)
        covariance[upper] = covariance[lower] = off
        covariance[:: k + 1] = size + noise / data.counts + FLOOR
        covariance += trend
        factor, info = scipy.linalg.lapack.dpotrf(covariance.reshape(k, k), lower=1, overwrite_a=0)
        if info:
            return 1e10, np.zeros(n + 2)
        inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
        flat = inverse.T.reshape(-1)  # a view: LAPACK's matrices lie column by column
        flat[lower] = flat[upper]
        alpha = inverse @ y
        value = 0.5 * float(y @ alpha) + float(np.log(np.diagonal(factor)).sum())
        above, diagonal = alpha[first] * alpha[second] - flat[upper], alpha * alpha - flat[:: k + 1]
        gradient = np.empty(n + 2)
        gradient[:n] = -(5 / 3) * size * ((above * slope) @ pairs) * weights
        gradient[n] = -(float(above @ off) + 0.5 * size * float(diagonal.sum()))
        gradient[n + 1] = -0.5 * noise * float((diagonal / data.counts).sum())
        noise_floor = noise + FLOOR
        value += 0.5 * data.freedom * math.log(noise_floor) + 0.5 * within / noise_floor
        gradient[n + 1] += 0.5 * (data.freedom - within / noise_floor) * noise / noise_floor
        off_middle = (theta - middle) / spread
        return value + 0.5 * float(off_middle @ off_middle), gradient + off_middle / spread

    bounds = [(-4.0, 4.0)] * n + [(-5.0, 6.0), (math.log(FLOOR), 2.0)]
    starts = [middle] if start is None else [start, middle] if k <= 60 else [start]
    ends = [
        scipy.optimize.minimize(loss, at, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps})
        for at in starts
    ]
    best = min(ends, key=lambda end: end.fun)
    return np.asarray(best.x), float(best.fun) + k * math.log(unit)


def _standardised(y: np.ndarray) -> tuple[np.ndarray, float]:
    unit = float(y.std())
    if not unit > 1e-12 * max(float(np.abs(y).max(initial=0.0)), 1e-300):
        unit = 1.0  # a constant: nothing to explain
    return (y - y.mean()) / unit, unit


class _One(NamedTuple):
    """The posterior of one output."""

    lengths: np.ndarray
    size: float
    scaled: np.ndarray  # points over lengths
    alpha: np.ndarray
    inverse: np.ndarray
    centre: float
    unit: float
    y: np.ndarray  # the output as the process sees it, with mean 0 and deviation 1
    nugget: np.ndarray  # variances of its rows, beside the process


class Posterior:
    """What is known of all outputs, given their parameters `theta` (r, n + 2).

    >>> x = np.linspace(0, 1, 9)[:, None]
    >>> data = Data(x, np.cos(3 * x), np.ones(9), np.zeros(1), 0.0)
    >>> posterior = Posterior(data, np.array([fit(data, 0)[0]]))
    >>> mean, error = posterior(np.array([[0.55]]))
    >>> bool(abs(mean[0, 0] - np.cos(1.65)) < 0.01), bool(error[0, 0] < 0.05)
    (True, True)
    """

    def __init__(self, data: Data, theta: np.ndarray):
        self.data, self.theta = data, theta
        self.parts = [_solved(data, j, theta[j]) for j in range(len(theta))]
        n = data.points.shape[1]
        self.noise = np.array([part.unit for part in self.parts]) * np.exp(0.5 * theta[:, n + 1])  # of one evaluation
        shape = theta[:, :n].mean(0)
        self.sides = np.exp(shape - shape.mean())  # of a box in which all variables matter alike

    def __call__(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations (q, r) at the rows of Z."""
        means, errors = np.empty((len(Z), len(self.parts))), np.empty((len(Z), len(self.parts)))
        trend, own = _trend(Z, self.data.points), MEAN + LINEAR * (Z * Z).sum(1)
        for j, part in enumerate(self.parts):
            A = Z / part.lengths
            square = (A * A).sum(1)[:, None] + (part.scaled * part.scaled).sum(1) - 2 * (A @ part.scaled.T)
            correlation, _ = _kernel(SQRT5 * np.sqrt(np.maximum(square, 0.0)))
            k = part.size * correlation + trend
            means[:, j] = part.centre + part.unit * (k @ part.alpha)
            variance = part.size + own - ((k @ part.inverse) * k).sum(1)
            errors[:, j] = part.unit * np.sqrt(np.maximum(variance, 1e-10 * part.size))
        return means, errors

    def at_points(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations (k, r) at the points of the data, without another look at the kernel.

        >>> x = np.linspace(0, 1, 9)[:, None]
        >>> posterior = Posterior(Data(x, np.cos(3 * x), np.ones(9), np.zeros(1), 0.0), np.log([[0.5, 1.0, 0.01]]))
        >>> bool(np.allclose(posterior.at_points(), posterior(x)))
        True
        """
        pairs = []
        for part in self.parts:
            mean = part.y - part.nugget * part.alpha
            variance = part.nugget * np.maximum(1 - part.nugget * np.diagonal(part.inverse), 0.0)
            error = np.sqrt(np.maximum(variance, 1e-10 * part.size))
            pairs.append((part.centre + part.unit * mean, part.unit * error))
        means, errors = zip(*pairs)
        return np.stack(means, axis=1), np.stack(errors, axis=1)

    def slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Means and standard deviations (r,) at a point, and their gradients (r, n)."""
        n, r = len(z), len(self.parts)
        mean, error, d_mean, d_error = np.empty(r), np.empty(r), np.empty((r, n)), np.empty((r, n))
        X = self.data.points
        trend, own = _trend(z[None], X)[0], MEAN + LINEAR * float(z @ z)
        for j, part in enumerate(self.parts):
            away = z / part.lengths - part.scaled
            correlation, slope = _kernel(SQRT5 * np.sqrt((away * away).sum(1)))
            k = part.size * correlation + trend
            weighted = part.inverse @ k
            variance = max(part.size + own - float(k @ weighted), 1e-10 * part.size)
            change = (-(5 / 3) * part.size) * slope[:, None] * away / part.lengths + LINEAR * X  # of k
            mean[j], d_mean[j] = part.centre + part.unit * float(k @ part.alpha), part.unit * (part.alpha @ change)
            error[j] = part.unit * math.sqrt(variance)
            d_error[j] = part.unit * (LINEAR * z - weighted @ change) / math.sqrt(variance)
        return mean, error, d_mean, d_error

    def gradients(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradients (r, n) at a point, and their covariances (r, n, n).

        >>> x = np.linspace(0, 1, 9)[:, None]
        >>> data = Data(x, x**2, np.ones(9), np.zeros(1), 0.0)
        >>> mean, covariance = Posterior(data, np.array([fit(data, 0)[0]])).gradients(np.array([0.5]))
        >>> bool(abs(mean[0, 0] - 1.0) < 0.01), bool(0 <= covariance[0, 0, 0] < 0.01)
        (True, True)
        """
        mean, covariance = [], []
        for part in self.parts:
            away = z / part.lengths - part.scaled
            _, slope = _kernel(SQRT5 * np.sqrt((away * away).sum(1)))
            change = (-(5 / 3) * part.size) * slope[:, None] * away / part.lengths + LINEAR * self.data.points
            prior_covariance = np.diag((5 / 3) * part.size / part.lengths**2 + LINEAR)
            mean.append(part.unit * (part.alpha @ change))
            covariance.append(part.unit**2 * (prior_covariance - change.T @ part.inverse @ change))
        return np.array(mean), np.array(covariance)

    def believing(self, z: np.ndarray) -> Posterior:
        """As if a point (n,), or some (q, n), had been evaluated, and had given what is expected: for the next one."""
        data, Z = self.data, np.atleast_2d(z)
        points, outputs = np.vstack([data.points, Z]), np.vstack([data.outputs, self(Z)[0]])
        counts = np.append(data.counts, np.ones(len(Z)))
        return Posterior(data._replace(points=points, outputs=outputs, counts=counts), self.theta)


def _solved(data: Data, j: int, theta: np.ndarray) -> _One:
    n, k = data.points.shape[1], len(data.points)
    lengths, size, noise = np.exp(theta[:n]), math.exp(theta[n]), math.exp(theta[n + 1])
    y, unit = _standardised(data.outputs[:, j])
    scaled = data.points / lengths
    square = (scaled * scaled).sum(1)[:, None] + (scaled * scaled).sum(1) - 2 * (scaled @ scaled.T)
    trend = _trend(data.points, data.points)
    K = size * _kernel(SQRT5 * np.sqrt(np.maximum(square, 0.0)))[0] + trend
    diagonal, nugget = size + np.diagonal(trend), noise / data.counts + FLOOR
    for more in (0.0, 1e-6, 1e-4, 1e-2):
        K.flat[:: k + 1] = diagonal + nugget + more * size
        factor, info = scipy.linalg.lapack.dpotrf(K, lower=1)
        if not info:
            break
    inverse, _ = scipy.linalg.lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    centre = float(data.outputs[:, j].mean())
    return _One(lengths, size, scaled, inverse @ y, inverse, centre, unit, y, nugget + more * size)
