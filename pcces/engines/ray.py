"""Workers on a Ray cluster, or on this machine through Ray: the same chunks as local processes.

The shared value goes once an iteration through Ray's object store. Actors that die, with their node or alone, are
replaced and their chunk is run again; between two calls, and within one, their number grows and shrinks with the cluster.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import pickle
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

from pcces.engines.pool import Backlog, PoolError, Recipe

FIT_SECONDS = 1.0  # between looks at how large the cluster is, while tasks are running
START_SECONDS = 60.0  # to wait for resources that are not there
NO_CLUSTER = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"


def connect(address: str | None = None, workers: int | None = None) -> Any:
    """Ray, connected to the cluster at `address`, or to one of our own on this machine that listens on loopback only.

    A Ray that is running already in this process is taken as it is.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with _alone() if address is None else contextlib.nullcontext():
        try:
            import ray
        except ImportError as error:
            raise ImportError("engine='ray' needs the extra 'cluster': pip install 'pcces[cluster]'") from error
        if ray.is_initialized():
            return ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        ray._private.worker._worker_logs_enabled = False  # what it has to say of dead workers it would say on stdout
        if address is None:
            from pcces.engines.processes import cores

            with _loopback(ray):
                ray.init("local", num_cpus=max(cores(), workers or 1), include_dashboard=False, **options)
        else:
            _reach(address)
            ray.init(address, **options)
    return ray


