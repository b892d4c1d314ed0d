"""When a training ends before its budget is spent: it took long enough, it is good enough, or it gets no better."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

LEAST = 5  # iterations on either side of a comparison
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Stopping:
    """What ends a training early. None: that does not."""

    max_time: float | None = None  # seconds of training
    target: float | None = None  # mean return with which all limits are kept, over the last iterations
    patience: float | None = None  # environment steps without a better return

    def __post_init__(self) -> None:
        for name in ("max_time", "patience"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        if self.target is not None and not math.isfinite(self.target):
            raise ValueError(f"target must be a finite return, got {self.target!r}")

    def reason(self, metrics: dict[str, list[float]], seconds: float) -> str | None:
        """Why a run that went this way ends here, in words; None if it does not.

        >>> course = {"return": [1.0] * 4 + [9.0] * 5, "over_threshold": [1.0] * 4 + [0.0] * 5, "steps": range(9)}
        >>> Stopping(target=8.0).reason(course, 1.0)
        'the return reached 9 with all limits kept over the last 5 iterations'
        >>> Stopping(target=10.0).reason(course, 1.0), Stopping(max_time=1.0).reason(course, 2.0)
        (None, 'it took 2 seconds')
        """
        if self.max_time is not None and seconds >= self.max_time:
            return f"it took {seconds:.0f} seconds"
        returns = np.asarray(metrics["return"], dtype=float)
        over = np.asarray(metrics.get("over_threshold", np.zeros(len(returns))), dtype=float)
        if self.target is not None and len(returns) >= LEAST:
            last = returns[-LEAST:].mean()
            if last >= self.target and not over[-LEAST:].any():
                return f"the return reached {last:.4g} with all limits kept over the last {LEAST} iterations"
        if self.patience is not None and stalled(returns, over, np.asarray(metrics["steps"], float), self.patience):
            return f"no better return with all limits kept in the last {self.patience:g} steps"
        return None


def stalled(returns: np.ndarray, over: np.ndarray, steps: np.ndarray, patience: float) -> bool:
    """Whether the last `patience` steps brought nothing: neither a better mean return of the iterations that keep their
    limits than the steps before, by more than its standard error, nor more of them.

    >>> stalled(np.arange(40.0), np.zeros(40), np.arange(40.0), 10), stalled(np.ones(40), np.zeros(40), np.arange(40.0), 10)
    (False, True)
    """
    latest = steps > steps[-1] - patience
    before = (steps > steps[-1] - 2 * patience) & ~latest
    if steps[-1] < 2 * patience or min(latest.sum(), before.sum()) < LEAST:
        return False
    now, then = returns[latest & (over == 0)], returns[before & (over == 0)]
    if len(now) < LEAST or len(then) < LEAST:
        return bool(len(now) <= len(then) and over[latest].mean() >= over[before].mean() > 0)
    error = math.hypot(now.std() / math.sqrt(len(now)), then.std() / math.sqrt(len(then)))
    return bool(now.mean() <= then.mean() + error)


def seconds_in(text: str) -> float:
    """A time as people write it.

    >>> seconds_in("90"), seconds_in("10m"), seconds_in("1.5h")
    (90.0, 600.0, 5400.0)
    """
    found = re.fullmatch(r"\s*([0-9.]+)\s*(s|m|min|h)?\s*", text)
    if found is None or found[1].count(".") > 1 or found[1] == ".":
        raise ValueError(f"a time is a number of seconds, or a value such as 90s, 10m, 1.5h; got {text!r}")
    return float(found[1]) * UNITS[found[2] or ""]


def told(callback: Any, runs: list[Any]) -> bool:
    """Whether a callback asks for the end: it returns True, or raises StopIteration."""
    try:
        return callback(runs) is True
    except StopIteration:
        return True
