"""Attacks on certificates: how often does one hold that is false, and how often is one given that is true?

    make bench-certificates                                  # all cases, 200 runs each; goes on where it stopped
    python benchmarks/certificates.py run --seconds 300      # a slice of five minutes; --cases rare --runs 60 for a part
    python benchmarks/certificates.py table                  # markdown, from out/certificates.jsonl
    python benchmarks/certificates.py widths                 # the bounds beside those of others (needs confseq)

Each run is a search on a cheap function whose truth is known: x is feasible or it is not. Nothing was tuned on the seeds
that are reported; `--first-seed 0` is for whoever wants to change something.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes are the parallel part here
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import optimize, stats

OUT = Path("out/certificates.jsonl")
RUNS, FIRST_SEED = 200, 1000
HAIR = 1e-6  # by which all points are infeasible, where each certificate is false
CLOSE = 0.12  # of the best objective


# --- noise ------------------------------------------------------------------------------------------------------------


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
        return self.scale * (2 * float(stats.norm.cdf(self.value)) - 1 if self.bounded else self.value)


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


def beyond(make: Callable[[], Callable[[float, np.random.Generator], float]], f_noise: float = 0.05, unit: float = 1.0,
           common: bool = False) -> Any:  # fmt: skip
    """As `edge`, with noise that depends on x or on what was called before, in another unit, or by common random numbers."""

    def make_problem(rng: np.random.Generator) -> Problem:
        draw = make()

        def fun(x: np.ndarray, own: np.random.Generator = rng) -> tuple[float, float]:
            f = 1 + (x[0] - 2) ** 2 + f_noise * own.standard_normal()
            return unit * f, unit * (x[0] - 1 + draw(float(x[0]), own))

        return Problem(
            fun if common else lambda x: fun(x), lambda x: bool(x[0] <= 1), [0.0], [SPAN],
            lambda x: unit * (1 + float((x[0] - 2) ** 2)), 2.0 * unit,
        )  # fmt: skip

    return make_problem


def unrelated(x: float, rng: np.random.Generator) -> float:
    """Noise that the same random numbers make another one at each point."""
    return 0.3 * math.sin(1e4 * x * rng.standard_normal()) + 0.3 * (2 * rng.random() - 1)


# --- cases ------------------------------------------------------------------------------------------------------------


@dataclass
class Problem:
    """A function to minimise, what is true of a point, and the best objective there is."""

    fun: Callable[[np.ndarray], Any]
    feasible: Callable[[np.ndarray], bool]
    x0: list[float]
    bounds: list[tuple[float, float]]
    objective: Callable[[np.ndarray], float] = lambda x: math.nan
    best: float = math.nan


@dataclass(frozen=True)
class Case:
    """A problem, made anew for each run, and how it is solved."""

    group: str
    name: str
    make: Callable[[np.random.Generator], Problem]
    budget: int = 400
    options: dict[str, Any] = field(default_factory=dict)
    stop_after: int | None = None  # iterations, by the callback
    runs: int = RUNS

    @property
    def key(self) -> str:
        return f"{self.group}: {self.name} ({self.budget})"


SPAN = (-2.0, 3.0)  # of x
GROUPS = {
    "range": "Stated ranges",
    "0/1": "Failures, counted",
    "tail": "Limits on tails",
    "no range": "Nothing stated",
    "policy": "Policies without bounds on costs",
    "dependent": "Samples that depend on each other",
    "power": "Power",
    "failure": "Failure probabilities, 4000 evaluations",
}


def edge(noise: Callable[[], Any], f_noise: float = 0.05, n: int = 1, far: bool = False) -> Any:
    """min (x1 - 2)^2 + ..., x1 - 1 + noise at most 0 on the mean: the answer lies at the edge. `far`: only there is noise."""

    def make(rng: np.random.Generator) -> Problem:
        draw = noise()
        draw = draw.draw if isinstance(draw, Noise) else draw

        def fun(x: np.ndarray) -> tuple[float, float]:
            f = 1 + ((x - 2) ** 2).sum() + (f_noise * rng.standard_normal() if f_noise else 0.0)
            return f, x[0] - 1 + (draw(rng) if not far or x[0] > 0.8 else 0.0)

        return Problem(
            fun, lambda x: bool(x[0] <= 1), [0.0] * n, [SPAN] * n, lambda x: 1 + float(((x - 2) ** 2).sum()), 2.0
        )

    return make


def nowhere(noise: Callable[[], Any], f_noise: float = 0.05, m: int = 1) -> Any:
    """No point is feasible, by a hair: each certificate is false."""

    def make(rng: np.random.Generator) -> Problem:
        draw = noise()
        draw = draw.draw if isinstance(draw, Noise) else draw

        def fun(x: np.ndarray) -> tuple[float, list[float]]:
            f = (x[0] - 2) ** 2 + (f_noise * rng.standard_normal() if f_noise else 0.0)
            return f, [HAIR + draw(rng) for _ in range(m)]

        return Problem(fun, lambda x: False, [0.0], [SPAN])

    return make


def outcomes(p: float, f_noise: float, limit: float, shift: bool) -> Any:
    """A failure, 0 or 1, that is a hair too frequent everywhere; less its limit, or as it is."""
    return nowhere(lambda: lambda rng: float(rng.random() < p + HAIR) - (limit if shift else 0.0) - HAIR, f_noise)


def tail(noise: Noise, kind: str, share: float, f_noise: float = 0.05, growing: bool = False) -> Any:
    """min (x - 2)^2; c = x - 1 + noise (growing with x), whose tail is limited at 0."""

    def make(rng: np.random.Generator) -> Problem:
        def size(x: float) -> float:
            return 0.1 + 0.15 * (x + 4) if growing else 1.0

        def fun(x: np.ndarray) -> tuple[float, float]:
            f = 1 + (x[0] - 2) ** 2 + f_noise * rng.standard_normal()
            return f, x[0] - 1 + size(x[0]) * noise.draw(rng)

        def too_much(x: float) -> float:
            if kind == "cvar":
                assert noise.worst is not None
                return x - 1 + size(x) * noise.worst(share)
            assert noise.above is not None
            return noise.above((1 - x) / size(x)) - share

        edge_ = optimize.brentq(too_much, -4.0, 3.0)
        return Problem(
            fun, lambda x: bool(x[0] <= edge_), [-1.0], [(-4.0, 3.0)], lambda x: 1 + float((x[0] - 2) ** 2),
            1 + (edge_ - 2) ** 2,
        )  # fmt: skip

    return make


def design(n: int, share: float, load: str, indicator: bool) -> Any:
    """How much material a structure of n members needs that fails seldom: its load is random, its strength grows with
    the root of each member's. Told as what is missing of its strength, or as an outcome of true or false."""
    dist = {
        "normal": stats.norm(2.0, 0.4),
        "gumbel": stats.gumbel_r(1.8, 0.3),
        "lognormal": stats.lognorm(0.2, scale=2),
    }[load]
    needed = float(dist.isf(share))

    def make(rng: np.random.Generator) -> Problem:
        def fun(x: np.ndarray) -> tuple[float, Any]:
            missing = float(dist.ppf(rng.random())) - np.sqrt(x).sum() / math.sqrt(n)
            return x.sum() + 0.02 * rng.standard_normal(), bool(missing > 0) if indicator else missing

        def feasible(x: np.ndarray) -> bool:
            return bool(np.sqrt(x).sum() / math.sqrt(n) >= needed)

        return Problem(fun, feasible, [9.0] * n, [(0.1, 16.0)] * n, lambda x: float(x.sum()), needed**2)

    return make


