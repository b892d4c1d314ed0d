"""Whole episodes in one GPU kernel.

Step by step, an episode on a GPU costs a few kernel launches a step, whatever the number of episodes. Here a program of
32 lanes, one episode each, runs from the first step to the last: parameters and state stay in registers, and the
program ends when its last episode has. It plays what `rollout` plays, with the same random numbers.

The task's and the policy's functions are traced for one episode and evaluated number by number (`scalars`). Tasks that
use open-ended loops or random numbers in a step, and large networks, are not for this kernel: `plan` says so, and they are scanned.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from pcces.engines.kernels.numbers import LANES, Numbers, UnsupportedError, evaluate, numbers, trace
from pcces.engines.keys import bits, folded, key
from pcces.envs.task import Task
from pcces.rl.normalizer import Normalizer, normalise
from pcces.rl.outcome import Outcome, Trajectory
from pcces.rl.policy import Policy, forward
from pcces.rl.rollout import CHUNK, unrecorded

Array = Any
REGISTERS = 200  # parameters a lane keeps in registers; more are read anew at every step
LARGEST = 1500  # parameters, and
LARGEST_STATE = 64  # numbers in a state, above which code of one instruction a number would be too long


class Plan(NamedTuple):
    """A step of one episode, ready to be evaluated number by number."""

    program: Any
    states: list[jax.ShapeDtypeStruct]
    tree: Any


@lru_cache(maxsize=64)
def plan(task: Task, policy: Policy, greedy: bool = False) -> Plan | None:
    """How to play this task with this policy in the kernel, or None if it cannot."""
    if policy.size > LARGEST:
        return None
    state = jax.eval_shape(task.reset, key(0))
    states, tree = jax.tree.flatten(state)
    if sum(math.prod(leaf.shape) for leaf in states) > LARGEST_STATE:
        return None

    def step(x: Array, shift: Array, noise: Array, state: Any, key: Array) -> tuple:
        layers, log_std = policy.unpack(x)
        observation = task.observe(state)
        head = forward(layers, normalise(Normalizer(None, None, None, shift[0], shift[1]), observation))
        action = policy.mode(head) if greedy else policy.act(head, log_std, noise[0] if policy.discrete else noise)
        after, reward, costs, terminated = task.step(state, action, key)
        leaves = [a.astype(s.dtype) for a, s in zip(jax.tree.leaves(after), states)]
        seen = jnp.concatenate([observation, jnp.atleast_1d(action).astype(jnp.float32), jnp.stack([reward]), costs])
        return leaves, seen, policy.entropy(head, log_std), terminated

    shapes = jnp.zeros(policy.size), jnp.zeros((2, task.observation_size)), jnp.zeros(policy.noise_size), state, key(0)
    try:
        program, _, used = trace(step, *shapes)
    except UnsupportedError:
        return None
    return None if 3 + len(states) in used else Plan(program, states, tree)  # the last input is the key


def play(
    task: Task,
    policy: Policy,
    plan: Plan,
    x: Array,
    normalizer: Normalizer,
    keys: Array,
    start: Any,
    discount: float,
    record: bool,
    interpret: bool = False,
) -> tuple[Outcome, Trajectory | None]:
    """What `rollout` does, from the states in `start`."""
    batch, r = keys.shape[0], len(task.cost_names)
    padding = -batch % LANES

    def columns(a: Array) -> Array:
        return jnp.pad(a.reshape(math.prod(a.shape[:-1]), batch), ((0, 0), (0, padding)))

    words = jnp.concatenate([jax.random.key_data(keys).T, jnp.ones((1, batch), jnp.uint32)])  # padded ones never start
    leaves = [columns(_store(leaf)) for leaf in jax.tree.leaves(start)]
    inputs = [columns(x if x.ndim == 2 else jnp.broadcast_to(x[:, None], (x.size, batch))), columns(words), *leaves]
    specs = [pl.BlockSpec((a.shape[0], LANES), lambda i: (0, i)) for a in inputs]
    shift = jnp.stack([normalizer.mean, normalizer.std])
    inputs, specs = [*inputs, shift], [*specs, pl.BlockSpec(shift.shape, lambda i: (0, 0))]
    outputs = [jax.ShapeDtypeStruct((4 + r, batch + padding), jnp.float32)]
    out_specs = [pl.BlockSpec((4 + r, LANES), lambda i: (0, i))]
    aliases = {}
    if record:  # into zeros, which stay where no episode is alive
        rows = task.observation_size + policy.noise_size + 2 + r
        recorded = jnp.zeros((-(-task.max_steps // CHUNK) * CHUNK, rows, batch + padding))
        aliases = {len(inputs): 1}
        spec = pl.BlockSpec((*recorded.shape[:2], LANES), lambda i: (0, 0, i))
        inputs, specs = [*inputs, recorded], [*specs, spec]
        outputs, out_specs = [*outputs, jax.ShapeDtypeStruct(recorded.shape, jnp.float32)], [*out_specs, spec]
    totals, *recorded_out = pl.pallas_call(
        _kernel(task, policy, plan, discount, record),
        out_shape=outputs,
        grid=((batch + padding) // LANES,),
        in_specs=specs,
        out_specs=out_specs,
        input_output_aliases=aliases,
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        name="episodes",
    )(*inputs)
    totals = totals[:, :batch]
    outcome = Outcome(totals[0], totals[1], totals[4:], totals[2], totals[3])
    return outcome, unrecorded(task, policy, recorded_out[0][..., :batch]) if record else None


def _kernel(task: Task, policy: Policy, plan: Plan, discount: float, record: bool) -> Any:
    sizes = [math.prod(leaf.shape) for leaf in plan.states]

    def kernel(x_ref: Any, words_ref: Any, *refs: Any) -> None:
        state_refs, shift_ref = refs[: len(sizes)], refs[len(sizes)]
        totals_ref, recorded_ref = (refs[-2], refs[-1]) if record else (refs[-1], None)

        def parameters() -> Numbers:
            return numbers((policy.size,), (x_ref[i, :] for i in range(policy.size)))

        kept = parameters() if policy.size <= REGISTERS else None
        shift = numbers(shift_ref.shape, (shift_ref[i, j] for i, j in np.ndindex(*shift_ref.shape)))
        a, b = words_ref[0, :], words_ref[1, :]
        zero = jnp.zeros(LANES, jnp.float32)

        def body(carry: tuple) -> tuple:
            t, alive, flat, totals = carry
            parts, left = [], list(flat)
            for leaf, size in zip(plan.states, sizes):
                parts.append(numbers(leaf.shape, (_load(v, leaf.dtype) for v in left[:size])))
                left = left[size:]
            x = parameters() if kept is None else kept
            noise = numbers((policy.noise_size,), _noise(policy, a, b, t))
            *after, seen, entropy, terminated = evaluate(plan.program, x, shift, noise, *parts, np.empty((), object))
            now = alive != 0
            entries = [zero + v for v in seen.flat]  # the same for all episodes or not, a vector each
            reward, costs = (
                entries[len(entries) - 1 - len(task.cost_names)],
                entries[len(entries) - len(task.cost_names) :],
            )
            discounted = reward if discount == 1 else reward * jnp.exp(t.astype(jnp.float32) * math.log(discount))
            gains = [reward, discounted, zero + entropy[()], zero + 1, *costs]
            totals = tuple(total + jnp.where(now, gain, 0.0) for total, gain in zip(totals, gains, strict=True))
            if recorded_ref is not None:
                for i, value in enumerate([*entries, zero + 1]):
                    recorded_ref[t, i, :] = jnp.where(now, value, 0.0)
            new = [_store(v) for part in after for v in part.flat]
            flat = tuple(jnp.where(now, v, old) for v, old in zip(new, flat, strict=True))
            return t + 1, jnp.where(terminated[()], 0, alive), flat, totals

        def going_on(carry: tuple) -> Array:
            return (carry[0] < task.max_steps) & (jnp.max(carry[1]) > 0)

        flat = tuple(ref[i, :] for ref, size in zip(state_refs, sizes) for i in range(size))
        alive = words_ref[2, :].astype(jnp.int32)
        start = jnp.int32(0), alive, flat, (zero,) * (4 + len(task.cost_names))
        totals = jax.lax.while_loop(going_on, body, start)[3]
        for i, total in enumerate(totals):
            totals_ref[i, :] = total

    return kernel


def _noise(policy: Policy, a: Array, b: Array, t: Array) -> list[Array]:
    """The numbers that `rollout` draws for step t from the keys whose words are a and b."""
    a, b = folded(a, b, (-1 - t // CHUNK).astype(jnp.uint32))
    out = []
    for j in range(policy.noise_size):
        word, _ = bits(a, b, (t % CHUNK * policy.noise_size + j).astype(jnp.uint32))
        uniform = (word >> np.uint32(9)).astype(jnp.int32).astype(jnp.float32) * np.float32(2**-23)
        if not policy.discrete:
            low = np.nextafter(np.float32(-1), np.float32(0))
            uniform = np.float32(math.sqrt(2)) * jax.lax.erf_inv(uniform * (1 - low) + low)
        out.append(uniform)
    return out


def _store(value: Array) -> Array:
    return value.astype(jnp.int32) if value.dtype == np.bool_ else value


def _load(value: Array, kind: Any) -> Array:
    return value != 0 if kind == np.bool_ else value
