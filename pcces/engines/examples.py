"""A small handler for examples and tests: sums of squares and a shared number, with ways to misbehave."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from pcces.engines.pool import Watchdog


class Squares:
    """A task is a list of numbers n; the result has the shared number + n^2 for each.

    Words make it misbehave: `die` kills the worker, `hang` never ends, `raise` raises, and a path `once:...` kills the
    worker the first time only.
    """

    def __init__(self, step_timeout: float | None = None):
        self.shared = 0
        self.watchdog = Watchdog(step_timeout)

    def share(self, value: Any) -> None:
        """The number that is added."""
        self.shared = value

    def run(self, task: list[Any]) -> list[Any]:
        """Work through the list."""
        results = []
        for item in task:
            self.watchdog.beat()
            results.append(self._square(item))
        self.watchdog.rest()
        return results

    def _square(self, item: Any) -> Any:
        if item == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "hang":
            while True:
                time.sleep(1)
        if item == "raise":
            raise ZeroDivisionError("asked for")
        if isinstance(item, str) and item.startswith("once:"):
            path = Path(item.removeprefix("once:"))
            if not path.exists():
                path.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return "survived"
        return self.shared + item**2

    def parts(self, task: list[Any]) -> list[Any]:
        """Single numbers."""
        return [[item] for item in task]

    def join(self, results: list[Any]) -> list[Any]:
        """Put the lists together; what is lost stays a `Lost`."""
        return [item for result in results for item in (result if isinstance(result, list) else [result])]