def stated(noise: Noise, wider: float = 0.0) -> dict[str, Any]:
    """The range of x1 - 1 + noise, as a user would state it."""
    return {"constraint_range": ((SPAN[0] - 1 + noise.low - wider, SPAN[1] - 1 + noise.high + wider),)}


def exactly(noise: Noise, wider: float = 0.0) -> dict[str, Any]:
    """The range of a noise that is all there is."""
    return {"constraint_range": ((noise.low - wider, noise.high + wider + 2 * HAIR),)}


def cases() -> Iterator[Case]:
    """All of them. The groups say what is promised: a guarantee, or nothing but a warning."""
    from pcces.limits import CVaR, Probability, Quantile

    p_limit = lambda a, above=0.0: {"limits": (Probability(above, a),)}  # noqa: E731
    for p in (0.05, 0.01, 0.001):
        cost = rare(p, 10.0)
        yield Case("range", f"a cost of 10 with P = {p}, else no noise", edge(lambda c=cost: c, 0.0), 400, stated(cost))
        yield Case("range", f"... infeasible everywhere, P = {p}", nowhere(lambda c=cost: c, 0.0), 400, exactly(cost))
        yield Case("no range", f"a cost of 10 with P = {p}, else no noise", edge(lambda c=cost: c, 0.0), 400)
        yield Case("no range", f"... infeasible everywhere, P = {p}", nowhere(lambda c=cost: c, 0.0), 400)
    both = rare_with_uniform(0.01, 10.0, 0.5)
    yield Case("range", "a cost of 10 with P = 0.01, on noise", edge(lambda: both), 400, stated(both))
    yield Case("range", "... infeasible everywhere", nowhere(lambda: both), 400, exactly(both))
    skewed, even = beta(0.2, 2.0, 2.0), beta(1.0, 1.0, 1.0)
    for budget in (100, 400, 2000):
        yield Case("range", "skewed noise", edge(lambda: skewed), budget, stated(skewed))
    yield Case("range", "skewed noise, infeasible everywhere", nowhere(lambda: skewed), 100, exactly(skewed, 0.1))
    yield Case("range", "skewed noise near the edge only", edge(lambda: skewed, far=True), 400, stated(skewed))
    yield Case("range", "uniform noise, 20 constraints, infeasible everywhere", nowhere(lambda: even, m=20), 400,
               {"constraint_range": exactly(even, 0.1)["constraint_range"] * 20})  # fmt: skip
    yield Case(
        "range", "uniform noise, stopped after 3 iterations", edge(lambda: even), 400, stated(even), stop_after=3
    )
    for limit in (0.05, 0.01):
        for f_noise, which in ((0.0, "else no noise"), (0.05, "noisy objective")):
            yield Case("0/1", f"P(failure) a hair above {limit}, {which}", outcomes(limit, f_noise, limit, False), 1000,
                       p_limit(limit, 0.5))  # fmt: skip
            yield Case(
                "no range", f"failures of 0/1 a hair above {limit}, {which}", outcomes(limit, f_noise, limit, True)
            )
        yield Case("0/1", f"... {limit}, by its range", outcomes(limit, 0.0, limit, True), 1000,
                   {"constraint_range": ((-limit, 1 - limit),)})  # fmt: skip
    for budget in (100, 400, 2000):
        yield Case(
            "0/1", "P(failure) a hair above 0.001", outcomes(0.001, 0.05, 0.001, False), budget, p_limit(0.001, 0.5)
        )
        yield Case("no range", "failures of 0/1 a hair above 0.001", outcomes(0.001, 0.05, 0.001, True), budget)

    yield Case("tail", "P(c > 0) <= 0.1, normal", tail(normal(0.3), "probability", 0.1), 1000, p_limit(0.1))
    heavy, skew = pareto(2.1, 0.2), lognormal(1.5, 0.1)
    yield Case("tail", "P(c > 0) <= 0.1, Pareto (2.1)", tail(heavy, "probability", 0.1), 1000, p_limit(0.1))
    yield Case("tail", "0.8-quantile, lognormal (1.5)", tail(skew, "quantile", 0.2), 1000, {"limits": (Quantile(0.8),)})
    yield Case("tail", "0.8-quantile, infeasible everywhere", nowhere(lambda: moved(heavy, 0.2)), 400,
               {"limits": (Quantile(0.8),)})  # fmt: skip
    worst = Noise(lambda rng: 2 * rng.random() - 1.8, -1.8, 0.2)  # the mean of the worst fifth is 0
    for budget in (400, 1000):
        yield Case("tail", "CVaR of 0.2 by its range, infeasible everywhere", nowhere(lambda: worst), budget,
                   {"limits": (CVaR(0.2),), **exactly(worst)})  # fmt: skip
    two = Noise(lambda rng: float(rng.random() < 0.1), 0.0, 1.0)  # the mean of the worst fifth is 0.5
    yield Case("tail", "CVaR of 0.2 of 0/1 by its range, infeasible everywhere", nowhere(lambda: two), 1000,
               {"limits": (CVaR(0.2, 0.5),), **exactly(two)})  # fmt: skip
    yield Case(
        "tail",
        "P(c > 0) <= 0.1, noise grows with x",
        tail(normal(1.0), "probability", 0.1, growing=True),
        1000,
        p_limit(0.1),
    )
    for name, noise in {"normal": normal(0.3), "exponential": exponential(0.3)}.items():
        yield Case("no range", f"CVaR of 0.2, {name}", tail(noise, "cvar", 0.2), 1000, {"limits": (CVaR(0.2),)})

    kinds = {
        "normal": normal(0.3), "t with 3 degrees of freedom": student(3, 0.3), "t with 2": student(2, 0.3),
        "Pareto (2.1)": pareto(2.1, 0.2), "lognormal (1.5)": lognormal(1.5, 0.1), "exponential": exponential(0.3),
    }  # fmt: skip
    for name, noise in kinds.items():
        yield Case("no range", f"{name}", edge(lambda c=noise: c), 400)
        yield Case("no range", f"{name}, infeasible everywhere", nowhere(lambda c=noise: c), 400)
    for budget in (100, 400, 2000):
        hidden = rare(0.001, 10.0, 0.1)
        yield Case("no range", "a cost of 10 with P = 0.001, on normal noise", nowhere(lambda c=hidden: c), budget)
    for budget in (100, 400):
        yield Case("no range", "skewed noise near the edge only", edge(lambda: exponential(0.3), far=True), budget)
    yield Case("no range", "normal, 20 constraints, infeasible everywhere", nowhere(lambda: normal(0.3), m=20), 400)
    yield Case("no range", "normal, stopped after 3 iterations", edge(lambda: normal(0.3)), 400, stop_after=3)
    yield Case(
        "no range", "none at all, deterministic=True", edge(lambda: rare(0.0, 0.0), 0.0), 400, {"deterministic": True}
    )
    yield Case("no range", "none at all, nothing stated", edge(lambda: rare(0.0, 0.0), 0.0), 400)

    yield from unlisted()
    yield from dependent()

    for budget in (100, 400, 1000, 4000):
        few = {"runs": 100} if budget == 4000 else {}
        yield Case("power", "mean, normal noise", edge(lambda: normal(0.3), n=2), budget, **few)
        yield Case("power", "mean, by its range", edge(lambda: even, n=2), budget, stated(even), **few)
        yield Case("power", "P(c > 0) <= 0.1", tail(normal(0.3), "probability", 0.1), budget, p_limit(0.1), **few)
        yield Case(
            "power", "0.9-quantile", tail(normal(0.3), "quantile", 0.1), budget, {"limits": (Quantile(0.9),)}, **few
        )
        yield Case("power", "CVaR of 0.2", tail(normal(0.3), "cvar", 0.2), budget, {"limits": (CVaR(0.2),)}, **few)
        yield Case(
            "power",
            "P(failure) <= 0.1, true or false",
            design(1, 0.1, "normal", True),
            budget,
            p_limit(0.1, 0.5),
            **few,
        )
    for share in (0.01, 0.02, 0.05, 0.1):
        for n, load in ((1, "normal"), (2, "gumbel"), (3, "lognormal"), (4, "normal")):
            yield Case(
                "failure",
                f"P <= {share}, n = {n}, {load} load",
                design(n, share, load, False),
                4000,
                p_limit(share),
                runs=100,
            )
        yield Case(
            "failure",
            f"P <= {share}, n = 2, true or false",
            design(2, share, "normal", True),
            4000,
            p_limit(share, 0.5),
            runs=100,
        )
    for p, bounds in ((0.004, None), (0.004, (0.0, 2000.0)), (0.04, None), (0.04, (0.0, 200.0))):
        size = 8 / p
        yield Case("policy" if bounds is None else "range", f"a policy's episode costs {size:g} with P = {p}, limit 5",
                   partial(episodes, p, size, bounds), 200)  # fmt: skip


