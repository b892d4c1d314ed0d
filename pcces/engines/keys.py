"""Random keys whose hash is short: pcg3d (Jarzynski and Olano, JCGT 2020), as a generator for `jax.random`.

JAX's own threefry is cryptographic, which simulations do not need: here it made programs a third slower to compile and
a fifth slower to run. Everything in `jax.random` works with these keys; equal seeds give equal numbers on any device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl

Array = Any


@partial(jax.jit, inline=True)  # compiled as a whole also where keys are made outside of a program
def pcg3d(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
    """Hash three 32-bit words into three."""

    def stir(a: Array, b: Array, c: Array) -> tuple[Array, Array, Array]:
        a = a + b * c
        b = b + c * a
        return a, b, c + a * b

    a, b, c = stir(*(word * np.uint32(1664525) + np.uint32(1013904223) for word in (a, b, c)))
    return stir(*(word ^ (word >> np.uint32(16)) for word in (a, b, c)))


def _seed(seed: Array) -> Array:
    low = seed.astype(jnp.uint32)
    return jnp.stack([jnp.zeros_like(low), low])


def _count(shape: tuple[int, ...]) -> Array:
    return jax.lax.iota(np.uint32, int(np.prod(shape))).reshape(shape)


def bits(a: Array, b: Array, count: Array) -> tuple[Array, Array]:
    """Random words number `count` of the key (a, b)."""
    return pcg3d(a, b, count)[:2]


# The constants keep the streams of split and fold_in apart from those of the bits.
def folded(a: Array, b: Array, data: Array) -> tuple[Array, Array]:
    """The key that comes of folding a number into the key (a, b)."""
    return pcg3d(a ^ np.uint32(0x85EBCA6B), b, data)[:2]


def _bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    first, second = bits(key[0], key[1], _count(shape))
    if width == 64:
        return (first.astype(jnp.uint64) << np.uint64(32)) | second.astype(jnp.uint64)
    return first if width == 32 else first.astype({8: jnp.uint8, 16: jnp.uint16}[width])


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    first, second, _ = pcg3d(key[0], key[1] ^ np.uint32(0x9E3779B9), _count(shape))
    return jnp.stack([first, second], axis=-1)


def _fold_in(key: Array, data: Array) -> Array:
    return jnp.stack(folded(key[0], key[1], data))


_PCG3D = define_prng_impl(
    key_shape=(2,), seed=_seed, split=_split, random_bits=_bits, fold_in=_fold_in, name="pcg3d", tag="pcg3d"
)


def key(seed: int | Array) -> Array:
    """A key for `jax.random`.

    >>> bool(jax.random.uniform(key(0)) == jax.random.uniform(key(0)))
    True
    """
    if isinstance(seed, int | np.integer):
        return jax.random.wrap_key_data(jnp.array(divmod(int(seed), 2**32), dtype=jnp.uint32), impl=_PCG3D)
    return jax.random.key(jnp.asarray(seed, dtype=jnp.uint32), impl=_PCG3D)


def keys(seeds: Sequence[int]) -> Array:
    """The keys of several seeds, of up to 64 bits: their two words are the key's.

    >>> bool(jnp.all(jax.random.key_data(keys([5, 2**32 + 5])) == jnp.array([[0, 5], [1, 5]])))
    True
    """
    words = jnp.array([divmod(int(seed), 2**32) for seed in seeds], dtype=jnp.uint32)
    return jax.random.wrap_key_data(words, impl=_PCG3D)


def ours(keys: Array) -> bool:
    """Whether keys are of this kind."""
    return jax.random.key_impl(keys) == jax.random.key_impl(key(0))


class Noise(NamedTuple):
    """The random numbers of an episode's steps: normal ones, or uniform in [0, 1). A chunk of steps draws its own at once."""

    size: int
    """numbers per step"""
    normal: bool
    chunk: int
    """steps"""

    def drawn(self, key: Array, number: Array) -> Array:
        """The numbers (chunk, size) of chunk `number` in the episode of this key."""
        draw = jax.random.normal if self.normal else jax.random.uniform
        return draw(jax.random.fold_in(key, -1 - number), (self.chunk, self.size))

    def of_step(self, a: Array, b: Array, t: Array) -> list[Array]:
        """Those of step t alone, from the two words (a, b) of a key of ours: what a GPU kernel can compute."""
        a, b = folded(a, b, (-1 - t // self.chunk).astype(jnp.uint32))
        out = []
        for j in range(self.size):
            word, _ = bits(a, b, (t % self.chunk * self.size + j).astype(jnp.uint32))
            uniform = (word >> np.uint32(9)).astype(jnp.int32).astype(jnp.float32) * np.float32(2**-23)
            if self.normal:
                low = np.nextafter(np.float32(-1), np.float32(0))
                uniform = np.float32(math.sqrt(2)) * jax.lax.erf_inv(uniform * (1 - low) + low)
            out.append(uniform)
        return out
