"""The point's Goal task.

One thing is simpler than in MuJoCo: a vase is a disc that the point shoves along, without spin or momentum; it costs
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

from ..tasks import Goal, Scene
from .layout import each, sample_layout, sample_place
from .point import AHEAD, SUBSTEPS, advance, felt, forces, lidar, response
from .task import REWARD_LIMIT, PointTask, named

Array = Any
SPHERE_REACH, NOSE_REACH, VASE_REACH = 0.1, 0.0564, 0.1128  # radii of discs of the same area
GOAL_TRIES = 32  # candidates for a new goal; the first is taken if all fail


class PointGoal(PointTask):
    """A scene with a point, a goal, hazards and vases that cost nothing.

    >>> task = point_goal("PointGoal1")
    >>> jax.eval_shape(lambda key: task.observe(task.reset(key)), jax.random.key(0)).shape
    (60,)
    """

    plays = Goal
    known = ("goal", "hazards", "vases")

    def __init__(self, scene: Scene, name: str | None = None) -> None:
        super().__init__(scene, name)
        if any(kind.name == "vases" and kind.constrained for kind in scene.kinds):
            raise ValueError("vases that cost something need MuJoCo's contacts: engine='local'")
        self.mark = scene.task.objects[0]

    # -- the state: x, y, angle; their velocities; acceleration along and across; goal; hazards; vases -----------------

    def parts(self, state: Array) -> tuple[Array, ...]:
        """Position and angle (3,), velocities (3,), acceleration (2,), and (n, 2) of goal, hazards and vases."""
        a, b = 8, 10 + 2 * self.counts.get("hazards", 0)
        return state[:3], state[3:6], state[6:8], *(p.reshape(-1, 2) for p in (state[a:10], state[10:b], state[b:]))

    def reset(self, key: Array) -> Array:
        """Place everything, one after the other, clear of what is there already."""
        places = sample_layout(key, self.scene.groups, self.scene.extent)
        angle = jax.random.uniform(jax.random.split(key, len(places) + 1)[-1], (1,), maxval=2 * math.pi)
        return jnp.concatenate([places[0], angle, jnp.zeros(5), places[1:].reshape(-1)])

    def step(self, state: Array, action: Array, key: Array) -> Step:
        """Ten physics steps, then goal and cost."""
        pose, velocity, _, (goal,), hazards, vases = self.parts(state)
        before = jnp.linalg.norm(goal - pose[:2])
        control = jnp.clip(action, -1, 1)
        for _ in range(SUBSTEPS):
            pose, velocity = advance(pose, velocity, control)
        along, across, _ = response(*forces(pose, velocity, control))
        vases = shoved(pose, vases)
        distance = jnp.linalg.norm(goal - pose[:2])
        reached = distance <= self.mark.size
        reward = jnp.clip(before - distance + reached, -REWARD_LIMIT, REWARD_LIMIT)
        others = jnp.concatenate([pose[None, :2], hazards, vases])
        keepouts = each([group for group in self.scene.groups if group.name != "goal"])
        new, _ = sample_place(key, self.mark.keepout, self.scene.extent, others, keepouts, GOAL_TRIES)
        places = jnp.concatenate([jnp.where(reached, new, goal)[None], hazards, vases]).reshape(-1)
        after = jnp.concatenate([pose, velocity, jnp.stack([along, across]), places])
        cost = self.on_hazard(pose, hazards).astype(jnp.float32)
        return Step(after, reward, cost[None], jnp.bool_(False))

    def observe(self, state: Array) -> Array:
        """What MuJoCo's sensors say, and the lidars."""
        pose, velocity, acceleration, *things = self.parts(state)
        return jnp.concatenate(
            [felt(pose, velocity, acceleration), *(lidar(pose, places) for places in things if len(places))]
        )

    def draw(self, state: Array) -> np.ndarray:
        """From above."""
        pose, _, _, goals, hazards, vases = (np.asarray(part) for part in self.parts(state))
        canvas = self.canvas(hazards)
        for x, y in goals:
            canvas.disc((x, y), self.mark.size, GREEN_TINT)
        for x, y in vases:
            canvas.box(x - 0.1, y - 0.1, x + 0.1, y + 0.1, WOOD)
        self.draw_point(canvas, pose, bool(self.on_hazard(pose, hazards)))
        return canvas.picture()


def shoved(pose: Array, vases: Array) -> Array:
    """Vases where the point leaves them: pushed away from its sphere and its nose."""
    nose = pose[:2] + AHEAD * jnp.stack([jnp.cos(pose[2]), jnp.sin(pose[2])])
    for centre, reach in ((pose[:2], SPHERE_REACH), (nose, NOSE_REACH)):
        offset = vases - centre
        distance = jnp.sqrt((offset**2).sum(-1, keepdims=True) + 1e-12)
        vases = centre + offset * jnp.maximum(1.0, (reach + VASE_REACH) / distance)
    return vases


def point_goal(name: str, **changes: Any) -> PointGoal:
    """A scene by name; `changes` as for `scene`.

    >>> point_goal("PointGoal1", hazards=2).observation_size
    60
    """
    return PointGoal(*named(name, **changes))
