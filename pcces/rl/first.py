"""What a training starts from: x_0 and its normalisation, chosen among random policies or brought along."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pcces.rl.normalizer import Normalizer
from pcces.rl.outcome import Spent
from pcces.rl.settings import Start

Array = Any


class KeptCritics(NamedTuple):
    """The critics at the end of a training (`pcces.rl.critics.Critics`), for the normalisation of its policy."""

    weights: Array  # (signals, n)
    mean: Array  # (signals,) their units
    std: Array

    @classmethod
    def names(cls) -> list[str]:
        """What they are called in a file that holds a policy as well."""
        return [f"critic_{name}" for name in cls._fields]

    def named(self) -> dict[str, Array]:
        """Under these names."""
        return dict(zip(self.names(), self))


class First(NamedTuple):
    """A policy to start from, with its normalisation and, if known, its critics."""

    x: Array
    normalizer: Normalizer
    critics: KeptCritics | None = None


def first_of(arena: Any, settings: Any, key: Any, given: First | None) -> tuple[Array, Normalizer, Spent]:
    """x_0, its normalisation, and the steps and costs spent on it: `given`, or the best of some random policies."""
    if given is None:
        x, normalizer, spent = arena.first(Start.of(settings), key)
        return x, normalizer, spent
    return given.x, given.normalizer, Spent(np.float32(0), np.zeros(len(arena.task.cost_names), np.float32))


def with_critics(state: Any, given: First | None) -> Any:
    """An algorithm's state with the given critics, if its own have the same shape."""
    if given is None or given.critics is None or given.critics.weights.shape != state.critics.weights.shape:
        return state
    return state._replace(critics=state.critics._replace(**given.critics._asdict()))
