"""Following a training elsewhere: the protocol of trackers, and how runs are shown to them.

TensorBoard, Weights & Biases and MLflow are in files of their own here; any object with the same three methods will do.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

log = logging.getLogger("pcces")
HOMES = {"tensorboard": "TensorBoard", "wandb": "WandB", "mlflow": "MLflow"}  # a module here, and its tracker


class Tracker(Protocol):
    """What follows one run, from its first iteration; also a run that goes on is shown from there."""

    def log_config(self, config: Mapping[str, Any]) -> None:
        """What was asked for, once, as in the run's config.json."""

    def log_metrics(self, step: int, values: Mapping[str, float]) -> None:
        """What is known after so many environment steps. Among the values are `iteration` and `seconds`.

        After the last iteration come once more, with its step, `certified` (1 or 0), `final_return` and the like.
        """

    def close(self) -> None:
        """No more comes."""


class FollowedRun(Protocol):
    """What is needed of a run."""

    config: dict[str, Any]
    path: Path | None  # its folder
    metrics: dict[str, list[float]]  # what was noted, one entry per iteration
    final: dict[str, Any]  # means over the certificate's episodes
    certificate: Any


Maker = Callable[[FollowedRun], Tracker]


def makers(asked: Any) -> list[Maker]:
    """What makes the trackers of a run, from names, from functions of a run, or from trackers themselves.

    >>> makers(["neptune"])
    Traceback (most recent call last):
    ...
    ValueError: unknown tracker 'neptune'; there are tensorboard, wandb, mlflow, or give an object with log_config, log_metrics, close
    """
    several = asked if isinstance(asked, list | tuple) else [] if asked is None else [asked]
    return [_maker(each) for each in several]


def _maker(asked: Any) -> Maker:
    if isinstance(asked, str):
        if asked not in HOMES:
            raise ValueError(
                f"unknown tracker {asked!r}; there are {', '.join(HOMES)}, or give an object with "
                "log_config, log_metrics, close"
            )
        kind = getattr(import_module(f"pcces.integrations.{asked}"), HOMES[asked])
        kind.check()
        return cast(Maker, kind)
    if not isinstance(asked, type) and all(hasattr(asked, name) for name in ("log_config", "log_metrics", "close")):
        return _Only(asked)
    if callable(asked):
        return cast(Maker, asked)
    raise TypeError(
        f"a tracker is one of {', '.join(HOMES)}, an object with log_config, log_metrics and close, or a function that makes "
        f"one for a run; got {asked!r}"
    )


class _Only:
    """The maker of a tracker that is there already, and follows a single run."""

    def __init__(self, tracker: Tracker):
        self.tracker = tracker

    def __call__(self, run: FollowedRun) -> Tracker:
        return self.tracker


class Tracking:
    """Shows runs to their trackers as they go on. One that fails is left out from then on: the training is not to suffer."""

    def __init__(self, asked: Any, runs: int = 1):
        self.makers = makers(asked)
        if runs > 1 and any(isinstance(maker, _Only) for maker in self.makers):
            raise ValueError(
                f"a tracker follows one run, but there are {runs}: give a function that makes one for a run"
            )
        self._following: list[tuple[FollowedRun, list[Tracker]]] | None = None
        self._shown: dict[int, int] = {}  # iterations, by tracker

    def __call__(self, runs: Sequence[FollowedRun]) -> None:
        """Show what is new."""
        if self._following is None:
            self._following = [(run, self._made(run)) for run in runs]
        for run, trackers in self._following:
            for tracker in list(trackers):
                self._safely(trackers, tracker, self._show, run)

    def _made(self, run: FollowedRun) -> list[Tracker]:
        trackers: list[Tracker] = []
        for maker in self.makers:
            try:
                tracker = maker(run)
            except Exception as error:
                name = getattr(maker, "__name__", "the tracker")
                raise ConnectionError(f"{name} cannot follow the run ({type(error).__name__}: {error})") from error
            trackers.append(tracker)
            self._shown[id(tracker)] = 0
            self._safely(trackers, tracker, lambda tracker, run: tracker.log_config(run.config), run)
        return trackers

    def _show(self, tracker: Tracker, run: FollowedRun) -> None:
        metrics = run.metrics
        for k in range(self._shown[id(tracker)], len(metrics["iteration"])):
            values = {name: float(column[k]) for name, column in metrics.items() if name != "steps"}
            tracker.log_metrics(int(metrics["steps"][k]), {n: v for n, v in values.items() if not math.isnan(v)})
            self._shown[id(tracker)] = k + 1

    def _safely(
        self, trackers: list[Tracker], tracker: Tracker, do: Callable[[Tracker, FollowedRun], None], run: FollowedRun
    ) -> None:
        try:
            do(tracker, run)
        except Exception as error:
            trackers.remove(tracker)
            log.warning("%s was dropped: %s: %s", type(tracker).__name__, type(error).__name__, error)

    def close(self) -> None:
        """Show the certificates of runs that have one, and let the trackers go."""
        for run, trackers in self._following or ():
            for tracker in list(trackers):
                if run.certificate is not None:
                    self._safely(trackers, tracker, _show_end, run)
            for tracker in list(trackers):
                self._safely(trackers, tracker, lambda tracker, run: tracker.close(), run)
        self._following = []


def _show_end(tracker: Tracker, run: FollowedRun) -> None:
    values = {"certified": float(run.certificate.holds), "final_return": run.final["return"]}
    values |= {f"final_cost_{name}": cost for name, cost in zip(run.final.get("cost_names", ()), run.final["costs"])}
    last = {name: run.metrics[name][-1] for name in ("iteration", "seconds")}
    tracker.log_metrics(int(run.metrics["steps"][-1]), last | values)


def began(run: FollowedRun) -> float:
    """When its training would have begun, had it never paused: seconds since 1970."""
    return time.time() - [0.0, *run.metrics.get("seconds", ())][-1]


def tag(name: str) -> str:
    """The name under which a metric is shown; costs have a group of their own.

    >>> tag("cost_off_centre"), tag("return"), tag("sigma")
    ('costs/off_centre', 'episode/return', 'search/sigma')
    """
    if name.startswith("cost_"):
        return f"costs/{name[5:]}"
    if name == "certified" or name.startswith("final_"):
        return f"certificate/{name.removeprefix('final_')}"
    return f"{'episode' if name in ('return', 'entropy', 'length') else 'search'}/{name}"
