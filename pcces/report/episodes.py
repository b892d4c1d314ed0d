"""What single episodes of a policy come to: a limit on a mean leaves that open, and it is what one meets."""

from __future__ import annotations

from itertools import pairwise

from pcces.report.chart import Chart, LimitLine, Series
from pcces.report.page import Charts, Section, Table, plain
from pcces.report.protocols import ReportedRun

SHOWN = {0.05: "5 %", 0.25: "25 %", 0.5: "median", 0.75: "75 %", 0.95: "95 %", 0.99: "99 %", 1.0: "most"}


def single_episodes(run: ReportedRun) -> list[Section]:
    """A histogram of each cost over the certificate's episodes, and quantiles; nothing of a run that did not note them."""
    final, problem = run.final, run.problem
    if "quantiles" not in final:
        return []
    shares, found = final["quantiles"]["shares"], final["quantiles"]
    places = [shares.index(share) for share in SHOWN if share in shares]
    over = final.get("over_limit", ())
    rows: list[list[str | float | None]] = [["return", *(found["return"][i] for i in places)]]
    rows += [[name, *(row[i] for i in places)] for name, row in zip(problem.cost_names, found["costs"])]
    columns = ["", *(SHOWN[shares[i]] for i in places)]
    if problem.cost_names:
        columns.insert(1, "over the limit")
        rows[0].insert(1, "")
        for row, limit, share in zip(rows[1:], problem.cost_limits, over):
            row.insert(1, f"{100 * share:.3g} % (limit {plain(limit.value)})")
    note = f"Quantiles over the certificate's {final['episodes']} fresh episodes: for example, 95 % of them are at most the value under 95 %."
    table = Table("Single episodes", columns, rows, note + _what_limits_say(run))
    drawn = [
        _histogram(name, each, limit, share)
        for name, each, limit, share in zip(problem.cost_names, final.get("histograms", ()), problem.cost_limits, over)
    ]
    return [table, Charts("", drawn)] if drawn else [table]


def _what_limits_say(run: ReportedRun) -> str:
    if not any(limit.kind == "mean" for limit in run.problem.cost_limits):
        return ""
    return " A limit on a mean allows single episodes above it. A limit on a probability (--limit) says how many there may be."


def _histogram(name: str, found: dict, limit: object, share: float) -> Chart:
    edges, counts = found["edges"], found["counts"]
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    total = max(sum(counts), 1)
    bars = Series(
        "share of the episodes", middles, [count / total for count in counts], bars=edges[1] - edges[0], colour=0
    )
    line = LimitLine(limit.value, f"limit {limit.short}", always=False)  # type: ignore[attr-defined]
    title = f"{name} of single episodes"
    note = f"{100 * share:.3g} % are above the limit"
    return Chart(title, [bars], x_label=name, limits_x=[line], note=note)
