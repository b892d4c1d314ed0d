"""What a worker does: it plays whole episodes of a simulator, stepped by a policy in NumPy.

What travels is little: workers get seeds and rebuild their own directions from them, and send back a few numbers an
episode and one gradient a chunk.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pcces.engines.pool import Lost, Watchdog
from pcces.envs.costs import CostError, check_steps
from pcces.envs.environment import Environment
from pcces.envs.simulator import Simulator
from pcces.rl.lesson import Learning, Lesson, joined, lesson_of, observations_only
from pcces.rl.normalizer import CLIP, Normalizer, Seen, seen_in
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy
from pcces.strategies import Strategy

MAKE_SECONDS = 60.0  # what making an environment may take, however short the step timeout is
BLOCK = 1000  # steps whose noise is drawn at once


class Episode(NamedTuple):
    """One episode to play: member `row` of the population with `sign`; or, where row is negative, the shared point, or
    shared point -1 - row of several."""

    row: int
    sign: int
    seed: int


class Chunk(NamedTuple):
    """Episodes for one worker, and what it returns in addition to their outcome: a lesson, or every step."""

    episodes: tuple[Episode, ...]
    learn: bool = False
    steps: bool = False
    greedy: bool = False


class Shared(NamedTuple):
    """What every episode of an iteration depends on; where only x itself is played, the first two fields are enough."""

    x: np.ndarray  # the incumbent, or whichever points are to be played
    normalizer: Normalizer
    learning: Learning | None = None
    seed: int = 0
    k: int = 0
    sigma_es: Any = None
    strategy: Any = None  # what directions are made from: U_k, not the surrogates it comes from


Search = Callable[[], Strategy]  # makes a search distribution; can be sent to workers, which a strategy cannot


class Steps(NamedTuple):
    """An episode step by step; time is the last axis."""

    observations: np.ndarray  # (size, T), raw
    actions: np.ndarray  # (T,) integers, or (dims, T)
    rewards: np.ndarray  # (T,)
    costs: np.ndarray  # (r, T)
    last: np.ndarray  # (size,) what was seen after the last step
    cut: bool  # whether a limit on time ended it, and not the task


class Played(NamedTuple):
    """What came of a chunk: outcomes (nan where an episode failed), its lesson, and what went wrong: (seed, error)."""

    outcome: Outcome
    lesson: Lesson | None
    errors: tuple[tuple[int, str], ...]
    steps: tuple[Steps | None, ...] = ()  # of every episode, if asked for; None where it failed


def member_normals(seed: int, k: int, row: int, width: int) -> np.ndarray:
    """The standard normals of a direction: a pure function of (seed, iteration, row)."""
    bits = np.random.Philox(key=[seed, 5], counter=[0, 0, row, k])
    return np.random.Generator(bits).standard_normal(width, dtype=np.float32)


@dataclass
class EpisodeWorker:
    """The handler of a worker that plays episodes."""

    simulator: Simulator
    policy: Policy
    discount: float
    search: Search | None = None
    step_timeout: float | None = None

    def __post_init__(self) -> None:
        self._env: Environment | None = None
        self._player: EpisodePlayer | None = None
        self._shared: Shared | None = None
        self._row, self._direction = -1, np.zeros(0, np.float32)
        self._watchdog = Watchdog(self.step_timeout)

    def share(self, value: Shared) -> None:
        """An iteration begins, or another point is to be played."""
        self._shared = value
        self._row = -1

    def parts(self, task: Chunk) -> list[Chunk]:
        """Single episodes."""
        return [task._replace(episodes=(episode,)) for episode in task.episodes]

    def join(self, results: list[Played | Lost]) -> Played:
        """Results of single episodes as one; an episode that took its worker down is a failed one."""
        whole = [self._failed(r.task, r.reason) if isinstance(r, Lost) else r for r in results]
        outcome = Outcome(*(np.concatenate(parts, axis=-1) for parts in zip(*(p.outcome for p in whole))))
        steps = tuple(episode for p in whole for episode in p.steps)
        return Played(
            outcome, joined(p.lesson for p in whole), tuple(error for p in whole for error in p.errors), steps
        )

    def _failed(self, chunk: Chunk, reason: str) -> Played:
        nan = np.full(1, np.nan, np.float32)
        costs = np.full((len(self.simulator.cost_names), 1), np.nan, np.float32)
        outcome = Outcome(nan, nan, costs, nan, np.zeros(1, np.float32))
        steps = (None,) if chunk.steps else ()
        return Played(outcome, None, ((chunk.episodes[0].seed, reason),), steps)

    def run(self, task: Chunk) -> Played:
        """Play a chunk."""
        try:
            return self.join([self._play_one(part) for part in self.parts(task)])
        finally:
            self._watchdog.rest()

    def _play_one(self, chunk: Chunk) -> Played:
        """A single episode; a crashing simulator is data: a failed evaluation, to be replayed by its seed."""
        shared, (episode,) = self._shared, chunk.episodes
        assert shared is not None
        if self._env is None:
            self._watchdog.allow(max(MAKE_SECONDS, self.step_timeout or 0.0))
            self._env = self.simulator.make()
        if self._player is None:
            self._player = EpisodePlayer(self.policy, self.simulator, self.discount, self._watchdog)
        x = self._point(shared, episode)
        try:
            outcome, steps = self._player.play(self._env, x, shared.normalizer, episode.seed, chunk.greedy)
        except CostError:
            raise
        except Exception as error:
            with contextlib.suppress(Exception):
                self._env.close()
            self._env = None
            return self._failed(chunk, f"{type(error).__name__}: {error}")
        check_steps(self.simulator, steps.costs, episode.seed)
        return Played(outcome, *self._learnt(chunk, shared, x, steps))

    def _point(self, shared: Shared, episode: Episode) -> np.ndarray:
        if episode.row < 0:
            return np.atleast_2d(shared.x)[-1 - episode.row]
        if episode.row != self._row:
            assert self.search is not None
            strategy = self.search()
            z = member_normals(shared.seed, shared.k, episode.row, strategy.normals(self.policy.size))
            self._row, self._direction = episode.row, strategy.directions(shared.strategy, z[None])[0]
        assert shared.sigma_es is not None
        return shared.x + shared.sigma_es * np.float32(episode.sign) * self._direction

    def _learnt(
        self, chunk: Chunk, shared: Shared, x: np.ndarray, steps: Steps
    ) -> tuple[Lesson | None, tuple, tuple[Steps, ...]]:
        """What a chunk asks for from one trajectory, as the last fields of `Played`."""
        if chunk.steps:  # copies: the next episode is written over these
            observations, actions = steps.observations.copy(), steps.actions.copy()
            return None, (), (steps._replace(observations=observations, actions=actions, costs=steps.costs.copy()),)
        learning, raw = shared.learning, steps.observations
        if not chunk.learn or learning is None:
            return None, (), ()
        seen = Seen(*seen_in(raw.astype(float), np.ones(raw.shape[1]), shared.normalizer.mean))
        if not learning.gradient:
            return observations_only(seen), (), ()
        lesson = lesson_of(
            self.policy, learning, seen, x, shared.normalizer, raw, steps.actions, steps.rewards, None,
            self.discount, self.simulator.max_steps,
        )  # fmt: skip
        return lesson._replace(gradient=lesson.gradient.astype(np.float32, copy=False)), (), ()


class EpisodePlayer:
    """Plays single episodes as fast as NumPy can: a step costs a few microseconds besides the simulator's own.

    Layers carry their bias as a last row, and their inputs a last 1; the first layer is divided by the observations'
    standard deviation. All of an episode's noise is drawn ahead, and nothing is allocated in the loop.
    """

    def __init__(self, policy: Policy, simulator: Simulator, discount: float, watchdog: Watchdog):
        self.policy, self.max_steps, self.watchdog = policy, simulator.max_steps, watchdog
        self.costs, self.discount = len(simulator.cost_names), discount
        self._inputs = [np.ones(a + 1, np.float32) for a, _ in policy.shapes]
        self._scratch = np.zeros(policy.outputs, np.float32)
        widths = (policy.observation_size, policy.outputs, policy.outputs)
        self._buffers: list[np.ndarray] = [
            np.zeros((0, width), np.float32) for width in widths
        ]  # observations, heads, actions, costs
        self._buffers.append(np.zeros((0, self.costs)))
        self._powers: np.ndarray = np.ones(0)

    def _room(self, steps: int) -> list[np.ndarray]:
        """The buffers, with space for so many steps."""
        have = len(self._powers)
        if steps > have:
            more = min(self.max_steps, max(steps, 2 * have)) - have
            self._buffers = [np.concatenate([b, np.zeros((more, b.shape[1]), b.dtype)]) for b in self._buffers]
            self._powers = self.discount ** np.arange(have + more)
        return self._buffers

    def play(
        self, env: Environment, x: np.ndarray, normalizer: Normalizer, seed: int, greedy: bool
    ) -> tuple[Outcome, Steps]:
        """One episode of the policy x, all of whose randomness comes from the seed.

        Long: training on simulators spends its time in this loop, and whatever the loop uses is a local name.
        """
        policy, watchdog = self.policy, self.watchdog
        layers, log_std = policy.unpack(x)
        noise = np.random.Generator(np.random.Philox(key=[seed, 7]))
        deviation = np.float32(0) if greedy else np.exp(log_std)
        mean, high = normalizer.mean, CLIP * normalizer.std
        low = -high
        matrices = [np.concatenate([layer.weights, layer.bias[None]]) for layer in layers]
        matrices[0][:-1] /= normalizer.std[:, None]
        first = self._inputs[0][:-1]
        hidden = [(h.dot, w, after[:-1]) for h, w, after in zip(self._inputs, matrices, self._inputs[1:])]
        to_head, last, scratch = self._inputs[-1].dot, matrices[-1], self._scratch
        subtract, maximum, minimum, tanh, add, multiply = (
            np.subtract, np.maximum, np.minimum, np.tanh, np.add, np.multiply
        )  # fmt: skip
        discrete = policy.discrete
        if not discrete:
            middle, half = (np.array(part, np.float32) for part in policy.scale())
        choices: list[int] = []
        rewards: list[float] = []
        watchdog.beat()
        observation = env.reset(seed)
        t, over = 0, False
        while not over and t < self.max_steps:
            end = min(t + BLOCK, self.max_steps)
            seen, heads, acts, paid = self._room(end)
            if discrete:  # the largest of logits plus Gumbel noise is a draw from the categorical distribution
                if not greedy:
                    acts[t:end] = -np.log(noise.standard_exponential((end - t, policy.outputs), dtype=np.float32))
            else:
                z = noise.standard_normal((end - t, policy.outputs), dtype=np.float32)
                acts[t:end] = middle + half * (deviation * z)
            while t < end and not over:
                watchdog.beat()
                row, head = seen[t], heads[t]
                row[:] = observation
                subtract(row, mean, first)
                maximum(first, low, out=first)
                minimum(first, high, out=first)
                for dot, weights, after in hidden:
                    dot(weights, after)
                    tanh(after, after)
                to_head(last, head)
                action: Any
                if discrete:
                    action = int((head if greedy else add(head, acts[t], scratch)).argmax())
                    choices.append(action)
                else:
                    action = acts[t]
                    add(action, multiply(head, half, scratch), action)
                observation, reward, cost, over = env.step(action)
                rewards.append(reward)
                if self.costs:
                    paid[t] = cost
                t += 1
        r = np.array(rewards, np.float32)
        entropy = float(np.sum(policy.entropy(heads[:t].T, log_std)))
        costs = paid[:t].T
        numbers = np.array([r.sum(), float(r @ self._powers[:t]), entropy, t, *costs.sum(1)], np.float32)
        if not (np.isfinite(numbers).all() and np.isfinite(seen[:t]).all()):
            raise FloatingPointError("the environment returned nan or inf")
        outcome = Outcome(numbers[:1], numbers[1:2], numbers[4:, None], numbers[2:3], numbers[3:4])
        actions = np.array(choices) if discrete else acts[:t].T
        last = np.array(observation, dtype=np.float32).reshape(-1)  # some environments use one array again and again
        return outcome, Steps(seen[:t].T, actions, r, costs, last, not (over and env.terminated))


class Recipe:
    """Makes a worker like this one; a class, so that it can be sent to other processes."""

    def __init__(self, worker: EpisodeWorker):
        self.worker = worker

    def __call__(self) -> EpisodeWorker:
        """A worker of its own."""
        w = self.worker
        return type(w)(w.simulator, w.policy, w.discount, w.search, w.step_timeout)
