"""What the tasks in JAX share: limits, equality, hazards, and a picture."""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from pcces.envs.draw import RED_TINT, Canvas
from pcces.envs.task import Continuous, Task

from ..agents import Agent, Point
from ..layout import LegacyStream, sample_layout
from ..tasks import Scene, scene

Array = Any
REWARD_LIMIT = 10.0  # as in batch.py, which needs MuJoCo


class SafetyTask(Task):
    """A scene. Subclasses say which agents, task and objects they know, and how the agent gets on with them."""

    actions = Continuous((-1.0, -1.0), (1.0, 1.0))
    max_steps = 1000
    cost_names = ("cost",)
    thresholds = (25.0,)
    cost_bounds = (0.0, 1.0)
    entropy_bounds = (-1000.0, 5000.0)
    frames_per_second = 50
    drives: ClassVar[tuple[type[Agent], ...]] = (Point,)
    plays: ClassVar[type]
    known: ClassVar[tuple[str, ...]]

    def __init__(self, scene: Scene, name: str | None = None) -> None:
        self.scene = scene
        self.counts = {kind.name: kind.count for kind in scene.kinds}
        if not (
            isinstance(scene.agent, self.drives)
            and isinstance(scene.task, self.plays)
            and set(self.counts) <= set(self.known)
        ):
            given = f"{scene.agent.name}{scene.task.name} with {', '.join(self.counts)}"
            raise ValueError(
                f"{type(self).__name__} in JAX has only {' or '.join(a.name for a in self.drives)} and {', '.join(self.known)}, "
                f"not a {given}; MuJoCo has all: engine='local'"
            )
        sample_layout(scene.groups, scene.extent, LegacyStream(0))  # says so if there is no room
        self.hazards = next((kind for kind in scene.kinds if kind.name == "hazards"), None)
        self.name = name or f"pcces/{scene.agent.name}{scene.task.name}{1 if self.hazards else 0}-v0"
        self.observation_size = sum(scene.observation.values())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, SafetyTask) and self._same() == other._same()

    def __hash__(self) -> int:
        return hash(self._same())

    def _same(self) -> tuple[Any, ...]:
        return type(self.scene.agent), self.scene.extent, self.scene.task, self.scene.kinds

    def on_hazard(self, place: Array, hazards: Array) -> Array:
        """Whether the agent's centre is on a hazard that costs."""
        if self.hazards is None or not self.hazards.constrained:
            return jnp.bool_(False)
        return (((hazards - place[:2]) ** 2).sum(-1) <= self.hazards.size**2).any()

    def canvas(self, hazards: np.ndarray) -> Canvas:
        """A picture from above, with the hazards."""
        canvas = Canvas(width=1.5 * 2 * (self.scene.extent + 0.4), centre=(0.0, 0.0))
        for x, y in hazards:
            canvas.disc((x, y), self.hazards.size if self.hazards else 0.0, RED_TINT)
        return canvas


def named(name: str, **changes: Any) -> tuple[Scene, str]:
    """A scene by name, `changes` as for `scene`; and what the task is called."""
    return scene(name, **changes), f"pcces/{name}-v0"
