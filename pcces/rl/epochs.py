"""Epochs: one policy's steps, as played on the device or by workers, in the form that methods learn from.

Time runs down columns, and a column holds one episode after the other. On the device all columns are as long as an
episode may be; workers play whole episodes, which are laid out in a single long column.

What an episode comes to is measured on episodes that were chosen before their lengths were known: the first of every
column, or the first that workers play. Among all that fit into so many steps, short ones would be too many.

Several devices may share an epoch. Each then holds columns of its own; a step's weight is 1 / (steps of the epoch), so
that expectations are sums over all devices (`summed`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pcces.engines.arena import Program
from pcces.engines.device import gathered, my_share, summed
from pcces.envs.task import Step, Task
from pcces.rl.first import First, first_of, with_critics
from pcces.rl.normalizer import Normalizer, Seen, normalise, seen_in
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy, forward
from pcces.rl.rollout import rollout

Array = Any


class Endless(Task):
    """A task that begins anew where it ends; a last cost says that a step was an episode's last.

    It takes one step more than the time limit of the task: the observation there is what the limit cut off, from which
    a critic can say what would have come. A limit on time is not an end.

    >>> from pcces.envs import make
    >>> task = Endless(make("CartSafe-v0"))
    >>> task.max_steps, task.cost_names
    (301, ('off_centre', 'end'))
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.name, self.observation_size, self.actions = task.name, task.observation_size, task.actions
        self.cost_names, self.max_steps = (*task.cost_names, "end"), task.max_steps + 1
        self.overshoot = task.overshoot

    def reset(self, key: Array) -> Any:
        """As the wrapped task."""
        return self.task.reset(key)

    def observe(self, state: Any) -> Array:
        """As the wrapped task."""
        return self.task.observe(state)

    def step(self, state: Any, action: Array, key: Array) -> Step:
        """As the wrapped task, or to the start of the next episode."""
        after, reward, costs, over = self.task.step(state, action, key)
        terminated = jnp.asarray(over)  # some say False, as Python has it
        fresh = self.task.reset(jax.random.fold_in(key, 2**31 - 1))
        after = jax.tree.map(lambda new, old: jnp.where(terminated, new, old), fresh, after)
        end = terminated.astype(costs.dtype)[None]
        return Step(after, reward, jnp.concatenate([costs, end]), jnp.bool_(False))


class Epoch(NamedTuple):
    """This device's columns of one policy's steps: T rows, B columns."""

    observations: Array  # (size, T + 1, B), normalised
    actions: Array  # (T, B), or (dims, T, B)
    signals: Array  # (1 + r, T, B): reward and costs
    played: Array  # (T, B): 1 on every step, 0 on a row that only shows what a limit on time cut off, or nothing
    going: Array  # (T, B): 1 where the next row is of the same episode, 0 where the task ended it
    weights: Array  # (T, B)
    costs: Array  # (r,) of an episode, on average over all devices' first episodes
    length: Array  # steps per episode, on average over the same
    seen: Seen  # for the normalisation


def epoch_of(
    normalizer: Normalizer,
    raw: Array,
    actions: Array,
    signals: Array,
    played: Array,
    going: Array,
    costs: Array,
    length: Array,
) -> Epoch:
    """An epoch from what was played: raw observations (size, T + 1, B), and the fields of the same name."""
    seen = Seen(*summed(seen_in(raw[:, :-1], played, normalizer.mean)))
    weights = played / jnp.maximum(seen.count, 1.0)
    return Epoch(normalise(normalizer, raw), actions, signals, played, going, weights, costs, length, seen)


