"""One iteration with a population, in an arena made up: what is played, on which seeds, and what comes of it."""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from pcces.envs.task import Discrete
from pcces.rl import population
from pcces.rl.algorithm import PCCES
from pcces.rl.lesson import Lesson
from pcces.rl.normalizer import Seen, identity
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem

POLICY = Policy(2, Discrete(2), ())
FEW = dict(population=4, episodes=3, metric_episodes=5, member_episodes=2, warm_up=0, sigma0=0.5, sigma_max=2.0)
FEW |= dict(hidden=(), l2=0.0)
PLAIN = FEW | dict(surrogate="updates", normalise=False)


class Played(NamedTuple):
    """Episodes of one step that cost nothing, by what they came to."""

    outputs: np.ndarray
    length: np.ndarray
    costs: np.ndarray


class Table:
    """An arena without episodes: a function says what a point comes to on a seed; seeds are counted."""

    policy, problem = POLICY, Problem(("c",), (0.0,), (-np.inf, np.inf), 0.0, False)

    def __init__(self, function, lesson=None):
        self.function, self.lesson = function, lesson
        self.count, self.played = itertools.count(), []

    def keys(self, key, k, count):
        return [key] * count

    def normals(self, key, rows, width):
        return np.random.default_rng(key).standard_normal((rows, width))

    def seeds(self, key, count):
        return np.array([next(self.count) for _ in range(count)])

    def play(self, groups, normalizer, learning=None):
        self.played.append(groups)
        points = [np.repeat(group.points, len(group.seeds) // len(group.points), axis=0) for group in groups]
        outcomes = [
            Played(
                np.array([self.function(x, seed) for x, seed in zip(rows, group.seeds)]),
                np.ones(len(group.seeds)),
                np.zeros((1, len(group.seeds))),
            )
            for rows, group in zip(points, groups)
        ]
        return outcomes, self.lesson if learning is not None else None

    def outputs(self, outcome):
        return outcome.outputs

    def described(self, x, normalizer, own, samples, spent):
        return {"own": own.outputs, "samples": samples, "steps": spent.steps}


def started(settings, x=1.0):
    return population.start(np.full(POLICY.size, x), identity(np.zeros(2)), 1, settings)


def bowl(x, seed):
    return np.array([np.sum(x**2), -1.0])


@pytest.mark.parametrize("paired", [True, False])
def test_what_is_compared_plays_the_same_episodes_and_all_else_episodes_of_its_own(paired):
    settings = PCCES.settings("paper", **PLAIN, common_random_numbers=paired)
    arena, learner = Table(bowl), started(settings)
    after, metrics = population.step(arena, settings, learner, 0)
    ((sampled, own), (trial,)) = arena.played
    directions = (sampled.points - learner.es.x) / learner.es.sigma_es
    assert np.allclose(directions[:2], -directions[2:]) and np.all(own.points == learner.es.x)
    assert (len(sampled.seeds), len(own.seeds), len(trial.seeds)) == (8, 5, 3)
    if paired:
        assert list(sampled.seeds) == [0, 1, 2, 3] * 2 and list(own.seeds) == [4, 5, 6, 7, 8]
        assert list(trial.seeds) == [4, 5, 6]
    else:
        assert list(np.concatenate([sampled.seeds, own.seeds, trial.seeds])) == list(range(16))
    assert (sampled.learn, own.learn) == (True, False)  # the surrogate is of the samples alone
    assert metrics["steps"] == 16 and np.array_equal(metrics["own"], metrics["samples"])
    assert bool(metrics["success"]) and np.array_equal(after.es.x, trial.points[0])


def test_the_incumbent_is_judged_by_as_many_episodes_as_the_trial_point_and_with_its_weights():
    settings = PCCES.settings("paper", **PLAIN | {"l2": 0.1}, common_random_numbers=True)

    def by_seed(x, seed):
        return np.array([float(seed), -1.0])

    arena, learner = Table(by_seed), started(settings)
    _, metrics = population.step(arena, settings, learner, 0)
    x_trial = arena.played[1][0].points[0]
    assert metrics["f"] == pytest.approx(5 + 0.1 * POLICY.size)  # seeds 4 to 6: the other two are for the metrics alone
    assert metrics["trial_f"] == pytest.approx(5 + 0.1 * x_trial @ x_trial)
    assert x_trial @ x_trial < 0.9 * POLICY.size  # the samples differ in nothing but their weights
    assert metrics["samples"][:, 0].tolist() == [4, 5, 6, 7, 8]  # what is reported is without the penalty on weights


@pytest.mark.parametrize(("how", "expected"), [("fresh", [5.0, 6.0, 7.0]), ("kept", [5.0, 5.0, 5.0])])
def test_a_kept_incumbent_is_the_estimate_of_earlier_iterations(how, expected):
    settings = PCCES.settings("paper", **PLAIN, incumbent=how)
    worth = {}
    arena, learner = Table(lambda x, seed: np.array([worth["now"], -1.0])), started(settings)
    values = []
    for worth["now"] in (5.0, 6.0, 7.0):  # no point is better than another
        learner, metrics = population.step(arena, settings, learner, 0)
        values.append(float(metrics["f"]))
    assert values == expected


def test_the_surrogate_and_what_was_seen_are_remembered():
    settings = PCCES.settings("paper", **FEW)
    gradient = np.arange(1.0, 1 + POLICY.size)
    seen = Seen(np.float64(10), np.zeros(2), np.full(2, 10.0))
    arena, learner = Table(bowl, Lesson(seen, gradient, np.eye(7), np.zeros(7))), started(settings)
    after, metrics = population.step(arena, settings, learner, 0)
    assert np.array_equal(after.strategy.archive[0], gradient / np.linalg.norm(gradient))
    assert after.normalizer.count == 10 and np.all(after.normalizer.std == 1)
    assert metrics["d"] > 0 and metrics["steps"] == 8 + 5 + 3


def test_where_every_episode_failed_there_is_no_lesson_and_the_search_stays():
    settings = PCCES.settings("paper", **FEW, restoration="merit", shaping="rank")
    arena, learner = Table(lambda x, seed: np.array([np.inf, np.inf])), started(settings)
    after, metrics = population.step(arena, settings, learner, 0)
    assert not metrics["success"] and metrics["d"] == 0
    assert np.array_equal(after.es.x, learner.es.x) and after.es.sigma < learner.es.sigma
    assert np.array_equal(after.normalizer.std, learner.normalizer.std) and after.normalizer.count == 0
