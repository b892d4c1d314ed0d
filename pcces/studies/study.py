"""Run what is still missing of some arms, several at a time, each in a process with cores of its own."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pcces.studies.arms import Arm
from pcces.studies.experiment import Experiment
from pcces.studies.store import Store


@dataclass
class Job:
    """An arm with the seeds that are missing."""

    arm: Arm
    seeds: list[int]
    measures: list[str] = field(default_factory=list)
    begun: bool = False
    done: float = 0.0  # iterations, on average of the seeds
    before: float | None = None  # iterations that were done before, by a study that was stopped
    started: float = 0.0
    seconds: float = 0.0
    error: str = ""

    @property
    def weight(self) -> float:
        """About how much work it is, beside other jobs."""
        return self.arm.iterations * len(self.seeds) * (self.arm.population or 40)

    @property
    def finished(self) -> bool:
        """Whether it has ended, well or not."""
        return self.seconds > 0

    @property
    def share(self) -> float:
        """The part of it that is done; a certificate counts as a tenth of the iterations."""
        return 1.0 if self.finished else self.done / self.arm.iterations / 1.1

    @property
    def pace(self) -> tuple[float, float]:
        """Seconds spent on it here, and the weight of what was done in them."""
        spent = self.seconds or (time.perf_counter() - self.started if self.begun else 0.0)
        return spent, self.weight * max(self.share - (self.before or 0.0) / self.arm.iterations / 1.1, 0.0)


@dataclass
class Study:
    """Jobs and how far they are."""

    jobs: list[Job]
    store: Store
    processes: int = 1
    engine: dict[str, Any] = field(default_factory=dict)
    _running: set[subprocess.Popen[str]] = field(default_factory=set)
    _stopping: bool = False

    @property
    def share(self) -> float:
        """The part of the work that is done."""
        total = sum(job.weight for job in self.jobs)
        return sum(job.weight * job.share for job in self.jobs) / total if total else 1.0

    def seconds_left(self) -> float | None:
        """At the pace so far, that on the same task where there is one, else that of all; None before anything is done."""
        left = 0.0
        for job in self.jobs:
            alike = [other for other in self.jobs if other.arm.task == job.arm.task and not other.error]
            for others in (alike, self.jobs):
                spent, done = map(sum, zip(*(other.pace for other in others)))
                if done > 0:
                    left += spent / done * job.weight * (1 - job.share)
                    break
            else:
                return None
        return left / max(min(self.processes, sum(not job.finished for job in self.jobs)), 1)

    def run(self, changed: Callable[[Study], Any] = lambda study: None) -> None:
        """Everything, the largest job first; `changed` is called now and then."""
        cores = sorted(os.sched_getaffinity(0))
        processes = min(self.processes, len(cores)) if self.processes > 0 else 1
        each = len(cores) // processes
        places: queue.SimpleQueue[list[int]] = queue.SimpleQueue()
        for i in range(processes):
            places.put(cores[i * each : (i + 1) * each] if processes > 1 else cores)
        waiting = sorted(self.jobs, key=lambda job: -job.weight)
        threads: list[threading.Thread] = []
        try:
            while waiting or any(thread.is_alive() for thread in threads):
                if waiting and not places.empty():
                    job, cores_ = waiting.pop(0), places.get()
                    thread = threading.Thread(target=self._run_job, args=(job, cores_, places), daemon=True)
                    thread.start()
                    threads.append(thread)
                else:
                    time.sleep(0.2)
                changed(self)
        finally:
            self._stopping = True
            for process in list(self._running):
                process.terminate()
            for thread in threads:
                thread.join(10)
            changed(self)

    def _run_job(self, job: Job, cores: list[int], places: queue.SimpleQueue[list[int]]) -> None:
        job.started, job.begun = time.perf_counter(), True
        asked = {
            "arm": job.arm.to_dict(), "seeds": job.seeds, "store": str(self.store.folder), "engine": self.engine,
            "cores": cores, "measures": job.measures,
        }  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-m", "pcces.studies.worker", json.dumps(asked)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._running.add(process)
        errors: list[str] = []
        assert process.stdout is not None and process.stderr is not None
        drain = threading.Thread(target=lambda: errors.extend(process.stderr or []), daemon=True)
        drain.start()
        for line in process.stdout:
            if line.startswith("{"):
                job.done = json.loads(line)["done"]
                job.before = job.done if job.before is None else job.before
        process.wait()
        drain.join(5)
        self._running.discard(process)
        if not self._stopping:
            job.seconds = time.perf_counter() - job.started
        if process.returncode and not self._stopping:
            job.error = "".join(errors)[-2000:] or f"ended with exit code {process.returncode}"
        places.put(cores)

    @property
    def failed(self) -> list[Job]:
        """Jobs that ended with an error."""
        return [job for job in self.jobs if job.error]


def jobs_for(experiments: Iterable[Experiment], store: Store) -> list[Job]:
    """What is missing. An arm that experiments share is one job, with all that any of them asks for."""
    arms: dict[str, Arm] = {}
    seeds: dict[str, set[int]] = {}
    measures: dict[str, set[str]] = {}
    for e in experiments:
        for arm in e.arms:
            arms[arm.key] = arm
            seeds.setdefault(arm.key, set()).update(e.numbers)
            measures.setdefault(arm.key, set()).update(e.measures)
    jobs = [
        Job(arm, store.missing(arm, sorted(seeds[key]), measures[key]), sorted(measures[key]))
        for key, arm in arms.items()
    ]
    return [job for job in jobs if job.seeds]
