"""Upper confidence bounds from fresh samples: on a mean, a probability, a quantile.

Which of them need what, and how wide they are beside others: docs/explanation/certificates.md.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts load when first used: no worker needs them

LARGEST_BET = 0.9  # of the wealth that the worst sample can take
FEWEST = 20  # samples in which dependence can be seen
ENDS = 2.0  # times the ratio of blocks a quarter as long: more, and there is no end to the dependence in sight
ALARM = 0.02  # how often dependence is seen where there is none
TOGETHER = 1 << 17  # numbers in the random orders that are looked at together
CONSPICUOUS = 1.5  # standard errors: what is below is no dependence


def binomial_bound(events: float, n: float, error: float) -> float:
    """The upper bound of Clopper and Pearson on a probability: exact, for any number of trials. Both counts may be effective ones.

    >>> round(binomial_bound(0, 60, 0.05), 4), round(binomial_bound(3, 60, 0.05), 4)
    (0.0487, 0.1242)
    """
    if n <= 0 or events >= n:
        return 1.0
    return float(scipy.special.betaincinv(events + 1, n - events, 1 - error))


def quantile_bound(x: np.ndarray, q: float, error: float, effective: float | None = None) -> float:
    """The smallest of the samples that is above the q-quantile with this error at most; infinite if there are too few.

    >>> quantile_bound(np.arange(100.0), 0.9, 0.05), quantile_bound(np.arange(20.0), 0.9, 0.05)
    (95.0, inf)
    """
    n = len(x)
    count = float(n if effective is None else effective)
    # The k-th smallest is below the quantile where k or more of the samples are: P(Binomial(n, q) >= k) <= error.
    for k in range(max(1, math.floor(q * n)), n + 1):
        scaled = k * count / n
        if scipy.special.betainc(scaled, count - scaled + 1, q) <= error:
            return float(np.partition(x, k - 1)[k - 1])
    return math.inf


def student_bound(x: np.ndarray, error: float, noise: float = 0.0, effective: float | None = None) -> float:
    """Student's bound on a mean, or Hall's where the samples are skewed and it is higher: exact for normal noise only.

    `noise` is the standard deviation known from elsewhere: it replaces one that is implausibly small beside it. What never
    varied has no bound of this kind.

    >>> student_bound(np.array([0.0, 2.0]), 0.25), student_bound(np.zeros(9), 0.05)
    (2.0, inf)
    """
    n = len(x) if effective is None else effective
    deviation = float(plausible_deviation(x[:, None], noise)[0]) if len(x) > 1 else 0.0
    if n < 2 or deviation <= 0:
        return math.inf
    z = float(scipy.special.stdtrit(n - 1, 1 - error))
    mean = float(x[0] + (x - x[0]).mean())  # exact for equal numbers
    centred = x - mean
    variance = float(np.mean(centred**2))
    skewness = float(np.mean(centred**3)) / variance**1.5 if variance > 0 else 0.0
    a = skewness / math.sqrt(n)
    hall = 0.0 if a < 1e-6 else 3 / a * (1 - float(np.cbrt(1 - a * (z + skewness / (6 * math.sqrt(n))))))
    return mean + deviation / math.sqrt(n) * max(z, hall)


def plausible_deviation(samples: np.ndarray, noise: np.ndarray | float) -> np.ndarray:
    """The standard deviations of the columns; `noise` where, if it were the truth, nine samples in ten would vary more.

    >>> plausible_deviation(np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 1.0]]), noise=1.1)
    array([1.1, 1. ])
    """
    degrees = len(samples) - 1
    if degrees < 1:
        return np.broadcast_to(np.asarray(noise, dtype=float), samples.shape[1])
    deviation = (samples - samples[0]).std(0, ddof=1)  # of equal numbers it would not always be exactly zero
    usual = math.sqrt(2 * float(scipy.special.gammaincinv(degrees / 2, 0.1)) / degrees)
    return np.where(deviation < usual * np.asarray(noise), noise, deviation)


def jump_bound(x: np.ndarray, error: float, jump: float) -> float:
    """A bound on a mean that leaves room for events: jumps as large as the search saw one, as often as these samples, in
    which the events are counted, do not exclude. Without such events among normal noise there is none (-inf).

    >>> x = np.random.default_rng(0).standard_normal(100)
    >>> jump_bound(x, 0.05, 3.0), bool(2.5 < jump_bound(x, 0.05, 100.0) < 3.5)
    (-inf, True)
    """
    events = x > np.median(x) + 0.5 * jump
    rest = x[~events]
    if jump <= 0 or jump < 6 * rest.std():
        return -math.inf
    return float(rest.mean()) + jump * binomial_bound(int(events.sum()), len(x), error)


def betting_bound(
    samples: np.ndarray, error: float, low: np.ndarray, high: np.ndarray, at: np.ndarray | None = None
) -> np.ndarray:
    """Upper bounds on the means of bounded columns, each wrong with probability `error` at most, at any sample size.

    For each candidate mean m a gambler bets that the samples come out lower than m, with bets that the past alone decides;
    where the wealth ever reaches 1 / error, m is too high (Waudby-Smith & Ramdas 2023). The bets aim at that wealth, from
    where they are, by the last sample (Voracek & Orabona 2025). Candidates are a grid, finest near `at` (where it matters),
    and what is rejected is all means from a candidate to the next: a mean above m is a mean of m or more.

    >>> x = np.random.default_rng(1).random((1000, 1)) * 0.2
    >>> bool(0.1 < betting_bound(x, 0.05, np.zeros(1), np.ones(1))[0] < 0.11)
    True
    """
    n, r = samples.shape
    x = (samples - low) / (high - low)
    for j in range(r):
        if np.any((x[:, j] < -1e-9) | (x[:, j] > 1 + 1e-9)):
            raise ValueError(f"constraint {j} has a sample outside its stated range [{low[j]:g}, {high[j]:g}]")
    centre = ((0.5 * (low + high) if at is None else at) - low) / (high - low)
    near = np.geomspace(1e-5, 1.0, 100)
    m = np.sort([np.concatenate([c - near, [c], c + near, np.linspace(0, 1, 99)]) for c in centre], axis=1)
    m = np.clip(m, 1e-9, 1 - 1e-9)  # (r, candidates)
    x = np.clip(x, 0.0, 1.0)
    # The spread around m of what came so far, with one sample assumed: as far away as they can lie, or half the range.
    assumed = np.where(m > 0.5, m * (1 - m), 0.25 + (m - 0.5) ** 2)
    target, most = math.log(1 / error), LARGEST_BET / (1 - m)
    total, squares, missing = np.zeros((r, 1)), np.zeros((r, 1)), np.full(m.shape, target)  # of log-wealth
    for t in range(n):
        spread = np.maximum(assumed + squares - 2 * m * total + t * m**2, 1e-12) / (t + 1)
        bet = np.minimum(np.sqrt(2 * np.maximum(missing, 0.0) / (spread * (n - t))), most)
        now = x[t][:, None]
        missing = np.where(missing > 0, missing - np.log1p(bet * (m - now)), missing)
        total, squares = total + now, squares + now**2
    bounds = np.empty(r)
    for j in range(r):
        standing = np.flatnonzero(missing[j] > 0)
        first = standing[-1] + 1 if standing.size else 0
        bounds[j] = m[j, first] if first < m.shape[1] else 1.0
    return low + (high - low) * bounds


def dependence(x: np.ndarray, alarm: float = ALARM, ranked: bool = True) -> float:
    """By how much the variance of the mean of samples exceeds that of as many independent ones: 1 unless that can be seen,
    infinite where they seem to depend on each other for longer than they can show: a drift.

    Sums of neighbouring samples vary more than those of independent ones: of two, of four, and so on up to a quarter, where
    a drift shows. It is looked for in the ranks, which rare large values do not disturb, and held against the same samples
    in random orders. Residuals of a model are better not `ranked`: where noise has a peak, ranks magnify a small misfit.

    >>> rng = np.random.default_rng(0)
    >>> dependence(rng.standard_normal(400)), bool(5 < dependence(np.repeat(rng.standard_normal(40), 10)) < 15)
    (1.0, True)
    >>> dependence(rng.standard_normal(400) + np.linspace(-1, 1, 400))
    inf
    """
    n = len(x)
    _, place, ties = np.unique(x, return_inverse=True, return_counts=True)
    if n < FEWEST or len(ties) < 2:
        return 1.0
    ranks = (np.cumsum(ties) - 0.5 * ties)[place] if ranked else x
    ranks = ranks - ranks.mean()
    lengths = np.array([2**k for k in range(1, 30) if 4 * 2**k <= n])
    usual = np.sqrt(2 * (2 * lengths - 1) * (lengths - 1) / (3 * lengths * n))  # how much independent samples' vary
    ratios = _variance_ratios(ranks[None], lengths)[0]
    most = float(np.max((ratios - 1) / usual))
    if most < CONSPICUOUS:
        return 1.0
    if not _conspicuous(ranks, lengths, usual, most, math.ceil(4 / alarm) - 1, alarm):
        return 1.0
    # Where dependence ends, longer blocks say no more than shorter ones; where it does not, each doubling adds to it.
    return max(1.0, *ratios) if ratios[-1] < ENDS * max([1.0, *ratios[:-2]]) else math.inf


def _conspicuous(
    ranks: np.ndarray, lengths: np.ndarray, usual: np.ndarray, most: float, orders: int, alarm: float
) -> bool:
    """Whether at most this share of so many random orders looks as dependent as the order there is."""
    rng, as_much = np.random.default_rng(0), 0
    at_once = max(TOGETHER // len(ranks), 1)
    for made in range(0, orders, at_once):
        rows = rng.permuted(np.tile(ranks, (min(at_once, orders - made), 1)), axis=1)
        in_any_order = np.max((_variance_ratios(rows, lengths) - 1) / usual, axis=1)
        as_much += int(np.sum(in_any_order >= most - 1e-9))
        if 1 + as_much > alarm * (1 + orders):
            return False
    return True


def _variance_ratios(rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The variance of sums of so many neighbours, as a multiple of what it is for independent ones (Lo & MacKinlay 1988)."""
    n, variance = rows.shape[1], (rows**2).mean(1)
    sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    each = [((sums[:, k:] - sums[:, :-k]) ** 2).mean(1) / (k * (1 - k / n) * variance) for k in lengths]
    return np.stack(each, axis=1)
