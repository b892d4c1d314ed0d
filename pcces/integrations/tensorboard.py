"""Metrics as TensorBoard event files, a callback of `train` and `train_seeds`; needs the extra `tensorboard`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

NAME = "events.out.tfevents.pcces"


class FollowedRun(Protocol):
    """What is needed of a run."""

    path: Path | None  # its folder
    metrics: dict[str, list[float]]  # what was noted, an entry an iteration


class TensorBoard:
    """Write what is new into an event file in each run's folder; `tensorboard --logdir runs` shows them.

    A resumed run writes its file anew, from the first iteration, so that no iteration is there twice.
    """

    def __init__(self) -> None:
        try:
            from tensorboardX import RecordWriter
            from tensorboardX.proto.event_pb2 import Event
        except ImportError as error:
            raise ImportError(
                "event files for TensorBoard need the extra tensorboard: pip install 'pcces[tensorboard]'"
            ) from error
        # Of tensorboardX the parts that write at once: its SummaryWriter does so in a thread, whose last events are lost
        # when a run is interrupted.
        self._open, self._event = RecordWriter, Event
        self._files: dict[Path, Any] = {}
        self._written: dict[Path, int] = {}
        self._start = time.time()

    def __call__(self, runs: Sequence[FollowedRun]) -> None:
        """Write the iterations that were not written before."""
        for run in runs:
            if run.path is not None:
                self._append(run.path / NAME, run.metrics)

    def _append(self, path: Path, metrics: dict[str, list[float]]) -> None:
        if path not in self._files:
            self._files[path], self._written[path] = self._open(str(path)), 0
            self._write(path, wall_time=self._start, file_version="brain.Event:2")
        total = len(metrics["iteration"])
        for k in range(self._written[path], total):
            values = [
                {"tag": tag(name), "simple_value": column[k]}
                for name, column in metrics.items()
                if name not in ("iteration", "seconds")
            ]
            seconds, step = metrics["seconds"][k], int(metrics["iteration"][k])
            self._write(path, wall_time=self._start + seconds, step=step, summary={"value": values})
        self._files[path].flush()
        self._written[path] = total

    def _write(self, path: Path, **said: Any) -> None:
        self._files[path].write(self._event(**said).SerializeToString())


def tag(name: str) -> str:
    """The name under which TensorBoard shows a metric; costs have a group of their own.

    >>> tag("cost_off_centre"), tag("return"), tag("sigma")
    ('costs/off_centre', 'episode/return', 'search/sigma')
    """
    if name.startswith("cost_"):
        return f"costs/{name[5:]}"
    return f"{'episode' if name in ('return', 'entropy', 'length') else 'search'}/{name}"