def unlisted() -> Iterator[Case]:
    """Noise of kinds that nobody had in mind when the certificate was written."""
    from pcces.limits import Quantile

    always = lambda noise: lambda: lambda x, rng: noise(rng)  # noqa: E731
    wide = {"constraint_range": ((-9.0, 9.0),)}
    skewed, half = beta(0.2, 2.0, 2.0), {"constraint_range": ((-4.0, 4.0),)}
    yield Case(
        "range", "spread a hundred times larger at the edge", beyond(lambda: loud_at_the_edge(skewed)), 400, wide
    )
    yield Case("no range", "spread a hundred times larger at the edge, exponential",
               beyond(lambda: loud_at_the_edge(exponential(0.3))), 400)  # fmt: skip
    yield Case("range", "rounded to whole numbers by chance", beyond(lambda: to_whole, 0.0), 400, half)
    yield Case("no range", "rounded to whole numbers by chance", beyond(lambda: to_whole, 0.0), 400)
    yield Case("range", "rounded to halves", beyond(lambda: to_halves), 400, half)
    yield Case("no range", "rounded to halves", beyond(lambda: to_halves), 400)
    downwards = Noise(lambda rng: 0.3 * (1 - rng.exponential()))
    yield Case("no range", "one-sided: never above, far below", edge(lambda: downwards), 400)
    mixed = Noise(lambda rng: 0.05 * rng.standard_normal() + (0.98 if rng.random() < 0.02 else -0.02))
    yield Case("no range", "a mixture: 0.98 of one normal, 0.02 of another", nowhere(lambda: mixed), 400)
    three = Noise(lambda rng: float(rng.choice((0.0, 1.0, 100.0), p=(0.6, 0.398, 0.002))) - 0.598, -0.598, 99.402)
    yield Case("range", "three values, one of them rare", nowhere(lambda: three), 400, exactly(three))
    yield Case("no range", "three values, one of them rare", nowhere(lambda: three), 400)
    jitter = rare(0.01, 10.0, 1e-9)
    yield Case("no range", "a cost of 10 with P = 0.01 on noise of 1e-9", nowhere(lambda: jitter, 0.0), 400)
    yield Case(
        "no range", "t with 1.5 degrees of freedom", nowhere(lambda: Noise(lambda rng: 0.3 * rng.standard_t(1.5))), 400
    )
    cost = rare(0.02, 10.0)
    yield Case("range", "no noise in the first 10 calls at a point, then a rare cost",
               beyond(lambda: Watched(10, cost).at, 0.0), 400, {"constraint_range": ((-13.0, 13.0),)})  # fmt: skip
    yield Case("no range", "no noise in the first 10 calls at a point, then a rare cost",
               beyond(lambda: Watched(10, cost).at, 0.0), 400)  # fmt: skip
    for unit in (1e-9, 1e9):
        yield Case("range", f"uniform noise, in units of {unit:g}", beyond(always(lambda rng: rng.random() - 0.5), unit=unit),
                   400, {"constraint_range": ((-3.5 * unit, 2.5 * unit),)})  # fmt: skip
        yield Case(
            "no range",
            f"normal, in units of {unit:g}",
            beyond(always(lambda rng: 0.3 * rng.standard_normal()), unit=unit),
            400,
        )
    common = {"common_random_numbers": True}
    yield Case("range", "common random numbers that have nothing in common", beyond(lambda: unrelated, common=True), 400,
               {"constraint_range": ((-3.6, 2.6),), **common})  # fmt: skip
    yield Case("no range", "common random numbers that have nothing in common", beyond(lambda: unrelated, common=True), 400,
               common)  # fmt: skip
    yield Case("tail", "median of noise of which the spread grows at the edge", beyond(lambda: loud_at_the_edge(normal(1.0))),
               400, {"limits": (Quantile(0.5),)})  # fmt: skip


