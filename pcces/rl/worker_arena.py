"""Policies at play on workers: the arena of simulators, whose episodes are played by a pool of processes or Ray actors.

Chunks of episodes are fixed, whatever the number of workers, and sums are taken in their order: the same seed gives the
same bits with one worker or a hundred.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pcces.core.estimation import estimate
from pcces.engines.arena import Group
from pcces.engines.pool import Lost, Pool
from pcces.envs.simulator import Simulator
from pcces.rl.batch_worker import BatchedWorker
from pcces.rl.lesson import Learning, Lesson, joined
from pcces.rl.normalizer import Normalizer, blind, identity, update
from pcces.rl.outcome import Outcome, Spent
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.progress import Watch
from pcces.rl.settings import Start, bolder, first_choice
from pcces.rl.worker import Chunk, Episode, EpisodeWorker, Played, Recipe, Search, Shared, member_normals
from pcces.rl.worker_epoch import laid_out, rounds

log = logging.getLogger("pcces")
LOOKS = 16  # random policies, at least, whose episodes the first normalisation is taken from
BATCH = 8  # episodes that a worker runs side by side where its simulator can
CHUNKS = 24  # what is played at once is cut into at least so many pieces,
LARGEST = 8  # of at most so many episodes
SAYINGS = 3  # of a failure are enough; further ones are only counted
PIECE = 256  # fresh episodes of one policy are played so many at a time, so that it can be said how far they are


class Stream:
    """All randomness of a run, or of one of its iterations: numbers in the order they are asked for."""

    def __init__(self, seed: int, k: int | None = None):
        self.seed, self.k = seed, k

    @cached_property
    def generator(self) -> np.random.Generator:
        """Where the seeds of an iteration's episodes come from."""
        return np.random.Generator(np.random.Philox(key=[self.seed, 8], counter=[0, 0, 0, self.k or 0]))

    @property
    def jax_key(self) -> Any:
        """The same for compiled functions."""
        import jax

        from pcces.engines.keys import key

        return key(self.seed) if self.k is None else jax.random.fold_in(key(self.seed), self.k)


