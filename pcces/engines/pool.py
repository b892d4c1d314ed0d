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
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
    """A result for a task that took down every worker that tried it."""

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

    def submit(self, task: Any) -> int:
        """Hand in a task, and get its number."""

    def collect(self) -> list[tuple[int, Any]]:
        """Numbers and results of submitted tasks that are done; it waits for one."""

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


class Backlog:
    """What all pools share: tasks that wait, tasks that are running, and results.

    A kind of pool says how tasks get to workers that are free (`_hand_out`), how to wait for answers (`_await`), and how to
    stop what is running (`_abandon`).
    """

    def __init__(self, recipe: Recipe):
        self._here = recipe  # cuts tasks up here when they prove deadly
        self._tasks: dict[int, Any] = {}  # not done yet
        self._waiting: deque[int] = deque()
        self._deaths: Counter[int] = Counter()
        self._deadly: dict[int, tuple[Any, str]] = {}
        self._done: dict[int, Any] = {}
        self._latest = 0
        self.repeats = Repeats()

    def map(self, tasks: Sequence[Any]) -> list[Any]:
        """Results in the order of the tasks. An exception in a handler is raised here: it is a mistake, not bad luck."""
        numbers = [self._add(task) for task in tasks]
        with self._undisturbed():
            self._hand_out()
            while not self._tasks.keys().isdisjoint(numbers):
                self._await()
                self._hand_out()
        for number in self._deadly.keys() & set(numbers):
            self._resolve(number)
        return [self._done.pop(number) for number in numbers]

    def submit(self, task: Any) -> int:
        """Submit a task and get its number; `collect` returns its result."""
        number = self._add(task)
        with self._undisturbed():
            self._hand_out()
        return number

    def collect(self) -> list[tuple[int, Any]]:
        """Numbers and results of submitted tasks that are done, at least one; nothing only if none is under way."""
        while not self._done and (self._tasks or self._deadly):
            if self._tasks:
                with self._undisturbed():
                    self._await()
                    self._hand_out()
            for number in list(self._deadly):
                self._resolve(number)
        done, self._done = list(self._done.items()), {}
        return done

    def _add(self, task: Any) -> int:
        self._latest += 1
        self._tasks[self._latest] = task
        self._waiting.append(self._latest)
        return self._latest

    def _hand_out(self) -> None:
        raise NotImplementedError

    def _await(self) -> None:
        raise NotImplementedError

    def _abandon(self) -> None:
        raise NotImplementedError

    def _answered(self, number: int, result: Any) -> None:
        """A task is done."""
        del self._tasks[number]
        self._deaths.pop(number, None)
        self._done[number] = result

    def _died(self, number: int, reason: str, hung: bool = False) -> None:
        """A task has cost a worker: it is run again, or given up."""
        self._deaths[number] += DEATHS if hung else 1
        if self._deaths[number] < DEATHS and self.repeats.take(self._here().parts(self._tasks[number])):
            self._waiting.appendleft(number)
        else:
            self._deadly[number] = self._tasks.pop(number), reason

    def _resolve(self, number: int) -> None:
        """What becomes of a task that took its workers down: its parts on their own, or Lost if it has none, or if nothing
        may be run again."""
        task, reason = self._deadly.pop(number)
        handler = self._here()
        parts = handler.parts(task)
        if len(parts) <= 1:
            self._done[number] = Lost(task, reason)
        else:
            again = self.repeats.take(parts)
            self._done[number] = handler.join(self.map(parts) if again else [Lost(part, reason) for part in parts])

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Whatever is raised inside ends all tasks: their answers would belong to no one."""
        try:
            yield
        except BaseException:
            self._abandon()
            self._tasks, self._done, self._deadly = {}, {}, {}
            self._waiting.clear()
            self._deaths.clear()
            raise
