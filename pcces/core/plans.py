"""Planning a certificate: how far below its limit something must be, for the bound on fresh samples to show it."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy

from pcces.core.bounds import LARGEST_BET, binomial_bound
from pcces.core.certificate import Column, at_the_ends


def spend(confidence: float, look: int) -> float:
    """The error probability the `look`-th test may use (1, 2, ..): halves, so that all of them together stay below
    1 - confidence however many there are.

    >>> sum(spend(0.95, k) for k in range(1, 50)) <= 0.05
    True
    """
    return (1 - confidence) * 0.5**look


def student_width(deviation: float, n: int, error: float) -> float:
    """How far below zero a mean has to be for Student's bound to be at most zero.

    >>> round(student_width(1.0, 100, 0.05), 3)
    0.166
    """
    return deviation * float(scipy.special.stdtrit(max(n, 2) - 1, 1 - error)) / math.sqrt(max(n, 2))


def betting_width(deviation: float, n: int, error: float, low: float, high: float) -> float:
    """Likewise for the betting bound on what lies between `low` and `high`.

    It is Student's, a little wider, or what the largest bets allow where there is hardly any noise, whichever dominates.

    >>> round(betting_width(1.0, 100, 0.05, -9, 9), 3)
    0.38
    """
    fastest = (max(high, 0.0) / LARGEST_BET) * math.expm1(-math.log(error) / max(n, 1))
    learning = 1 + 0.04 * (high - low) / max(high, 0.05 * (high - low))  # bets begin as if there were much noise
    return math.hypot(1.15 * student_width(deviation, n, error), learning * fastest)


@lru_cache(maxsize=256)
def passable(share: float, n: int, error: float) -> int:
    """The most events among n samples with which the exact bound on their probability is at most `share`; -1: none are enough.

    >>> passable(0.05, 100, 0.05), passable(0.05, 58, 0.05), passable(0.05, 59, 0.05)
    (1, -1, 0)
    """
    if share >= 1:
        return n
    if share <= 0 or n * math.log1p(-share) > math.log(error):  # not even none
        return -1
    return int(scipy.special.bdtrik(error, n, share))


def passing_share(share: float, n: int, error: float, chance: float) -> float:
    """How rare an event must be for the exact bound to show, with this chance, that it is no more frequent than `share`.

    >>> round(passing_share(0.05, 400, 0.05, 0.8), 4), passing_share(0.05, 50, 0.05, 0.8)
    (0.0248, 0.0)
    """
    k = passable(share, n, error)
    if k < 0 or k >= n:
        return 0.0 if k < 0 else 1.0
    return float(scipy.special.betaincinv(k + 1, n - k, 1 - chance))


def mean_width(known: Column, n: int, error: float) -> tuple[float, float]:
    """How far below zero the mean of what is known so has to be for the median bound on n samples to be at most zero, and
    the standard deviation of one of them then.

    >>> outcome = Column(values=(-0.05, 0.95), stated=True)
    >>> [round(value, 3) for value in mean_width(outcome, 400, 0.05)]
    [0.018, 0.175]
    """
    if known.deterministic or known.constant:
        return 0.0, 0.0
    if known.values is not None and (known.stated or known.range is None or at_the_ends(known)):
        low, high = known.values
        share = passing_share(-low / (high - low), n, error, 0.5)
        return -low - (high - low) * share, (high - low) * math.sqrt(share * (1 - share))
    if known.range is not None:
        return betting_width(known.deviation, n, error, *known.range), known.deviation
    needed = student_width(known.deviation, n, error)
    if known.jump > 6 * known.deviation:
        needed = max(needed, known.jump * binomial_bound(0, n, error))
    return needed, known.deviation


def spare(deviation: np.ndarray, chance: float) -> np.ndarray:
    """What lies between the medians of normal errors and the worst of `chance` of them, for all together.

    >>> spare(np.ones(1), 0.8).round(3), spare(np.ones(2), 0.8).round(3)
    (array([0.842]), array([1.25, 1.25]))
    """
    return float(scipy.special.ndtri(chance ** (1 / max(len(deviation), 1)))) * deviation