def _reach(address: str) -> None:
    """Refuse an address where nobody answers: Ray itself would try for minutes.

    >>> _reach("127.0.0.1:1")
    Traceback (most recent call last):
    ...
    ConnectionError: no Ray cluster answers at 127.0.0.1:1
    """
    host, _, port = address.rpartition(":")
    if not port.isdigit() or "/" in host:  # auto, or an address of Ray's own kind
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        raise ConnectionError(f"no Ray cluster answers at {address}") from error


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Ray reads this variable when it is imported: 0 means that other machines will not join, as is usual on macOS."""
    before = os.environ.get(NO_CLUSTER)
    os.environ[NO_CLUSTER] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ[NO_CLUSTER]
        else:
            os.environ[NO_CLUSTER] = before


@contextlib.contextmanager
def _loopback(ray: Any) -> Iterator[None]:
    """The same for a Ray that the user had imported before, and undone for later connections to a real cluster.

    With the address 127.0.0.1 all of Ray's servers bind to it; otherwise they bind to every interface there is.
    """
    constants = ray._private.ray_constants
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = True


class _Actor:
    """What runs on the cluster."""

    def __init__(self, recipe: bytes, path: list[str]):
        import ray.cloudpickle
        from threadpoolctl import threadpool_limits

        sys.path += [folder for folder in path if folder not in sys.path]  # the user's modules, where they are there
        self.handler = ray.cloudpickle.loads(recipe)()
        threadpool_limits(1)

    def ready(self) -> bool:
        """Answers once it is up."""
        return True

    def run(self, value: Any, task: bytes) -> bytes:
        """Take in the shared value, if it is a new one, and do the task."""
        import ray.cloudpickle

        if value is not None:
            self.handler.share(pickle.loads(value))
        return bytes(ray.cloudpickle.dumps(self.handler.run(pickle.loads(task))))


class _Member:
    """An actor, what it knows and what it is doing."""

    def __init__(self, actor: Any):
        self.actor = actor
        self.starting = actor.ready.remote()
        self.ready = False
        self.version = 0
        self.task: int | None = None


class RayPool(Backlog):
    """Ray actors as workers. A context manager; with `workers=None` as many as the cluster has CPUs, now and later.

    `patience`: how many seconds to wait for resources that are not there, before that is an error.

        with RayPool(Squares, workers=2) as pool:
            pool.share(10)
            pool.map([[1, 2], [3]])  # [[11, 14], [19]]
    """

    def __init__(
        self,
        recipe: Recipe,
        workers: int | None = None,
        address: str | None = None,
        patience: float = START_SECONDS,
    ):
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self._ray = connect(address, workers)
        import ray.cloudpickle

        self._recipe = ray.cloudpickle.dumps(recipe)
        super().__init__(recipe)
        self._running: dict[Any, _Member] = {}
        self._alive, self._fitted = time.monotonic(), -math.inf
        self._wanted = workers
        self.patience = patience
        self._remote = self._ray.remote(num_cpus=1, max_restarts=0)(_Actor)
        self._value: Any = None
        self._bytes = 0
        self._version = 0
        self._members: list[_Member] = []
        self.replaced = 0
        self.traffic = 0
        self._wait_for_members()

    @property
    def workers(self) -> int:
        """Actors that are up."""
        return sum(member.ready for member in self._members)

    def _fit(self) -> None:
        """Start the wanted number of actors, or one per CPU of the cluster. Actors without a CPU wait for one."""
        count = self._wanted or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        for member in [m for m in self._members if not m.ready][::-1] + [m for m in self._members if m.task is None]:
            if len(self._members) <= count:
                break
            if member in self._members:
                self._dismiss(member)
        while len(self._members) < count:
            self._members.append(_Member(self._remote.remote(self._recipe, sys.path)))

    def _wait_for_members(self) -> None:
        """All that are wanted must come up at first; of all that there may be, one."""
        self._fit()
        starting = {member.starting: member for member in self._members}
        try:
            done, late = self._ray.wait(
                list(starting), num_returns=len(starting) if self._wanted else 1, timeout=self.patience
            )
            for ref in done:
                self._came_up(starting[ref])
        except BaseException:
            self.close()
            raise
        if late and (self._wanted or not done):
            cpus = self._ray.cluster_resources().get("CPU", 0)
            self.close()
            raise PoolError(
                f"the cluster has {cpus:g} CPUs and {len(starting)} workers were asked for, but only {len(done)} came up "
                f"within {self.patience:g} s: ask for fewer workers or add nodes"
            )

    def _came_up(self, member: _Member) -> None:
        try:
            self._ray.get(member.starting)
        except self._ray.exceptions.RayActorError as error:
            cause = getattr(error, "cause", None) or error
            raise PoolError(f"a worker on the cluster could not be created: {cause}") from None
        member.ready = True

    def share(self, value: Any) -> None:
        """Put a value into the object store, for all workers."""
        data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        self._value, self._bytes = self._ray.put(data), len(data)
        self._version += 1

    def _add(self, task: Any) -> int:
        if not self._tasks:
            self._alive, self._fitted = time.monotonic(), -math.inf
        return super()._add(task)

    def _hand_out(self) -> None:
        if time.monotonic() - self._fitted > FIT_SECONDS:
            self._fit()
            self._fitted = time.monotonic()
        for member in self._members:
            if member.ready and member.task is None and self._waiting:
                member.task = self._waiting.popleft()
                self._running[self._send(member, self._tasks[member.task])] = member

    def _await(self) -> None:
        starting = {member.starting: member for member in self._members if not member.ready}
        done, _ = self._ray.wait([*self._running, *starting], timeout=min(1.0, self.patience))
        if self._running or done:
            self._alive = time.monotonic()
        elif time.monotonic() - self._alive > self.patience:
            raise PoolError(
                f"the cluster has lost all its workers, and for {self.patience:g} s had no room for new ones"
            )
        for ref in done:
            if ref in starting:
                self._came_up(starting[ref])
                continue
            member = self._running.pop(ref)
            number = member.task
            assert number is not None
            try:
                data = self._ray.get(ref)
                member.task = None
                self.traffic += len(data)
                self._answered(number, pickle.loads(data))
            except self._ray.exceptions.RayTaskError as error:
                member.task = None
                raise (error.cause if isinstance(error.cause, Exception) else error.as_instanceof_cause()) from None
            except self._ray.exceptions.RayError as error:  # an actor, a node or a result is gone
                self._dismiss(member)
                self.replaced += 1
                self._died(number, f"worker died: {str(error).splitlines()[0]}")
                self._fit()

    def _abandon(self) -> None:
        """What is running would answer to no one."""
        for member in self._running.values():
            self._dismiss(member)
        self._running = {}

    def _send(self, member: _Member, task: Any) -> Any:
        value = None
        if member.version < self._version:
            value, member.version = self._value, self._version
            self.traffic += self._bytes
        data = self._ray.cloudpickle.dumps(task)
        self.traffic += len(data)
        return member.actor.run.remote(value, data)

    def _dismiss(self, member: _Member) -> None:
        if member in self._members:
            self._members.remove(member)
        with contextlib.suppress(Exception):  # Ray may be gone already
            self._ray.kill(member.actor)

    def close(self) -> None:
        """Let the actors go; Ray itself stays until this process ends, for others may use it."""
        for member in list(self._members):
            self._dismiss(member)

    def __enter__(self) -> RayPool:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
