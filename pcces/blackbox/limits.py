"""How far below zero the constraints have to be: what Eq. 4 allows, and the margin that the certificate will need."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pcces.core.barrier import anneal
from pcces.core.certificate import expected_width, spend
from pcces.core.estimation import Estimate

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

Ranges = tuple[tuple[float, float], ...]
CHANCE = 0.8  # that the certificate succeeds, if the constraints keep the margin


def broken(search: Search, e: Estimate) -> float:
    """By how much an estimate violates what is allowed; +inf for a failed evaluation."""
    if not math.isfinite(e.mean[0]):
        return math.inf
    error = search.state.noise.deviation[1:] / math.sqrt(max(float(e.n), 1.0))
    return max(0.0, *clearance(search, e.mean, error).tolist(), 0.0)


def clearance(search: Search, outputs: np.ndarray, error: np.ndarray | float = 0.0) -> np.ndarray:
    """The constraints of outputs (.., 1 + r) with a standard error, relative to what is allowed: <= 0 passes."""
    allowed = allowance(search)
    return outputs[..., 1:] + margin(search) + search.options.constraint_z * error - allowed


def allowance(search: Search) -> float:
    """What Eq. 4 lets a constraint exceed zero by: eps_c sigma_k, and what annealing adds."""
    options, es = search.options, search.state.run.es
    extra = 0.0 if options.anneal is None else float(anneal(options.anneal[0], np.asarray(es.k), options.anneal[1]))
    return options.eps_c * float(es.sigma) + extra


def margin(search: Search) -> np.ndarray:
    """How far below zero a constraint must be for the certificate to have a good chance."""
    if not search.state.noise.present:
        return np.zeros(len(search.state.noise.deviation) - 1)
    return margin_for(search, search.reserve())


def margin_for(search: Search, samples: int, error: np.ndarray | float = 0.0) -> np.ndarray:
    """How far below zero to aim so that this many samples certify all constraints in four of five cases, when the
    point aimed at is known with a standard error of `error`."""
    noise = search.state.noise.deviation[1:]
    width = _width(tuple(noise.tolist()), samples, search.confidence, search.state.test.looks + 2, ranges(search))
    deviation = noise / math.sqrt(max(samples, 2))
    quantile = scipy.special.ndtri(CHANCE ** (1 / max(len(noise), 1)))
    return width + quantile * np.sqrt(deviation**2 + np.square(error))


def ranges(search: Search) -> Ranges | None:
    """The range of each inequality, if they were given: an equality's both ways, with its tolerance."""
    given, equal = search.options.constraint_range, search.state.constraints.equal
    if given is None:
        return None
    tolerance = search.options.equality_tolerance
    return (
        *[(low, high) for i, (low, high) in enumerate(given) if i not in equal],
        *[(given[i][0] - tolerance, given[i][1] - tolerance) for i in equal],
        *[(-given[i][1] - tolerance, -given[i][0] - tolerance) for i in equal],
    )


@lru_cache(maxsize=16)
def _width(noise: tuple[float, ...], samples: int, confidence: float, look: int, ranges: Ranges | None) -> np.ndarray:
    return expected_width(np.array(noise), samples, spend(confidence, look), ranges)
