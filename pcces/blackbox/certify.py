"""The last phase: which points are put to the test on fresh samples, and when the test is over."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import acquire, candidate, caution, independence, limits, missing
from pcces.blackbox.batch import Batch, repeated
from pcces.blackbox.models.quadratic import local_model
from pcces.blackbox.state import Answer, Measured, RunState, Test
from pcces.core import algorithm
from pcces.core.bounds import plausible_deviation
from pcces.core.certificate import COUNTED, LEAST, Column, Judgement, joined, judge
from pcces.core.estimation import MANY, estimate, pool
from pcces.core.plans import mean_width, passable

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

CANDIDATES = 8  # tested at most
UNLUCKY, LUCKY = 0.5, -1.5  # standard errors by which samples to come are worse: to go on, and to give up in between


def next_candidate(search: Search) -> bool:
    """Start the test of the next candidate. Returns whether testing is over: no candidate or no budget is left."""
    state, test = search.state, search.state.test
    if not search.limited:
        test.holds = True
        return True
    tried = len(test.candidates)
    if state.budget.left < (LEAST if search.needs_samples else 1) or tried >= CANDIDATES:
        return True
    z = state.run.es.x if tried == 0 else None
    failed = tried > 0 and not (len(test.samples) and np.all(np.isfinite(test.samples)))
    if search.few and tried and len(test.samples):
        _take_in(search)
    aimed = state.noise.present and state.constraints.number > 0
    if aimed and search.few:
        z = candidate.best(search, state.budget.left)
    elif aimed and search.archive is not None and not failed:
        z = _corrected(search)
    if test.kept and (z is None or _tested(search, z) or not candidate.better(search, z, test.answer.x)):
        return True
    if z is None or _tested(search, z):
        z = _fallback(search)
    if not test.candidates:
        test.memory = independence.of_search(search, z)
    test.candidates.append(z)
    test.samples, test.failed = np.zeros((0, 0)), 0
    test.levels = limits.levels(search)
    return False


def _take_in(search: Search) -> None:
    """The processes learn from a candidate that failed: the next one is tested on samples of its own."""
    assert search.archive is not None
    z, samples = search.state.test.candidates[-1], search.state.test.samples
    search.archive.place(np.repeat(z[None], len(samples), axis=0), samples)
    acquire.learn(search)


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
    local = local_model(search.archive, x, run.strategy.factor, spread, noise, True, limits.shaped(search))
    measured = run.incumbent.estimate if first else estimate(test.samples)
    if local is None or not np.all(np.isfinite(measured.mean)):
        return None
    # The model has used the evaluations of x_k, which was chosen because they were good. So they count again only where the
    # model does not fit. It has not used fresh samples.
    error, doubt = noise / np.sqrt(measured.n), np.asarray(local.model.misfit if first else local.model.error)
    trust = doubt**2 / (doubt**2 + error**2 + 1e-300)
    value = local.model.value + trust * (measured.mean - local.model.value)
    anchored = local._replace(model=local.model._replace(value=value))
    if limits.shaped(search):
        noise_there = limits.own_noise(search, measured)  # fresh samples say more about it than the model
        anchored = anchored._replace(model=anchored.model._replace(noise=noise_there))
    anchored = limits.asked(search, anchored)
    unsure = np.hypot((1 - trust) * local.model.error, trust * error)
    backoff = limits.margin_for(search, state.budget.left, unsure[1:])
    radius = math.sqrt(n) * spread / local.length
    half_spaces, step = search.space.half_spaces_at(x), np.zeros(n)
    for reach in (0.03, 0.1, 0.3, 1.0, 3.0, 10.0):  # no farther than it takes: slopes are only good near by
        best = anchored.step(half_spaces, reach * radius, backoff, run.multipliers)
        if best is None:
            return None
        step, run.multipliers = best
        if np.all(anchored.predict(step[None])[0, 1:] + 0.9 * backoff <= 0):
            break
    return caution.drawn_in(search, search.space.project(x + step)[None])[0]


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
    """Fresh evaluations of the candidate: a first look, then all or nothing; without noise, repeats in case there is some."""
    state, test = search.state, search.state.test
    left = state.budget.left
    if search.needs_samples:
        at_once = len(test.samples) > 0 or test.kept or left < 2 * LEAST
        wanted = left if at_once else max(left // 3, LEAST)
    else:
        wanted = search.reserve()
    return repeated(search, test.candidates[-1], wanted)


def tell(search: Search, batch: Batch, outputs: np.ndarray) -> bool:
    """Decide whether the candidate holds, needs more samples, or gives way to the next one. Returns whether testing is over."""
    state, test = search.state, search.state.test
    if not len(outputs):  # all are missing
        over = state.budget.left <= 0 or (not len(test.samples) and test.failed >= missing.TRIES)
        return next_candidate(search) if over else False
    samples = test.samples = np.vstack([test.samples, outputs]) if len(test.samples) else outputs
    if not np.all(np.isfinite(samples)):
        return next_candidate(search)
    without_noise = state.noise.present is False
    fresh = estimate(outputs)
    if without_noise and len(test.candidates) == 1:  # it was evaluated before
        fresh = pool(state.run.incumbent.estimate, fresh)
    search.notice(fresh, outputs, 0.1 if len(outputs) >= MANY else 0.0)
    search.note_shape(outputs)
    if state.surprise and search.can_go_on():
        _take_up_again(search, samples)
        return True
    state.surprise = False
    test.looks += 1
    known = _known(search)
    last = state.budget.left < LEAST or (without_noise and not search.needs_samples)
    error = limits.error_of_look(search, last)
    test.spent += error / (1 - search.confidence)
    each = error / limits.claims(search)
    rate, verdict = missing.failure_rate(search, each), judge(samples[:, 1:], known, each)
    allowed = search.options.failure_limit
    holds = verdict.holds and (rate is None or allowed is None or rate <= allowed)
    test.holds = holds or test.kept
    test.memory = verdict.memory
    answer = _answer(search, known, verdict, rate)
    latest = test.answer.samples == 0 or np.array_equal(test.answer.x, answer.x)
    # Of several candidates the least violating is the answer, unless one holds.
    if holds or (not test.kept and (latest or answer.broken < test.answer.broken)):
        test.answer = answer
    if holds and search.few and not test.kept and not without_noise:
        test.kept = True  # what is left of the budget is for a bolder one
        return next_candidate(search)
    if test.holds or (without_noise and not search.needs_samples):
        return True
    if state.budget.left < LEAST or not promising(search, samples):
        return next_candidate(search)
    return False


def _answer(search: Search, known: list[Column], verdict: Judgement, rate: float | None) -> Answer:
    """The candidate, with what its fresh samples say."""
    test = search.state.test
    excess = _excess(known, test.samples[:, 1:])
    limited = excess + np.array([column.limit.at_most for column in known])
    values = np.append(search.options.objective.estimate(test.samples[:, 0]), limited)
    return Answer(
        test.candidates[-1], test.samples.mean(0), len(test.samples), verdict.bounds, joined(verdict.methods), values,
        float(np.max(excess, initial=0.0)), test.failed, rate,
    )  # fmt: skip


def _known(search: Search) -> list[Column]:
    """What was known about the limited quantities before these samples."""
    test = search.state.test
    memory = test.memory if len(test.memory) else np.ones(len(test.levels))
    return [
        replace(column, level=level, memory=before)
        for column, level, before in zip(limits.columns(search), test.levels, memory)
    ]


def promising(search: Search, samples: np.ndarray, luck: float = UNLUCKY) -> bool:
    """Whether a candidate with these samples (n, 1 + r) will hold if the samples to come are worse by this many standard errors.
    Giving a candidate up uses no error probability, because only an answer can be wrong."""
    if not np.all(np.isfinite(samples)):
        return False
    few = not search.needs_samples or len(samples) < LEAST
    return few or _promising(search, _known(search), samples[:, 1:], luck)


def _excess(known: list[Column], c: np.ndarray) -> np.ndarray:
    """What is limited less its limit, as these samples (n, r) have it."""
    limits_and_samples = ((column.limit, c[:, j]) for j, column in enumerate(known))
    return np.array([limit.estimate(x + limit.origin) - limit.at_most for limit, x in limits_and_samples])


def _take_up_again(search: Search, samples: np.ndarray) -> None:
    """There is noise after all, and budget is left: the search continues and takes the noise into account. Error probabilities
    that were spent stay spent."""
    state, run = search.state, search.state.run
    es = algorithm.init(state.test.candidates[-1], search.options.sigma0, float(run.es.sigma_es))
    state.run = RunState(
        run.strategy, es._replace(k=run.es.k, successes=run.es.successes), Measured(estimate(samples)),
        multipliers=run.multipliers, start=state.budget.evaluations,
    )  # fmt: skip
    state.test = Test(looks=state.test.looks, spent=state.test.spent)
    state.ends.clear()  # they rest on single evaluations that were believed to be exact: the best of them were lucky
    state.accepted.clear()
    state.phase = "trial"  # from where a surprise leads to the start of a run


def _promising(search: Search, known: list[Column], c: np.ndarray, luck: float = UNLUCKY) -> bool:
    """Whether this candidate would probably hold if the remaining budget were spent on it, and the samples to come were worse
    than those so far by this many standard errors."""
    have, left = len(c), search.state.budget.left
    error = limits.error_of_look(search, True) / limits.claims(search)
    allowed, failed = search.options.failure_limit, search.state.test.failed
    if allowed is not None and failed > passable(allowed, failed + have + left, error):
        return False
    for j, column in enumerate(known):
        x, limit = c[:, j], column.limit
        if limit.kind in COUNTED:
            above = float(np.mean(x > 0))
            by_then = above * (have + left) + luck * math.sqrt(left * above * (1 - above))
            if by_then > passable(limit.share, have + left, error):
                return False
            continue
        y, mean = column.rows(x, column.level)
        deviation = float(plausible_deviation(y[:, None], mean.deviation)[0])
        width, _ = mean_width(replace(mean, deviation=deviation), have + left, error)
        may_move = deviation * math.sqrt(left / (have * (have + left)))
        if float(y.mean()) + width + luck * may_move > 0:
            return False
    return True
