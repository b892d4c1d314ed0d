"""The Point's Goal tasks in JAX, for the device engine: thousands of episodes side by side on a GPU.

The point moves as in MuJoCo: three joints, ten explicit steps with implicit joint damping, no friction (its sphere only
touches the floor). One thing is simpler than there: a vase is a disc that the point shoves along, without spin or
momentum; it costs nothing at level 1. What is learnt here is to be certified on the MuJoCo form (engine "local").
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pcces.envs.draw import BLUE, GREEN_TINT, INK, RED, RED_TINT, WOOD, Canvas
from pcces.envs.task import Continuous, Step, Task

from .agents import Point
from .lidar import BINS, REACH
from .tasks import Goal, Scene, scene

Array = Any
REWARD_LIMIT, SUBSTEPS = 10.0, 10  # as in batch.py, which needs MuJoCo
# The point: a sphere of radius 0.1 and a cube of half-size 0.05, 0.1 ahead of it, of density 1.
SPHERE, CUBE = 4 / 3 * math.pi * 0.1**3, 0.1**3
MASS = SPHERE + CUBE
LEVER = CUBE * 0.1  # mass times the distance of its centre from the hinge
INERTIA = 0.4 * SPHERE * 0.1**2 + CUBE * (0.1**2 / 6 + 0.1**2)
GEAR, FORCE = 0.3, 0.05
SLIDE, TURN = 0.01, 0.005  # damping
GRAVITY, FIELD = 9.81, 0.5  # MuJoCo's magnetic field points south
SPHERE_REACH, NOSE_REACH, VASE_REACH = 0.1, 0.0564, 0.1128  # radii of discs of the same area
TRIES = 32  # candidates for a place; the last is taken if all fail


class PointGoal(Task):
    """A scene with a point, a goal, hazards and vases that cost nothing.

    >>> task = PointGoal(scene("PointGoal1"))
    >>> task.observation_size, task.observe(task.reset(jax.random.key(0))).shape
    (60, (60,))
    """

    actions = Continuous((-1.0, -1.0), (1.0, 1.0))
    max_steps = 1000
    cost_names = ("cost",)
    thresholds = (25.0,)
    cost_bounds = (0.0, 1.0)
    entropy_bounds = (-1000.0, 5000.0)
    frames_per_second = 50

    def __init__(self, scene: Scene) -> None:
        counts = {kind.name: kind.count for kind in scene.kinds}
        constrained = any(kind.name == "vases" and kind.constrained for kind in scene.kinds)
        if not isinstance(scene.agent, Point) or not isinstance(scene.task, Goal) or set(counts) - set(SEEN):
            raise ValueError("in JAX there are only points on their way to goals, past hazards and vases")
        if constrained:
            raise ValueError("vases that cost something need MuJoCo's contacts: engine='local'")
        self.scene = scene
        self.name = f"pcces/Point{scene.task.name}{1 if 'hazards' in counts else 0}-v0"
        self.hazards, self.vases = counts.get("hazards", 0), counts.get("vases", 0)
        self.observation_size = sum(scene.observation.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointGoal) and self._same() == other._same()

    def __hash__(self) -> int:
        return hash(self._same())

    def _same(self) -> tuple[Any, ...]:
        return self.scene.extent, tuple(self.scene.groups)

    # -- the state: x, y, angle; their velocities; acceleration along and across; goal; hazards; vases -----------------

    def parts(self, state: Array) -> tuple[Array, ...]:
        """Position and angle (3,), velocities (3,), acceleration (2,), and (n, 2) of goal, hazards and vases."""
        a, b = 8, 10 + 2 * self.hazards
        return state[:3], state[3:6], state[6:8], *(p.reshape(-1, 2) for p in (state[a:10], state[10:b], state[b:]))

    def reset(self, key: Array) -> Array:
        """Place everything, one after the other, clear of what is there already."""
        keepouts = np.concatenate([[g.keepout] * g.count for g in self.scene.groups])
        keys = jax.random.split(key, len(keepouts) + 1)
        places = jnp.zeros((0, 2))
        for i, keepout in enumerate(keepouts):
            places = jnp.concatenate([places, self._free(keys[i], keepout, places, keepouts[:i])[None]])
        angle = jax.random.uniform(keys[-1], (1,), maxval=2 * math.pi)
        return jnp.concatenate([places[0], angle, jnp.zeros(5), places[1:].reshape(-1)])

    def _free(self, key: Array, keepout: float, others: Array, keepouts: np.ndarray) -> Array:
        side = self.scene.extent - keepout
        candidates = jax.random.uniform(key, (TRIES, 2), minval=-side, maxval=side)
        squares = ((candidates[:, None] - others) ** 2).sum(-1)
        free = (squares >= jnp.asarray((keepouts + keepout) ** 2, jnp.float32)).all(-1).at[-1].set(True)
        return candidates[jnp.argmax(free)]

    def step(self, state: Array, action: Array, key: Array) -> Step:
        """Ten physics steps, then goal and cost."""
        pose, velocity, _, (goal,), hazards, vases = self.parts(state)
        before = jnp.linalg.norm(goal - pose[:2])
        control = jnp.clip(action, -1, 1)
        for _ in range(SUBSTEPS):
            pose, velocity = advance(pose, velocity, control)
        along, across, _ = accelerations(pose, velocity, control, 0.0)
        vases = shoved(pose, vases)
        distance = jnp.linalg.norm(goal - pose[:2])
        reached = distance <= self.scene.task.objects[0].size
        reward = jnp.clip(before - distance + reached, -REWARD_LIMIT, REWARD_LIMIT)
        others = jnp.concatenate([pose[None, :2], hazards, vases])
        keepouts = np.concatenate([[g.keepout] * g.count for g in self.scene.groups if g.name != "goal"])
        goal = jnp.where(reached, self._free(key, self.scene.task.objects[0].keepout, others, keepouts), goal)
        hit = (((hazards - pose[:2]) ** 2).sum(-1) <= 0.2**2).any() if self.hazards else jnp.bool_(False)
        after = jnp.concatenate(
            [pose, velocity, jnp.stack([along, across]), goal, hazards.reshape(-1), vases.reshape(-1)]
        )
        return Step(after, reward, hit.astype(jnp.float32)[None], jnp.bool_(False))

    def observe(self, state: Array) -> Array:
        """What MuJoCo's sensors say, and the lidars."""
        pose, velocity, acceleration, *things = self.parts(state)
        cos, sin = jnp.cos(pose[2]), jnp.sin(pose[2])
        forward, sideways = cos * velocity[0] + sin * velocity[1], cos * velocity[1] - sin * velocity[0]
        zero = jnp.zeros(())
        felt = [
            *acceleration, zero + GRAVITY, forward, sideways, zero, zero, zero, velocity[2],
            -FIELD * sin, -FIELD * cos, zero,
        ]  # fmt: skip
        lidars = []
        for places in things:
            if len(places):
                offsets = places - pose[:2]
                x, y = cos * offsets[:, 0] + sin * offsets[:, 1], cos * offsets[:, 1] - sin * offsets[:, 0]
                lidars.append(lidar(x, y))
        return jnp.concatenate([jnp.stack(felt), *lidars])

    def draw(self, state: Array) -> np.ndarray:
        """From above."""
        pose, _, _, goals, hazards, vases = (np.asarray(part) for part in self.parts(state))
        canvas = Canvas(width=1.5 * 2 * (self.scene.extent + 0.4), centre=(0.0, 0.0))
        for x, y in goals:
            canvas.disc((x, y), 0.3, GREEN_TINT)
        for x, y in hazards:
            canvas.disc((x, y), 0.2, RED_TINT)
        for x, y in vases:
            canvas.box(x - 0.1, y - 0.1, x + 0.1, y + 0.1, WOOD)
        x, y, angle = pose
        hit = len(hazards) > 0 and np.min(np.hypot(*(hazards - pose[:2]).T)) <= 0.2
        canvas.disc((x, y), 0.1, RED if hit else BLUE)
        canvas.line([(x, y), (x + 0.15 * math.cos(angle), y + 0.15 * math.sin(angle))], INK, 4)
        return canvas.picture()


