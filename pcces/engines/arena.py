"""The protocol between algorithms and whatever runs them.

An algorithm is a `Program`: two functions of a state and a source of randomness. Its `step` reaches the world through an
`Arena` alone: it draws normals and seeds there, has points played on them, and gets back what came of it. So one step serves
every engine. On the device the arena's methods are traced into one compiled program; with workers the same lines run one
after the other, on NumPy arrays, and what is to be played travels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

Array = Any
Key = Any  # a source of randomness: a JAX key on the device, a stream of random numbers with workers


class Program(NamedTuple):
    """An algorithm, for one seed."""

    init: Callable[..., tuple[Any, Any]]
    """key, and what to start from (None: whatever the program finds) -> state, and what was played for it; may call several compiled functions, and is itself not compiled"""
    step: Callable[[Any, Key], tuple[Any, dict[str, Any]]]
    """state, key -> state, metrics. Everything random is a function of the key and the state's iteration."""
    shares: int
    """a number of devices may share an iteration's episodes if it divides this"""
    blank: Callable[[Key], Any]
    """key -> any state, traced for its structure; calls nothing that is `compiled`"""
    chunk: int | None = None
    """iterations a call, where they are so long that more would leave a person without news"""


class Around(NamedTuple):
    """How mirrored points were made, so that a worker can make them again from a few numbers: x + scale * direction."""

    x: Array
    scale: Array
    strategy: Any
    """the search distribution's state, as far as its directions depend on it"""
    key: Key
    """what its normals were drawn with"""


class Group(NamedTuple):
    """Points to be played, each as often as it has seeds."""

    points: Array
    """(count, n)"""
    seeds: Array
    """(count * repeats,) those of a point side by side"""
    around: Around | None = None
    """of a mirrored population: the second half of the points are the mirror images of the first"""
    learn: bool = False
    """whether the lesson is about these episodes"""
    used: Array | None = None
    """(count,) which points count, the first of both halves; the outcomes of the others are zeros. None: all"""


class Arena(Protocol):
    """An arena plays points on the seeds that it draws."""

    def key(self, seed: int) -> Key:
        """The source of all randomness of a run."""

    def keys(self, key: Key, k: Array, count: int) -> Sequence[Key]:
        """Sources for the parts of iteration k. With workers they are one stream, read in the order of the calls."""

    def split(self, key: Key, count: int) -> Sequence[Key]:
        """One source as several."""

    def normals(self, key: Key, rows: int, width: int) -> Array:
        """Standard normals (rows, width)."""

    def seeds(self, key: Key, count: int) -> Array:
        """Seeds of episodes (count,). Equal seeds mean equal random numbers wherever a point is played."""

    def play(self, groups: Sequence[Group], *args: Any) -> tuple[list[Any], Any]:
        """Play all groups at once: the outcome of each, and what is to be learnt from those that say so."""

    def compiled(
        self, function: Callable[..., Any], everywhere: bool = False, shared: bool = False
    ) -> Callable[..., Any]:
        """A function of arrays, compiled on the device; with workers too where NumPy would be too slow (`everywhere`).

        `shared`: it sums over the devices that share an iteration.
        """

    def close(self) -> None:
        """Let go of workers."""


class Engine(Protocol):
    """Runs a program for several seeds. The first axis of every array in its states is seeds."""

    chunk: int
    """iterations a call of `advance` may take"""

    spent_at_start: Any
    """what was played for each seed before its first iteration, once it has started; the first axis of every array is seeds"""

    def start(self, given: Any = None) -> Any:
        """The states before the first iteration, of all seeds from what is `given`, if anything."""

    def advance(self, states: Any, count: int) -> tuple[Any, dict[str, Any]]:
        """Up to `chunk` iterations: the states after them, and metrics with the axes (seeds, iterations, ...)."""

    def template(self) -> Any:
        """The structure of the states, without meaningful content."""
