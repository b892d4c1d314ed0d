"""Which iterate is returned: what neighbours tell of a policy, and how few episodes a certificate takes."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from pcces.core.estimation import estimate
from pcces.envs.task import Discrete
from pcces.rl import selection
from pcces.rl.iterates import Candidates, smooth
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem

LIMIT, NOISE = 25.0, 20.0


def course(costs, seed, episodes=400, gain=1.0, n=30):
    """A training whose iterates cost so much on average and earn as much, seen on few episodes: what is returned."""
    rng = np.random.default_rng(seed)
    task, policy = SimpleNamespace(cost_bounds=None, max_steps=1), Policy(1, Discrete(2), (2,))
    problem = Problem(("c",), (LIMIT,), (-math.inf, math.inf), 0.0, False)
    played = []

    def play(x, normalizer, number, seed):
        played.append(number)
        zero, cost = np.zeros(number), costs[int(x[0])]
        noise = np.random.default_rng(seed).normal(0, 5, number)
        return Outcome(gain * cost + noise, zero, cost + rng.normal(0, NOISE, (1, number)), zero, zero + 1)

    candidates = Candidates(1, 1, 2)
    for i in range(len(costs)):
        y = np.asarray(problem.outputs(play(np.full(1, i), None, n, 10_000 + i)), dtype=float)
        candidates.add(np.full(1, i), np.zeros(1), np.ones(1), estimate(y), True)
    played.clear()
    x, _, certificate, *_ = selection.choose(task, policy, problem, play, candidates, episodes, seed)
    return costs[int(x[0])], certificate, sum(played)


def test_what_neighbours_tell_is_right_and_so_is_its_error():
    """A random walk seen with noise: errors shrink, and are what they are said to be."""
    rng = np.random.default_rng(0)
    misses = []
    for _ in range(200):
        truth = np.cumsum(rng.normal(0, 0.5, (80, 1)), axis=0)
        mean, error = smooth(truth + rng.normal(0, 2.0, truth.shape), np.full(truth.shape, 4.0))
        misses.append((mean - truth) / error)
        assert error.mean() < 1.2 and error.max() < 2.0
    assert np.std(misses) == pytest.approx(1.1, abs=0.15)  # how fast it walks has to be guessed


def test_failures_tell_nothing_of_their_neighbours():
    y = np.array([[1.0], [1.0], [np.inf], [1.0], [1.0]])
    mean, error = smooth(y, np.ones((5, 1)))
    assert np.isinf(mean[2]).all() and np.allclose(mean[[0, 1, 3, 4]], 1.0) and error[0] < 1


def test_the_best_that_can_be_certified_is_found_among_iterates_near_the_limit():
    """Most iterates are at the limit, where hardly any can be certified; some earlier ones have a margin."""
    costs = np.concatenate([np.linspace(5, 24, 30), np.full(60, 24.8)])
    found = [course(costs, seed) for seed in range(10)]
    returned = np.array([cost for cost, _, _ in found])
    assert sum(certificate.holds for _, certificate, _ in found) >= 9
    assert np.median(returned) > 19.5 and max(returned) < 24.9
    assert np.median([played for _, _, played in found]) <= 5000


def test_a_test_takes_no_more_episodes_than_it_needs():
    """Where a good policy is well below its limit, the test has the episodes asked for, and looks are few."""
    for seed in range(5):
        _, certificate, played = course(np.linspace(5, 15, 60), seed)
        assert certificate.holds and certificate.samples == 400
        assert played <= 400 + 10 * 100


def test_a_clearly_better_policy_is_worth_a_longer_test():
    """The last iterates earn far more than all others, and need a few times the episodes to be certified."""
    costs = np.concatenate([np.full(30, 1.0), np.full(60, 23.2)])
    found = [course(costs, seed) for seed in range(10)]
    assert sum(certificate.holds and cost == 23.2 for cost, certificate, _ in found) >= 8
    assert sum(certificate.samples > 400 for _, certificate, _ in found) >= 5
