"""The upper tail of a sample: quantiles and means of its worst share, also of shares too small to have been seen."""

from __future__ import annotations

import numpy as np
import scipy

SEEN = 20  # samples in the tail that say how it goes on
STARTS = 0.05  # the share of the samples that form the tail, if that is at least SEEN of them
FEW = 40  # with fewer samples than this, the tail is modelled as that of a normal distribution


def tail_quantile(samples: np.ndarray, share: float) -> float:
    """The level that a share of the samples exceeds. Beyond the highest twentieth the tail is modelled as exponential.

    >>> x = np.random.default_rng(0).standard_normal(2000)
    >>> round(tail_quantile(x, 0.1), 1), round(tail_quantile(x, 0.001), 1), round(abs(tail_quantile(x[:5], 0.5)), 1)
    (1.3, 3.2, 0.0)
    """
    if len(samples) < FEW:
        return -float(scipy.special.ndtri(share))
    return _quantile_of(samples, share, _tail(samples))


def tail_mean(samples: np.ndarray, share: float) -> float:
    """The mean of the worst share of the samples.

    >>> x = np.random.default_rng(0).standard_normal(2000)
    >>> round(tail_mean(x, 0.1), 1), round(tail_mean(x[:5], 0.5), 1)
    (1.7, 0.8)
    """
    if len(samples) < FEW:
        z = float(scipy.special.ndtri(share))
        return float(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)) / share
    tail = start, _, excess = _tail(samples)
    level = _quantile_of(samples, share, tail)
    if share < start:
        return level + excess
    return level + float(np.maximum(samples - level, 0.0).mean()) / share


def tail_share(samples: np.ndarray, level: float) -> float:
    """The share of the samples above a level: the inverse of `tail_quantile`.

    >>> x = np.random.default_rng(0).standard_normal(2000)
    >>> all(abs(tail_share(x, tail_quantile(x, share)) / share - 1) < 0.01 for share in (0.3, 0.02, 1e-4))
    True
    """
    if len(samples) < FEW:
        return float(scipy.special.ndtr(-level))
    start, threshold, excess = _tail(samples)
    if level <= threshold:
        return float(np.mean(samples > level))
    return start * float(np.exp(-(level - threshold) / max(excess, 1e-300)))


def quantile(samples: np.ndarray, q: float) -> float:
    """`np.quantile(samples, q)`, to the bit. A search asks for thousands, and NumPy's takes five times as long.

    >>> x = np.random.default_rng(0).standard_normal(101)
    >>> all(quantile(x, q) == np.quantile(x, q) for q in (0.0, 0.123, 0.5, 0.987, 1.0))
    True
    """
    position = q * (len(samples) - 1)
    i = min(int(position), len(samples) - 2)
    below, above = np.partition(samples, (i, i + 1))[i : i + 2].tolist()
    share, gap = position - i, above - below
    return below + gap * share if share < 0.5 else above - gap * (1 - share)


def _quantile_of(samples: np.ndarray, share: float, tail: tuple[float, float, float]) -> float:
    start, threshold, excess = tail
    if share >= start:
        return quantile(samples, 1 - share)
    return threshold + excess * float(np.log(start / max(share, 1e-12)))


def _tail(samples: np.ndarray) -> tuple[float, float, float]:
    """Where the tail starts, as a share and as a level, and the mean excess of the tail over that level."""
    start = min(max(STARTS, SEEN / len(samples)), 0.5)
    threshold = quantile(samples, 1 - start)
    return start, threshold, float(np.maximum(samples - threshold, 0.0).mean()) / start
