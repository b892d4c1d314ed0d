"""A cluster of servers that follows its load: switch on as few as possible, and turn away at most one request in a hundred.

pcces train servers:Servers-v0 --out runs/servers      # from this folder
"""

import jax
import jax.numpy as jnp

from pcces.envs import Discrete, Step, Task, register_task

MOST, WARM_UP = 20, 3  # servers, steps until one that was switched on works


@register_task
class Servers(Task):
    name = "Servers-v0"
    observation_size = 6 + WARM_UP
    actions = Discrete(5)  # switch off two, off one, keep, switch on one, on two
    max_steps = 144  # ten minutes each, a day
    cost_names = ("turned_away",)
    thresholds = (1.44,)  # shares of a step's requests, summed over the day: 1 % of them
    cost_bounds = (0.0, 1.0)

    def reset(self, key):
        busy = 4 + 4 * jax.random.uniform(key)
        return jnp.concatenate(
            [jnp.stack([10.0, busy, 0.0, 0.0]), jnp.zeros(WARM_UP)]
        )  # on, load, queue, time, warming

    def observe(self, state):
        day = 2 * jnp.pi * state[3] / self.max_steps
        now = jnp.stack(
            [state[0] / 10 - 1, state[1] / 10 - 1, state[2] / 5, (state[0] - state[1]) / 5, jnp.sin(day), jnp.cos(day)]
        )
        return jnp.concatenate([now, state[4:]])

    def step(self, state, action, key):
        on, load, queue, clock = state[:4]
        warming = state[4:]
        wanted = action - 2.0
        on = jnp.clip(on + warming[0] + jnp.minimum(wanted, 0), 1, MOST)
        room = MOST - on - warming[1:].sum()
        warming = jnp.append(warming[1:], jnp.clip(wanted, 0, jnp.maximum(room, 0)))
        usual = 8 - 5 * jnp.cos(2 * jnp.pi * clock / self.max_steps)
        burst = 4.0 * (jax.random.uniform(key) < 0.02)
        noise = 0.6 * jax.random.normal(jax.random.fold_in(key, 1))
        load = jnp.maximum(0.7 * load + 0.3 * usual + noise + burst, 0)
        waiting = jnp.maximum(queue + load - on, 0)
        lost = jnp.maximum(waiting - 3, 0)  # a short queue is no harm
        reward = 1 - (on + warming.sum()) / MOST - 0.02 * jnp.abs(wanted)
        after = jnp.concatenate([jnp.stack([on, load, waiting - lost, clock + 1]), warming])
        return Step(after, reward, jnp.clip(lost / jnp.maximum(load, 1), 0, 1)[None], jnp.bool_(False))
