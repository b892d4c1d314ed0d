"""Which policy is returned: the best iterate that fresh episodes certify, found with few of them.

What is known of the iterates says which are worth a look; a look on the same episodes for all tells them apart; then the best
whose certificate is likely to hold is put to the test, on episodes of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy

from pcces.core.certificate import Certificate
from pcces.core.estimation import estimate
from pcces.core.plans import mean_width, spend
from pcces.envs.simulator import Simulator
from pcces.envs.task import Task
from pcces.rl.certify import certify, columns, quantiles, ranges
from pcces.rl.iterates import Candidates
from pcces.rl.normalizer import Normalizer
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem

LIKELY = (0.9, 0.5, 0.1)  # chances to be certified: of each kind so many iterates are looked at,
EACH = 3  # the best of them
LOOK = 0.25  # of the episodes asked for: what each is looked at with
TESTS = 6  # at most
ENOUGH = 0.8  # the chance to be certified that a policy must have, if any has, to be tested
LONGER = (1, 2, 4, 8)  # times the episodes asked for, where a test needs more
WORTH = 0.02  # of what training gained in all: a better policy must gain as much to be tested for longer
ALIKE = 0.5  # standard errors by which a policy that is known less well must be better
Play = Callable[[np.ndarray, Normalizer, int, int], Any]  # x, normalisation, episodes, seed -> Outcome


@dataclass
class Prospect:
    """What is known of an iterate: of y = (f, c) the mean and its standard error, and deviations of a single episode."""

    mean: np.ndarray
    error: np.ndarray
    deviation: np.ndarray  # (r,)
    limits: list[tuple[float, float]] | None  # what its constraints can be at least and at most
    levels: list[float] | None  # where the tails of its costs begin
    chances: list[float] = field(default_factory=list)  # to be certified, for each of LONGER

    @property
    def f(self) -> float:
        """What to minimise, in doubt a little more."""
        return float(self.mean[0] + ALIKE * self.error[0])

    def foresee(self, problem: Problem, episodes: int, error: float) -> Prospect:
        """With the chances worked out."""
        known = columns(problem, self.limits, self.deviation, self.levels)
        for n in (episodes * factor for factor in LONGER):
            width = np.array([mean_width(column, n, error)[0] for column in known])
            unsure = np.maximum(np.sqrt(self.error[1:] ** 2 + self.deviation**2 / n), 1e-12)
            with np.errstate(invalid="ignore"):
                each = scipy.special.ndtr(-(self.mean[1:] + width) / unsure)
            self.chances.append(float(np.prod(np.nan_to_num(each))) if np.isfinite(self.mean).all() else 0.0)
        return self


class Chosen(NamedTuple):
    """The policy that is returned."""

    x: np.ndarray
    normalizer: Normalizer
    certificate: Certificate
    outcome: Any  # of the episodes of its test
    number: int  # among the candidates


def choose(
    task: Task | Simulator,
    policy: Policy,
    problem: Problem,
    play: Play,
    candidates: Candidates,
    episodes: int,
    seed: int,
    confidence: float = 0.95,
) -> Chosen:
    """The best iterate that can be certified, with its certificate and the outcome of its test.

    A test takes as many episodes as are asked for, and more only where that allows for a clearly better policy. Looks and
    tests are on different episodes, so that having chosen a lucky policy does not help it through the test; which ones
    depends on `seed` and the number of tests alone, so that policies of other algorithms are tested on the same.
    If none passes, the one that came closest is returned with a certificate that does not hold.
    """
    tails = look_again(task, policy, problem, play, candidates, episodes, seed, confidence)
    best: tuple[float, Chosen] | None = None
    tested = set[int]()
    for number in range(1, min(TESTS, len(candidates)) + 1):
        prospects = foreseen(task, policy, problem, candidates, tails, episodes, spend(confidence, number))
        left = {i: each for i, each in enumerate(prospects) if i not in tested}
        i, longer = next_one(left, candidates)
        tested.add(i)
        x, normalizer = candidates.policy(i)
        outcome = play(x, normalizer, longer * episodes, seed + number)
        now, noise = prospects[i], candidates.deviation(i)
        certificate = certify(problem, outcome, now.limits, confidence, number, noise, now.levels)
        worst = max(certificate.upper_bounds, default=-math.inf)
        if certificate.holds or best is None or worst < best[0]:
            best = worst, Chosen(x, normalizer, certificate, outcome, i)
        if certificate.holds:
            break
        candidates.learn(i, estimate(outputs(problem, outcome, now.levels)))  # which tells of its neighbours, too
    assert best is not None
    return best[1]


def outputs(problem: Problem, outcome: Any, levels: list[float] | None) -> np.ndarray:
    """y = (f, c), one row per episode; an episode that failed is +inf throughout."""
    y = np.asarray(problem.outputs(outcome, levels), dtype=float)
    return np.where(np.isfinite(y).all(axis=1, keepdims=True), y, math.inf)


class Tail(NamedTuple):
    """What a look says of the tails of an iterate's costs, of which means say nothing."""

    levels: list[float]  # where they begin
    mean: np.ndarray  # (r,) of the constraints
    error: np.ndarray


