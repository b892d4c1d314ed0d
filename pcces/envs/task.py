"""What a task is: a start, an observation and a step, as pure JAX functions.

A task holds no episode: the state is a value that goes in and comes out, so that thousands of episodes run side by side
under `jax.vmap` and whole ones inside `jax.lax.scan`. This file needs no JAX, so importing `pcces.envs` stays cheap.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import jax

NO_LIMIT = 1e9  # an action's limit that is no less is none


@dataclass(frozen=True)
class Discrete:
    """Actions 0, 1, ..., n - 1; `step` receives one integer.

    >>> Discrete(2)
    Discrete(n=2)
    """

    n: int

    def __post_init__(self) -> None:
        if not isinstance(self.n, int) or self.n < 2:
            raise ValueError(f"Discrete needs at least two actions, got n={self.n!r}")


@dataclass(frozen=True)
class Continuous:
    """Actions in a box; `step` receives an array of shape `(size,)`. A single number means one dimension.

    Actions outside the box are clipped (`Task.overshoot`). A bound beyond 1e9 counts as no bound.

    >>> Continuous(-2.0, 2.0)
    Continuous(low=(-2.0,), high=(2.0,))
    >>> Continuous((0, 0), (1, 1e30)).high
    (1.0, inf)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __init__(self, low: float | tuple[float, ...], high: float | tuple[float, ...]) -> None:
        lows = tuple(map(float, low)) if isinstance(low, tuple | list) else (float(low),)
        highs = tuple(map(float, high)) if isinstance(high, tuple | list) else (float(high),)
        if len(lows) != len(highs) or not all(a < b for a, b in zip(lows, highs)):
            raise ValueError(f"Continuous needs low < high in every dimension, got low={low!r}, high={high!r}")
        lows = tuple(a if a > -NO_LIMIT else -math.inf for a in lows)
        highs = tuple(b if b < NO_LIMIT else math.inf for b in highs)
        object.__setattr__(self, "low", lows)
        object.__setattr__(self, "high", highs)

    @property
    def size(self) -> int:
        """The number of dimensions."""
        return len(self.low)

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest float32 numbers inside the box.

        >>> low, high = Continuous(-1.0, 0.1).ends
        >>> float(high[0]) <= 0.1 < float(np.float32(0.1))  # the nearest float32 number is beyond it
        True
        """
        low, high = np.array(self.low), np.array(self.high)
        lowest, highest = low.astype(np.float32), high.astype(np.float32)
        up, down = np.nextafter(lowest, np.float32(np.inf)), np.nextafter(highest, np.float32(-np.inf))
        return np.where(lowest < low, up, lowest), np.where(highest > high, down, highest)


class Step(NamedTuple):
    """The result of one step."""

    state: Any  # a pytree of the same structure, shapes and types as the state before
    reward: jax.Array  # a scalar
    costs: jax.Array  # one number for each of the task's cost_names
    terminated: jax.Array  # a boolean scalar: the task itself ended, which a time limit is not


class Task(ABC):
    """A task in JAX. A subclass defines class attributes, `reset` and `step`.

    Tasks are values: two tasks of the same class with the same instance attributes are equal and have the same hash. So a task can
    be a static argument of `jax.jit`. `step` need not count steps: episodes are cut off after `max_steps` elsewhere.
    """

    name: str
    observation_size: int
    actions: Discrete | Continuous
    max_steps: int
    cost_names: tuple[str, ...] = ()  # names of the costs; none: an unconstrained task
    thresholds: tuple[float, ...] = ()  # limit on the mean cost of an episode, one for each cost (paper, Table 6)
    cost_bounds: tuple[float, float] | None = (
        None  # range of the cost of a step; with it, certificates are guaranteed for any distribution
    )
    episode_cost_bounds: tuple[float, float] | None = None  # range of the cost of an episode, if known
    # h_l and h_u of the entropy summed over an episode. The paper's tasks have some (Table 5); no other has, unless it says so.
    entropy_bounds: tuple[float, float] = (-math.inf, math.inf)
    reward_threshold: float | None = None  # the mean return from which the task counts as solved
    observation_low: tuple[float, ...] = ()  # limits of the observation, for Gymnasium's space; none: unbounded
    observation_high: tuple[float, ...] = ()
    overshoot: bool = False  # whether `step` gets actions as they are drawn, beyond the box too, and clips them itself
    costly: bool = False  # whether an episode takes so long that thousands of them cannot be spent on a good start
    frames_per_second: int = 30  # the speed at which pictures of an episode look natural

    @abstractmethod
    def reset(self, key: jax.Array) -> Any:
        """Draw the state in which an episode starts: any pytree; one float32 array is fastest."""

    @abstractmethod
    def step(self, state: Any, action: jax.Array, key: jax.Array) -> Step:
        """Move on by one action."""

    def observe(self, state: Any) -> jax.Array:
        """What the policy sees, of shape `(observation_size,)`: the state itself unless a subclass says otherwise."""
        return state

    def draw(self, state: Any) -> np.ndarray:
        """Draw the state, as (height, width, 3) bytes: bars of the observation unless a subclass draws better."""
        from pcces.envs.draw import bars

        return bars(self.observe(state), self.name)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items()))))

    def __repr__(self) -> str:
        return f"<task {self.name}>"
