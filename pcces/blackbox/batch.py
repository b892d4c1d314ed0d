"""A batch: what can be evaluated in parallel now; and the random numbers of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pcces.blackbox.population import LazyPoints
    from pcces.blackbox.search import Search

SEEDS, NORMALS, RESTARTS, TURNS, VARIED, CLOUD = 1, 2, 3, 4, 7, 8  # what random numbers are for


class Batch(NamedTuple):
    """Points to evaluate, each with its own seed. `number` is the number of the batch."""

    points: np.ndarray | LazyPoints  # (k, n)
    seeds: np.ndarray  # (k,) for simulators that take one; shared where common random numbers want it
    number: int
    phase: str
    at_trial: int = 0  # how many rows repeat the trial point (the rest repeat the incumbent)
    directions: np.ndarray | LazyPoints | None = (
        None  # of samples: (y^i - x_k) / sigma_k^ES; of proposals and starts: z
    )
    rows: np.ndarray | None = None  # of the whole batch; None: it is the whole

    def __len__(self) -> int:
        return len(self.seeds)

    @property
    def several_starts(self) -> bool:
        """Whether it is the first one of a search with several starting points."""
        return self.phase == "start" and self.directions is not None

    def part(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """Some rows of the batch, which can be evaluated and told separately.

        >>> batch = Batch(np.array([[1.0], [2.0], [3.0]]), np.array([7, 8, 9]), 0, "sample")
        >>> batch.part([2, 0]).part([1]).points, batch.part([2, 0]).part([1]).rows
        (array([[1.]]), array([0]))
        """
        chosen = np.asarray(rows, dtype=int)
        points = [self.points[int(i)] for i in chosen]
        shown: Any = points if isinstance(self.points, list) else np.array(points).reshape(len(points), -1)
        whole = np.arange(len(self)) if self.rows is None else self.rows
        return Batch(shown, self.seeds[chosen], self.number, self.phase, rows=whole[chosen])


@dataclass(eq=False)
class Streams:
    """Random numbers as a pure function of (seed, purpose, counter): nothing to save, the same after a resume.

    A generator is good until the next one for its purpose is asked for.

    >>> streams = Streams(1)
    >>> bool(streams(2, 3).random() == streams(2, 3).random() != streams(2, 4).random())
    True
    """

    seed: int
    _generators: dict[int, tuple[np.random.Generator, dict[str, Any]]] = field(default_factory=dict, repr=False)

    def __call__(self, purpose: int, counter: int) -> np.random.Generator:
        """The generator at the start of a stream."""
        if purpose not in self._generators:
            philox = np.random.Philox(key=[self.seed, purpose])
            self._generators[purpose] = np.random.Generator(philox), dict(philox.state)
        generator, state = self._generators[purpose]
        state["state"]["counter"][:] = (0, 0, 0, counter)
        generator.bit_generator.state = state  # a tenth of what a new one costs
        return generator

    def seeds(self, number: int, k: int) -> np.ndarray:
        """The seeds of a batch."""
        return self(SEEDS, number).integers(2**63, size=k)


def repeated(search: Search, z: np.ndarray, times: int) -> Batch:
    """The same point again and again, as far as the budget goes, each time with a seed of its own."""
    budget = search.state.budget
    k = max(1, min(times, budget.left))
    seeds = search.streams.seeds(budget.batches, k)
    points = np.repeat(search.space.to_x(z)[None], k, axis=0)
    return Batch(points, seeds, budget.batches, search.state.phase)
