"""Slices of the model around the answer of a search: one variable at a time, the others as they are in the answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from pcces.report.chart import Chart, LimitLine, Series
from pcces.report.page import Chapter, Charts, Folded, Section, Table

OPEN = 4  # variables that are not folded away
MOST = 20
CONSTRAINTS = 3  # beside f: those nearest to their limits
LEAST = 0.02  # of what a constraint changes along another variable: less is not drawn
BAND = 2.0  # standard errors
GREY = 7


def surroundings(result: Any) -> list[Section]:
    """Sections for the variables along which most changes; the others are folded away."""
    slices = result.around.slices()[:MOST]
    if not slices:
        return []
    close = _close(result)
    changes = np.array([np.ptp(each.values, axis=0) for each in slices])
    changing = changes > LEAST * changes.max(0)
    made = [_section(result, each, [j for j in close if row[1 + j]]) for each, row in zip(slices, changing)]
    note = (
        "The model along each variable, through the answer: lines with bands of two standard errors. Dots are evaluations near the "
        "slice, moved into it by the model; the dotted line marks the answer. Constraints are drawn minus their limits: at most 0 is feasible."
    )
    head = Chapter("Around the answer", "around", note)
    rest = [Folded(f"{len(made) - OPEN} more variables", made[OPEN:])] if len(made) > OPEN else []
    return [head, *made[:OPEN], *rest]


def _close(result: Any) -> list[int]:
    """The constraints that bind, and those nearest to their limits in units of how they change nearby."""
    around, m = result.around, len(result.setting.constraints)
    binding = [j for j, each in enumerate(around.multipliers[:m]) if each.binds]
    spread = np.max([np.ptp(each.values, axis=0) for each in around.slices()], axis=0)[1:]
    nearest = np.argsort(-around.values[0][1:] / np.maximum(spread, 1e-300)).tolist()
    return sorted(list(dict.fromkeys([*binding, *nearest]))[:CONSTRAINTS])


def _section(result: Any, cut: Any, close: list[int]) -> Section:
    """The charts of one variable, or the table of its options."""
    variable = result.setting.variables[cut.variable]
    x = float(np.asarray(result.x, dtype=float)[cut.variable])
    outputs = [("f", 0), *((result.setting.labels[j], 1 + j) for j in close)]
    if variable.options:
        rows = [
            [
                variable.text(place),
                *(f"{values[k]:.4g} ± {errors[k]:.2g}" for _, k in outputs),
                "the answer" if place == x else "",
            ]
            for place, values, errors in zip(cut.places, cut.values, cut.errors)
        ]
        return Table(variable.name, ["", *(name for name, _ in outputs), ""], rows)
    charts = []
    for name, k in outputs:
        y, e = cut.values[:, k], BAND * cut.errors[:, k]
        model = Series("model", cut.places, y, y - e, y + e, colour=0)
        dots = Series("evaluations", cut.near, cut.near_values[:, k], colour=GREY, dots=True)
        lines = [LimitLine(0.0, "limit", always=False)] if k else []
        charts.append(Chart(name, [model, dots], lines, variable.name, log_x=variable.log, at=x))
    return Charts(variable.name, charts)
