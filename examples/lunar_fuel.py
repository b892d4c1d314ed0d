"""Gymnasium's lunar lander with little fuel: land well, but burn at most 60 units on average.

pip install 'gymnasium[box2d]'
pcces train lunar_fuel:LunarFuel-v0 --threshold 60 --cost-bounds 0,1.1 --out runs/lunar     # from this folder
"""

import gymnasium
import numpy as np


class Fuel(gymnasium.Wrapper):
    """A step costs what its engines burn: up to 1 for the main engine, up to 0.1 for a side engine."""

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        main, side = np.clip(action, -1, 1)
        burnt = (0.5 + 0.5 * main if main > 0 else 0.0) + (0.1 * abs(side) if abs(side) > 0.5 else 0.0)
        return observation, reward, terminated, truncated, info | {"cost": float(burnt)}


def make(**options):
    return Fuel(gymnasium.make("LunarLanderContinuous-v3", **options).unwrapped)


gymnasium.register("LunarFuel-v0", entry_point=make, max_episode_steps=1000)
