"""A chart as data: lines, dots or bars over an axis, with limits; drawn in the browser (page.js), or by matplotlib (figure)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pcces.support.jsonable import jsonable


@dataclass(frozen=True)
class Series:
    """A line of a chart, with a band around it where `low` and `high` are given.

    Series of one group have the same colour on the whole page, and one entry in the legend; without a group, the name is one.
    `colour` fixes which of the eight colours it is; otherwise groups get them in order. `dots` are points without a line; those
    far away from the lines are left out. `bars` is the width of bars, where there are some instead of a line. `ring` marks
    one of the points. `others` are the points' places on other axes, by what these are called. A line `aside` does not decide about
    the range of the axis, and may leave the picture.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    group: str = ""
    colour: int | None = None
    dots: bool = False
    bars: float = 0.0
    ring: int | None = None
    others: Mapping[str, Sequence[float]] = field(default_factory=dict)
    aside: bool = False

    def __post_init__(self) -> None:
        lengths = {
            len(part) for part in (self.x, self.y, self.low, self.high, *self.others.values()) if part is not None
        }
        if len(lengths) > 1:
            raise ValueError(f"the parts of the series {self.name!r} differ in length: {sorted(lengths)}")
        if (self.low is None) != (self.high is None):
            raise ValueError(f"the series {self.name!r} has one side of a band only")


@dataclass(frozen=True)
class LimitLine:
    """A line across a chart, of a limit to keep or a `goal` to reach.

    Unless `always`, one far away from the data is only pointed at, and does not squeeze them.
    """

    value: float
    name: str
    always: bool = True
    goal: bool = False


@dataclass(frozen=True)
class Chart:
    """Lines over a common axis, on which a value `at` may be marked; `limits` are on what the lines show, `limits_x` on the axis."""

    title: str
    series: Sequence[Series]
    limits: Sequence[LimitLine] = ()
    x_label: str = "iteration"
    log: bool = False
    log_x: bool = False
    note: str = ""
    at: float | None = None
    limits_x: Sequence[LimitLine] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for page.js; what is not a finite number becomes None.

        >>> Chart("return", [Series("a", [0, 1], [2.0, math.nan])]).to_dict()["series"][0]["y"]
        [2.0, None]
        """
        series = [
            {
                "name": s.name,
                "group": s.group or s.name,
                "colour": s.colour,
                "dots": s.dots,
                "bars": s.bars,
                "ring": s.ring,
                "aside": s.aside,
                "others": {name: six_digits(x) for name, x in s.others.items()},
                "x": six_digits(s.x),
                "y": six_digits(s.y),
                "low": six_digits(s.low) if s.low is not None else None,
                "high": six_digits(s.high) if s.high is not None else None,
            }
            for s in self.series
        ]
        limits, limits_x = (
            [asdict(limit) for limit in some if math.isfinite(limit.value)] for some in (self.limits, self.limits_x)
        )
        axes = {"xLabel": self.x_label, "log": self.log, "logX": self.log_x, "at": self.at, "limitsX": limits_x}
        return {"title": self.title, "series": series, "limits": limits, **axes}


def six_digits(values: Sequence[float]) -> list[float | None]:
    """Numbers as JSON knows them, with six digits: a chart shows no more.

    >>> six_digits([1.23456789, float("inf")])
    [1.23457, None]
    """
    return list(jsonable([float(f"{float(v):.6g}") for v in values]))
