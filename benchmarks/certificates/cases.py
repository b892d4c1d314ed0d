"""The attacks: a function, a budget, what is stated, and which promise it is about."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.certificates.functions import (
    HAIR,
    SPAN,
    Problem,
    beyond,
    design,
    edge,
    episodes,
    nowhere,
    outcomes,
    tail,
)
from benchmarks.certificates.noises import (
    Blocks,
    Drifting,
    Noise,
    Remembering,
    Steps,
    Watched,
    beta,
    exponential,
    lognormal,
    loud_at_the_edge,
    moved,
    normal,
    pareto,
    rare,
    rare_with_uniform,
    student,
    to_halves,
    to_whole,
    unrelated,
)
from pcces.limits import CVaR, Probability, Quantile

RUNS = 200
FEW = 500  # evaluations up to which Gaussian processes propose, where limits are on means: seconds a run
GROUPS = {
    "failure": "Failure probabilities, 4000 evaluations",
    "range": "Stated ranges",
    "0/1": "Failures, counted",
    "tail": "Limits on tails",
    "no range": "Nothing stated",
    "policy": "Policies without bounds on costs",
    "dependent": "Samples that depend on each other",
    "power": "Power",
}


@dataclass(frozen=True)
class Case:
    """A problem, made anew for each run, and how it is solved."""

    group: str
    name: str
    make: Callable[[np.random.Generator], Problem | dict[str, Any]]
    budget: int = 400
    options: dict[str, Any] = field(default_factory=dict)
    stop_after: int | None = None  # iterations, by the callback

    @property
    def key(self) -> str:
        """Its name in the file of runs."""
        return f"{self.group}: {self.name} ({self.budget})"

    @property
    def slow(self) -> bool:
        """Whether a run takes seconds."""
        return 100 < self.budget <= FEW and "limits" not in self.options and self.group != "policy"


def stated(noise: Noise, wider: float = 0.0) -> dict[str, Any]:
    """The range of x1 - 1 + noise, as a user would state it."""
    return {"constraint_range": ((SPAN[0] - 1 + noise.low - wider, SPAN[1] - 1 + noise.high + wider),)}


def exactly(noise: Noise, wider: float = 0.0) -> dict[str, Any]:
    """The range of a noise that is all there is."""
    return {"constraint_range": ((noise.low - wider, noise.high + wider + 2 * HAIR),)}


def at_most(share: float, above: float = 0.0) -> dict[str, Any]:
    """A failure probability."""
    return {"limits": (Probability(above, share),)}


def cases() -> Iterator[Case]:
    """All of them; what is promised first, so that it is known first."""
    yield from failures()
    yield from rare_costs()
    yield from counted()
    yield from bounded()
    yield from tails()
    yield from unbounded()
    yield from policies()
    yield from dependent()
    yield from power()


def failures() -> Iterator[Case]:
    """Designs that must seldom fail: limits of 1 to 10 %, one to four variables."""
    for share in (0.01, 0.02, 0.05, 0.1):
        for n, load in ((1, "normal"), (2, "gumbel"), (3, "lognormal"), (4, "normal")):
            yield Case("failure", f"P <= {share}, n = {n}, {load} load", design(n, share, load, False), 4000,
                       at_most(share))  # fmt: skip
        yield Case("failure", f"P <= {share}, n = 2, true or false", design(2, share, "normal", True), 4000,
                   at_most(share, 0.5))  # fmt: skip


def rare_costs() -> Iterator[Case]:
    """Two equal evaluations say nothing of what happens once in twenty, or in a thousand times."""
    for p in (0.05, 0.01, 0.001):
        cost = rare(p, 10.0)
        for budget in (400, 1000):
            yield Case(
                "range", f"a cost of 10 with P = {p}, else no noise", edge(lambda c=cost: c, 0.0), budget, stated(cost)
            )
            yield Case(
                "range", f"... infeasible everywhere, P = {p}", nowhere(lambda c=cost: c, 0.0), budget, exactly(cost)
            )
            yield Case("no range", f"a cost of 10 with P = {p}, else no noise", edge(lambda c=cost: c, 0.0), budget)
            yield Case("no range", f"... infeasible everywhere, P = {p}", nowhere(lambda c=cost: c, 0.0), budget)
    both, hidden = rare_with_uniform(0.01, 10.0, 0.5), rare(0.001, 10.0, 0.1)
    for budget in (400, 1000):
        yield Case("range", "a cost of 10 with P = 0.01, on noise", edge(lambda: both), budget, stated(both))
        yield Case("range", "a cost of 10 with P = 0.01, on noise, infeasible everywhere", nowhere(lambda: both), budget,
                   exactly(both))  # fmt: skip
    for budget in (100, 400, 1000, 4000):
        yield Case("no range", "a cost of 10 with P = 0.001, on normal noise", nowhere(lambda: hidden), budget)


def counted() -> Iterator[Case]:
    """Outcomes of 0 and 1, as probabilities, by their range, and as numbers of which nothing is said."""
    for limit in (0.05, 0.01):
        for f_noise, which in ((0.0, "else no noise"), (0.05, "noisy objective")):
            plain = outcomes(limit, f_noise, limit, False)
            yield Case("0/1", f"P(failure) a hair above {limit}, {which}", plain, 1000, at_most(limit, 0.5))
            for budget in (400, 1000):
                less = outcomes(limit, f_noise, limit, True)
                yield Case("no range", f"failures of 0/1 a hair above {limit}, {which}", less, budget)
        by_range = {"constraint_range": ((-limit, 1 - limit),)}
        for budget in (400, 1000):
            yield Case("0/1", f"failures a hair above {limit}, by their range", outcomes(limit, 0.0, limit, True), budget,
                       by_range)  # fmt: skip
    for budget in (100, 400, 2000):
        yield Case(
            "0/1", "P(failure) a hair above 0.001", outcomes(0.001, 0.05, 0.001, False), budget, at_most(0.001, 0.5)
        )
        yield Case("no range", "failures of 0/1 a hair above 0.001", outcomes(0.001, 0.05, 0.001, True), budget)


def bounded() -> Iterator[Case]:
    """Ranges are stated, and noise does within them what it likes."""
    skewed, even = beta(0.2, 2.0, 2.0), beta(1.0, 1.0, 1.0)
    for budget in (100, 400, 2000):
        yield Case("range", "skewed noise", edge(lambda: skewed), budget, stated(skewed))
    yield Case("range", "skewed noise, infeasible everywhere", nowhere(lambda: skewed), 100, exactly(skewed, 0.1))
    for budget in (400, 1000):
        yield Case("range", "skewed noise near the edge only", edge(lambda: skewed, far=True), budget, stated(skewed))
    yield Case("range", "uniform noise, 20 constraints, infeasible everywhere", nowhere(lambda: even, m=20), 1000,
               {"constraint_range": exactly(even, 0.1)["constraint_range"] * 20})  # fmt: skip
    yield Case(
        "range", "uniform noise, stopped after 3 iterations", edge(lambda: even), 1000, stated(even), stop_after=3
    )
    wide, half = {"constraint_range": ((-9.0, 9.0),)}, {"constraint_range": ((-4.0, 4.0),)}
    yield Case(
        "range", "spread a hundred times larger at the edge", beyond(lambda: loud_at_the_edge(skewed)), 1000, wide
    )
    yield Case("range", "rounded to whole numbers by chance", beyond(lambda: to_whole, 0.0), 1000, half)
    yield Case("range", "rounded to halves", beyond(lambda: to_halves), 1000, half)
    three = Noise(lambda rng: float(rng.choice((0.0, 1.0, 100.0), p=(0.6, 0.398, 0.002))) - 0.598, -0.598, 99.402)
    yield Case("range", "three values, one of them rare", nowhere(lambda: three), 1000, exactly(three))
    yield Case("no range", "three values, one of them rare", nowhere(lambda: three), 1000)
    cost = rare(0.02, 10.0)
    yield Case("range", "no noise in the first 10 calls at a point, then a rare cost",
               beyond(lambda: Watched(10, cost).at, 0.0), 1000, {"constraint_range": ((-13.0, 13.0),)})  # fmt: skip
    for unit in (1e-9, 1e9):
        yield Case("range", f"uniform noise, in units of {unit:g}", beyond(lambda: lambda x, rng: rng.random() - 0.5, unit=unit),
                   1000, {"constraint_range": ((-3.5 * unit, 2.5 * unit),)})  # fmt: skip
    yield Case("range", "common random numbers that have nothing in common", beyond(lambda: unrelated, common=True), 1000,
               {"constraint_range": ((-3.6, 2.6),), "common_random_numbers": True})  # fmt: skip


def tails() -> Iterator[Case]:
    """Limits on probabilities, quantiles and CVaRs."""
    yield Case("tail", "P(c > 0) <= 0.1, normal", tail(normal(0.3), "probability", 0.1), 1000, at_most(0.1))
    heavy, skew = pareto(2.1, 0.2), lognormal(1.5, 0.1)
    yield Case("tail", "P(c > 0) <= 0.1, Pareto (2.1)", tail(heavy, "probability", 0.1), 1000, at_most(0.1))
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
    yield Case("tail", "P(c > 0) <= 0.1, noise grows with x", tail(normal(1.0), "probability", 0.1, growing=True), 1000,
               at_most(0.1))  # fmt: skip
    yield Case("tail", "median of noise of which the spread grows at the edge", beyond(lambda: loud_at_the_edge(normal(1.0))),
               1000, {"limits": (Quantile(0.5),)})  # fmt: skip
    for name, noise in {"normal": normal(0.3), "exponential": exponential(0.3)}.items():
        yield Case("no range", f"CVaR of 0.2, {name}", tail(noise, "cvar", 0.2), 1000, {"limits": (CVaR(0.2),)})


def unbounded() -> Iterator[Case]:
    """Nothing is stated: what is certified is certified with a warning."""
    kinds = {
        "normal": normal(0.3), "t with 3 degrees of freedom": student(3, 0.3), "t with 2": student(2, 0.3),
        "Pareto (2.1)": pareto(2.1, 0.2), "lognormal (1.5)": lognormal(1.5, 0.1), "exponential": exponential(0.3),
    }  # fmt: skip
    for name, noise in kinds.items():
        yield Case("no range", f"{name}", edge(lambda c=noise: c), 1000)
        yield Case("no range", f"{name}, infeasible everywhere", nowhere(lambda c=noise: c), 1000)
    for budget in (100, 400, 1000):
        yield Case("no range", "skewed noise near the edge only", edge(lambda: exponential(0.3), far=True), budget)
    yield Case("no range", "normal, 20 constraints, infeasible everywhere", nowhere(lambda: normal(0.3), m=20), 1000)
    yield Case("no range", "normal, stopped after 3 iterations", edge(lambda: normal(0.3)), 1000, stop_after=3)
    silent = edge(lambda: rare(0.0, 0.0), 0.0)
    yield Case("no range", "no noise, deterministic=True", silent, 1000, {"deterministic": True})
    yield Case("no range", "no noise, nothing stated", silent, 1000)
    yield Case("no range", "spread a hundred times larger at the edge, exponential",
               beyond(lambda: loud_at_the_edge(exponential(0.3))), 1000)  # fmt: skip
    yield Case("no range", "rounded to whole numbers by chance", beyond(lambda: to_whole, 0.0), 1000)
    yield Case("no range", "rounded to halves", beyond(lambda: to_halves), 1000)
    downwards = Noise(lambda rng: 0.3 * (1 - rng.exponential()))
    yield Case("no range", "one-sided: never above, far below", edge(lambda: downwards), 1000)
    mixed = Noise(lambda rng: 0.05 * rng.standard_normal() + (0.98 if rng.random() < 0.02 else -0.02))
    yield Case("no range", "a mixture: 0.98 of one normal, 0.02 of another", nowhere(lambda: mixed), 1000)
    jitter = rare(0.01, 10.0, 1e-9)
    yield Case("no range", "a cost of 10 with P = 0.01 on noise of 1e-9", nowhere(lambda: jitter, 0.0), 1000)
    endless = Noise(lambda rng: 0.3 * rng.standard_t(1.5))
    yield Case("no range", "t with 1.5 degrees of freedom", nowhere(lambda: endless), 1000)
    cost = rare(0.02, 10.0)
    yield Case("no range", "no noise in the first 10 calls at a point, then a rare cost",
               beyond(lambda: Watched(10, cost).at, 0.0), 1000)  # fmt: skip
    for unit in (1e-9, 1e9):
        plain = beyond(lambda: lambda x, rng: 0.3 * rng.standard_normal(), unit=unit)
        yield Case("no range", f"normal, in units of {unit:g}", plain, 1000)
    yield Case("no range", "common random numbers that have nothing in common", beyond(lambda: unrelated, common=True), 1000,
               {"common_random_numbers": True})  # fmt: skip


def policies() -> Iterator[Case]:
    """A step that hardly ever costs anything, and then very much."""
    for p, bounds in ((0.004, None), (0.004, (0.0, 2000.0)), (0.04, None), (0.04, (0.0, 200.0))):
        size = 8 / p
        yield Case("policy" if bounds is None else "range", f"a policy's episode costs {size:g} with P = {p}, limit 5",
                   partial(episodes, p, size, bounds), 200)  # fmt: skip


def dependent() -> Iterator[Case]:
    """Noise that breaks what each certificate assumes: that samples are independent, and alike over time."""
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
        yield Case("dependent", f"P(failure) a hair above 0.1, in bursts of {lasts}", bursts, 1000, at_most(0.1, 0.5))
    yield Case("dependent", "the median of noise that remembers (0.9)", edge(lambda: Remembering(0.9, 0.3)), 1000,
               {"limits": (Quantile(0.5),)})  # fmt: skip
    for memory in (0.9, 0.99):
        yield Case(
            "dependent", f"normal noise that remembers ({memory})", edge(lambda m=memory: Remembering(m, 0.3)), 2000
        )


def power() -> Iterator[Case]:
    """Answers that could be certified: are they, with how many evaluations, and how far from the best?"""
    even, tight = beta(1.0, 1.0, 1.0), beta(1.0, 1.0, 0.2)
    in_range = {"limits": (CVaR(0.2),), "constraint_range": ((-7.0, 5.0),)}
    triangular = Noise(
        lambda rng: 0.5 * (rng.random() + rng.random() - 1), -0.5, 0.5,
        worst=lambda share: 0.5 - 0.5 * math.sqrt(2 * share) * 2 / 3,
    )  # fmt: skip
    for budget in (100, 400, 1000, 4000):
        yield Case("power", "mean, normal noise", edge(lambda: normal(0.3), n=2), budget)
        yield Case("power", "mean, by a range 6 wide, noise 1 wide", edge(lambda: even, n=2), budget, stated(even))
        yield Case(
            "power", "mean, by a range 5.2 wide, noise 0.2 wide", edge(lambda: tight, n=2), budget, stated(tight)
        )
        yield Case("power", "P(c > 0) <= 0.1", tail(normal(0.3), "probability", 0.1), budget, at_most(0.1))
        yield Case("power", "0.9-quantile", tail(normal(0.3), "quantile", 0.1), budget, {"limits": (Quantile(0.9),)})
        yield Case(
            "power", "CVaR of 0.2, nothing stated", tail(normal(0.3), "cvar", 0.2), budget, {"limits": (CVaR(0.2),)}
        )
        yield Case("power", "CVaR of 0.2, by a range 12 wide", tail(triangular, "cvar", 0.2), budget, in_range)
        yield Case(
            "power", "P(failure) <= 0.1, true or false", design(1, 0.1, "normal", True), budget, at_most(0.1, 0.5)
        )
        yield Case("power", "no noise, nothing stated", edge(lambda: rare(0.0, 0.0), 0.0, n=2), budget)
