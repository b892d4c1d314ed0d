"""The device engine: whole iterations, episodes included, in one compiled JAX program on CPU or GPU.

The engine runs a `Program` for several seeds at once, a chunk of iterations a call. Seeds are spread over the devices there
are (CPU cores count as devices); where there are more devices than seeds, they share the episodes of a seed's iteration.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache, partial, wraps
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, PartitionSpec

from pcces.engines.arena import Program
from pcces.engines.keys import key, keys

Array = Any
CHUNK = {"cpu": 10, "gpu": 50}  # iterations a call: on a GPU they are short, and a call costs as much as three
SEEDS, EPISODES = "seeds", "episodes"  # axes of the device mesh
PRECISION = "float32"  # of products: a GPU would otherwise round their factors to ten bits


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


@cache
def compiler_options() -> dict[str, Any] | None:
    """On a CPU the older code generator, where XLA still has it: programs compile in half the time, and run as fast or, on
    few episodes, faster."""
    if jax.default_backend() != "cpu":
        return None
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:  # no such option: gone with JAX 0.11
        return None
    return options


def compiled(*static: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`jax.jit` with these options, which are looked up at the first call: before it, JAX need not have started."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @cache
        def program() -> Callable[..., Any]:
            return jax.jit(function, static_argnums=static, compiler_options=compiler_options())

        @wraps(function)
        def call(*args: Any) -> Any:
            with jax.default_matmul_precision(PRECISION):
                return program()(*args)

        return call

    return decorate


def gathered(values: Any) -> Any:
    """Every device's episodes (last axis), in order, of float arrays."""
    count = jax.lax.axis_size(EPISODES)
    if count == 1:
        return values
    leaves, tree = jax.tree.flatten(values)  # gathered in one array: devices wait for each other every time
    shapes = [(*leaf.shape[:-1], count * leaf.shape[-1]) for leaf in leaves]
    flat = [leaf.reshape(math.prod(shape[:-1]), leaf.shape[-1]) for leaf, shape in zip(leaves, shapes)]
    rows = jax.lax.all_gather(jnp.concatenate(flat), EPISODES, axis=1, tiled=True)
    parts = jnp.split(rows, np.cumsum([len(part) for part in flat])[:-1])
    return jax.tree.unflatten(tree, [part.reshape(shape) for part, shape in zip(parts, shapes)])


def summed(values: Any) -> Any:
    """Sums over the devices that share an iteration."""
    return values if jax.lax.axis_size(EPISODES) == 1 else jax.lax.psum(values, EPISODES)


def my_share(values: Any) -> Any:
    """This device's part of arrays whose last axis is episodes."""
    count = jax.lax.axis_size(EPISODES)
    if count == 1:
        return values

    def part(a: Array) -> Array:
        size = a.shape[-1] // count
        return jax.lax.dynamic_slice_in_dim(a, jax.lax.axis_index(EPISODES) * size, size, a.ndim - 1)

    return jax.tree.map(part, values)


