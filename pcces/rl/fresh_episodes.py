"""What fresh episodes say of a policy, as plain data: means with their errors, and how single episodes differ.

A limit on a mean says nothing of single episodes, and these are what somebody meets who uses the policy: so quantiles of
returns and costs, histograms of costs, and how many episodes are over a limit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pcces.rl.problem import Problem
from pcces.support.schema import ANY_NUMBER, NAMES, NUMBER, check, several, whole

SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
BINS = (8, 40)  # at least and at most
# What a run's folder must hold of it.
FINAL = {
    "episodes": whole(0), "costs": several(ANY_NUMBER), "costs_error": several(ANY_NUMBER), "limited": several(ANY_NUMBER),
    **{name + error: ANY_NUMBER for name in ("return", "entropy", "length") for error in ("", "_error")},
}  # fmt: skip
FINAL_OF_LATE = {"certification_steps": NUMBER, "certification_costs": several(ANY_NUMBER), "iteration": whole(0)}
SPREAD = {"over_limit": several(ANY_NUMBER), "quantiles": NAMES, "histograms": several(NAMES)}
QUANTILES = {"shares": several(ANY_NUMBER), "return": several(ANY_NUMBER), "costs": several(several(ANY_NUMBER))}
HISTOGRAM = {"edges": several(ANY_NUMBER), "counts": several(whole(0))}


def of_certificate(problem: Problem, outcome: Any) -> dict[str, Any]:
    """All of it, of the episodes of a certificate."""
    return summary(problem, outcome) | spread(problem, outcome)


def summary(problem: Problem, outcome: Any) -> dict[str, Any]:
    """Means and standard errors of an Outcome's episodes, as plain data; those that failed are counted apart."""
    good = np.isfinite(np.asarray(outcome.returns))

    def mean_and_error(values: np.ndarray) -> tuple[float, float]:
        n, values = int(good.sum()), values[good]
        if n == 0:
            return math.nan, math.nan
        return float(values.mean()), float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan

    numbers: dict[str, Any] = {"episodes": len(good)}
    if not good.all():
        numbers["failed_episodes"] = int((~good).sum())
    for name, values in (("return", outcome.returns), ("entropy", outcome.entropy), ("length", outcome.length)):
        numbers[name], numbers[f"{name}_error"] = mean_and_error(np.asarray(values, dtype=float))
    pairs = [mean_and_error(np.asarray(row, dtype=float)) for row in outcome.costs]
    numbers["costs"], numbers["costs_error"] = [a for a, _ in pairs], [b for _, b in pairs]
    numbers["cost_names"], numbers["thresholds"] = list(problem.cost_names), list(problem.thresholds)
    if not problem.on_means:
        of_good = (np.asarray(row, dtype=float)[good] for row in outcome.costs)
        rows = zip(problem.cost_limits, of_good)
        numbers["limited"] = [limit.estimate(row) if row.size else math.nan for limit, row in rows]
        numbers["limits"] = [str(limit) for limit in problem.cost_limits]
    return numbers


def spread(problem: Problem, outcome: Any) -> dict[str, Any]:
    """As plain data, over the episodes that did not fail; nothing, if all did."""
    good = np.isfinite(np.asarray(outcome.returns))
    if not good.any():
        return {}
    returns, costs = (np.asarray(part, dtype=float)[..., good] for part in (outcome.returns, outcome.costs))
    return {
        "over_limit": [float(np.mean(row > limit.value)) for row, limit in zip(costs, problem.cost_limits)],
        "quantiles": {"shares": list(SHARES), "return": _quantiles(returns), "costs": list(map(_quantiles, costs))},
        "histograms": [histogram(row) for row in costs],
    }


def _quantiles(values: np.ndarray) -> list[float]:
    return [float(value) for value in np.quantile(values, SHARES)]


def histogram(values: np.ndarray) -> dict[str, Any]:
    """Edges of bins that are equally wide, and how many values are in each. Whole numbers stand in the middle of bins.

    >>> histogram(np.array([0.0, 0.0, 3.0]))
    {'edges': [-0.5, 0.5, 1.5, 2.5, 3.5], 'counts': [2, 0, 0, 1]}
    """
    low, high = float(values.min()), float(values.max())
    if np.all(values == np.round(values)) and high - low < 1e6:
        width = int(high - low) // BINS[1] + 1
        edges = np.arange(low - 0.5, high + 0.5 + width, width)
    elif low == high:
        edges = low + max(abs(low), 1.0) * np.array([-0.05, 0.05])
    else:
        inner = np.subtract(*np.quantile(values, (0.75, 0.25))) or high - low
        count = np.ceil((high - low) / (2 * inner * len(values) ** (-1 / 3)))  # Freedman and Diaconis
        edges = np.linspace(low, high, int(np.clip(count, *BINS)) + 1)
    counts, _ = np.histogram(values, edges)
    return {"edges": [float(edge) for edge in edges], "counts": [int(count) for count in counts]}


def check_episodes(final: dict[str, Any], problem: Problem) -> None:
    """A ValueError if what a file says of fresh episodes is not what `of_certificate` gives."""
    check(final, FINAL, "fresh_episodes", set(FINAL) - ({"limited"} if problem.on_means else set()))
    check(final, FINAL_OF_LATE, "fresh_episodes", set())
    check_spread(final, len(problem.cost_names))


def check_spread(final: dict[str, Any], costs: int) -> None:
    """A ValueError if what a file says of it, if anything, is not what `spread` gives of so many costs."""
    check(final, SPREAD, "fresh_episodes", set())
    if "quantiles" in final:
        check(final["quantiles"], QUANTILES, "fresh_episodes.quantiles")
        found = final["quantiles"]
        rows = [found["return"], *found["costs"]]
        if len(rows) != 1 + costs or any(len(row) != len(found["shares"]) for row in rows):
            raise ValueError("fresh_episodes.quantiles are not as many as their shares")
    for each in final.get("histograms", ()):
        check(each, HISTOGRAM, "fresh_episodes.histograms")
        edges = np.asarray(each["edges"], dtype=float)
        good = len(edges) == len(each["counts"]) + 1 >= 2 and np.isfinite(edges).all() and (np.diff(edges) > 0).all()
        if not good:
            raise ValueError("fresh_episodes.histograms must have rising edges, one more than counts")
    if any(len(final[name]) != costs for name in ("over_limit", "histograms") if name in final):
        raise ValueError("fresh_episodes.histograms are not as many as the costs")
