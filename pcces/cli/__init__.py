"""The command line: `pcces train | tune | evaluate | certify | plot | render | report | reproduce | envs | settings | bench`.

Results go to standard output (with --json as one object), everything else to standard error, and an exit code says how it
went (`pcces.cli.ending`). Every command is a module of its name, and a function whose parameters are the command's
arguments and options.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pcces.cli import bench, certify, envs, evaluate, plot, render, report, reproduce, settings, train, tune
from pcces.cli.command import Command
from pcces.cli.ending import ending

app = typer.Typer(
    help="Train policies under cost limits, and certify that they keep them.",
    epilog=(
        "Exit codes: 0 done, and certified (or there are no limits); 1 done, but not certified; 2 the request cannot be met; 3 the work failed "
        "(a full disk, no workers, a bug of pcces); 130 interrupted."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Train(Command):
    """The one with so many options that they need groups."""

    panels = train.PANELS


for command in (
    train.train, tune.tune, evaluate.evaluate, certify.certify, plot.plot, report.report, render.render, reproduce.reproduce,
    envs.envs, settings.settings, bench.bench,
):  # fmt: skip
    app.command(cls=Train if command is train.train else Command)(ending(command))


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("pcces"))
        raise typer.Exit