def dependent() -> Iterator[Case]:
    """Noise that breaks what each certificate assumes: that samples are independent, and alike over time."""
    from pcces.limits import Probability, Quantile

    kinds: dict[str, tuple[Callable[[], Any], float]] = {
        f"it remembers ({memory})": (lambda m=memory: Remembering(m, 0.5, True), 0.5) for memory in (0.5, 0.9, 0.99)
    }
    kinds |= {
        f"it stays the same for {length} calls": (lambda k=length: Blocks(k, 0.5), 0.5) for length in (5, 20, 100)
    }
    kinds |= {
        f"its level changes every {lasts} calls": (lambda k=lasts: Steps(0.5, k, 0.6, 0.3), 0.6) for lasts in (30, 300)
    }
    kinds["a sine of 2000 calls"] = lambda: Drifting(2000, 0.3), 6.0
    for name, (noise, most) in kinds.items():
        there = {"constraint_range": ((SPAN[0] - 1 - most, SPAN[1] - 1 + most),)}
        yield Case("dependent", f"{name}, by its range", edge(noise), 1000, there)
        yield Case("dependent", f"{name}, nothing stated", edge(noise), 1000)
    for lasts in (3, 30):
        bursts = nowhere(lambda k=lasts: Steps(0.1 + HAIR, k, bottom=0.0))
        yield Case("dependent", f"P(failure) a hair above 0.1, in bursts of {lasts}", bursts, 1000,
                   {"limits": (Probability(0.5, 0.1),)})  # fmt: skip
    median = {"limits": (Quantile(0.5),)}
    yield Case(
        "dependent", "the median of noise that remembers (0.9)", edge(lambda: Remembering(0.9, 0.3)), 1000, median
    )


