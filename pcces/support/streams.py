"""Standard output and standard error: who may write to them, and what to do where they are closed, full, or read no more."""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import sys
from collections.abc import Iterator
from typing import IO, cast

STDOUT, STDERR = 1, 2  # as the operating system numbers them


class _Unfailing(io.TextIOBase):
    """Standard error, which never fails."""

    def __init__(self) -> None:
        self._stream = io.StringIO() if sys.stderr is None else sys.stderr

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of standard error."""
        return self._stream.encoding or "utf-8"

    def write(self, text: str) -> int:
        """Write it if that can be done."""
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is closed
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Likewise."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        with contextlib.suppress(ValueError):
            return self._stream.isatty()
        return False

    def fileno(self) -> int:
        """Its number for the operating system."""
        return self._stream.fileno()


def stderr() -> IO[str]:
    """Standard error for whoever looks: what cannot be written there is lost, which is never a reason to stop.

    It may be closed, on a full disk, a pipe that nobody reads any more, a terminal that is gone, or None.

    >>> with contextlib.redirect_stderr(None):
    ...     stream = stderr()
    >>> stream.write("nobody hears this"), stream.isatty()
    (17, False)
    """
    return cast(IO[str], _Unfailing())


def say(text: str) -> None:
    """A line on standard error, if that can be written to."""
    print(text, file=stderr(), flush=True)


def is_terminal() -> bool:
    """Whether standard error is a terminal."""
    return stderr().isatty()


@contextlib.contextmanager
def results_apart() -> Iterator[None]:
    """What is printed meanwhile, by whomever, goes to standard error: simulators, processes started here, code in C.

    Standard output is for results alone.
    """
    with _redirected({STDOUT: STDERR}), contextlib.redirect_stdout(stderr()):
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what C code prints (PyBullet does, into standard output) from the user's eyes."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        with _redirected({STDOUT: nowhere, STDERR: nowhere}):
            yield
    finally:
        os.close(nowhere)


@contextlib.contextmanager
def _redirected(targets: dict[int, int]) -> Iterator[None]:
    """Let descriptors lead elsewhere; what is closed, or cannot be copied, is left alone."""
    _flush()
    saved = {}
    for descriptor, target in targets.items():
        with contextlib.suppress(OSError):
            saved[descriptor] = os.dup(descriptor)
            os.dup2(target, descriptor)
    try:
        yield
    finally:
        _flush()
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
            os.close(copy)


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError):
        if sys.stdout is not None:
            sys.stdout.flush()
    with contextlib.suppress(OSError, TypeError):  # TypeError: on Windows
        ctypes.CDLL(None).fflush(None)  # C has buffers of its own


def open_closed_ones() -> None:
    """Let standard streams that are closed lead nowhere. Files opened later would take their numbers, and hear what C prints."""
    for descriptor in (0, STDOUT, STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (as long as the process lives)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def let_go() -> None:
    """Before the process ends: what a stream cannot take any more is dropped, for Python would make an exit code of it."""
    for descriptor, stream in ((STDOUT, sys.stdout), (STDERR, sys.stderr)):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)
