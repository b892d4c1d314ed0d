"""`pcces report`: a page about runs, about a study, or about a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pcces.cli.common import Json, Modules, Over, announce, loaded, together
from pcces.cli.ending import refusing
from pcces.rl.run import Run
from pcces.support.files import check_writable
from pcces.support.streams import say

if TYPE_CHECKING:
    from pcces.report import Chart, Page


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Folders of runs, or the folder of a study (`pcces reproduce`), or a search saved by `Optimizer.save`.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(show_default="RUN/report.html", help="The page, or a folder for it.")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also write the curves to this folder, as PNG and PDF.", show_default=False)
    ] = None,
    optimum: Annotated[
        float | None,
        typer.Option(
            help="For a search: the smallest feasible value of f, to draw the Lyapunov function of the theory.",
            show_default=False,
        ),
    ] = None,
    over: Over = "iteration",
    modules: Modules = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page about one or more runs, or about a study.

    The page has certificates, curves, an animation, final numbers and the configuration. It is one file and works offline. For
    a study it has the claims of the paper, and the verdict on each figure and table.

    \b
    pcces report runs/CartSafe-v0/pcces-* --out cartsafe.html
    pcces report results --figures paper/figures
    pcces report search.npz --optimum 0
    """
    from pcces.report import draw_both

    with refusing():
        about = subject(paths, modules, optimum, over)
        target = out / about.path.name if out is not None and out.is_dir() else out or about.path
        check_writable(target)
        if figures is not None and figures.exists() and not figures.is_dir():
            raise ValueError(f"--figures takes a folder, but {figures} is a file")
    path = about.page().save(target)
    said: dict[str, Any] = {"report": path}
    if figures is not None:
        drawn = [draw_both(charts, figures, name, columns) for name, (charts, columns) in about.pictures().items()]
        said["figures"] = [str(picture) for both in drawn for picture in both]
    announce(said, as_json)


class Subject(NamedTuple):
    """What a report is about: its page, its pictures (charts, and how many stand beside each other), where it goes."""

    page: Callable[[], Page]
    pictures: Callable[[], dict[str, tuple[list[Chart], int]]]
    path: Path


def subject(
    paths: Sequence[Path],
    modules: Sequence[str] | None = None,
    optimum: float | None = None,
    over: str = "iteration",
) -> Subject:
    """A search, a study or runs: whatever is there."""
    first = paths[0]
    of_runs = not (len(paths) == 1 and (first.is_file() or any(first.glob("*_*_*.json"))))
    if over != "iteration" and not of_runs:
        raise ValueError("--over is only for runs; a study or a search has one axis")
    if len(paths) == 1 and first.is_file():
        return search_in(first, optimum)
    if optimum is not None:
        raise ValueError("--optimum is only for a search saved by Optimizer.save")
    if len(paths) == 1 and any(first.glob("*_*_*.json")) and (study := study_in(first)) is not None:
        return study
    return runs_in(paths, modules, over)


def search_in(file: Path, optimum: float | None) -> Subject:
    """A search saved by `Optimizer.save`."""
    from pcces.blackbox.optimizer import Optimizer
    from pcces.report.search import charts, search_page

    if file.suffix != ".npz":
        raise ValueError(f"{file} is neither a search saved by Optimizer.save (an .npz file) nor a folder of runs")
    result = Optimizer.load(file).result
    return Subject(
        lambda: search_page(result, optimum),
        lambda: {file.stem: (charts(result, optimum), 2)},
        file.with_suffix(".html"),
    )


def study_in(folder: Path) -> Subject | None:
    """A study by `pcces reproduce`, if that is what the files in the folder are of."""
    from pcces.studies import html_page
    from pcces.studies.store import Store

    store = Store(folder)
    if not store.arms():
        return None
    return Subject(lambda: html_page.make_page(store, say), lambda: html_page.pictures(store), folder / "report.html")


def runs_in(paths: Sequence[Path], modules: Sequence[str] | None, over: str) -> Subject:
    """Runs, task by task."""
    from pcces.report import charts, make_page
    from pcces.rl.film import ordinary_film

    by_task: dict[str, list[Run]] = {}
    for run in loaded(paths, modules):
        by_task.setdefault(run.config["task"].replace("/", "-"), []).append(run)
    drawn = {task: charts(runs_on_task, over) for task, runs_on_task in by_task.items()}
    runs = [run for runs_on_task in by_task.values() for run in runs_on_task]
    return Subject(
        lambda: make_page(runs, ordinary_film, over),
        lambda: {task: (some, 2) for task, some in drawn.items()},
        together(paths) / "report.html",
    )
