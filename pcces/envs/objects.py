"""Environments that are given as they are: a class, a function that makes one, an environment, or a vector environment.

Workers make environments of their own: from the class or the function, or as copies of the one that was given.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, create_empty_array

from pcces.support.sending import received, sendable

OF_VECTORS = ("num_envs", "vectorization_mode", "vector_kwargs", "max_episode_steps")  # what only they are made with
NEEDED = ("reset", "step", "observation_space", "action_space")


class Given(NamedTuple):
    """An environment that was given: what it is called, and what makes one like it from keyword arguments."""

    name: str
    make: Callable[..., Any]
    said: str = ""  # what there is to say of how it was understood


def is_given(task: Any) -> bool:
    """Whether this is an environment as it is, and not the name of one."""
    return isinstance(task, Given | VectorEnv) or _like_an_environment(task) or callable(task)


def understood(task: Any, name: str | None = None) -> Given:
    """What makes environments like the one that was given.

    >>> from gymnasium.envs.classic_control import PendulumEnv
    >>> understood(PendulumEnv).name, understood(PendulumEnv(g=9.0)).make().g
    ('gymnasium.envs.classic_control.pendulum:PendulumEnv', 9.0)
    """
    if isinstance(task, Given):
        return task
    if isinstance(task, VectorEnv):
        return _first_of(task, name)
    if isinstance(task, type) or not _like_an_environment(task):
        return Given(name or name_of_object(task), Making(task))
    if getattr(task, "render_mode", None) == "human":
        raise ValueError(
            f"{name_of_object(task)} opens a window, and so would every worker: give an environment made without "
            "render_mode='human'"
        )
    return Given(name or name_of_object(task), Copies.of(task))


def name_of_object(task: Any) -> str:
    """What an environment that was given is called: where it can be imported from, or its id, or its class.

    >>> name_of_object(gymnasium.make("CartPole-v1")), name_of_object(lambda: None)
    ('CartPole-v1', 'environment')
    """
    if isinstance(task, VectorEnv) or (_like_an_environment(task) and not isinstance(task, type)):
        spec = getattr(task, "spec", None)
        return str(spec.id) if spec is not None else type(task.unwrapped).__name__
    module, own = getattr(task, "__module__", ""), getattr(task, "__qualname__", "")
    if not own.isidentifier():
        return "environment"
    return own if module in ("", "__main__") else f"{module}:{own}"


def _like_an_environment(task: Any) -> bool:
    return not inspect.ismodule(task) and all(hasattr(task, name) for name in NEEDED[:2]) and not isinstance(task, type)


class Making:
    """Makes environments with a class or a function; what is made of something else is an error that says so."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, **options: Any) -> Any:
        """One environment."""
        made = self.function(**self._taken(options))
        if isinstance(made, VectorEnv):
            return Single(made)
        if not all(hasattr(made, name) for name in NEEDED):
            raise TypeError(
                f"{name_of_object(self.function)} made {made!r}, which is no Gymnasium environment: a task is given by its id, "
                "or as an environment, its class, or a function that makes it"
            )
        return made

    def _taken(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, without a way to draw if the function takes none."""
        parameters: Any = {}
        with contextlib.suppress(TypeError, ValueError):  # some say nothing of what they take
            parameters = inspect.signature(self.function).parameters
        everything = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        return {k: v for k, v in options.items() if k != "render_mode" or everything or k in parameters}


class Copies:
    """Makes copies of an environment."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @classmethod
    def of(cls, env: Any) -> Copies | Making:
        """From the environment, as far as it can be copied; else from how Gymnasium made it."""
        try:
            data = pickle.dumps(sendable(env))
            received(pickle.loads(data))
            return cls(data)
        except Exception as error:
            spec = getattr(env, "spec", None)
            if spec is None:
                raise TypeError(
                    f"{name_of_object(env)} cannot be copied to workers ({type(error).__name__}: {error}): give its class, or a "
                    "function that makes it, such as lambda: MyEnvironment(gravity=9.0)"
                ) from error
            return Making(FromSpec(spec))

    def __call__(self, **options: Any) -> Any:
        """One copy, which draws itself if it can and that is asked for."""
        render_mode = options.pop("render_mode", None)
        if options:
            raise ValueError(
                f"an environment that is given is as it is: give its class with {', '.join(options)}, not itself"
            )
        env = received(pickle.loads(self.data))
        if render_mode in (getattr(env, "metadata", None) or {}).get("render_modes", ()):
            env.unwrapped.render_mode = render_mode
        return env


class FromSpec:
    """Makes environments as Gymnasium made one."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec

    def __call__(self, **options: Any) -> Any:
        """One environment."""
        return gymnasium.make(self.spec, disable_env_checker=True, **options)


class Single(gymnasium.Env[Any, Any]):
    """A vector environment of one, as an environment."""

    def __init__(self, vector: Any) -> None:
        if vector.num_envs != 1:
            raise ValueError(
                f"{name_of_object(vector)} steps {vector.num_envs} environments at once; workers run many by themselves: give one "
                "of one (num_envs=1), or the environment itself"
            )
        self.vector = vector
        self.observation_space, self.action_space = vector.single_observation_space, vector.single_action_space
        self.metadata, self.spec, self.render_mode = vector.metadata, None, vector.render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The first environment's."""
        observations, infos = self.vector.reset(seed=seed, options=options)
        return _first(observations), {name: _first(value) for name, value in infos.items()}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """The first environment's."""
        empty: Any = create_empty_array(self.action_space, 1)
        actions = concatenate(self.action_space, [action], empty)
        observations, rewards, terminated, truncated, infos = self.vector.step(actions)
        info = {name: _first(value) for name, value in infos.items() if not name.startswith("_")}
        return _first(observations), float(rewards[0]), bool(terminated[0]), bool(truncated[0]), info

    def render(self) -> Any:
        """The first environment's."""
        drawn = self.vector.render()
        return drawn[0] if isinstance(drawn, tuple | list) else drawn

    def close(self) -> None:
        """Let them go."""
        self.vector.close()


def _first(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _first(value) for name, value in values.items()}
    if isinstance(values, tuple):
        return tuple(map(_first, values))
    return np.array(values[0])


def _first_of(vector: Any, name: str | None) -> Given:
    """What makes one of the environments of a vector environment."""
    name = name or name_of_object(vector)
    if isinstance(vector, VectorWrapper):
        raise ValueError(  # noqa: TRY004 (it is a vector environment)
            f"{type(vector).__name__} wraps a vector environment, and workers step single ones: wrap the environment itself, and "
            "give that"
        )
    said = f"of the vector environment {name} one environment is taken; workers run as many as there are cores"
    functions = getattr(vector, "env_fns", None)
    if functions:
        return Given(name, Making(functions[0]), said)
    spec = getattr(vector, "spec", None)
    if spec is not None and spec.entry_point is not None:
        own = {k: v for k, v in spec.kwargs.items() if k not in OF_VECTORS}
        return Given(name, Making(FromSpec(_single(spec, own))), said)
    Single(vector)  # or an error that says what to do
    return Given(name, Making(Copies.of(vector)))


def _single(spec: Any, options: dict[str, Any]) -> Any:
    own = copy.deepcopy(spec)
    own.kwargs = options
    return own


def time_limit(env: Any) -> int | None:
    """After how many steps an environment's episodes are cut, as far as a wrapper of Gymnasium's does it.

    >>> time_limit(gymnasium.make("CartPole-v1"))
    500
    """
    limits = []
    while env is not None:
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            limits.append(int(env._max_episode_steps))
        env = env.env if isinstance(env, gymnasium.Wrapper) else None
    return min(limits, default=None)
