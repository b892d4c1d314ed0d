"""Tasks paid at the episode's end: our reading of the paper's "Delayed" tasks, which it nowhere defines."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcces.envs.task import Step, Task


class DelayedState(NamedTuple):
    """The wrapped task's state, and what is needed to pay later."""

    inner: Any
    owed: jax.Array
    time: jax.Array


class Delayed(Task):
    """Any task, its whole return paid on the episode's last step, also when the time limit is what ends it.

    Only the reward waits: costs still come on the step that causes them.

    >>> from pcces.envs.cartpole import CartPole200
    >>> task = Delayed(CartPole200())
    >>> task
    <task CartPoleDelayed-v0>
    >>> float(task.step(task.reset(jax.random.key(0)), 1, jax.random.key(1)).reward)
    0.0
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        stem, dash, version = task.name.rpartition("-v")
        self.name = f"{stem}Delayed-v{version}" if dash else f"{task.name}Delayed"
        self.observation_size = task.observation_size
        self.actions = task.actions
        self.overshoot = task.overshoot
        self.max_steps = task.max_steps
        self.cost_names = task.cost_names
        self.thresholds = task.thresholds
        self.cost_bounds = task.cost_bounds
        self.episode_cost_bounds = task.episode_cost_bounds
        self.entropy_bounds = task.entropy_bounds
        self.reward_threshold = task.reward_threshold
        self.observation_low = task.observation_low
        self.observation_high = task.observation_high
        self.frames_per_second = task.frames_per_second

    def reset(self, key: jax.Array) -> DelayedState:
        """Nothing owed yet."""
        return DelayedState(self.task.reset(key), jnp.float32(0), jnp.int32(0))

    def observe(self, state: DelayedState) -> jax.Array:
        """What the wrapped task shows: neither the debt nor the time."""
        return self.task.observe(state.inner)

    def step(self, state: DelayedState, action: jax.Array, key: jax.Array) -> Step:
        """Owe the reward, or pay everything on the last step."""
        inner, reward, costs, terminated = self.task.step(state.inner, action, key)
        owed, time = state.owed + reward, state.time + 1
        last = terminated | (time >= self.max_steps)
        return Step(DelayedState(inner, owed, time), jnp.where(last, owed, 0.0), costs, terminated)

    def draw(self, state: DelayedState) -> np.ndarray:
        """As the wrapped task."""
        return self.task.draw(state.inner)