class WorkerArena:
    """Plays policies of one shape on a simulator (`pcces.engines.arena.Arena`)."""

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
        self.task, self.policy, self.problem, self.discount = task, policy, problem, discount
        self.watch: Watch | None = None
        self._said: Counter[str] = Counter()
        self._failed = 0  # episodes, in this iteration
        kind = BatchedWorker if hasattr(task, "make_batch") and task.cost is None else EpisodeWorker
        self.worker = kind(task, policy, discount, search, step_timeout)
        self.pool = pool(Recipe(self.worker))

    # -- randomness ------------------------------------------------------------------------------------------------------

    def key(self, seed: int) -> Stream:
        """The source of all randomness of a run."""
        return Stream(seed)

    def keys(self, key: Stream, k: Any, count: int) -> tuple[Stream, ...]:
        """The parts of iteration k share one stream."""
        return (Stream(key.seed, int(k)),) * count

    def split(self, key: Stream, count: int) -> tuple[Stream, ...]:
        """The same stream."""
        return (key,) * count

    def following(self, key: Stream) -> Stream:
        """What comes next in the stream."""
        return key

    def jax_key(self, key: Stream) -> Any:
        """A source as compiled functions take it."""
        return key.jax_key

    def normals(self, key: Stream, rows: int, width: int) -> np.ndarray:
        """Standard normals (rows, width), of which a worker can make a row again by itself."""
        return np.stack([member_normals(key.seed, key.k or 0, row, width) for row in range(rows)])

    def seeds(self, key: Stream, count: int) -> np.ndarray:
        """Seeds of episodes."""
        return key.generator.integers(2**31, size=count)

    def compiled(
        self, function: Callable[..., Any], everywhere: bool = False, shared: bool = False
    ) -> Callable[..., Any]:
        """The function itself, on NumPy; or compiled, and with NumPy's arrays going out."""
        if not everywhere:
            return function
        import jax

        from pcces.engines.device import alone, configure

        configure()
        program = alone(function) if shared else jax.jit(function)
        return lambda *args: jax.tree.map(np.asarray, program(*args))

    # -- playing ---------------------------------------------------------------------------------------------------------

    def play(
        self, groups: Sequence[Group], normalizer: Normalizer, learning: Learning | None = None
    ) -> tuple[list[Outcome], Lesson | None]:
        """Every group's outcome, and the lesson of those that say so."""
        mirrored = next((group for group in groups if group.around is not None), None)
        if mirrored is None:
            x = np.concatenate([np.asarray(group.points) for group in groups])
            shared = Shared(x, normalizer, learning)
        else:
            around = mirrored.around
            assert around is not None
            basis, scale = without_archive(around.strategy), np.float32(around.scale)
            shared = Shared(around.x, normalizer, learning, around.key.seed, around.key.k or 0, scale, basis)
        self.pool.share(shared)
        parts, first = [], 0
        for group in groups:
            parts.append((_episodes(group, first), group.learn, False))
            first += len(group.points) if mirrored is None else 0
        played = self.play_groups(parts)
        outcomes = [_whole(group, p.outcome) for group, p in zip(groups, played)]
        return outcomes, joined(p.lesson for p in played)

    def epoch(
        self, x: np.ndarray, normalizer: Normalizer, key: Stream, episodes: int
    ) -> tuple[tuple[np.ndarray, ...], Outcome, Spent]:
        """Steps of one policy in a single column, as `epochs.epoch_of` takes them, the outcome of the first episodes, and
        what was played in all."""
        self.pool.share(Shared(x, normalizer))

        def play(size: int) -> Played:
            seeds = self.seeds(key, size)
            return self.play_groups([([Episode(-1, 1, int(s)) for s in seeds], False, True)])[0]

        played = rounds(play, episodes, episodes * self.task.max_steps)
        column = laid_out(self.policy, episodes * (self.task.max_steps + 1), played)
        return column, played[0].outcome, Spent.on(*(part.outcome for part in played))

    def play_groups(self, groups: Sequence[tuple[list[Episode], bool, bool]], greedy: bool = False) -> list[Played]:
        """Play groups of episodes, all at once, each with whether to learn from it and to keep its steps."""
        total = sum(len(episodes) for episodes, _, _ in groups)
        size = min(LARGEST, max(1, -(-total // CHUNKS)))
        if isinstance(self.worker, BatchedWorker):  # always the same few sizes, for which a worker has environments
            size = BATCH
        chunks, owner = [], []
        for number, (episodes, learn, steps) in enumerate(groups):
            for i in range(0, len(episodes), size):
                chunks.append(Chunk(tuple(episodes[i : i + size]), learn, steps, greedy))
                owner.append(number)
        results = self.pool.map(chunks)
        whole = [self.worker.join([r]) if isinstance(r, Lost) else r for r in results]
        joined_up = [
            self.worker.join([p for p, o in zip(whole, owner) if o == number]) for number in range(len(groups))
        ]
        for played in joined_up:
            self._failed += len(played.errors)
            for seed, error in played.errors:
                self._say(seed, error)
        return joined_up

    def _say(self, seed: int, error: str) -> None:
        """Tell of a failed episode, unless the same has been told often enough."""
        self._said[error] += 1
        if self._said[error] <= SAYINGS:
            last = "; from now on such failures are only counted" if self._said[error] == SAYINGS else ""
            log.warning("an episode of %s failed (replay it with seed %d): %s%s", self.task.name, seed, error, last)

    def _play_point(
        self, x: np.ndarray, normalizer: Normalizer, seeds: Sequence[int], greedy: bool = False, learn: bool = False
    ) -> Played:
        """An episode of x for each seed."""
        nothing = np.zeros(0, np.float32)
        self.pool.share(Shared(x, normalizer, Learning(False, nothing) if learn else None))
        return self.play_groups([([Episode(-1, 1, int(s)) for s in seeds], learn, False)], greedy)[0]

    def fresh(self, x: np.ndarray, normalizer: Normalizer, episodes: int, seed: int, greedy: bool = False) -> Outcome:
        """Fresh episodes of one policy."""
        seeds = np.random.Generator(np.random.Philox(key=[seed, 9])).integers(2**31, size=episodes)
        parts = []
        for start in range(0, episodes, PIECE):
            piece = [int(s) for s in seeds[start : start + PIECE]]
            parts.append(self._play_point(x, normalizer, piece, greedy).outcome)
            if self.watch is not None:
                self.watch(start + len(piece), episodes)
        return Outcome(*(np.concatenate(part, axis=-1) for part in zip(*parts)))

    def first(self, start: Start, key: Stream) -> tuple[np.ndarray, Normalizer, Spent]:
        """x_0, the best of some random policies, the normalisation their episodes give, and what was played of these."""
        rng = np.random.Generator(np.random.Philox(key=[key.seed, 6]))
        _, normalizer = self.blank()
        points = [
            self.policy.init(rng.standard_normal(self.policy.size, dtype=np.float32), start.log_std, start.last_layer)
            for _ in range(max(1 if start.bold else start.tries, LOOKS if start.normalise else 1))
        ]
        seeds = [int(v) for v in rng.integers(2**31, size=2)]
        spent = Spent(np.float32(0), np.zeros(len(self.task.cost_names), np.float32))
        if start.normalise:
            played = [self._play_point(x, blind(normalizer.mean), seeds, learn=True) for x in points]
            spent = spent.plus(Spent.on(*(each.outcome for each in played)))
            lesson = joined(each.lesson for each in played)
            if lesson is not None:
                normalizer = update(normalizer, lesson.seen, frozen=np.bool_(False))
        best = 0
        if start.bold:
            rivals, more = self._bolder(start, points[0], normalizer, rng)
            self._failed = 0
            return rivals, normalizer, spent.plus(more)
        if start.tries > 1:
            outcomes = [self._play_point(x, normalizer, seeds).outcome for x in points[: start.tries]]
            spent = spent.plus(Spent.on(*outcomes))
            best = int(np.argmin(first_choice(np.stack([self.outputs(o).mean(0) for o in outcomes]))))
        self._failed = 0
        return points[best], normalizer, spent

    def _bolder(
        self, start: Start, calm: np.ndarray, normalizer: Normalizer, rng: np.random.Generator
    ) -> tuple[np.ndarray, Spent]:
        """The best of some bold random policies instead of a calm one, if it earns more than luck can explain; and what was
        played for that."""

        def play(points: Sequence[np.ndarray], episodes: Sequence[tuple[int, int]]) -> Outcome:
            """Episodes (point, seed), in their order."""
            self.pool.share(Shared(np.stack(points), normalizer))
            return self.play_groups([([Episode(-1 - i, 1, s) for i, s in episodes], False, False)])[0].outcome

        shape = start.tries, self.policy.size
        points = [self.policy.init(z, start.log_std, start.bold) for z in rng.standard_normal(shape, dtype=np.float32)]
        look = play(points, [(i, int(s)) for i, s in enumerate(rng.integers(2**31, size=start.tries))])
        rivals = calm, points[int(np.argmax(np.nan_to_num(look.returns, nan=-np.inf)))]
        seeds = [int(s) for s in rng.integers(2**31, size=start.judged)]
        test = play(rivals, [(i, s) for i in range(2) for s in seeds])
        better = bolder(*test.returns.reshape(2, -1))
        return rivals[int(better)], Spent.on(look, test)

    def blank(self) -> tuple[np.ndarray, Normalizer]:
        """The same structure without content."""
        return np.zeros(self.policy.size, np.float32), identity(np.zeros(self.task.observation_size, np.float32))

    def close(self) -> None:
        """Let the workers go."""
        self.pool.close()

    # -- what it means ---------------------------------------------------------------------------------------------------

    def outputs(self, outcome: Outcome) -> np.ndarray:
        """y = (f, c), one row per episode; a failed one is +inf throughout, which no average hides."""
        y = np.asarray(self.problem.outputs(outcome), dtype=np.float32)
        return np.where(np.all(np.isfinite(y), axis=1, keepdims=True), y, np.float32(math.inf))

    def described(
        self, x: np.ndarray, normalizer: Normalizer, own: Outcome, samples: np.ndarray, spent: Spent
    ) -> dict[str, Any]:
        """What every algorithm reports of an iteration: the policy it started from, fresh episodes of that policy and
        what they are worth (`samples`), and how much was played in all."""
        failed, self._failed = self._failed, 0
        good = np.isfinite(own.returns)
        outcome = Outcome(*(part[..., good] for part in own))
        nan = np.float32(np.nan)
        return {
            "return": outcome.returns.mean() if good.any() else nan,
            "costs": outcome.costs.mean(-1) if good.any() else np.full(len(self.task.cost_names), np.nan),
            "entropy": outcome.entropy.mean() if good.any() else nan,
            "length": outcome.length.mean() if good.any() else np.float32(0),
            "steps": spent.steps,
            "spent": spent.costs,
            "failed_episodes": np.float32(failed),
            "x": x,
            "mean": normalizer.mean,
            "std": normalizer.std,
            "estimate": estimate(samples),
        }


def _episodes(group: Group, first: int) -> list[Episode]:
    """A group's episodes; its points are rows of the shared ones from `first` on, if they are not a mirrored population."""
    repeats, half = len(group.seeds) // len(group.points), len(group.points) // 2
    used = np.ones(len(group.points), bool) if group.used is None else np.asarray(group.used)
    episodes = []
    for i in np.flatnonzero(used):
        row, sign = (int(i) % half, 1 if i < half else -1) if group.around is not None else (-1 - first - int(i), 1)
        episodes += [Episode(row, sign, int(s)) for s in group.seeds[i * repeats : (i + 1) * repeats]]
    return episodes


def _whole(group: Group, outcome: Outcome) -> Outcome:
    """The outcome of a group with zeros for what was not used."""
    if group.used is None:
        return outcome
    counts = np.repeat(np.asarray(group.used), len(group.seeds) // len(group.points))
    parts = []
    for part in outcome:
        whole = np.zeros((*part.shape[:-1], len(counts)), part.dtype)
        whole[..., counts] = part
        parts.append(whole)
    return Outcome(*parts)


def without_archive(state: Any) -> Any:
    """What workers need of a search distribution's state: not the gradients its basis came from."""
    return state._replace(archive=state.archive[:0]) if "archive" in state._fields else state
