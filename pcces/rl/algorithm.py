"""What training needs to know of an algorithm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

from pcces.engines.arena import Program
from pcces.rl import population
from pcces.rl.settings import PRESETS, BatchSettings, pick


class Algorithm(NamedTuple):
    """An algorithm by its name: its settings and its program.

    >>> PCCES.settings("paper", population=80).population
    80
    """

    name: str
    presets: dict[str, Any]
    """its settings by name; "default" is always among them"""
    program: Callable[[Any, Any], Program]
    """arena, settings -> what runs"""
    search: Callable[[Any], Any]
    """settings -> what makes its search distribution in a worker; None where it samples no policies"""
    limits_entropy: bool = False
    """whether it keeps bounds on the entropy; if not, there are none unless they are asked for"""
    only_means: bool = False
    """whether it knows limits on means only"""
    slow: dict[str, Any] | None = None
    """what its defaults become where episodes are slow, if they do"""

    @property
    def defaults(self) -> Any:
        """The settings that nobody asked to change."""
        return self.presets["default"]

    def settings(self, preset: str = "default", **given: Any) -> Any:
        """Settings from a preset and what was given, checked."""
        if "population" in given and not hasattr(self.presets.get(preset, self.defaults), "population"):
            others = [name for name, settings in self.presets.items() if hasattr(settings, "population")]
            raise ValueError(
                f"{self.name} has no population{f' with the preset {preset}' if others else ''}: an iteration is one "
                "policy's batch of `epoch_steps` environment steps"
                + (f"; the presets {' and '.join(others)} try a population of policies" if others else "")
            )
        return pick(self.presets, preset, given, "" if self.name == "pcces" else f" of {self.name}")

    def from_dict(self, data: dict[str, Any]) -> Any:
        """Settings from what their `to_dict` gave."""
        kinds = {type(settings): {f.name for f in fields(settings)} for settings in self.presets.values()}
        kind = next((kind for kind, names in kinds.items() if set(data) <= names), type(self.defaults))
        return kind.from_dict(data)


def _program(arena: Any, settings: Any) -> Program:
    if not isinstance(settings, BatchSettings):
        return population.program(arena, settings)
    from pcces.rl import batches  # with JAX behind it: only for those who want it

    return batches.program(arena, settings)


def _search(settings: Any) -> Any:
    return None if isinstance(settings, BatchSettings) else population.search(settings)


PCCES = Algorithm("pcces", PRESETS, _program, _search, limits_entropy=True, slow={})
