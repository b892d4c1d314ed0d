"""The final word on a policy: fresh episodes decide whether its costs and entropy keep their limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcces.core.bounds import plausible_deviation
from pcces.core.certificate import ASYMPTOTIC, Certificate, Column, joined, judge
from pcces.core.estimation import estimate
from pcces.core.plans import mean_width, spend
from pcces.envs.simulator import Simulator
from pcces.envs.task import Task
from pcces.rl.iterates import USUAL, Candidates
from pcces.rl.normalizer import Normalizer
from pcces.rl.policy import LOG_STD, Policy
from pcces.rl.problem import Problem

SCREENED = 12  # candidates that are looked at again
FIRST = 5  # of so many episodes one says where a quantile is, where none was played before
LOOKS = 6  # of which so many may be put to the test
MOST_EPISODES = 16  # times the episodes asked for, where a test needs more
FOR_A_GUARANTEE = "state what a step can cost at least and at most (cost_bounds), or limit a probability"
ALIKE = 0.5  # standard errors between policies that a look does not tell apart
Play = Callable[[np.ndarray, Normalizer, int, int], Any]  # x, normalisation, episodes, seed -> Outcome


def ranges(task: Task | Simulator, policy: Policy, problem: Problem, x: np.ndarray) -> list[tuple[float, float]] | None:
    """The least and most each constraint can be in one episode, or None where the task does not say what a step costs."""
    if problem.cost_names and task.cost_bounds is None:
        return None
    steps = task.max_steps
    low, high = task.cost_bounds or (0.0, 0.0)
    least, most = _with_slack(steps * min(low, 0.0), steps * high)
    constraints = [(least - t, most - t) for t in problem.thresholds]
    if policy.discrete:
        least, most = 0.0, steps * math.log(policy.outputs)
    else:
        log_std = np.clip(x[-policy.outputs :], *LOG_STD)
        a_step = float(policy.entropy(np.zeros(policy.outputs, np.float32), log_std))
        least, most = min(a_step, steps * a_step), max(a_step, steps * a_step)
    least, most = _with_slack(least, most)
    h_low, h_high = problem.entropy_bounds
    if math.isfinite(h_high):
        constraints.append((least - h_high, most - h_high))
    if math.isfinite(h_low):
        constraints.append((h_low - most, h_low - least))
    return constraints


def _with_slack(least: float, most: float) -> tuple[float, float]:
    """A range with room for the rounding of sums of 32-bit numbers."""
    slack = 1e-4 * max(1.0, abs(least), abs(most))
    return least - slack, most + slack


def columns(
    problem: Problem,
    limits: list[tuple[float, float]] | None,
    noise: np.ndarray | float = 0.0,
    levels: Sequence[float] | None = None,
) -> list[Column]:
    """What is known of each constraint: its range, if that was stated, and its standard deviation, if that was seen.

    `levels` are those of the samples of CVaRs (`Limit.samples`).
    """
    deviations = np.broadcast_to(np.asarray(noise, dtype=float), len(problem.limits))
    known = []
    for i, limit in enumerate(problem.limits):
        range_ = None if limits is None else limits[i]
        if limit.kind == "cvar" and range_ is not None and levels is not None:
            start = min(levels[i] - limit.value, range_[1])
            range_ = start - 1e-9, start + max(range_[1] - start, 1e-9) / limit.share
        if limit.counted:  # an episode is over the limit or it is not
            known.append(Column(values=(-limit.share, 1 - limit.share), stated=True))
        else:
            known.append(Column(range=range_, deviation=float(deviations[i])))
    return known


def certify(
    problem: Problem,
    outcome: Any,
    limits: list[tuple[float, float]] | None,
    confidence: float = 0.95,
    look: int | None = None,
    noise: np.ndarray | float = 0.0,
    levels: Sequence[float] | None = None,
) -> Certificate:
    """What fresh episodes of one policy say of it; `look` counts the tests of one run, which share the confidence.

    `limits` are what `ranges` gives. `noise` are the constraints' standard deviations in earlier episodes,
    for bounds that depend on them, and `levels` the quantiles of costs there, for limits on a CVaR. Without them a fifth
    of these episodes says where those quantiles are, and does not count.
    """
    if levels is None and any(limit.kind == "cvar" for limit in problem.limits):
        first = max(np.shape(outcome.returns)[-1] // FIRST, 1)
        levels = quantiles(problem, np.asarray(outcome.costs)[:, :first])
        outcome = type(outcome)(*(np.asarray(part)[..., first:] for part in outcome))
    y = np.asarray(problem.outputs(outcome, levels), dtype=float)
    samples, episodes = y[:, 1:], len(y)
    error = 1 - confidence if look is None else spend(confidence, look)
    if not np.all(np.isfinite(y)):  # an episode failed
        return Certificate(False, confidence, (math.inf,) * samples.shape[1], episodes, "t", look or 1)
    verdict = judge(samples, columns(problem, limits, noise, levels), error)
    bounds, method = tuple(map(float, verdict.bounds)), joined(verdict.methods)
    certificate = Certificate(verdict.holds, confidence, bounds, episodes, method, look or 1)
    return replace(certificate, for_a_guarantee=FOR_A_GUARANTEE) if certificate.grade == ASYMPTOTIC else certificate


def quantiles(problem: Problem, costs: np.ndarray) -> list[float]:
    """Beyond what the worst share of each cost lies, where that is limited, by these episodes (r, B)."""
    pairs = zip(problem.cost_limits, costs)
    return [
        float(limit.level(row)) if limit.kind == "cvar" and np.any(np.isfinite(row)) else 0.0 for limit, row in pairs
    ]


def choose(
    task: Task | Simulator,
    policy: Policy,
    problem: Problem,
    play: Play,
    candidates: Candidates,
    episodes: int,
    seed: int,
    confidence: float = 0.95,
) -> tuple[np.ndarray, Normalizer, Certificate, Any]:
    """The best iterate that can be certified: a fresh look at the most promising, then the test, best first.

    All are looked at on the same episodes, so that what differs is the policies; those that these do not tell apart are judged
    by all episodes played with them. Looking and testing use different ones, so that having chosen a lucky policy does not
    help it through the test; these depend on `seed` and the number of tests alone, so that policies of other algorithms are
    tested on the same.
    If none passes, the one that came closest is returned with a certificate that does not hold.
    """
    order = candidates.order(1.0)[:SCREENED]
    if len(candidates) - 1 not in order:
        order = np.append(order, len(candidates) - 1)  # where the search ended
    f: dict[int, np.ndarray] = {}
    plans: dict[int, tuple[int, float]] = {}
    levels: dict[int, list[float]] = {}
    for i in order:
        x, normalizer = candidates.policy(i)
        outcome = play(x, normalizer, episodes // 2, seed)
        levels[i] = quantiles(problem, np.asarray(outcome.costs))
        y = np.asarray(problem.outputs(outcome, levels[i]), dtype=float)
        y = np.where(np.isfinite(y), y, math.inf)  # where an episode failed
        f[i] = y[:, 0]
        candidates.learn(i, estimate(y))
        limits = ranges(task, policy, problem, x)
        noise = 0.0 if limits else candidates.deviation(i)
        plans[i] = _plan(problem, y[:, 1:], episodes, confidence, limits, noise, levels[i])
    known = candidates.upper(1.0)[:, 0]
    first = min(f, key=lambda i: (plans[i][1], f[i].mean()))
    alike = _alike(np.array(list(f.values())), list(f).index(first))
    rank = {i: (plans[i][1], 0, known[i]) if same else (plans[i][1], 1, f[i].mean()) for i, same in zip(f, alike)}
    best = None
    for look, i in enumerate(sorted(rank, key=rank.__getitem__)[:LOOKS], 1):
        x, normalizer = candidates.policy(i)
        outcome = play(x, normalizer, plans[i][0], seed + look)
        limits = ranges(task, policy, problem, x)
        certificate = certify(problem, outcome, limits, confidence, look, candidates.deviation(i), levels[i])
        worst = max(certificate.upper_bounds, default=-math.inf)
        if certificate.holds or best is None or worst < best[0]:
            best = worst, x, normalizer, certificate, outcome
        if certificate.holds:
            break
    assert best is not None
    return best[1:]


def _alike(f: np.ndarray, best: int) -> np.ndarray:
    """Which policies these episodes do not tell from the best one: `f` has a row a policy and a column an episode.

    As in Candidates.upper, variances lean towards the usual one: where all episodes went well, the next may not.
    """
    finite = np.all(np.isfinite(f), axis=1)
    if not finite[best]:
        return np.arange(len(f)) == best
    gap = np.where(finite[:, None], f, 0.0) - f[best]
    squares = ((gap - gap.mean(1, keepdims=True)) ** 2).sum(1)
    n, others = f.shape[1], max(finite.sum() - 1, 1)
    usual = squares[finite].sum() / max(n - 1, 1) / others
    error = np.sqrt((squares + USUAL * usual) / (max(n - 1, 1) + USUAL) / n)
    return finite & (gap.mean(1) <= ALIKE * error)


def _plan(
    problem: Problem,
    c: np.ndarray,
    episodes: int,
    confidence: float,
    limits: list[tuple[float, float]] | None,
    noise: np.ndarray | float = 0.0,
    levels: Sequence[float] | None = None,
) -> tuple[int, float]:
    """How many episodes a test should have to be passed, and how much the constraints still lack if even the most are
    too few: a policy close to its limit, or costs that could be much higher than they were, need more of them."""
    if not np.all(np.isfinite(c)):
        return episodes, math.inf
    lacks: float = 0.0
    deviation = plausible_deviation(c, noise)
    known = columns(problem, limits, deviation, levels)
    error = spend(confidence, 1) / max(len(known), 1)
    for needed in (episodes * factor for factor in (1, 2, 4, 8, MOST_EPISODES)):
        # One and a half standard errors more than expected: the mean seen here is uncertain, and so will be the next.
        unsure = 1.5 * deviation * math.sqrt(1 / len(c) + 1 / needed)
        widths = np.array([mean_width(column, needed, error)[0] for column in known])
        lacks = max(float(np.max(c.mean(0) + unsure + widths, initial=-math.inf)), 0.0)
        if lacks == 0:
            break
    if lacks > 0 and np.any(c.mean(0) > 0):
        needed = episodes  # it is over its limits: that is soon shown
    return needed, lacks
