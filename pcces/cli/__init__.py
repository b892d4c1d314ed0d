"""The command line: `pcces train | evaluate | certify | plot | render | report | reproduce | envs | bench`.

Results go to standard output (with --json as one object), everything else to standard error. Exit codes: 0 all is well and
certified, 1 the work is done but a policy is not certified, 2 the request cannot be met, 130 interrupted.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pcces.cli.pages import plot, report
from pcces.cli.policies import certify, evaluate, render
from pcces.cli.speed import bench
from pcces.cli.studies import reproduce
from pcces.cli.tasks import envs
from pcces.cli.training import train

app = typer.Typer(
    help="Train policies that keep their cost limits, and know how sure that is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (train, evaluate, certify, plot, report, render, reproduce, envs, bench):
    app.command()(command)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("pcces"))
        raise typer.Exit
