"""Any Gymnasium environment as something policies can be trained on: its shape, its costs, its limits.

A `Simulator` says what a `Task` says, but holds no dynamics: a worker calls `make()` and steps the real environment.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pcces.envs import costs as cost_rules
from pcces.envs.costs import CostError, CostFunction, find_cost, names_of
from pcces.envs.making import check_options, gymnasium_id, make_gymnasium
from pcces.envs.registry import own_id
from pcces.envs.task import Continuous, Discrete
from pcces.support.jsonable import jsonable

log = logging.getLogger("pcces")

# The paper's Table 5, and what differs from a step limit of 1000.
ENTROPY_BOUNDS = {
    "InvertedPendulumBulletEnv-v0": (-1000.0, 3000.0),
    "InvertedDoublePendulumBulletEnv-v0": (0.0, 1000.0),
    "AntBulletEnv-v0": (0.0, 5000.0),
    "HopperBulletEnv-v0": (0.0, 1000.0),
    "Walker2DBulletEnv-v0": (0.0, 2000.0),
}
LOOK = 10  # steps in which an environment mostly shows whether it has costs
LONG_LOOK = (
    20,
    5000,
    10.0,
)  # episodes, steps and seconds that one may take whose costs are to be limited, none having shown


@dataclass(frozen=True)
class Simulator:
    """An environment by its Gymnasium id, with what training must know of it."""

    name: str
    observation_size: int
    actions: Discrete | Continuous
    max_steps: int
    cost_names: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    cost_bounds: tuple[float, float] | None = None  # the least and the most that a step can cost
    entropy_bounds: tuple[float, float] = (-math.inf, math.inf)
    reward_threshold: float | None = None
    cost: CostFunction | None = None
    options: dict[str, Any] = field(default_factory=dict, compare=False)
    spec: Any = field(default=None, compare=False)  # Gymnasium's, so that workers need not know the id
    episode_cost_bounds: tuple[float, float] | None = None  # the least and the most that an episode can cost

    def make(self, **options: Any) -> Environment:
        """The environment itself."""
        from pcces.envs.spaces import flattened

        env = flattened(make_gymnasium(self.known().spec, **self.options, **options))
        return Environment(env, self.cost_names, self.cost, self.name)

    def known(self) -> Simulator:
        """The same, with what a run folder does not hold: how to make it. An error where that is not known.

        What a run folder names is not imported: its module must have been.
        """
        import gymnasium

        from pcces.envs.spaces import flattened, head_of

        if self.cost is forgotten:
            raise ValueError(
                f"the costs of this run came from a function, which a run folder does not hold: give it again, as in "
                f"pcces.load(path, cost=...) or --cost MODULE:FUNCTION ({self.name})"
            )
        if self.spec is not None:
            return self
        name = gymnasium_id(own_id(self.name))
        check_options(self.name, self.options)
        env = flattened(make_gymnasium(name, **self.options))
        env.close()
        there = head_of(name, env)
        if there != (self.observation_size, self.actions):
            raise ValueError(
                f"{self.name} has {there[0]} observations and the actions {there[1]}, but in the run's folder it has "
                f"{self.observation_size} and {self.actions}"
            )
        return replace(self, spec=gymnasium.spec(name))

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
            "episode_cost_bounds": None if self.episode_cost_bounds is None else list(self.episode_cost_bounds),
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
        steps, episodes = (data.get(name) and tuple(data[name]) for name in ("cost_bounds", "episode_cost_bounds"))
        return cls(
            name, data["observation_size"], actions, data["max_steps"], tuple(data["cost_names"]), (), steps,
            reward_threshold=data["reward_threshold"], cost=cost, options=data["options"], episode_cost_bounds=episodes,
        )  # fmt: skip


def forgotten(observation: np.ndarray, action: Any, info: dict[str, Any]) -> Any:
    """Stands for a cost function that a run folder does not hold."""
    raise RuntimeError("this cost function was not kept")


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
        elif (found := find_cost(third, info)) is not None:  # some report only what is not zero
            costs = self._counted(found)
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
    return result if len(result) == 6 else (*result[:2], None, *result[2:])


def simulator(
    name: str,
    cost: CostFunction | None = None,
    cost_names: tuple[str, ...] | None = None,
    thresholds: tuple[float, ...] | float | None = None,
    cost_bounds: tuple[float, float] | None = None,
    max_steps: int | None = None,
    episode_cost_bounds: tuple[float, float] | None = None,
    **options: Any,
) -> Simulator:
    """What `gymnasium.make(name, **options)` gives, ready for `pcces.train`.

    Costs come from `cost(observation, action, info)`, or are found by stepping the environment a little: a six-tuple's
    third value, `info["constraint_costs"]`, `info["cost"]` or `info["costs"]`. `cost_bounds` are the least and the most that a
    step can cost, `episode_cost_bounds` an episode: with either, a certificate holds for any distribution of costs
    (docs/first-policy.md). `max_steps` is needed only where the environment has no
    time limit of its own; it can make a limit shorter, not longer.

    >>> s = simulator("CartPole-v1")
    >>> s.observation_size, s.actions, s.max_steps
    (4, Discrete(n=2), 500)
    """
    import gymnasium

    from pcces.envs.spaces import flattened, head_of, in_words

    env = flattened(make_gymnasium(name, **options))
    spec = gymnasium.spec(name.rpartition(":")[2])  # after a module: that Gymnasium has imported
    try:
        size, head = head_of(name, env)
        own = spec.max_episode_steps
        limit = min(filter(None, (max_steps, own)), default=None)
        if limit is None:
            raise ValueError(f"{name} has no time limit: give max_steps=..., the longest an episode may take")
        costs = _probe(env, cost)
        if costs is None and (thresholds is not None or cost_names):
            costs = _probe(env, cost, limit)
    finally:
        env.close()
    for words in in_words(name, env):
        log.warning(words)
    names = names_of(name, costs, cost_names)
    if thresholds is None:
        limits: tuple[float, ...] = ()
    else:
        limits = tuple(map(float, thresholds)) if isinstance(thresholds, tuple | list) else (float(thresholds),)
    return Simulator(
        name, size, head, int(limit), names, limits, cost_rules.checked(cost_bounds),
        ENTROPY_BOUNDS.get(name, (-math.inf, math.inf)), spec.reward_threshold, cost, options, spec,
        cost_rules.checked(episode_cost_bounds, "episode"),
    )  # fmt: skip


def with_cost(task: Simulator, cost: CostFunction) -> Simulator:
    """The same simulator, whose steps cost what `cost(observation, action, info)` says."""
    env = task.make()
    try:
        names = names_of(task.name, _probe(env.env, cost))
    finally:
        env.close()
    return replace(task, cost=cost, cost_names=names, thresholds=(), cost_bounds=None, episode_cost_bounds=None)


def looked_at_longer(task: Simulator) -> Simulator:
    """The same simulator, with the costs that show in whole episodes of random actions, if any do."""
    env = task.make()
    try:
        return replace(task, cost_names=names_of(task.name, _probe(env.env, task.cost, task.max_steps)))
    finally:
        env.close()


def _probe(env: Any, cost: CostFunction | None, max_steps: int | None = None) -> Any:
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
            found = find_cost(third, info) if cost is None else cost(*seen_and_done(env, observation, action), info)
            if isinstance(found, Mapping):
                seen = {**(seen or {}), **found}
            elif cost is not None or cost_rules.is_cost(found):
                return found
            steps -= 1
            if terminated or truncated or time.monotonic() - started > seconds:
                break
        if seen is not None or steps <= 0 or time.monotonic() - started > seconds:
            break
    return seen if cost_rules.is_cost(seen) else None
