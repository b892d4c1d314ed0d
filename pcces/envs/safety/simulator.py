"""The safety-navigation tasks for training: many at a time in a worker, under the names people know them by."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import Any

from pcces.envs.environment import Environment
from pcces.envs.registry import scene_of
from pcces.envs.simulator import Simulator, forgotten
from pcces.envs.task import Continuous

from .tasks import NAMES, Scene, scene


@dataclass(frozen=True)
class SafetySimulator(Simulator):
    """A scene as a simulator whose episodes run side by side."""

    scene: Scene | None = field(default=None, compare=False)

    def known(self) -> SafetySimulator:
        """The same: the scene says all. An error where there is no MuJoCo, which every episode would fail for."""
        from . import model  # noqa: F401

        if self.cost is forgotten:
            super().known()
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
        return Environment(SafetyEnv(self.scene, **options), self.cost_names, self.cost, self.name)


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
        options=changes,
        scene=made,
    )


def scene_of_run(kept: Simulator) -> Simulator:
    """The same as one of our scenes, if it is one: what a run folder holds says which, and what was changed in it."""
    name = scene_of(kept.name)
    if name is None or not set(kept.options) <= set(inspect.signature(scene).parameters) - {"name"}:
        return kept
    made = safety_simulator(name, **kept.options)
    if (made.observation_size, made.actions) != (kept.observation_size, kept.actions):
        raise ValueError(
            f"{kept.name} has {made.observation_size} observations and 2 actions, but in the run's folder it has "
            f"{kept.observation_size} and the actions {kept.actions}"
        )
    return replace(
        made, max_steps=kept.max_steps, cost_names=kept.cost_names, cost_bounds=kept.cost_bounds, cost=kept.cost,
        episode_cost_bounds=kept.episode_cost_bounds,
    )  # fmt: skip
