"""Algorithms driven from here, their episodes played by a crew of workers: for simulators that cannot be compiled.

The iteration of PCCES is the one of the device (pcces.rl.iteration), on NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pcces.core.estimation import Estimate, estimate
from pcces.rl import iteration, surrogate
from pcces.rl.crew import Crew
from pcces.rl.episodes import Episode, Played, learnt, member_normals
from pcces.rl.iteration import Learner
from pcces.rl.normalizer import Normalizer, identity
from pcces.rl.outcome import Outcome
from pcces.rl.problem import Problem
from pcces.rl.settings import Settings


class Driver(Protocol):
    """An algorithm on workers, for one seed at a time. Its states are tuples of arrays."""

    def first(self, seed: int) -> Any:
        """The state before the first iteration."""

    def blank(self, x: np.ndarray, normalizer: Normalizer) -> Any:
        """Any state around x; its structure is what matters."""

    def step(self, seed: int, state: Any) -> tuple[Any, dict[str, Any]]:
        """One iteration: the state after it, and its metrics."""


class WorkerEngine:
    """Runs an algorithm for some seeds, one after the other within an iteration."""

    chunk = 1

    def __init__(self, crew: Crew, driver: Driver, seeds: Sequence[int]):
        self.crew, self.driver, self.seeds = crew, driver, tuple(seeds)

    def template(self) -> Any:
        """The structure of the states, without meaningful content."""
        x = np.zeros(self.crew.policy.size, np.float32)
        return stacked([self.driver.blank(x, identity(np.zeros(self.crew.task.observation_size, np.float32)))])

    def start(self) -> Any:
        """The states of all seeds before the first iteration; the first axis of every array is seeds."""
        return stacked([self.driver.first(seed) for seed in self.seeds])

    def advance(self, states: Any, count: int) -> tuple[Any, dict[str, Any]]:
        """`count` iterations; metrics have the axes (seeds, iterations, ...)."""
        finished, all_metrics = [], []
        for i, seed in enumerate(self.seeds):
            state = taken(states, i)
            lines = []
            for _ in range(count):
                state, metrics = self.driver.step(seed, state)
                lines.append(metrics)
            finished.append(state)
            all_metrics.append(_joined(lines))
        return stacked(finished), _joined(all_metrics)

    def play(self, x: np.ndarray, normalizer: Normalizer, episodes: int, seed: int, greedy: bool = False) -> Outcome:
        """Fresh episodes of one policy."""
        return self.crew.play(x, normalizer, episodes, seed, greedy)

    def close(self) -> None:
        """Let the workers go."""
        self.crew.close()


def stacked(trees: list[Any]) -> Any:
    """Tuples of arrays as one tuple of arrays with an axis more, the first.

    >>> stacked([(1, (2,)), (3, (4,))])
    (array([1, 3]), (array([2, 4]),))
    """
    first = trees[0]
    if isinstance(first, tuple):
        parts = [stacked(list(part)) for part in zip(*trees)]
        return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
    return np.stack([np.asarray(leaf) for leaf in trees])


def taken(tree: Any, i: int) -> Any:
    """Entry i of every array in a tuple of arrays."""
    if isinstance(tree, tuple):
        parts = [taken(part, i) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return np.asarray(tree[i])


def _joined(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """A list of metrics as metrics of arrays."""
    return {name: stacked([line[name] for line in lines]) for name in lines[0]}


def episode_seeds(seed: int, k: int) -> np.random.Generator:
    """Where the seeds of an iteration's episodes come from."""
    return np.random.Generator(np.random.Philox(key=[seed, 8], counter=[0, 0, 0, k]))


def members(seeds: np.ndarray, mirror_seeds: np.ndarray) -> list[Episode]:
    """The episodes of a mirrored population: of members 1 .. h first, then of their mirror images; a row of seeds each."""
    return [
        Episode(row, sign, int(e))
        for sign, rows in ((1, seeds), (-1, mirror_seeds))
        for row in range(len(rows))
        for e in rows[row]
    ]


