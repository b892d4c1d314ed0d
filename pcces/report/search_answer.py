"""What came out of a search: the verdict, the answer, its certificate, which limits bind, the best points, what went wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pcces.report.page import Cell, Details, Marked, Section, Table, Verdict

SHOWN = 12  # variables of the answer that are not folded away
MOST = 2000  # variables that are listed at all
BEST = 10  # points
COLUMNS = 6  # variables of a point that have a column of their own
WIDEST = 1000  # variables of points that are compared
FAILED = 5  # of the latest failures


def verdict(result: Any) -> Section:
    """The headline, with the certificate's grade."""
    c = result.certificate
    if result.running:
        return Verdict(None, "Still searching: no certificate yet")
    if not c.upper_bounds:
        return Verdict(
            c.holds,
            "Feasible: there are no constraints but the bounds" if c.holds else "Not certified",
            (),
            result.message,
        )
    if not c.holds:
        return Verdict(False, "Not certified", _bounds(result), result.message)
    doubtful = not c.guaranteed
    note = result.message if result.status else ""
    note += " It depends on the assumptions below." * doubtful
    title = f"Certified with {100 * c.confidence:g} % confidence ({c.grade})"
    if not result.success:
        title, doubtful = f"{title}, but no better than x0", True
    return Verdict(True, title, _bounds(result), note.strip(), doubtful)


def _bounds(result: Any) -> list[str]:
    c = result.certificate
    labels = result.setting.labels
    return [
        f"{label}: {f'kept with a margin of at least {-bound:.4g}' if bound <= c.tolerance else f'may be exceeded by up to {bound:.4g}'}"
        for label, bound in zip(labels, c.upper_bounds)
    ]


def certified(result: Any) -> Section:
    """The certificate, in rows."""
    c = result.certificate
    if result.running:
        return Table("The certificate", ["", ""], [["grade", "none yet: the search goes on"]])
    grade = Marked(c.grade, c.guaranteed) if c.guaranteed or not c.holds else c.grade
    rows: list[list[Cell]] = [["grade", grade], ["confidence that all limits hold", f"{100 * c.confidence:g} %"]]
    rows += [["fresh samples of the answer", c.samples], ["bound", c.method], ["points tested", c.tested]]
    if c.failure_rate is not None:
        failed = f"{c.failed} of {c.samples + c.failed} fresh ones; at most {100 * c.failure_rate:.2g} %"
        allowed = "" if c.failure_limit is None else f" ({100 * c.failure_limit:g} % allowed)"
        rows += [["failed evaluations (missing values)", failed + allowed]]
    rows += [["it assumes", "; ".join(c.assumes)]] if c.holds else []
    rows += [["what could make it wrong", said] for said in c.could_be_fooled_by] if c.holds else []
    rows += [["for a guarantee", c.for_a_guarantee]] if c.for_a_guarantee else []
    return Table("The certificate", ["", ""], rows)


def answer(result: Any, optimum: float | None) -> Section:
    """The answer: f, what was gained, and x."""
    asked = str(result.setting.objective).partition(" <=")[0]
    fun = float(result.fun) if math.isfinite(result.fun) else "not known"
    rows: list[list[Cell]] = [["objective" if asked == "mean" else f"objective ({asked})", fun]]
    if optimum is not None:
        rows.append(["objective above the optimum", float(result.fun) - optimum])
    if math.isfinite(result.improvement.value):
        gain = result.improvement
        lower = gain.value >= 0  # if not, x0 broke a limit
        rows.append(
            ["decrease of f from x0" if lower else "increase of f from x0", f"{abs(gain.value):.4g} ± {gain.error:.2g}"]
        )
    x, variables = np.asarray(result.x, dtype=float), result.setting.variables
    rows += [[v.name, f"{v.text(x[i])}{_place(v, x[i])}"] for i, v in enumerate(variables[:SHOWN])]
    if len(variables) > SHOWN:
        rows.append([f"and {len(variables) - SHOWN} more variables", "below, under All variables"])
    rows += [["evaluations", int(result.nfev)], ["failed evaluations", int(result.failures)]]
    rows += [["evaluations above a limit", f"{result.violations.evaluations} ({100 * result.violations.share:.2g} %)"]]
    return Table("The answer", ["", "value"], rows)


def all_variables(result: Any) -> list[Section]:
    """All of x, where it has too many parts for the answer's table."""
    variables = result.setting.variables
    if not SHOWN < len(variables) <= MOST:
        return []
    x = np.asarray(result.x, dtype=float)
    return [Details("All variables", {v.name: f"{v.text(x[i])}{_place(v, x[i])}" for i, v in enumerate(variables)})]


def _place(variable: Any, value: float) -> str:
    """Where a variable may be."""
    if variable.options:
        return f" (of {', '.join(variable.options)})" if len(variable.options) <= 6 else ""
    if math.isfinite(variable.low) and math.isfinite(variable.high):
        at = " at its bound" if value in (variable.low, variable.high) else ""
        return f" ({variable.low:.5g} to {variable.high:.5g}{',' + at if at else ''})"
    return ""


def limits(result: Any) -> list[Section]:
    """Which limits bind, and what looser limits would gain."""
    setting, c, around = result.setting, result.certificate, result.around
    if not setting.constraints and not around.multipliers:
        return []
    multipliers = around.multipliers
    rows: list[list[Cell]] = []
    for j, label in enumerate(setting.labels):
        excess = float(result.constr[j]) - setting.limits[j].at_most if len(result.constr) else math.nan
        bound = c.upper_bounds[j] if len(c.upper_bounds) and c.samples else None
        m = multipliers[j] if multipliers else None
        rows.append([label, excess, bound, *_of_multiplier(m)])
    rows += [[m.name, None, None, *_of_multiplier(m)] for m in multipliers[len(setting.constraints) :]]
    columns = [
        "limit",
        "at the answer, minus the limit",
        "upper bound",
        "",
        "decrease of f per unit of a looser limit",
    ]
    return [Table("Which limits bind, and what looser limits would gain", columns, rows, _about(result))]


