"""One live line about a training: where it is, how it does against its limits, how long it will take."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pcces.rl.train import Training


class TrainingProgress:
    """Iteration, return, each cost against its threshold, entropy, sigma, acceptance, time left; on standard error.

    `wanted=None` shows it on a terminal only. Where standard error is not a terminal, a plain line every ten percent.
    """

    def __init__(self, training: Training, wanted: bool | None):
        self.training = training
        self._terminal = sys.stderr.isatty()
        self._wanted = wanted or (wanted is None and self._terminal)
        self._bar: Any = None
        self._task: Any = None
        self._tenth = -1

    def __enter__(self) -> TrainingProgress:
        if self._wanted and self._terminal:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task("compiling", total=self.training.iterations)
        return self

    def update(self) -> None:
        """Refresh the line."""
        t = self.training
        if self._bar is not None:
            self._bar.update(self._task, completed=t.done, description=self.line())
        elif self._wanted and 10 * t.done // t.iterations > self._tenth:
            self._tenth = 10 * t.done // t.iterations
            print(self.line(), file=sys.stderr, flush=True)

    def certifying(self, i: int) -> None:
        """Say that the search is over."""
        text = f"certifying on fresh episodes ({i + 1}/{len(self.training.runs)})"
        if self._bar is not None:
            self._bar.update(self._task, description=text)
        elif self._wanted:
            print(text, file=sys.stderr, flush=True)

    def line(self) -> str:
        """The text: means over the seeds of the last iteration."""
        runs, t = self.training.runs, self.training
        problem = runs[0].problem

        def last(name: str) -> float:
            return float(np.mean([run.metrics[name][-1] for run in runs]))

        parts = [f"iteration {t.done}/{t.iterations}", f"return {last('return'):.4g}"]
        parts += [f"{n} {last(f'cost_{n}'):.3g} (limit {m:g})" for n, m in zip(problem.cost_names, problem.thresholds)]
        parts.append(f"entropy {last('entropy'):.3g}")
        if "sigma" in runs[0].metrics:
            recent = np.mean([run.metrics["success"][-20:] for run in runs])
            parts += [f"sigma {last('sigma'):.2g}", f"accepted {100 * recent:.0f} %"]
        if len(runs) > 1:
            parts.append(f"mean of {len(runs)} seeds")
        return "  ".join(parts)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
