"""The oracle every solver gets (noisy, counted, with a hard budget), and the judge, who knows the truth."""

import zlib
from dataclasses import dataclass

import numpy as np

from benchmarks.blackbox.problems import Evaluation, Problem
from benchmarks.harness import CountingOracle

LEVELS = (0.0, 0.001, 0.01)
OBJECTIVE_TOLERANCE = {0.0: 0.01, 0.001: 0.01, 0.01: 0.05}  # above f_star, in units of f_scale
FEASIBILITY_TOLERANCE = 1e-6
EQUALITY_TOLERANCE = 1e-3  # |h| - 1e-3 is then treated as any inequality


class Oracle(CountingOracle):
    """f + level * f_scale * N(0, 1) and c + level * N(0, 1), drawn anew and independently at each call; 2000 n of them."""

    def __init__(self, problem: Problem, level: float, seed: int, budget: int | None = None):
        super().__init__(problem, 2000 * problem.n if budget is None else budget)
        self.level = level
        self._rng = np.random.default_rng([seed, zlib.crc32(problem.name.encode()), round(1e6 * level)])

    def evaluate(self, x: np.ndarray) -> Evaluation:
        f, c = self.problem.evaluate(x)
        if self.level > 0:
            z = self.level * self._rng.standard_normal(1 + self.problem.m)
            f, c = f + self.problem.f_scale * float(z[0]), c + z[1:]
        return f, c


@dataclass(frozen=True)
class Verdict:
    gap: float  # (f - f_star) / f_scale, without noise
    violation: float  # largest inequality, without noise
    equality: float  # largest |equality|, without noise; 0 where there is none
    success: bool  # near the optimum, and feasible within the noise
    feasible: bool  # truly


def judge(problem: Problem, level: float, x: np.ndarray) -> Verdict:
    """What the answer x is worth. A point outside the bounds, or where the simulator fails, is worth nothing."""
    try:
        if np.any(x < problem.lower) or np.any(x > problem.upper):
            raise ArithmeticError("outside the bounds")
        f, c = problem.evaluate(x)
    except ArithmeticError:
        f, c = np.nan, np.full(problem.m, np.inf)
    gap = (f - problem.f_star) / problem.f_scale
    violation = float(max(c[list(problem.inequality)], default=0.0))
    equality = float(max(np.abs(c[list(problem.equality)]), default=0.0))
    exact = EQUALITY_TOLERANCE + FEASIBILITY_TOLERANCE
    near = violation <= max(2 * level, FEASIBILITY_TOLERANCE) and equality <= max(2 * level, exact)
    feasible = bool(np.isfinite(f)) and violation <= FEASIBILITY_TOLERANCE and equality <= exact
    return Verdict(float(gap), violation, equality, bool(gap <= OBJECTIVE_TOLERANCE[level]) and near, feasible)
