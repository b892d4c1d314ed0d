"""What a certificate does not say, and a person should know: a policy that learnt nothing, a limit that meant nothing."""

from __future__ import annotations

import math

import numpy as np

from pcces.report.protocols import ReportedRun

LEAST = 5  # iterations, before anything is said of a course


def concerns(run: ReportedRun) -> list[str]:
    """Warnings about a run, each with a remedy. Most runs have none.

    >>> from types import SimpleNamespace
    >>> course = {"return": [3.0] * 6, "steps": [100.0 * k for k in range(1, 7)], "length": [10.0] * 6}
    >>> final = {"return": 3.1, "return_error": 0.1, "episodes": 100, "costs": []}
    >>> problem = SimpleNamespace(cost_names=(), thresholds=())
    >>> run = SimpleNamespace(config={}, metrics=course, final=final, problem=problem)
    >>> print(concerns(run)[0][:76])
    the return (3.1) is no better than that of the first random policies (3): th
    """
    course, final, problem = run.metrics, run.final, run.problem
    if len(course.get("return", ())) < LEAST or not final:
        return []
    said = []
    first = float(course["return"][0])
    if not run.config.get("init") and final["return"] - first <= 2 * _error(run):
        said.append(
            f"the return ({final['return']:.4g}) is no better than that of the first random policies ({first:.4g}): this policy"
            " may have learnt to do nothing. More steps may help, or rewards that come earlier, or a looser limit"
        )
    for j, (name, limit) in enumerate(zip(problem.cost_names, problem.thresholds)):
        costs = np.asarray(course.get(f"cost_{name}", [math.nan]), dtype=float)
        if not np.any(costs) and final["costs"][j] == 0:
            said.append(
                f"no episode had any {name}, so its limit had no effect. If there should be some, see where the cost"
                " is taken from (--cost)"
            )
        elif np.all(costs > limit):
            said.append(
                f"{name} was above its limit ({limit:g}) in every iteration (at least {costs.min():.4g}). More steps may help; or the"
                " limit is out of reach, or in other units than the cost"
            )
    return said


def _error(run: ReportedRun) -> float:
    """The standard error of how much better the final policy is than the first, whose episodes are as many as fit into an
    iteration."""
    course, final = run.metrics, run.final
    if not math.isfinite(final["return_error"]):
        return math.inf
    deviation = final["return_error"] * math.sqrt(final["episodes"])
    steps = np.diff(course["steps"]).mean() if "steps" in course else 1.0
    episodes = max(1.0, float(steps) / max(float(np.mean(course.get("length", [1.0]))), 1.0))
    return math.hypot(final["return_error"], deviation / math.sqrt(episodes))
