"""The final word on a policy: fresh episodes decide whether its costs and entropy keep their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pcces.core.certificate import ASYMPTOTIC, Certificate, Column, joined, judge
from pcces.core.plans import spend
from pcces.envs.costs import episode_range
from pcces.envs.simulator import Simulator
from pcces.envs.task import Task
from pcces.rl.policy import LOG_STD, Policy
from pcces.rl.problem import Problem

FIRST = 5  # of so many episodes one says where a quantile is, where none was played before
FOR_A_GUARANTEE = "state what a step can cost at least and at most (cost_bounds) or an episode (episode_cost_bounds), or limit a probability"


def ranges(task: Task | Simulator, policy: Policy, problem: Problem, x: np.ndarray) -> list[tuple[float, float]] | None:
    """The least and most each constraint can be in one episode, or None where the task does not say what a step or it costs."""
    known = episode_range(task)
    if problem.cost_names and known is None:
        return None
    steps = task.max_steps
    least, most = _with_slack(*(known or (0.0, 0.0)))
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
