"""Policies at play on the device: the arena of tasks in JAX, whose methods are traced into an algorithm's compiled step.

The devices that share an iteration play a part of its episodes each, and agree on all the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcces.core.estimation import estimate
from pcces.engines.arena import Group
from pcces.engines.device import compiled, gathered, my_share, summed
from pcces.engines.keys import key as random_key
from pcces.envs.task import Task
from pcces.rl import epochs
from pcces.rl.lesson import Learning, Lesson, lesson_of, observations_only
from pcces.rl.normalizer import Normalizer, Seen, blind, identity, seen_in, update
from pcces.rl.outcome import Outcome, Spent, Trajectory
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.progress import Watch
from pcces.rl.rollout import rollout
from pcces.rl.settings import Start, bolder, first_choice

Array = Any
INITIAL_EPISODES = 4  # episodes by which a random policy is judged before the first iteration
PLAY_BATCH = 512  # episodes played at once for evaluations and certificates


class DeviceArena:
    """Plays policies of one shape on a task in JAX (`pcces.engines.arena.Arena`)."""

    def __init__(self, task: Task, policy: Policy, problem: Problem, discount: float):
        self.task, self.policy, self.problem, self.discount = task, policy, problem, discount
        self.watch: Watch | None = None
        self._play_discount = discount if problem.discounted else 1.0  # discounting costs time

    # -- randomness ------------------------------------------------------------------------------------------------------

    def key(self, seed: int) -> Array:
        """The source of all randomness of a run."""
        return random_key(seed)

    def keys(self, key: Array, k: Array, count: int) -> Array:
        """Sources for the parts of iteration k."""
        return jax.random.split(jax.random.fold_in(key, k), count)

    def split(self, key: Array, count: int) -> Array:
        """One source as several."""
        return jax.random.split(key, count)

    def following(self, key: Array) -> Array:
        """A source for what is drawn after everything else of a key."""
        return jax.random.fold_in(key, 1)

    def jax_key(self, key: Array) -> Array:
        """A source as compiled functions take it: itself."""
        return key

    def normals(self, key: Array, rows: int, width: int) -> Array:
        """Standard normals (rows, width)."""
        return jax.random.normal(key, (rows, width))

    def seeds(self, key: Array, count: int) -> Array:
        """Seeds of episodes, which are keys."""
        return jax.random.split(key, count)

    def compiled(
        self, function: Callable[..., Any], everywhere: bool = False, shared: bool = False
    ) -> Callable[..., Any]:
        """A compiled function of arrays: where it is traced anyway, it becomes a part of what is traced."""
        return jax.jit(function)

    # -- playing ---------------------------------------------------------------------------------------------------------

    def play(
        self, groups: Sequence[Group], normalizer: Normalizer, learning: Learning | None = None
    ) -> tuple[list[Outcome], Lesson | None]:
        """Every group's outcome, and the lesson of those that say so, which come first."""
        columns = [my_share(_columns(group)) for group in groups]
        keys = jnp.concatenate([my_share(group.seeds) for group in groups])
        everything, trajectory = rollout(
            self.task, self.policy, jnp.concatenate(columns, axis=1), normalizer, keys, self._play_discount,
            record=learning is not None,
        )  # fmt: skip
        ends = np.cumsum([part.shape[1] for part in columns])
        outcomes = []
        for group, last, part in zip(groups, ends, columns):
            mine = jax.tree.map(lambda a, first=last - part.shape[1], last=last: a[..., first:last], everything)
            if group.used is not None:
                counts = my_share(_per_episode(group, group.used))
                mine = jax.tree.map(lambda a, counts=counts: jnp.where(counts, a, jnp.zeros_like(a)), mine)
            outcomes.append(gathered(mine))
        if learning is None:
            return outcomes, None
        assert trajectory is not None
        learnt = [i for i, group in enumerate(groups) if group.learn]
        last = ends[learnt[-1]]
        trajectory = jax.tree.map(lambda a: a[..., :last], trajectory)
        if any(group.used is not None for group in groups):
            used = [jnp.ones(len(g.points), bool) if g.used is None else g.used for g in groups]
            counts = jnp.concatenate([my_share(_per_episode(groups[i], used[i])) for i in learnt])
            trajectory = jax.tree.map(lambda a: jnp.where(counts, a, jnp.zeros_like(a)), trajectory)
        x = jnp.concatenate([columns[i] for i in learnt], axis=1)
        return outcomes, self._lesson(x, normalizer, trajectory, learning)

    def _lesson(self, x: Array, normalizer: Normalizer, trajectory: Trajectory, learning: Learning) -> Lesson:
        seen = observed(trajectory, normalizer.mean)
        if not learning.gradient:
            return observations_only(Seen(*summed(seen)))
        observations, actions = jnp.moveaxis(trajectory.observations, 1, 0), jnp.moveaxis(trajectory.actions, 0, -2)
        alive = trajectory.alive.astype(jnp.float32)
        lesson = lesson_of(
            self.policy, learning, seen, x, normalizer, observations, actions, trajectory.rewards, alive,
            self.discount, self.task.max_steps,
        )  # fmt: skip
        return Lesson(*summed(tuple(lesson)))

    def epoch(
        self, x: Array, normalizer: Normalizer, key: Array, episodes: int
    ) -> tuple[tuple[Array, ...], Outcome, Spent]:
        """Steps of one policy in so many columns, as `epochs.epoch_of` takes them, the outcome of the first episodes, and what
        was played in all."""
        keys = jax.random.split(key, episodes)
        columns, outcome = epochs.on_device(self.task, self.policy, x, normalizer, keys, self.discount)
        _, _, signals, *_ = columns
        return columns, outcome, Spent(jnp.float32(episodes * self.task.max_steps), summed(signals[1:].sum((1, 2))))

    def first(self, start: Start, key: Array) -> tuple[Array, Normalizer, Spent]:
        """x_0, the best of some random policies, the normalisation their episodes give, and what was played of these."""
        if not start.bold:
            return _first(self.task, self.policy, self.problem, start, self._play_discount, key)
        calm = _first(self.task, self.policy, self.problem, start._replace(tries=1), self._play_discount, key)
        return _bolder(self.task, self.policy, start, self.following(key), *calm)

    def blank(self) -> tuple[Array, Normalizer]:
        """The same structure without content."""
        return jnp.zeros(self.policy.size), identity(jnp.zeros(self.policy.observation_size))

    def fresh(self, x: np.ndarray, normalizer: Normalizer, episodes: int, seed: int, greedy: bool = False) -> Outcome:
        """Fresh episodes of one policy, as many at a time as a power of two: few sizes, and so few programs to compile."""
        parts = []
        size = min(PLAY_BATCH, 1 << (episodes - 1).bit_length())
        for number in range(-(-episodes // size)):
            keys = jax.random.split(jax.random.fold_in(random_key(seed), number), size)
            outcome = play_batch(self.task, self.policy, jnp.asarray(x), normalizer, keys, greedy)
            parts.append(jax.tree.map(np.asarray, outcome))
            if self.watch is not None:
                self.watch(min((number + 1) * size, episodes), episodes)
        return Outcome(*(np.concatenate(part, axis=-1)[..., :episodes] for part in zip(*parts)))

    # -- what it means ---------------------------------------------------------------------------------------------------

    def outputs(self, outcome: Outcome) -> Array:
        """y = (f, c), one row per episode."""
        return self.problem.outputs(outcome)

    def described(self, x: Array, normalizer: Normalizer, own: Outcome, samples: Array, spent: Spent) -> dict[str, Any]:
        """What every algorithm reports of an iteration: the policy it started from, fresh episodes of that policy and
        what they are worth (`samples`), and how much was played in all."""
        return {
            "return": own.returns.mean(),
            "costs": own.costs.mean(-1),
            "entropy": own.entropy.mean(),
            "length": own.length.mean(),
            "steps": spent.steps,
            "spent": spent.costs,
            "x": x,
            "mean": normalizer.mean,
            "std": normalizer.std,
            "estimate": estimate(samples),
        }

    def close(self) -> None:
        """Nothing is held."""


def _columns(group: Group) -> Array:
    """A group's points, one column per episode."""
    repeats = len(group.seeds) // len(group.points)
    return jnp.repeat(group.points, repeats, axis=0).T


def _per_episode(group: Group, values: Array) -> Array:
    return jnp.repeat(values, len(group.seeds) // len(group.points))


def observed(trajectory: Trajectory | None, mean: Array) -> Seen:
    """What the normalisation learns from a trajectory."""
    assert trajectory is not None
    return seen_in(jnp.moveaxis(trajectory.observations, 1, 0), trajectory.alive.astype(jnp.float32), mean)


@compiled(0, 1, 2, 3, 4)
def _first(
    task: Task, policy: Policy, problem: Problem, start: Start, discount: float, key: Array
) -> tuple[Array, Normalizer, Spent]:
    draw_key, look_key, play_key = jax.random.split(key, 3)
    z = jax.random.normal(draw_key, (start.tries, policy.size))
    points = jax.vmap(lambda row: policy.init(row, start.log_std, start.last_layer))(z)
    columns = jnp.repeat(points, INITIAL_EPISODES, axis=0).T

    def look(carry: tuple[Normalizer, Array, Spent], now: tuple[Array, Array]) -> tuple[tuple, None]:
        """Play a few common episodes with every policy: which does best, and the normalisation after it."""
        normalizer, _, spent = carry
        key, learning = now
        keys = jnp.tile(jax.random.split(key, INITIAL_EPISODES), start.tries)
        seen_with = jax.tree.map(partial(jnp.where, learning), blind(normalizer.mean), normalizer)
        outcome, trajectory = rollout(task, policy, columns, seen_with, keys, discount, record=True)
        y = problem.outputs(outcome).reshape(start.tries, INITIAL_EPISODES, -1).mean(1)
        best = jnp.argmin(first_choice(y))
        count, total, _ = observed(trajectory, jnp.zeros_like(normalizer.mean))
        roughly = normalizer._replace(mean=total / count)  # so that sums are of what varies, from the start
        after = update(roughly, observed(trajectory, roughly.mean), frozen=jnp.bool_(False))
        normalizer = jax.tree.map(partial(jnp.where, learning), after, normalizer)
        return (normalizer, best, spent.plus(Spent.on(outcome))), None

    # First what there is to see, then how the policies do once they see it well; a loop, so that both compile once.
    looks = [(look_key, True)] * start.normalise + [(play_key, False)] * (start.tries > 1)
    nothing = Spent(jnp.float32(0), jnp.zeros(len(task.cost_names)))
    normalizer, best, spent = identity(jnp.zeros(policy.observation_size)), jnp.int32(0), nothing
    if looks:
        keys, learning = zip(*looks)
        carry = normalizer, best, spent
        (normalizer, best, spent), _ = jax.lax.scan(look, carry, (jnp.stack(keys), jnp.array(learning)))
    return points[best], normalizer, spent


@compiled(0, 1, 2)
def _bolder(
    task: Task, policy: Policy, start: Start, key: Array, calm: Array, normalizer: Normalizer, spent: Spent
) -> tuple[Array, Normalizer, Spent]:
    """The best of some bold random policies instead of a calm one, if it earns more than luck can explain."""
    draw_key, look_key, play_key = jax.random.split(key, 3)
    z = jax.random.normal(draw_key, (start.tries, policy.size))
    points = jax.vmap(lambda row: policy.init(row, start.log_std, start.bold))(z)
    look = rollout(task, policy, points.T, normalizer, jax.random.split(look_key, start.tries))[0]
    rivals = jnp.stack([calm, points[jnp.argmax(look.returns)]])
    keys = jnp.tile(jax.random.split(play_key, start.judged), 2)
    test = rollout(task, policy, jnp.repeat(rivals, start.judged, axis=0).T, normalizer, keys)[0]
    better = bolder(*test.returns.reshape(2, -1))
    return rivals[better.astype(int)], normalizer, spent.plus(Spent.on(look, test))


@compiled(0, 1, 5)
def play_batch(
    task: Task, policy: Policy, x: Array, normalizer: Normalizer, keys: Array, greedy: bool = False
) -> Outcome:
    """One episode per key of the policy x."""
    return rollout(task, policy, x, normalizer, keys, greedy=greedy)[0]
