"""Functions to minimise whose truth is known: a point keeps its limits or it does not."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import optimize, stats

from benchmarks.certificates.noises import Noise

HAIR = 1e-6  # by which all points are infeasible, where each certificate is false
SPAN = (-2.0, 3.0)  # of x


@dataclass
class Problem:
    """A function to minimise, what is true of a point, and the best objective there is."""

    fun: Callable[[np.ndarray], Any]
    feasible: Callable[[np.ndarray], bool]
    x0: list[float]
    bounds: list[tuple[float, float]]
    objective: Callable[[np.ndarray], float] = lambda x: math.nan
    best: float = math.nan


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
