"""Estimates of f and c by averaging repeated evaluations (section 3.2), and how many evaluations a decision needs.

The outputs of one evaluation are kept as one vector y = (f, c_1, .., c_r), so that every formula serves all of them.
A failed evaluation (exception, nan, inf) makes the whole estimate +inf: a hidden constraint, never averaged away.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pcces.core.arrays import Array, array_namespace

FARTHEST = 1e100  # from zero: nothing could hold the squares of the squares of numbers beyond it


class Estimate(NamedTuple):
    """The mean of `n` evaluations at one point, and the sum of squared deviations from it, per output."""

    n: Array
    mean: Array  # (1 + r,)
    squares: Array  # (1 + r,)

    @property
    def f(self) -> Array:
        """The estimate of the objective."""
        return self.mean[..., 0]

    @property
    def c(self) -> Array:
        """The estimates of the constraints."""
        return self.mean[..., 1:]

    @property
    def variance(self) -> Array:
        """The sample variance of a single evaluation (nan for fewer than two)."""
        xp = array_namespace(self.mean)
        return self.squares / xp.where(self.n > 1, self.n - 1, xp.nan)


def estimate(samples: Array) -> Estimate:
    """Average the rows of `samples` (N, 1 + r).

    >>> import numpy as np
    >>> e = estimate(np.array([[1.0, -2.0], [3.0, -2.0]]))
    >>> e.f, e.c, e.variance
    (array(2.), array([-2.]), array([2., 0.]))
    """
    xp = array_namespace(samples)
    failed = ~xp.all(xp.isfinite(samples))
    usable = xp.where(failed, 0.0, samples)
    mean = usable[0, :] + xp.mean(usable - usable[:1, :], axis=0)  # exact for equal numbers, so that they show no noise
    squares = xp.sum((usable - mean) ** 2, axis=0)
    mean = xp.where(failed, xp.inf, mean)
    return Estimate(xp.asarray(samples.shape[0], dtype=samples.dtype), mean, squares)


def pool(a: Estimate, b: Estimate) -> Estimate:
    """The estimate from the evaluations of both (Chan's update); `a` may be of none yet.

    >>> import numpy as np
    >>> y = np.array([[1.0], [2.0], [6.0]])
    >>> np.allclose(np.concatenate(pool(estimate(y[:1]), estimate(y[1:]))[1:]), np.concatenate(estimate(y)[1:]))
    True
    """
    xp = array_namespace(a.mean)
    n = a.n + b.n
    finite = xp.isfinite(a.mean) & xp.isfinite(b.mean)
    delta = xp.where(finite, b.mean, 0.0) - xp.where(finite, a.mean, 0.0)
    mean = xp.where(a.n > 0, xp.where(finite, a.mean, xp.inf) + delta * (b.n / n), b.mean)
    return Estimate(n, mean, a.squares + b.squares + delta**2 * (a.n * b.n / n))


def required_samples(variance: float, sigma: float, eps_f: float, eps_v: float, p: float) -> int:
    """The N_k that makes averages p-probabilistically eps_f-accurate *and* meets the variance condition (section 3.3).

    N >= 16 v / (eps_f^2 sigma^4) log(2 / (1 - p))  and  N >= v / (eps_v^2 sigma^4); the paper's second bound has a slip
    (docs/explanation/paper.md).

    >>> required_samples(variance=1e-4, sigma=0.1, eps_f=1.0, eps_v=1.0, p=0.9)
    48
    >>> required_samples(variance=0.0, sigma=0.1, eps_f=1.0, eps_v=1.0, p=0.9)
    1
    """
    if not 0.5 < p < 1:
        raise ValueError(f"p must lie in (1/2, 1) for a finite N, got {p}")
    accuracy = 16 * variance / (eps_f**2 * sigma**4) * math.log(2 / (1 - p))
    moment = variance / (eps_v**2 * sigma**4)
    needed = max(accuracy, moment, 1.0)
    return math.ceil(needed) if needed < 2**62 else 2**62


MANY = 8  # evaluations of one point that say something about the noise at others


class NoiseLevel(NamedTuple):
    """What is known about the noise of a single evaluation."""

    present: bool | None  # None: not known yet
    deviation: np.ndarray  # (1 + r,) standard deviations; zero where none was seen
    jump: np.ndarray | float = 0.0  # (1 + r,) the most that an evaluation was above what is usual at its point

    def learn(self, e: Estimate, weight: float = 1.0) -> NoiseLevel:
        """Take in what repeated evaluations of a point show: whether there is noise, if that was not seen before, and its
        variance, which moves towards theirs by so much.

        >>> noise = NoiseLevel(None, np.zeros(1)).learn(estimate(np.array([[0.0], [2.0]])))
        >>> noise.present, (noise.deviation**2).round(6)
        (True, array([2.]))
        """
        if e.n < 2 or not math.isfinite(e.f):
            return self
        deviation, before = self.deviation, bool(self.present)
        present = before or bool(np.any(e.squares > 0))
        if present:
            weight = weight if before else 1.0
            first_seen = (deviation == 0) & (e.squares > 0)
            blended = np.sqrt((1 - weight) * deviation**2 + weight * e.variance)
            few = max(float(e.n), MANY if before else 0.0) - 1  # there were repeats before that did not differ
            deviation = np.where(first_seen, np.sqrt(e.squares / few), blended)
        return self._replace(present=present, deviation=deviation)

    def saw(self, repeats: np.ndarray) -> NoiseLevel:
        """Take in how far one of the evaluations (k, 1 + r) of a point was above the others.

        >>> NoiseLevel(True, np.ones(1)).saw(np.array([[1.0], [1.0], [9.0]])).jump
        array([8.])
        """
        if len(repeats) < 2 or not np.all(np.isfinite(repeats)):
            return self
        usual = np.sort(repeats, axis=0)[(len(repeats) - 1) // 2]
        return self._replace(jump=np.maximum(self.jump, repeats.max(0) - usual))
