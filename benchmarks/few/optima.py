"""Computes the optima without noise, by many starts of SLSQP after differential evolution, into optima.json."""

import json

import numpy as np
from scipy.optimize import NonlinearConstraint, differential_evolution, minimize

from benchmarks.few.problems import FILE, PROBLEMS, Problem


def solve(problem: Problem, starts: int = 40) -> tuple[list[float], float]:
    """The best feasible point that could be found, and its f."""
    lower, upper = np.array(problem.bounds).T

    def f(z):
        return problem.exact(lower + np.clip(z, 0, 1) * (upper - lower))[0]

    def c(z):
        return np.array(problem.exact(lower + np.clip(z, 0, 1) * (upper - lower))[1])

    box = [(0.0, 1.0)] * problem.n
    rough = differential_evolution(
        f, box, constraints=NonlinearConstraint(c, -np.inf, 0), seed=0, maxiter=300, tol=1e-9
    )
    rng = np.random.default_rng(0)
    points = [rough.x, *rng.random((starts, problem.n))]
    ends = [rough.x]
    for start in points:
        limit = {"type": "ineq", "fun": lambda z: -c(z) - 1e-9}
        ends.append(
            minimize(f, start, method="SLSQP", bounds=box, constraints=limit, options={"maxiter": 500, "ftol": 1e-12}).x
        )
    best = min((np.clip(z, 0, 1) for z in ends if c(z).max() <= 1e-9), key=f)
    return (lower + best * (upper - lower)).tolist(), float(f(best))


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: solve(problem) for name, problem in PROBLEMS.items()}, indent=1) + "\n")