class PCCESDriver:
    """PCCES on workers."""

    def __init__(self, crew: Crew, problem: Problem, settings: Settings):
        self.crew, self.problem, self.settings = crew, problem, settings
        self.width = iteration.make_strategy(settings).normals(crew.policy.size)

    def blank(self, x: np.ndarray, normalizer: Normalizer) -> Learner:
        """Any state around x."""
        return iteration.start(x, normalizer, len(self.problem.names), self.settings)

    def first(self, seed: int) -> Learner:
        """The state before the first iteration."""
        return self.blank(*self.crew.first(self.settings, seed))

    def step(self, seed: int, state: Learner) -> tuple[Learner, dict[str, Any]]:
        """One iteration."""
        s, k, crew, learner = self.settings, int(state.es.k), self.crew, state
        half, n = s.population // 2, s.episodes
        z = np.stack([member_normals(seed, k, row, self.width) for row in range(half)])
        directions, points = iteration.population(learner, z, s)
        rng = episode_seeds(seed, k)
        paired = s.common_random_numbers
        member_seeds = rng.integers(2**31, size=(half, s.member_episodes))
        mirror_seeds = member_seeds if paired else rng.integers(2**31, size=member_seeds.shape)
        own_seeds = rng.integers(2**31, size=s.metric_episodes)
        trial_seeds = own_seeds[:n] if paired else rng.integers(2**31, size=n)

        x, strategy = learner.es.x, learner.strategy
        basis_only = strategy._replace(archive=strategy.archive[:0])
        prices = iteration.cost_prices(learner, len(self.problem.cost_names), s)
        crew.share_population(
            x, learner.normalizer, seed, k, learner.es.sigma_es, basis_only, learner.critic.weights, prices
        )
        own = [Episode(-1, 1, int(e)) for e in own_seeds]
        sampled, mine = crew.play_groups(
            [(members(member_seeds, mirror_seeds), s.lesson), (own, s.lesson if s.kl else None)]
        )
        y = crew.outputs(sampled).reshape(s.population, s.member_episodes, -1).mean(1)
        y = iteration.regularised(y, points, s)
        fresh = crew.outputs(mine)
        samples = iteration.regularised(fresh, x, s)
        incumbent = estimate(samples[:n])
        if s.incumbent == "kept" and learner.incumbent.n > 0:
            incumbent = learner.incumbent
        lesson = learnt([sampled, mine])
        seen = crew.seen(lesson)
        guide, stride, critic = None, None, learner.critic
        if lesson is not None and s.lesson != "observations":
            information = lesson.information if s.kl else None
            states = lesson.states if s.lesson == "measured" else None
            guide, stride = iteration.guidance(
                crew.policy, learner, lesson.gradient, information, np.float32(seen.count), states, s
            )
            critic = surrogate.learn(learner.critic, lesson.gram, lesson.moment)
        weights, d, moments = iteration.direction(learner, directions, y, incumbent, s)
        tried: list[Played] = []
        if stride is not None:
            d, tried = self._with_stride(learner, d, stride, incumbent, rng.integers(2**31, size=s.stride_episodes))
        x_trial = iteration.trial_point(learner, d, s)
        there = crew.play_point(x_trial, learner.normalizer, [int(e) for e in trial_seeds])
        trial_samples = iteration.regularised(crew.outputs(there), x_trial, s)
        after, metrics = iteration.conclude(
            crew.policy, learner, directions, weights, d, moments, x_trial, trial_samples, samples[:n], incumbent,
            guide, critic, seen, s,
        )  # fmt: skip
        return after, metrics | crew.described(x, learner.normalizer, mine, fresh, [sampled, mine, *tried, there])

    def _with_stride(
        self, learner: Learner, d: np.ndarray, stride: np.ndarray, incumbent: Estimate, seeds: np.ndarray
    ) -> tuple[np.ndarray, list[Played]]:
        """d_k with as much of the step along the natural gradient as episodes of each length speak for; and these."""
        s, several = self.settings, iteration.lengthened(d, stride, self.settings)
        if len(several) == 1:
            return several[0], []
        points = np.stack([iteration.trial_point(learner, row, s) for row in several])
        played = self.crew.play_points(points, learner.normalizer, [int(e) for e in seeds])
        y = np.stack([self.crew.outputs(one).mean(0) for one in played])
        best = np.argmin(iteration.merit(learner, iteration.regularised(y, points, s), incumbent, s))
        return several[best], played
