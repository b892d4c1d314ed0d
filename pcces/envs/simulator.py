"""Any Gymnasium environment as something policies can be trained on: its shape, its costs, its limits.

A `Simulator` says what a `Task` says, but holds no dynamics: a worker calls `make()` and steps the real environment.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pcces.envs.making import check_options, gymnasium_id, make_gymnasium
from pcces.envs.registry import own_id
from pcces.envs.task import Continuous, Discrete
from pcces.support.jsonable import jsonable

CostFunction = Callable[[np.ndarray, Any, dict[str, Any]], Any]  # observation after the step, action, info -> cost(s)

# The paper's Table 5, and what differs from a step limit of 1000.
ENTROPY_BOUNDS = {
    "InvertedPendulumBulletEnv-v0": (-1000.0, 3000.0),
    "InvertedDoublePendulumBulletEnv-v0": (0.0, 1000.0),
    "AntBulletEnv-v0": (0.0, 5000.0),
    "HopperBulletEnv-v0": (0.0, 1000.0),
    "Walker2DBulletEnv-v0": (0.0, 2000.0),
}
PROBE_STEPS = 10  # in which an environment shows whether it has costs


class CostBoundsError(ValueError):
    """A step cost less than the least, or more than the most, that it was said to cost."""


@dataclass(frozen=True)
class Simulator:
    """An environment by its Gymnasium id, with what training must know of it."""

    name: str
    observation_size: int
    actions: Discrete | Continuous
    max_steps: int
    cost_names: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    cost_bounds: tuple[float, float] | None = None
    entropy_bounds: tuple[float, float] = (-math.inf, math.inf)
    reward_threshold: float | None = None
    cost: CostFunction | None = None
    options: dict[str, Any] = field(default_factory=dict, compare=False)
    spec: Any = field(default=None, compare=False)  # Gymnasium's, so that workers need not know the id

    def make(self, **options: Any) -> Environment:
        """The environment itself."""
        env = make_gymnasium(self.known().spec, **self.options, **options)
        return Environment(env, len(self.cost_names), self.cost)

    def known(self) -> Simulator:
        """The same, with what a run folder does not hold: how to make it. An error where that is not known.

        What a run folder names is not imported: its module must have been.
        """
        import gymnasium

        if self.cost is forgotten:
            raise ValueError(
                f"the costs of this run came from a function, which a run folder does not hold: give it again, as in "
                f"pcces.load(path, cost=...) or --cost MODULE:FUNCTION ({self.name})"
            )
        if self.spec is not None:
            return self
        name = gymnasium_id(own_id(self.name))
        check_options(self.name, self.options)
        env = make_gymnasium(name, **self.options)
        env.close()
        actions = _head(name, env.observation_space, env.action_space)
        there = int(env.observation_space.shape[0]), actions
        if there != (self.observation_size, self.actions):
            raise ValueError(
                f"{self.name} has {there[0]} observations and the actions {there[1]}, but in the run's folder it has "
                f"{self.observation_size} and {self.actions}"
            )
        return replace(self, spec=gymnasium.spec(name))

    def check_costs(self, costs: np.ndarray, seed: int) -> None:
        """Raise a CostBoundsError if steps of the episode of this seed cost less or more than they are said to."""
        if self.cost_bounds is None or costs.size == 0:
            return
        low, high = self.cost_bounds
        slack = 1e-6 * max(1.0, abs(low), abs(high))  # for rounding to 32 bits
        least, most = float(np.min(costs)), float(np.max(costs))
        if least < low - slack or most > high + slack:
            raise CostBoundsError(
                f"a step of {self.name} cost {least if least < low else most:g} (in the episode of seed {seed}), but a step is "
                f"said to cost {low:g} to {high:g}: give other cost_bounds (--cost-bounds), or none"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a run folder, from which `from_dict` makes it again without a look at the environment."""
        if isinstance(self.actions, Discrete):
            actions: dict[str, Any] = {"n": self.actions.n}
        else:
            actions = {"low": jsonable(self.actions.low), "high": jsonable(self.actions.high)}
        try:
            options = json.loads(json.dumps(self.options))
        except TypeError as error:
            raise TypeError(
                f"a run folder holds plain data only, but the options of {self.name} do not ({error})"
            ) from None
        return {
            "observation_size": self.observation_size,
            "actions": actions,
            "max_steps": self.max_steps,
            "cost_names": list(self.cost_names),
            "cost_bounds": None if self.cost_bounds is None else list(self.cost_bounds),
            "cost_function": self.cost is not None,
            "reward_threshold": self.reward_threshold,
            "options": options,
        }

    @classmethod
    def from_dict(cls, name: str, data: dict[str, Any], cost: CostFunction | None = None) -> Simulator:
        """What `to_dict` gave. Nothing is imported or run for it, so that a stranger's run is safe to open.

        >>> s = simulator("Pendulum-v1")
        >>> Simulator.from_dict("Pendulum-v1", s.to_dict()) == s
        True
        """
        given = data["actions"]
        if "n" in given:
            actions: Discrete | Continuous = Discrete(given["n"])
        else:
            low = tuple(-math.inf if v is None else v for v in given["low"])
            actions = Continuous(low, tuple(math.inf if v is None else v for v in given["high"]))
        if data["cost_function"] and cost is None:
            cost = forgotten
        bounds = None if data["cost_bounds"] is None else tuple(data["cost_bounds"])
        return cls(
            name, data["observation_size"], actions, data["max_steps"], tuple(data["cost_names"]), (), bounds,
            reward_threshold=data["reward_threshold"], cost=cost, options=data["options"],
        )  # fmt: skip


