"""Failed evaluations that say nothing about their points: missing values, where the user said that they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox.batch import Batch
from pcces.core.bounds import binomial_bound

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

TRIES = 4  # evaluations of a point of which none succeeds: then it is the point, after all


def kept(search: Search, outputs: np.ndarray) -> np.ndarray:
    """Which rows of outputs say something: all, or those that did not fail."""
    return np.isfinite(outputs[:, 0]) | (not search.options.missing)


def without(search: Search, batch: Batch, outputs: np.ndarray) -> tuple[Batch, np.ndarray]:
    """Repeated evaluations of points, without missing ones; how many a certificate missed is counted."""
    state, phase = search.state, batch.phase
    good = kept(search, outputs)
    if good.all() or phase not in ("start", "trial", "certify"):
        return batch, outputs
    if phase == "certify":
        state.test.failed += int((~good).sum())
    elif batch.several_starts:
        points = np.asarray(batch.points)
        known = [(good & (points == x).all(1)).any() for x in points]
        good |= ~np.array(known)  # a start that failed is none to begin at
    else:
        good = _of_point(search, batch, good)
    points = np.asarray(batch.points)[good]
    directions = batch.directions[good] if isinstance(batch.directions, np.ndarray) else None
    at_trial = int(good[: batch.at_trial].sum())
    return Batch(points, batch.seeds[good], batch.number, phase, at_trial, directions), outputs[good]


def _of_point(search: Search, batch: Batch, good: np.ndarray) -> np.ndarray:
    """Which evaluations of x_k and of the trial point are kept: failures only where it was tried often enough."""
    state, k = search.state, batch.at_trial
    if search.common_random_numbers and batch.phase == "trial" and 2 * k == len(good):
        good = np.tile(good[:k] & good[k:], 2)  # what is compared in pairs
    new = slice(0, k) if batch.phase == "trial" else slice(None)
    point = state.trial.point if batch.phase == "trial" else state.run.incumbent
    if point.estimate.n > 0 or good[new].any() or not good[new].size:
        state.missed = 0
        return good
    state.missed += good[new].size
    if state.missed >= TRIES or state.budget.left <= search.reserve():
        state.missed, good = 0, good.copy()
        good[new] = True
    return good


def failure_rate(search: Search, error: float) -> float | None:
    """The upper bound on the probability that an evaluation of the point on test fails; None where a failure is no missing
    value."""
    test = search.state.test
    return binomial_bound(test.failed, test.failed + len(test.samples), error) if search.options.missing else None
