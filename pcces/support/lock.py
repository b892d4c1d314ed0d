"""One process at a time in a folder: a lock that ends with its process, however that ends."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pcces.support.text import printable

NAME = ".lock"
MOMENTS, MOMENT = 20, 0.05  # how often, and after how many seconds, to look again who it is
FREE_BYTE = 1 << 30  # what Windows locks it also hides: a place that holds nothing


class FolderInUseError(OSError):
    """Another process works in the folder."""


@contextlib.contextmanager
def alone_in(folder: str | Path) -> Iterator[None]:
    """Have a folder to oneself, which is made if there is none; a FolderInUseError says who else has it.

    The operating system takes the lock back when this process ends, also when it is killed: a file that is left means nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, alone_in(folder):
    ...     with alone_in(folder):
    ...         pass
    Traceback (most recent call last):
    ...
    pcces.support.lock.FolderInUseError: ...
    """
    path = Path(folder) / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _taken(path)
    try:
        with contextlib.suppress(OSError):  # what stands in it is for people, and a full disk stops us soon enough
            file.seek(0)
            file.truncate()
            file.write(f"{os.getpid()} on {socket.gethostname()}\n")
            file.flush()
        yield
    finally:
        with contextlib.suppress(OSError):
            if sys.platform == "win32":  # an open file cannot be removed there
                file.close()
            path.unlink()
        with contextlib.suppress(OSError):
            file.close()


def check_free(folder: str | Path) -> None:
    """Raise a FolderInUseError if another process works in this folder."""
    path = Path(folder) / NAME
    if path.exists():
        _taken(path).close()


def _taken(path: Path) -> IO[str]:
    """The file, open and locked."""
    looked = 0
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644), "r+")
        try:
            locked = _lock(file)
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS):
                return file  # a file system without locks: there is nothing to be done
            file.close()
            raise
        if not locked:
            with file:
                who = printable(file.read(200).strip())
            looked += 1
            if not who and looked < MOMENTS:  # its owner is about to write it, or it was only looked at
                time.sleep(MOMENT)
                continue
            raise FolderInUseError(
                f"another process works in {path.parent} ({who or 'nobody says which'}): wait for it or end it, or give "
                "another folder"
            )
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # the one before has just removed it


def _lock(file: IO[str]) -> bool:
    if sys.platform == "win32":
        import msvcrt

        file.seek(FREE_BYTE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(0)
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
