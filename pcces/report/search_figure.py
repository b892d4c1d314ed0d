"""The picture of a search: objective, constraints, step sizes, sample sizes, and where x is between its bounds."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from pcces.report.figure import COLOURS, GOAL, LIMIT, logarithmic, plainly

SHOWN = 8  # constraints: those nearest to their limits in the end
ROWS = 100  # variables
CLOUD = 4000  # evaluations, evenly from all of them
DOUBT = "#b26a00"
LEGEND: dict[str, Any] = {"framealpha": 0.75, "edgecolor": "none", "markerscale": 1.5}


def plot_search(result: Any, path: Any = None) -> Any:
    """The figure (matplotlib) of a `pcces.blackbox.result.Result`; written to `path`, if one is given."""
    from matplotlib.figure import Figure

    n = len(result.setting.variables[: ROWS + 1])
    below = max(1.6, min(0.5 + 0.16 * n, 10))  # inches for the variables
    figure = Figure(figsize=(7.6, 6.2 + below), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=(2.8, 2.8, below))
    objective = figure.add_subplot(grid[0, 0])
    constraints = figure.add_subplot(grid[0, 1], sharex=objective)
    steps, samples = (figure.add_subplot(grid[1, j], sharex=objective) for j in (0, 1))
    variables = figure.add_subplot(grid[2, :])
    _draw_objective(objective, result)
    _draw_constraints(constraints, result)
    _draw_steps(steps, result)
    _draw_samples(samples, result)
    _draw_variables(variables, result)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    for axes in (objective, constraints, steps, samples):
        axes.grid(alpha=0.25, lw=0.6)
    for axes in (steps, samples):
        axes.set_xlabel("evaluations")
    objective.set_xlim(0, 1.02 * max(result.nfev, 1))
    said, colour = _headline(result)
    figure.suptitle(said, fontsize=11, color=colour)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _headline(result: Any) -> tuple[str, str]:
    """What came out, and its colour."""
    certificate = result.certificate
    said = "still searching: nothing is certified yet"
    if not result.running:
        said = result.message.partition(". It could")[0].partition(". The search ended")[0]
    grade = {"guaranteed": GOAL, "asymptotic": DOUBT}.get(certificate.grade, LIMIT)
    colour = "0.35" if result.running else GOAL if not certificate.upper_bounds and certificate.holds else grade
    return plainly(textwrap.fill(said, 82)), colour


def _nothing(axes: Any, said: str) -> None:
    axes.text(0.5, 0.5, said, ha="center", va="center", transform=axes.transAxes, color="0.5")
    axes.set_yticks([])


def _draw_objective(axes: Any, result: Any) -> None:
    """The objective at x_k, and all evaluations."""
    history = result.history
    axes.set_title("objective of the incumbent", loc="left", fontsize=11)
    values = result.evaluations["f"]
    made = np.arange(result.nfev - len(values), result.nfev) + 1
    every = max(1, len(values) // CLOUD)
    axes.plot(made[::every], values[::every], ".", color="0.78", ms=3, zorder=0, label="evaluations", rasterized=True)
    lines = np.zeros(0)
    if len(history):
        x, lines, feasible = history["evaluations"], history["fun"].astype(float), history["feasible"].astype(bool)
        style = {"lw": 1.5, "marker": "o" if len(history) < 3 else None, "ms": 4}
        axes.plot(x, np.where(feasible, lines, np.nan), color=COLOURS[0], label="feasible", **style)
        if not feasible.all():
            style |= {"marker": "."}  # a single infeasible point makes no line
            axes.plot(x, np.where(feasible, np.nan, lines), color=LIMIT, label="infeasible", **style)
    if np.isfinite(result.fun):
        axes.axhline(result.fun, color="0.35", lw=0.8, ls="--", label=f"answer {result.fun:.4g}")
    _frame(axes, np.concatenate([lines, [result.fun]]), values)
    if np.isfinite(values).any():
        axes.legend(fontsize=9, **LEGEND)
    else:
        _nothing(axes, "nothing was evaluated without failing" if len(values) else "nothing is evaluated yet")


def _frame(axes: Any, inside: np.ndarray, cloud: np.ndarray) -> None:
    """Show all of the lines but a steep beginning, and most of the cloud."""
    finite, near = inside[np.isfinite(inside)], cloud[np.isfinite(cloud)]
    parts = [np.percentile(values, ends) for values, ends in ((finite, (0, 97)), (near, (1, 85))) if values.size]
    if not parts:
        return
    low, high = min(part[0] for part in parts), max(part[1] for part in parts)
    pad = 0.07 * (high - low) or 0.07 * max(abs(high), 1e-12)
    axes.set_ylim(low - pad, high + pad)


def _draw_constraints(axes: Any, result: Any) -> None:
    """What is limited less its limit, at x_k."""
    from matplotlib.ticker import FuncFormatter

    labels = result.setting.labels
    if not labels:
        unknown = not len(result.history) and not np.isfinite(result.evaluations["f"]).any()
        axes.set_title("constraints", loc="left", fontsize=11)
        _nothing(axes, "not known yet" if unknown else "no constraints")
        return
    axes.set_title("constraints, minus their limits", loc="left", fontsize=11)
    axes.axhline(0, color=LIMIT, lw=1, ls="--")
    excess = result.history["excess"] if len(result.history) else np.zeros((0, len(labels)))
    if not np.isfinite(excess).any():
        _nothing(axes, "no iteration is finished yet")
        return
    last = np.nan_to_num(excess[-1], nan=np.inf)
    closest = np.sort(np.argsort(-last)[:SHOWN])
    finite = excess[np.isfinite(excess).all(1)][:, closest]
    sizes = np.median(np.abs(finite), axis=0)
    if sizes.max() > 30 * max(sizes.min(), 1e-300):  # small ones would be lines at zero
        linear = max(float(np.min(sizes[sizes > 0], initial=sizes.max())), 1e-6 * float(sizes.max()))
        linear = 10.0 ** math.floor(math.log10(linear))
        axes.set_yscale("symlog", linthresh=linear)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        low, high = float(finite.min()), float(finite.max())
        axes.set_ylim(min(1.6 * low, -0.3 * linear), max(1.6 * high, 0.3 * linear))
    else:
        low, high = np.percentile(finite, [1, 99])
        pad = 0.1 * max(high - low, abs(high), 1e-12)
        axes.set_ylim(min(low, 0) - pad, max(high, 0) + pad)
    style = {"lw": 1.2, "marker": "o" if len(excess) < 3 else None, "ms": 4}
    for j in closest:
        label = plainly(labels[j].replace("<=", "≤"))
        axes.plot(result.history["evaluations"], excess[:, j], color=COLOURS[j % len(COLOURS)], label=label, **style)
    if len(labels) > SHOWN:
        axes.plot([], [], " ", label=f"and {len(labels) - SHOWN} farther away")
    axes.legend(fontsize=9 if len(closest) < 5 else 8, **LEGEND, ncols=1 if len(closest) < 5 else 2)


def _draw_steps(axes: Any, result: Any) -> None:
    history = result.history
    axes.set_title("step sizes", loc="left", fontsize=11)
    if not len(history):
        _nothing(axes, "no iteration is finished yet")
        return
    style = {"lw": 1.2, "marker": "o" if len(history) < 3 else None, "ms": 4}
    axes.plot(history["evaluations"], history["sigma"], color=COLOURS[0], label="step size σ", **style)
    axes.plot(
        history["evaluations"],
        history["sigma_es"],
        color=COLOURS[1],
        ls="--",
        label="spread of the samples σ$^{ES}$",
        **style,
    )
    logarithmic(axes)
    axes.legend(fontsize=9, **LEGEND)


def _draw_samples(axes: Any, result: Any) -> None:
    history = result.history
    axes.set_title("evaluations spent on each trial point", loc="left", fontsize=11)
    if not len(history):
        _nothing(axes, "no iteration is finished yet")
        return
    x, spent, success = history["evaluations"], history["samples_trial"], history["success"].astype(bool)
    for mask, label, colour in ((success, "accepted", COLOURS[2]), (~success, "rejected", "0.7")):
        if mask.any():
            axes.plot(x[mask], spent[mask], ".", color=colour, ms=4, label=label)
    axes.set_ylim(0.7, 1.5 * max(float(spent.max()), 4.0))
    logarithmic(axes)
    axes.legend(fontsize=9, **LEGEND)


def _draw_variables(axes: Any, result: Any) -> None:
    """A row a variable: all points that were evaluated, where the search began, and the answer."""
    variables = result.setting.variables[:ROWS]
    n, total = len(variables), result.setting.space.size
    axes.set_title(
        "x, between its bounds" + (f" (the first {ROWS} of {total})" if total > ROWS else ""), loc="left", fontsize=11
    )
    points, x, x0 = (np.atleast_2d(part) for part in (result.evaluations.points, _numbers(result), result.setting.x0))
    points = points if points.shape[1] >= n else np.zeros((0, n))
    points = points[:: max(1, len(points) // min(CLOUD, 1 + 100_000 // n))]
    size = {"ms": 7 if n <= 25 else 4}
    for i, variable in enumerate(variables):
        everything = np.concatenate([points[:, i], x[:, i], x0[:, i]])

        def place(values: np.ndarray, v: Any = variable, among: np.ndarray = everything) -> np.ndarray:
            return v.place(values, among)

        wiggle = 0.3 * (
            ((np.arange(len(points)) * 0.618) % 1) - 0.5
        )  # so that rows of integers show how many there are
        axes.plot(place(points[:, i]), i + wiggle, ".", color="0.75", ms=2, alpha=0.5, zorder=1, rasterized=True)
        axes.plot(
            place(x0[:, i]),
            np.full(len(x0), i),
            "|",
            color="0.2",
            mew=1.5,
            zorder=2,
            label="start" if i == 0 else "",
            **size,
        )
        axes.plot(place(x[:, i]), i, "o", color=COLOURS[0], zorder=3, label="answer" if i == 0 else "", **size)
        if n <= 30:
            text = plainly(variable.text(float(x[0, i])))
            axes.annotate(text, (1.03, i), va="center", fontsize=9, color=COLOURS[0], annotation_clip=False)
    axes.set_ylim(n - 0.5, -0.5 - 0.06 * n)
    axes.set_xlim(-0.02, 1.02)
    every = 1 if n <= 50 else 5
    names = [plainly(textwrap.shorten(v.name, 18, placeholder="…")) for v in variables]
    axes.set_yticks(range(0, n, every), names[::every], fontsize=10 if n <= 30 else 6.5)
    bounded = all(math.isfinite(v.low) and math.isfinite(v.high) for v in variables)
    axes.set_xticks([0, 1], ["lower", "upper"] if bounded else ["least", "largest"], fontsize=10)
    axes.hlines(np.arange(n), 0, 1, color="0.88", lw=0.8, zorder=0)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.legend(fontsize=9, **LEGEND, ncols=2, loc="upper right")


def _numbers(result: Any) -> np.ndarray:
    return np.asarray(result.x, dtype=float)
