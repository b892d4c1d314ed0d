"""The command line: `pcces train | evaluate | certify | plot | render | report | reproduce | envs | bench`.

Results go to standard output (with --json as one object), everything else to standard error. Exit codes: 0 all is well and
certified, 1 the work is done but a policy is not certified, 2 the request cannot be met, 130 interrupted.

Every command is a module of its name, and a function whose parameters are the command's arguments and options.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pcces.cli import bench, certify, envs, evaluate, plot, render, report, reproduce, train

app = typer.Typer(
    help="Train policies that keep their cost limits, and know how sure that is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    train.train, evaluate.evaluate, certify.certify, plot.plot, report.report, render.render, reproduce.reproduce,
    envs.envs, bench.bench,
):  # fmt: skip
    app.command()(command)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("pcces"))
        raise typer.Exit
