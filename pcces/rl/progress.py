"""One live display of a training: what it chose by itself, where it is, how it does against its limits, how long it will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pcces.rl.settings import BATCHES, LEAST_EPISODES
from pcces.support.streams import is_terminal, say, stderr

if TYPE_CHECKING:
    from rich.text import Text

    from pcces.rl.training import Training

Watch = Callable[[int, int], None]  # told how many of an evaluation's episodes are done, and how many there are
RECENT = 20  # iterations the acceptance rate looks back


class Part(NamedTuple):
    """A few words of the line, and whether a limit is kept: None where there is none."""

    words: str
    kept: bool | None = None


class TrainingProgress:
    """Iteration, return, each cost against its threshold, entropy, sigma, acceptance, time left; on standard error.

    `wanted=None` shows it on a terminal only. Where standard error is not a terminal, a plain line every ten percent.
    That nobody can be shown anything is no reason to stop.
    """

    def __init__(self, training: Training, wanted: bool | None):
        self.training = training
        self._terminal = is_terminal()
        self._wanted = wanted or (wanted is None and self._terminal)
        self._live: Any = None
        self._bar: Any = None
        self._tenth = -1
        self._first: tuple[float, int] | None = None  # when the first iterations were done, and how many

    def __enter__(self) -> TrainingProgress:
        if self._wanted:
            say(chosen(self.training))
        if self._wanted and self._terminal:
            from rich.console import Console
            from rich.live import Live
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            # Bar and numbers have a row each: a narrow terminal wraps the numbers, and cuts nothing off.
            self._bar = Progress(TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
            self._bar.add_task(self._opening, total=self.training.iterations, completed=self.training.done)
            self._live = Live(self._bar, console=Console(file=stderr()), refresh_per_second=8)
            self._live.start()
        elif self._wanted:
            say(self._opening)
        return self

    @property
    def _opening(self) -> str:
        """What takes long before the first iteration."""
        return "compiling" if self.training.runs[0].config["engine"] == "device" else "starting workers"

    def update(self) -> None:
        """Refresh the line."""
        t = self.training
        if self._first is None:
            self._first = time.perf_counter(), t.done
        if self._bar is not None:
            from rich.console import Group

            description = f"iteration {t.done}/{t.iterations}{self._left()}"
            self._bar.update(self._bar.task_ids[0], completed=t.done, description=description)
            self._live.update(Group(self._bar, self._coloured()))
        elif self._wanted and 10 * t.done // t.iterations > self._tenth:
            self._tenth = 10 * t.done // t.iterations
            say(self.line() + self._left())

    def say(self, text: str) -> None:
        """What happens after the search."""
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], description=text)
        elif self._wanted:
            say(text)

    def line(self) -> str:
        """The text: means over the seeds of the last iteration."""
        t = self.training
        return "  ".join([f"iteration {t.done}/{t.iterations}", *(part.words for part in self._parts())])

    def _parts(self) -> list[Part]:
        runs = self.training.runs
        problem = runs[0].problem

        def last(name: str) -> float:
            return float(np.mean([run.metrics[name][-1] for run in runs]))

        parts = [Part(f"return {last('return'):.4g}")]
        for limit in problem.cost_limits:
            cost = last(f"cost_{limit.what}")
            kept = cost <= limit.value if limit.kind == "mean" else None  # the mean does not say
            parts.append(Part(f"{limit.what} {cost:.3g} (limit {limit.short})", kept))
        parts.append(Part(f"entropy {last('entropy'):.3g}"))
        if "sigma" in runs[0].metrics:
            recent = np.mean([run.metrics["success"][-RECENT:] for run in runs])
            parts += [Part(f"sigma {last('sigma'):.2g}"), Part(f"accepted {100 * recent:.0f} %")]
        if len(runs) > 1:
            parts.append(Part(f"mean of {len(runs)} seeds"))
        return parts

    def _coloured(self) -> Text:
        from rich.text import Text

        colours = {None: "", True: "green", False: "red"}
        return Text("  ").join(Text(part.words, style=colours[part.kept]) for part in self._parts())

    def _left(self) -> str:
        t = self.training
        if self._first is None or t.done == self._first[1] or t.done == t.iterations:
            return ""
        since, done = self._first
        seconds = (time.perf_counter() - since) / (t.done - done) * (t.iterations - t.done)
        return f"  {duration(seconds)} left"

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            if kind is None:
                self.say(f"{self.training.done} iterations")
            self._live.stop()


def chosen(training: Training) -> str:
    """How long a training is and in what portions, what it starts from, which limits it keeps, and where it is played.

    >>> from pcces.policies import prepare
    >>> print(chosen(prepare("CartSafe-v0", [0], steps=1e6)))
    pcces: 333 iterations of 3000 steps (10 episodes); starts with the best of 64 random policies; limits: off_centre <= 30, \
entropy <= 2000, entropy >= 0 (as the task says); on the device (a task in JAX)
    """
    return f"{training.runs[0].config['algorithm']}: " + "; ".join(_choices(training))


def _choices(training: Training) -> Iterator[str]:
    run, settings = training.runs[0], training.settings
    config, task = run.config, run.task
    if hasattr(settings, "epoch_steps"):
        each = settings.iteration_steps(task)
        least = each == LEAST_EPISODES * task.max_steps
        budget = bool(config["steps"]) and settings.epoch_steps == int(config["steps"] / BATCHES)
        why = f" (a {BATCHES}th of all)" if budget else f" ({LEAST_EPISODES} episodes)" if least else ""
        yield f"{settings.iterations} iterations of {each} steps{why}"
    else:
        yield f"{settings.iterations} iterations of {settings.population} policies"
    if settings.initial_tries > 1:
        yield f"starts with the best of {settings.initial_tries} random policies"
    if limits := run.problem.names:
        own = not run.problem.asked and config["thresholds"] and tuple(config["thresholds"]) == tuple(task.thresholds)
        yield f"limits: {', '.join(limits)}{' (as the task says)' if own else ''}"
    yield {
        "device": "on the device (a task in JAX)",
        "local": f"by {config['workers'] or 'one'} worker{'s' if (config['workers'] or 1) > 1 else ''}{'' if config['workers'] else ' a core'}",
        "ray": "on a Ray cluster",
    }[config["engine"]]


class EpisodeProgress:
    """How many of an evaluation's episodes are played, as far as there is more to come; on standard error.

    `wanted` as for a training.
    """

    def __init__(self, wanted: bool | None):
        self._terminal = is_terminal()
        self._wanted = wanted or (wanted is None and self._terminal)
        self._bar: Any = None
        self._tenth = 0

    def __enter__(self) -> EpisodeProgress:
        return self

    def update(self, done: int, total: int) -> None:
        """So many episodes are played."""
        if not self._wanted or (done == total and self._bar is None):
            return
        if self._terminal:
            if self._bar is None:
                from rich.console import Console
                from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

                columns = (TextColumn("episodes"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
                self._bar = Progress(*columns, console=Console(file=stderr()), transient=True)
                self._bar.add_task("", total=total)
                self._bar.start()
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)
        elif 10 * done // total > self._tenth:
            self._tenth = 10 * done // total
            say(f"episode {done}/{total}")

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def duration(seconds: float) -> str:
    """A time as a person would say it.

    >>> duration(7.3), duration(190), duration(8000)
    ('7 s', '3 min', '2.2 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
