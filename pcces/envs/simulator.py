"""Any Gymnasium environment as something policies can be trained on: its shape, its costs, its limits.

A `Simulator` says what a `Task` says, but holds no dynamics: a worker calls `make()` and steps the real environment.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pcces.envs.task import Continuous, Discrete

CostFunction = Callable[[np.ndarray, Any, dict[str, Any]], Any]  # observation after the step, action, info -> cost(s)

# The paper's Table 5, and what differs from a step limit of 1000.
ENTROPY_BOUNDS = {
    "InvertedPendulumBulletEnv-v0": (-1000.0, 3000.0),
    "InvertedDoublePendulumBulletEnv-v0": (0.0, 1000.0),
    "AntBulletEnv-v0": (0.0, 5000.0),
    "HopperBulletEnv-v0": (0.0, 1000.0),
    "Walker2DBulletEnv-v0": (0.0, 2000.0),
}
PACKAGES = {
    "BulletEnv": ("pybullet_envs_gymnasium", "bullet")
}  # in an id: what registers it, and the extra that has it


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

    def make(self, **options: Any) -> Environment:
        """The environment itself."""
        return Environment(make_gymnasium(self.name, **self.options, **options), len(self.cost_names), self.cost)


class Environment:
    """A Gymnasium environment stepped episode by episode, its costs read from wherever it puts them."""

    def __init__(self, env: Any, costs: int, cost: CostFunction | None):
        self.env, self.costs, self.cost = env, costs, cost
        self._first = True
        self._discrete_start = int(getattr(env.action_space, "start", 0))
        self.discrete = hasattr(env.action_space, "n")
        if not self.discrete:
            self._low, self._high = env.action_space.low, env.action_space.high

    def reset(self, seed: int) -> np.ndarray:
        """Start an episode that depends on the seed alone.

        Some simulators (PyBullet's walkers) start their very first episode differently: it is thrown away.
        """
        if self._first:
            self.env.reset(seed=0)
            self._first = False
        observation, _ = self.env.reset(seed=seed)
        return np.asarray(observation, dtype=np.float32).reshape(-1)

    def step(self, action: Any) -> tuple[np.ndarray, float, Any, bool, bool]:
        """Observation, reward, costs, terminated, truncated."""
        if self.discrete:
            action = int(action) + self._discrete_start
        else:
            action = np.clip(action, self._low, self._high).astype(np.float32, copy=False)
        result = self.env.step(action)
        if len(result) == 6:  # Safety-Gymnasium: the cost is the third value
            observation, reward, cost, terminated, truncated, info = result
        else:
            observation, reward, terminated, truncated, info = result
            cost = None
        observation = np.asarray(observation, dtype=np.float32).reshape(-1)
        costs: Any = 0.0
        if self.costs:
            costs = self.cost(observation, action, info) if self.cost is not None else find_cost(cost, info)
        return observation, float(reward), costs, bool(terminated), bool(truncated)

    def close(self) -> None:
        """Let the simulator go."""
        self.env.close()


def find_cost(third: Any, info: dict[str, Any]) -> Any:
    """A step's cost from the places environments put it, or None: a six-tuple's third value, `constraint_costs`, `cost`.

    >>> find_cost(None, {"constraint_costs": [1.0, 0.0]}), find_cost(None, {"cost": 2.0}), find_cost(3.0, {})
    ([1.0, 0.0], 2.0, 3.0)
    """
    if third is not None:
        return third
    return info.get("constraint_costs", info.get("cost"))


def make_gymnasium(name: str, **options: Any) -> Any:
    """`gymnasium.make`, with errors that say what to do. A six-tuple step is left to its environment."""
    import gymnasium

    import pcces.envs  # registers pcces/...

    for part, (package, extra) in PACKAGES.items():
        if part in name and name not in gymnasium.registry:
            try:
                __import__(package)
            except ImportError as error:
                raise ImportError(
                    f"{name} needs the extra '{extra}': pip install 'pcces[{extra}]' ({error})"
                ) from error
    try:
        return gymnasium.make(name, **options)
    except gymnasium.error.NameNotFound as error:
        known = [*pcces.envs.tasks(), *gymnasium.registry]
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
        hint = (
            f"; did you mean {', '.join(near)}?" if near else "; `pcces envs` lists ours, gymnasium.registry all others"
        )
        raise ValueError(f"unknown task {name!r}{hint}") from error


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
    third value, `info["constraint_costs"]` or `info["cost"]`. `max_steps` is needed only where the environment has no
    time limit of its own.

    >>> s = simulator("CartPole-v1")
    >>> s.observation_size, s.actions, s.max_steps
    (4, Discrete(n=2), 500)
    """
    import gymnasium

    env = make_gymnasium(name, **options)
    spaces = gymnasium.spaces
    observations, actions = env.observation_space, env.action_space
    if not isinstance(observations, spaces.Box) or len(observations.shape) != 1:
        wrapper = "FlattenObservation" if spaces.utils.is_space_dtype_shape_equiv is not None else ""
        raise ValueError(
            f"{name} has observations {observations}, but policies need a flat Box: wrap the environment in "
            f"gymnasium.wrappers.{wrapper or 'FlattenObservation'} and register that"
        )
    if isinstance(actions, spaces.Discrete):
        head: Discrete | Continuous = Discrete(int(actions.n))
    elif isinstance(actions, spaces.Box) and len(actions.shape) == 1:
        head = Continuous(tuple(map(float, actions.low)), tuple(map(float, actions.high)))
    else:
        raise ValueError(
            f"{name} has actions {actions}, but policies give a Discrete or a flat Box: wrap the environment in "
            "gymnasium.wrappers.TransformAction (or FlattenObservation's counterpart of your own) and register that"
        )
    limit = max_steps or (env.spec.max_episode_steps if env.spec is not None else None)
    if limit is None:
        raise ValueError(f"{name} has no time limit: give max_steps=..., the longest an episode may take")
    found = _probe(env, cost)
    env.close()
    count = 0 if found is None else len(np.atleast_1d(np.asarray(found, dtype=float)))
    names = cost_names or (("cost",) if count == 1 else tuple(f"cost{i}" for i in range(count)))
    if len(names) != count:
        raise ValueError(f"{name} has {count} costs, but {len(names)} cost_names were given")
    if thresholds is None:
        limits: tuple[float, ...] = ()
    else:
        limits = tuple(map(float, thresholds)) if isinstance(thresholds, tuple | list) else (float(thresholds),)
    return Simulator(
        name, int(observations.shape[0]), head, int(limit), names, limits, cost_bounds,
        ENTROPY_BOUNDS.get(name, (-math.inf, math.inf)),
        None if env.spec is None else env.spec.reward_threshold, cost, options,
    )  # fmt: skip


def _probe(env: Any, cost: CostFunction | None) -> Any:
    """The cost of a step, or None where there is no such thing."""
    env.reset(seed=0)
    env.action_space.seed(0)
    action = env.action_space.sample()
    result = env.step(action)
    observation, info = result[0], result[-1]
    if cost is not None:
        return cost(np.asarray(observation, dtype=np.float32).reshape(-1), action, info)
    return find_cost(result[2] if len(result) == 6 else None, info)
