"""The final word on feasibility, from fresh samples.

A certificate says: with the given joint confidence, over all constraints and over everything that was tested on the
way, every constraint of the returned point is within tolerance. Which bound says so depends on what is known:

- `betting`: the costs are bounded (the caller gave their range): a finite-sample bound that needs no further
  assumption and holds at every sample size at once (Waudby-Smith & Ramdas 2023, hedged capital);
- `t`: Student's bound on the mean: exact for normal noise, asymptotic otherwise. Samples that vary implausibly less than
  the search saw (a rare failure that did not happen this time) count with the search's standard deviation;
- `exact`: repeated evaluations agreed to the last bit, so there is no noise to bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when first used: no worker needs them

LARGEST_BET = 0.75  # of the wealth that the worst sample can take


@dataclass(frozen=True)
class Certificate:
    """Whether the answer is feasible, how sure that is, and how it was found out.

    >>> c = Certificate(True, 0.95, (-0.2, -0.1), 400, "t", tested=1)
    >>> print(c)
    feasible with 95 % confidence: every upper bound is at most 0 (worst -0.1; 400 fresh samples, t bound)
    """

    holds: bool
    confidence: float
    upper_bounds: tuple[float, ...]  # joint upper confidence bounds of c_1 .. c_r at the returned point
    samples: int  # fresh evaluations of the returned point
    method: str  # "betting", "t" or "exact"
    tested: int = 1  # candidates that were put to the test, this one included
    tolerance: float = 0.0

    def __str__(self) -> str:
        worst = max(self.upper_bounds, default=-math.inf)
        if not self.upper_bounds and self.holds:
            return "feasible: there are no constraints but the bounds"
        sure = "feasible" if self.method == "exact" else f"feasible with {100 * self.confidence:g} % confidence"
        source = (
            "evaluations without noise"
            if self.method == "exact"
            else f"{self.samples} fresh samples, {self.method} bound"
        )
        if self.holds:
            return f"{sure}: every upper bound is at most {self.tolerance:g} (worst {worst:.3g}; {source})"
        return f"NOT certified: the worst upper bound is {worst:.3g}, above {self.tolerance:g} ({source})"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Certificate:
        """What `to_dict` gave, also after a trip through JSON."""
        return cls(**{**data, "upper_bounds": tuple(data["upper_bounds"])})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def spend(confidence: float, look: int) -> float:
    """The error probability the `look`-th test may use (1, 2, ..): halves, so that all of them together stay below
    1 - confidence however many there are.

    >>> sum(spend(0.95, k) for k in range(1, 50)) <= 0.05
    True
    """
    return (1 - confidence) * 0.5**look


def t_bound(samples: np.ndarray, error: float, noise: np.ndarray | float = 0.0) -> np.ndarray:
    """One-sided upper bounds on the means of the columns, jointly wrong with probability `error`.

    `noise` is the standard deviation known from elsewhere: it replaces one that is implausibly small beside it. Where
    nothing was ever seen to vary, the mean is the bound, but only of as many samples as would have shown, with the
    confidence asked for, what happens one time in five.

    >>> t_bound(np.array([[0.0], [2.0]]), 0.25)
    array([2.])
    >>> t_bound(np.full((10, 1), -0.3), 0.05, noise=0.5)
    array([-0.0101594])
    """
    n, r = samples.shape
    if n < 2:
        return np.full(r, math.inf)
    deviation = plausible_deviation(samples, noise)
    bound = samples.mean(0) + deviation * _t_factor(n, error, r)
    return np.where((deviation > 0) | (n >= math.log(error) / math.log(0.8)), bound, math.inf)


def plausible_deviation(samples: np.ndarray, noise: np.ndarray | float) -> np.ndarray:
    """The standard deviations of the columns; `noise` where, if it were the truth, nine samples in ten would vary more.

    >>> plausible_deviation(np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 1.0]]), noise=1.1)
    array([1.1, 1. ])
    """
    degrees = len(samples) - 1
    deviation = (samples - samples[0]).std(0, ddof=1)  # of equal numbers it would not always be exactly zero
    usual = math.sqrt(2 * float(scipy.special.gammaincinv(degrees / 2, 0.1)) / degrees)
    return np.where(deviation < usual * np.asarray(noise), noise, deviation)


def _t_factor(n: int, error: float, r: int) -> float:
    return float(scipy.special.stdtrit(n - 1, 1 - error / max(r, 1))) / math.sqrt(n)


def expected_width(
    deviation: np.ndarray, samples: int, error: float, ranges: Sequence[tuple[float, float]] | None = None
) -> np.ndarray:
    """How far below zero the means of this many samples have to be for `upper_bounds` to be at most zero.

    >>> expected_width(np.array([1.0]), 100, 0.05).round(3), expected_width(np.array([1.0]), 100, 0.05, [(-9, 9)]).round(3)
    (array([0.166]), array([0.418]))
    """
    r, n = len(deviation), max(int(samples), 2)
    if ranges is None:
        return deviation * _t_factor(n, error, r)
    widths = np.empty(r)
    for j, (low, high) in enumerate(ranges):
        # With the expected variance, the wealth at a mean of zero grows by bet gap - bet^2 (variance + gap^2) / 2 a sample.
        variance, zero = (deviation[j] / (high - low)) ** 2, min(max(-low / (high - low), 0.0), 1 - 1e-9)
        count = np.arange(n)
        past = (0.25 + count * variance) / (count + 1)
        bet = np.minimum(_bets(past, n, error / r), LARGEST_BET / (1 - zero))
        a, b = bet.sum(), (bet**2).sum()
        root = a**2 - b * (b * variance - 2 * math.log(error / r))
        widths[j] = (high - low) * (a - math.sqrt(max(root, 0.0))) / b
    return widths


def betting_bound(samples: np.ndarray, error: float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Upper bounds on the means of bounded columns, jointly wrong with probability `error`, at any sample size.

    For each candidate mean m a gambler bets that the samples come out lower than m; where the wealth ever reaches
    1 / error, m is too high. Bets use past samples only.

    >>> x = np.random.default_rng(1).random((1000, 1)) * 0.2
    >>> bool(0.1 < betting_bound(x, 0.05, np.zeros(1), np.ones(1))[0] < 0.12)
    True
    """
    r = samples.shape[1]
    bounds = np.empty(r)
    for j in range(r):
        span = high[j] - low[j]
        x = (samples[:, j] - low[j]) / span
        if np.any((x < -1e-9) | (x > 1 + 1e-9)):
            raise ValueError(f"constraint {j} has a sample outside its stated range [{low[j]:g}, {high[j]:g}]")
        bounds[j] = low[j] + span * _unit_betting_bound(x, error / r)
    return bounds


