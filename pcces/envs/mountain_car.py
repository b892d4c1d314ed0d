"""A car too weak for its hill: MountainCar, MountainCarContinuous, and MountainCarContinuousSafe (keep off the wall).

The state is position and velocity in one array.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from pcces.envs.draw import BLUE, GREEN, GREY, GROUND, INK, RED, RED_TINT, Canvas
from pcces.envs.task import Continuous, Discrete, Step, Task

LEFT, RIGHT = -1.2, 0.6
SPEED = 0.07
GRAVITY = 0.0025


def advance(state: jax.Array, push: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Position and velocity after one step; only the left wall stops the car."""
    position, velocity = state
    velocity = jnp.clip(velocity + push - GRAVITY * jnp.cos(3 * position), -SPEED, SPEED)
    position = jnp.clip(position + velocity, LEFT, RIGHT)
    return position, jnp.where((position <= LEFT) & (velocity < 0), 0.0, velocity)


class Valley(Task):
    """What all cars in the valley have in common."""

    observation_size = 2
    observation_low = (LEFT, -SPEED)
    observation_high = (RIGHT, SPEED)
    goal: float

    def reset(self, key: jax.Array) -> jax.Array:
        """At rest, near the bottom of the valley."""
        return jnp.stack([jax.random.uniform(key, minval=-0.6, maxval=-0.4), jnp.float32(0)])

    def draw(self, state: jax.Array) -> np.ndarray:
        """The car in its valley."""
        return draw(state, self.goal)


class MountainCar(Valley):
    """Reach the flag: -1 for every step until then. Actions: push left, nothing, push right.

    >>> task = MountainCar()
    >>> float(task.step(task.reset(jax.random.key(0)), 2, jax.random.key(1)).reward)
    -1.0
    """

    name = "MountainCar-v0"
    actions = Discrete(3)
    max_steps = 200
    reward_threshold = -110.0
    entropy_bounds = (0.0, 1000.0)
    goal = 0.5

    def step(self, state: jax.Array, action: jax.Array, key: jax.Array) -> Step:
        """Deterministic: the key is not used."""
        position, velocity = advance(state, 0.001 * (jnp.asarray(action, jnp.float32) - 1))
        there = (position >= self.goal) & (velocity >= 0)
        return Step(jnp.stack([position, velocity]), jnp.float32(-1), jnp.zeros(0), there)


class MountainCarContinuous(Valley):
    """Reach the flag for 100, less 0.1 a^2 on every step.

    An action a beyond [-1, 1] pushes no harder than 1, but is paid for in full.

    >>> task = MountainCarContinuous()
    >>> at_the_flag = jnp.array([0.44, 0.05])
    >>> print(task.step(at_the_flag, jnp.array([1.0]), jax.random.key(0)).reward)
    99.9
    """

    name = "MountainCarContinuous-v0"
    actions = Continuous(-1.0, 1.0)
    max_steps = 999
    reward_threshold = 90.0
    entropy_bounds = (-1000.0, 1000.0)
    overshoot = True  # Gymnasium's, too, charges for the push that was asked for, however little of it there is
    goal = 0.45

    def step(self, state: jax.Array, action: jax.Array, key: jax.Array) -> Step:
        """Deterministic: the key is not used."""
        position, velocity = advance(state, 0.0015 * jnp.clip(action[0], -1, 1))
        there = (position >= self.goal) & (velocity >= 0)
        reward = jnp.where(there, 100.0, 0.0) - 0.1 * action[0] ** 2
        return Step(jnp.stack([position, velocity]), reward, self.costs(position), there)

    def costs(self, position: jax.Array) -> jax.Array:
        """None here."""
        return jnp.zeros(0)


class MountainCarContinuousSafe(MountainCarContinuous):
    """MountainCarContinuous in which every step at or beyond -1.15, close to the left wall, costs 1.

    >>> task = MountainCarContinuousSafe()
    >>> at_the_wall = jnp.array([-1.2, 0.0])
    >>> print(task.step(at_the_wall, jnp.array([-1.0]), jax.random.key(0)).costs)
    [1.]
    """

    name = "MountainCarContinuousSafe-v0"
    cost_names = ("near_wall",)
    thresholds = (10.0,)
    cost_bounds = (0.0, 1.0)
    entropy_bounds = (0.0, 2000.0)
    unsafe = -1.15

    def costs(self, position: jax.Array) -> jax.Array:
        """1 close to the left wall."""
        return (position <= self.unsafe).astype(jnp.float32)[None]

    def draw(self, state: jax.Array) -> np.ndarray:
        """The car in its valley, the costly strip at the wall in red."""
        return draw(state, self.goal, self.unsafe)


def draw(state: jax.Array, goal: float, unsafe: float | None = None) -> np.ndarray:
    """A picture of the car and the flag; with `unsafe`, the strip to the left of it is marked.

    >>> draw(jnp.array([-0.5, 0.0]), goal=0.45).shape
    (400, 600, 3)
    """
    position, _ = np.asarray(state, dtype=float)

    def hill(x: float | np.ndarray) -> np.ndarray:
        return 0.45 * np.sin(3 * np.asarray(x)) + 0.55

    paying = unsafe is not None and position <= unsafe
    canvas = Canvas(width=2.1, centre=(-0.3, 0.6))
    if unsafe is not None:
        canvas.box(LEFT, -0.2, unsafe, 1.4, (*RED[:3], 90) if paying else RED_TINT)
        canvas.line([(unsafe, -0.2), (unsafe, 1.4)], RED, 2)
        canvas.text((-0.83, 1.2), f"x <= {unsafe:g} costs 1 a step", RED if paying else GREY)
    xs = np.linspace(LEFT, 0.8, 120)
    surface = [(LEFT, 1.4), *zip(xs, hill(xs))]
    canvas.polygon([(-1.5, -0.2), (-1.5, 1.4), *surface, (0.8, -0.2)], GROUND)
    canvas.line(surface, INK, 3)

    foot = float(hill(goal))
    canvas.line([(goal, foot), (goal, foot + 0.2)], INK, 3)
    canvas.polygon([(goal, foot + 0.2), (goal, foot + 0.12), (goal + 0.1, foot + 0.16)], GREEN)

    slope = math.atan(1.35 * math.cos(3 * position))
    along, up = np.array([math.cos(slope), math.sin(slope)]), np.array([-math.sin(slope), math.cos(slope)])
    ground = np.array([position, float(hill(position))])
    body = [(-0.1, 0.03), (0.1, 0.03), (0.1, 0.065), (0.05, 0.075), (0.025, 0.115), (-0.045, 0.115), (-0.07, 0.075)]
    canvas.polygon([tuple(ground + a * along + b * up) for a, b in (*body, (-0.1, 0.065))], RED if paying else BLUE)
    for wheel in (-0.055, 0.055):
        canvas.disc(tuple(ground + wheel * along + 0.03 * up), 0.028, INK)
    return canvas.picture()
