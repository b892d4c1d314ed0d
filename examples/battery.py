"""A battery that trades on the power market: buy low, sell high, but keep it cool and never run it empty.

pcces train battery:Battery-v0 --out runs/battery      # from this folder
"""

import jax
import jax.numpy as jnp

from pcces.envs import Continuous, Step, Task, register_task

QUARTERS = 96  # of an hour, in a day


@register_task
class Battery(Task):
    name = "Battery-v0"
    observation_size = 5
    actions = Continuous(-1.0, 1.0)  # sell .. buy, as a share of the greatest power
    max_steps = 2 * QUARTERS
    cost_names = ("hot", "empty")
    thresholds = (3.0, 5.0)  # quarters of an hour in two days, on average
    cost_bounds = (0.0, 1.0)

    def reset(self, key):
        charge, clock = jax.random.uniform(key, (2,))
        return jnp.stack([0.3 + 0.4 * charge, 0.0, 0.0, QUARTERS * clock])  # charge, heat, surprise in the price, time

    def price(self, state):
        _, _, surprise, clock = state
        return 1.0 + 0.5 * jnp.sin(4 * jnp.pi * clock / QUARTERS) + surprise  # a peak in the morning and one at night

    def observe(self, state):
        day = 2 * jnp.pi * state[3] / QUARTERS
        return jnp.stack([state[0], state[1], self.price(state), jnp.sin(2 * day), jnp.cos(2 * day)])

    def step(self, state, action, key):
        charge, heat, surprise, clock = state
        power = jnp.clip(action[0], -1, 1)
        stored = jnp.clip(charge + 0.08 * power, 0, 1)
        drawn = stored - charge
        paid = jnp.where(drawn > 0, drawn / 0.95, drawn * 0.95)  # some is lost on the way in, and some on the way out
        heat = 0.9 * heat + 0.1 * (drawn / 0.08) ** 2
        costs = jnp.stack([heat > 0.5, stored < 0.1]).astype(jnp.float32)
        surprise = 0.9 * surprise + 0.1 * jax.random.normal(key)
        after = jnp.stack([stored, heat, surprise, clock + 1])
        return Step(after, -self.price(state) * paid, costs, jnp.bool_(False))
