"""Episodes in a worker: a real simulator stepped by a NumPy policy, whole episodes at a time.

What travels is little: workers get seeds and rebuild their own directions from them, and send back a few numbers an
episode and one gradient a chunk.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pcces.engines.pool import Lost, Watchdog
from pcces.envs.simulator import Simulator
from pcces.rl import iteration, surrogate
from pcces.rl.normalizer import CLIP, Normalizer, normalise
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy
from pcces.rl.settings import Settings


class Episode(NamedTuple):
    """One episode to play: member `row` of the population with `sign`, or the shared point where row is negative."""

    row: int
    sign: int
    seed: int


class Chunk(NamedTuple):
    """Episodes for one worker, and whether their trajectories teach (gradient, critic, normalisation)."""

    episodes: tuple[Episode, ...]
    learn: bool
    greedy: bool = False


class Shared(NamedTuple):
    """What every episode of an iteration depends on."""

    seed: int
    k: int
    x: np.ndarray  # the incumbent, or whichever point is to be played
    sigma_es: np.ndarray
    strategy: Any
    normalizer: Normalizer
    critic: np.ndarray  # its weights


class Lesson(NamedTuple):
    """Sums over a chunk's episodes: the policy gradient, what the critic and the normalisation learn from."""

    gradient: np.ndarray
    gram: np.ndarray
    moment: np.ndarray
    seen: np.ndarray  # (1 + 2 size,) how many observations, their sums and sums of squares


def added(a: Lesson, b: Lesson) -> Lesson:
    """What two chunks teach together."""
    return Lesson(*(one + other for one, other in zip(a, b)))


class Played(NamedTuple):
    """A chunk's outcome (nan where an episode failed), its lesson, and what went wrong: (seed, error)."""

    outcome: Outcome
    lesson: Lesson | None
    errors: tuple[tuple[int, str], ...]


def member_normals(seed: int, k: int, row: int, width: int) -> np.ndarray:
    """The standard normals of a direction: a pure function of (seed, iteration, row)."""
    bits = np.random.Philox(key=[seed, 5], counter=[0, 0, row, k])
    return np.random.Generator(bits).standard_normal(width, dtype=np.float32)


