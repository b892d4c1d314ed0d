"""Ctrl-C at a moment that suits us."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back an interrupt until the block is done, so that what belongs together is written together.

    >>> noted = []
    >>> try:
    ...     with uninterrupted():
    ...         signal.raise_signal(signal.SIGINT)
    ...         noted.append("done all the same")
    ... except KeyboardInterrupt:
    ...     noted.append("then interrupted")
    >>> noted
    ['done all the same', 'then interrupted']
    """
    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread only
        yield
        return
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
    if came:
        signal.raise_signal(signal.SIGINT)
