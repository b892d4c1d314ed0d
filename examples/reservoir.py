"""A reservoir that makes power: a full one earns more for each release, but must hardly ever spill over in a wet season.

pcces train reservoir:Reservoir-v0 --out runs/reservoir      # from this folder
"""

import jax
import jax.numpy as jnp

from pcces.envs import Continuous, Step, Task, register_task

DAYS = 180


@register_task
class Reservoir(Task):
    name = "Reservoir-v0"
    observation_size = 4
    actions = Continuous(0.0, 1.0)  # share of the turbines' capacity
    max_steps = DAYS
    cost_names = ("spilt", "dry")
    thresholds = (0.1, 6.0)  # of the reservoir's volume; days on which the river below gets too little
    cost_bounds = ((0.0, 1.0), (0.0, 1.0))

    def reset(self, key):
        level, wet = jax.random.uniform(key, (2,))
        return jnp.stack([0.4 + 0.3 * level, 0.02 + 0.02 * wet, 0.0])  # level, inflow, day

    def observe(self, state):
        season = jnp.pi * state[2] / DAYS
        return jnp.stack([2 * state[0] - 1, 30 * state[1] - 1, jnp.sin(season), jnp.cos(season)])

    def step(self, state, action, key):
        level, inflow, day = state
        released = jnp.minimum(0.06 * jnp.clip(action[0], 0, 1), level)
        earned = 20 * released * (0.3 + level)  # a higher head gives more power
        usual = 0.025 * (1 + 0.6 * jnp.sin(jnp.pi * day / DAYS))
        storm = jax.random.uniform(key) < 0.03
        inflow = (
            0.8 * inflow + 0.2 * usual * jnp.exp(0.5 * jax.random.normal(jax.random.fold_in(key, 1))) + 0.08 * storm
        )
        full = level - released + inflow
        costs = jnp.stack([jnp.clip(full - 1, 0, 1), (released < 0.01).astype(jnp.float32)])
        after = jnp.stack([jnp.minimum(full, 1.0), inflow, day + 1])
        return Step(after, earned, costs, jnp.bool_(False))
