"""Any Gymnasium environment as something policies can be trained on: its shape, its costs, its limits.

A `Simulator` says what a `Task` says, but holds no dynamics: a worker calls `make()` and steps the real environment.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from pcces.envs import costs as cost_rules
from pcces.envs.costs import CostFunction, names_of
from pcces.envs.environment import Environment, probe
from pcces.envs.making import bare, check_options, draw_without_a_display, gymnasium_id, make_gymnasium
from pcces.envs.registry import own_id
from pcces.envs.task import Continuous, Discrete
from pcces.support.jsonable import jsonable
from pcces.support.sending import received, sendable

log = logging.getLogger("pcces")

# The paper's Table 5, and what differs from a step limit of 1000.
ENTROPY_BOUNDS = {
    "InvertedPendulumBulletEnv-v0": (-1000.0, 3000.0),
    "InvertedDoublePendulumBulletEnv-v0": (0.0, 1000.0),
    "AntBulletEnv-v0": (0.0, 5000.0),
    "HopperBulletEnv-v0": (0.0, 1000.0),
    "Walker2DBulletEnv-v0": (0.0, 2000.0),
}


@dataclass(frozen=True)
class Simulator:
    """An environment by its Gymnasium id, with what training must know of it."""

    overshoot: ClassVar[bool] = False  # it gets actions clipped to the box

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
    maker: Callable[..., Any] | None = field(
        default=None, compare=False
    )  # in place of an id: what makes the environment

    def __getstate__(self) -> dict[str, Any]:
        """As workers get it."""
        return vars(self) | {"cost": sendable(self.cost), "maker": sendable(self.maker)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, received(value))

    def make(self, **options: Any) -> Environment:
        """The environment itself."""
        from pcces.envs.spaces import flattened

        env = flattened(self._made(**options))
        return Environment(env, self.cost_names, self.cost, self.name)

    def _made(self, **options: Any) -> Any:
        known = self.known()
        if known.maker is None:
            return make_gymnasium(known.spec, **self.options, **options)
        if options.get("render_mode") is not None:
            draw_without_a_display()
        return bare(known.maker(**self.options, **options))

    def known(self) -> Simulator:
        """The same, with what a run folder does not hold: how to make it. An error where that is not known.

        What a run folder names is not imported: its module must have been.
        """
        import gymnasium

        from pcces.envs.spaces import flattened, head_of

        if self.cost is forgotten:
            raise ValueError(
                f"the costs of this run come from a function, which a run folder does not contain: give it again, as in "
                f"pcces.load(path, cost=...) or --cost MODULE:FUNCTION ({self.name})"
            )
        if self.maker is forgotten_maker:
            raise ValueError(
                f"the environment of this run was given as an object, which a run folder does not contain: give it again, as in "
                f"pcces.load(path, task=...) or --import MODULE:NAME ({self.name})"
            )
        if self.spec is not None or self.maker is not None:
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
        options = plain_args(self.name, self.options)
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
            "given": self.maker is not None,
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
            maker=forgotten_maker if data.get("given") else None,
        )  # fmt: skip


def plain_args(name: str, options: dict[str, Any] | None) -> dict[str, Any] | None:
    """What an environment is made with, as a run folder can hold it."""
    try:
        return dict(json.loads(json.dumps(options))) if options is not None else None
    except TypeError as error:
        raise TypeError(
            f"a run folder contains plain data only, but the options of {name} are not plain data ({error})"
        ) from None


def forgotten(observation: np.ndarray, action: Any, info: dict[str, Any]) -> Any:
    """Stands for a cost function that a run folder does not hold."""
    raise RuntimeError("this cost function was not kept")


def forgotten_maker(**options: Any) -> Any:
    """Stands for what makes an environment that a run folder does not hold."""
    raise RuntimeError("what makes this environment was not kept")


def simulator(
    environment: Any,
    /,
    cost: CostFunction | None = None,
    cost_names: tuple[str, ...] | None = None,
    thresholds: tuple[float, ...] | float | None = None,
    cost_bounds: tuple[float, float] | None = None,
    max_steps: int | None = None,
    episode_cost_bounds: tuple[float, float] | None = None,
    **options: Any,
) -> Simulator:
    """A Gymnasium environment, ready for `pcces.train`.

    `environment` is an id of `gymnasium.make`; or a class or a function, which is called with the `options`; or an environment or
    a vector environment, of which workers get copies.

    Costs come from `cost(observation, action, info)`. Without it, a few steps of the environment show where they are: in the third
    value of a six-tuple, `info["constraint_costs"]`, `info["cost"]` or `info["costs"]`. `cost_bounds` is the range of a step's
    cost, and `episode_cost_bounds` that of an episode's cost. With either, the certificate is guaranteed for any distribution of
    costs (docs/how-to/simulator.md). `max_steps` is needed only if the environment has no time limit. It can shorten a time limit,
    but not extend it.

    >>> s = simulator("CartPole-v1")
    >>> s.observation_size, s.actions, s.max_steps
    (4, Discrete(n=2), 500)
    >>> from gymnasium.envs.classic_control import PendulumEnv
    >>> simulator(PendulumEnv, max_steps=100, g=9.0).max_steps
    100

    Many parameters: everything that can be set for a simulator.
    """
    from pcces.envs.spaces import flattened, head_of, in_words

    name, made, spec, maker, own = _first_made(environment, options)
    env = flattened(made)
    try:
        size, head = head_of(name, env)
        limit = time_limit_of(name, own, max_steps)
        costs = probe(env, cost)
        if costs is None and (thresholds is not None or cost_names):
            costs = probe(env, cost, limit)
    finally:
        env.close()
    for words in in_words(name, env):
        log.warning(words)
    names = names_of(name, costs, cost_names)
    limits = tuple(np.atleast_1d(() if thresholds is None else thresholds).astype(float).tolist())
    return Simulator(
        name, size, head, limit, names, limits, cost_rules.checked(cost_bounds),
        ENTROPY_BOUNDS.get(name, (-math.inf, math.inf)), getattr(spec, "reward_threshold", None), cost, options,
        None if maker else spec, cost_rules.checked(episode_cost_bounds, "episode"), maker,
    )  # fmt: skip


def _first_made(environment: Any, options: dict[str, Any]) -> tuple[str, Any, Any, Any, int | None]:
    """An environment's name, one of it, what Gymnasium knows of it, what makes it if it is no id, and its own time limit."""
    import gymnasium

    if isinstance(environment, str):
        env = make_gymnasium(environment, **options)
        spec = gymnasium.spec(environment.rpartition(":")[2])  # after a module: that Gymnasium has imported
        return environment, env, spec, None, spec.max_episode_steps
    from pcces.envs.objects import time_limit, understood

    given = understood(environment)
    env = given.make(**options)
    if given.said:
        log.warning(given.said)
    return given.name, bare(env), getattr(env, "spec", None), given.make, time_limit(env)


