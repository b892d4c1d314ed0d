"""One line that says where the search is; silent when nobody is looking."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pcces.blackbox.optimizer import Optimizer


class Progress:
    """Shows iteration, objective, worst constraint, step size and what is left of the budget, on standard error.

    `wanted=None` shows it on a terminal only.
    """

    def __init__(self, optimizer: Optimizer, wanted: bool | None):
        self.optimizer = optimizer
        self._bar: Any = None
        self._task: Any = None
        if wanted or (wanted is None and sys.stderr.isatty()):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self.optimizer.search.max_evaluations)
        return self

    def update(self) -> None:
        """Refresh the line."""
        if self._bar is not None:
            self._bar.update(self._task, completed=self.optimizer.memory.evaluations, description=self.line())

    def line(self) -> str:
        """The text of the line."""
        o, m = self.optimizer, self.optimizer.memory
        if m.phase == "certify":
            return f"certifying candidate {len(m.candidates)}  {o.evaluations_left} evaluations left"
        if m.incumbent is None or not np.isfinite(m.incumbent.f):
            return f"iteration {int(m.state.k)}  looking for a point that can be evaluated"
        worst = f"  worst c {float(np.max(m.incumbent.c)):.3g}" if m.incumbent.c.size else ""
        feasible = "" if o.search.broken(m.incumbent) <= 0 else " (infeasible)"
        return (
            f"iteration {int(m.state.k)}  f {float(m.incumbent.f):.6g}{feasible}{worst}  sigma {float(m.state.sigma):.2g}"
            f"  {o.evaluations_left} evaluations left"
        )

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
