"""The report of a search on a black box: certificate, answer, curves over evaluations, and the Lyapunov function."""

from __future__ import annotations

import math
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from pcces.core.theory import Constants
from pcces.report.curves import RECENT, recent_mean
from pcces.report.page import Chart, Charts, Details, LimitLine, Page, Section, Series, Table, Verdict

CONSTRAINTS = 8  # so many, those closest to their limits in the end, are drawn


def search_page(result: Any, optimum: float | None = None) -> Page:
    """The page about a `pcces.blackbox.result.Result`; with the least value f can have, also how fast the theory's Phi_k falls."""
    c = result.certificate
    if result.running:
        headline = Verdict(None, "Still searching: no certificate yet")
    else:
        sure = f" with {100 * c.confidence:g} % confidence ({c.grade})" if c.upper_bounds else ""
        note = result.message + (f". It assumes that {'; that '.join(c.assumes)}" if c.holds else "")
        headline = Verdict(c.holds, f"Feasible{sure}" if c.holds else "Not certified", _bounds(c), note)
    sections: list[Section] = [headline]
    sections.append(_answer(result, optimum))
    if len(result.history):
        note = "Estimates at the incumbent, as the search had them; points that broke their limits have no place in the objective's curve."
        sections.append(Charts("The search", charts(result, optimum), note))
    sections.append(Details("Constants and versions", _constants(result)))
    subtitle = f"{result.nit} iterations, {result.nfev:,} evaluations"
    return Page("A noisy constrained search", sections, subtitle)


def _constants(result: Any) -> dict[str, Any]:
    """Of Algorithm 1, and what it ran on."""
    versions = {"python": platform.python_version()} | {name: version(name) for name in ("pcces", "numpy", "scipy")}
    return result.rule._asdict() | {f"version of {name}": value for name, value in versions.items()}


def _bounds(certificate: Any) -> list[str]:
    kept = f"kept if at most {certificate.tolerance:g}"
    return [
        f"constraint {i} less its limit: at most {bound:.4g} ({kept})"
        for i, bound in enumerate(certificate.upper_bounds)
    ]


def _answer(result: Any, optimum: float | None) -> Table:
    rows: list[list[Any]] = [["objective", float(result.fun)]]
    if optimum is not None:
        rows.append(["objective above the optimum", float(result.fun) - optimum])
    rows += [[f"constraint {i}", float(value)] for i, value in enumerate(result.constr)]
    x = np.asarray(result.x)
    shown = ", ".join(f"{v:.6g}" for v in x[:10]) + (f", .. ({x.size} in all)" if x.size > 10 else "")
    rows += [["x", shown], ["evaluations", int(result.nfev)], ["of them failed", int(result.failures)]]
    rows += [["of them over a limit", f"{result.violations.evaluations} ({100 * result.violations.share:.2g} %)"]]
    return Table("The answer", ["", "value"], rows)


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
    c = history["constr"]
    if c.ndim == 2 and c.shape[1]:
        closest = np.argsort(-np.nan_to_num(c[-1], posinf=math.inf))[:CONSTRAINTS]
        lines = {f"constraint {i}": c[:, i] for i in sorted(closest)}
        made.append(drawn("constraints of the incumbent", lines, [LimitLine(0.0, "limit 0")]))
    sizes = {"step size sigma": history["sigma"], "spread of the samples": history["sigma_es"]}
    made.append(drawn("step sizes", sizes, log=True))
    accepted = recent_mean(history["success"].astype(float), RECENT)
    made.append(drawn(f"accepted, share of the last {RECENT} iterations", {"accepted": accepted}))
    if optimum is not None:
        constants = Constants.for_rule(result.rule.kappa, result.rule.gamma)
        phi = constants.lyapunov(fun - optimum, history["sigma"].astype(float))
        made.append(drawn("Lyapunov function Phi, less its least value", {"Phi": phi}, log=True))
    return made
