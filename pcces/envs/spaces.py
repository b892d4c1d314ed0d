"""Spaces of any kind as policies need them: observations as a row of numbers, actions as one choice or a box of numbers.

    env = flattened(gymnasium.make("Blackjack-v1"))  # a wrapper, or the environment itself where there is nothing to do

Observations are laid flat as Gymnasium does it (choices one-hot). Actions that are a few choices together become one choice
among all their combinations; otherwise each becomes a number or more, of which the sign or the largest counts.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from pcces.envs.check import check_size
from pcces.envs.task import NO_LIMIT, Continuous, Discrete

MOST_CHOICES = 100  # combinations that are learnt as one choice


class SpacePart(NamedTuple):
    """A part of an action: how many numbers of a box it takes, how many choices it is, and how it is made of either."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    choices: int  # 0: it is no choice
    made: Callable[[Any], Any]  # from those numbers, or the number of the choice


def parts_of(space: Any) -> Iterator[SpacePart]:
    """The parts of an action space, in the order in which `assembled` takes what they make."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for inner in space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces:
            yield from parts_of(inner)
    elif isinstance(space, spaces.Discrete):
        yield _choice(int(space.n), lambda i: space.dtype.type(i + space.start))
    elif isinstance(space, spaces.MultiDiscrete):
        starts = np.broadcast_to(getattr(space, "start", 0), space.shape).reshape(-1)
        for n, start in zip(space.nvec.reshape(-1), starts):
            yield _choice(int(n), partial(operator.add, int(start)))
    elif isinstance(space, spaces.MultiBinary):
        for _ in range(math.prod(space.shape)):
            yield _choice(2, lambda i: i)
    elif isinstance(space, spaces.Box):
        yield _box(space)
    else:
        raise TypeError(f"{space} is no Discrete, MultiDiscrete, MultiBinary, Box, Dict or Tuple of them")


def _choice(n: int, made: Callable[[int], Any]) -> SpacePart:
    count = n if n > 2 else n - 1  # of two the sign tells which, and of one nothing has to

    def chosen(given: Any) -> Any:
        if np.ndim(given) == 0:
            return made(int(given))
        return made(int(np.argmax(given)) if n > 2 else int(n == 2 and given[0] > 0))

    return SpacePart((-1.0,) * count, (1.0,) * count, n, chosen)


def _box(space: spaces.Box) -> SpacePart:
    """A box, of which only those numbers are asked for that can differ; whole numbers are rounded to."""
    low, high = (np.asarray(end, dtype=float).reshape(-1) for end in (space.low, space.high))
    free = low < high
    whole = np.issubdtype(space.dtype, np.integer)

    def made(numbers: Any) -> np.ndarray:
        full = low.copy()
        full[free] = np.clip(numbers, low[free], high[free])
        full = np.rint(full) if whole else full
        return full.astype(space.dtype).reshape(space.shape)

    return SpacePart(tuple(low[free].tolist()), tuple(high[free].tolist()), 0, made)


def assembled(space: Any, values: Iterator[Any]) -> Any:
    """An action of this space from what its parts made, in their order."""
    if isinstance(space, spaces.Dict):
        return {name: assembled(inner, values) for name, inner in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(assembled(inner, values) for inner in space.spaces)
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        count = math.prod(space.shape)
        return np.array([next(values) for _ in range(count)], dtype=space.dtype).reshape(space.shape)
    return next(values)


class Flattened(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observations are a flat Box, and whose actions are a Discrete or a flat Box."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.own_step: tuple[Any, Any] | None = None  # the last observation and action, as the environment has them
        self._flat = not _is_flat(env.observation_space)
        if self._flat:
            if not env.observation_space.is_np_flattenable:
                raise ValueError(
                    f"{_named(env)} has the observations {env.observation_space}, which have no fixed size"
                )
            size = spaces.flatdim(env.observation_space)
            self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self._parts: list[SpacePart] | None = None
        if not _acts(env.action_space):
            try:
                self._parts = list(parts_of(env.action_space))
            except TypeError as error:
                raise ValueError(f"{_named(env)} has the actions {env.action_space}: {error}") from None
            self.action_space = self._head()

    def _head(self) -> Any:
        parts = self._parts or []
        if all(part.choices for part in parts) and math.prod(part.choices for part in parts) <= MOST_CHOICES:
            return spaces.Discrete(math.prod(part.choices for part in parts))
        low = np.array([v for part in parts for v in part.low], dtype=float)
        high = np.array([v for part in parts for v in part.high], dtype=float)
        with np.errstate(over="ignore"):  # a limit beyond what 32 bits hold is none
            return spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """The environment's own start, laid flat."""
        observation, info = self.env.reset(**options)
        return self._laid_flat(observation), info

    def step(self, action: Any) -> Any:
        """The environment's own step of the action that this one stands for."""
        own = action if self._parts is None else self.action(action)
        after = self.env.step(own)
        self.own_step = after[0], own
        return self._laid_flat(after[0]), *after[1:]

    def action(self, action: Any) -> Any:
        """What the environment takes, for one of `action_space`.

        >>> env = flattened(gymnasium.make("CartPole-v1"))  # nothing to do
        >>> isinstance(env, Flattened)
        False
        """
        values, parts = [], self._parts or []
        if isinstance(self.action_space, spaces.Discrete):
            rest = int(action)
            for part in reversed(parts):
                rest, chosen = divmod(rest, part.choices)
                values.append(part.made(chosen))
            values.reverse()
        else:
            done = 0
            for part in parts:
                values.append(part.made(np.asarray(action)[done : done + len(part.low)]))
                done += len(part.low)
        return assembled(self.env.action_space, iter(values))

    def _laid_flat(self, observation: Any) -> Any:
        return spaces.flatten(self.env.observation_space, observation) if self._flat else observation


