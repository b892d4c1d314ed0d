"""Pendulum: swing it up and hold it, with a motor too weak to lift it at once.

The state is theta (0 upright) and its velocity in one array.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from pcces.envs.draw import GREEN_TINT, INK, WOOD, Canvas
from pcces.envs.task import Continuous, Step, Task

GRAVITY = 10.0
TAU = 0.05
SPEED = 8.0
TORQUE = 2.0
TWO_PI = 2 * math.pi


class Pendulum(Task):
    """Hold the pendulum upright: each step costs theta^2 + 0.1 theta_dot^2 + 0.001 torque^2. It never ends by itself.

    >>> task = Pendulum()
    >>> float(task.step(jnp.zeros(2), jnp.zeros(1), jax.random.key(0)).reward)
    -0.0
    """

    name = "Pendulum-v1"
    observation_size = 3
    actions = Continuous(-TORQUE, TORQUE)
    max_steps = 200
    entropy_bounds = (0.0, 1000.0)
    observation_low = (-1.0, -1.0, -SPEED)
    observation_high = (1.0, 1.0, SPEED)

    def reset(self, key: jax.Array) -> jax.Array:
        """Any angle, a velocity between -1 and 1."""
        return jax.random.uniform(key, (2,), minval=-1, maxval=1) * jnp.array([math.pi, 1])

    def observe(self, state: jax.Array) -> jax.Array:
        """Cosine and sine of the angle, and the velocity."""
        theta, theta_dot = state
        return jnp.stack([jnp.cos(theta), jnp.sin(theta), theta_dot])

    def step(self, state: jax.Array, action: jax.Array, key: jax.Array) -> Step:
        """Deterministic: the key is not used. The angle stays near [-pi, pi]: float32 would lose it over many turns."""
        theta, theta_dot = state
        theta = theta - TWO_PI * jnp.round(theta / TWO_PI)
        torque = jnp.clip(action[0], -TORQUE, TORQUE)
        reward = -(theta**2 + 0.1 * theta_dot**2 + 0.001 * torque**2)
        theta_dot = jnp.clip(theta_dot + TAU * (1.5 * GRAVITY * jnp.sin(theta) + 3 * torque), -SPEED, SPEED)
        return Step(jnp.stack([theta + TAU * theta_dot, theta_dot]), reward, jnp.zeros(0), jnp.bool_(False))

    def draw(self, state: jax.Array) -> np.ndarray:
        """The pendulum, the upright marked."""
        return draw(state)


def draw(state: jax.Array) -> np.ndarray:
    """A picture of the pendulum; the green wedge is where it should stand.

    >>> draw(jnp.zeros(2)).shape
    (400, 600, 3)
    """
    theta, _ = np.asarray(state, dtype=float)
    canvas = Canvas(width=3.9, centre=(0.0, 0.0))
    wedge = [(1.15 * math.sin(a), 1.15 * math.cos(a)) for a in np.linspace(-0.2, 0.2, 9)]
    canvas.polygon([(0, 0), *wedge], GREEN_TINT)
    canvas.line([(0, 0), (-math.sin(theta), math.cos(theta))], WOOD, 22)
    canvas.disc((-math.sin(theta), math.cos(theta)), 0.11, WOOD)
    canvas.disc((0, 0), 0.06, INK)
    return canvas.picture()
