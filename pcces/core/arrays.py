"""Which library an array belongs to: NumPy and JAX both speak the array API themselves, so asking the array is enough."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

Array = Any  # numpy.ndarray, jax.Array, ...: anything that speaks the array API


def array_namespace(x: Array) -> Any:
    """The functions that go with an array.

    >>> import numpy as np
    >>> array_namespace(np.ones(2)).__name__
    'numpy'
    """
    return x.__array_namespace__()


def gpu_kernels() -> bool:
    """Whether JAX has a GPU, and a way to write kernels for it: JAX 0.12 means to drop Pallas on Triton some day."""
    import jax

    return jax.default_backend() == "gpu" and find_spec("jax.experimental.pallas.triton") is not None