# --- policies: the choice among iterates, on made-up episodes ----------------------------------------------------------


def episodes(p: float, size: float, bounds: tuple[float, float] | None, rng: np.random.Generator) -> dict[str, Any]:
    """The end of a training that found ten policies, all of which cost 8 on the mean where 5 is the limit: by a step that
    costs so much with probability p. What came of it, as `solved` has it."""
    from pcces.core.estimation import estimate
    from pcces.envs.task import Discrete
    from pcces.rl.iterates import Candidates
    from pcces.rl.outcome import Outcome
    from pcces.rl.policy import Policy
    from pcces.rl.problem import Problem as Training
    from pcces.rl.selection import choose

    task: Any = SimpleNamespace(cost_bounds=bounds, max_steps=1)
    policy = Policy(1, Discrete(2), (2,))
    training = Training(("cost",), (5.0,), (-math.inf, math.inf), 0.0, False)

    def play(x: np.ndarray, normalizer: Any, number: int, seed: int) -> Outcome:
        cost = size * (rng.random(number) < p)
        zero = np.zeros(number)
        return Outcome(rng.standard_normal(number), zero, cost[None], zero, zero + 1)

    candidates = Candidates(1, 1, 2)
    for i in range(10):
        y = np.asarray(training.outputs(play(np.zeros(1), None, 64, 0)), dtype=float)
        candidates.add(np.full(1, i), np.zeros(1), np.ones(1), estimate(y), True)
    certificate = choose(task, policy, training, play, candidates, 200, 0)[2]
    return {"grade": certificate.grade, "method": certificate.method, "feasible": False, "nfev": certificate.samples}


