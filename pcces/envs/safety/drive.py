"""A driver that needs no training: it reads the goal's bearing off the lidar and steers round what it should not touch.

Good enough to look at the tasks, to test them, and as the least a trained policy should beat.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .lidar import BINS, REACH
from .tasks import Scene

_MIDDLES = (np.arange(BINS) + 0.5) * (2 * np.pi / BINS)
_DIRECTIONS = np.stack([np.cos(_MIDDLES), np.sin(_MIDDLES)], axis=-1)
_LEFT = np.stack([-np.sin(_MIDDLES), np.cos(_MIDDLES)], axis=-1)  # of these directions


class Driver:
    """Turns observations (o,) or (k, o) of a scene into actions.

    ``caution`` is how strongly it shuns hazards, vases, gremlins and wrong buttons; at 0 it goes straight for the goal.

    >>> from pcces.envs.safety import SafetyBatch
    >>> batch = SafetyBatch("PointGoal1", 1)
    >>> driver, observation, goals = Driver(batch.scene), batch.reset(seed=3), 0
    >>> for _ in range(500):
    ...     observation, _, _, _, _, info = batch.step(driver(observation))
    ...     goals += int(info["goal_met"][0])
    >>> goals > 2
    True
    """

    def __init__(self, scene: Scene, caution: float = 2.0) -> None:
        self.caution = caution
        self.car = scene.agent.name == "Car"
        self._at: dict[str, slice] = {}
        start = 0
        for name, size in scene.observation.items():
            self._at[name] = slice(start, start + size)
            start += size
        self._shunned = [f"{kind.name}_lidar" for kind in scene.objects]

    def __call__(self, observation: ArrayLike) -> NDArray[np.float64]:
        """Return the action (2,), or the actions (k, 2)."""
        rows = np.atleast_2d(np.asarray(observation, dtype=np.float64))
        goal = rows[:, self._at["goal_lidar"]]
        direct = self._goal_direction(goal)
        heading = direct.copy()
        for name in self._shunned:
            heading += self.caution * self._way_round(rows[:, self._at[name]], direct, 0.6)
        if "buttons_lidar" in self._at:
            buttons = rows[:, self._at["buttons_lidar"]]
            heading += self.caution * self._way_round(np.where(buttons > goal + 1e-6, buttons, 0.0), direct, 0.4)
        forward = -np.pi / 2 if self.car else 0.0  # the car's front looks along its negative y axis
        angle = np.arctan2(heading[:, 1], heading[:, 0]) - forward
        angle = (angle + np.pi) % (2 * np.pi) - np.pi
        speed = np.maximum(np.cos(angle), 0.0) ** 3
        velocity, gyro = rows[:, self._at["velocimeter"]], rows[:, self._at["gyro"]]
        if self.car:
            push = 0.04 * (0.8 * speed + velocity[:, 1])
            turn = 0.02 * (np.clip(2.5 * angle, -2.0, 2.0) - gyro[:, 2])
            action = np.stack([push + turn, push - turn], axis=-1)
        else:
            action = np.stack([0.2 * (0.7 * speed - velocity[:, 0]), angle], axis=-1)
        action = np.clip(action, -1.0, 1.0)
        return action if np.ndim(observation) > 1 else action[0]

    @staticmethod
    def _goal_direction(reading: NDArray[np.float64]) -> NDArray[np.float64]:
        """Undo the lidar: the neighbour's share tells how far across its bin the goal is."""
        row = np.arange(len(reading))
        own = reading.argmax(axis=1)
        nearest = reading[row, own]
        across = np.where(nearest > 0, reading[row, (own + 1) % BINS] / np.maximum(nearest, 1e-9), 0.5)
        angle = (own + across) * (2 * np.pi / BINS)
        return np.stack([np.cos(angle), np.sin(angle)], axis=-1)

    @staticmethod
    def _way_round(reading: NDArray[np.float64], direct: NDArray[np.float64], near: float) -> NDArray[np.float64]:
        """Return a push off everything nearer than ``near`` metres and past it, on the side of the goal."""
        strength = np.maximum(0.0, 1 - REACH * (1 - reading) / near)
        side = np.sign(direct @ _LEFT.T)
        return -strength @ _DIRECTIONS + (strength * side) @ _LEFT
