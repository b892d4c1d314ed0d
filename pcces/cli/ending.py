"""The end of a command: results on standard output, everything else on standard error, and an exit code.

0 done, and certified or without limits; 1 done, but not certified; 2 the request cannot be met; 3 the work failed (a full disk,
a worker that cannot start, a bug of pcces); 130 interrupted.
"""

from __future__ import annotations

import errno
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from pcces.engines.pool import PoolError
from pcces.envs.costs import CostError
from pcces.support.streams import results_apart, say
from pcces.support.text import printable

NOT_CERTIFIED, REFUSED, FAILED, INTERRUPTED = 1, 2, 3, 130
FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class _Results:
    """What a command has told so far; `terminal`: whether standard output is one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.terminal = sys.stdout is not None and sys.stdout.isatty()


_results: _Results | None = None  # of the command that runs


def tell(line: str) -> None:
    """Add a line to the results, which are written at the end of the command."""
    if _results is None:
        typer.echo(line)
    else:
        _results.lines.append(line)


def on_a_terminal() -> bool:
    """Whether results go to a terminal."""
    return (_results or _Results()).terminal


def ending(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with what is said here about all of them. A fault of ours keeps its traceback."""

    @functools.wraps(command)
    def whole(*args: Any, **options: Any) -> None:
        global _results
        results, code = _Results(), 0
        _results = results
        try:
            with results_apart():
                command(*args, **options)
        except typer.Exit as end:
            code = end.exit_code
        except KeyboardInterrupt:
            say("\ninterrupted")
            code = INTERRUPTED
        except (CostError, OSError, MemoryError, PoolError) as error:
            say(f"error: {in_words(error)}")
            code = REFUSED if isinstance(error, CostError) else FAILED
        finally:
            _results = None
        code = _written(results.lines, code)
        if code:
            raise typer.Exit(code)

    return whole


def _written(lines: list[str], code: int) -> int:
    """Write the results. A reader who has gone has seen what it wanted, and the exit code still says the rest."""
    try:
        if lines:
            typer.echo("\n".join(lines))
    except BrokenPipeError:
        say("standard output was closed before everything was written")
    except (OSError, ValueError) as error:  # ValueError: it is closed
        say(f"error: the results cannot be written to standard output ({in_words(error)})")
        return FAILED
    return code


def in_words(error: BaseException) -> str:
    """The error in one line.

    >>> in_words(OSError(errno.ENOSPC, "No space left on device", "run/metrics.csv"))
    'the disk is full: run/metrics.csv could not be written'
    >>> in_words(PermissionError(errno.EACCES, "Permission denied", "run"))
    'Permission denied: run'
    >>> in_words(MemoryError())
    'there is not enough memory'
    """
    if isinstance(error, MemoryError):
        return printable(str(error) or "there is not enough memory")
    if not isinstance(error, OSError) or error.errno is None:
        return printable(error)
    if error.errno in FULL:
        return "the disk is full" + (f": {printable(error.filename)} could not be written" if error.filename else "")
    return printable(error.strerror) + (f": {printable(error.filename)}" if error.filename else "")


@contextmanager
def refusing() -> Iterator[None]:
    """A mistake of the user gives one line and exit code 2."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        say(f"error: {in_words(error)}")
        raise typer.Exit(FAILED if isinstance(error, OSError) and error.errno in FULL else REFUSED) from error
