"""An insulin pump: keep blood sugar in range through a day of meals, and hardly ever let it fall too low.

A minimal model (Bergman and others 1979), with meals of unknown size and a sensor that is not exact.

pcces train insulin:Insulin-v0 --out runs/insulin      # from this folder
"""

import jax
import jax.numpy as jnp

from pcces.envs import Continuous, Step, Task, register_task

MINUTES, DAY = 10, 24 * 60
MEALS = jnp.array([8.0, 13.0, 19.0]) * 60


@register_task
class Insulin(Task):
    name = "Insulin-v0"
    observation_size = 5
    actions = Continuous(0.0, 1.0)  # share of the pump's greatest rate
    max_steps = DAY // MINUTES
    cost_names = ("too_low",)
    thresholds = (1.5,)  # times ten minutes below 70 mg/dl
    cost_bounds = (0.0, 1.0)

    def reset(self, key):
        sugar = 120 + 20 * jax.random.normal(key)
        return jnp.stack([sugar, 0.0, 10.0, 0.0, 0.0, sugar])  # sugar, action of insulin, insulin, meal, time, sensor

    def observe(self, state):
        day = 2 * jnp.pi * state[4] / DAY
        return jnp.stack([state[5] / 50 - 2.4, state[1] * 50, state[2] / 20, jnp.sin(day), jnp.cos(day)])

    def step(self, state, action, key):
        sugar, effect, insulin, meal, clock, _ = state
        meal_key, noise_key = jax.random.split(key)
        eaten = jnp.any((clock <= MEALS) & (clock + MINUTES > MEALS)) * (2 + 3 * jax.random.uniform(meal_key))
        given = 4 * jnp.clip(action[0], 0, 1)

        def minute(_, now):
            sugar, effect, insulin, meal = now
            sugar = sugar - (0.01 + effect) * sugar + 0.01 * 180 + meal
            effect = effect - 0.03 * effect + 4e-5 * insulin
            return jnp.maximum(sugar, 20), effect, insulin - 0.05 * insulin + given * 0.5, 0.97 * meal

        sugar, effect, insulin, meal = jax.lax.fori_loop(0, MINUTES, minute, (sugar, effect, insulin, meal + eaten))
        sensor = sugar + 5 * jax.random.normal(noise_key)
        reward = jnp.exp(-(((sugar - 110) / 40) ** 2))
        after = jnp.stack([sugar, effect, insulin, meal, clock + MINUTES, sensor])
        return Step(after, reward, (sugar < 70).astype(jnp.float32)[None], jnp.bool_(False))
