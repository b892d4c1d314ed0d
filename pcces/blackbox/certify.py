"""The last phase: which points are put to the test on fresh samples, and when the test is over."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import limits
from pcces.blackbox.batch import Batch, repeated
from pcces.blackbox.models.quadratic import local_model
from pcces.blackbox.state import Answer
from pcces.core.certificate import expected_width, plausible_deviation, spend, upper_bounds
from pcces.core.estimation import MANY, NoiseLevel, estimate

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

CANDIDATES = 8  # and no more are tested
LEAST = 4  # evaluations that a test under noise needs


def next_candidate(search: Search) -> bool:
    """Put the next point to the test; whether the test is over, because there is nothing to test or to test it with."""
    state, test = search.state, search.state.test
    if state.constraints.number <= 0:
        test.holds = True
        return True
    exact = state.noise.present is False
    tried = len(test.candidates)
    if state.budget.left < (1 if exact else LEAST) or tried >= CANDIDATES:
        return True
    z = state.run.es.x if tried == 0 else None
    failed = tried > 0 and not np.all(np.isfinite(test.samples))
    if search.archive is not None and not exact and not failed:
        z = _corrected(search)
    if z is None or _tested(search, z):
        z = _fallback(search)
    test.candidates.append(z)
    test.samples = np.zeros((0, 0))
    return False


def _tested(search: Search, z: np.ndarray) -> bool:
    return any(np.array_equal(z, other) for other in search.state.test.candidates)


def _corrected(search: Search) -> np.ndarray | None:
    """The next candidate by the models' slopes: the best point near the last one tested, from what its fresh samples
    measured there (near the incumbent, from all that is known, for the first)."""
    state, run, test, n = search.state, search.state.run, search.state.test, search.space.n
    assert search.archive is not None
    first = not test.candidates
    x = run.es.x if first else test.candidates[-1]
    noise, spread = state.noise.deviation, float(run.es.sigma_es)
    local = local_model(search.archive, x, run.strategy.factor, spread, noise, everything=True)
    measured = run.incumbent.estimate if first else estimate(test.samples)
    if local is None or not np.all(np.isfinite(measured.mean)):
        return None
    error = noise / np.sqrt(measured.n)
    trust = 1.0 if not first else local.model.error**2 / (local.model.error**2 + error**2 + 1e-300)
    value = local.model.value + trust * (measured.mean - local.model.value)
    anchored = local._replace(model=local.model._replace(value=value))
    backoff = limits.margin_for(search, state.budget.left, (np.sqrt(trust) * error)[1:])
    radius = math.sqrt(n) * spread / local.length
    half_spaces, step = search.space.half_spaces, np.zeros(n)
    for reach in (0.03, 0.1, 0.3, 1.0):  # no farther than it takes: slopes are only good near by
        best = anchored.step(half_spaces, reach * radius, backoff, run.multipliers)
        if best is None:
            return None
        step, run.multipliers = best
        if np.all(anchored.predict(step[None])[0, 1:] + 0.9 * backoff <= 0):
            break
    return search.space.project(x + step)


def _fallback(search: Search) -> np.ndarray:
    """An incumbent of the past: the best by f among those with enough estimated slack, more the later it is tested."""
    state, test = search.state, search.state.test
    if state.accepted:
        mean = np.stack([each.mean for each in state.accepted])
        n = np.array([[each.n] for each in state.accepted])
        needed = (1 + len(test.candidates)) * limits.margin(search)
        slack = np.max(mean[:, 1:] + needed + state.noise.deviation[1:] / np.sqrt(n), axis=1, initial=-np.inf)
        for i in np.lexsort((mean[:, 0], np.maximum(slack, 0))):
            if not _tested(search, state.accepted[i].x):
                return state.accepted[i].x
    return state.run.es.x


def ask(search: Search) -> Batch:
    """Fresh evaluations of the candidate: under noise a first look, then all or nothing."""
    state, test = search.state, search.state.test
    left = state.budget.left
    if state.noise.present is False:
        wanted = max(search.reserve(), 2)
    else:
        wanted = left if len(test.samples) else max(left // 3, LEAST)
    return repeated(search, test.candidates[-1], wanted)


def tell(search: Search, batch: Batch, outputs: np.ndarray) -> bool:
    """Does it hold now, will it, or is it the next one's turn? Whether the test is over."""
    state, test = search.state, search.state.test
    samples = test.samples = np.vstack([test.samples, outputs]) if len(test.samples) else outputs
    if not np.all(np.isfinite(samples)):
        return next_candidate(search)
    first = state.run.incumbent.estimate.mean if len(test.candidates) == 1 else samples[0]
    if state.noise.present is False and np.any(samples != first):  # there is noise after all, here
        state.noise = NoiseLevel(True, samples.std(0))
    c, mean, exact = samples[:, 1:], samples.mean(0), state.noise.present is False
    if exact:
        bounds, method = c.max(0), "exact"
    else:
        test.looks += 1
        error = spend(search.confidence, test.looks)
        bounds, method = upper_bounds(c, error, limits.ranges(search), state.noise.deviation[1:])
        state.noise = state.noise.learn(estimate(outputs), 0.1 if len(outputs) >= MANY else 0.0)
    test.holds = bool(np.all(bounds <= 0))
    # Of several candidates the least violating is the answer, unless one holds.
    answer, broken = test.answer, float(np.max(mean[1:], initial=0.0))
    latest = answer.samples == 0 or np.array_equal(answer.x, test.candidates[-1])
    if latest or test.holds or broken < float(np.max(answer.mean[1:], initial=0.0)):
        test.answer = Answer(test.candidates[-1], mean, len(samples), bounds, method)
    if test.holds or exact:
        return True
    if state.budget.left < LEAST or not _promising(search, c):
        return next_candidate(search)
    return False


def _promising(search: Search, c: np.ndarray) -> bool:
    """Whether this candidate would probably hold if all that is left were spent on it."""
    have, left = len(c), search.state.budget.left
    deviation = plausible_deviation(c, search.state.noise.deviation[1:])
    error = spend(search.confidence, search.state.test.looks + 1)
    bound_then = c.mean(0) + expected_width(deviation, have + left, error, limits.ranges(search))
    mean_may_move = deviation * math.sqrt(left / (have * (have + left)))
    return bool(np.all(bound_then + 0.5 * mean_may_move <= 0))
