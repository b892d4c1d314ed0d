"""How far a study is, on standard error."""

from __future__ import annotations

import time
from typing import Any

from pcces.rl.progress import duration
from pcces.studies.study import Job, Study
from pcces.support.streams import is_terminal, say, stderr


class Display:
    """One line on standard error: arms done, running, time left."""

    def __init__(self, study: Study):
        self.study, self._terminal, self._last = study, is_terminal(), 0.0
        self._live: Any = None

    def __enter__(self) -> Display:
        if self._terminal:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(file=stderr()), refresh_per_second=4)
            self._live.start()
        return self

    def update(self, study: Study) -> None:
        """Refresh, on a terminal at once and elsewhere every half minute."""
        if self._live is not None:
            self._live.update("\n".join([self.line(), *self.running()]))
        elif time.perf_counter() - self._last > 30:
            self._last = time.perf_counter()
            say("; ".join([self.line(), *self.running()]))

    def line(self) -> str:
        """The whole study in a line."""
        s, left = self.study, self.study.seconds_left()
        done, failed = sum(job.finished for job in s.jobs), len(s.failed)
        time_left = f", {duration(left)} left" if left is not None and done < len(s.jobs) else ""
        return (
            f"{done} of {len(s.jobs)} arms{f' ({failed} failed)' if failed else ''}, {100 * s.share:.0f} %{time_left}"
        )

    def running(self) -> list[str]:
        """What is being trained."""
        return [
            f"{job.arm.task} {job.arm.name}: {self.far(job)}"
            for job in self.study.jobs
            if job.begun and not job.finished
        ]

    @staticmethod
    def far(job: Job) -> str:
        """How far one is."""
        return "certifying" if job.done >= job.arm.iterations else f"{job.done:.0f}/{job.arm.iterations}"

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
