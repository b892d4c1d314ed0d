"""The course of runs, as charts: one line for a run, the mean with a band for several seeds of the same thing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from pcces.report.page import Chart, LimitLine, Series, plain
from pcces.report.protocols import ReportedRun

RECENT = 20  # iterations the acceptance rate looks back


def variants(runs: Sequence[ReportedRun]) -> dict[str, list[ReportedRun]]:
    """The runs by what was run: runs that differ in nothing but their seed share a name.

    The name says the algorithm, the preset unless it is the default, and whatever else tells it from the others.
    """
    groups: dict[str, list[ReportedRun]] = {}
    for run in runs:
        groups.setdefault(json.dumps(_what(run)), []).append(run)
    named: dict[str, list[ReportedRun]] = {}
    for same in groups.values():
        mine = _what(same[0])
        name = _name(same[0])
        rivals = [_what(other[0]) for other in groups.values() if _name(other[0]) == name]
        different = [key for key in mine if any(rival.get(key) != mine[key] for rival in rivals)]
        name += "".join(f", {key} {plain(mine[key])}" for key in different)
        named[name] = same
    return named


def _name(run: ReportedRun) -> str:
    preset = run.config["preset"]
    return run.config["algorithm"] + ("" if preset == "default" else f" ({preset})")


def _what(run: ReportedRun) -> dict[str, object]:
    """All of a run's configuration but its seed."""
    c = run.config
    what = {name: c[name] for name in ("task", "algorithm", "preset", "thresholds", "entropy_bounds")}
    what |= {"limits": c["limits"]} if c.get("limits") else {}
    return what | dict(c["settings"])


def charts(runs: Sequence[ReportedRun]) -> list[Chart]:
    """Return, each cost with its threshold, entropy with its bounds, step size and acceptance of runs on one task."""
    first = runs[0]
    problem, task = first.problem, first.task
    named = variants(runs)

    def drawn(title: str, column: str, limits: Sequence[LimitLine] = (), log: bool = False, recent: int = 1) -> Chart:
        series = [_series(name, same, column, recent) for name, same in named.items()]
        return Chart(title, [line for line in series if line is not None], limits, log=log)

    solved = task.reward_threshold
    goal = [LimitLine(solved, f"solved from {solved:g}", always=False, goal=True)] if solved is not None else []
    made = [drawn("return", "return", goal)]
    for i, name in enumerate(problem.cost_names):
        limits = sorted({(run.problem.cost_limits[i].value, run.problem.cost_limits[i].short) for run in runs})
        made.append(drawn(name, f"cost_{name}", [LimitLine(value, f"limit {words}") for value, words in limits]))
    low, high = problem.entropy_bounds
    bounds = [LimitLine(high, f"at most {high:g}", always=False), LimitLine(low, f"at least {low:g}", always=False)]
    made.append(drawn("entropy of an episode", "entropy", [bound for bound in bounds if math.isfinite(bound.value)]))
    made.append(drawn("step size sigma", "sigma", log=True))
    made.append(drawn(f"accepted, share of the last {RECENT} iterations", "success", recent=RECENT))
    return [chart for chart in made if chart.series]


def _series(name: str, runs: Sequence[ReportedRun], column: str, recent: int) -> Series | None:
    curves = [np.asarray(run.metrics[column], dtype=float) for run in runs if run.metrics.get(column)]
    if not curves:
        return None
    length = min(map(len, curves))  # runs that are not finished may have come less far
    rows = np.array([recent_mean(curve, recent)[:length] for curve in curves])
    x = [float(k) for k in runs[0].metrics["iteration"][:length]]
    if len(rows) == 1:
        return Series(f"{name}, seed {runs[0].config['seed']}", x, rows[0], group=name)
    middle, spread = rows.mean(0), rows.std(0, ddof=1)
    return Series(f"{name}, mean of {len(rows)}", x, middle, middle - spread, middle + spread, group=name)


def recent_mean(values: np.ndarray, count: int) -> np.ndarray:
    """The mean of each value and the `count` - 1 before it.

    >>> recent_mean(np.array([1.0, 0.0, 0.0, 0.0]), 2)
    array([1. , 0.5, 0. , 0. ])
    """
    total = np.cumsum(np.concatenate([[0.0], values]))
    k = np.arange(1, len(values) + 1)
    start = np.maximum(k - count, 0)
    return (total[k] - total[start]) / (k - start)
