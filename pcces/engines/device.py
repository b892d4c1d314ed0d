"""The device engine: whole iterations, episodes included, in one compiled JAX program on CPU or GPU.

A `Program` is an algorithm as two pure functions; the engine runs it for several seeds at once, a chunk of iterations
a call. Seeds are spread over the devices there are (CPU cores count as devices); where there are more devices than
seeds, they share the episodes of a seed's iteration.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec

from pcces.envs.task import Task
from pcces.rl.keys import key
from pcces.rl.normalizer import Normalizer
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy
from pcces.rl.rollout import rollout

Array = Any
CHUNK = 10  # iterations a call
SEEDS, EPISODES = "seeds", "episodes"  # axes of the device mesh
PLAY_BATCH = 1024  # episodes played at once for evaluations and certificates


class Program(NamedTuple):
    """An algorithm on the device, for one seed."""

    init: Callable[[Array], Any]
    """key -> state; may call several compiled functions, and is itself not compiled"""
    step: Callable[[Any, Array], tuple[Any, dict[str, Array]]]
    """state, key -> state, metrics. Everything random is a function of the key and the state's iteration."""
    shares: int
    """a number of devices may share an iteration's episodes if it divides this"""
    blank: Callable[[Array], Any] | None = None
    """key -> any state, traced for its structure; None: `init` is, which must then call nothing that is `compiled`"""


def configure() -> None:
    """Use every core as a device, and keep compiled programs between runs. To be called before JAX is first used;
    afterwards, or where the user set these things, it leaves everything as it is."""
    cache = os.environ.get("PCCES_CACHE", str(Path.home() / ".cache" / "pcces"))
    if jax.config.values["jax_compilation_cache_dir"] is None:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    try:
        jax.config.update("jax_num_cpu_devices", len(os.sched_getaffinity(0)))
    except RuntimeError:  # JAX is running already: take the devices it has
        return


def gathered(values: Any) -> Any:
    """Every device's episodes (last axis), in order."""
    return jax.tree.map(lambda a: jax.lax.all_gather(a, EPISODES, axis=a.ndim - 1, tiled=True), values)


def summed(values: Any) -> Any:
    """Sums over the devices that share an iteration."""
    return jax.lax.psum(values, EPISODES)


def my_share(values: Any) -> Any:
    """This device's part of arrays whose last axis is episodes."""
    count = jax.lax.axis_size(EPISODES)

    def part(a: Array) -> Array:
        size = a.shape[-1] // count
        return jax.lax.dynamic_slice_in_dim(a, jax.lax.axis_index(EPISODES) * size, size, a.ndim - 1)

    return jax.tree.map(part, values)


class Player:
    """Plays episodes of single policies, for evaluations and certificates."""

    def __init__(self, task: Task, policy: Policy):
        self.task, self.policy = task, policy

    def play(self, x: np.ndarray, normalizer: Normalizer, episodes: int, seed: int, greedy: bool = False) -> Outcome:
        """Fresh episodes of one policy."""
        parts = []
        for number in range(-(-episodes // PLAY_BATCH)):
            size = min(PLAY_BATCH, episodes)
            keys = jax.random.split(jax.random.fold_in(key(seed), number), size)
            outcome = play_batch(self.task, self.policy, jnp.asarray(x), normalizer, keys, greedy)
            parts.append(jax.tree.map(np.asarray, outcome))
        return Outcome(*(np.concatenate(part, axis=-1)[..., :episodes] for part in zip(*parts)))


class DeviceEngine(Player):
    """Runs a program for several seeds side by side."""

    chunk = CHUNK

    def __init__(self, task: Task, policy: Policy, program: Program, seeds: Sequence[int]):
        super().__init__(task, policy)
        self.program, self.seeds = program, tuple(seeds)
        devices = jax.devices()
        across = math.gcd(len(self.seeds), len(devices))
        within = math.gcd(program.shares, len(devices) // across)
        self.mesh = Mesh(
            np.array(devices[: across * within]).reshape(across, within), (SEEDS, EPISODES), (AxisType.Auto,) * 2
        )
        self._keys = jax.vmap(key)(jnp.array(self.seeds, dtype=jnp.uint32))
        by_seed, everywhere = PartitionSpec(SEEDS), PartitionSpec()
        self._advance = jax.jit(
            jax.shard_map(
                self._chunk,
                mesh=self.mesh,
                in_specs=(by_seed, by_seed, everywhere),
                out_specs=by_seed,
                check_vma=False,
            )
        )
        self._compiling = ThreadPoolExecutor(1).submit(self._compile)

    def _compile(self) -> Any:
        """Compile an iteration while the first policies are being drawn, which compiles programs of its own."""
        states = jax.eval_shape(jax.vmap(self.program.init), self._keys)
        count = jax.ShapeDtypeStruct((), jnp.int32)
        return self._advance.lower(states, self._keys, count).compile()

    def _chunk(self, states: Any, keys: Array, count: Array) -> tuple[Any, dict[str, Array]]:
        one = jax.vmap(self.program.step)
        shapes = jax.eval_shape(one, states, keys)[1]
        # Seeds stay the first axis, iterations are the second.
        buffers = jax.tree.map(lambda s: jnp.zeros((s.shape[0], CHUNK, *s.shape[1:]), s.dtype), shapes)

        def body(i: Array, carry: tuple) -> tuple:
            states, buffers = carry
            states, metrics = one(states, keys)
            write = partial(jax.lax.dynamic_update_index_in_dim, index=i, axis=1)
            return states, jax.tree.map(write, buffers, metrics)

        return jax.lax.fori_loop(0, count, body, (states, buffers))

    def start(self) -> Any:
        """The states of all seeds before the first iteration; the first axis of every array is seeds."""
        return jax.tree.map(np.asarray, jax.vmap(self.program.init)(self._keys))

    def advance(self, states: Any, count: int) -> tuple[Any, dict[str, Any]]:
        """Up to CHUNK iterations; metrics have the axes (seeds, iterations, ...)."""
        states, metrics = self._compiling.result()(states, self._keys, jnp.int32(count))
        return jax.tree.map(np.asarray, states), jax.tree.map(lambda a: np.asarray(a)[:, :count], metrics)

    def template(self) -> Any:
        """The structure of the states, without their content."""
        return jax.eval_shape(jax.vmap(self.program.init), self._keys)


@partial(jax.jit, static_argnums=(0, 1, 5))
def play_batch(
    task: Task, policy: Policy, x: Array, normalizer: Normalizer, keys: Array, greedy: bool = False
) -> Outcome:
    """One episode per key of the policy x."""
    return rollout(task, policy, x, normalizer, keys, greedy=greedy)[0]
