"""`pcces reproduce`: run the paper's experiments, as far as they are not done yet, and write the page about them."""

from __future__ import annotations

import difflib
import json
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from pcces.cli.common import refusing
from pcces.engines import ENGINES
from pcces.envs.lookup import resolve
from pcces.rl.progress import duration
from pcces.rl.request import checked_engine
from pcces.studies.arms import Arm, Store
from pcces.studies.catalogue import EXPERIMENTS, Experiment, scaled
from pcces.studies.page import page, table
from pcces.studies.policies import keep
from pcces.studies.results import known, named
from pcces.studies.study import Job, Study, jobs_for
from pcces.studies.tables import finals, judged


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help=f"Of {', '.join(EXPERIMENTS)}; none: what there is.", show_default=False
        ),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="paper: the full protocol; quick: minutes on two cores.", show_default="quick")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Other than the scale's.", show_default=False)] = None,
    iterations: Annotated[int | None, typer.Option(help="Other than the scale's.", show_default=False)] = None,
    task: Annotated[list[str] | None, typer.Option(help="These tasks only.", show_default=False)] = None,
    algorithm: Annotated[list[str] | None, typer.Option(help="These algorithms only.", show_default=False)] = None,
    processes: Annotated[int, typer.Option(help="Arms at a time, each with its share of the cores.")] = 1,
    engine: Annotated[
        str | None, typer.Option(show_default="device for tasks in JAX, else local", help="As for `pcces train`.")
    ] = None,
    ray_address: Annotated[str | None, typer.Option(help="The cluster of --engine ray.", show_default=False)] = None,
    out: Annotated[Path, typer.Option(help="The folder of results; what it holds is not run again.")] = Path("results"),
    write: Annotated[
        Path | None, typer.Option("--page", help="Write the page about all results there are.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Run the paper's experiments again.

    Runs are kept by their configuration: what is done is not done again, and a study that was stopped goes on.

    \b
    pcces reproduce
    pcces reproduce threshold
    pcces reproduce safe --scale paper --task CartSafe-v0 --processes 4
    pcces reproduce --page docs/results.md
    """
    store = Store(out)
    with refusing():
        at_least_one(seeds=seeds, iterations=iterations, processes=processes)
        keywords = asked(engine, ray_address)
        if not names:
            none_of(scale=scale, seeds=seeds, iterations=iterations, task=task, algorithm=algorithm, engine=engine)
        chosen = [scaled(find(name), scale or "quick", seeds, iterations) for name in names or []]
        studied = only(chosen, task, algorithm)
        within_protocol([find(name) for name in names or []], seeds, iterations)
        if engine == "device":
            for name in dict.fromkeys(arm.task for e in studied for arm in e.arms):
                resolve(name, engine)  # a simulator is none of its tasks
        if write is not None and write.is_dir():
            raise ValueError(f"{write} is a folder: give the page a name, such as {write / 'results.md'}")
        if not store.arms() and write is not None and not names:
            raise ValueError(f"there are no results in {out}: give their folder as --out, or NAME an experiment to run")
    failed: list[dict[str, str]] = []
    if names:
        study = Study(jobs_for(studied, store), store, processes, keywords)
        run(study)
        keep(studied, store)
        failed = [{"arm": named(job.arm), "task": job.arm.task, "error": job.error} for job in study.failed]
    if not store.arms():
        write = None  # all failed: a page about nothing would replace one about something
    if write is not None:
        text = page(store, write.parent / "img" / "results", write.parent)
        write.write_text(text, encoding="utf-8")
    show(studied or list(EXPERIMENTS.values()), store, failed, write, bool(names), as_json)
    if failed:
        raise typer.Exit(1)


def find(name: str) -> Experiment:
    """An experiment by name.

    >>> find("treshold")
    Traceback (most recent call last):
    ...
    ValueError: unknown experiment 'treshold'; did you mean 'threshold'?
    """
    if name not in EXPERIMENTS:
        near = difflib.get_close_matches(name, EXPERIMENTS, n=1)
        raise ValueError(
            f"unknown experiment {name!r}; "
            + (f"did you mean {near[0]!r}?" if near else f"of {', '.join(EXPERIMENTS)}")
        )
    return EXPERIMENTS[name]


def at_least_one(**given: int | None) -> None:
    """Refuse options that count something and are less.

    >>> at_least_one(seeds=0)
    Traceback (most recent call last):
    ...
    ValueError: --seeds must be at least 1, got 0
    """
    for name, value in given.items():
        if value is not None and value < 1:
            raise ValueError(f"--{name} must be at least 1, got {value}")


def within_protocol(experiments: Sequence[Experiment], seeds: int | None, iterations: int | None) -> None:
    """Refuse more than any of the experiments has: the pages about them would not show it.

    >>> within_protocol([EXPERIMENTS["mu"]], seeds=10, iterations=None)
    Traceback (most recent call last):
    ...
    ValueError: the protocol has 5 seeds: --seeds can only be fewer (`pcces train` takes any number)
    """
    most = {
        "seeds": (seeds, max((e.seeds for e in experiments), default=0)),
        "iterations": (iterations, max((arm.iterations for e in experiments for arm in e.arms), default=0)),
    }
    for name, (given, has) in most.items():
        if experiments and given is not None and given > has:
            raise ValueError(
                f"the protocol has {has} {name}: --{name} can only be fewer (`pcces train` takes any number)"
            )


def none_of(**given: Any) -> None:
    """Refuse options about what is run, where nothing is."""
    for name, value in given.items():
        if value:
            raise ValueError(f"--{name} is about what to run: NAME an experiment, of {', '.join(EXPERIMENTS)}")


def only(experiments: Sequence[Experiment], tasks: list[str] | None, algorithms: list[str] | None) -> list[Experiment]:
    """The experiments with the arms that were asked for."""
    arms = [arm for e in experiments for arm in e.arms]
    among(tasks, [arm.task for arm in arms])
    among(algorithms, [arm.algorithm for arm in arms])
    kept = [replace(e, arms=[arm for arm in e.arms if wanted(arm, tasks, algorithms)]) for e in experiments]
    if experiments and not any(e.arms for e in kept):
        raise ValueError("no arm of these experiments is on that task with that algorithm")
    return kept


def among(names: list[str] | None, there: Sequence[str]) -> None:
    """Refuse names that no arm has."""
    for name in names or []:
        if name not in there:
            raise ValueError(f"no arm of these experiments has {name!r}; there are {', '.join(dict.fromkeys(there))}")


def wanted(arm: Arm, tasks: list[str] | None, algorithms: list[str] | None) -> bool:
    """Whether an arm was asked for."""
    return (not tasks or arm.task in tasks) and (not algorithms or arm.algorithm in algorithms)


def asked(engine: str | None, ray_address: str | None) -> dict[str, Any]:
    """Keywords of `train_seeds`.

    >>> asked("gpu", None)
    Traceback (most recent call last):
    ...
    ValueError: unknown engine 'gpu'; there are device, local, ray
    """
    if engine is not None and engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; there are {', '.join(ENGINES)}")
    checked_engine(engine or "device", None, ray_address, None)
    given = {"engine": engine, "ray_address": ray_address}
    return {name: value for name, value in given.items() if value is not None}


def run(study: Study) -> None:
    """Run a study with a display of how far it is, and how long it will take."""
    if not study.jobs:
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what a batch system ends us with leaves nothing behind
    with Display(study) as display:
        try:
            study.run(display.update)
        except KeyboardInterrupt:
            typer.echo("\ninterrupted; the same command goes on from here", err=True)
            raise typer.Exit(130) from None


class Display:
    """One line on standard error: arms done, running, time left."""

    def __init__(self, study: Study):
        self.study, self._terminal, self._last = study, sys.stderr.isatty(), 0.0
        self._live: Any = None

    def __enter__(self) -> Display:
        if self._terminal:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True), refresh_per_second=4)
            self._live.start()
        return self

    def update(self, study: Study) -> None:
        """Refresh, on a terminal at once and elsewhere every half minute."""
        if self._live is not None:
            self._live.update("\n".join([self.line(), *self.running()]))
        elif time.perf_counter() - self._last > 30:
            self._last = time.perf_counter()
            print("; ".join([self.line(), *self.running()]), file=sys.stderr, flush=True)

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
            f"{job.arm.task} {named(job.arm)}: {self.far(job)}"
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


def show(
    experiments: Iterable[Experiment], store: Store, failed: list[dict[str, str]], written: Path | None, ran: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """What is there now, on standard output."""
    experiments = list(experiments)
    if as_json:
        done = {
            e.name: [{"arm": one.ran.to_dict(), "runs": list(one.runs.values())} for one in known(e, store)]
            for e in experiments
        }
        typer.echo(json.dumps({"results": done, "failed": failed, "page": str(written) if written else None}))
        return
    for e in experiments:
        found = known(e, store)
        lengths = " or ".join(map(str, sorted({arm.iterations for arm in e.arms})))
        scale = f", {e.seeds} seed{'s' * (e.seeds != 1)}, {lengths} iterations" if ran else ""
        typer.echo(f"{e.name}: {e.title} ({e.where}); {len(found)} of {len(e.arms)} arms have results{scale}")
        if ran and found:
            typer.echo("\n".join(table(*finals(e, found))))
            typer.echo(f"{judged(EXPERIMENTS[e.name], found)[0]}; the whole page: pcces report {store.folder}\n")
    for one in failed:
        last = one["error"].strip().splitlines()[-1]
        typer.echo(f"failed: {one['task']} {one['arm']}: {last}", err=True)
    if written:
        typer.echo(f"page: {written}")
