"""A car that follows another: keep up with it and drive smoothly, but hardly ever come closer than one second.

pcces train cruise:Cruise-v0 --out runs/cruise      # from this folder
"""

import jax
import jax.numpy as jnp

from pcces.envs import Continuous, Step, Task, register_task

DT = 0.5  # seconds


@register_task
class Cruise(Task):
    name = "Cruise-v0"
    observation_size = 4
    actions = Continuous(-1.0, 1.0)  # brake .. accelerate
    max_steps = 200
    cost_names = ("too_close", "crash")
    thresholds = (5.0, 0.05)  # half seconds within a second of the car in front; the share of drives that crash
    cost_bounds = (0.0, 1.0)

    def reset(self, key):
        gap, speed = jax.random.uniform(key, (2,))
        return jnp.stack(
            [30 + 30 * gap, 15 + 10 * speed, 20.0, 0.0, 0.0]
        )  # gap, our speed, theirs, their will, crashed

    def observe(self, state):
        gap, speed, theirs = state[:3]
        return jnp.stack([gap / 20, speed / 10 - 2, theirs / 10 - 2, gap / jnp.maximum(speed, 1)])

    def step(self, state, action, key):
        gap, speed, theirs, will, crashed = state
        push = jnp.clip(action[0], -1, 1)
        change, brakes = jax.random.normal(key), jax.random.uniform(jax.random.fold_in(key, 1)) < 0.01
        will = jnp.where(brakes, -5.0, 0.9 * will + 0.5 * change - 0.02 * (theirs - 20))  # now and then they brake hard
        theirs = jnp.clip(theirs + DT * jnp.clip(will, -6, 2), 0, 35)
        speed = jnp.clip(speed + DT * jnp.where(push > 0, 3 * push, 7 * push), 0, 40)
        gap = gap + DT * (theirs - speed)
        hit = (gap < 0).astype(jnp.float32)
        reward = jnp.exp(-jnp.maximum(gap, 0) / 60) - 0.2 * push**2
        costs = jnp.stack([(gap < speed).astype(jnp.float32), hit * (1 - crashed)])
        after = jnp.stack([jnp.clip(gap, 0, 200), speed * (1 - hit), theirs, will, jnp.maximum(crashed, hit)])
        return Step(after, reward, costs, jnp.bool_(False))
