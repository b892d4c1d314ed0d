"""Curves and pages about runs, studies and searches: `pcces plot`, `pcces report`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pcces.cli.common import Json, Modules, RunFolders, announce, loaded, refusing, together
from pcces.rl.run import Run

if TYPE_CHECKING:
    from pcces.report import Chart, Page


def plot(
    paths: RunFolders,
    out: Annotated[
        Path | None, typer.Option(show_default="RUN/curves.png", help="The picture: .png, .pdf or .svg.")
    ] = None,
    modules: Modules = None,
    as_json: Json = False,
) -> None:
    """Draw the curves of runs on one task.

    Seeds become a mean with a band of one standard deviation, other differences lines of their own.

    \b
    pcces plot runs/CartSafe-v0/pcces-*
    """
    from pcces import report

    with refusing():
        runs = loaded(paths, modules)
        names = sorted({run.config["task"] for run in runs})
        if len(names) > 1:
            raise ValueError(
                f"a picture shows one task, these runs are of {', '.join(names)}; `pcces report` takes all"
            )
        if not any(run.metrics.get("iteration") for run in runs):
            raise ValueError("there is nothing to draw yet: no iteration is finished")
        path = out or together(paths) / "curves.png"
        if path.suffix not in (".png", ".pdf", ".svg"):
            raise ValueError(f"the picture must be a .png, .pdf or .svg, got {path}")
    report.draw(report.charts(runs), path, names[0])
    announce({"picture": path}, as_json)


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
        Path | None, typer.Option(help="Draw its curves into this folder, too, as PNG and PDF.", show_default=False)
    ] = None,
    optimum: Annotated[
        float | None,
        typer.Option(
            help="Of a search: the least feasible value of f, for the theory's Lyapunov function.", show_default=False
        ),
    ] = None,
    modules: Modules = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page about one or more runs, or about a study.

    Certificates, curves, an animation, final numbers and configuration; one file, works offline. Of a study: the paper's
    claims and the verdict on each figure and table.

    \b
    pcces report runs/CartSafe-v0/pcces-* --out cartsafe.html
    pcces report results --figures paper/figures
    pcces report search.npz --optimum 0
    """
    from pcces.report import draw_both

    with refusing():
        page, pictures, beside = subject(paths, modules, optimum)
        target = out / beside.name if out is not None and out.is_dir() else out or beside
        target.parent.mkdir(parents=True, exist_ok=True)
        if figures is not None and figures.exists() and not figures.is_dir():
            raise ValueError(f"--figures takes a folder, but {figures} is a file")
    path = page().save(target)
    said: dict[str, Any] = {"report": path}
    if figures is not None:
        drawn = [draw_both(charts, figures, name, columns) for name, (charts, columns) in pictures().items()]
        said["figures"] = [str(one) for both in drawn for one in both]
    announce(said, as_json)


Subject = tuple[Callable[[], "Page"], Callable[[], "dict[str, tuple[list[Chart], int]]"], Path]


def subject(paths: Sequence[Path], modules: Sequence[str] | None = None, optimum: float | None = None) -> Subject:
    """What a report is about: its page, its pictures (charts and how many stand beside each other), where it goes."""
    from pcces import report
    from pcces.blackbox.optimizer import Optimizer
    from pcces.report.search import charts, search_page
    from pcces.rl.film import ordinary_film
    from pcces.studies import study_page
    from pcces.studies.arms import Store

    first = paths[0]
    if len(paths) == 1 and first.is_file():
        if first.suffix != ".npz":
            raise ValueError(f"{first} is no search saved by Optimizer.save (an .npz file), and no folder of runs")
        result = Optimizer.load(first).result
        return (
            lambda: search_page(result, optimum),
            lambda: {first.stem: (charts(result, optimum), 2)},
            first.with_suffix(".html"),
        )
    if optimum is not None:
        raise ValueError("--optimum is of a search saved by Optimizer.save")
    if len(paths) == 1 and Store(first).arms():
        store = Store(first)
        say = partial(typer.echo, err=True)
        return lambda: study_page.study_page(store, say), lambda: study_page.pictures(store), first / "report.html"
    by_task: dict[str, list[Run]] = {}
    for run in loaded(paths, modules):
        by_task.setdefault(run.config["task"].replace("/", "-"), []).append(run)
    runs = [run for some in by_task.values() for run in some]
    return (
        lambda: report.make_page(runs, ordinary_film),
        lambda: {task: (report.charts(some), 2) for task, some in by_task.items()},
        together(paths) / "report.html",
    )
