"""Whole episodes in one GPU kernel.

Step by step, an episode on a GPU costs a few kernel launches a step, whatever the number of episodes. Here a program of
32 lanes, one episode each, runs from the first step to the last: parameters and state stay in registers, and the
program ends when its last episode has.

What a step does is the caller's: a function of one episode, which is traced and then evaluated number by number
(`programs`). Steps with open-ended loops or random numbers of their own, and large ones, are not for this kernel:
`episode` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from pcces.engines.kernels.numbers import LANES, Numbers, UnsupportedError, numbers
from pcces.engines.kernels.programs import evaluate, trace
from pcces.engines.keys import Noise

Array = Any
REGISTERS = 200  # parameters a lane keeps in registers; more are read anew at every step
LARGEST = 1500  # parameters, and
LARGEST_STATE = 64  # numbers in a state, above which code of one instruction a number would be too long


class KernelEpisode(NamedTuple):
    """A step of one episode, ready to be evaluated number by number, and what goes in and comes out of it."""

    program: Any
    parameters: int
    states: list[jax.ShapeDtypeStruct]
    noise: Noise
    gains: int
    row: int
    max_steps: int

    @property
    def recorded_steps(self) -> int:
        """Rows that a recording has room for: whole chunks."""
        return -(-self.max_steps // self.noise.chunk) * self.noise.chunk


def episode(
    step: Callable[..., Any], parameters: int, shared: tuple[int, ...], noise: Noise, state: Any, max_steps: int
) -> KernelEpisode | None:
    """How to play such episodes in the kernel, or None if that cannot be.

    `step` takes parameters (n,), numbers of shape `shared` that all episodes share, the noise of the step, its number and
    the state. It gives the next state, gains that are summed over the episode, a row that may be recorded, and whether
    the episode ends.
    """
    states = jax.tree.leaves(state)
    if parameters > LARGEST or sum(math.prod(leaf.shape) for leaf in states) > LARGEST_STATE:
        return None

    def flat_step(*inputs: Any) -> tuple:
        after, gains, row, terminated = step(*inputs)
        return [a.astype(s.dtype) for a, s in zip(jax.tree.leaves(after), states)], gains, row, terminated

    try:
        program, (_, gains, row, _), _ = trace(
            flat_step, jnp.zeros(parameters), jnp.zeros(shared), jnp.zeros(noise.size), jnp.int32(0), state
        )
    except UnsupportedError:
        return None
    return KernelEpisode(program, parameters, states, noise, gains.size, row.size, max_steps)


def play(
    episode: KernelEpisode,
    x: Array,
    shared: Array,
    words: Array,
    start: Any,
    record: bool = False,
    interpret: bool = False,
) -> tuple[Array, Array | None]:
    """The summed gains (gains, B) of episodes from the states in `start`, and their rows (T, row, B) if recorded.

    Parameters x (n,) are for all episodes, or (n, B) for each its own; words (2, B) are those of the keys of their noise.
    A recording has zeros from the end of an episode on. `interpret` runs the kernel on a CPU, for tests.
    """
    batch = words.shape[1]
    padding = -batch % LANES

    def columns(a: Array) -> Array:
        return jnp.pad(a.reshape(math.prod(a.shape[:-1]), batch), ((0, 0), (0, padding)))

    words = jnp.concatenate([words, jnp.ones((1, batch), jnp.uint32)])  # padded ones never start
    leaves = [columns(_store(leaf)) for leaf in jax.tree.leaves(start)]
    inputs = [columns(x if x.ndim == 2 else jnp.broadcast_to(x[:, None], (x.size, batch))), columns(words), *leaves]
    specs = [pl.BlockSpec((a.shape[0], LANES), lambda i: (0, i)) for a in inputs]
    inputs, specs = [*inputs, shared], [*specs, pl.BlockSpec(shared.shape, lambda i: (0,) * shared.ndim)]
    outputs = [jax.ShapeDtypeStruct((episode.gains, batch + padding), jnp.float32)]
    out_specs = [pl.BlockSpec((episode.gains, LANES), lambda i: (0, i))]
    aliases = {}
    if record:  # into zeros, which stay where no episode is alive
        recorded = jnp.zeros((episode.recorded_steps, episode.row, batch + padding))
        aliases = {len(inputs): 1}
        spec = pl.BlockSpec((*recorded.shape[:2], LANES), lambda i: (0, 0, i))
        inputs, specs = [*inputs, recorded], [*specs, spec]
        outputs, out_specs = [*outputs, jax.ShapeDtypeStruct(recorded.shape, jnp.float32)], [*out_specs, spec]
    totals, *recorded_out = pl.pallas_call(
        _kernel(episode, record),
        out_shape=outputs,
        grid=((batch + padding) // LANES,),
        in_specs=specs,
        out_specs=out_specs,
        input_output_aliases=aliases,
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
        name="episodes",
    )(*inputs)
    return totals[:, :batch], recorded_out[0][..., :batch] if record else None


def _kernel(episode: KernelEpisode, record: bool) -> Any:
    sizes = [math.prod(leaf.shape) for leaf in episode.states]

    def kernel(x_ref: Any, words_ref: Any, *refs: Any) -> None:
        state_refs, shared_ref = refs[: len(sizes)], refs[len(sizes)]
        totals_ref, recorded_ref = (refs[-2], refs[-1]) if record else (refs[-1], None)

        def parameters() -> Numbers:
            return numbers((episode.parameters,), (x_ref[i, :] for i in range(episode.parameters)))

        kept = parameters() if episode.parameters <= REGISTERS else None
        shared = numbers(shared_ref.shape, (shared_ref[i] for i in np.ndindex(*shared_ref.shape)))
        a, b = words_ref[0, :], words_ref[1, :]
        zero = jnp.zeros(LANES, jnp.float32)

        def body(carry: tuple) -> tuple:
            t, alive, flat, totals = carry
            parts, left = [], list(flat)
            for leaf, size in zip(episode.states, sizes):
                parts.append(numbers(leaf.shape, (_load(v, leaf.dtype) for v in left[:size])))
                left = left[size:]
            x = parameters() if kept is None else kept
            noise = numbers((episode.noise.size,), episode.noise.of_step(a, b, t))
            *after, gains, row, terminated = evaluate(episode.program, x, shared, noise, numbers((), [t]), *parts)
            now = alive != 0
            # A number may be the same for all episodes: zero makes it a vector.
            totals = tuple(
                total + jnp.where(now, zero + gain, 0.0) for total, gain in zip(totals, gains.flat, strict=True)
            )
            if recorded_ref is not None:
                for i, value in enumerate(row.flat):
                    recorded_ref[t, i, :] = jnp.where(now, zero + value, 0.0)
            new = [_store(v) for part in after for v in part.flat]
            flat = tuple(jnp.where(now, v, old) for v, old in zip(new, flat, strict=True))
            return t + 1, jnp.where(terminated[()], 0, alive), flat, totals

        def going_on(carry: tuple) -> Array:
            return (carry[0] < episode.max_steps) & (jnp.max(carry[1]) > 0)

        flat = tuple(ref[i, :] for ref, size in zip(state_refs, sizes) for i in range(size))
        alive = words_ref[2, :].astype(jnp.int32)
        start = jnp.int32(0), alive, flat, (zero,) * episode.gains
        totals = jax.lax.while_loop(going_on, body, start)[3]
        for i, total in enumerate(totals):
            totals_ref[i, :] = total

    return kernel


def _store(value: Array) -> Array:
    return value.astype(jnp.int32) if value.dtype == np.bool_ else value


def _load(value: Array, kind: Any) -> Array:
    return value != 0 if kind == np.bool_ else value
