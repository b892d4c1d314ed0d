"""Arrays taken apart: every number in them a vector with one entry for each of many episodes.

A (4,) state becomes four vectors. Shapes, slices and small products then cost nothing, and what remains are elementwise
operations on vectors, which is what a GPU kernel can do. A number that is the same for all episodes, and known
beforehand, stays a plain number: what is done with such ones alone is done while the kernel is written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any
LANES = 32  # episodes that a program of a kernel plays: one warp, a lane each
Numbers = np.ndarray  # of objects: vectors, one entry per episode, or numbers that are the same for all


class UnsupportedError(Exception):
    """The function does something that this way of running it cannot do."""


def as_numbers(values: np.ndarray) -> Numbers:
    """An array of objects, one for each number."""
    return numbers(values.shape, values.flat)


def numbers(shape: tuple[int, ...], flat: Iterable[Any]) -> Numbers:
    """Vectors in the shape they stand for."""
    out = np.empty(math.prod(shape), dtype=object)
    for i, value in enumerate(flat):
        out[i] = value
    return out.reshape(shape)


def apply(operation: Callable[..., Array], *args: Any) -> Array:
    """An elementwise operation on vectors and numbers."""
    if all(isinstance(a, np.generic) for a in args):  # known now: no work for a kernel
        with jax.ensure_compile_time_eval():
            return np.asarray(operation(*args))[()]
    size = max((a.shape for a in args if hasattr(a, "shape")), default=(), key=len)
    if size:
        args = tuple(
            a if np.shape(a) else lax.full(size, a, a.dtype) if _known(a) else jnp.broadcast_to(a, size) for a in args
        )
    return operation(*args)


def _known(a: Any) -> bool:
    return not isinstance(a, jax.core.Tracer)
