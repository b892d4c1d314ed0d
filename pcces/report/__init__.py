"""Reports: HTML pages that work offline, each in one file, and pictures, from plain data.

`write` makes the page of some runs (`runs`), `search_page` that of a search on a black box (`search`). The parts are there
for other pages: sections and charts as data (`page`, `chart`), the charts of runs (`curves`), charts as a picture (`figure`).
"""

from __future__ import annotations

from pcces.report.chart import Chart, LimitLine, Series
from pcces.report.curves import charts, variants
from pcces.report.figure import draw, draw_both, draw_dots
from pcces.report.page import (
    Chapter,
    Charts,
    Columns,
    Contents,
    Details,
    Dot,
    Dots,
    Folded,
    Marked,
    Page,
    Picture,
    Section,
    Table,
    Verdict,
)
from pcces.report.runs import at_work, make_page, write

__all__ = [
    "Chapter",
    "Chart",
    "Charts",
    "Columns",
    "Contents",
    "Details",
    "Dot",
    "Dots",
    "Folded",
    "LimitLine",
    "Marked",
    "Page",
    "Picture",
    "Section",
    "Series",
    "Table",
    "Verdict",
    "at_work",
    "charts",
    "draw",
    "draw_both",
    "draw_dots",
    "make_page",
    "variants",
    "write",
]
