"""Safety navigation: drive a point or a car to goals or buttons, past hazards, vases and gremlins.

Scenes are put together from agents, tasks and objects; ``SafetyEnv`` is one as a Gymnasium environment, ``SafetyBatch``
many at once. Only these two need MuJoCo, and it is imported only for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .agents import Agent, Car, Point
from .objects import Buttons, GoalMark, Gremlins, Hazards, Objects, Vases
from .tasks import NAMES, Button, Goal, Scene, scene

if TYPE_CHECKING:
    from .batch import SafetyBatch
    from .env import SafetyEnv

__all__ = [
    "NAMES",
    "Agent",
    "Button",
    "Buttons",
    "Car",
    "Goal",
    "GoalMark",
    "Gremlins",
    "Hazards",
    "Objects",
    "Point",
    "SafetyBatch",
    "SafetyEnv",
    "Scene",
    "Vases",
    "scene",
]


def __getattr__(name: str) -> Any:
    if name == "SafetyBatch":
        from .batch import SafetyBatch

        return SafetyBatch
    if name == "SafetyEnv":
        from .env import SafetyEnv

        return SafetyEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
