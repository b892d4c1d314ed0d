"""A greenhouse: warm plants grow, heating costs money, and windows let heat out. It may freeze in at most half an hour a night.

pcces train greenhouse:Greenhouse-v0 --out runs/greenhouse      # from this folder
"""

import jax
import jax.numpy as jnp

from pcces.envs import Continuous, Step, Task, register_task

QUARTERS = 96  # of an hour, in a day


@register_task
class Greenhouse(Task):
    name = "Greenhouse-v0"
    observation_size = 5
    actions = Continuous((0.0, 0.0), (1.0, 1.0))  # heating, window
    max_steps = QUARTERS
    cost_names = ("frost",)
    thresholds = (2.0,)  # quarters of an hour below 5 degrees
    cost_bounds = (0.0, 1.0)

    def reset(self, key):
        indoors, weather = jax.random.normal(key, (2,))
        return jnp.stack([10 + 2 * indoors, 2 + 3 * weather, 0.0])  # degrees indoors, of the day's weather, time

    def outdoors(self, state):
        return state[1] - 6 * jnp.cos(2 * jnp.pi * state[2] / QUARTERS)  # coldest at midnight

    def sun(self, state):
        return jnp.maximum(0, -jnp.cos(2 * jnp.pi * state[2] / QUARTERS))

    def observe(self, state):
        day = 2 * jnp.pi * state[2] / QUARTERS
        return jnp.stack([state[0], self.outdoors(state), self.sun(state), jnp.sin(day), jnp.cos(day)])

    def step(self, state, action, key):
        heating, window = jnp.clip(action, 0, 1)
        inside, weather, clock = state
        lost = (0.03 + 0.2 * window) * (inside - self.outdoors(state))
        inside = inside + 1.0 * heating + 0.9 * self.sun(state) - lost
        growth = jnp.exp(-(((inside - 22) / 8) ** 2)) * (0.2 + self.sun(state))  # best at 22 degrees, in the sun
        weather = weather + 0.2 * jax.random.normal(key)
        after = jnp.stack([inside, weather, clock + 1])
        return Step(after, growth - 0.6 * heating, (inside < 5.0).astype(jnp.float32)[None], jnp.bool_(False))
