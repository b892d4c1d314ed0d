"""What ten seeds can say: bootstrap intervals of a mean and of a paired difference. No "better" without its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 10_000
LEVEL = 0.95


class Interval(NamedTuple):
    """An estimate between two bounds."""

    middle: float
    low: float
    high: float


def mean_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """The mean over seeds, with its percentile bootstrap interval.

    >>> mean_interval([1.0, 1.0, 1.0])
    Interval(middle=1.0, low=1.0, high=1.0)
    """
    data = np.asarray(values, dtype=float)
    if data.size == 0:
        raise ValueError("there are no values")
    rng = np.random.default_rng(0)  # the same data give the same page
    means = data[rng.integers(0, data.size, (RESAMPLES, data.size))].mean(axis=1)
    tail = 50 * (1 - level)
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(float(data.mean()), float(low), float(high))


def interquartile_mean(values: Sequence[float]) -> float:
    """The mean of the middle half: what a typical seed does, whatever the luckiest and the unluckiest did.

    >>> interquartile_mean([0.0, 10.0, 11.0, 1000.0])
    10.5
    """
    data = np.sort(np.asarray(values, dtype=float))
    cut = data.size // 4
    return float(data[cut : data.size - cut].mean())


def difference(ours: dict[int, float], theirs: dict[int, float]) -> Interval:
    """The mean difference over the seeds that both have, with its interval.

    >>> difference({0: 3.0, 1: 5.0}, {0: 1.0, 1: 3.0, 2: 9.0}).middle
    2.0
    """
    seeds = sorted(set(ours) & set(theirs))
    return mean_interval([ours[seed] - theirs[seed] for seed in seeds])


def verdict(gap: Interval) -> str:
    """The difference in a word.

    >>> verdict(Interval(2.0, 0.5, 3.0)), verdict(Interval(0.1, -1.0, 1.0))
    ('higher', 'no clear difference')
    """
    return "higher" if gap.low > 0 else "lower" if gap.high < 0 else "no clear difference"
