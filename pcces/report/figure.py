"""Charts as a picture, for papers and slides: the same data as on the page, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pcces.report.page import Chart, Dots

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
        room = {1: 66, 2: 115}.get(columns, 46 * columns)  # letters
        lengths = sum(len(group) + 8 for group in groups)
        beside = -(-len(groups) // -(-lengths // room))  # rows of a legend are equally long
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
    return _saved(figure, path)


def _saved(figure: Any, path: str | Path) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unstamped = (
        {"Software": None} if path.suffix == ".png" else {"CreationDate" if path.suffix == ".pdf" else "Date": None}
    )
    figure.savefig(path, dpi=120, metadata=unstamped)  # the same data give the same file
    return path


def draw_dots(dots: Dots, path: str | Path) -> Path:
    """Write shares with their intervals as a picture, row by row from the top.

    >>> import tempfile
    >>> from pcces.report.page import Dot
    >>> dots = Dots("", [("CartPole-v0", [Dot("OpenES", 0.7, 0.6, 0.8, 1)])], "lower", "higher")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw_dots(dots, folder + "/dots.png").stat().st_size > 1000
    True
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.9 + 0.3 * len(dots.rows)), layout="constrained")
    ax = figure.subplots()
    ax.axvline(0.5, color="#5f6b76", lw=0.8)
    for row, (_, some) in enumerate(dots.rows):
        for i, dot in enumerate(some):
            y = row + 0.5 * ((i + 0.5) / len(some) - 0.5)
            colour = COLOURS[dot.colour % len(COLOURS)]
            ax.plot([dot.low, dot.high], [y, y], color=colour, alpha=0.5, lw=2.2, solid_capstyle="butt")
            ax.plot(dot.value, y, "o", color=colour, ms=5, label=dot.name if row == 0 else "", clip_on=False)
    ax.set_yticks(range(len(dots.rows)), [name for name, _ in dots.rows], fontsize=8.5)
    ax.set_ylim(len(dots.rows) - 0.5, -0.5)
    ax.set_xlim(0, 1)
    ax.set_xlabel(f"← {dots.left}{' ' * 20}{dots.right} →", fontsize=9)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", alpha=0.25, lw=0.6)
    figure.legend(loc="outside upper right", ncols=8, fontsize=9, frameon=False)
    return _saved(figure, path)


def draw_both(charts: Sequence[Chart], folder: str | Path, name: str, columns: int = 2) -> list[Path]:
    """The charts as a PNG and as a PDF."""
    return [draw(charts, Path(folder) / f"{name}.{ending}", columns=columns) for ending in ("png", "pdf")]
