"""Runs a program step by step, one seed after the other: what is played in a step is played elsewhere, by workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcces.engines.arena import Arena, Program
from pcces.support.trees import entry, stacked


class StepwiseEngine:
    """The counterpart of `DeviceEngine` for arenas whose points are played by workers."""

    chunk = 1

    def __init__(self, arena: Arena, program: Program, seeds: Sequence[int]):
        self.arena, self.program = arena, program
        self._keys = [arena.key(seed) for seed in seeds]
        self.spent_at_start: Any = None

    def template(self) -> Any:
        """The structure of the states, without meaningful content."""
        return stacked([self.program.blank(self._keys[0])])

    def start(self, given: Any = None) -> Any:
        """The states of all seeds before the first iteration."""
        started = [self.program.init(key, given) for key in self._keys]
        self.spent_at_start = stacked([spent for _, spent in started])
        return stacked([state for state, _ in started])

    def advance(self, states: Any, count: int) -> tuple[Any, dict[str, Any]]:
        """`count` iterations; metrics have the axes (seeds, iterations, ...)."""
        finished, courses = [], []
        for i, key in enumerate(self._keys):
            state, course = entry(states, i), []
            for _ in range(count):
                state, metrics = self.program.step(state, key)
                course.append(metrics)
            finished.append(state)
            courses.append(_joined(course))
        return stacked(finished), _joined(courses)


def _joined(several: list[dict[str, Any]]) -> dict[str, Any]:
    """Metrics of several iterations, or seeds, as metrics of arrays."""
    return {name: stacked([metrics[name] for metrics in several]) for name in several[0]}
