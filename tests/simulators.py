"""Small environments for the tests of engines and simulators, well-behaved and not."""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Line(gymnasium.Env):
    """A point on a line that wants to be at 0: one observation, one action, 20 steps."""

    observation_space: Any = spaces.Box(-10, 10, (1,), np.float32)
    action_space: Any = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, costs: str = "", folder: str = ""):
        self.costs, self.folder = costs, folder
        self.position, self.time, self.seed = 0.0, 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.seed = -1 if seed is None else seed
        self.position, self.time = float(self.np_random.uniform(-1, 1)), 0
        return self._observation(), {}

    def _observation(self) -> np.ndarray:
        return np.array([self.position], np.float32)

    def step(self, action: Any) -> Any:
        self.position += 0.3 * float(np.asarray(action).reshape(-1)[0])
        self.time += 1
        reward, cost = -abs(self.position), float(self.position > 0.5)
        if self.costs == "six":
            return self._observation(), reward, cost, False, self.time >= 20, {}
        info = {"cost": {"cost": cost}, "constraint_costs": {"constraint_costs": [cost, 1.0]}}.get(self.costs, {})
        return self._observation(), reward, False, self.time >= 20, info


class Numbered(Line):
    """Actions 3, 4, 5: left, stay, right."""

    action_space = spaces.Discrete(3, start=3)

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        return super().step(action - 4)


class Dict(Line):
    observation_space = spaces.Dict({"position": spaces.Box(-10, 10, (1,)), "time": spaces.Box(0, 20, (1,))})

    def _observation(self) -> Any:
        return {"position": super()._observation(), "time": np.array([self.time], np.float32)}


class Photo(Line):
    observation_space = spaces.Box(0, 255, (96, 96, 3), np.uint8)


class Story(Line):
    observation_space = spaces.Sequence(spaces.Discrete(3))


class Only(Line):
    action_space = spaces.Discrete(1)


class Mixed(Line):
    """Moves by a part of its action, sees by name where it is and what was switched on, and takes no other actions."""

    observation_space = spaces.Dict({"place": spaces.Box(-10, 10, (1, 2)), "mode": spaces.Discrete(3)})
    action_space = spaces.Dict(
        {"mode": spaces.Discrete(3), "move": spaces.Box(-1, 1, (1,)), "lamps": spaces.MultiBinary(2)}
    )
    mode = 0

    def _observation(self) -> Any:
        return {"place": np.array([[self.position, self.time]], np.float32), "mode": np.int64(self.mode)}

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(action), action
        self.mode = int(action["mode"])
        return super().step(action["move"])


class Boundless(Line):
    action_space = spaces.Box(np.array([-np.inf, -1, 0]), np.array([np.inf, 1, 1e10]), dtype=np.float64)


class Ranged(Line):
    def __init__(self, low: float = -1.0, high: float = 1.0):
        super().__init__()
        self.action_space = spaces.Box(low, high, (1,), np.float32 if abs(high - low) < 1e38 else np.float64)

    def step(self, action: Any) -> Any:
        assert self.action_space.contains(np.asarray(action, self.action_space.dtype)), action
        return super().step(np.clip(action, -1, 1))


class Keeping(Line):
    """Keeps the actions and hands out one and the same array as observation, as some simulators do."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []
        self.buffer = np.zeros(1, np.float32)

    def _observation(self) -> np.ndarray:
        self.buffer[0] = self.position
        return self.buffer

    def step(self, action: Any) -> Any:
        self.kept.append(action)
        return super().step(action)


class Trouble(Line):
    """What goes wrong is decided by the seed: about a tenth of the episodes."""

    def __init__(self, kind: str = "raise", folder: str = ""):
        super().__init__(folder=folder)
        self.kind = kind

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        if self.seed % 10 == 3 and self.time == 5:
            if self.kind == "raise":
                raise ArithmeticError(f"contact solver diverged at {self.seed}")
            if self.kind == "nan reward":
                reward = math.nan
            if self.kind == "nan observation":
                observation = observation * math.nan
            if self.kind == "hang":
                while True:
                    time.sleep(1)
            if self.kind == "exit":
                os._exit(7)
        return observation, reward, terminated, truncated, info


class Late(Line):
    """Says what a step costs from some step on, and before that nothing."""

    def __init__(self, key: str = "cost", at: int = 15, cost: Any = 1.0):
        super().__init__()
        self.key, self.at, self.cost = key, at, cost

    def step(self, action: Any) -> Any:
        *rest, info = super().step(action)
        return *rest, info | ({self.key: self.cost} if self.time >= self.at else {})


class Named(Line):
    """Costs by name, of which one is reported only where it is not zero; later perhaps others."""

    def __init__(self, later: Any = None):
        super().__init__()
        self.later = later

    def step(self, action: Any) -> Any:
        *rest, info = super().step(action)
        named = {"heat": 1.0} | ({"wear": 1.0} if self.time % 4 == 0 else {})
        return *rest, info | {"costs": self.later if self.later is not None and self.time > 11 else named}


class Cliff(Line):
    """Wants to be far to the right, where the model fails: random policies get there sooner or later."""

    def step(self, action: Any) -> Any:
        if self.position > 2.0:
            raise ArithmeticError("the model does not hold here")
        observation, _, terminated, truncated, info = super().step(np.asarray(action) + 0.5)
        return observation, self.position, terminated, truncated, info


class Deadly(Line):
    """Kills its worker in an episode, as often as there are files in the folder; each time one fewer."""

    def step(self, action: Any) -> Any:
        if self.time == 3:
            for file in Path(self.folder).iterdir():
                file.unlink(missing_ok=True)
                os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


class Slow(Line):
    pause = 0.002

    def step(self, action: Any) -> Any:
        time.sleep(self.pause)
        return super().step(action)


class Brisk(Slow):
    """Slow enough that a kill finds an iteration in the middle; more would only be waiting."""

    pause = 0.001


def effort(observation: np.ndarray, action: Any, info: dict) -> list[float]:
    return [float(np.abs(action).mean()), info["cost"]]


def lamps_and_place(observation: Any, action: Any, info: dict) -> tuple[float, float]:
    return float(action["lamps"].sum()), float(observation["place"][0, 1])


def late_cost(observation: np.ndarray, action: Any, info: dict) -> tuple[float, float]:
    return float(observation[0] > 0.5), float(abs(action[0]))


ALL = (
    Line,
    Numbered,
    Dict,
    Photo,
    Story,
    Only,
    Mixed,
    Boundless,
    Ranged,
    Keeping,
    Trouble,
    Late,
    Named,
    Cliff,
    Deadly,
    Slow,
    Brisk,
)
for _class in ALL:
    gymnasium.register(f"tests/{_class.__name__}-v0", entry_point=f"simulators:{_class.__name__}", max_episode_steps=50)
gymnasium.register("tests/Endless-v0", entry_point="simulators:Line")
gymnasium.register("tests/Short-v0", entry_point="simulators:Line", max_episode_steps=7)
