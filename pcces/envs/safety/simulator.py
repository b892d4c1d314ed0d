"""The safety-navigation tasks for training: many at a time in a worker, under the names people know them by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pcces.envs.registry import scene_of
from pcces.envs.simulator import Environment, Simulator
from pcces.envs.task import Continuous

from .tasks import NAMES, Scene, scene


@dataclass(frozen=True)
class SafetySimulator(Simulator):
    """A scene as a simulator whose episodes run side by side."""

    scene: Scene | None = field(default=None, compare=False)

    def known(self) -> SafetySimulator:
        """The same: the scene says all. An error where there is no MuJoCo, which every episode would fail for."""
        from . import model  # noqa: F401

        return self

    def make_batch(self, count: int) -> Any:
        """`count` environments that step together."""
        from .batch import SafetyBatch

        assert self.scene is not None
        return SafetyBatch(self.scene, count, horizon=self.max_steps)

    def make(self, **options: Any) -> Environment:
        """One environment, through Gymnasium."""
        from .env import SafetyEnv

        assert self.scene is not None
        return Environment(SafetyEnv(self.scene, **options), len(self.cost_names), self.cost)


def safety_simulator(name: str, **changes: Any) -> SafetySimulator:
    """A scene by name, with the paper's limits (Tables 5 and 6); `changes` as for `scene`.

    >>> s = safety_simulator("PointGoal1", hazards=2)
    >>> s.observation_size, s.thresholds, s.max_steps
    (60, (25.0,), 1000)
    """
    known = scene_of(name)
    if known is None:
        raise ValueError(f"unknown safety task {name!r}; there are {', '.join(NAMES)}")
    made = scene(known, **changes)
    return SafetySimulator(
        f"pcces/{known}-v0",
        sum(made.observation.values()),
        Continuous((-1.0, -1.0), (1.0, 1.0)),
        1000,
        ("cost",),
        (25.0,),
        (0.0, 1.0),
        (-1000.0, 5000.0),
        scene=made,
    )
