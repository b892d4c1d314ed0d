"""A drone that flies to its goal in a gusty wind, past a zone it must keep out of.

pcces train drone:Drone-v0 --out runs/drone                # at most two steps inside on average; from this folder
pcces train drone:DroneStrict-v0 --out runs/strict         # at most 5 % of the flights may enter at all
"""

import jax
import jax.numpy as jnp

from pcces.envs import Continuous, Step, Task, register_task

GOAL, ZONE, RADIUS = jnp.array([4.0, 0.0]), jnp.array([2.0, 0.2]), 0.8


@register_task
class Drone(Task):
    name = "Drone-v0"
    observation_size = 7
    actions = Continuous((-1.0, -1.0), (1.0, 1.0))  # thrust
    max_steps = 100
    cost_names = ("inside",)
    thresholds = (2.0,)
    cost_bounds = (0.0, 1.0)

    def reset(self, key):
        start = jax.random.uniform(key, (2,), minval=-0.3, maxval=0.3)
        return jnp.concatenate([start, jnp.zeros(5)])  # place, speed, wind, whether it was inside before

    def observe(self, state):
        return jnp.concatenate([state[:6], jnp.linalg.norm(state[:2] - ZONE)[None] - RADIUS])

    def step(self, state, action, key):
        place, speed, wind, before = state[:2], state[2:4], state[4:6], state[6]
        wind = 0.9 * wind + 0.05 * jax.random.normal(key, (2,))
        speed = 0.95 * speed + 0.05 * (jnp.clip(action, -1, 1) + wind)
        after = place + 0.2 * speed
        inside = (jnp.linalg.norm(after - ZONE) < RADIUS).astype(jnp.float32)
        nearer = jnp.linalg.norm(place - GOAL) - jnp.linalg.norm(after - GOAL)
        there = jnp.linalg.norm(after - GOAL) < 0.3
        reward = 10 * nearer + there
        state = jnp.concatenate([after, speed, wind, jnp.maximum(before, inside)[None]])
        return Step(state, reward, self.cost(inside, before)[None], jnp.bool_(False))

    def cost(self, inside, before):
        return inside


@register_task
class DroneStrict(Drone):
    name = "DroneStrict-v0"
    cost_names = ("entered",)
    thresholds = (0.05,)  # the share of flights
    episode_cost_bounds = (0.0, 1.0)  # without this the certificate would reckon with a cost at every step

    def cost(self, inside, before):
        return inside * (1 - before)  # once a flight