def epoch_program(
    arena: Any,
    settings: Any,
    begin: Callable[..., Any],
    learn: Callable[..., tuple[Any, dict[str, Array]]],
    playing: Callable[[Any], tuple[Array, Array]],
) -> Program:
    """An algorithm that plays one policy's epoch an iteration, and learns from it, in this arena. All are pure functions.

    `begin`: x, normalisation, key -> state; `learn`: state, epoch, outputs (N, 1 + r) and lengths of the
    first episodes, key -> state, metrics; `playing`: state -> which policy is played, and in which iteration.
    """
    begin = arena.compiled(begin, everywhere=True)  # op by op it would take seconds
    episodes = settings.episodes(arena.task)

    def learn_from(
        state: Any, columns: tuple, samples: Array, lengths: Array, key: Array
    ) -> tuple[Any, dict[str, Array]]:
        return learn(state, epoch_of(state.normalizer, *columns), samples, lengths, key)

    compiled_learn = arena.compiled(learn_from, everywhere=True, shared=True)

    def step(state: Any, key: Any) -> tuple[Any, dict[str, Any]]:
        x, k = playing(state)
        play_key, learn_key = arena.keys(key, k, 2)
        columns, first, spent = arena.epoch(x, state.normalizer, play_key, episodes)
        samples = arena.outputs(first)
        after, metrics = compiled_learn(state, columns, samples, first.length, arena.jax_key(learn_key))
        return after, arena.described(x, state.normalizer, first, samples, spent) | metrics

    def init(key: Any, given: First | None = None) -> tuple[Any, Any]:
        x, normalizer, spent = first_of(arena, settings, key, given)
        return with_critics(begin(x, normalizer, arena.jax_key(key)), given), spent

    return Program(init, step, shares=episodes, blank=lambda key: begin(*arena.blank(), arena.jax_key(key)), chunk=1)


def on_device(
    task: Task, policy: Policy, x: Array, normalizer: Normalizer, keys: Array, discount: float
) -> tuple[tuple[Array, ...], Outcome]:
    """A column a key on the device, shared with the others, as `epoch_of` takes them; and the outcome of all devices' first
    episodes.

    >>> from pcces.engines.device import alone
    >>> from pcces.envs import make
    >>> from pcces.rl.normalizer import identity
    >>> task = make("CartPole-v1")
    >>> policy = Policy(task.observation_size, task.actions)
    >>> x, keys = jnp.zeros(policy.size), jax.random.split(jax.random.key(0), 3)
    >>> columns, outcome = alone(lambda keys: on_device(task, policy, x, identity(x[:4]), keys, 0.99))(keys)
    >>> columns[2].shape, bool((outcome.length < 100).all())  # poles fall soon
    ((1, 500, 3), True)
    """
    _, trajectory = rollout(Endless(task), policy, x, normalizer, my_share(keys), record=True)
    assert trajectory is not None
    steps = task.max_steps
    raw = jnp.moveaxis(trajectory.observations[: steps + 1], 1, 0)
    costs = jnp.moveaxis(trajectory.costs[:steps], 1, 0)
    signals = jnp.concatenate([trajectory.rewards[None, :steps], costs[:-1]])
    actions = jnp.moveaxis(trajectory.actions[:steps], 0, -2)
    going = 1 - costs[-1]
    layers, log_std = policy.unpack(x)
    head = forward(layers, step_columns(normalise(normalizer, raw[:, :-1])))
    entropy = policy.entropy(head, log_std).reshape(going.shape)

    first = jnp.concatenate([jnp.ones_like(going[:1]), jnp.cumprod(going[:-1], axis=0)])  # 1 in first episodes
    sums = (signals * first).sum(1)
    discounted = discount ** jnp.arange(steps) @ (signals[0] * first)
    outcome = gathered(Outcome(sums[0], discounted, sums[1:], (entropy * first).sum(0), first.sum(0)))
    return (raw, actions, signals, jnp.ones_like(going), going, outcome.costs.mean(-1), outcome.length.mean()), outcome


def step_columns(values: Array) -> Array:
    """(.., T, B) -> (.., T B): steps as columns."""
    return values.reshape(*values.shape[:-2], -1)
