"""Charts as a picture, for papers and slides: the same data as on the page, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pcces.report.page import Chart

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#6a3d9a", "#7f7f7f")
LIMIT, GOAL = "#c0342b", "#17794a"


def draw(charts: Sequence[Chart], path: str | Path, title: str = "", columns: int = 2) -> Path:
    """Write the charts as one picture, so many beside each other; the name's ending says which kind (png, pdf, svg).

    >>> import tempfile
    >>> from pcces.report.page import Limit, Series
    >>> chart = Chart("return", [Series("a", [0, 1], [2.0, 3.0], [1, 2], [3, 4])], [Limit(2.5, "limit 2.5")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw([chart], folder + "/curves.png").stat().st_size > 1000
    True
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    columns = min(len(charts), columns)
    rows = -(-len(charts) // columns)
    figure = Figure(figsize=({1: 6, 2: 10.4}.get(columns, 4.2 * columns), 2.8 * rows), layout="constrained")
    groups = list(dict.fromkeys(s.group or s.name for chart in charts for s in chart.series))
    lines: dict[str, Any] = {}
    for chart, ax in zip(charts, np.atleast_1d(figure.subplots(rows, columns)).flat):
        for s in reversed(chart.series):  # the first on top
            group = s.group or s.name
            colour = COLOURS[(groups.index(group) if s.colour is None else s.colour) % len(COLOURS)]
            (lines[group],) = ax.plot(s.x, s.y, color=colour, lw=1.4)
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
        if chart.log_x:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.set_title(chart.title, loc="left", fontsize=10 if columns < 3 else 8.5)
        ax.set_xlabel(chart.x_label)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, lw=0.6)
    for unused in figure.axes[len(charts) :]:
        unused.set_visible(False)
    if len(groups) > 1:
        beside = {1: 3, 2: 5}.get(columns, 6)
        figure.legend(
            [lines[group] for group in groups],
            groups,
            loc="outside upper left",
            ncols=beside,
            fontsize=9,
            frameon=False,
        )
    if title:
        figure.suptitle(title, fontsize=11)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unstamped = (
        {"Software": None} if path.suffix == ".png" else {"CreationDate" if path.suffix == ".pdf" else "Date": None}
    )
    figure.savefig(path, dpi=120, metadata=unstamped)  # the same data give the same file
    return path


def draw_both(charts: Sequence[Chart], folder: str | Path, name: str, columns: int = 2) -> list[Path]:
    """The charts as a PNG and as a PDF."""
    return [draw(charts, Path(folder) / f"{name}.{ending}", columns=columns) for ending in ("png", "pdf")]
