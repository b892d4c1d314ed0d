"""One BLAS thread for small matrices: on a busy machine, threads that wait for each other cost ten times the work itself."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """While this context is open, BLAS and LAPACK use one thread.

    >>> with one_blas_thread():
    ...     pass
    """
    return _controller().limit(limits=1, user_api="blas")
