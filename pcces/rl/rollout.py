"""Episodes on the device: many at a time, in chunks of steps, until every one of them has ended.

Episodes are columns (the last axis of every array). Each has a key of its own, which decides its start, the noise of
its actions and the randomness of its task, so equal keys mean common random numbers. Steps run in chunks inside a
`while_loop`, so that a batch whose episodes have all ended costs no further steps.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

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

    >>> from pcces.envs import make
    >>> from pcces.rl.normalizer import identity
    >>> task = make("CartPole-v1")
    >>> policy = Policy(task.observation_size, task.actions)
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> outcome, _ = rollout(task, policy, jnp.zeros(policy.size), identity(jnp.zeros(4)), keys)
    >>> bool((outcome.returns == outcome.length).all())
    True
    """
    layers, log_std = policy.unpack(x)
    batch = keys.shape[0]
    chunks = -(-task.max_steps // CHUNK)

    def step(carry: tuple, noise_and_time: tuple) -> tuple:
        state, alive, outcome = carry
        noise, t = noise_and_time
        observation = jax.vmap(task.observe, -1, -1)(state)
        head = forward(layers, normalise(normalizer, observation))
        action = policy.mode(head) if greedy else policy.act(head, log_std, noise[0] if policy.discrete else noise)
        step_keys = jax.vmap(lambda key: jax.random.fold_in(key, t))(keys)  # dropped by the compiler where unused
        after, reward, costs, terminated = jax.vmap(task.step, (-1, -1, 0), -1)(state, action, step_keys)
        alive = alive & (t < task.max_steps)
        now = alive.astype(jnp.float32)
        outcome = Outcome(
            outcome.returns + now * reward,
            outcome.discounted + now * reward * discount**t,
            outcome.costs + now * costs,
            outcome.entropy + now * policy.entropy(head, log_std),
            outcome.length + now,
        )
        state = jax.tree.map(lambda new, old: jnp.where(alive, new, old), after, state)
        record_now = Trajectory(observation * now, action, reward * now, costs * now, alive) if record else None
        return (state, alive & ~terminated, outcome), record_now

    def chunk(carry: tuple) -> tuple:
        i, inner, trajectory = carry
        noise = jax.vmap(lambda key: _noise(policy, jax.random.fold_in(key, -1 - i)), out_axes=-1)(keys)
        steps: Any
        inner, steps = jax.lax.scan(step, inner, (noise, i * CHUNK + jnp.arange(CHUNK)))
        if record:
            trajectory = jax.tree.map(
                lambda all_, new: jax.lax.dynamic_update_slice_in_dim(all_, new, i * CHUNK, 0), trajectory, steps
            )
        return i + 1, inner, trajectory

    zeros = jnp.zeros(batch)
    start = jax.vmap(task.reset, out_axes=-1)(jax.vmap(lambda key: jax.random.fold_in(key, 2**31 - 1))(keys))
    inner = start, jnp.ones(batch, bool), Outcome(zeros, zeros, jnp.zeros((len(task.cost_names), batch)), zeros, zeros)
    trajectory = None
    if record:
        shapes = jax.eval_shape(lambda carry: step(carry, (jnp.zeros((policy.noise_size, batch)), 0))[1], inner)
        trajectory = jax.tree.map(lambda s: jnp.zeros((chunks * CHUNK, *s.shape), s.dtype), shapes)

    def going_on(carry: tuple) -> Array:
        return (carry[0] < chunks) & jnp.any(carry[1][1])

    _, (_, _, outcome), trajectory = jax.lax.while_loop(going_on, chunk, (jnp.int32(0), inner, trajectory))
    return outcome, trajectory


def _noise(policy: Policy, key: Array) -> Array:
    shape = (CHUNK, policy.noise_size)
    return jax.random.uniform(key, shape) if policy.discrete else jax.random.normal(key, shape)
