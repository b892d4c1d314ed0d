"""Kinds of noise, each with what is true of it: honest, rare, skewed, heavy-tailed, remembering, drifting, hiding."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats


@dataclass(frozen=True)
class Noise:
    """Draws with mean zero, the interval they cannot leave, and P(noise > t)."""

    draw: Callable[[np.random.Generator], float]
    low: float = -math.inf
    high: float = math.inf
    above: Callable[[float], float] | None = None
    worst: Callable[[float], float] | None = None  # the mean of the worst share


def normal(scale: float) -> Noise:
    def worst(share: float) -> float:
        return scale * float(stats.norm.pdf(stats.norm.ppf(share))) / share

    return Noise(
        lambda rng: scale * rng.standard_normal(), above=lambda t: float(stats.norm.sf(t / scale)), worst=worst
    )


def rare(p: float, size: float, with_normal: float = 0.0) -> Noise:
    """A cost that comes with probability p."""
    spread = math.inf if with_normal else 0.0
    return Noise(
        lambda rng: size * ((rng.random() < p) - p) + (with_normal * rng.standard_normal() if with_normal else 0.0),
        -p * size - spread, (1 - p) * size + spread,
    )  # fmt: skip


def rare_with_uniform(p: float, size: float, width: float) -> Noise:
    """Likewise, on top of noise that is bounded."""
    return Noise(
        lambda rng: size * ((rng.random() < p) - p) + width * (2 * rng.random() - 1), -p * size - width, size + width
    )


def beta(a: float, b: float, scale: float) -> Noise:
    mean = a / (a + b)
    return Noise(
        lambda rng: scale * (rng.beta(a, b) - mean), -scale * mean, scale * (1 - mean),
        above=lambda t: float(stats.beta.sf(t / scale + mean, a, b)),
    )  # fmt: skip


def moved(noise: Noise, share: float) -> Callable[[np.random.Generator], float]:
    """Noise above zero with this probability."""
    assert noise.above is not None
    shift = optimize.brentq(lambda t: noise.above(t) - share, -10.0, 10.0)
    return lambda rng: noise.draw(rng) - shift


def student(df: int, scale: float) -> Noise:
    return Noise(lambda rng: scale * rng.standard_t(df), above=lambda t: float(stats.t.sf(t / scale, df)))


def pareto(a: float, scale: float) -> Noise:
    mean = 1 / (a - 1)
    return Noise(lambda rng: scale * (rng.pareto(a) - mean), above=lambda t: float(stats.lomax.sf(t / scale + mean, a)))


def lognormal(sigma: float, scale: float) -> Noise:
    mean = math.exp(sigma**2 / 2)
    return Noise(
        lambda rng: scale * (rng.lognormal(0, sigma) - mean),
        above=lambda t: float(stats.lognorm.sf(t / scale + mean, sigma)),
    )


def exponential(scale: float) -> Noise:
    return Noise(
        lambda rng: scale * (rng.exponential() - 1), above=lambda t: min(1.0, math.exp(-(t / scale + 1))),
        worst=lambda share: -scale * math.log(share),
    )  # fmt: skip


class Remembering:
    """Noise that remembers, or drifts: each run has its own."""

    def __init__(self, memory: float, scale: float, bounded: bool = False):
        self.memory, self.scale, self.bounded, self.value = memory, scale, bounded, math.nan

    def __call__(self, rng: np.random.Generator) -> float:
        fresh = rng.standard_normal()
        if math.isnan(self.value):
            self.value = fresh
        self.value = self.memory * self.value + math.sqrt(1 - self.memory**2) * fresh
        # Normal to uniform, where it has to be bounded: its memory stays about what it was.
        return self.scale * (math.erf(self.value / math.sqrt(2)) if self.bounded else self.value)


class Drifting:
    """A sine as slow as a budget, with a phase of its own, on top of normal noise."""

    def __init__(self, period: int, scale: float):
        self.period, self.scale, self.phase, self.calls = period, scale, math.nan, 0

    def __call__(self, rng: np.random.Generator) -> float:
        if math.isnan(self.phase):
            self.phase = 2 * math.pi * rng.random()
        self.calls += 1
        return self.scale * (
            math.sin(2 * math.pi * self.calls / self.period + self.phase) + 0.3 * rng.standard_normal()
        )


class Blocks:
    """Noise that is the same for so many calls on end: a day's, a batch's, or what a cache keeps for a while."""

    def __init__(self, length: int, scale: float):
        self.length, self.scale, self.calls, self.value = length, scale, 0, 0.0

    def __call__(self, rng: np.random.Generator) -> float:
        if self.calls % self.length == 0:
            self.value = self.scale * (2 * rng.random() - 1)
        self.calls += 1
        return self.value


class Steps:
    """Two levels, of which each lasts a while: a machine that is warm or cold, or failures that come in bursts."""

    def __init__(self, share: float, lasts: float, size: float = 1.0, width: float = 0.0, bottom: float | None = None):
        self.share, self.lasts, self.size, self.width, self.high = share, lasts, size, width, -1
        self.bottom = -share * size if bottom is None else bottom

    def __call__(self, rng: np.random.Generator) -> float:
        leaves = 1 / self.lasts if self.high == 1 else self.share / (1 - self.share) / self.lasts
        if self.high < 0:
            self.high = int(rng.random() < self.share)
        elif rng.random() < leaves:
            self.high = 1 - self.high
        return self.bottom + self.size * self.high + (self.width * (2 * rng.random() - 1) if self.width else 0.0)


class Watched:
    """Nothing for the first calls at a point, then a rare cost."""

    def __init__(self, behaves: int, cost: Noise):
        self.behaves, self.cost, self.seen, self.calls = behaves, cost, math.nan, 0

    def at(self, x: float, rng: np.random.Generator) -> float:
        self.calls = self.calls + 1 if x == self.seen else 1
        self.seen = x
        return self.cost.draw(rng) if self.calls > self.behaves else 0.0


def loud_at_the_edge(noise: Noise) -> Callable[[float, np.random.Generator], float]:
    """Noise whose spread grows a hundredfold where the answer lies."""
    return lambda x, rng: noise.draw(rng) * (0.01 + 0.99 / (1 + math.exp(-40 * (x - 0.95))))


def to_whole(x: float, rng: np.random.Generator) -> float:
    """What rounding by chance to whole numbers adds: none on the mean, and nothing ever below 0 and above 1 between them."""
    rest = (x - 1) - math.floor(x - 1)
    return (1.0 if rng.random() < rest else 0.0) - rest


def to_halves(x: float, rng: np.random.Generator) -> float:
    """Noise that is uniform over four steps of one half, and the rounding to such steps: none on the mean."""
    return round(2 * (x - 1 + 2 * rng.random() - 1)) / 2 - (x - 1)


def unrelated(x: float, rng: np.random.Generator) -> float:
    """Noise that the same random numbers make another one at each point."""
    return 0.3 * math.sin(1e4 * x * rng.standard_normal()) + 0.3 * (2 * rng.random() - 1)
