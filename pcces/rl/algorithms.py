"""What `train` can run, by name: each algorithm's settings, its program for the device and its driver for workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pcces.rl.iteration import search
from pcces.rl.settings import PRESETS, SLOW, pick

NAMES = ("pcces", "openes", "asebo", "ppo-lag", "rcpo", "cpo")


class Algorithm(NamedTuple):
    """All that `train` needs to know of an algorithm."""

    name: str
    presets: dict[str, Any]
    """its settings by name; "default" is always among them"""
    program: Callable[..., Any]
    """task, policy, problem, settings -> a `Program` of the device engine"""
    search: Callable[[Any], Any]
    """settings -> what makes its search distribution in a worker; None where it samples no policies"""
    driver: Callable[..., Any]
    """crew, problem, settings -> a `Driver` of workers"""
    limits_entropy: bool = False
    """whether it keeps bounds on the entropy; if not, there are none unless they are asked for"""
    slow: dict[str, Any] | None = None
    """what its defaults become where episodes are slow, if they do"""

    @property
    def defaults(self) -> Any:
        """The settings that nobody asked to change."""
        return self.presets["default"]

    def settings(self, preset: str = "default", **given: Any) -> Any:
        """Settings from a preset and what was given, checked.

        >>> find("cpo").settings(population=40)
        Traceback (most recent call last):
        ...
        ValueError: cpo has no population: an iteration is one policy's epoch of `epoch_steps` environment steps
        """
        if "population" in given and not hasattr(self.defaults, "population"):
            raise ValueError(
                f"{self.name} has no population: an iteration is one policy's epoch of `epoch_steps` environment steps"
            )
        return pick(self.presets, preset, given, "" if self.name == "pcces" else f" of {self.name}")

    def from_dict(self, data: dict[str, Any]) -> Any:
        """Settings from what their `to_dict` gave."""
        return type(self.defaults).from_dict(data)


def find(name: str) -> Algorithm:
    """The algorithm of this name. The baselines are imported when first asked for.

    >>> find("pcces").settings(population=80).population
    80
    >>> find("sgd")
    Traceback (most recent call last):
    ...
    ValueError: unknown algorithm 'sgd'; there are pcces, openes, asebo, ppo-lag, rcpo, cpo
    """
    if name not in NAMES:
        raise ValueError(f"unknown algorithm {name!r}; there are {', '.join(NAMES)}")
    if name == "pcces":
        return Algorithm(name, PRESETS, _program, search, _driver, limits_entropy=True, slow=SLOW)
    from pcces.baselines import ALGORITHMS

    return ALGORITHMS[name]


def _program(*args: Any) -> Any:
    from pcces.rl.on_device import program

    return program(*args)


def _driver(*args: Any) -> Any:
    from pcces.rl.on_workers import PCCESDriver

    return PCCESDriver(*args)
