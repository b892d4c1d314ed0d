"""Acrobot: two links, a motor in the middle joint, swing the tip above the line.

The state is theta_1, theta_2, and their velocities in one array; theta_1 = 0 hangs down, theta_2 is measured from the
first link. Both links have mass 1, length 1, centre of mass 1/2 and inertia 1, which turns the textbook's formulas into
the short ones below.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from pcces.envs.draw import BLUE, GREEN, INK, WOOD, Canvas
from pcces.envs.task import Discrete, Step, Task

GRAVITY = 9.8
TAU = 0.2
SPEED_1 = 4 * math.pi
SPEED_2 = 9 * math.pi
TWO_PI = 2 * math.pi


def derivative(state: jax.Array, torque: jax.Array) -> jax.Array:
    """The equations of motion, in the form of Sutton and Barto's book."""
    theta_1, theta_2, speed_1, speed_2 = state
    sin_2, cos_2 = jnp.sin(theta_2), jnp.cos(theta_2)
    d_1 = 3.5 + cos_2
    d_2 = 1.25 + 0.5 * cos_2
    phi_2 = 0.5 * GRAVITY * jnp.sin(theta_1 + theta_2)
    phi_1 = 1.5 * GRAVITY * jnp.sin(theta_1) + phi_2 - (0.5 * speed_2 + speed_1) * speed_2 * sin_2
    ratio = d_2 / d_1
    acc_2 = (torque + ratio * phi_1 - 0.5 * speed_1**2 * sin_2 - phi_2) / (1.25 - d_2 * ratio)
    acc_1 = -ratio * acc_2 - phi_1 / d_1
    return jnp.stack([speed_1, speed_2, acc_1, acc_2])


class Acrobot(Task):
    """Swing the tip of the lower link one length above the pivot: -1 for every step until it is there.

    >>> task = Acrobot()
    >>> task.observe(task.reset(jax.random.key(0))).shape
    (6,)
    """

    name = "Acrobot-v1"
    observation_size = 6
    actions = Discrete(3)
    max_steps = 500
    reward_threshold = -100.0
    entropy_bounds = (0.0, 1000.0)
    observation_low = (-1.0, -1.0, -1.0, -1.0, -SPEED_1, -SPEED_2)
    observation_high = (1.0, 1.0, 1.0, 1.0, SPEED_1, SPEED_2)

    def reset(self, key: jax.Array) -> jax.Array:
        """Almost at rest, hanging down."""
        return jax.random.uniform(key, (4,), minval=-0.1, maxval=0.1)

    def observe(self, state: jax.Array) -> jax.Array:
        """Cosine and sine of both angles, then both velocities."""
        theta_1, theta_2, speed_1, speed_2 = state
        return jnp.stack([jnp.cos(theta_1), jnp.sin(theta_1), jnp.cos(theta_2), jnp.sin(theta_2), speed_1, speed_2])

    def step(self, state: jax.Array, action: jax.Array, key: jax.Array) -> Step:
        """One classical Runge-Kutta step under a torque of -1, 0 or 1. Deterministic: the key is not used."""
        torque = jnp.asarray(action, jnp.float32) - 1
        k_1 = derivative(state, torque)
        k_2 = derivative(state + TAU / 2 * k_1, torque)
        k_3 = derivative(state + TAU / 2 * k_2, torque)
        k_4 = derivative(state + TAU * k_3, torque)
        theta_1, theta_2, speed_1, speed_2 = state + TAU / 6 * (k_1 + 2 * k_2 + 2 * k_3 + k_4)
        theta_1 = theta_1 - TWO_PI * jnp.round(theta_1 / TWO_PI)
        theta_2 = theta_2 - TWO_PI * jnp.round(theta_2 / TWO_PI)
        state = jnp.stack(
            [theta_1, theta_2, jnp.clip(speed_1, -SPEED_1, SPEED_1), jnp.clip(speed_2, -SPEED_2, SPEED_2)],
        )
        up = -jnp.cos(theta_1) - jnp.cos(theta_1 + theta_2) > 1
        return Step(state, jnp.where(up, 0.0, -1.0), jnp.zeros(0), up)

    def draw(self, state: jax.Array) -> np.ndarray:
        """Both links and the line to reach."""
        return draw(state)


def draw(state: jax.Array) -> np.ndarray:
    """A picture of both links, with the line that the tip has to cross.

    >>> draw(jnp.zeros(4)).shape
    (400, 600, 3)
    """
    theta_1, theta_2, _, _ = np.asarray(state, dtype=float)
    elbow = (math.sin(theta_1), -math.cos(theta_1))
    tip = (elbow[0] + math.sin(theta_1 + theta_2), elbow[1] - math.cos(theta_1 + theta_2))
    canvas = Canvas(width=6.75, centre=(0.0, 0.0))
    canvas.line([(-3, 1), (3, 1)], GREEN, 3)
    canvas.text((2.55, 1.2), "goal", GREEN)
    canvas.line([(0, 0), elbow], BLUE, 16)
    canvas.line([elbow, tip], WOOD, 16)
    for joint in ((0.0, 0.0), elbow):
        canvas.disc(joint, 0.07, INK)
    canvas.disc(tip, 0.09, GREEN if tip[1] > 1 else INK)
    return canvas.picture()
