"""One BLAS thread for small matrices: on a busy machine, threads that wait for each other cost ten times the work itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While this context is open, BLAS and LAPACK use one thread.

    >>> with one_blas_thread():
    ...     pass
    """
    # threadpoolctl's own context manager asks every library many questions, which costs more than a small product.
    many = [(library, threads) for library in _libraries() if (threads := library.get_num_threads()) > 1]
    for library, _ in many:
        library.set_num_threads(1)
    try:
        yield
    finally:
        for library, threads in many:
            library.set_num_threads(threads)