def _bets(past: np.ndarray, n: int, error: float) -> np.ndarray:
    """Predictable plug-in bets, from the variance of the past samples, tuned for n of them."""
    return np.sqrt(2 * math.log(1 / error) / (past * n))


def _unit_betting_bound(x: np.ndarray, error: float) -> float:
    if len(x) == 0:
        return 1.0
    count = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (count + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (count + 1)
    bet = _bets(np.concatenate([[0.25], variance[:-1]]), len(x), error)

    def rejected(m: float) -> bool:
        """Whether mean >= m is implausible: wealth from betting on x < m reached 1 / error."""
        wealth = np.cumsum(np.log1p(np.minimum(bet, LARGEST_BET / (1 - m)) * (m - x)))
        return bool(wealth.max() >= math.log(1 / error))

    if not rejected(1.0 - 1e-12):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rejected(middle) else (middle, high)
    return high


def upper_bounds(
    samples: np.ndarray,
    error: float,
    ranges: Sequence[tuple[float, float]] | None = None,
    noise: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, str]:
    """Joint upper confidence bounds on the column means, and the name of the bound used."""
    if ranges is None:
        return t_bound(samples, error, noise), "t"
    low, high = np.array(ranges, dtype=float).T
    return betting_bound(samples, error, low, high), "betting"
