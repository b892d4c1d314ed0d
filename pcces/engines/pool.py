"""What a pool of workers is, whoever runs it: work goes out in chunks, answers come back in order, nothing is lost.

A worker holds a handler, made once from a picklable recipe. `share` gives every handler the same value (the incumbent, a
basis); `map` hands out tasks as workers become free. A task is a pure function of the shared value and itself, so a task
whose worker died is simply run again. One that takes its worker down twice, or hangs, is cut into its parts, and a part
that still does is given up as `Lost`: an evaluation that failed.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

DEATHS = 2  # workers a task may cost before it is cut or given up


class Handler(Protocol):
    """What a worker does."""

    def share(self, value: Any) -> None:
        """Take in what all tasks from now on depend on."""

    def run(self, task: Any) -> Any:
        """Do one task."""

    def parts(self, task: Any) -> list[Any]:
        """A task cut into the smallest tasks it is made of; itself if it is one."""

    def join(self, results: list[Any]) -> Any:
        """The result of a task from those of its parts."""


class PoolError(RuntimeError):
    """There are no workers to be had."""


@dataclass(frozen=True)
class Lost:
    """In place of a result: the task took every worker down that tried it."""

    task: Any
    reason: str


class Repeats:
    """Parts of tasks that were run again so far, and how many more may be. A worker takes with it what it had done of its
    task, and nobody knows how much that was: all of it is run again.
    """

    def __init__(self) -> None:
        self.made = 0
        self.left: float = inf

    def take(self, parts: list[Any]) -> bool:
        """Whether these may be run again; they count if so."""
        if len(parts) > self.left:
            return False
        self.made += len(parts)
        self.left -= len(parts)
        return True


class Pool(Protocol):
    """Runs tasks on workers."""

    replaced: int  # workers that died and were replaced so far
    traffic: int  # bytes sent and received so far
    repeats: Repeats

    @property
    def workers(self) -> int:
        """How many there are."""

    def share(self, value: Any) -> None:
        """Give all workers, those that join later too, a value."""

    def map(self, tasks: Sequence[Any]) -> list[Any]:
        """Results in the order of the tasks; Lost where there is none."""

    def close(self) -> None:
        """Let the workers go."""


class Watchdog:
    """Ends this process when a step takes longer than `seconds`: what hangs in C code can be ended in no other way."""

    def __init__(self, seconds: float | None):
        self.seconds = seconds
        self._armed = 0.0
        self._report: Any = None  # where it says what hung

    def beat(self) -> None:
        """A step begins, the one before is over. Cheap: the timer is set anew only now and then."""
        if self.seconds is not None and time.monotonic() - self._armed > 0.2 * self.seconds:
            self.allow(1.2 * self.seconds)

    def allow(self, seconds: float) -> None:
        """What begins now may take so long."""
        if self.seconds is not None:
            self._armed = time.monotonic()
            self._report = self._report or sys.__stderr__ or sys.stderr or open(os.devnull, "w")  # noqa: SIM115
            faulthandler.dump_traceback_later(seconds, exit=True, file=self._report)

    def rest(self) -> None:
        """Nothing is being stepped."""
        if self.seconds is not None:
            faulthandler.cancel_dump_traceback_later()
            self._armed = 0.0


Recipe = Callable[[], Handler]


def resolve(handler: Handler, task: Any, run: Callable[[list[Any]], list[Any]], reason: str, repeats: Repeats) -> Any:
    """What becomes of a task that took its workers down: its parts on their own, or Lost if it has none, or if nothing may
    be run again."""
    parts = handler.parts(task)
    if len(parts) <= 1:
        return Lost(task, reason)
    return handler.join(run(parts) if repeats.take(parts) else [Lost(part, reason) for part in parts])
