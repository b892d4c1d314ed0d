"""`pcces reproduce`: run the paper's experiments, as far as they are not done yet, and write the page about them.

The studies are imported when the command runs, and by no other command but `pcces report` of a study.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pcces.cli.common import Json, given, print_table, show
from pcces.cli.ending import FAILED, INTERRUPTED, refusing, tell
from pcces.engines import ENGINES
from pcces.envs.lookup import resolve
from pcces.rl.request import checked_engine
from pcces.support import streams
from pcces.support.files import write_atomically

if TYPE_CHECKING:
    from pcces.studies.experiment import Experiment
    from pcces.studies.study import Study

# Of `pcces.studies.catalogue`, for the help.
EXPERIMENTS = (
    "entropy", "safe", "samples", "variance", "entropy-bounds", "threshold", "cpo", "mu", "marks", "walkers",
)  # fmt: skip


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help=f"{', '.join(EXPERIMENTS)}. None: list results.", show_default=False),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="paper: the full protocol. quick: minutes on two cores.", show_default="quick")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds.", show_default="by --scale")] = None,
    iterations: Annotated[int | None, typer.Option(help="Number of iterations.", show_default="by --scale")] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task.", show_default=False)] = None,
    algorithm: Annotated[list[str] | None, typer.Option(help="Only this algorithm.", show_default=False)] = None,
    processes: Annotated[int, typer.Option(help="Arms that run at a time. Each has its share of the cores.")] = 1,
    engine: Annotated[
        str | None, typer.Option(show_default="device for tasks in JAX, else local", help="As for `pcces train`.")
    ] = None,
    ray_address: Annotated[str | None, typer.Option(help="Address for --engine ray.", show_default=False)] = None,
    out: Annotated[Path, typer.Option(help="The folder of results, which are not computed again.")] = Path("results"),
    write: Annotated[
        Path | None, typer.Option("--page", help="Write a page about all results, and a short one.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments again.

    Results are stored by configuration. Finished runs are not repeated, and a stopped study continues.

    \b
    pcces reproduce
    pcces reproduce threshold
    pcces reproduce safe --scale paper --task CartSafe-v0 --processes 4
    pcces reproduce --page docs/results/experiments.md
    \f
    Many parameters: each is an argument or an option of the command.
    """
    from pcces.studies import brief_page, catalogue, markdown_page, policies, protocol, selection
    from pcces.studies.store import Store
    from pcces.studies.study import Study, jobs_for

    store = Store(out)
    with refusing():
        at_least_one(seeds=seeds, iterations=iterations, processes=processes)
        engine_options = engine_asked(engine, ray_address)
        if not names:
            none_of(scale=scale, seeds=seeds, iterations=iterations, task=task, algorithm=algorithm, engine=engine)
        whole = [selection.find(name) for name in names or []]
        scaled = [protocol.scaled(experiment, scale or "quick", seeds, iterations) for experiment in whole]
        experiments = selection.only(scaled, task, algorithm)
        selection.within_protocol(whole, seeds, iterations)
        if engine == "device":
            for name in dict.fromkeys(arm.task for e in experiments for arm in e.arms):
                resolve(name, engine)  # a simulator is not one of its tasks
        if write is not None and write.is_dir():
            raise ValueError(f"{write} is a folder: give the page a name, such as {write / 'results.md'}")
        if not store.arms() and write is not None and not names:
            raise ValueError(f"there are no results in {out}: give their folder as --out, or NAME an experiment to run")
    study = Study(jobs_for(experiments, store), store, processes, engine_options)
    if names:
        run(study)
        policies.keep(experiments, store)
    if not store.arms():
        write = None  # all failed: a page about nothing would replace one about something
    if write is not None:
        text = markdown_page.make_page(store, write.parent / "img", write.parent)
        write_atomically(write, text.encode())
        brief = brief_page.make_brief_page(store, write.name)
        write_atomically(write.with_name(f"{write.stem}-in-brief.md"), brief.encode())
    say(experiments or list(catalogue.EXPERIMENTS.values()), study, write, as_json, ran=bool(names))
    if study.failed:
        raise typer.Exit(FAILED)


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


def none_of(**options: Any) -> None:
    """Refuse options about what is run, where nothing is."""
    for name, value in options.items():
        if value:
            raise ValueError(f"--{name} needs an experiment: NAME one of {', '.join(EXPERIMENTS)}")


def engine_asked(engine: str | None, ray_address: str | None) -> dict[str, Any]:
    """Keywords of `train_seeds`.

    >>> engine_asked("gpu", None)
    Traceback (most recent call last):
    ...
    ValueError: unknown engine 'gpu'; there are device, local, ray
    """
    if engine is not None and engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; there are {', '.join(ENGINES)}")
    checked_engine(engine or "device", None, ray_address, None)
    return given(engine=engine, ray_address=ray_address)


def run(study: Study) -> None:
    """Run a study with a display of how far it is, and how long it will take."""
    from pcces.studies.display import Display

    if not study.jobs:
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what a batch system ends us with leaves nothing behind
    with Display(study) as display:
        try:
            study.run(display.update)
        except KeyboardInterrupt:
            streams.say("\ninterrupted; the same command continues from here")
            raise typer.Exit(INTERRUPTED) from None


def say(experiments: Sequence[Experiment], study: Study, page: Path | None, as_json: bool, ran: bool) -> None:
    """What is there now, on standard output."""
    from pcces.studies import catalogue
    from pcces.studies.arm_results import results_of
    from pcces.studies.tables import final_table
    from pcces.studies.verdicts import judged

    store = study.store
    failed = [{"arm": job.arm.name, "task": job.arm.task, "error": job.error} for job in study.failed]
    results = {e.name: results_of(e, store) for e in experiments}
    if as_json:
        done = {
            name: [{"arm": result.ran.to_dict(), "runs": list(result.runs.values())} for result in arms]
            for name, arms in results.items()
        }
        show({"results": done, "failed": failed, "page": page})
        return
    for e in experiments:
        there = results[e.name]
        lengths = " or ".join(map(str, sorted({arm.iterations for arm in e.arms})))
        scale = f", {e.seeds} seed{'s' * (e.seeds != 1)}, {lengths} iterations" if ran else ""
        tell(f"{e.name}: {e.title} ({e.where}); {len(there)} of {len(e.arms)} arms have results{scale}")
        if ran and there:
            print_table(*final_table(e, there))
            verdict, _ = judged(catalogue.EXPERIMENTS[e.name], there)
            tell(f"{verdict}; all results: pcces report {store.folder}\n")
    for failure in failed:
        last = failure["error"].strip().splitlines()[-1]
        streams.say(f"failed: {failure['task']} {failure['arm']}: {last}")
    if page:
        tell(f"page: {page}")
