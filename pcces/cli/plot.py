"""`pcces plot`: the curves of runs as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pcces.cli.common import Json, Modules, Over, RunFolders, announce, loaded, together
from pcces.cli.ending import refusing
from pcces.support.files import check_writable


def plot(
    paths: RunFolders,
    out: Annotated[
        Path | None, typer.Option(show_default="RUN/curves.png", help="The picture: .png, .pdf or .svg.")
    ] = None,
    over: Over = "iteration",
    modules: Modules = None,
    as_json: Json = False,
) -> None:
    """Draw the curves of runs on one task.

    Several seeds are drawn as a mean with a band of one standard deviation. Other runs are separate lines.

    \b
    pcces plot runs/CartSafe-v0/pcces-*
    pcces plot runs/CartSafe-v0/pcces-* --over steps --out steps.pdf
    """
    from pcces.report import charts, draw

    with refusing():
        runs = loaded(paths, modules)
        names = sorted({run.config["task"] for run in runs})
        if len(names) > 1:
            raise ValueError(f"a picture shows one task, but these runs are of {', '.join(names)}; use `pcces report`")
        if not any(run.metrics.get("iteration") for run in runs):
            raise ValueError("there is nothing to draw yet: no iteration is finished")
        path = out or together(paths) / "curves.png"
        if path.suffix not in (".png", ".pdf", ".svg"):
            raise ValueError(f"the picture must be a .png, .pdf or .svg, got {path}")
        drawn = charts(runs, over)
        check_writable(path)
    draw(drawn, path, names[0])
    announce({"picture": path}, as_json)
