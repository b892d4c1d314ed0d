"""Charts as a picture, for papers and slides: the same data as on the page, drawn by matplotlib."""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pcces.report.chart import Chart
from pcces.report.page import Dots
from pcces.support.files import write_atomically

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#6b3e00", "#e6a700", "#6a3d9a", "#7f7f7f")
BAND_BEYOND = 0.4  # of the range of the lines: bands may extend the axis by so much on each side
LIMIT, GOAL = "#c0342b", "#17794a"
WIDTHS = {1: 5.2, 2: 7.6}  # inches of a picture by its columns: small ones, so that letters are large on a phone


@contextmanager
def _by_default() -> Iterator[None]:
    """matplotlib as it comes, whatever a matplotlibrc says: the one in the current folder may be a stranger's, and could have
    LaTeX run on the names in that folder."""
    log = logging.getLogger("matplotlib")
    level = log.level
    log.setLevel(logging.ERROR)  # it says what is wrong in such a file
    try:
        import matplotlib
    finally:
        log.setLevel(level)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


@_by_default()
def draw(charts: Sequence[Chart], path: str | Path, title: str = "", columns: int = 2) -> Path:
    """Write the charts as one picture, so many beside each other; the name's ending says which kind (png, pdf, svg).

    >>> import tempfile
    >>> from pcces.report.chart import LimitLine, Series
    >>> chart = Chart("return", [Series("a", [0, 1], [2.0, 3.0], [1, 2], [3, 4])], [LimitLine(2.5, "limit 2.5")])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw([chart], folder + "/curves.png").stat().st_size > 1000
    True
    """
    from matplotlib.figure import Figure

    columns = min(len(charts), columns)
    rows = -(-len(charts) // columns)
    figure = Figure(figsize=(WIDTHS.get(columns, 3.2 * columns), 2.7 * rows), layout="constrained")
    groups = list(dict.fromkeys(s.group or s.name for chart in charts for s in chart.series))
    lines: dict[str, Any] = {}  # one of each group, for the legend
    for chart, axes in zip(charts, np.atleast_1d(figure.subplots(rows, columns)).flat):
        lines |= _draw_lines(axes, chart, groups)
        _frame(axes, chart)
        _draw_limits(axes, chart)
        _draw_limits_x(axes, chart)
        _scale(axes, chart)
        axes.set_title(plainly(chart.title), loc="left", fontsize=11 if columns < 3 else 10)
        axes.set_xlabel(plainly(chart.x_label))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25, lw=0.6)
    for unused in figure.axes[len(charts) :]:
        unused.set_visible(False)
    if len(groups) > 1:
        room = int(10 * WIDTHS.get(columns, 3.2 * columns))  # letters
        lengths = sum(len(group) + 8 for group in groups)
        beside = -(-len(groups) // -(-lengths // room))  # rows of a legend are equally long
        handles = [lines[group] for group in groups]
        figure.legend(
            handles, [*map(plainly, groups)], loc="outside upper left", ncols=beside, fontsize=11, frameon=False
        )
    if title:
        figure.suptitle(plainly(title), fontsize=11)
    return _saved(figure, path)


def _draw_lines(axes: Any, chart: Chart, groups: Sequence[str]) -> dict[str, Any]:
    """The series of a chart with their bands, and what is marked; a line of each group."""
    lines = {}
    if chart.at is not None:
        axes.axvline(chart.at, color="0.5", lw=0.8, ls=":")
    for s in reversed(chart.series):  # the first on top
        group = s.group or s.name
        colour = COLOURS[(groups.index(group) if s.colour is None else s.colour) % len(COLOURS)]
        if s.bars:
            lines[group] = axes.bar(s.x, s.y, s.bars, color=colour, alpha=0.6)
            continue
        style = {"ls": "", "marker": ".", "alpha": 0.5} if s.dots else {"lw": 1.4}
        (lines[group],) = axes.plot(s.x, s.y, color=colour, **style)
        if s.low is not None and s.high is not None:
            axes.fill_between(s.x, s.low, s.high, color=colour, alpha=0.18, lw=0)
        if s.ring is not None:
            axes.plot(s.x[s.ring], s.y[s.ring], "o", ms=7, mfc="none", mec="0.15", mew=1.3)
    return lines


def _frame(axes: Any, chart: Chart) -> None:
    """The range of the lines decides about the axis. A band that goes far beyond them is cut off."""
    lines = [s for s in chart.series if not s.bars and not s.dots]
    deciding = [s for s in lines if not s.aside] or lines
    values = np.concatenate([np.asarray(s.y, dtype=float) for s in deciding] or [np.zeros(0)])
    values = values[np.isfinite(values)]
    if chart.log or len(values) == 0 or len(lines) < len(chart.series):
        return
    low, high = axes.get_ylim()
    room = BAND_BEYOND * (np.ptp(values) or high - low)
    axes.set_ylim(max(low, values.min() - room), min(high, values.max() + room))


def _draw_limits(axes: Any, chart: Chart) -> None:
    """The limits that belong on the chart: all that are to be there always, and others near the data."""
    low, high = axes.get_ylim()
    reach = 0.75 * (high - low)
    near = [limit for limit in chart.limits if limit.always or low - reach <= limit.value <= high + reach]
    values = [limit.value for limit in near if math.isfinite(limit.value)]
    if values and not axes.get_autoscaley_on():
        room = 0.05 * (max(high, *values) - min(low, *values))
        axes.set_ylim(min(low, min(values) - room), max(high, max(values) + room))
    for limit in near:
        colour = GOAL if limit.goal else LIMIT
        axes.axhline(limit.value, color=colour, lw=1, ls="--")
        axes.annotate(
            plainly(limit.name), (1, limit.value), xytext=(-3, 3), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", color=colour, fontsize=8,
        )  # fmt: skip


def _draw_limits_x(axes: Any, chart: Chart) -> None:
    """The limits on the axis itself."""
    low, high = axes.get_xlim()
    reach = 0.75 * (high - low)
    for limit in chart.limits_x:
        if limit.always or low - reach <= limit.value <= high + reach:
            colour = GOAL if limit.goal else LIMIT
            axes.axvline(limit.value, color=colour, lw=1, ls="--")
            axes.annotate(
                plainly(limit.name), (limit.value, 1), xytext=(3, -9), xycoords=("data", "axes fraction"),
                textcoords="offset points", color=colour, fontsize=8,
            )  # fmt: skip


def _scale(axes: Any, chart: Chart) -> None:
    """Logarithmic axes, with numbers written out."""
    from matplotlib.ticker import FuncFormatter

    if chart.log:
        logarithmic(axes)
    if chart.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def logarithmic(axes: Any) -> None:
    """A logarithmic axis upwards, with numbers written out."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 1e3 else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _saved(figure: Any, path: str | Path) -> Path:
    path, drawn = Path(path), io.BytesIO()
    unstamped = (
        {"Software": None} if path.suffix == ".png" else {"CreationDate" if path.suffix == ".pdf" else "Date": None}
    )
    figure.savefig(drawn, format=path.suffix[1:], dpi=140, metadata=unstamped)  # the same data give the same file
    write_atomically(path, drawn.getvalue())
    return path


def plainly(text: str) -> str:
    """The text as matplotlib takes it, whose formulas stand between dollars: a name is none.

    >>> print(plainly("a $cost$"))
    a \\$cost\\$
    """
    return text.replace("$", r"\$")


@_by_default()
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

    figure = Figure(figsize=(7.2, 1.0 + 0.34 * len(dots.rows)), layout="constrained")
    axes = figure.subplots()
    axes.axvline(0.5, color="#5f6b76", lw=0.8)
    named: set[str] = set()  # what the legend has
    for row, (_, in_row) in enumerate(dots.rows):
        for i, dot in enumerate(in_row):
            y = row + 0.5 * ((i + 0.5) / len(in_row) - 0.5)
            colour = COLOURS[dot.colour % len(COLOURS)]
            axes.plot([dot.low, dot.high], [y, y], color=colour, alpha=0.5, lw=2.2, solid_capstyle="butt")
            label = "" if dot.name in named else plainly(dot.name)
            named.add(dot.name)
            axes.plot(dot.value, y, "o", color=colour, ms=5, label=label, clip_on=False)
    axes.set_yticks(range(len(dots.rows)), [plainly(name) for name, _ in dots.rows], fontsize=10)
    axes.set_ylim(len(dots.rows) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel(plainly(f"← {dots.left}{' ' * 20}{dots.right} →"), fontsize=11)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25, lw=0.6)
    figure.legend(loc="outside upper right", ncols=4, fontsize=11, frameon=False)
    return _saved(figure, path)


def draw_both(charts: Sequence[Chart], folder: str | Path, name: str, columns: int = 2) -> list[Path]:
    """The charts as a PNG and as a PDF."""
    return [draw(charts, Path(folder) / f"{name}.{ending}", columns=columns) for ending in ("png", "pdf")]