@dataclass
class EpisodeWorker:
    """The handler of a worker that plays episodes."""

    simulator: Simulator
    policy: Policy
    settings: Settings
    step_timeout: float | None = None

    def __post_init__(self) -> None:
        self._env: Any = None
        self._shared: Shared | None = None
        self._watchdog = Watchdog(self.step_timeout)

    def share(self, value: Shared) -> None:
        """An iteration begins, or another point is to be played."""
        self._shared = value

    def parts(self, task: Chunk) -> list[Chunk]:
        """Single episodes."""
        return [task._replace(episodes=(episode,)) for episode in task.episodes]

    def join(self, results: list[Played | Lost]) -> Played:
        """Results of single episodes as one; an episode that took its worker down is a failed one."""
        whole = [self._failed(r.task, r.reason) if isinstance(r, Lost) else r for r in results]
        outcome = Outcome(*(np.concatenate(parts, axis=-1) for parts in zip(*(p.outcome for p in whole))))
        lessons = [p.lesson for p in whole if p.lesson is not None]
        lesson = functools.reduce(added, lessons) if lessons else None
        return Played(outcome, lesson, tuple(error for p in whole for error in p.errors))

    def _failed(self, chunk: Chunk, reason: str) -> Played:
        nan = np.full(1, np.nan, np.float32)
        outcome = Outcome(nan, nan, np.full((len(self.simulator.cost_names), 1), np.nan, np.float32), nan, nan * 0 + 0)
        return Played(outcome, None, ((chunk.episodes[0].seed, reason),))

    def run(self, task: Chunk) -> Played:
        """Play a chunk."""
        assert self._shared is not None
        if self._env is None:
            self._env = self.simulator.make()
        outcomes, errors, lesson = [], [], None
        for episode in task.episodes:
            x = self._point(episode)
            try:
                outcome, told = self._play(x, episode.seed, task.learn, task.greedy)
            except Exception as error:  # a crashing simulator is data: a failed evaluation, to be replayed by its seed
                outcome = self._failed(Chunk((episode,), False), "").outcome
                told = None
                errors.append((episode.seed, f"{type(error).__name__}: {error}"))
                self._env.close()
                self._env = self.simulator.make()
            outcomes.append(outcome)
            if told is not None:
                lesson = told if lesson is None else added(lesson, told)
        self._watchdog.rest()
        joined = Outcome(*(np.concatenate(parts, axis=-1) for parts in zip(*outcomes)))
        return Played(joined, lesson, tuple(errors))

    def _point(self, episode: Episode) -> np.ndarray:
        shared = self._shared
        assert shared is not None
        if episode.row < 0:
            return shared.x
        strategy = iteration.make_strategy(self.settings)
        z = member_normals(shared.seed, shared.k, episode.row, strategy.normals(self.policy.size))
        direction = strategy.directions(shared.strategy, z[None])[0]
        return shared.x + shared.sigma_es * np.float32(episode.sign) * direction

    def _play(self, x: np.ndarray, seed: int, learn: bool, greedy: bool) -> tuple[Outcome, Lesson | None]:
        shared, policy, env = self._shared, self.policy, self._env
        assert shared is not None
        layers, log_std = policy.unpack(x.astype(np.float32, copy=False))
        matrices = [(layer.weights, layer.bias) for layer in layers]
        mean, std = shared.normalizer.mean, shared.normalizer.std
        steps, discrete = self.simulator.max_steps, policy.discrete
        noise = np.random.Generator(np.random.Philox(key=[seed, 7]))
        deviation = np.exp(log_std)
        middle, half = (None, None) if discrete else (np.array(v, np.float32) for v in policy.scale())
        seen, heads, actions, rewards = [], [], [], []
        costs = np.zeros(len(self.simulator.cost_names))
        observation = env.reset(seed)
        for _ in range(steps):
            self._watchdog.beat()
            seen.append(observation)
            h = np.clip((observation - mean) / std, -CLIP, CLIP)
            for weights, bias in matrices[:-1]:
                h = np.tanh(h @ weights + bias)
            head = h @ matrices[-1][0] + matrices[-1][1]
            if discrete:
                if greedy:
                    action: Any = int(np.argmax(head))
                else:
                    p = np.exp(head - head.max())
                    below = np.cumsum(p)
                    action = int(np.searchsorted(below[:-1], noise.random(dtype=np.float32) * below[-1]))
            else:
                z = 0.0 if greedy else deviation * noise.standard_normal(policy.outputs, dtype=np.float32)
                action = middle + half * (head + z)
            heads.append(head)
            actions.append(action)
            observation, reward, cost, terminated, truncated = env.step(action)
            rewards.append(reward)
            if costs.size:
                costs += cost
            if terminated or truncated:
                break
        r = np.array(rewards, np.float32)
        head_columns = np.array(heads, np.float32).T
        discounted = float(r @ self.settings.discount ** np.arange(len(r)))
        entropy = float(np.sum(policy.entropy(head_columns, log_std)))
        numbers = np.array([r.sum(), discounted, entropy, len(r), *costs], np.float32)
        if not np.all(np.isfinite(numbers)):
            raise FloatingPointError("the environment returned nan or inf")
        outcome = Outcome(numbers[:1], numbers[1:2], numbers[4:, None], numbers[2:3], numbers[3:4])
        if not learn:
            return outcome, None
        return outcome, self._lesson(x, np.array(seen, np.float32).T, np.array(actions), r)

    def _lesson(self, x: np.ndarray, raw: np.ndarray, actions: np.ndarray, rewards: np.ndarray) -> Lesson:
        """What one trajectory teaches: raw observations (size, T)."""
        shared = self._shared
        assert shared is not None
        f = shared.critic.shape[0]
        seen = np.concatenate([[np.float32(raw.shape[1])], raw.sum(1), (raw**2).sum(1)])
        if self.settings.surrogate != "policy-gradient":
            zero = np.zeros(f, np.float32)
            return Lesson(np.zeros_like(x), np.zeros((f, f), np.float32), zero, seen)
        observations = normalise(shared.normalizer, raw)
        phi = surrogate.features(observations, self.simulator.max_steps)
        to_go = surrogate.returns_to_go(rewards, self.settings.discount)
        advantages = to_go - shared.critic @ phi
        gradient = surrogate.policy_gradient(self.policy, x, observations, actions.T, advantages)
        return Lesson(gradient.astype(np.float32), phi @ phi.T, phi @ to_go, seen)
