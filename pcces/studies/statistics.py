"""What ten seeds can say: bootstrap intervals of means, paired differences and wins. No "better" without its interval.

Few values resampled vary too little: percentile intervals that are called 95 % cover the mean of normal values in 90 % of
the cases with ten of them, and in 73 % with three. So they are stretched about the mean by as much as Student's t
is wider than the normal, and then cover 95 % with three, five or ten (tests/test_study_statistics.py).

Tests and trimmed means are SciPy's. It has neither such intervals, nor Holm's procedure, nor a bootstrap of wins over several
tasks: these are here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit
from scipy.stats import trim_mean, ttest_1samp

RESAMPLES = 10_000
LEVEL = 0.95


class Interval(NamedTuple):
    """An estimate between two bounds, which are infinite where one value is all there is."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        """As a table shows it.

        >>> print(Interval(12.345, 11.0, 13.5), Interval(0.5, 0.25, 1), mean_interval([7.0]))
        12.3 [11.0, 13.5] 0.50 [0.25, 1.00] 7.00
        """
        digits = 1 if abs(self.middle) >= 10 else 2
        if math.isinf(self.low) and math.isinf(self.high):
            return f"{self.middle:.{digits}f}"
        return f"{self.middle:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def mean_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """The mean over seeds, with its bootstrap interval.

    >>> mean_interval([1.0, 1.0, 1.0])
    Interval(middle=1.0, low=1.0, high=1.0)
    """
    data = _data(values)
    if data.size == 1:
        return Interval(float(data[0]), -math.inf, math.inf)
    return _interval(float(data.mean()), _means(data, level), level)


def band(rows: Sequence[Sequence[float]], resamples: int = 1000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The mean of curves, one row per seed, and the bounds of its 95 % bootstrap interval at every point. One row has no band.

    >>> [part.tolist() for part in band([[1.0, 2.0], [1.0, 2.0]])]
    [[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]
    """
    data = np.asarray(rows, dtype=float)
    mean = data.mean(axis=0)
    if len(data) == 1:
        return mean, mean, mean
    counts = np.random.default_rng(0).multinomial(len(data), np.full(len(data), 1 / len(data)), resamples)
    low, high = np.percentile(_stretched(counts @ data / len(data), mean, len(data), LEVEL), _tails(LEVEL), axis=0)
    return mean, low, high


def interquartile_mean(values: Sequence[float]) -> float:
    """The mean of the middle half: what a typical seed does, whatever the luckiest and the unluckiest did.

    >>> interquartile_mean([0.0, 10.0, 11.0, 1000.0])
    10.5
    """
    return float(trim_mean(_data(values), 0.25))


def difference(ours: dict[int, float], theirs: dict[int, float]) -> Interval:
    """The mean difference over the seeds that both have, with its interval.

    >>> difference({0: 3.0, 1: 5.0}, {0: 1.0, 1: 3.0, 2: 9.0}).middle
    2.0
    """
    return mean_interval(pairs(ours, theirs))


def pairs(ours: dict[int, float], theirs: dict[int, float]) -> list[float]:
    """The differences seed by seed, of the seeds that both have.

    >>> pairs({0: 3.0, 1: 5.0}, {0: 1.0, 2: 9.0})
    [2.0]
    """
    return [ours[seed] - theirs[seed] for seed in sorted(set(ours) & set(theirs))]


def clear_at_once(several: Sequence[Sequence[float]], level: float = LEVEL) -> list[str]:
    """Which of many comparisons (paired differences each) are significant when all are tested together, one word each.

    One of forty true ties looks clearly lower by chance. Holm's procedure on paired t tests calls any of them clear with
    probability 1 - level at most: the clearest has to pass the test of all, the next that of all but one, and so on.

    >>> clear_at_once([[1.0, 1.2, 0.8], [-3.0, 1.0, 2.5], [0.0, 0.0, 0.0]])
    ['higher', 'no clear difference', 'no clear difference']
    """
    chances = [_chance(_data(values)) for values in several]
    words = ["no clear difference"] * len(chances)
    for rank, i in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[i] > (1 - level) / (len(chances) - rank):
            break
        words[i] = "higher" if np.mean(several[i]) > 0 else "lower"
    return words


