"""Limits that people have: on the mean of something, on how often it is too large, on a quantile, on its worst share.

One vocabulary for black boxes (`pcces.minimize(..., limits=[...])`), for policies (`pcces.train(..., limits={...})`) and for
the command line (`--limit "off_centre: P(> 30) <= 0.05"`). The same four say what is minimised (`objective=CVaR(0.1)`).
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from pcces.core.estimation import FARTHEST

ALLOWED = "'mean <= 25', 'P(> 30) <= 0.05', 'q0.95 <= 40' or 'CVaR0.1 <= 50'"


@dataclass(frozen=True)
class Mean:
    """The mean is at most so much.

    >>> print(Mean(at_most=25))
    mean <= 25
    """

    at_most: float = 0.0
    kind: ClassVar[str] = "mean"
    share: ClassVar[float] = 1.0  # of the samples counts

    def __post_init__(self) -> None:
        _finite(self, "at_most")

    def __str__(self) -> str:
        return f"mean <= {self.at_most:g}"

    @property
    def origin(self) -> float:
        """What is taken from a sample, so that the limit is at zero."""
        return self.at_most

    def estimate(self, samples: np.ndarray) -> float:
        """The limited quantity, from samples."""
        return float(np.mean(samples))


@dataclass(frozen=True)
class Probability:
    """The probability of more than `above` is at most so much: a failure probability.

    >>> print(Probability(above=30, at_most=0.05))
    P(> 30) <= 0.05
    """

    above: float = 0.0
    at_most: float = 0.05
    kind: ClassVar[str] = "probability"

    def __post_init__(self) -> None:
        _finite(self, "above")
        _share(self, "at_most")

    def __str__(self) -> str:
        return f"P(> {self.above:g}) <= {self.at_most:g}"

    @property
    def origin(self) -> float:
        """What is taken from a sample, so that what counts is whether it is above zero."""
        return self.above

    @property
    def share(self) -> float:
        """The share of samples that may be above."""
        return self.at_most

    def estimate(self, samples: np.ndarray) -> float:
        """The share of samples above."""
        return float(np.mean(np.asarray(samples) > self.above))


@dataclass(frozen=True)
class Quantile:
    """The q-quantile is at most so much: all but a share of 1 - q of the outcomes are.

    >>> print(Quantile(0.95, at_most=40), Quantile(0.5).estimate(np.array([1.0, 2.0, 9.0])))
    q0.95 <= 40 2.0
    """

    q: float
    at_most: float = 0.0
    kind: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        _finite(self, "at_most")
        _share(self, "q")

    def __str__(self) -> str:
        return f"q{self.q:g} <= {self.at_most:g}"

    @property
    def origin(self) -> float:
        """What is taken from a sample, so that the limit is at zero."""
        return self.at_most

    @property
    def share(self) -> float:
        """The share of samples that may be above the limit."""
        return 1 - self.q

    def estimate(self, samples: np.ndarray) -> float:
        """The quantile of the samples."""
        return float(np.quantile(samples, self.q, method="inverted_cdf"))


@dataclass(frozen=True)
class CVaR:
    """The mean of the worst share alpha of the outcomes is at most so much (expected shortfall).

    >>> print(CVaR(0.1, at_most=50), CVaR(0.5).estimate(np.array([1.0, 2.0, 3.0, 4.0])))
    CVaR0.1 <= 50 3.5
    """

    alpha: float
    at_most: float = 0.0
    kind: ClassVar[str] = "cvar"

    def __post_init__(self) -> None:
        _finite(self, "at_most")
        _share(self, "alpha")

    def __str__(self) -> str:
        return f"CVaR{self.alpha:g} <= {self.at_most:g}"

    @property
    def origin(self) -> float:
        """What is taken from a sample, so that the limit is at zero."""
        return self.at_most

    @property
    def share(self) -> float:
        """The worst share."""
        return self.alpha

    def estimate(self, samples: np.ndarray) -> float:
        """The mean of the worst share of the samples: the least of t + E[max(x - t, 0)] / alpha over t."""
        x = np.asarray(samples, dtype=float)
        t = np.quantile(x, 1 - self.alpha, method="inverted_cdf")
        return float(t + np.maximum(x - t, 0).mean() / self.alpha)


Limit = Mean | Probability | Quantile | CVaR


def parse(text: str) -> Limit:
    """The limit in words such as those that `str` gives.

    >>> parse("P(> 30) <= 0.05"), parse("q0.95 <= 40"), parse("CVaR0.1<=50"), parse("mean <= 25")
    (Probability(above=30.0, at_most=0.05), Quantile(q=0.95, at_most=40.0), CVaR(alpha=0.1, at_most=50.0), Mean(at_most=25.0))
    >>> parse("median <= 3")
    Traceback (most recent call last):
    ...
    ValueError: a limit reads 'mean <= 25', 'P(> 30) <= 0.05', 'q0.95 <= 40' or 'CVaR0.1 <= 50', got 'median <= 3'
    """
    number = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)"
    forms: dict[str, Any] = {
        rf"mean<={number}": Mean,
        rf"p\(>{number}\)<={number}": Probability,
        rf"q{number}<={number}": Quantile,
        rf"cvar{number}<={number}": CVaR,
    }
    plain = re.sub(r"\s+", "", text).lower()
    for form, limit in forms.items():
        if given := re.fullmatch(form, plain):
            return limit(*map(float, given.groups()))
    raise ValueError(f"a limit reads {ALLOWED}, got {text!r}")


def named(text: str) -> tuple[str, Limit]:
    """The name and the limit in NAME: LIMIT.

    >>> named("off_centre: P(> 30) <= 0.05")
    ('off_centre', Probability(above=30.0, at_most=0.05))
    """
    name, colon, limit = text.rpartition(":")
    if not colon or not name.strip():
        raise ValueError(f"a limit on a cost reads 'NAME: LIMIT', such as 'off_centre: P(> 30) <= 0.05', got {text!r}")
    return name.strip(), parse(limit)


def as_limit(given: Any) -> Limit:
    """A limit from a limit, its words, or a number: the most that the mean may be.

    >>> as_limit(25), as_limit("mean <= 25")
    (Mean(at_most=25.0), Mean(at_most=25.0))
    """
    if isinstance(given, Limit):
        return given
    if isinstance(given, dict):
        return from_dict(given)
    if isinstance(given, str):
        return parse(given)
    try:
        return Mean(float(given))
    except (TypeError, ValueError) as error:
        raise ValueError(f"a limit is a number, one of pcces.limits, or reads {ALLOWED}; got {given!r}") from error


def to_dict(limit: Limit) -> dict[str, Any]:
    """A limit as plain data.

    >>> to_dict(CVaR(0.1, at_most=50)), from_dict(to_dict(CVaR(0.1, at_most=50)))
    ({'kind': 'cvar', 'alpha': 0.1, 'at_most': 50.0}, CVaR(alpha=0.1, at_most=50.0))
    """
    return {"kind": limit.kind, **asdict(limit)}


def from_dict(data: dict[str, Any]) -> Limit:
    """What `to_dict` gave."""
    given = dict(data)
    by_kind = {limit.kind: limit for limit in (Mean, Probability, Quantile, CVaR)}
    if given.get("kind") not in by_kind:
        raise ValueError(f"there is no limit of the kind {given.get('kind')!r}; there are {', '.join(by_kind)}")
    return by_kind[given.pop("kind")](**given)


def _finite(limit: Any, name: str) -> None:
    value = getattr(limit, name)
    if isinstance(value, bool) or not _is_number(value) or not abs(value) <= FARTHEST:
        raise ValueError(f"{name} of {type(limit).__name__} must be a finite number, got {value!r}")
    object.__setattr__(limit, name, float(value))


def _share(limit: Any, name: str) -> None:
    _finite(limit, name)
    value = getattr(limit, name)
    if not 0 < value < 1:
        raise ValueError(f"{name} of {type(limit).__name__} must lie between 0 and 1, got {value:g}")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


PLAIN = Mean()  # at most 0
