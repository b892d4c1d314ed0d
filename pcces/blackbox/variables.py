"""What variables may be: integers, choices, numbers on a logarithmic scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Real:
    """Any number between two bounds: what a pair (low, high) means."""

    low: float = -math.inf
    high: float = math.inf
    scaled = False


@dataclass(frozen=True)
class Integer:
    """An integer from `low` to `high`. With `log=True` steps are relative to its size.

    >>> import pcces
    >>> res = pcces.minimize(lambda x: (x[0] - 3.2) ** 2, [8], bounds=[pcces.Integer(0, 9)], max_evaluations=200, rng=0)
    >>> res.x
    array([3.])
    """

    low: float
    high: float
    log: bool = False

    @property
    def scaled(self) -> bool:
        """Whether the search moves on a logarithmic scale."""
        return self.log

    def __post_init__(self) -> None:
        whole = all(math.isinf(end) or float(end).is_integer() for end in (self.low, self.high))
        if not (whole and self.low < self.high):
            raise ValueError(f"Integer needs whole numbers, low < high, got {self.low} and {self.high}")
        if self.log and self.low < 1:
            raise ValueError(f"Integer with log=True must be at least 1, got low = {self.low}")


@dataclass(frozen=True)
class Log:
    """A positive number from `low` to `high`, searched on a logarithmic scale.

    >>> import numpy as np, pcces
    >>> def fun(x):
    ...     return np.log(x[0] / 0.003) ** 2
    >>> res = pcces.minimize(fun, [1.0], bounds=[pcces.Log(1e-6, 1.0)], max_evaluations=200, rng=0)
    >>> res.x.round(5)
    array([0.003])
    """

    low: float
    high: float
    scaled = True

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < math.inf:
            raise ValueError(f"Log needs 0 < low < high, got {self.low} and {self.high}")


@dataclass(frozen=True, init=False)
class Choice:
    """One of several options without an order.

    >>> import pcces
    >>> def fun(x):
    ...     return (x["speed"] - 2) ** 2 + {"cast": 1.0, "steel": 0.0, "brass": 0.5}[x["metal"]]
    >>> bounds = {"speed": (0, 5), "metal": pcces.Choice("cast", "steel", "brass")}
    >>> res = pcces.minimize(fun, {"speed": 1.0, "metal": "cast"}, bounds=bounds, max_evaluations=500, rng=0)
    >>> res.x["metal"], round(res.x["speed"], 2)
    ('steel', 2.0)
    """

    options: tuple[Any, ...]
    scaled = False

    def __init__(self, *options: Any):
        if len(options) == 1 and isinstance(options[0], list | tuple):
            options = tuple(options[0])
        if len(options) < 2 or _repeated(options):
            raise ValueError(f"Choice needs at least two different options, got {options!r}")
        object.__setattr__(self, "options", options)


def _repeated(options: tuple[Any, ...]) -> bool:
    """Whether two of them are equal."""
    try:
        return len(set(options)) < len(options)
    except TypeError:  # some cannot be hashed, and so must be compared with each other
        return any(a == b for i, a in enumerate(options) for b in options[:i])


Variable = Real | Integer | Log | Choice
KINDS = {kind.__name__: kind for kind in (Real, Integer, Log, Choice)}
