"""A page as data: a list of sections, charts among them, and its HTML: one file that needs nothing else.

Charts are drawn in the browser from the numbers in the page (page.js). Everything else is there without a script, too.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from pcces.report.chart import Chart
from pcces.support import files as storage
from pcces.support.jsonable import to_json


@dataclass(frozen=True)
class Marked:
    """A word that is good or bad news."""

    text: str
    good: bool


IN_SCRIPTS = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&"}
Cell = str | int | float | bool | Marked | None


class Section(Protocol):
    """Anything with an HTML form can stand on a page."""

    def html(self) -> str:
        """The section's markup."""


@dataclass(frozen=True)
class Verdict:
    """The headline: green, red, or grey while nothing is known; amber where it holds, but could be fooled, or as a `warning`."""

    holds: bool | None
    title: str
    points: Sequence[str] = ()
    note: str = ""
    doubtful: bool = False
    warning: bool = False

    def html(self) -> str:
        """The section's markup."""
        kind = {True: "holds", False: "fails", None: "open"}[self.holds] + " doubtful" * (
            self.warning or (self.doubtful and self.holds is True)
        )
        sign = "!" if self.warning else {True: "✓", False: "✗", None: "…"}[self.holds]
        points = "".join(f"<li>{escape(point)}</li>" for point in self.points)
        return (
            f'<section class="verdict {kind}"><span class="sign" aria-hidden="true">{sign}</span><div>'
            f"<h2>{escape(self.title)}</h2>"
            + (f"<ul>{points}</ul>" if points else "")
            + (f"<p>{escape(self.note)}</p>" if self.note else "")
            + "</div></section>"
        )


@dataclass(frozen=True)
class Charts:
    """Charts side by side, as many as fit."""

    title: str
    charts: Sequence[Chart]
    note: str = ""

    def html(self) -> str:
        """The section's markup."""
        figures = "".join(
            f'<figure class="chart"><figcaption>{escape(chart.title)}'
            + (f" <small>{escape(chart.note)}</small>" if chart.note else "")
            + f'</figcaption><script type="application/json">{as_json(chart.to_dict())}</script></figure>'
            for chart in self.charts
        )
        return _section(self.title, f'<div class="charts">{figures}</div>', self.note)


@dataclass(frozen=True)
class Dot:
    """A share between 0 and 1 with its interval, of something that has this colour on the whole page."""

    name: str
    value: float
    low: float
    high: float
    colour: int

    def __str__(self) -> str:
        """In words.

        >>> print(Dot("OpenES", 0.72, 0.6, 0.8, colour=1))
        OpenES: 0.72 [0.60, 0.80]
        """
        return f"{self.name}: {self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Dots:
    """Shares with their intervals, some to a row; `left` and `right` say what 0 and 1 mean, and 1/2 is neither."""

    title: str
    rows: Sequence[tuple[str, Sequence[Dot]]]
    left: str
    right: str
    note: str = ""

    def html(self) -> str:
        """The section's markup; it needs no script."""
        keys = {dot.name: dot.colour for _, dots in self.rows for dot in dots}
        legend = "".join(f'<span style="--key:var(--c{c})">{escape(name)}</span>' for name, c in keys.items())
        ends = f"<span>← {escape(self.left)}</span><span>{escape(self.right)} →</span>"
        rows = "".join(
            f"<div><span>{escape(name)}</span><div>{''.join(map(self._track, dots))}</div></div>"
            for name, dots in self.rows
        )
        inside = (
            f'<div class="legend">{legend}</div><div class="dots"><div><span></span><p>{ends}</p></div>{rows}</div>'
        )
        return _section(self.title, inside, self.note)

    @staticmethod
    def _track(dot: Dot) -> str:
        places = f"--at:{100 * dot.value:.1f}%;--low:{100 * dot.low:.1f}%;--wide:{100 * (dot.high - dot.low):.1f}%"
        said = escape(str(dot))
        return f'<i role="img" aria-label="{said}" title="{said}" style="{places};--key:var(--c{dot.colour})"></i>'


@dataclass(frozen=True)
class Picture:
    """An image, inlined."""

    title: str
    data: bytes
    alt: str
    caption: str = ""
    media: str = "image/gif"

    def html(self) -> str:
        """The section's markup."""
        source = f"data:{self.media};base64,{base64.b64encode(self.data).decode()}"
        return _section(self.title, f'<img src="{source}" alt="{escape(self.alt)}">', self.caption)


@dataclass(frozen=True)
class Table:
    """Rows of numbers and words; True and False are shown as yes and no."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""

    def html(self) -> str:
        """The section's markup."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in self.rows)
        table = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        return _section(self.title, table, self.note)