def foreseen(
    task: Task | Simulator,
    policy: Policy,
    problem: Problem,
    candidates: Candidates,
    tails: dict[int, Tail],
    episodes: int,
    error: float,
) -> list[Prospect]:
    """What is known of every candidate, from all episodes so far, and how likely it is to be certified."""
    prospects = []
    cvar = np.array([limit.kind == "cvar" for limit in problem.limits], dtype=bool)
    for i, (mean, unsure) in enumerate(zip(*candidates.smoothed())):
        tail = tails.get(i)
        if tail is not None and cvar.any():
            mean[1:][cvar], unsure[1:][cvar] = tail.mean[cvar], tail.error[cvar]
        levels = None if tail is None else tail.levels
        limits = ranges(task, policy, problem, candidates.x[i])
        each = Prospect(mean, unsure, candidates.deviation(i), limits, levels)
        prospects.append(each.foresee(problem, episodes, error))
    return prospects


def look_again(
    task: Task | Simulator,
    policy: Policy,
    problem: Problem,
    play: Play,
    candidates: Candidates,
    episodes: int,
    seed: int,
    confidence: float,
) -> dict[int, Tail]:
    """Look at the most promising on the same episodes for all, so that what differs is the policies."""
    prospects = foreseen(task, policy, problem, candidates, {}, episodes, spend(confidence, 1))
    chosen: list[int] = []
    for likely in LIKELY:
        those = [i for i, each in enumerate(prospects) if each.chances[0] >= likely and i not in chosen]
        chosen += sorted(those, key=lambda i: prospects[i].f)[:EACH]
    order = candidates.order(1.0)
    chosen += [int(i) for i in order if i not in chosen][: EACH * len(LIKELY) - len(chosen)]
    chosen += [i for i in [len(candidates) - 1] if i not in chosen]  # where the search ended

    tails, seen = {}, []
    for i in chosen:
        outcome = play(*candidates.policy(i), max(int(LOOK * episodes), min(episodes, 8)), seed)
        levels = quantiles(problem, np.asarray(outcome.costs))
        y = outputs(problem, outcome, levels)
        tails[i] = Tail(levels, y[:, 1:].mean(0), y[:, 1:].std(0) / math.sqrt(len(y)))
        seen.append(y)
    good = [k for k, y in enumerate(seen) if np.isfinite(y).all()]
    if len(good) > 1:  # what all have in common says nothing of them
        common = np.mean([seen[k][:, 0] for k in good], axis=0)
        for k in good:
            seen[k][:, 0] -= common - common.mean()
    for i, y in zip(chosen, seen):
        candidates.learn(i, estimate(y))
    return tails


def next_one(left: dict[int, Prospect], candidates: Candidates) -> tuple[int, int]:
    """Which candidate to test next, and how many times the episodes asked for its test should have."""
    gained = candidates.course_y[np.isfinite(candidates.course_y).all(axis=1), 0]
    least = WORTH * float(np.ptp(gained)) if len(gained) else 0.0
    chosen: tuple[int, int] | None = None
    for k, longer in enumerate(LONGER):
        passing = [i for i, each in left.items() if each.chances[k] >= ENOUGH]
        if passing:
            best = min(passing, key=lambda i: left[i].f)
            if chosen is None or left[best].f < left[chosen[0]].f - least:
                chosen = best, longer
    if chosen is not None:
        return chosen
    likeliest = max(left, key=lambda i: (left[i].chances[-1], -float(np.max(left[i].mean[1:], initial=-math.inf))))
    hopeless = left[likeliest].chances[-1] < LIKELY[-1]  # that is soon shown
    return likeliest, LONGER[0] if hopeless else LONGER[-1]
