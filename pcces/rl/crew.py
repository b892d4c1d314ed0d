"""A crew of workers that plays a simulator's episodes, and what the driver of an algorithm makes of them.

Chunks of episodes are fixed, whatever the number of workers, and sums are taken in their order: the same seed gives the
same bits with one worker or a hundred.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pcces.core.estimation import estimate
from pcces.engines.pool import Lost, Pool
from pcces.envs.simulator import Simulator
from pcces.rl.batched import BatchedWorker
from pcces.rl.episodes import Chunk, Episode, EpisodeWorker, Lesson, Played, Search, Shared, learnt
from pcces.rl.iteration import regularised
from pcces.rl.normalizer import Normalizer, Seen, identity, update
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.progress import Watch
from pcces.rl.settings import Settings

log = logging.getLogger("pcces")
LOOKS = 16  # random policies, at least, whose episodes the first normalisation is taken from
BATCH = 8  # episodes a worker runs side by side where its simulator can
CHUNKS = 24  # what is played at once is cut into at least so many pieces,
LARGEST = 8  # of at most so many episodes
SAYINGS = 3  # of a failure are enough; further ones are only counted
PIECE = 256  # fresh episodes of one policy are played so many at a time, so that it can be said how far they are


class Crew:
    """Plays episodes of a policy, or of a population around one, on the workers of a pool."""

    def __init__(
        self,
        task: Simulator,
        policy: Policy,
        problem: Problem,
        discount: float,
        pool: Callable[[Callable[[], EpisodeWorker]], Pool],
        search: Search | None = None,
        step_timeout: float | None = None,
    ):
        self.task, self.policy, self.problem = task, policy, problem
        self.watch: Watch | None = None
        self._said: Counter[str] = Counter()
        kind = BatchedWorker if hasattr(task, "make_batch") else EpisodeWorker
        self.worker = kind(task, policy, discount, search, step_timeout)
        self.pool = pool(_Recipe(self.worker))

    # -- playing ---------------------------------------------------------------------------------------------------------

    def share_population(
        self,
        x: np.ndarray,
        normalizer: Normalizer,
        seed: int,
        k: int,
        sigma_es: Any,
        strategy: Any,
        critic: Any = None,
        prices: Any = (),
    ) -> None:
        """Episodes from now on are of x, or of members around it that are made from the strategy's state."""
        weights = np.zeros(0, np.float32) if critic is None else critic
        self.pool.share(Shared(x, normalizer, weights, seed, k, np.float32(sigma_es), strategy, prices))

    def share_point(self, x: np.ndarray, normalizer: Normalizer) -> None:
        """Episodes from now on are of x alone, or of several points, its rows."""
        self.pool.share(Shared(x, normalizer, np.zeros(0, np.float32)))

    def play_groups(self, groups: list[tuple[list[Episode], str | None]], greedy: bool = False) -> list[Played]:
        """Play groups of episodes, all at once, each with what is to be learnt from it; each group's results in order."""
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
                self._say(seed, error)
        return joined

    def _say(self, seed: int, error: str) -> None:
        """Tell of a failed episode, unless the same has been told often enough."""
        self._said[error] += 1
        if self._said[error] <= SAYINGS:
            last = "; from now on such failures are only counted" if self._said[error] == SAYINGS else ""
            log.warning("an episode of %s failed (replay it with seed %d): %s%s", self.task.name, seed, error, last)

    def play_point(
        self,
        x: np.ndarray,
        normalizer: Normalizer,
        seeds: Sequence[int],
        learn: str | None = None,
        greedy: bool = False,
    ) -> Played:
        """An episode of x for each seed."""
        self.share_point(x, normalizer)
        return self.play_groups([([Episode(-1, 1, int(s)) for s in seeds], learn)], greedy)[0]

    def play_points(self, points: np.ndarray, normalizer: Normalizer, seeds: Sequence[int]) -> list[Played]:
        """The same episodes of several points, the rows, all at once."""
        self.share_point(points, normalizer)
        return self.play_groups([([Episode(-1 - i, 1, int(s)) for s in seeds], None) for i in range(len(points))])

    def play(self, x: np.ndarray, normalizer: Normalizer, episodes: int, seed: int, greedy: bool = False) -> Outcome:
        """Fresh episodes of one policy."""
        seeds = np.random.Generator(np.random.Philox(key=[seed, 9])).integers(2**31, size=episodes)
        parts = []
        for start in range(0, episodes, PIECE):
            piece = [int(s) for s in seeds[start : start + PIECE]]
            parts.append(self.play_point(x, normalizer, piece, greedy=greedy).outcome)
            if self.watch is not None:
                self.watch(start + len(piece), episodes)
        return Outcome(*(np.concatenate(part, axis=-1) for part in zip(*parts)))

    def close(self) -> None:
        """Let the workers go."""
        self.pool.close()

    # -- what it means ---------------------------------------------------------------------------------------------------

    def first(self, settings: Settings, seed: int) -> tuple[np.ndarray, Normalizer]:
        """x_0, the best of some random policies, and the normalisation their episodes give."""
        s = settings
        rng = np.random.Generator(np.random.Philox(key=[seed, 6]))
        normalizer = identity(np.zeros(self.task.observation_size, np.float32))
        tries = s.initial_tries
        points = [
            self.policy.init(rng.standard_normal(self.policy.size, dtype=np.float32), s.log_std, s.last_layer)
            for _ in range(max(tries, LOOKS if s.normalise else 1))
        ]
        seeds = [int(v) for v in rng.integers(2**31, size=2)]
        if s.normalise:
            seen = self.seen(learnt([self.play_point(x, normalizer, seeds, "observations") for x in points]))
            normalizer = update(normalizer, seen, frozen=np.bool_(False))
        best = 0
        if tries > 1:
            y = [regularised(self.outputs(self.play_point(x, normalizer, seeds)), x, s).mean(0) for x in points[:tries]]
            best = int(np.argmin([v[0] + s.rho * np.clip(v[1:], 0, None).sum() for v in y]))
        return points[best], normalizer

    def outputs(self, played: Played) -> np.ndarray:
        """y = (f, c) an episode; a failed one is +inf throughout, which no average hides."""
        y = np.asarray(self.problem.outputs(played.outcome), dtype=np.float32)
        return np.where(np.all(np.isfinite(y), axis=1, keepdims=True), y, np.float32(math.inf))

    def seen(self, lesson: Lesson | None) -> Seen:
        """What the normalisation learns."""
        size = self.task.observation_size
        sums = np.zeros(1 + 2 * size) if lesson is None else lesson.seen
        return Seen(sums[0], sums[1 : 1 + size], sums[1 + size :])

    def described(
        self, x: np.ndarray, normalizer: Normalizer, own: Played, samples: np.ndarray, everything: list[Played]
    ) -> dict[str, Any]:
        """What every algorithm reports of an iteration: the policy it started from, fresh episodes of that policy and
        what they are worth (`samples`), and how much was played in all."""
        good = np.isfinite(own.outcome.returns)
        outcome = Outcome(*(part[..., good] for part in own.outcome))
        nan = np.float32(np.nan)
        return {
            "return": outcome.returns.mean() if good.any() else nan,
            "costs": outcome.costs.mean(-1) if good.any() else np.full(len(self.task.cost_names), np.nan),
            "entropy": outcome.entropy.mean() if good.any() else nan,
            "length": outcome.length.mean() if good.any() else np.float32(0),
            "steps": np.float32(sum(float(np.nansum(p.outcome.length)) for p in everything)),
            "failed_episodes": np.float32(sum(len(p.errors) for p in everything)),
            "x": x,
            "mean": normalizer.mean,
            "std": normalizer.std,
            "estimate": estimate(samples),
        }


class _Recipe:
    """Makes a worker's handler; a class, so that it can be sent to other processes."""

    def __init__(self, worker: EpisodeWorker):
        self.worker = worker

    def __call__(self) -> EpisodeWorker:
        w = self.worker
        return type(w)(w.simulator, w.policy, w.discount, w.search, w.step_timeout)
