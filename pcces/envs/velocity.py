"""The velocity tasks: run, but not too fast. Gymnasium's MuJoCo robots (v5) with Safety-Gymnasium's costs.

A step costs 1 if the robot is faster than its limit, else 0. The limits on speed are those of Safety-Gymnasium's
`Safety...Velocity-v1` (safety_gymnasium/tasks/safe_velocity/safety_*_velocity_v1.py), and so is what counts as speed: along x, or
in the plane for the two robots that can go sideways (Ant, Humanoid). An episode may have 25 such steps on average, as in
OmniSafe's settings. docs/reference/safety-tasks.md says where v5 differs from the v4 beneath Safety-Gymnasium's tasks.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from pcces.envs.registry import ROBOTS, robot_of, velocity_id
from pcces.envs.simulator import Simulator, simulator
from pcces.envs.task import Continuous
from pcces.support.streams import quiet

ALLOWED = 25.0  # steps of an episode that may be too fast, on average


class Robot(NamedTuple):
    """What training must know of a robot before MuJoCo is imported, and its limit."""

    observation_size: int
    action_size: int
    action_limit: float
    speed_limit: float  # metres a second
    in_the_plane: bool = False  # whether speed sideways counts, too
    reward_threshold: float | None = None


KNOWN = {
    "Hopper": Robot(11, 3, 1.0, 0.7402, reward_threshold=3800.0),
    "HalfCheetah": Robot(17, 6, 1.0, 3.2096, reward_threshold=4800.0),
    "Walker2d": Robot(17, 6, 1.0, 2.3415),
    "Ant": Robot(105, 8, 1.0, 2.6222, in_the_plane=True, reward_threshold=6000.0),
    "Swimmer": Robot(8, 2, 1.0, 0.2282, reward_threshold=360.0),
    "Humanoid": Robot(348, 17, 0.4, 1.4149, in_the_plane=True),
}
assert tuple(KNOWN) == ROBOTS


class SpeedCost(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Puts a step's cost into `info["cost"]`: whether the robot is too fast."""

    def __init__(self, env: Any, robot: Robot) -> None:
        super().__init__(env)
        self.robot = robot

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """The robot's own step, and its cost."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        speed = info["x_velocity"]
        if self.robot.in_the_plane:
            speed = math.hypot(speed, info["y_velocity"])
        return observation, reward, terminated, truncated, {**info, "cost": float(speed > self.robot.speed_limit)}


def velocity_env(robot: str, **options: Any) -> SpeedCost:
    """The environment of a robot; further options are those of Gymnasium's own, `forward_reward_weight=2.0` say.

    The time limit is Gymnasium's wrapper, which `gymnasium.make("pcces/HopperVelocity-v1")` puts around it.

    >>> env = velocity_env("Hopper")
    >>> observation, info = env.reset(seed=0)
    >>> env.step(env.action_space.sample())[4]["cost"]
    0.0
    """
    try:
        with quiet():  # MuJoCo warns of what it finds old-fashioned in Gymnasium's models
            made = gymnasium.make(f"{robot}-v5", disable_env_checker=True, **options).unwrapped
    except (ImportError, gymnasium.error.DependencyNotInstalled) as error:
        raise ImportError(f"{velocity_id(robot)} needs MuJoCo: pip install 'pcces[rl,safety]' ({error})") from error
    return SpeedCost(made, KNOWN[robot])


def velocity_simulator(name: str, **options: Any) -> Simulator:
    """A velocity task by any of its names, for training; `options` as for `velocity_env`.

    >>> s = velocity_simulator("SafetyHopperVelocity-v1")
    >>> s.name, s.observation_size, s.thresholds, s.cost_bounds
    ('pcces/HopperVelocity-v1', 11, (25.0,), (0.0, 1.0))
    """
    robot = robot_of(name)
    if robot is None:
        raise ValueError(f"unknown velocity task {name!r}; there are {', '.join(map(velocity_id, ROBOTS))}")
    known = KNOWN[robot]
    if options:  # which may change what is seen
        made = simulator(velocity_id(robot), **options)
        return replace(made, cost_names=("too_fast",), thresholds=(ALLOWED,), cost_bounds=(0.0, 1.0))
    limit = float(np.float32(known.action_limit))  # as Gymnasium's space has it
    actions = Continuous((-limit,) * known.action_size, (limit,) * known.action_size)
    return Simulator(
        velocity_id(robot), known.observation_size, actions, 1000, ("too_fast",), (ALLOWED,), (0.0, 1.0),
        reward_threshold=known.reward_threshold,
    )  # fmt: skip
