"""Worker processes on this machine, over pipes: 30 microseconds a message, workers replaced when they die."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import types
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from pcces.engines.pool import Backlog, Lost, PoolError, Recipe
from pcces.support.sending import needs_main

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
STILLBORN = 3  # workers that may die in a row before they are ready
SHARE = b"share"  # announces a shared value


class _Worker:
    """A process and our end of its pipe."""

    def __init__(self, recipe: bytes, number: int):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, recipe), name=f"pcces-{number}", daemon=True)
        with _start_conditions(needs_main(recipe)):
            self.process.start()
        theirs.close()
        self.ready = False
        self.version = 0  # of the shared value it has
        self.task: int | None = None

    def stop(self, patience: float = 0.5) -> None:
        """End it: kindly, then not."""
        self.pipe.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class LocalPool(Backlog):
    """Persistent worker processes. A context manager.

    >>> from pcces.engines.examples import Squares
    >>> with LocalPool(Squares, workers=1) as pool:
    ...     pool.share(10)
    ...     pool.map([[1, 2], [3]])
    [[11, 14], [19]]
    """

    def __init__(self, recipe: Recipe, workers: int | None = None):
        self.workers = cores() if workers is None else workers
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        try:
            self._recipe = pickle.dumps(recipe)
        except Exception as error:
            raise TypeError(
                f"the functions cannot be pickled for other processes ({error}): define them at the top level of a module"
            ) from error
        super().__init__(recipe)
        self._value = b""
        self._version = 0
        self._started = 0
        self._stillborn = 0
        self.replaced = 0
        self.traffic = 0
        self._workers: list[_Worker] = []
        self._hire()

    def _hire(self) -> None:
        """Start missing workers."""
        while len(self._workers) < self.workers:
            self._workers.append(_Worker(self._recipe, self._started))
            self._started += 1

    def share(self, value: Any) -> None:
        """Give all workers a value; it travels with the next task each of them gets."""
        self._value = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        self._version += 1

    def _hand_out(self) -> None:
        self._hire()
        for worker in list(self._workers):
            if worker.ready and worker.task is None and self._waiting:
                self._send(worker, self._waiting.popleft())

    def _send(self, worker: _Worker, number: int) -> None:
        task = pickle.dumps(self._tasks[number], protocol=pickle.HIGHEST_PROTOCOL)
        try:
            if worker.version < self._version:
                worker.pipe.send_bytes(SHARE)
                worker.pipe.send_bytes(self._value)
                self.traffic += len(self._value)
            worker.pipe.send_bytes(task)
        except OSError:
            self._bury(worker)
            self._waiting.appendleft(number)
            return
        self.traffic += len(task)
        worker.version, worker.task = self._version, number

    def _await(self) -> None:
        busy = {worker.pipe: worker for worker in self._workers if worker.task is not None or not worker.ready}
        for pipe in wait(list(busy)) if busy else ():  # all may have died before they were asked
            worker = busy[pipe]  # type: ignore[index]
            number = worker.task
            try:
                good, answer = self._receive(worker)
            except (EOFError, OSError):
                reason, hung = self._bury(worker)
                if number is not None:
                    self._died(number, reason, hung)
                continue
            worker.task = None
            if not good:
                raise answer
            if number is not None:
                self._answered(number, answer)

    def _receive(self, worker: _Worker) -> tuple[bool, Any]:
        """An answer; a worker's first one says that it is ready."""
        data = worker.pipe.recv_bytes()
        self.traffic += len(data)
        worker.ready, self._stillborn = True, 0
        return pickle.loads(data)

    def _bury(self, worker: _Worker) -> tuple[str, bool]:
        """A worker is gone: of what it died, and whether that was hanging."""
        worker.process.join(1.0)
        code = worker.process.exitcode
        worker.stop(0.0)
        self._workers.remove(worker)
        self.replaced += 1
        if not worker.ready:
            self._stillborn += 1
            if self._stillborn >= STILLBORN:
                raise PoolError(
                    f"workers die while they start (exit code {code}): see the errors that they print. A script whose own "
                    "functions or classes go to workers must do its work under `if __name__ == '__main__':`"
                )
        if code is not None and code < 0:
            return f"worker killed by {signal.Signals(-code).name}", False
        if code == 1:  # what the watchdog ends a process with
            return "timeout: a worker hung and was stopped", True
        return f"worker ended with exit code {code}", False

    def _abandon(self) -> None:
        """Stop what is running: its answers would belong to no one. The next map starts other workers."""
        for worker in list(self._workers):
            if worker.task is not None:
                worker.process.kill()
                worker.stop()
                self._workers.remove(worker)

    def close(self) -> None:
        """End all workers, whatever they are at."""
        self._abandon()
        for worker in self._workers:
            worker.pipe.close()
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _start_conditions(with_main: bool) -> Iterator[None]:
    """What a process takes over from this one when it starts.

    BLAS reads how many threads it may have when it is loaded. A Ctrl-C while the worker still imports its modules is
    held back, so that it does not end in a page of traceback. And unless it needs something from the main script, the
    worker does not run that script again: faster, and scripts need no `if __name__ == "__main__"`.
    """
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    main = sys.modules["__main__"]
    os.environ.update(ONE_THREAD)
    if not with_main:
        sys.modules["__main__"] = types.ModuleType("__main__")
    held_back = _hold_back_interrupts()
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if held_back is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, held_back)


def _hold_back_interrupts() -> Any:
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return None
    return signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _serve(pipe: Connection, recipe: bytes) -> None:
    """A worker's life: it ends with the driver, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_the_driver, daemon=True).start()
    try:
        handler = pickle.loads(recipe)()
    except Exception as error:
        _answer(pipe, False, error)
        return
    _answer(pipe, True, None)
    while True:
        try:
            data = pipe.recv_bytes()
            value = pipe.recv_bytes() if data == SHARE else None
            task = data if value is None else pipe.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            if value is not None:
                handler.share(pickle.loads(value))
            result = handler.run(pickle.loads(task))
        except Exception as error:
            _answer(pipe, False, error)
        else:
            _answer(pipe, True, result)


def _answer(pipe: Connection, good: bool, answer: Any) -> None:
    try:
        data = pickle.dumps((good, answer), protocol=pickle.HIGHEST_PROTOCOL)
        pickle.loads(data) if not good else None  # not every exception survives the journey
    except Exception:
        data = pickle.dumps((False, RuntimeError(f"{type(answer).__name__}: {answer}")))
    with contextlib.suppress(OSError):
        pipe.send_bytes(data)


def _end_with_the_driver() -> None:
    """End this worker when its driver has ended, even in the middle of a long task."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os._exit(1)


__all__ = ["LocalPool", "Lost", "cores"]
