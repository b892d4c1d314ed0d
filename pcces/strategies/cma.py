"""CMA-ES (Hansen & Ostermeier 2001): the paper's own example of Psi_k, a weighted mean of the best directions.

Only the shape of the distribution is adapted here; the step size belongs to Algorithm 1, so the covariance is kept at
trace n and sigma carries the scale. Equation numbers: N. Hansen, "The CMA Evolution Strategy: A Tutorial" (2016).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pcces.core.arrays import Array, array_namespace
from pcces.strategies.base import Strategy


class CMAState(NamedTuple):
    """The covariance C_k, a factor of it, and the evolution path."""

    covariance: Array  # C, trace n
    factor: Array  # A with A A^T = C, and orthogonal columns
    path: Array  # p_c


@lru_cache(maxsize=16)
def simplex_weights(population: int) -> np.ndarray:
    """Positive recombination weights of the better half, a point of the simplex (eq. 49)."""
    mu = population // 2
    w = np.log(mu + 0.5) - np.log(np.arange(1, mu + 1))
    w /= w.sum()
    w.flags.writeable = False
    return w


def default_population(n: int) -> int:
    """Twice CMA-ES's 4 + 3 ln n (eq. 48), and even, so that it can be mirrored."""
    return 2 * int(4 + 3 * math.log(n))


def cma(condition_max: float = 1e14) -> Strategy:
    """Covariance matrix adaptation; for n up to a few hundred (it keeps an n x n matrix).

    >>> import numpy as np
    >>> s = cma()
    >>> d = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> np.round(s.weights(np.array([0.0, 1.0, 3.0, 2.0])) @ d, 2)
    array([0.8, 0.2])
    """

    def init(x0: Array) -> CMAState:
        xp = array_namespace(x0)
        identity = xp.eye(x0.shape[0], dtype=x0.dtype)
        return CMAState(identity, identity, xp.zeros_like(x0))

    def directions(state: CMAState, z: Array) -> Array:
        return z @ state.factor.T

    def weights(fitness: Array) -> Array:
        xp = array_namespace(fitness)
        simplex = xp.asarray(simplex_weights(fitness.shape[0]), dtype=fitness.dtype)
        rank = xp.argsort(xp.argsort(fitness, stable=True), stable=True)
        padded = xp.concat([simplex, xp.zeros((fitness.shape[0] - simplex.shape[0],), dtype=fitness.dtype)])
        return xp.where(xp.isfinite(fitness), padded[rank], 0.0)

    def update(state: CMAState, directions: Array, weights: Array, step: Array, surrogate: Array) -> CMAState:
        xp = array_namespace(directions)
        n = step.shape[0]
        mu_eff = float(1 / (simplex_weights(directions.shape[0]) ** 2).sum())
        c_c = 4 / (n + 4)  # eq. 56, to first order
        c_1 = 2 / ((n + 1.3) ** 2 + mu_eff)  # eq. 57
        c_mu = min(1 - c_1, 2 * (mu_eff - 2 + 1 / mu_eff) / ((n + 2) ** 2 + mu_eff))  # eq. 58
        # A mean of mu_eff directions is sqrt(mu_eff) times shorter than one of them; a longer step would distort C.
        length = xp.sqrt(xp.sum((step @ state.factor / xp.sum(state.factor**2, axis=0)) ** 2))  # of A^-1 step
        longest = math.sqrt(n) / xp.where(length > 0, length, 1.0)
        scaled = step * xp.where(longest < math.sqrt(mu_eff), longest, math.sqrt(mu_eff))
        path = xp.where(length > 0, (1 - c_c) * state.path + math.sqrt(c_c * (2 - c_c)) * scaled, state.path)  # eq. 24
        rank_mu = (directions.T * weights) @ directions + (1 - xp.sum(weights)) * state.covariance
        covariance = (
            (1 - c_1 - c_mu) * state.covariance + c_1 * path[:, None] * path[None, :] + c_mu * rank_mu
        )  # eq. 30
        covariance = covariance * (n / xp.linalg.trace(covariance))
        values, vectors = xp.linalg.eigh(covariance)
        values = xp.maximum(values, values[-1:] / condition_max)  # in ascending order
        return CMAState((vectors * values) @ vectors.T, vectors * xp.sqrt(values), path)

    return Strategy("cma", init, lambda n: n, directions, weights, update)
