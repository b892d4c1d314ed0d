"""The oracle every solver gets (noisy, counted, with a hard budget), and the judge, who knows the truth."""

import zlib
from dataclasses import dataclass

import numpy as np
from problems import Evaluation, Problem

LEVELS = (0.0, 0.001, 0.01)
OBJECTIVE_TOLERANCE = {0.0: 0.01, 0.001: 0.01, 0.01: 0.05}  # above f_star, in units of f_scale
FEASIBILITY_TOLERANCE = 1e-6
EQUALITY_TOLERANCE = 1e-3  # |h| - 1e-3 is then treated as any inequality


class BudgetExhaustedError(RuntimeError):
    """The solver asked for more than `2000 n` evaluations."""


class Oracle:
    """f + level * f_scale * N(0, 1) and c + level * N(0, 1), drawn anew and independently at each call.

    A call counts whether it returns, returns nan, or raises ArithmeticError (a crash of the simulator). Past the budget
    every call raises BudgetExhaustedError. Points outside the bounds are an error of the caller, not of the simulator.
    """

    def __init__(self, problem: Problem, level: float, seed: int, budget: int | None = None):
        self.problem = problem
        self.level = level
        self.budget = 2000 * problem.n if budget is None else budget
        self.evaluations = 0
        self._rng = np.random.default_rng([seed, zlib.crc32(problem.name.encode()), round(1e6 * level)])
        self._slack = 1e-9 * (problem.upper - problem.lower)

    @property
    def left(self) -> int:
        return self.budget - self.evaluations

    def __call__(self, x: np.ndarray) -> Evaluation:
        p = self.problem
        x = np.asarray(x, dtype=float)
        if not (np.all(x >= p.lower - self._slack) and np.all(x <= p.upper + self._slack)):
            raise ValueError(f"{p.name} was evaluated outside its bounds, at {x}; bounds are {p.bounds}")
        if self.left <= 0:
            raise BudgetExhaustedError(f"{p.name}: all {self.budget} evaluations are used")
        self.evaluations += 1
        f, c = p.evaluate(np.clip(x, p.lower, p.upper))
        if self.level > 0:
            z = self.level * self._rng.standard_normal(1 + p.m)
            f, c = f + p.f_scale * float(z[0]), c + z[1:]
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
