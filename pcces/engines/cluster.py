"""Workers on a Ray cluster, or on this machine through Ray: the same chunks as local processes.

The shared value goes once an iteration through Ray's object store. Actors that die, with their node or alone, are
replaced and their chunk is run again; between two calls the crew grows and shrinks with the cluster.
"""

from __future__ import annotations

import os
import pickle
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from pcces.engines.pool import DEATHS, Recipe, resolve

START_SECONDS = 60.0  # to wait for resources that are not there
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def connect(address: str | None) -> Any:
    """Ray, connected to the cluster at `address`, or to one of our own on this machine that listens on loopback only."""
    try:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        import ray
    except ImportError as error:
        raise ImportError("engine='ray' needs the extra 'cluster': pip install 'pcces[cluster]'") from error
    if not ray.is_initialized():
        if address is None:
            ray.init(
                address="local", include_dashboard=False, log_to_driver=False, configure_logging=False,
                _node_ip_address="127.0.0.1",
            )  # fmt: skip
        else:
            ray.init(address=address, log_to_driver=False)
    return ray


class _Actor:
    """What runs on the cluster."""

    def __init__(self, recipe: bytes):
        self.handler = pickle.loads(recipe)()

    def ready(self) -> bool:
        """Answers once it is up."""
        return True

    def run(self, value: Any, task: Any) -> Any:
        """Take in the shared value, if it is a new one, and do the task."""
        if value is not None:
            self.handler.share(pickle.loads(value))
        return self.handler.run(task)


class _Member:
    """An actor, what it knows and what it is doing."""

    def __init__(self, actor: Any):
        self.actor = actor
        self.version = -1
        self.task: int | None = None


class RayPool:
    """Ray actors as workers. A context manager; with `workers=None` as many as the cluster has CPUs, now and later."""

    def __init__(self, recipe: Recipe, workers: int | None = None, address: str | None = None):
        self._ray = connect(address)
        self._recipe = pickle.dumps(recipe)
        self._here = recipe
        self._wanted = workers
        self._remote = self._ray.remote(num_cpus=1, max_restarts=0, runtime_env={"env_vars": ONE_THREAD})(_Actor)
        self._value: Any = None
        self._version = 0
        self._crew: list[_Member] = []
        self.replaced = 0
        self._fit()

    @property
    def workers(self) -> int:
        """Actors at the moment."""
        return len(self._crew)

    def _fit(self) -> None:
        """As many actors as wanted, or as the cluster has CPUs for."""
        count = self._wanted or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        while len(self._crew) > count:
            self._ray.kill(self._crew.pop().actor)
        new = [_Member(self._remote.remote(self._recipe)) for _ in range(count - len(self._crew))]
        if not new:
            return
        ready = {member.actor.ready.remote(): member for member in new}
        done, late = self._ray.wait(list(ready), num_returns=len(ready), timeout=START_SECONDS)
        for ref in late:
            self._ray.kill(ready[ref].actor)
        self._crew += [ready[ref] for ref in done]
        if not self._crew or (self._wanted and late):
            cpus = self._ray.cluster_resources().get("CPU", 0)
            free = self._ray.available_resources().get("CPU", 0)
            raise RuntimeError(
                f"the cluster has {cpus:g} CPUs, {free:g} of them free, but {count} workers were asked for and only "
                f"{len(done)} came up within {START_SECONDS:g} s: ask for fewer workers or add nodes"
            )

    def share(self, value: Any) -> None:
        """Put a value into the object store, for all workers."""
        self._value = self._ray.put(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
        self._version += 1

    def map(self, tasks: Sequence[Any]) -> list[Any]:
        """Results in the order of the tasks. An exception in a handler is raised here."""
        self._fit()
        results: list[Any] = [None] * len(tasks)
        waiting = deque(range(len(tasks)))
        deaths = [0] * len(tasks)
        deadly: list[tuple[int, str]] = []
        running: dict[Any, _Member] = {}
        last = time.monotonic()
        while waiting or running:
            for member in self._crew:
                if member.task is None and waiting:
                    member.task = waiting.popleft()
                    value = self._value if member.version < self._version else None
                    member.version = self._version
                    running[member.actor.run.remote(value, tasks[member.task])] = member
            done, _ = self._ray.wait(list(running), timeout=START_SECONDS)
            if not done:
                if not self._crew and time.monotonic() - last > START_SECONDS:
                    raise RuntimeError("the cluster has lost all its workers and none came back")
                continue
            last = time.monotonic()
            for ref in done:
                member = running.pop(ref)
                number = member.task
                assert number is not None
                try:
                    results[number] = self._ray.get(ref)
                    member.task = None
                except self._ray.exceptions.RayTaskError as error:
                    self._abandon(running)
                    raise error.as_instanceof_cause() from None
                except (self._ray.exceptions.RayActorError, self._ray.exceptions.RaySystemError) as error:
                    self._crew.remove(member)
                    self.replaced += 1
                    deaths[number] += 1
                    if deaths[number] < DEATHS:
                        waiting.appendleft(number)
                    else:
                        deadly.append((number, f"worker died: {str(error).splitlines()[0]}"))
                    self._replace()
        for number, reason in deadly:
            results[number] = resolve(self._here(), tasks[number], self._one_by_one, reason)
        return results

    def _replace(self) -> None:
        """Another actor for one that died; if the cluster has no room for it now, the others go on without."""
        member = _Member(self._remote.remote(self._recipe))
        ready, _ = self._ray.wait([member.actor.ready.remote()], timeout=10.0 if self._crew else START_SECONDS)
        if ready:
            self._crew.append(member)
        else:
            self._ray.kill(member.actor)
            if not self._crew:
                raise RuntimeError("the cluster has lost all its workers and has no room for new ones")

    def _one_by_one(self, parts: list[Any]) -> list[Any]:
        return [self.map([part])[0] for part in parts]

    def _abandon(self, running: dict[Any, _Member]) -> None:
        """Stop what is running: its answers would belong to no one."""
        for member in running.values():
            self._ray.kill(member.actor)
            self._crew.remove(member)
        self._crew = [member for member in self._crew if member.task is None]

    def close(self) -> None:
        """Let the actors go; Ray itself stays, for others may use it."""
        for member in self._crew:
            self._ray.kill(member.actor)
        self._crew = []

    def __enter__(self) -> RayPool:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
