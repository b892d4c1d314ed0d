"""The report of a search on a black box: the certificate, the answer and what limits it, the course, and the surroundings."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from pcces.core.theory import Constants
from pcces.report.chart import Chart, LimitLine, Series
from pcces.report.curves import RECENT, recent_mean
from pcces.report.page import Charts, Columns, Details, Page, Section
from pcces.report.search_answer import all_variables, answer, best_points, certified, limits, troubles, verdict
from pcces.report.search_slices import surroundings

CONSTRAINTS = 8  # so many, those closest to their limits in the end, are drawn
APART = 30.0  # times as large: constraints that get a chart of their own
PLACES = 400  # along a curve of single evaluations


def search_page(result: Any, optimum: float | None = None) -> Page:
    """The page about a `pcces.blackbox.result.Result`; with the least value f can have, also how fast the theory's Phi_k falls."""
    sections: list[Section] = [verdict(result), Columns([answer(result, optimum), certified(result)])]
    sections += limits(result)
    drawn = [*(charts(result, optimum) if len(result.history) else []), *over_limits(result)]
    if drawn:
        note = "Estimates at the incumbent during the search. The curve of the objective leaves out points that broke their limits."
        sections.append(Charts("The search", drawn, note * bool(len(result.history))))
    sections += surroundings(result)
    sections += best_points(result)
    sections += troubles(result)
    sections += all_variables(result)
    sections.append(Details("Constants and versions", _constants(result)))
    subtitle = f"{_words(result.setting)}; {result.nit} iterations, {result.nfev:,} evaluations"
    return Page("A search under noise", sections, subtitle)


def _words(setting: Any) -> str:
    n, m = len(setting.variables), len(setting.constraints)
    return f"{n} variable{'s' * (n != 1)}, {m} constraint{'s' * (m != 1)}"


def _constants(result: Any) -> dict[str, Any]:
    """The settings of Algorithm 1, and the machine."""
    versions = {"python": platform.python_version()} | {name: version(name) for name in ("pcces", "numpy", "scipy")}
    return result.rule._asdict() | {f"version of {name}": value for name, value in versions.items()}


def charts(result: Any, optimum: float | None = None) -> list[Chart]:
    """Objective, constraints, step size, acceptance and, where the optimum is known, Phi_k over evaluations.

    >>> import pcces
    >>> res = pcces.minimize(lambda x: (x**2).sum(), [1.0, 1.0], max_evaluations=300, rng=0)
    >>> [chart.title.split()[0] for chart in charts(res, optimum=0.0)]
    ['objective', 'step', 'accepted,', 'Lyapunov']
    """
    history = result.history
    x = history["evaluations"].astype(float)
    feasible = history["feasible"].astype(bool)

    def drawn(title: str, lines: dict[str, Any], limits: Sequence[LimitLine] = (), log: bool = False) -> Chart:
        return Chart(title, [Series(name, x, y) for name, y in lines.items()], limits, "evaluations", log)

    fun = np.where(feasible, history["fun"].astype(float), np.nan)
    goal = [LimitLine(optimum, f"optimum {optimum:g}", goal=True)] if optimum is not None else []
    made = [drawn("objective of the incumbent", {"objective": fun}, goal)]
    for lines in _by_size(result):
        made.append(drawn("constraints of the incumbent, minus their limits", lines, [LimitLine(0.0, "limit 0")]))
    sizes = {"step size sigma": history["sigma"], "spread of the samples": history["sigma_es"]}
    made.append(drawn("step sizes", sizes, log=True))
    accepted = recent_mean(history["success"].astype(float), RECENT)
    made.append(drawn(f"accepted, share of the last {RECENT} iterations", {"accepted": accepted}))
    if optimum is not None:
        constants = Constants.for_rule(result.rule.kappa, result.rule.gamma)
        phi = constants.lyapunov(fun - optimum, history["sigma"].astype(float))
        made.append(drawn("Lyapunov function Phi, minus its smallest value", {"Phi": phi}, log=True))
    return made


def _by_size(result: Any) -> list[dict[str, np.ndarray]]:
    """Limited quantities minus their limits, by label. Those that would look like lines at zero go into a group of their own."""
    excess, labels = result.history["excess"], result.setting.labels
    if excess.ndim < 2 or excess.shape[1] != len(labels) or not labels:
        return []
    closest = np.argsort(-np.nan_to_num(excess[-1], posinf=math.inf))[:CONSTRAINTS]
    finite = np.where(np.isfinite(excess), np.abs(excess), np.nan)
    size = {j: float(np.nanmedian(finite[:, j])) if np.isfinite(excess[:, j]).any() else 0.0 for j in closest.tolist()}
    groups: list[list[int]] = []
    for j in sorted(size, key=lambda j: size[j]):
        if not groups or size[j] > APART * max(size[groups[-1][0]], 1e-300):
            groups.append([])
        groups[-1].append(j)
    return [{labels[j]: excess[:, j] for j in sorted(group)} for group in groups]


def over_limits(result: Any) -> list[Chart]:
    """How many evaluations were over a limit, and how many failed, up to each."""
    table, setting = result.evaluations, result.setting
    failed = ~np.isfinite(table["f"])
    inequalities = [(j, limit.origin) for j, limit in enumerate(setting.limits) if j not in setting.equal]
    over = np.zeros(len(failed), dtype=bool)
    for j, origin in inequalities:
        over |= table[f"c{j}"] > origin  # nan is not
    if not len(failed) or not (inequalities or failed.any()):
        return []
    places = np.unique(np.linspace(0, len(failed) - 1, min(PLACES, len(failed))).astype(int))
    x = [float(i + 1 + result.nfev - len(failed)) for i in places]
    counts = {"over a limit": over.cumsum()[places]} if inequalities else {}
    if failed.any():
        counts["failed"] = failed.cumsum()[places]
    return [Chart("evaluations above a limit or failed, so far", [Series(*each) for each in ((k, x, v) for k, v in counts.items())],
                  x_label="evaluations")]  # fmt: skip
