"""The course of runs, as charts: one line for a run, the mean with a band for several seeds of the same thing."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pcces.report.chart import Chart, LimitLine, Series
from pcces.report.page import plain
from pcces.report.protocols import ReportedRun

RECENT = 20  # iterations the acceptance rate looks back
AXES = ("iteration", "steps", "time")  # what curves can be drawn over
UNITS = (("seconds", 1.0), ("minutes", 60.0), ("hours", 3600.0))
MOST_SECONDS = 300.0  # of which one speaks as such, and so for minutes


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


def charts(runs: Sequence[ReportedRun], over: str = "iteration") -> list[Chart]:
    """Return, each cost with its threshold and its price, entropy with its bounds, step size and acceptance of runs on one task,
    over iterations, environment `steps` or `time`; a page can change from one to another."""
    if over not in AXES:
        raise ValueError(f"curves are drawn over {', '.join(AXES[:-1])} or {AXES[-1]}, not over {over!r}")
    first = runs[0]
    problem, task = first.problem, first.task
    named, unit = variants(runs), time_unit(runs)

    def drawn(title: str, column: str, limits: Sequence[LimitLine] = (), log: bool = False, recent: int = 1) -> Chart:
        made = [_series(name, same, column, recent, over, unit) for name, same in named.items()]
        return Chart(title, [line for line in made if line is not None], limits, axis_name(over, unit), log=log)

    solved = task.reward_threshold
    goal = [LimitLine(solved, f"mark of the task {solved:g}", always=False, goal=True)] if solved is not None else []
    made = [drawn("return", "return", goal)]
    for i, name in enumerate(problem.cost_names):
        limits = sorted({(run.problem.cost_limits[i].value, run.problem.cost_limits[i].short) for run in runs})
        made.append(drawn(name, f"cost_{name}", [LimitLine(value, f"limit {words}") for value, words in limits]))
    for name in problem.cost_names:
        made.append(replace(drawn(f"price of {name}", f"price_{name}"), note="its weight against the return"))
    low, high = problem.entropy_bounds
    bounds = [LimitLine(high, f"at most {high:g}", always=False), LimitLine(low, f"at least {low:g}", always=False)]
    made.append(drawn("entropy of an episode", "entropy", [bound for bound in bounds if math.isfinite(bound.value)]))
    made.append(drawn("step size sigma", "sigma", log=True))
    made.append(drawn(f"accepted, share of the last {RECENT} iterations", "success", recent=RECENT))
    return [chart for chart in made if chart.series]


def axis_name(over: str, unit: tuple[str, float]) -> str:
    """What an axis is called."""
    return {"iteration": "iteration", "steps": "environment steps", "time": unit[0]}[over]


def time_unit(runs: Sequence[ReportedRun]) -> tuple[str, float]:
    """What the time of these runs is best told in, and how many seconds that has."""
    longest = max((max(run.metrics.get("seconds") or [0.0]) for run in runs), default=0.0)
    if longest <= MOST_SECONDS:
        return UNITS[0]
    return UNITS[1] if longest / UNITS[1][1] <= MOST_SECONDS else UNITS[2]


def _places(run: ReportedRun, over: str, unit: tuple[str, float]) -> np.ndarray:
    column = {"iteration": "iteration", "steps": "steps", "time": "seconds"}[over]
    return np.asarray(run.metrics[column], dtype=float) / (unit[1] if over == "time" else 1.0)


def _column(run: ReportedRun, column: str) -> list[float] | None:
    """A column of a run's metrics, if it exists. If there is a single cost, the price of all limits serves as its price."""
    values = run.metrics.get(column)
    if not values and column.startswith("price_") and len(run.problem.cost_names) == 1:
        values = run.metrics.get("price") or run.metrics.get("multiplier")
    return values


def _series(
    name: str, runs: Sequence[ReportedRun], column: str, recent: int, over: str, unit: tuple[str, float]
) -> Series | None:
    """A line: a run's own, or the mean of several, each point at the mean of their steps, or of their time."""
    there = [run for run in runs if _column(run, column)]
    if not there:
        return None
    curves = [np.asarray(_column(run, column), dtype=float) for run in there]
    length = min(map(len, curves))  # runs that are not finished may have come less far
    rows = np.array([recent_mean(curve, recent)[:length] for curve in curves])
    places = {axis: np.mean([_places(run, axis, unit)[:length] for run in there], axis=0) for axis in AXES}
    x = places.pop(over)
    others = {axis_name(axis, unit): each for axis, each in places.items() if np.isfinite(each).all()}
    if len(rows) == 1:
        label = f"{name}, seed {there[0].config['seed']}"
        return Series(label, x, rows[0], group=name, ring=_returned(there[0], length), others=others)
    middle, spread = rows.mean(0), rows.std(0, ddof=1)
    return Series(
        f"{name}, mean of {len(rows)}", x, middle, middle - spread, middle + spread, group=name, others=others
    )


def _returned(run: ReportedRun, length: int) -> int | None:
    """The iteration whose policy the run returned, if that is known."""
    k = run.final.get("iteration")
    return k if k is not None and 0 <= k < length else None


def recent_mean(values: np.ndarray, count: int) -> np.ndarray:
    """The mean of each value and the `count` - 1 before it.

    >>> recent_mean(np.array([1.0, 0.0, 0.0, 0.0]), 2)
    array([1. , 0.5, 0. , 0. ])
    """
    total = np.cumsum(np.concatenate([[0.0], values]))
    k = np.arange(1, len(values) + 1)
    start = np.maximum(k - count, 0)
    return (total[k] - total[start]) / (k - start)