def wins(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], level: float = LEVEL) -> Interval:
    """The probability that a run of ours ends higher than one of theirs, over tasks whose returns have no common unit.

    A pair holds the returns of ours and of theirs on one task. A tie counts half; every task weighs the same (Agarwal et
    al. 2021 call it the probability of improvement). Seeds are resampled within each task, and what comes out is stretched
    as means are.

    >>> wins([([3.0, 4.0], [1.0, 2.0]), ([5.0, 5.0], [5.0, 5.0])]).middle
    0.75
    """
    drawn, seen, freedom = [], [], 0
    rng = np.random.default_rng(0)
    for ours, theirs in pairs:
        a, b = _data(ours), _data(theirs)
        table = (a[:, None] > b[None]) + 0.5 * (a[:, None] == b[None])
        i, j = (_counts(rng.integers(0, size, (RESAMPLES, size))) for size in table.shape)
        seen.append(table.mean())
        fewest = min(table.shape)
        freedom += fewest - 1
        away = ((i @ table) * j).sum(axis=1) / table.size - table.mean()
        drawn.append(math.sqrt(fewest / max(fewest - 1, 1)) * away)
    middle = float(np.mean(seen))
    if freedom == 0:
        return Interval(middle, 0.0, 1.0)
    away = _beside_normal(freedom, level) * np.mean(drawn, axis=0)
    return _interval(middle, np.clip(middle + away, 0, 1), level)


def beside_paper(values: Sequence[float], mean: float, deviation: float, seeds: int, level: float = LEVEL) -> Interval:
    """The difference of our mean from one that was reported, with an interval that knows of both samples' noise.

    Of the reported one only mean, standard deviation and number of seeds are known: it is taken as a mean of normal values.

    >>> gap = beside_paper([10.0, 10.0], mean=7.0, deviation=0.0, seeds=5)
    >>> gap.middle, gap.low, gap.high
    (3.0, 3.0, 3.0)
    """
    data = _data(values)
    if data.size == 1:
        return Interval(float(data[0]) - mean, -math.inf, math.inf)
    theirs = mean + deviation / np.sqrt(seeds) * np.random.default_rng(1).standard_t(seeds - 1, RESAMPLES)
    return _interval(float(data.mean()) - mean, _means(data, level) - theirs, level)


def verdict(gap: Interval) -> str:
    """The difference in a word.

    >>> verdict(Interval(2.0, 0.5, 3.0)), verdict(Interval(0.1, -1.0, 1.0))
    ('higher', 'no clear difference')
    """
    return "higher" if gap.low > 0 else "lower" if gap.high < 0 else "no clear difference"


def _data(values: Sequence[float]) -> np.ndarray:
    data = np.asarray(values, dtype=float)
    if data.size == 0:
        raise ValueError("there are no values")
    return data


def _chance(data: np.ndarray) -> float:
    """How likely a mean this far from zero is where the true one is zero, by Student's t, to both sides."""
    if np.ptp(data) == 0:  # all alike: the test has no answer
        return float(data.size == 1 or data[0] == 0)
    return float(ttest_1samp(data, 0.0).pvalue)


def _means(data: np.ndarray, level: float) -> np.ndarray:
    """Means of resampled data, stretched."""
    rng = np.random.default_rng(0)  # the same data give the same page
    drawn = data[rng.integers(0, data.size, (RESAMPLES, data.size))].mean(axis=1)
    return _stretched(drawn, data.mean(), data.size, level)


def _stretched(drawn: np.ndarray, mean: np.ndarray | float, n: int, level: float) -> np.ndarray:
    """Resampled means of n values, about their mean as far apart as Student's t has them beside the normal.

    >>> _stretched(np.array([1.0, 3.0]), 2.0, n=10, level=0.95).round(3).tolist()
    [0.783, 3.217]
    """
    return mean + _beside_normal(n - 1, level) * math.sqrt(n / (n - 1)) * (drawn - mean)


def _beside_normal(freedom: int, level: float) -> float:
    """How much wider than the normal's an interval of Student's t is."""
    tail = (1 + level) / 2
    return float(stdtrit(freedom, tail) / ndtri(tail))


def _counts(drawn: np.ndarray) -> np.ndarray:
    """How often each of n items is among the n of each row.

    >>> _counts(np.array([[0, 2, 2], [1, 1, 1]])).tolist()
    [[1, 0, 2], [0, 3, 0]]
    """
    rows, n = drawn.shape
    return np.bincount((drawn + n * np.arange(rows)[:, None]).ravel(), minlength=rows * n).reshape(rows, n)


def _tails(level: float) -> list[float]:
    return [50 * (1 - level), 100 - 50 * (1 - level)]


def _interval(middle: float, resampled: np.ndarray, level: float) -> Interval:
    low, high = np.percentile(resampled, _tails(level))
    return Interval(middle, float(low), float(high))
