"""`pcces certify`: a new certificate for a policy."""

from __future__ import annotations

from typing import Annotated

import typer

from pcces.cli.common import (
    CostAddress,
    Greedy,
    Json,
    Modules,
    OtherEngine,
    RunFolders,
    described,
    playable,
    show,
)
from pcces.cli.ending import NOT_CERTIFIED, refusing, tell
from pcces.rl.seeds import checked_seed
from pcces.support.streams import say
from pcces.support.text import printable


def certify(
    paths: RunFolders,
    episodes: Annotated[
        int | None, typer.Option(min=2, show_default="as many as the run's own certificate took")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Between 0 and 1.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the episodes.")] = 2_000_000,
    greedy: Greedy = False,
    engine: OtherEngine = None,
    modules: Modules = None,
    cost: CostAddress = None,
    as_json: Json = False,
) -> None:
    """Certify the policy of a run again.

    New fresh episodes decide. The certificate of the run does not change. The exit code is 1 if the new one does not hold.

    \b
    pcces certify runs/CartSafe-v0/pcces-default-seed0 --episodes 10000 --confidence 0.99
    \f
    Many parameters: each is an argument or an option of the command.
    """
    with refusing():
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
        seed = checked_seed(seed, "--seed")
        runs = playable(paths, modules, cost, engine)
    tested = [run.certified(episodes, seed, confidence, engine, greedy=greedy) for run in runs]
    if as_json:
        show({"runs": [described(run) for run in tested]})
    else:
        for run in tested:
            tell(f"{printable(run.path)}: {run.words()}" if len(tested) > 1 else run.words())
    failed = [run for run in tested if run.certificate is not None and not run.certificate.holds]
    for run in failed:
        if run.keeps_limits():
            more = 4 * run.final["episodes"]
            say(f"{printable(run.path)}: the means keep their limits; more episodes may certify it: --episodes {more}")
    if failed:
        raise typer.Exit(NOT_CERTIFIED)