# --- runs -------------------------------------------------------------------------------------------------------------


def solved(case: Case, seed: int) -> dict[str, Any]:
    """One run: what the certificate says, and what is true."""
    import pcces

    began = time.perf_counter()
    rng = np.random.default_rng([seed, 7])
    problem = case.make(rng)
    if isinstance(problem, dict):
        return {"case": case.key, "seed": seed, **problem, "gap": None}

    def callback(result: Any) -> bool:
        return case.stop_after is not None and result.nit >= case.stop_after

    res = pcces.minimize(
        problem.fun, problem.x0, bounds=problem.bounds, max_evaluations=case.budget, rng=seed, progress=False,
        callback=None if case.stop_after is None else callback, **case.options,
    )  # fmt: skip
    gap = (problem.objective(res.x) - problem.best) / problem.best
    return {
        "case": case.key, "seed": seed, "grade": res.certificate.grade, "method": res.certificate.method,
        "feasible": problem.feasible(res.x), "gap": None if math.isnan(gap) else round(gap, 4), "nfev": int(res.nfev),
        "seconds": round(time.perf_counter() - began, 3),
    }  # fmt: skip


def by_name(key: str, seed: int) -> dict[str, Any]:
    """Likewise, in another process."""
    return solved(next(case for case in cases() if case.key == key), seed)


