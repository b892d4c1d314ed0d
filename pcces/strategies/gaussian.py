"""Mirrored Gaussian sampling: D_k = N(0, I), the estimator of OpenES (Salimans et al. 2017)."""

from __future__ import annotations

from typing import NamedTuple

from pcces.strategies.base import Strategy, descent_weights


class GaussianState(NamedTuple):
    """Nothing is adapted."""


def gaussian(beta: float = 1.0) -> Strategy:
    """Isotropic directions, combined into an estimate of the descent direction.

    >>> import numpy as np
    >>> s = gaussian()
    >>> s.directions(s.init(np.zeros(2)), np.ones((1, 2)))
    array([[1., 1.]])
    """

    return Strategy(
        name="gaussian",
        init=lambda x0: GaussianState(),
        normals=lambda n: n,
        directions=lambda state, z: z,
        weights=lambda fitness: descent_weights(fitness, beta),
        update=lambda state, directions, weights, step, surrogate: state,
        lazy=True,
    )
