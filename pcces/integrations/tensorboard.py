"""Metrics as TensorBoard event files; needs the extra `tensorboard`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pcces.integrations.trackers import FollowedRun, began, tag

NAME = "events.out.tfevents.pcces"
BY_STEPS = "by_steps"  # the group of the same curves over environment steps


class TensorBoard:
    """An event file in the run's folder; `tensorboard --logdir runs` shows it.

    Curves are over iterations, and once more, as by_steps/.., over environment steps. TensorBoard can show either over time.
    A resumed run writes its file anew, from the first iteration, so that no iteration is there twice.
    """

    def __init__(self, run: FollowedRun) -> None:
        record, self._event = self.check()
        self._file: Any = None
        if run.path is not None:
            self._file = record(str(run.path / NAME))
        self._start = began(run)
        self._write(wall_time=self._start, file_version="brain.Event:2")

    @staticmethod
    def check() -> tuple[Any, Any]:
        """The parts of tensorboardX that write at once: its SummaryWriter does so in a thread, whose last events are lost
        when a run is interrupted."""
        try:
            from tensorboardX import RecordWriter
            from tensorboardX.proto.event_pb2 import Event
        except ImportError as error:
            raise ImportError(
                "event files for TensorBoard need the extra tensorboard: pip install 'pcces[tensorboard]'"
            ) from error
        return RecordWriter, Event

    def log_config(self, config: Mapping[str, Any]) -> None:
        """Nothing: it has a file of its own, and TensorBoard shows numbers."""

    def log_metrics(self, step: int, values: Mapping[str, float]) -> None:
        """One event over iterations and one over steps."""
        shown = {tag(name): value for name, value in values.items() if name not in ("iteration", "seconds")}
        shown["search/steps"] = float(step)
        when = {"wall_time": self._start + values["seconds"]}
        self._write(**when, step=int(values["iteration"]), summary=summary(shown))
        self._write(**when, step=step, summary=summary({f"{BY_STEPS}/{name}": v for name, v in shown.items()}))
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, **said: Any) -> None:
        if self._file is not None:
            self._file.write(self._event(**said).SerializeToString())


def summary(values: Mapping[str, float]) -> dict[str, Any]:
    """Numbers by their tags, as an event has them."""
    return {"value": [{"tag": name, "simple_value": value} for name, value in values.items()]}
