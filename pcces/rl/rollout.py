"""Episodes on the device: many at a time, in chunks of steps, until every one of them has ended.

Episodes are columns (the last axis of every array). Each has a key of its own, which decides its start, the noise of
its actions and the randomness of its task, so equal keys mean common random numbers. Steps run in chunks inside a
`while_loop`, so that a batch whose episodes have all ended costs no further steps.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pcces.core.arrays import gpu_kernels
from pcces.engines.keys import Noise, key, ours
from pcces.envs.task import Task
from pcces.rl.normalizer import Normalizer, normalise
from pcces.rl.outcome import Outcome, Trajectory
from pcces.rl.policy import Policy, forward

Array = Any
CHUNK = 50  # steps between two looks whether all episodes have ended
START = 2**31 - 1  # what is folded into an episode's key for its start; a step folds in its number


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
    acting = Acting(task, policy, discount, greedy)
    start = jax.vmap(task.reset, out_axes=-1)(jax.vmap(lambda k: jax.random.fold_in(k, START))(keys))
    episode = kernel_episode(acting) if gpu_kernels() and ours(keys) else None
    if episode is not None:
        return in_kernel(acting, episode, x, normalizer, keys, start, record)
    return scanned(acting, x, normalizer, keys, start, record)


class Acting(NamedTuple):
    """A policy acting on a task."""

    task: Task
    policy: Policy
    discount: float = 1.0
    greedy: bool = False

    @property
    def noise(self) -> Noise:
        """What actions are drawn with."""
        return Noise(self.policy.noise_size, not self.policy.discrete, CHUNK)

    def step(
        self, network: Any, normalizer: Normalizer, state: Any, noise: Array, key: Array, weight: Array | None
    ) -> tuple[Any, Outcome, Array, Array]:
        """One step of one episode, or of many as columns, with a key each: next state, gains, what is recorded, whether it ends.

        `network` is what `policy.unpack` gives, `weight` what a reward is discounted by at this step.
        """
        task, policy = self.task, self.policy
        observe, move = task.observe, task.step
        if key.ndim:
            observe, move = jax.vmap(observe, -1, -1), jax.vmap(move, (-1, -1, 0), -1)
        layers, log_std = network
        observation = observe(state)
        head = forward(layers, normalise(normalizer, observation))
        drawn = noise[0] if policy.discrete else noise
        action = policy.mode(head) if self.greedy else policy.act(head, log_std, drawn)
        after, earned, costs, over = move(state, action if task.overshoot else policy.inside(action), key)
        reward, terminated = jnp.asarray(earned), jnp.asarray(over)  # which may be Python's own numbers
        discounted = reward if weight is None else weight * reward
        gains = Outcome(reward, discounted, costs, policy.entropy(head, log_std), jnp.ones_like(reward))
        acted = (action[None] if policy.discrete else action).astype(reward.dtype)
        row = jnp.concatenate([observation, acted, reward[None], costs, gains.length[None]])
        return after, gains, row, terminated


def scanned(
    acting: Acting, x: Array, normalizer: Normalizer, keys: Array, start: Any, record: bool
) -> tuple[Outcome, Trajectory | None]:
    """`rollout` from the states in `start`, step by step."""
    task, policy, discount, _ = acting
    network = policy.unpack(x)
    batch, r = keys.shape[0], len(task.cost_names)
    rows = task.observation_size + policy.noise_size + 2 + r
    chunks = -(-task.max_steps // CHUNK)

    def step(carry: tuple, now: tuple) -> tuple:
        state, alive, outcome = carry
        noise, t, weight = now
        step_keys = jax.vmap(lambda k: jax.random.fold_in(k, t))(keys)  # dropped by the compiler where unused
        after, gains, row, terminated = acting.step(
            network, normalizer, state, noise, step_keys, None if discount == 1 else weight
        )
        alive = alive & (t < task.max_steps)
        outcome = jax.tree.map(lambda total, gain: total + jnp.where(alive, gain, 0), outcome, gains)
        state = jax.tree.map(lambda new, old: jnp.where(alive, new, old), after, state)
        # All that is recorded is one array: a buffer costs a kernel a step to write.
        return (state, alive & ~terminated, outcome), jnp.where(alive, row, 0) if record else None

    def chunk(carry: tuple) -> tuple:
        i, inner, recorded = carry
        noise = jax.vmap(lambda k: acting.noise.drawn(k, i), out_axes=-1)(keys)
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


@functools.lru_cache(maxsize=64)
def kernel_episode(acting: Acting) -> Any:
    """The episode as a GPU kernel can play it, or None if it cannot."""
    from pcces.engines.kernels.episodes import episode

    task, policy, discount, _ = acting

    def step(x: Array, shift: Array, noise: Array, t: Array, state: Any) -> tuple:
        normalizer = Normalizer(None, None, None, shift[0], shift[1])
        weight = None if discount == 1 else jnp.exp(t.astype(jnp.float32) * math.log(discount))
        # A task that uses its key is not for the kernel, which has none.
        after, gains, row, terminated = acting.step(policy.unpack(x), normalizer, state, noise, key(0), weight)
        return after, jnp.concatenate([jnp.atleast_1d(gain) for gain in gains]), row, terminated

    state = jax.eval_shape(task.reset, key(0))
    return episode(step, policy.size, (2, task.observation_size), acting.noise, state, task.max_steps)


def in_kernel(
    acting: Acting,
    episode: Any,
    x: Array,
    normalizer: Normalizer,
    keys: Array,
    start: Any,
    record: bool,
    interpret: bool = False,
) -> tuple[Outcome, Trajectory | None]:
    """`rollout` from the states in `start`, in one GPU kernel."""
    from pcces.engines.kernels.episodes import play

    shift, words = jnp.stack([normalizer.mean, normalizer.std]), jax.random.key_data(keys).T
    totals, recorded = play(episode, x, shift, words, start, record, interpret)
    outcome = Outcome(totals[0], totals[1], totals[2:-2], totals[-2], totals[-1])
    return outcome, None if recorded is None else unrecorded(acting.task, acting.policy, recorded)


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
