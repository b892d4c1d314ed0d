"""PCCES driven from here, its episodes played by a pool of workers: for simulators that cannot be compiled.

The iteration is the one of the device (pcces.rl.iteration), on NumPy. Chunks of members are fixed, whatever the number
of workers, and sums are taken in their order: the same seed gives the same bits with one worker or a hundred.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pcces.engines.pool import Lost, Pool
from pcces.envs.simulator import Simulator
from pcces.estimation import Estimate, estimate
from pcces.rl import iteration, surrogate
from pcces.rl.batched import BatchedWorker
from pcces.rl.episodes import Chunk, Episode, EpisodeWorker, Played, Shared, member_normals
from pcces.rl.iteration import Learner, Seen
from pcces.rl.normalizer import Normalizer, identity, update
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.settings import Settings

log = logging.getLogger("pcces")
LOOKS = 16  # random policies, at least, whose episodes the first normalisation is taken from
BATCH = 8  # episodes a worker runs side by side where its simulator can
CHUNKS = 24  # an iteration's episodes are cut into at least so many pieces,
LARGEST = 8  # of at most so many episodes


class WorkerEngine:
    """Runs PCCES for some seeds, one after the other within an iteration."""

    chunk = 1

    def __init__(
        self,
        task: Simulator,
        policy: Policy,
        problem: Problem,
        settings: Settings,
        seeds: Sequence[int],
        pool: Callable[[Callable[[], EpisodeWorker]], Pool],
        step_timeout: float | None = None,
    ):
        self.task, self.policy, self.problem, self.settings = task, policy, problem, settings
        self.seeds = tuple(seeds)
        self.worker = (BatchedWorker if hasattr(task, "make_batch") else EpisodeWorker)(
            task, policy, settings, step_timeout
        )
        self.pool = pool(_Recipe(self.worker))
        self.failures = 0

    # -- states ----------------------------------------------------------------------------------------------------------

    def template(self) -> Any:
        """The structure of the states, without meaningful content."""
        zeros = np.zeros(self.policy.size, np.float32)
        return self._stack([self._begin(zeros, identity(np.zeros(self.task.observation_size, np.float32)))])

    def _begin(self, x0: np.ndarray, normalizer: Normalizer) -> Learner:
        return iteration.start(x0, normalizer, len(self.problem.names), self.settings)

    def start(self) -> Any:
        """The states of all seeds before the first iteration; the first axis of every array is seeds."""
        return self._stack([self._first(seed) for seed in self.seeds])

    def _first(self, seed: int) -> Learner:
        """x_0, the best of some random policies, and the normalisation their episodes give."""
        s = self.settings
        rng = np.random.Generator(np.random.Philox(key=[seed, 6]))
        normalizer = identity(np.zeros(self.task.observation_size, np.float32))
        tries = s.initial_tries
        points = [
            self.policy.init(rng.standard_normal(self.policy.size, dtype=np.float32), s.log_std, s.last_layer)
            for _ in range(max(tries, LOOKS if s.normalise else 1))
        ]
        seeds = [int(v) for v in rng.integers(2**31, size=2)]
        if s.normalise:
            seen = self._sum_seen([self._play_point(x, normalizer, seeds, learn=True) for x in points])
            normalizer = update(normalizer, *seen, frozen=np.bool_(False))
        best = 0
        if tries > 1:
            y = [self._outputs(self._play_point(x, normalizer, seeds), x).mean(0) for x in points[:tries]]
            best = int(np.argmin([v[0] + s.rho * np.clip(v[1:], 0, None).sum() for v in y]))
        return self._begin(points[best], normalizer)

    def advance(self, states: Any, count: int) -> tuple[Any, dict[str, Any]]:
        """`count` iterations; metrics have the axes (seeds, iterations, ...)."""
        finished, all_metrics = [], []
        for i, seed in enumerate(self.seeds):
            learner = self._take(states, i)
            lines = []
            for _ in range(count):
                learner, metrics = self._step(seed, learner)
                lines.append(metrics)
            finished.append(learner)
            all_metrics.append(_stacked(lines))
        return self._stack(finished), _stacked(all_metrics)

    # -- one iteration ---------------------------------------------------------------------------------------------------

    def _step(self, seed: int, learner: Learner) -> tuple[Learner, dict[str, Any]]:
        s, k = self.settings, int(learner.es.k)
        half, n = s.population // 2, s.episodes
        z = np.stack([member_normals(seed, k, row, self._width) for row in range(half)])
        directions, points = iteration.population(learner, z, s)
        rng = np.random.Generator(np.random.Philox(key=[seed, 8], counter=[0, 0, 0, k]))
        paired = s.common_random_numbers
        member_seeds = rng.integers(2**31, size=(half, s.member_episodes))
        mirror_seeds = member_seeds if paired else rng.integers(2**31, size=member_seeds.shape)
        own_seeds = rng.integers(2**31, size=s.metric_episodes)
        trial_seeds = own_seeds[:n] if paired else rng.integers(2**31, size=n)

        self._share_population(seed, learner)
        members = [
            Episode(row, sign, int(e))
            for sign, seeds in ((1, member_seeds), (-1, mirror_seeds))
            for row in range(half)
            for e in seeds[row]
        ]
        own = [Episode(-1, 1, int(e)) for e in own_seeds]
        sampled, mine = self._play([(members, True), (own, False)])
        x = learner.es.x
        y = self._outputs(sampled, None).reshape(s.population, s.member_episodes, -1).mean(1)
        y = iteration.regularised(y, points, s)
        samples = self._outputs(mine, x)
        incumbent = estimate(samples[:n])
        if s.incumbent == "kept" and learner.incumbent.n > 0:
            incumbent = learner.incumbent
        weights, d = iteration.direction(learner, directions, y, incumbent, s)
        x_trial = iteration.trial_point(learner, d, s)
        self._share_point(x_trial, learner.normalizer)
        (there,) = self._play([([Episode(-1, 1, int(e)) for e in trial_seeds], False)])
        trial = estimate(self._outputs(there, x_trial))

        guide, critic = None, learner.critic
        seen = self._sum_seen([sampled])
        if s.surrogate == "policy-gradient" and sampled.lesson is not None:
            guide = sampled.lesson.gradient
            critic = surrogate.learn(learner.critic, sampled.lesson.gram, sampled.lesson.moment)
        after, metrics = iteration.conclude(
            self.policy, learner, directions, weights, d, x_trial, trial, incumbent, guide, critic, seen, s
        )
        steps = sum(float(np.nansum(p.outcome.length)) for p in (sampled, mine, there))
        failed = sum(len(p.errors) for p in (sampled, mine, there))
        self.failures += failed
        good = np.isfinite(mine.outcome.returns)
        own_outcome = Outcome(*(part[..., good] for part in mine.outcome))
        metrics |= {
            "return": own_outcome.returns.mean() if good.any() else np.float32(np.nan),
            "costs": own_outcome.costs.mean(-1) if good.any() else np.full(len(self.task.cost_names), np.nan),
            "entropy": own_outcome.entropy.mean() if good.any() else np.float32(np.nan),
            "length": own_outcome.length.mean() if good.any() else np.float32(0),
            "steps": np.float32(steps),
            "failed_episodes": np.float32(failed),
            "x": x,
            "mean": learner.normalizer.mean,
            "std": learner.normalizer.std,
            "estimate": estimate(samples),
        }
        return after, metrics

    @property
    def _width(self) -> int:
        return iteration.make_strategy(self.settings).normals(self.policy.size)

    def _outputs(self, played: Played, x: np.ndarray | None) -> np.ndarray:
        """y = (f, c) an episode; a failed one is +inf throughout, which no average hides."""
        y = np.asarray(self.problem.outputs(played.outcome), dtype=np.float32)
        y = np.where(np.all(np.isfinite(y), axis=1, keepdims=True), y, np.float32(math.inf))
        return y if x is None else iteration.regularised(y, x, self.settings)

    def _sum_seen(self, played: list[Played]) -> Seen:
        size = self.task.observation_size
        sums = np.zeros(1 + 2 * size, np.float32)
        for p in played:
            if p.lesson is not None:
                sums = sums + p.lesson.seen
        return Seen(sums[0], sums[1 : 1 + size], sums[1 + size :])

    # -- episodes --------------------------------------------------------------------------------------------------------

    def _share_population(self, seed: int, learner: Learner) -> None:
        es, strategy = learner.es, learner.strategy
        basis_only = strategy._replace(archive=strategy.archive[:0])
        self.pool.share(
            Shared(es.x, learner.normalizer, learner.critic.weights, seed, int(es.k), es.sigma_es, basis_only)
        )

    def _share_point(self, x: np.ndarray, normalizer: Normalizer) -> None:
        features = 2 * self.task.observation_size + 3
        self.pool.share(Shared(x, normalizer, np.zeros(features, np.float32)))

    def _play(self, groups: list[tuple[list[Episode], bool]], greedy: bool = False) -> list[Played]:
        """Play groups of episodes, all at once; each group's results in order."""
        total = sum(len(episodes) for episodes, _ in groups)
        size = min(LARGEST, max(1, -(-total // CHUNKS)))
        if isinstance(self.worker, BatchedWorker):  # always the same few sizes, for which a worker has environments
            size = BATCH
        chunks, owner = [], []
        for number, (episodes, learn) in enumerate(groups):
            for i in range(0, len(episodes), size):
                chunks.append(Chunk(tuple(episodes[i : i + size]), learn, greedy))
                owner.append(number)
        results = self.pool.map(chunks)
        whole = [self.worker.join([r]) if isinstance(r, Lost) else r for r in results]
        joined = [self.worker.join([p for p, o in zip(whole, owner) if o == number]) for number in range(len(groups))]
        for played in joined:
            for seed, error in played.errors:
                log.warning("an episode of %s failed (replay it with seed %d): %s", self.task.name, seed, error)
        return joined

    def _play_point(
        self, x: np.ndarray, normalizer: Normalizer, seeds: Sequence[int], learn: bool = False, greedy: bool = False
    ) -> Played:
        self._share_point(x, normalizer)
        return self._play([([Episode(-1, 1, s) for s in seeds], learn)], greedy)[0]

    def play(self, x: np.ndarray, normalizer: Normalizer, episodes: int, seed: int, greedy: bool = False) -> Outcome:
        """Fresh episodes of one policy."""
        seeds = np.random.Generator(np.random.Philox(key=[seed, 9])).integers(2**31, size=episodes)
        return self._play_point(x, normalizer, [int(s) for s in seeds], greedy=greedy).outcome

    def close(self) -> None:
        """Let the workers go."""
        self.pool.close()

    # -- states of several seeds -----------------------------------------------------------------------------------------

    @staticmethod
    def _stack(learners: list[Any]) -> Any:
        first = learners[0]
        if hasattr(first, "_fields"):
            return type(first)(*(WorkerEngine._stack(list(parts)) for parts in zip(*learners)))
        return np.stack([np.asarray(v) for v in learners])

    @staticmethod
    def _take(states: Any, i: int) -> Any:
        if hasattr(states, "_fields"):
            return type(states)(*(WorkerEngine._take(part, i) for part in states))
        return np.asarray(states[i])


class _Recipe:
    """Makes a worker's handler; a class, so that it can be sent to other processes."""

    def __init__(self, worker: EpisodeWorker):
        self.worker = worker

    def __call__(self) -> EpisodeWorker:
        w = self.worker
        return type(w)(w.simulator, w.policy, w.settings, w.step_timeout)


def _stacked(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """A list of metrics as metrics of arrays."""

    def join(values: list[Any]) -> Any:
        if isinstance(values[0], Estimate):
            return Estimate(*(np.stack([np.asarray(v) for v in part]) for part in zip(*values)))
        return np.stack([np.asarray(v) for v in values])

    return {name: join([line[name] for line in lines]) for name in lines[0]}
