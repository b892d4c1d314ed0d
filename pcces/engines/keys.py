"""Random keys whose hash is short: pcg3d (Jarzynski and Olano, JCGT 2020), as a generator for `jax.random`.

JAX's own threefry is cryptographic, which simulations do not need: here it made programs a third slower to compile and
a fifth slower to run. Everything in `jax.random` works with these keys; equal seeds give equal numbers on any device.
"""

from __future__ import annotations

from functools import partial
from typing import Any

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
    return jax.random.key(jnp.asarray(seed, dtype=jnp.uint32), impl=_PCG3D)


def ours(keys: Array) -> bool:
    """Whether keys are of this kind."""
    return jax.random.key_impl(keys) == jax.random.key_impl(key(0))
