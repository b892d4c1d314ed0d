"""How fast training is on this machine: what `pcces bench` measures."""

from __future__ import annotations

import statistics
import time
from typing import Any, NamedTuple

import numpy as np

from pcces.envs.simulator import Simulator
from pcces.envs.task import Task
from pcces.policies import prepare

LEAST = 3  # calls that are timed, however long they take


class Speed(NamedTuple):
    """Of the first iterations; episodes may get longer, or shorter, while policies learn."""

    engine: str
    workers: int | None  # None: the engine's own choice
    first: float  # seconds until the first iteration is done: compiling, or starting workers, and the first policies
    iteration: float  # seconds, the median of those that were timed
    steps: float  # of the environment a second, of episodes that had not ended


def measure(
    task: str | Task | Simulator,
    seeds: int = 1,
    engine: str | None = None,
    workers: int | None = None,
    seconds: float = 5.0,
    **asked: Any,
) -> Speed:
    """Train for about so many seconds, and throw away what was learnt. `asked` is what `train` takes.

    >>> speed = measure("CartPole-v0", population=8, initial_tries=4, episodes=4, metric_episodes=4, seconds=0.1)
    >>> speed.engine, speed.first > speed.iteration > 0 and speed.steps > 0
    ('device', True)
    """
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, got {seconds}")
    began = time.perf_counter()
    training = prepare(task, range(seeds), engine=engine, workers=workers, **asked)
    crew = training.engine
    try:
        state, _ = crew.advance(crew.start(), 1)
        first = time.perf_counter() - began
        times: list[float] = []
        played = 0.0
        while len(times) < LEAST or sum(times) < seconds:
            began = time.perf_counter()
            state, metrics = crew.advance(state, crew.chunk)
            times.append(time.perf_counter() - began)
            played += float(np.sum(metrics["steps"]))
    finally:
        training.arena.close()
    config = training.runs[0].config
    each = statistics.median(times) / crew.chunk
    return Speed(config["engine"], config["workers"], first, each, played / sum(times))
