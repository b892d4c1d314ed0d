"""The point: how forces move it, and what it feels and sees. Exactly MuJoCo's three joints, written out.

Ten explicit steps with implicit joint damping, and no friction, because its sphere only touches the floor. Forces and
accelerations are in the point's own frame: along the nose, across it to the left, and around the hinge.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from pcces.envs.draw import BLUE, INK, RED, Canvas

from ..agents import Point
from ..lidar import BINS, REACH

Array = Any
SUBSTEPS = 10  # as in batch.py, which needs MuJoCo
# A sphere of radius 0.1 and a cube of half-size 0.05, 0.1 ahead of it, of density 1.
RADIUS, NOSE, AHEAD = 0.1, 0.05, 0.1
SPHERE, CUBE = 4 / 3 * math.pi * RADIUS**3, (2 * NOSE) ** 3
MASS = SPHERE + CUBE
LEVER = CUBE * AHEAD  # mass times the distance of its centre from the hinge
INERTIA = 0.4 * SPHERE * RADIUS**2 + CUBE * ((2 * NOSE) ** 2 / 6 + AHEAD**2)
GEAR, FORCE = 0.3, 0.05
SLIDE, TURN = 0.01, 0.005  # damping
GRAVITY, FIELD = 9.81, 0.5  # MuJoCo's magnetic field points south
NOSE_REACH, VASE_REACH = 0.0564, 0.1128  # radii of discs of the same area

Triple = tuple[Array, Array, Array]
NOTHING: Triple = (0.0, 0.0, 0.0)


def turned(angle: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """World directions (x, y) as the point sees them at this angle; at minus this angle, the other way round."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return cos * x + sin * y, cos * y - sin * x


def response(along: Array, across: Array, torque: Array, implicit: float = 0.0) -> Triple:
    """Accelerations that forces cause. `implicit`: the time step over which damping is implicit."""
    mass, inertia = MASS + implicit * SLIDE, INERTIA + implicit * TURN
    # Across and around are coupled: the mass sits ahead of the hinge.
    determinant = mass * inertia - LEVER**2
    return (
        along / mass,
        (inertia * across - LEVER * torque) / determinant,
        (mass * torque - LEVER * across) / determinant,
    )


def forces(pose: Array, velocity: Array, control: Array) -> Triple:
    """Motor, servo, damping, and the pull of the nose's mass on the hinge."""
    forward, sideways = turned(pose[2], velocity[0], velocity[1])
    spin = velocity[2]
    thrust = GEAR * jnp.clip(control[0], -FORCE, FORCE)
    torque = GEAR * jnp.clip(control[1] - GEAR * spin, -FORCE, FORCE)
    return thrust + LEVER * spin**2 - SLIDE * forward, -SLIDE * sideways, torque - TURN * spin


def advance(pose: Array, velocity: Array, control: Array, push: Triple = NOTHING) -> tuple[Array, Array]:
    """One physics step, with forces of contacts on top."""
    h = Point.timestep
    along, across, turn = response(*added(forces(pose, velocity, control), push), implicit=h)
    x, y = turned(-pose[2], along, across)
    velocity = velocity + h * jnp.stack([x, y, turn])
    return pose + h * velocity, velocity


def added(a: Triple, b: Triple) -> Triple:
    """The sum."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def felt(pose: Array, velocity: Array, acceleration: Array) -> Array:
    """What the accelerometer, the velocimeter, the gyro and the magnetometer say (12,)."""
    forward, sideways = turned(pose[2], velocity[0], velocity[1])
    zero = jnp.zeros(())
    return jnp.stack(
        [
            *acceleration, zero + GRAVITY, forward, sideways, zero, zero, zero, velocity[2],
            -FIELD * jnp.sin(pose[2]), -FIELD * jnp.cos(pose[2]), zero,
        ]
    )  # fmt: skip


def lidar(x: Array, y: Array) -> Array:
    """16 bins for objects at (x, y) (n,) in the agent's frame: `pcces.envs.safety.lidar` says what a bin holds."""
    strength = jnp.maximum(1 - jnp.sqrt(x**2 + y**2) / REACH, 0.0)
    middles = (np.arange(BINS) + 0.5 + BINS / 2) % BINS - BINS / 2
    difference = jnp.abs(jnp.arctan2(y, x)[:, None] * (BINS / (2 * math.pi)) - jnp.asarray(middles, jnp.float32))
    away = BINS / 2 - jnp.abs(difference - BINS / 2)
    return jnp.clip(jnp.clip(1.5 - away, None, 1.0) * strength[:, None], 0.0).max(0)


def seen_from(pose: Array, places: Array) -> tuple[Array, Array]:
    """Places (..., 2) in the point's frame."""
    return turned(pose[2], places[..., 0] - pose[0], places[..., 1] - pose[1])


def draw(canvas: Canvas, pose: np.ndarray, violates: bool) -> None:
    """Add the point: red while it violates something."""
    x, y, angle = pose
    canvas.disc((x, y), RADIUS, RED if violates else BLUE)
    canvas.line([(x, y), (x + 0.15 * math.cos(angle), y + 0.15 * math.sin(angle))], INK, 4)


class PointDriver:
    """The point among things that do not push back: 8 numbers, pose and its velocities, acceleration along and across."""

    size = 8

    @staticmethod
    def start(place: Array, angle: Array) -> Array:
        """At rest."""
        return jnp.concatenate([place, angle[None], jnp.zeros(5)])

    @staticmethod
    def moved(state: Array, control: Array) -> Array:
        """Ten physics steps later."""
        pose, velocity = state[:3], state[3:6]
        for _ in range(SUBSTEPS):
            pose, velocity = advance(pose, velocity, control)
        along, across, _ = response(*forces(pose, velocity, control))
        return jnp.concatenate([pose, velocity, jnp.stack([along, across])])

    @staticmethod
    def felt(state: Array) -> Array:
        """What the sensors say."""
        return felt(state[:3], state[3:6], state[6:8])

    @staticmethod
    def seen(state: Array, places: Array) -> tuple[Array, Array]:
        """Places (n, 2) in the point's frame."""
        return seen_from(state[:3], places)

    @staticmethod
    def shoved(state: Array, vases: Array) -> Array:
        """Vases where the point leaves them: pushed away from its sphere and its nose."""
        nose = state[:2] + AHEAD * jnp.stack([jnp.cos(state[2]), jnp.sin(state[2])])
        for centre, reach in ((state[:2], RADIUS), (nose, NOSE_REACH)):
            offset = vases - centre
            distance = jnp.sqrt((offset**2).sum(-1, keepdims=True) + 1e-12)
            vases = centre + offset * jnp.maximum(1.0, (reach + VASE_REACH) / distance)
        return vases

    @staticmethod
    def draw(canvas: Canvas, state: np.ndarray, violates: bool) -> None:
        """Add the point to a picture."""
        draw(canvas, state[:3], violates)