def _of_multiplier(m: Any) -> list[Cell]:
    if m is None:
        return [None, None]
    state = "binds" if m.binds else "near" if m.near else "far"
    return [state, f"{m.value:.3g} ± {m.error:.2g}" if m.near else "0"]


def _about(result: Any) -> str:
    """The multipliers in words."""
    around = result.around
    if not around.known:
        return "There is no model near the answer, so the gain of looser limits is not known."
    if not around.multipliers:
        return "All variables are discrete, so there are no slopes that show the gain of looser limits." * bool(
            result.setting.constraints
        )
    constraints = around.multipliers[: len(result.setting.constraints)]
    said = [_in_words(m, j in result.setting.equal) for j, m in enumerate(constraints) if m.binds][:2]
    said.append(
        "The multipliers of the model's Lagrangian at the answer: units of f per unit of c (or of a variable, for its bounds), ± standard "
        "error. They are valid for small changes."
    )
    values, errors = around.values
    broken = values[1:] > 2 * errors[1:]
    if np.any(np.delete(broken, list(result.setting.equal))):
        said.append("The answer is above a limit, so they are rough.")
    if around.unexplained > 0.2:
        said.append(
            f"{100 * around.unexplained:.0f} % of the slope of f at the answer is not explained by limits: a longer search may find "
            "a better point."
        )
    return " ".join(said)


def _in_words(m: Any, equality: bool) -> str:
    """One multiplier, for a change that lowers f by a round part."""
    if not m.value:
        return ""
    step = 0.1 * 10.0 ** math.floor(math.log10(max(abs(m.error), 0.1 * abs(m.value)) / abs(m.value)))
    larger = f"had to be {step:g} instead of 0" if equality else f"might be {step:g} larger"
    lower = "lower" if m.value > 0 else "higher"
    return f"If {m.name} {larger}, the smallest f would be {abs(m.value) * step:.2g} {lower} (± {m.error * step:.1g})."


def best_points(result: Any) -> list[Section]:
    """The best points that were evaluated, by what they are worth at least."""
    setting, table = result.setting, result.evaluations
    if not len(table) or table.points.shape[1] != len(setting.variables) or len(setting.variables) > WIDEST:
        return []
    x, means, counts = result.around.points[:3]
    if not len(x):
        return []
    errors = result.around.points.noise / np.sqrt(counts)[:, None]
    means, equal = means + result.around.shift, list(setting.equal)
    excess = means[:, 1:] + errors[:, 1:]
    excess[:, equal] = np.abs(means[:, 1:][:, equal]) - setting.tolerance
    order = np.lexsort((means[:, 0] + errors[:, 0], np.maximum(excess, 0.0).max(1, initial=0.0)))[:BEST]
    closest = np.argsort(-means[order[0], 1:])[:4]
    closest.sort()
    shown = setting.variables[:COLUMNS]
    columns = [
        "f",
        "evaluations",
        *(f"{setting.constraints[j]}, minus its limit" for j in closest),
        *(v.name for v in shown),
    ]
    given = np.asarray(result.x, dtype=float)
    rows: list[list[Cell]] = []
    answered = np.flatnonzero((x == given).all(1))
    for i in [*order, *(i for i in answered if i not in order)]:
        f = f"{means[i, 0]:.5g}" + (f" ± {errors[i, 0]:.2g}" if errors[i, 0] > 1e-9 * abs(means[i, 0]) else "")
        constraints = [f"{means[i, 1 + j]:.4g}" for j in closest]
        mark = "the answer" if i in answered else ""
        rows.append([f, int(counts[i]), *constraints, *(v.text(x[i, k]) for k, v in enumerate(shown)), mark])
    note = (
        "Means of all evaluations of a point, ± standard error. Points that keep their limits come first, ordered by f; a standard error "
        "counts against all. Points with few evaluations may be here by luck."
    )
    return [Table("The best points evaluated", [*columns, ""], rows, note)]


def troubles(result: Any) -> list[Section]:
    """Evaluations over limits, by constraint, and those that failed."""
    table, setting = result.evaluations, result.setting
    rows: list[list[Cell]] = []
    good = np.isfinite(table["f"])
    for j, label in enumerate(setting.labels):
        if j not in setting.equal and good.any():
            over = table[f"c{j}"][good] - setting.limits[j].origin
            worst = float(over.max())
            rows.append(
                [label, int((over > 0).sum()), f"{100 * (over > 0).mean():.2g} %", worst if worst > 0 else None]
            )
    sections: list[Section] = []
    if rows:
        columns = ["limit", "evaluations over it", "share of the evaluations that did not fail", "by at most"]
        note = "All single evaluations of the search. Noise puts some above a limit that their point keeps."
        sections.append(Table("Evaluations above the limits during the search", columns, rows, note))
    if result.failures:
        where = {}
        points = table.points[~good][-FAILED:]
        for k, x in enumerate(points, 1):
            where[f"{k}"] = ", ".join(f"{v.name} = {v.text(x[i])}" for i, v in enumerate(setting.variables[:COLUMNS]))
        share = 100 * result.failures / max(result.nfev, 1)
        said = {"evaluations that failed": f"{result.failures} of {result.nfev} ({share:.2g} %)"}
        sections.append(Details("Failed evaluations", said | {f"the latest {k}": text for k, text in where.items()}))
    return sections
