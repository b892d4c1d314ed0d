"""What pages need of a run and of a film; `pcces.rl` has both, and nothing here imports it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pcces.core.certificate import Certificate
    from pcces.envs.simulator import Simulator
    from pcces.envs.task import Task


class ReportedLimits(Protocol):
    """What a run was to keep."""

    @property
    def cost_names(self) -> Sequence[str]:
        """What the costs are called."""

    @property
    def thresholds(self) -> Sequence[float]:
        """The most that each may be on average, or where else its limit lies."""

    @property
    def cost_limits(self) -> Sequence[Any]:
        """The limit on each: `short` says it in words, `quantity` what it is on."""

    @property
    def on_means(self) -> bool:
        """Whether all are on means."""

    @property
    def entropy_bounds(self) -> tuple[float, float]:
        """The least and the most entropy of an episode, on average."""


class ReportedRun(Protocol):
    """A training run, finished or not."""

    config: dict[str, Any]  # what was asked for: task, algorithm, preset, seed, settings and so on
    task: Task | Simulator
    metrics: dict[str, list[float]]  # what was noted, one entry per iteration
    certificate: Certificate | None  # None until the run is finished
    final: dict[str, Any]  # means and standard errors over the certificate's episodes, once there are any

    @property
    def problem(self) -> ReportedLimits:
        """What was to be kept."""

    def limits(self) -> list[str]:
        """What the certificate says of each limit, in words."""


class FilmedEpisode(Protocol):
    """An episode as an animation."""

    @property
    def gif(self) -> bytes:
        """The animation."""

    @property
    def total(self) -> float:
        """The episode's return."""

    @property
    def costs(self) -> Sequence[float]:
        """What it cost."""


Filming = Callable[[Any], FilmedEpisode]  # of a run: `pcces.rl.film.ordinary_film`
