"""Epochs: one policy's whole episodes, as played on the device or by workers, in the form that methods learn from.

Several devices may share an epoch. Each then holds the steps of its own episodes; a step's weight is 1 / (steps of the
epoch), and 0 after its episode's end, so that expectations are sums over all devices (`summed`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcces.engines.device import gathered, my_share, summed
from pcces.envs.task import Step, Task
from pcces.rl.episodes import Played
from pcces.rl.iteration import Seen
from pcces.rl.normalizer import Normalizer, normalise
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy, forward
from pcces.rl.rollout import rollout

Array = Any


class EndingState(NamedTuple):
    """The wrapped task's state, and how many steps there were."""

    inner: Any
    time: Array


class Ending(Task):
    """A task that shows what its time limit cut off: one more step, without reward, cost or change.

    An episode the task itself ends stops as before. One that runs into the time limit has an observation more, from
    which a critic can say what would have come: a limit on time is not an end.

    >>> from pcces.envs import make
    >>> Ending(make("CartPole-v1")).max_steps
    501
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.name, self.observation_size, self.actions = task.name, task.observation_size, task.actions
        self.cost_names, self.max_steps = task.cost_names, task.max_steps + 1

    def reset(self, key: Array) -> EndingState:
        """As the wrapped task."""
        return EndingState(self.task.reset(key), jnp.int32(0))

    def observe(self, state: EndingState) -> Array:
        """As the wrapped task."""
        return self.task.observe(state.inner)

    def step(self, state: EndingState, action: Array, key: Array) -> Step:
        """As the wrapped task, but for the step after its last."""
        after = self.task.step(state.inner, action, key)
        over = state.time >= self.task.max_steps
        inner = jax.tree.map(lambda old, new: jnp.where(over, old, new), state.inner, after.state)
        reward, costs = jnp.where(over, 0.0, after.reward), jnp.where(over, 0.0, after.costs)
        return Step(EndingState(inner, state.time + 1), reward, costs, over | after.terminated)


class Epoch(NamedTuple):
    """This device's episodes of one policy: T steps at most, B episodes."""

    observations: Array  # (size, T + 1, B), normalised
    actions: Array  # (T, B), or (dims, T, B)
    signals: Array  # (1 + r, T, B): reward and costs
    going: Array  # (T + 1, B): 1 on every step, and after one that the time limit made the last
    weights: Array  # (T, B)
    costs: Array  # (r,) of an episode, on average over all devices' episodes
    length: Array  # steps an episode, on average
    seen: Seen  # for the normalisation


def epoch_of(
    normalizer: Normalizer, raw: Array, actions: Array, signals: Array, going: Array, costs: Array, length: Array
) -> Epoch:
    """An epoch from what was played: raw observations (size, T + 1, B), and the fields of the same name."""
    alive = going[:-1]
    now = raw[:, :-1]
    seen = Seen(*summed(Seen(alive.sum(), (now * alive).sum((1, 2)), (now**2 * alive).sum((1, 2)))))
    weights = alive / jnp.maximum(seen.count, 1.0)
    return Epoch(normalise(normalizer, raw), actions, signals, going, weights, costs, length, seen)


def play(
    task: Task, policy: Policy, x: Array, normalizer: Normalizer, keys: Array, discount: float
) -> tuple[Epoch, Outcome]:
    """An episode a key on the device, shared with the others, and the outcome of all devices' episodes."""
    keys = my_share(keys)
    outcome, trajectory = rollout(Ending(task), policy, x, normalizer, keys, record=True)
    assert trajectory is not None
    last = task.max_steps
    raw = jnp.moveaxis(trajectory.observations[: last + 1], 1, 0)  # zero where an episode is over
    going = trajectory.alive[: last + 1].astype(raw.dtype)
    alive = going[:last]
    layers, log_std = policy.unpack(x)
    head = forward(layers, raw_columns(normalise(normalizer, raw[:, :last])))
    entropy = policy.entropy(head, log_std).reshape(alive.shape)
    discounted = discount ** jnp.arange(last) @ trajectory.rewards[:last]
    # Without the step after the last.
    outcome = outcome._replace(discounted=discounted, entropy=(entropy * alive).sum(0), length=alive.sum(0))
    outcome = gathered(outcome)
    signals = jnp.concatenate([trajectory.rewards[None, :last], jnp.moveaxis(trajectory.costs[:last], 1, 0)])
    actions = jnp.moveaxis(trajectory.actions[:last], 0, -2)
    means = outcome.costs.mean(-1), outcome.length.mean()
    return epoch_of(normalizer, raw, actions, signals, going, *means), outcome


def raw_columns(values: Array) -> Array:
    """(.., T, B) -> (.., T B): steps as columns."""
    return values.reshape(*values.shape[:-2], -1)


def padded(policy: Policy, steps: int, played: Played) -> tuple[Any, ...]:
    """Episodes as arrays of `steps` steps: what `epoch_of` takes. One that failed has no step."""
    size, acts = policy.observation_size, () if policy.discrete else (policy.outputs,)
    count, costs = len(played.steps), played.outcome.costs
    raw = np.zeros((size, steps + 1, count), np.float32)
    actions = np.zeros((*acts, steps, count), np.float32 if acts else np.int32)
    signals = np.zeros((1 + len(costs), steps, count), np.float32)
    going = np.zeros((steps + 1, count), np.float32)
    for i, one in enumerate(played.steps):
        if one is None:
            continue
        length = one.rewards.size
        raw[:, :length, i], raw[:, length, i] = one.observations, one.last
        actions[..., :length, i] = one.actions
        signals[0, :length, i], signals[1:, :length, i] = one.rewards, one.costs
        going[:length, i], going[length, i] = 1, one.cut
    good = [i for i, one in enumerate(played.steps) if one is not None]
    means = costs[:, good].sum(1) / max(1, len(good)), np.float32(max(1.0, going[:-1].sum()) / max(1, len(good)))
    return raw, actions, signals, going, *means
