"""Which library an array belongs to: NumPy and JAX both speak the array API themselves, so asking the array is enough."""

from __future__ import annotations

from typing import Any

Array = Any  # numpy.ndarray, jax.Array, ...: anything that speaks the array API


def array_namespace(x: Array) -> Any:
    """The functions that go with an array.

    >>> import numpy as np
    >>> array_namespace(np.ones(2)).__name__
    'numpy'
    """
    return x.__array_namespace__()
