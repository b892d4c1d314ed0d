"""Episodes on the device: many at a time, in chunks of steps, until every one of them has ended.

Episodes are columns (the last axis of every array). Each has a key of its own, which decides its start, the noise of
its actions and the randomness of its task, so equal keys mean common random numbers. Steps run in chunks inside a
`while_loop`, so that a batch whose episodes have all ended costs no further steps.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from pcces.engines.kernels.numbers import kernels
from pcces.engines.keys import ours
from pcces.envs.task import Task
from pcces.rl.normalizer import Normalizer, normalise
from pcces.rl.outcome import Outcome, Trajectory
from pcces.rl.policy import Policy, forward

Array = Any
CHUNK = 50  # steps between two looks whether all episodes have ended


def rollout(
    task: Task,
    policy: Policy,
    x: Array,
    normalizer: Normalizer,
    keys: Array,
    discount: float = 1.0,
    record: bool = False,
    greedy: bool = False,
) -> tuple[Outcome, Trajectory | None]:
    """Play one episode per key with parameters x (n,) for all, or (n, B) for each its own. `greedy` takes the likeliest action.

    A discount costs time, so ask for one only where the discounted return is of interest.

    >>> from pcces.envs import make
    >>> from pcces.rl.normalizer import identity
    >>> task = make("CartPole-v1")
    >>> policy = Policy(task.observation_size, task.actions)
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> outcome, _ = rollout(task, policy, jnp.zeros(policy.size), identity(jnp.zeros(4)), keys)
    >>> bool((outcome.returns == outcome.length).all())
    True
    """
    start = jax.vmap(task.reset, out_axes=-1)(jax.vmap(lambda key: jax.random.fold_in(key, 2**31 - 1))(keys))
    if kernels() and ours(keys):
        from pcces.engines.kernels import episodes as kernel

        plan = kernel.plan(task, policy, greedy)
        if plan is not None:
            return kernel.play(task, policy, plan, x, normalizer, keys, start, discount, record)
    layers, log_std = policy.unpack(x)
    batch, r = keys.shape[0], len(task.cost_names)
    rows = task.observation_size + policy.noise_size + 2 + r
    chunks = -(-task.max_steps // CHUNK)

    def step(carry: tuple, now: tuple) -> tuple:
        state, alive, outcome = carry
        noise, t, weight = now
        observation = jax.vmap(task.observe, -1, -1)(state)
        head = forward(layers, normalise(normalizer, observation))
        action = policy.mode(head) if greedy else policy.act(head, log_std, noise[0] if policy.discrete else noise)
        step_keys = jax.vmap(lambda key: jax.random.fold_in(key, t))(keys)  # dropped by the compiler where unused
        after, reward, costs, terminated = jax.vmap(task.step, (-1, -1, 0), -1)(state, action, step_keys)
        alive = alive & (t < task.max_steps)
        discounted = reward if discount == 1 else weight * reward
        gains = Outcome(reward, discounted, costs, policy.entropy(head, log_std), jnp.ones(batch))
        outcome = jax.tree.map(lambda total, gain: total + jnp.where(alive, gain, 0), outcome, gains)
        state = jax.tree.map(lambda new, old: jnp.where(alive, new, old), after, state)
        seen = None
        if record:  # in one array: a buffer costs a kernel a step to write
            parts = [observation, jnp.atleast_2d(action).astype(reward.dtype), reward[None], costs, gains.length[None]]
            seen = jnp.where(alive, jnp.concatenate(parts), 0)
        return (state, alive & ~terminated, outcome), seen

    def chunk(carry: tuple) -> tuple:
        i, inner, recorded = carry
        noise = jax.vmap(lambda key: _noise(policy, jax.random.fold_in(key, -1 - i)), out_axes=-1)(keys)
        t = i * CHUNK + jnp.arange(CHUNK)
        seen: Array
        inner, seen = jax.lax.scan(step, inner, (noise, t, discount ** t.astype(jnp.float32)))
        if record:
            recorded = jax.lax.dynamic_update_slice_in_dim(recorded, seen, i * CHUNK, 0)
        return i + 1, inner, recorded

    def going_on(carry: tuple) -> Array:
        return (carry[0] < chunks) & any_alive(carry[1][1])

    zeros = jnp.zeros(batch)
    inner = start, jnp.ones(batch, bool), Outcome(zeros, zeros, jnp.zeros((r, batch)), zeros, zeros)
    recorded = jnp.zeros((chunks * CHUNK, rows, batch)) if record else None
    _, (_, _, outcome), recorded = jax.lax.while_loop(going_on, chunk, (jnp.int32(0), inner, recorded))
    return outcome, None if recorded is None else unrecorded(task, policy, recorded)


def unrecorded(task: Task, policy: Policy, recorded: Array) -> Trajectory:
    """The rows of an array (T, rows, B) by name."""
    size, acts = task.observation_size, policy.noise_size
    action = recorded[:, size : size + acts]
    return Trajectory(
        recorded[:, :size],
        action[:, 0].astype(jnp.int32) if policy.discrete else action,
        recorded[:, size + acts],
        recorded[:, size + acts + 1 : -1],
        recorded[:, -1] > 0,
    )


@jax.custom_batching.custom_vmap
def any_alive(alive: Array) -> Array:
    """Whether some episode goes on; seeds side by side (`jax.vmap`) go on together.

    One answer for all seeds keeps the loop a plain one. With an answer each, every chunk would copy all trajectories to
    choose between old and new, and write with a scatter. Steps after an episode's end change nothing, so none is needed.
    """
    return jnp.any(alive)


@any_alive.def_vmap
def _any_alive_of_all(axis_size: int, in_batched: list[bool], alive: Array) -> tuple[Array, bool]:
    return any_alive(alive), False


def _noise(policy: Policy, key: Array) -> Array:
    shape = (CHUNK, policy.noise_size)
    return jax.random.uniform(key, shape) if policy.discrete else jax.random.normal(key, shape)
