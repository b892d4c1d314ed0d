"""Cautious search, for evaluations on real machines: only points where the model predicts that the limits hold are evaluated.

A model knows what was evaluated, and little about what lies beyond. So a point is not much farther from x_k than those that
are known, and uses up only a part of what is left to a limit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pcces.blackbox import limits
from pcces.blackbox.models.quadratic import local_model

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

FARTHER = 1.5  # times as far from x_k as the farthest of its nearest neighbours
FIRST = 0.1  # of the spread, while they are too few for a model
BENDS = 0.2  # of what a constraint changes on the way, as a standard deviation
SHARES = np.append(0.8 ** np.arange(18), 0.0)[:, None]  # of the way to a point


def drawn_in(search: Search, points: np.ndarray) -> np.ndarray:
    """Points z (k, n), each as far on its way from x_k as the limits are kept there with the probability asked for."""
    run, archive, probability, n = search.state.run, search.archive, search.options.cautious, search.space.n
    if probability is None or archive is None or not math.isfinite(run.incumbent.estimate.f):
        return points
    spread, factor = float(run.es.sigma_es), run.strategy.factor

    def distances(offsets: np.ndarray) -> np.ndarray:
        return np.linalg.norm(offsets @ (factor / (factor**2).sum(0)), axis=1) / spread

    around = distances(archive.points - run.es.x)
    neighbours, local = np.sort(around[around > 1e-6])[: 2 * n + 2], None
    if len(neighbours) > n:
        noise = search.state.noise.deviation
        local = local_model(archive, run.es.x, factor, spread, noise, with_noise=limits.shaped(search))
    reach = FIRST * math.sqrt(n) if local is None else FARTHER * neighbours[-1]
    offsets = points - run.es.x
    offsets = np.minimum(1.0, reach / np.maximum(distances(offsets), 1e-300))[:, None] * offsets
    if local is None:
        return run.es.x + offsets
    model, z = limits.asked(search, local), float(scipy.special.ndtri(probability))
    doubt = (model.model.error * np.sqrt(1 + 0.5 * limits.tails(search) ** 2))[1:]
    here = model.predict(np.zeros((1, n)))[0, 1:]
    tried = (SHARES[:, None] * offsets).reshape(-1, n)
    there, farther = model.predict(tried)[:, 1:], distances(tried) ** 2 / np.mean(neighbours**2)
    unsure = np.hypot((1 + farther)[:, None] * doubt, BENDS * np.maximum(there - here, 0))
    # Where x_k itself is not known to be safe, what is no more dangerous will do.
    safe = np.all(there + z * unsure <= np.maximum(here + z * doubt, 0.0) + 1e-12, axis=1)
    largest = safe.reshape(len(SHARES), -1).argmax(0)
    return run.es.x + SHARES[largest] * offsets