def alone(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that sums over the devices that share its work, compiled for a single one.

    >>> print(alone(lambda x: summed(2 * x))(jnp.arange(3)))
    [0 2 4]
    """
    mesh = Mesh(np.array(jax.devices()[:1]), (EPISODES,), (AxisType.Auto,))
    everywhere = PartitionSpec()
    shared = jax.shard_map(function, mesh=mesh, in_specs=everywhere, out_specs=everywhere, check_vma=False)
    program = jax.jit(shared, compiler_options=compiler_options())

    def call(*args: Any) -> Any:
        with jax.default_matmul_precision(PRECISION):
            return program(*args)

    return call


def each_seed(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function for every seed (first axis): side by side on a GPU, which has room for them, and one after the
    other on a CPU core, where side by side would take twice as long (XLA's batched products are slow there)."""
    if jax.default_backend() == "cpu":
        return jax.lax.map(lambda row: function(*row), args)
    return jax.vmap(function)(*args)


def spread(seeds: int, shares: int, devices: int) -> tuple[int, int]:
    """How many devices to have seeds of their own, and how many to share each seed's episodes: as many as can be used in
    all, and rather apart than together.

    >>> spread(10, 30, 16), spread(1, 16, 8), spread(10, 16, 16), spread(3, 1, 2)
    ((5, 3), (1, 8), (2, 8), (1, 1))
    """

    def divisors(n: int) -> list[int]:
        return [d for d in range(1, min(n, devices) + 1) if n % d == 0]

    pairs = [(a, w) for a in divisors(seeds) for w in divisors(shares) if a * w <= devices]
    return max(pairs, key=lambda pair: (pair[0] * pair[1], pair[0]))


class Packing:
    """Lays the metrics of an iteration out in one row per type: a loop compiles and runs slower for every buffer it fills."""

    def __init__(self, metrics: Any):
        leaves, self.tree = jax.tree.flatten(metrics)
        self.shapes = [leaf.shape[1:] for leaf in leaves]  # without the axis of seeds
        types = [leaf.dtype for leaf in leaves]
        self.groups = [[i for i, other in enumerate(types) if other == kind] for kind in dict.fromkeys(types)]

    def pack(self, metrics: Any) -> list[Array]:
        """(seeds, row) for each type."""
        leaves = jax.tree.leaves(metrics)
        return [
            jnp.concatenate([leaves[i].reshape(len(leaves[i]), math.prod(self.shapes[i])) for i in group], axis=1)
            for group in self.groups
        ]

    def unpack(self, packed: list[np.ndarray]) -> Any:
        """The metrics in what rows (seeds, iterations, row) hold."""
        leaves: list[Any] = [None] * len(self.shapes)
        for row, group in zip(packed, self.groups):
            ends = np.cumsum([math.prod(self.shapes[i]) for i in group])
            for i, part in zip(group, np.split(row, ends[:-1], axis=-1)):
                leaves[i] = part.reshape(*part.shape[:-1], *self.shapes[i])
        return jax.tree.unflatten(self.tree, leaves)


class Iterations:
    """Some iterations of a program for several seeds, as one compiled program."""

    def __init__(self, program: Program, mesh: Mesh, chunk: int, seeds: int):
        self.program, self.chunk = program, chunk
        by_seed, everywhere = PartitionSpec(SEEDS), PartitionSpec()
        self._advance = jax.jit(
            jax.shard_map(
                self._chunk,
                mesh=mesh,
                in_specs=(by_seed, by_seed, everywhere),
                out_specs=by_seed,
                check_vma=False,
            ),
            compiler_options=compiler_options(),
        )
        self._compiling = ThreadPoolExecutor(1).submit(self._compile, seeds)

    def _compile(self, seeds: int) -> Any:
        """Compile an iteration while the first policies are being drawn, which compiles programs of its own."""
        keys = jax.eval_shape(jax.vmap(key), jax.ShapeDtypeStruct((seeds,), jnp.uint32))
        count = jax.ShapeDtypeStruct((), jnp.int32)
        with jax.default_matmul_precision(PRECISION):
            return self._advance.lower(template(self.program, keys), keys, count).compile()

    def _chunk(self, states: Any, keys: Array, count: Array) -> tuple[Any, list[Array]]:
        iteration = jax.jit(partial(each_seed, self.program.step))  # traced once, used twice
        metrics = jax.eval_shape(iteration, states, keys)[1]
        self._packing = Packing(metrics)
        buffers = [
            jnp.zeros((self.chunk, *part.shape), part.dtype) for part in jax.eval_shape(self._packing.pack, metrics)
        ]

        def body(i: Array, carry: tuple) -> tuple:
            states, buffers = carry
            states, metrics = iteration(states, keys)
            write = partial(jax.lax.dynamic_update_index_in_dim, index=i, axis=0)
            return states, [write(all_, new) for all_, new in zip(buffers, self._packing.pack(metrics))]

        states, buffers = jax.lax.fori_loop(0, count, body, (states, buffers))
        return states, [buffer.swapaxes(0, 1) for buffer in buffers]  # seeds first

    def __call__(self, states: Any, keys: Array, count: int) -> tuple[Any, dict[str, Any]]:
        """The states after so many iterations, and their metrics with the axes (seeds, iterations, ...)."""
        try:
            program = self._compiling.result()
        except Exception:
            iterations.cache_clear()  # the next one may have more memory, say
            raise
        states, packed = program(states, keys, jnp.int32(count))
        return states, self._packing.unpack([np.asarray(part)[:, :count] for part in packed])


@lru_cache(maxsize=8)
def iterations(program: Program, mesh: Mesh, chunk: int, seeds: int, doubles: bool) -> Iterations:
    """They are compiled once for all runs that differ only in their seeds. `doubles` says whether JAX has 64 bits now."""
    return Iterations(program, mesh, chunk, seeds)


def template(program: Program, keys: Array) -> Any:
    """The structure of the states of all seeds."""
    return jax.eval_shape(jax.vmap(program.blank), keys)


class DeviceEngine:
    """Runs a program for several seeds side by side."""

    def __init__(self, program: Program, seeds: Sequence[int], devices: Sequence[Any] | None = None):
        self.chunk = program.chunk or CHUNK.get(jax.default_backend(), CHUNK["cpu"])
        self.program, self.seeds = program, tuple(seeds)
        self.spent_at_start: Any = None
        devices = jax.devices() if devices is None else devices
        across, within = spread(len(self.seeds), program.shares, len(devices))
        self.mesh = Mesh(
            np.array(devices[: across * within]).reshape(across, within), (SEEDS, EPISODES), (AxisType.Auto,) * 2
        )
        self._keys = keys(self.seeds)
        self._iterations = iterations(
            program, self.mesh, self.chunk, len(self.seeds), bool(jax.config.values["jax_enable_x64"])
        )

    def start(self, given: Any = None) -> Any:
        """The states of all seeds before the first iteration; the first axis of every array is seeds."""
        if jax.default_backend() == "cpu":  # one by one, as in `each_seed`; and a program of one seed compiles sooner
            started = [self.program.init(seed_key, given) for seed_key in self._keys]
            states, spent = jax.tree.map(lambda *parts: np.stack([np.asarray(part) for part in parts]), *started)
        else:
            states, spent = jax.tree.map(np.asarray, jax.vmap(lambda key: self.program.init(key, given))(self._keys))
        self.spent_at_start = spent
        return states

    def advance(self, states: Any, count: int) -> tuple[Any, dict[str, Any]]:
        """Up to `chunk` iterations; metrics have the axes (seeds, iterations, ...)."""
        states, metrics = self._iterations(states, self._keys, count)
        return jax.tree.map(np.asarray, states), metrics

    def template(self) -> Any:
        """The structure of the states, without their content."""
        return template(self.program, self._keys)