def time_limit_of(name: str, own: int | None, asked: int | None) -> int:
    """The most steps of an episode: as asked for, if that is no more than the environment's own limit."""
    if asked is not None and (not isinstance(asked, int | np.integer) or asked < 1):
        raise ValueError(f"max_steps must be a whole number of at least 1, got {asked!r}")
    if asked is not None and own is not None and asked > own:
        log.warning("%s ends after %d steps by itself, so max_steps=%d changes nothing", name, own, asked)
    limit = min(filter(None, (asked, own)), default=None)
    if limit is None:
        raise ValueError(f"{name} has no time limit: give max_steps=... (--max-steps), the longest an episode may take")
    return int(limit)


def made_with(task: Simulator, given: Any) -> Simulator:
    """A simulator of a run folder with what makes its environment, which is given again."""
    from pcces.envs.objects import Given
    from pcces.envs.spaces import flattened, head_of

    if not isinstance(given, Given):
        raise TypeError(
            f"{task.name} is an environment that workers step: it is given as one, its class, or a function, not as {given!r}"
        )
    env = flattened(bare(given.make(**task.options)))
    env.close()
    there = head_of(task.name, env)
    if there != (task.observation_size, task.actions):
        raise ValueError(
            f"{given.name} has {there[0]} observations and the actions {there[1]}, but in the run's folder {task.name} has "
            f"{task.observation_size} and {task.actions}"
        )
    return replace(task, maker=given.make)


def with_cost(task: Simulator, cost: CostFunction) -> Simulator:
    """The same simulator, whose steps cost what `cost(observation, action, info)` says."""
    env = task.make()
    try:
        names = names_of(task.name, probe(env.env, cost))
    finally:
        env.close()
    return replace(task, cost=cost, cost_names=names, thresholds=(), cost_bounds=None, episode_cost_bounds=None)


def looked_at_longer(task: Simulator) -> Simulator:
    """The same simulator, with the costs that show in whole episodes of random actions, if any do."""
    env = task.make()
    try:
        return replace(task, cost_names=names_of(task.name, probe(env.env, task.cost, task.max_steps)))
    finally:
        env.close()
