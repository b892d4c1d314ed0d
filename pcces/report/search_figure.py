"""The picture of a search."""

from __future__ import annotations

from typing import Any

import numpy as np


def plot_search(result: Any, path: Any = None) -> Any:
    """Objective, worst constraint, step size and sample sizes over evaluations. Returns the matplotlib figure."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    history = result.history
    if len(history) == 0:
        raise ValueError("there is no history to draw: no iteration was finished")
    x, fun, constr, trial = (history[name] for name in ("evaluations", "fun", "constr", "samples_trial"))
    feasible, success = history["feasible"].astype(bool), history["success"].astype(bool)
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    (objective, constraints), (steps, samples) = figure.subplots(2, 2, sharex=True)

    objective.set_title("objective of the incumbent", loc="left", fontsize=10)
    objective.plot(x, np.where(feasible, fun, np.nan), color="C0", lw=1.5, label="feasible")
    objective.plot(x, np.where(feasible, np.nan, fun), color="C3", lw=1.5, label="infeasible")
    objective.axhline(result.fun, color="0.5", lw=0.8, ls="--", label="answer")

    if constr.shape[1]:
        shown = constr[:, :12]
        constraints.set_title("constraints of the incumbent (≤ 0 is feasible)", loc="left", fontsize=10)
        constraints.plot(x, shown, lw=1.2)
        constraints.axhline(0, color="C3", lw=1, ls="--")
        finite = shown[np.isfinite(shown)]
        if finite.size:
            low, high = np.percentile(finite, [2, 98])
            pad = 0.1 * max(high - low, 1e-12)
            constraints.set_ylim(min(low, 0) - pad, max(high, 0) + pad)
    else:
        constraints.text(
            0.5, 0.5, "no constraints", ha="center", va="center", transform=constraints.transAxes, color="0.5"
        )

    steps.set_title("step sizes", loc="left", fontsize=10)
    steps.semilogy(x, history["sigma"], color="C0", lw=1.2, label="step size σ")
    steps.semilogy(x, history["sigma_es"], color="C1", lw=1.2, label="spread of the samples σ$^{ES}$")

    samples.set_title("evaluations spent on each trial point", loc="left", fontsize=10)
    samples.semilogy(x[success], trial[success], ".", color="C2", ms=4, label="accepted")
    samples.semilogy(x[~success], trial[~success], ".", color="0.7", ms=3, label="rejected")
    samples.yaxis.set_major_formatter(ScalarFormatter())
    samples.yaxis.set_minor_formatter(NullFormatter())

    for ax in (objective, steps, samples):
        ax.legend(fontsize=8, frameon=False)
    for ax in (steps, samples):
        ax.set_xlabel("evaluations")
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, lw=0.6)
    figure.suptitle(str(result.certificate), fontsize=10)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
