"""A pole on a cart: CartPole (balance it) and CartSafe (swing it up without leaving the middle of the track).

The state is x, x_dot, theta, theta_dot in one array, theta = 0 upright. One array rather than four scalars: the same
speed on a CPU, about 1.5 times as fast on a GPU, where every small buffer of a scan costs a kernel launch.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from pcces.envs.draw import BLUE, GREY, INK, RED, RED_TINT, WOOD, Canvas
from pcces.envs.task import Discrete, Step, Task

GRAVITY = 9.8
HALF_LENGTH = 0.5  # of the pole, whose mass is 0.1
TOTAL_MASS = 1.1
POLE_MOMENT = 0.1 * HALF_LENGTH
FORCE = 10.0
TAU = 0.02
TRACK_END = 2.4
TWO_PI = 2 * math.pi


def advance(state: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """One explicit Euler step of x, x_dot, theta, theta_dot under a push to the left (action 0) or right (action 1)."""
    x, x_dot, theta, theta_dot = state
    sin, cos = jnp.sin(theta), jnp.cos(theta)
    push = (jnp.where(action == 1, FORCE, -FORCE) + POLE_MOMENT * theta_dot**2 * sin) / TOTAL_MASS
    theta_acc = (GRAVITY * sin - cos * push) / (HALF_LENGTH * (4 / 3 - 0.1 * cos**2 / TOTAL_MASS))
    x_acc = push - POLE_MOMENT * theta_acc * cos / TOTAL_MASS
    return x + TAU * x_dot, x_dot + TAU * x_acc, theta + TAU * theta_dot, theta_dot + TAU * theta_acc


class CartPole(Task):
    """Keep the pole upright: 1 for every step until it leans over 12 degrees or the cart leaves the track.

    >>> task = CartPole()
    >>> start = task.reset(jax.random.key(0))
    >>> float(task.step(start, 1, jax.random.key(1)).reward)
    1.0
    """

    name = "CartPole-v1"
    observation_size = 4
    actions = Discrete(2)
    max_steps = 500
    reward_threshold = 475.0
    entropy_bounds = (0.0, 1000.0)
    lean = math.radians(12)
    observation_low = (-2 * TRACK_END, -math.inf, -2 * lean, -math.inf)
    observation_high = (2 * TRACK_END, math.inf, 2 * lean, math.inf)
    frames_per_second = 50

    def reset(self, key: jax.Array) -> jax.Array:
        """All four near zero: the pole almost upright."""
        return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)

    def step(self, state: jax.Array, action: jax.Array, key: jax.Array) -> Step:
        """Deterministic: the key is not used."""
        x, x_dot, theta, theta_dot = advance(state, action)
        fallen = (jnp.abs(x) > TRACK_END) | (jnp.abs(theta) > self.lean)
        return Step(jnp.stack([x, x_dot, theta, theta_dot]), jnp.float32(1), jnp.zeros(0), fallen)

    def draw(self, state: jax.Array) -> np.ndarray:
        """The cart on its track."""
        return draw(state)


class CartPole200(CartPole):
    """CartPole as the paper ran it, at most 200 steps.

    >>> CartPole200().max_steps
    200
    """

    name = "CartPole-v0"
    max_steps = 200
    reward_threshold = 195.0


class CartSafe(Task):
    """Swing the hanging pole up and hold it: 1 + cos theta a step, until the cart leaves the track.

    Each step on which the cart is further than 1 from the middle costs 1.

    >>> task = CartSafe()
    >>> off_centre = jnp.array([1.5, 0.0, 3.0, 0.0])
    >>> float(task.step(off_centre, 0, jax.random.key(0)).costs[0])
    1.0
    """

    name = "CartSafe-v0"
    observation_size = 4
    actions = Discrete(2)
    max_steps = 300
    cost_names = ("off_centre",)
    thresholds = (30.0,)
    cost_bounds = (0.0, 1.0)
    entropy_bounds = (0.0, 2000.0)
    reward_threshold = 520.0
    safe = 1.0
    observation_low = (-2 * TRACK_END, -math.inf, 0.0, -math.inf)
    observation_high = (2 * TRACK_END, math.inf, TWO_PI, math.inf)
    frames_per_second = 50

    def reset(self, key: jax.Array) -> jax.Array:
        """At rest but for a little noise, the pole hanging down."""
        return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05).at[2].add(math.pi)

    def step(self, state: jax.Array, action: jax.Array, key: jax.Array) -> Step:
        """Deterministic: the key is not used."""
        x, x_dot, theta, theta_dot = advance(state, action)
        theta = theta - TWO_PI * jnp.floor(theta / TWO_PI)
        distance = jnp.abs(x)
        cost = (distance > self.safe).astype(jnp.float32)
        return Step(jnp.stack([x, x_dot, theta, theta_dot]), 1 + jnp.cos(theta), cost[None], distance > TRACK_END)

    def draw(self, state: jax.Array) -> np.ndarray:
        """The cart on its track, the costly ends of it in red."""
        return draw(state, self.safe)


def draw(state: jax.Array, safe: float | None = None) -> np.ndarray:
    """A picture of the cart; with `safe`, the zones beyond that distance from the middle are marked.

    >>> draw(jnp.zeros(4)).shape
    (400, 600, 3)
    """
    x, _, theta, _ = np.asarray(state, dtype=float)
    unsafe = safe is not None and abs(x) > safe
    canvas = Canvas(width=5.6, centre=(0.0, 0.35))
    if safe is not None:
        for side in (-1, 1):
            inside = unsafe and x * side > 0
            canvas.box(side * safe, -0.9, side * TRACK_END, 1.9, (*RED[:3], 80) if inside else RED_TINT)
            canvas.line([(side * safe, -0.9), (side * safe, 1.9)], RED, 2)
        canvas.text((0.0, 1.7), f"|x| > {safe:g} costs 1 a step", RED if unsafe else GREY)
    canvas.line([(-TRACK_END, 0), (TRACK_END, 0)], INK, 3)
    for end in (-TRACK_END, TRACK_END):
        canvas.line([(end, -0.12), (end, 0.12)], INK, 6)
    canvas.box(x - 0.28, -0.14, x + 0.28, 0.14, RED if unsafe else BLUE, radius=0.05)
    tip = (x + 2 * HALF_LENGTH * math.sin(theta), 2 * HALF_LENGTH * math.cos(theta))
    canvas.line([(x, 0), tip], WOOD, 11)
    canvas.disc((x, 0), 0.045, INK)
    return canvas.picture()