def forgotten(observation: np.ndarray, action: Any, info: dict[str, Any]) -> Any:
    """Stands for a cost function that a run folder does not hold."""
    raise RuntimeError("this cost function was not kept")


class Environment:
    """A Gymnasium environment stepped episode by episode, its costs read from wherever it puts them."""

    def __init__(self, env: Any, costs: int, cost: CostFunction | None):
        self.env, self.costs, self.cost = env, costs, cost
        self._first = True
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
        return self.env.reset(seed=seed)[0]

    def step(self, action: Any) -> tuple[Any, float, Any, bool]:
        """Observation, reward, costs (a number or an array), whether the episode is over. Actions may overshoot."""
        if self.discrete:
            action += self._start
        else:
            action = np.minimum(np.maximum(action, self._low), self._high)
        observation, reward, third, terminated, truncated, info = six(self.env.step(action))
        costs: Any = 0.0
        if self.costs:
            if self.cost is not None:
                costs = self.cost(flat(observation), action, info)
            else:
                costs = find_cost(third, info)
                costs = 0.0 if costs is None else costs  # some report only what is not zero
        self.terminated = terminated
        return observation, reward, costs, terminated or truncated

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


def six(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a step gives, with a place for the cost that Safety-Gymnasium gives as the third value, and others do not."""
    return result if len(result) == 6 else (*result[:2], None, *result[2:])


def find_cost(third: Any, info: dict[str, Any]) -> Any:
    """A step's cost from the places environments put it, or None: a six-tuple's third value, `constraint_costs`, `cost`.

    >>> find_cost(None, {"constraint_costs": [1.0, 0.0]}), find_cost(None, {"cost": 2.0}), find_cost(3.0, {})
    ([1.0, 0.0], 2.0, 3.0)
    """
    if third is not None:
        return third
    return info.get("constraint_costs", info.get("cost"))


def simulator(
    name: str,
    cost: CostFunction | None = None,
    cost_names: tuple[str, ...] | None = None,
    thresholds: tuple[float, ...] | float | None = None,
    cost_bounds: tuple[float, float] | None = None,
    max_steps: int | None = None,
    **options: Any,
) -> Simulator:
    """What `gymnasium.make(name, **options)` gives, ready for `pcces.train`.

    Costs come from `cost(observation, action, info)`, or are found by stepping the environment a little: a six-tuple's
    third value, `info["constraint_costs"]` or `info["cost"]`. `cost_bounds` are the least and the most that a step can cost:
    with them a certificate holds for any distribution of costs (docs/first-policy.md). `max_steps` is needed only where the environment has no
    time limit of its own; it can make a limit shorter, not longer.

    >>> s = simulator("CartPole-v1")
    >>> s.observation_size, s.actions, s.max_steps
    (4, Discrete(n=2), 500)
    """
    import gymnasium

    env = make_gymnasium(name, **options)
    spec = gymnasium.spec(name.rpartition(":")[2])  # after a module: that Gymnasium has imported
    try:
        observations, actions = env.observation_space, env.action_space
        head = _head(name, observations, actions)
        own = spec.max_episode_steps
        limit = min(filter(None, (max_steps, own)), default=None)
        if limit is None:
            raise ValueError(f"{name} has no time limit: give max_steps=..., the longest an episode may take")
        costs = _probe(env, cost)
    finally:
        env.close()
    names = _names(name, costs, cost_names)
    if thresholds is None:
        limits: tuple[float, ...] = ()
    else:
        limits = tuple(map(float, thresholds)) if isinstance(thresholds, tuple | list) else (float(thresholds),)
    return Simulator(
        name, int(observations.shape[0]), head, int(limit), names, limits, checked_cost_bounds(cost_bounds),
        ENTROPY_BOUNDS.get(name, (-math.inf, math.inf)), spec.reward_threshold, cost, options, spec,
    )  # fmt: skip


def with_cost(task: Simulator, cost: CostFunction) -> Simulator:
    """The same simulator, whose steps cost what `cost(observation, action, info)` says."""
    env = task.make()
    try:
        names = _names(task.name, _probe(env.env, cost))
    finally:
        env.close()
    return replace(task, cost=cost, cost_names=names, thresholds=(), cost_bounds=None)


def _names(name: str, costs: Any, given: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """What the costs of a step are called, if they were given as many names as there are."""
    count = 0 if costs is None else np.size(np.asarray(costs, dtype=float))
    names = given or (("cost",) if count == 1 else tuple(f"cost{i}" for i in range(count)))
    if len(names) != count:
        raise ValueError(f"{name} has {count} costs, but {len(names)} cost_names were given: {', '.join(names)}")
    return names


def checked_cost_bounds(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    """The least and the most that a step can cost, if they are given.

    >>> checked_cost_bounds((1, 0))
    Traceback (most recent call last):
    ...
    ValueError: cost_bounds are the least and the most that a step can cost, two finite numbers low < high; got (1, 0)
    """
    if bounds is None:
        return None
    if len(bounds) != 2 or not -math.inf < bounds[0] < bounds[1] < math.inf:
        raise ValueError(
            f"cost_bounds are the least and the most that a step can cost, two finite numbers low < high; got {bounds}"
        )
    return float(bounds[0]), float(bounds[1])


def _head(name: str, observations: Any, actions: Any) -> Discrete | Continuous:
    """What policies must give, if the spaces are ones they can deal with."""
    from gymnasium.spaces import Box
    from gymnasium.spaces import Discrete as DiscreteSpace

    if not isinstance(observations, Box) or len(observations.shape) != 1:
        raise ValueError(
            f"{name} has the observations {observations}, but policies need a flat Box: register an environment that wraps "
            "it in gymnasium.wrappers.FlattenObservation"
        )
    if isinstance(actions, DiscreteSpace):
        return Discrete(int(actions.n))
    if isinstance(actions, Box) and len(actions.shape) == 1:
        return Continuous(tuple(map(float, actions.low)), tuple(map(float, actions.high)))
    raise ValueError(
        f"{name} has the actions {actions}, but policies give a Discrete or a flat Box: register an environment that wraps "
        "it in gymnasium.wrappers.TransformAction, with such a space"
    )


def _probe(env: Any, cost: CostFunction | None) -> Any:
    """The cost of a step, or None where there seems to be no such thing."""
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(PROBE_STEPS):
        action = env.action_space.sample()
        observation, _, third, terminated, truncated, info = six(env.step(action))
        if cost is not None:
            return cost(flat(observation), action, info)
        costs = find_cost(third, info)
        if costs is not None or terminated or truncated:
            return costs
    return None