def run(arguments: argparse.Namespace) -> None:
    """What is missing in the file, until the time is up."""
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    done = {(row["case"], row["seed"]) for row in read(arguments.out)}
    wanted = [
        (case, arguments.first_seed + i)
        for case in cases()
        if case.key.startswith(arguments.cases) or f": {arguments.cases}" in case.key
        for i in range(min(case.runs, arguments.runs))
    ]
    missing = [(case, seed) for case, seed in wanted if (case.key, seed) not in done]
    missing.sort(key=lambda pair: (list(GROUPS).index(pair[0].group), pair[1]))  # what is promised first
    print(f"{len(missing)} of {len(wanted)} runs are missing")
    until, made = time.monotonic() + arguments.seconds, 0
    with arguments.out.open("a") as file:

        def keep(row: dict[str, Any]) -> None:
            file.write(json.dumps(row) + "\n")
            file.flush()

        if arguments.processes == 1:
            for case, seed in missing:
                if time.monotonic() > until:
                    break
                keep(solved(case, seed))
                made += 1
        else:
            with ProcessPoolExecutor(arguments.processes) as pool:
                pending = [pool.submit(by_name, case.key, seed) for case, seed in missing]
                for future in as_completed(pending):
                    if future.cancelled():
                        continue
                    keep(future.result())
                    made += 1
                    if time.monotonic() > until:
                        for other in pending:
                            other.cancel()
    print(f"{len(missing) - made} are left")


def read(path: Path) -> list[dict[str, Any]]:
    """The runs in the file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- tables -----------------------------------------------------------------------------------------------------------


def table(arguments: argparse.Namespace) -> None:
    """Markdown: a table a group."""
    rows = read(arguments.out)
    by_case: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_case.setdefault(row["case"], []).append(row)
    group, order = "", list(GROUPS)
    for case in sorted(cases(), key=lambda case: order.index(case.group)):
        if case.key not in by_case:
            continue
        if case.group != group:
            group = case.group
            print(f"\n### {GROUPS[group]}\n")
            print(
                "| case | evaluations | runs | guaranteed | of these false | asymptotic | of these false | f above the best |"
            )
            print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        mine = by_case[case.key]
        cells = [case.name, str(case.budget), str(len(mine))]
        for grade in ("guaranteed", "asymptotic"):
            given = [row for row in mine if row["grade"] == grade]
            wrong = sum(not row["feasible"] for row in given)
            cells += [share(len(given), len(mine)), f"{wrong} ({share(wrong, len(mine))})" if wrong else "0"]
        gaps = [row["gap"] for row in mine if row["gap"] is not None and row["grade"] != "not certified"]
        cells.append(
            f"{100 * float(np.median(gaps)):.2g} %; {share(sum(g <= CLOSE for g in gaps), len(mine))}" if gaps else ""
        )
        print("| " + " | ".join(cells) + " |")


def share(part: int, whole: int) -> str:
    """As percents."""
    return f"{100 * part / whole:.3g} %"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--cases", default="", help="what their names begin with, with or without the group")
    parser.add_argument("--runs", type=int, default=RUNS, help="at most so many a case")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    {"run": run, "table": table}[arguments.what](arguments)


if __name__ == "__main__":
    main()
