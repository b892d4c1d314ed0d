"""One line that says where the search is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import limits
from pcces.support.streams import stderr

if TYPE_CHECKING:
    from pcces.blackbox.search import Search


@contextmanager
def progress_line(search: Search) -> Iterator[Callable[[], None]]:
    """Iteration, objective, worst constraint, step size and what is left of the budget, on standard error, while this
    context is open; what it gives is called to refresh the line."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(bar_width=20), TimeRemainingColumn()
    with Progress(*columns, console=Console(file=stderr())) as bar:
        task = bar.add_task("starting", total=search.max_evaluations)
        yield lambda: bar.update(task, completed=search.state.budget.evaluations, description=_line(search))


def _line(search: Search) -> str:
    state, es, e = search.state, search.state.run.es, search.state.run.incumbent.estimate
    left = f"{state.budget.left} evaluations left"
    if state.phase == "certify":
        return f"certifying candidate {len(state.test.candidates)}  {left}"
    if not np.isfinite(e.f):
        return f"iteration {int(es.k)}  searching for a point that can be evaluated"
    worst = f"  worst c {float(np.max(e.c)):.3g}" if e.c.size else ""
    feasible = "" if limits.broken(search, e) <= 0 else " (infeasible)"
    return f"iteration {int(es.k)}  f {float(e.f):.6g}{feasible}{worst}  sigma {float(es.sigma):.2g}  {left}"