def flattened(env: Any) -> Any:
    """The environment, in a wrapper if its observations are no flat Box, or its actions no Discrete or flat Box.

    >>> env = flattened(gymnasium.make("Blackjack-v1"))
    >>> env.observation_space.shape, env.action_space
    ((45,), Discrete(2))
    """
    return env if _is_flat(env.observation_space) and _acts(env.action_space) else Flattened(env)


def head_of(name: str, env: Any) -> tuple[int, Discrete | Continuous]:
    """How many numbers a policy sees of a flattened environment, and what it must give."""
    size = int(env.observation_space.shape[0])
    check_size(name, size, env.env.observation_space if isinstance(env, Flattened) else None)
    actions = env.action_space
    if isinstance(actions, spaces.Discrete):
        if actions.n < 2:
            raise ValueError(f"{name} has only one action: there is nothing to learn")
        return size, Discrete(int(actions.n))
    if actions.shape == (0,):
        raise ValueError(f"{name} has only one action: there is nothing to learn")
    return size, Continuous(tuple(map(float, actions.low)), tuple(map(float, actions.high)))


def in_words(name: str, env: Any) -> list[str]:
    """What is to be said of the spaces of an environment, a line each: how they are learnt where that is not plain."""
    said, head = [], env.action_space
    if isinstance(env, Flattened):
        inner = env.env
        if not _is_flat(inner.observation_space):
            size = spaces.flatdim(inner.observation_space)
            said.append(f"the observations {inner.observation_space} of {name} are flattened to {size} numbers")
        if not _acts(inner.action_space):
            how = f"one of {head.n} choices" if isinstance(head, spaces.Discrete) else f"{len(head.low)} numbers"
            said.append(f"the actions {inner.action_space} of {name} are learnt as {how}")
    if isinstance(head, spaces.Box):
        without = [i for i, (a, b) in enumerate(zip(head.low, head.high)) if max(abs(a), abs(b)) >= NO_LIMIT]
        if without:
            which = ", ".join(map(str, without))
            said.append(
                f"actions of {name} without limits ({which}) begin with a deviation of 1 about 0, or about 1 from the limit on one"
                " side: if they mean anything else, give them limits in the environment's action_space"
            )
    return said


def _is_flat(space: Any) -> bool:
    return isinstance(space, spaces.Box) and len(space.shape) == 1


def _acts(space: Any) -> bool:
    """Whether actions are what a policy gives: one choice, or numbers that can all differ."""
    if isinstance(space, spaces.Discrete):
        return True
    return _is_flat(space) and not np.issubdtype(space.dtype, np.integer) and bool(np.all(space.low < space.high))


def _named(env: Any) -> str:
    return env.spec.id if getattr(env, "spec", None) else type(env.unwrapped).__name__
