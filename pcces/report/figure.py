"""Charts as a picture, for papers and slides: the same data as on the page, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pcces.report.page import Chart

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#6a3d9a", "#7f7f7f")
LIMIT, GOAL = "#c0342b", "#17794a"


def draw(charts: Sequence[Chart], path: str | Path, title: str = "") -> Path:
    """Write the charts as one picture; the name's ending says which kind (png, pdf, svg).

    >>> import tempfile
    >>> from pcces.report.page import Limit, Series
    >>> chart = Chart("return", [Series("a", [0, 1], [2.0, 3.0], [1, 2], [3, 4])], [Limit(2.5, "limit 2.5")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw([chart], folder + "/curves.png").stat().st_size > 1000
    True
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    columns = min(len(charts), 2)
    rows = -(-len(charts) // columns)
    figure = Figure(figsize=(5.2 * columns, 2.9 * rows), layout="constrained")
    groups = list(dict.fromkeys(s.group or s.name for chart in charts for s in chart.series))
    for chart, ax in zip(charts, np.atleast_1d(figure.subplots(rows, columns)).flat):
        for s in chart.series:
            colour = COLOURS[groups.index(s.group or s.name) % len(COLOURS)]
            ax.plot(s.x, s.y, color=colour, lw=1.4, label=s.group or s.name)
            if s.low is not None and s.high is not None:
                ax.fill_between(s.x, s.low, s.high, color=colour, alpha=0.18, lw=0)
        low, high = ax.get_ylim()
        reach = 0.75 * (high - low)
        for limit in chart.limits:
            colour = GOAL if limit.goal else LIMIT
            if limit.always or low - reach <= limit.value <= high + reach:
                ax.axhline(limit.value, color=colour, lw=1, ls="--")
                ax.annotate(
                    limit.name,
                    (1, limit.value),
                    xytext=(-3, 3),
                    xycoords=("axes fraction", "data"),
                    textcoords="offset points",
                    ha="right",
                    color=colour,
                    fontsize=8,
                )
        if chart.log:
            ax.set_yscale("log")
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ax.yaxis.set_minor_formatter(NullFormatter())
        ax.set_title(chart.title, loc="left", fontsize=10)
        ax.set_xlabel(chart.x_label)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, lw=0.6)
    for unused in figure.axes[len(charts) :]:
        unused.set_visible(False)
    if len(groups) > 1:
        figure.axes[0].legend(fontsize=8, frameon=False)
    if title:
        figure.suptitle(title, fontsize=11)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
