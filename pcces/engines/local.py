"""Worker processes on this machine, over pipes: 30 microseconds a message, workers replaced when they die."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from pcces.engines.pool import DEATHS, Lost, Recipe, resolve

START_SECONDS = 120.0  # a worker that has not come up by then never will
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class _Worker:
    """A process and our end of its pipe."""

    def __init__(self, recipe: bytes, number: int):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, recipe), name=f"pcces-{number}", daemon=True)
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        os.environ.update(dict.fromkeys(ONE_THREAD, "1"))  # read by the child's BLAS when it loads
        try:
            self.process.start()
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
        theirs.close()
        self.version = -1  # of the shared value it has
        self.task: int | None = None

    def stop(self) -> None:
        self.pipe.close()
        self.process.join(0.2)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class LocalPool:
    """Persistent worker processes. A context manager.

    >>> from pcces.engines.examples import Squares
    >>> with LocalPool(Squares, workers=1) as pool:
    ...     pool.share(10)
    ...     pool.map([[1, 2], [3]])
    [[11, 14], [19]]
    """

    def __init__(self, recipe: Recipe, workers: int | None = None):
        self.workers = workers or len(os.sched_getaffinity(0))
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        try:
            self._recipe = pickle.dumps(recipe)
        except Exception as error:
            raise TypeError(
                f"what workers need cannot be sent to other processes ({error}): define functions at the top of a module"
            ) from error
        self._here = recipe  # cuts tasks up here when they prove deadly
        self._value: bytes = pickle.dumps(None)
        self._version = 0
        self._started = 0
        self.replaced = 0
        self._crew: list[_Worker] = []
        for _ in range(self.workers):
            self._hire()

    def _hire(self) -> _Worker:
        worker = _Worker(self._recipe, self._started)
        self._started += 1
        self._crew.append(worker)
        return worker

    def share(self, value: Any) -> None:
        """Give all workers a value; it travels with the next task each of them gets."""
        self._value = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        self._version += 1

    def map(self, tasks: Sequence[Any]) -> list[Any]:
        """Results in the order of the tasks. An exception in a handler is raised here: it is a mistake, not bad luck."""
        results: list[Any] = [None] * len(tasks)
        waiting = deque(range(len(tasks)))
        deaths = [0] * len(tasks)
        deadly: list[tuple[int, str]] = []
        left = len(tasks)
        try:
            while left:
                for worker in self._crew:
                    if worker.task is None and waiting:
                        self._send(worker, waiting.popleft(), tasks, waiting)
                busy = {worker.pipe: worker for worker in self._crew if worker.task is not None}
                for pipe in wait(list(busy), timeout=START_SECONDS):
                    worker = busy[pipe]  # type: ignore[index]
                    number = worker.task
                    assert number is not None
                    try:
                        good, answer = worker.pipe.recv()
                    except (EOFError, OSError):
                        reason = self._bury(worker)
                        deaths[number] += 1
                        if deaths[number] < DEATHS:
                            waiting.appendleft(number)
                        else:
                            deadly.append((number, reason))
                            left -= 1
                        continue
                    worker.task = None
                    if not good:
                        raise answer
                    results[number] = answer
                    left -= 1
        except BaseException:
            self._abandon()
            raise
        for number, reason in deadly:
            results[number] = resolve(self._here(), tasks[number], self._one_by_one, reason)
        return results

    def _one_by_one(self, parts: list[Any]) -> list[Any]:
        return [self.map([part])[0] for part in parts]

    def _send(self, worker: _Worker, number: int, tasks: Sequence[Any], waiting: deque[int]) -> None:
        value = self._value if worker.version < self._version else None
        try:
            worker.pipe.send((value, tasks[number]))
        except (BrokenPipeError, OSError):
            self._bury(worker)
            waiting.appendleft(number)
            return
        worker.version, worker.task = self._version, number

    def _bury(self, worker: _Worker) -> str:
        """A worker is gone: take another one in its place."""
        worker.process.join(1.0)
        code = worker.process.exitcode
        worker.stop()
        self._crew.remove(worker)
        self.replaced += 1
        if self.replaced > 20 + 10 * self.workers and all(w.version < 0 for w in self._crew):
            raise RuntimeError("workers die before they can do anything: look at the errors they print")
        self._hire()
        if code is not None and code < 0:
            return f"worker killed by {signal.Signals(-code).name}"
        return f"worker ended with exit code {code} (1: a step took longer than the step timeout)"

    def _abandon(self) -> None:
        """Stop what is running: its answers would belong to no one."""
        for worker in list(self._crew):
            if worker.task is not None:
                worker.process.kill()
                worker.stop()
                self._crew.remove(worker)
                self._hire()

    def close(self) -> None:
        """End all workers."""
        for worker in self._crew:
            worker.stop()
        self._crew = []

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def _serve(pipe: Connection, recipe: bytes) -> None:
    """A worker's life: it ends when the driver's end of the pipe is closed, however the driver ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    handler = pickle.loads(recipe)()
    while True:
        try:
            value, task = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            if value is not None:
                handler.share(pickle.loads(value))
            answer: tuple[bool, Any] = True, handler.run(task)
        except Exception as error:
            answer = False, error
        try:
            pipe.send(answer)
        except (BrokenPipeError, OSError):
            return


__all__ = ["LocalPool", "Lost"]
