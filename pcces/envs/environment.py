"""A Gymnasium environment as it is played: stepped episode by episode, its costs read from wherever it puts them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from pcces.envs import costs as cost_rules
from pcces.envs.costs import CostError, CostFunction, find_cost

LOOK = 10  # steps in which an environment mostly shows whether it has costs
LONG_LOOK = 20, 5000, 10.0  # episodes, steps and seconds of one that is to find costs to be limited, none having shown


class Environment:
    """A Gymnasium environment stepped episode by episode, its costs read from wherever it puts them."""

    def __init__(self, env: Any, cost_names: tuple[str, ...], cost: CostFunction | None, name: str = ""):
        self.env, self.cost_names, self.cost, self.name = env, cost_names, cost, name
        self._first = True
        self._seed, self._time = -1, 0  # of the episode, and in it
        self.terminated = False  # whether the last step ended the episode, rather than a limit on time
        self._start = int(getattr(env.action_space, "start", 0))
        self.discrete = hasattr(env.action_space, "n")
        if not self.discrete:
            self._low, self._high = env.action_space.low, env.action_space.high

    def reset(self, seed: int) -> Any:
        """Start an episode that depends on the seed alone.

        Some simulators (PyBullet's walkers) start their very first episode differently: it is thrown away.
        """
        if self._first:
            self.env.reset(seed=0)
            self._first = False
        self._seed, self._time = seed, 0
        return self.env.reset(seed=seed)[0]

    def step(self, action: Any) -> tuple[Any, float, Any, bool]:
        """Observation, reward, costs (a number or an array), whether the episode is over. Actions may overshoot."""
        if self.discrete:
            action += self._start
        else:
            action = np.minimum(np.maximum(action, self._low), self._high)
        observation, reward, third, terminated, truncated, info = six(self.env.step(action))
        self._time += 1
        self.terminated = terminated
        costs: Any = 0.0
        if self.cost is not None:
            costs = self._counted(self.cost(*seen_and_done(self.env, observation, action), info))
        elif (cost := find_cost(third, info)) is not None:  # some report only what is not zero
            costs = self._counted(cost)
        return observation, reward, costs, terminated or truncated

    def _counted(self, costs: Any) -> Any:
        """A step's costs, if there are as many as before."""
        if type(costs) is float and len(self.cost_names) == 1:  # the usual case
            return costs
        if not self.cost_names:
            if cost_rules.is_cost(costs):
                raise cost_rules.unlimited(self.name, costs, self._time, self._seed)
            return 0.0
        numbers = cost_rules.as_numbers(costs, self.cost_names)
        if len(numbers) != len(self.cost_names):
            raise CostError(
                f"step {self._time} of {self.name} has {len(numbers)} costs, but it had {len(self.cost_names)} before: "
                f"{', '.join(self.cost_names)} (in the episode of seed {self._seed})"
            )
        return numbers

    def picture(self) -> np.ndarray:
        """What it looks like now, if it was made with render_mode="rgb_array"."""
        name = self.env.spec.id if self.env.spec else self.env
        try:
            drawn = self.env.render()
        except Exception as error:  # the drawing is the environment's own code, and may need more than is installed
            raise ValueError(f"{name} cannot be drawn ({type(error).__name__}: {error})") from error
        if drawn is None:
            raise ValueError(f"{name} cannot be drawn: it renders nothing")
        return np.asarray(drawn, dtype=np.uint8)[..., :3]

    def close(self) -> None:
        """Let the simulator go."""
        self.env.close()


def flat(observation: Any) -> np.ndarray:
    """An observation as policies see it."""
    return np.asarray(observation, dtype=np.float32).reshape(-1)


def seen_and_done(env: Any, observation: Any, action: Any) -> tuple[Any, Any]:
    """What a cost function gets of a step: the environment's own, where its spaces had to be flattened."""
    return getattr(env, "own_step", None) or (flat(observation), action)


def six(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a step gives, with a place for the cost that Safety-Gymnasium gives as the third value, and others do not."""
    if len(result) not in (5, 6):
        raise TypeError(
            f"a step gave {len(result)} values, not five (observation, reward, terminated, truncated, info): an environment of "
            "the older Gym needs a wrapper, such as gymnasium.make('GymV21Environment-v0', env=...) of Shimmy"
        )
    return result if len(result) == 6 else (*result[:2], None, *result[2:])


def probe(env: Any, cost: CostFunction | None, max_steps: int | None = None) -> Any:
    """The costs of a step, or None where there seem to be none; `max_steps` of an episode, where whole ones are to be played.

    Costs that come by name are those of all steps together: some report only what is not zero.
    """
    env.action_space.seed(0)
    episodes, steps, seconds = (1, LOOK, math.inf) if max_steps is None else LONG_LOOK
    seen: Any = None
    started = time.monotonic()
    for episode in range(episodes):
        env.reset(seed=episode)
        for _ in range(min(steps, max_steps or LOOK)):
            action = env.action_space.sample()
            observation, _, third, terminated, truncated, info = six(env.step(action))
            paid = find_cost(third, info) if cost is None else cost(*seen_and_done(env, observation, action), info)
            if isinstance(paid, Mapping):
                seen = {**(seen or {}), **paid}
            elif cost is not None or cost_rules.is_cost(paid):
                return paid
            steps -= 1
            if terminated or truncated or time.monotonic() - started > seconds:
                break
        if seen is not None or steps <= 0 or time.monotonic() - started > seconds:
            break
    return seen if cost_rules.is_cost(seen) else None