SEEN = ("goal", "hazards", "vases")


def accelerations(pose: Array, velocity: Array, control: Array, implicit: float) -> tuple[Array, Array, Array]:
    """Along and across the nose, and of the angle. `implicit`: the time step over which damping is implicit."""
    cos, sin = jnp.cos(pose[2]), jnp.sin(pose[2])
    forward, sideways = cos * velocity[0] + sin * velocity[1], cos * velocity[1] - sin * velocity[0]
    spin = velocity[2]
    thrust = GEAR * jnp.clip(control[0], -FORCE, FORCE)
    torque = GEAR * jnp.clip(control[1] - GEAR * spin, -FORCE, FORCE)
    mass, inertia = MASS + implicit * SLIDE, INERTIA + implicit * TURN
    along = (thrust + LEVER * spin**2 - SLIDE * forward) / mass
    # Across and around are coupled: the mass sits ahead of the hinge.
    a, b = -SLIDE * sideways, torque - TURN * spin
    determinant = mass * inertia - LEVER**2
    return along, (inertia * a - LEVER * b) / determinant, (mass * b - LEVER * a) / determinant


def advance(pose: Array, velocity: Array, control: Array) -> tuple[Array, Array]:
    """One physics step."""
    h = Point.timestep
    along, across, turn = accelerations(pose, velocity, control, h)
    cos, sin = jnp.cos(pose[2]), jnp.sin(pose[2])
    velocity = velocity + h * jnp.stack([cos * along - sin * across, sin * along + cos * across, turn])
    return pose + h * velocity, velocity


def shoved(pose: Array, vases: Array) -> Array:
    """Vases where the point leaves them: pushed away from its sphere and its nose."""
    nose = pose[:2] + 0.1 * jnp.stack([jnp.cos(pose[2]), jnp.sin(pose[2])])
    for centre, reach in ((pose[:2], SPHERE_REACH), (nose, NOSE_REACH)):
        offset = vases - centre
        distance = jnp.sqrt((offset**2).sum(-1, keepdims=True) + 1e-12)
        vases = centre + offset * jnp.maximum(1.0, (reach + VASE_REACH) / distance)
    return vases


def lidar(x: Array, y: Array) -> Array:
    """16 bins for objects at (x, y) in the agent's frame: `pcces.envs.safety.lidar` says what a bin holds."""
    strength = jnp.maximum(1 - jnp.sqrt(x**2 + y**2) / REACH, 0.0)
    middles = (np.arange(BINS) + 0.5 + BINS / 2) % BINS - BINS / 2
    difference = jnp.abs(jnp.arctan2(y, x)[:, None] * (BINS / (2 * math.pi)) - jnp.asarray(middles, jnp.float32))
    away = BINS / 2 - jnp.abs(difference - BINS / 2)
    return jnp.clip(jnp.clip(1.5 - away, None, 1.0) * strength[:, None], 0.0).max(0)


def point_goal(name: str, **changes: Any) -> PointGoal:
    """A scene by name; `changes` as for `scene`.

    >>> point_goal("PointGoal1", hazards=2).observation_size
    60
    """
    return PointGoal(scene(name, **changes))