@dataclass(frozen=True)
class Details:
    """Names and values, folded away until asked for."""

    title: str
    items: Mapping[str, Any]

    def html(self) -> str:
        """The section's markup."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{escape(plain(value))}</td></tr>" for name, value in self.items.items()
        )
        return f'<details><summary>{escape(self.title)}</summary><div class="wide"><table class="names"><tbody>{rows}</tbody></table></div></details>'


@dataclass(frozen=True)
class Folded:
    """Sections that are folded away until asked for."""

    title: str
    sections: Sequence[Section]

    def html(self) -> str:
        """The sections' markup."""
        inside = "".join(section.html() for section in self.sections)
        return f"<details><summary>{escape(self.title)}</summary>{inside}</details>"


@dataclass(frozen=True)
class Chapter:
    """A larger heading, that `Contents` can point at, and a few words."""

    title: str
    anchor: str
    text: str = ""

    def html(self) -> str:
        """The heading's markup."""
        text = f"<p>{escape(self.text)}</p>" if self.text else ""
        return f'<div class="chapter" id="{escape(self.anchor)}"><h2>{escape(self.title)}</h2>{text}</div>'


@dataclass(frozen=True)
class Contents:
    """What is on the page: title, anchor of a chapter, and what came out there."""

    items: Sequence[tuple[str, str, Marked | str]]

    def html(self) -> str:
        """The list's markup."""
        rows = "".join(
            f'<tr><td><a href="#{escape(anchor)}">{escape(title)}</a></td>{_cell(said)}</tr>'
            for title, anchor, said in self.items
        )
        return f'<nav><table class="contents"><tbody>{rows}</tbody></table></nav>'


@dataclass(frozen=True)
class Columns:
    """Two or more sections beside each other where there is room."""

    sections: Sequence[Section]

    def html(self) -> str:
        """The sections' markup."""
        return f'<div class="columns">{"".join(section.html() for section in self.sections)}</div>'


@dataclass(frozen=True)
class Stacked:
    """Sections one below the other, as one of `Columns`."""

    sections: Sequence[Section]

    def html(self) -> str:
        """The sections' markup."""
        return f'<div class="stacked">{"".join(section.html() for section in self.sections)}</div>'


@dataclass(frozen=True)
class Page:
    """A title and sections.

    >>> from pcces.report.chart import LimitLine, Series
    >>> chart = Chart("return", [Series("seed 0", [0, 1, 2], [1.0, 4.0, 9.0])], [LimitLine(8.0, "enough")])
    >>> page = Page("An example", [Verdict(True, "It holds"), Charts("Curves", [chart])])
    >>> "It holds" in page.html() and "<figcaption>return</figcaption>" in page.html()
    True
    """

    title: str
    sections: Sequence[Section]
    subtitle: str = ""

    def html(self) -> str:
        """The whole file."""
        here = files("pcces.report")
        parts = {
            "title": escape(self.title),
            "style": here.joinpath("page.css").read_text(encoding="utf-8"),
            "script": here.joinpath("page.js").read_text(encoding="utf-8"),
            "subtitle": f"<p>{escape(self.subtitle)}</p>" if self.subtitle else "",
            "body": "\n".join(section.html() for section in self.sections),
        }
        html = here.joinpath("page.html").read_text(encoding="utf-8")
        before, *pieces = html.split("{{")  # split once: what is filled in may hold braces itself
        return before + "".join(parts[name] + rest for name, _, rest in (piece.partition("}}") for piece in pieces))

    def save(self, path: str | Path) -> Path:
        """Write the page; an old one is replaced."""
        storage.write_atomically(path, self.html().encode(errors="backslashreplace"))
        return Path(path)


def as_json(data: Any) -> str:
    """JSON that can stand inside a script element, where browsers look for tags and comments also in the middle of text.

    >>> as_json("<!--<script>&")
    '"\\\\u003c!--\\\\u003cscript\\\\u003e\\\\u0026"'
    """
    return to_json(data, indent=None).translate(IN_SCRIPTS)  # what is not ASCII is escaped in JSON already


def plain(value: Any) -> str:
    """A value as a person writes it.

    >>> plain(0.30000001), plain([10, 10]), plain(None), plain(True)
    ('0.3', '10, 10', '–', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value))
    return str(value)


def _cell(value: Cell) -> str:
    if isinstance(value, bool):
        value = Marked(plain(value), value)
    if isinstance(value, Marked):
        return f'<td class="{"good" if value.good else "bad"}">{escape(value.text)}</td>'
    return f"<td>{escape(f'{value:.4g}' if isinstance(value, float) else plain(value))}</td>"


def _section(title: str, content: str, note: str = "") -> str:
    note = f'<p class="note">{escape(note)}</p>' if note else ""
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    return f"<section>{heading}{content}{note}</section>"
