"""How fast training is on this machine: what `pcces bench` measures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pcces.rl.training import Training

LEAST = 3  # calls that are timed, however long they take


class Speed(NamedTuple):
    """The speed of the first iterations. Episodes may get longer or shorter while a policy learns."""

    engine: str
    workers: int | None  # None: the engine's own choice
    first: float  # seconds until the first iteration is done: compiling, or starting workers, and the first policies
    iteration: float  # seconds, the median of those that were timed
    steps: float  # of the environment a second, of episodes that had not ended


def measure(make: Callable[[], Training], seconds: float = 5.0) -> Speed:
    """Train for about so many seconds, and throw away what was learnt. Making the training is timed, too.

    >>> from pcces.policies import prepare
    >>> speed = measure(lambda: prepare("CartPole-v0", [0], steps=8_000), seconds=0.1)
    >>> speed.engine, min(speed.first, speed.iteration, speed.steps) > 0
    ('device', True)
    """
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, got {seconds}")
    began = time.perf_counter()
    training = make()
    engine = training.engine
    try:
        states, _ = engine.advance(engine.start(), 1)
        first = time.perf_counter() - began
        times: list[float] = []
        played = 0.0
        while len(times) < LEAST or sum(times) < seconds:
            began = time.perf_counter()
            states, metrics = engine.advance(states, engine.chunk)
            times.append(time.perf_counter() - began)
            played += float(np.sum(metrics["steps"]))
    finally:
        training.arena.close()
    config = training.runs[0].config
    each = statistics.median(times) / engine.chunk
    return Speed(config["engine"], config["workers"], first, each, played / sum(times))
