"""The Goal task.

One thing is simpler than in MuJoCo: a vase is a disc that the agent shoves along, without spin or momentum; it costs
nothing at level 1.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcces.envs.draw import GREEN_TINT, WOOD
from pcces.envs.task import Step

from ..agents import Car, Point
from ..tasks import Goal, Scene
from .car import CarDriver
from .layout import each, sample_layout, sample_place
from .point import PointDriver, lidar
from .task import REWARD_LIMIT, SafetyTask, named

Array = Any
GOAL_TRIES = 32  # candidates for a new goal; the first is taken if all fail


class GoalTask(SafetyTask):
    """A scene with a point or a car, a goal, hazards and vases that cost nothing.

    >>> task = goal_task("PointGoal1")
    >>> jax.eval_shape(lambda key: task.observe(task.reset(key)), jax.random.key(0)).shape
    (60,)
    """

    drives = (Point, Car)
    plays = Goal
    known = ("goal", "hazards", "vases")

    def __init__(self, scene: Scene, name: str | None = None) -> None:
        super().__init__(scene, name)
        if any(kind.name == "vases" and kind.constrained for kind in scene.kinds):
            raise ValueError("vases that cost something need MuJoCo's contacts: engine='local'")
        self.mark = scene.task.objects[0]
        self.driver: type[PointDriver] | type[CarDriver] = CarDriver if isinstance(scene.agent, Car) else PointDriver

    # -- the state: the agent's numbers, of which the first are x and y; goal; hazards; vases ---------------------------

    def parts(self, state: Array) -> tuple[Array, ...]:
        """The agent, and (n, 2) of goal, hazards and vases."""
        a = self.driver.size
        b = a + 2
        c = b + 2 * self.counts.get("hazards", 0)
        return state[:a], *(p.reshape(-1, 2) for p in (state[a:b], state[b:c], state[c:]))

    def reset(self, key: Array) -> Array:
        """Place everything, one after the other, clear of what is there already."""
        places = sample_layout(key, self.scene.groups, self.scene.extent)
        angle = jax.random.uniform(jax.random.split(key, len(places) + 1)[-1], maxval=2 * math.pi)
        return jnp.concatenate([self.driver.start(places[0], angle), places[1:].reshape(-1)])

    def step(self, state: Array, action: Array, key: Array) -> Step:
        """Ten physics steps, then goal and cost."""
        agent, (goal,), hazards, vases = self.parts(state)
        before = jnp.linalg.norm(goal - agent[:2])
        agent = self.driver.moved(agent, jnp.clip(action, -1, 1))
        vases = self.driver.shoved(agent, vases)
        distance = jnp.linalg.norm(goal - agent[:2])
        reached = distance <= self.mark.size
        reward = jnp.clip(before - distance + reached, -REWARD_LIMIT, REWARD_LIMIT)
        others = jnp.concatenate([agent[None, :2], hazards, vases])
        keepouts = each([group for group in self.scene.groups if group.name != "goal"])
        new, _ = sample_place(key, self.mark.keepout, self.scene.extent, others, keepouts, GOAL_TRIES)
        places = jnp.concatenate([jnp.where(reached, new, goal)[None], hazards, vases]).reshape(-1)
        cost = self.on_hazard(agent, hazards).astype(jnp.float32)
        return Step(jnp.concatenate([agent, places]), reward, cost[None], jnp.bool_(False))

    def observe(self, state: Array) -> Array:
        """What MuJoCo's sensors say, and the lidars."""
        agent, *things = self.parts(state)
        lidars = [lidar(*self.driver.seen(agent, places)) for places in things if len(places)]
        return jnp.concatenate([self.driver.felt(agent), *lidars])

    def draw(self, state: Array) -> np.ndarray:
        """From above."""
        agent, goals, hazards, vases = (np.asarray(part) for part in self.parts(state))
        canvas = self.canvas(hazards)
        for x, y in goals:
            canvas.disc((x, y), self.mark.size, GREEN_TINT)
        for x, y in vases:
            canvas.box(x - 0.1, y - 0.1, x + 0.1, y + 0.1, WOOD)
        self.driver.draw(canvas, agent, bool(self.on_hazard(agent, hazards)))
        return canvas.picture()


def goal_task(name: str, **changes: Any) -> GoalTask:
    """A scene by name; `changes` as for `scene`.

    >>> goal_task("CarGoal1", hazards=2).observation_size
    72
    """
    return GoalTask(*named(name, **changes))
