"""`pcces render`: a policy at work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pcces.cli.common import CostAddress, Greedy, Json, Modules, RunFolder, announce, playable
from pcces.cli.ending import refusing
from pcces.support.files import check_writable


def render(
    path: RunFolder,
    out: Annotated[Path | None, typer.Option(show_default="RUN/policy.gif", help="The animation.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the episode.")] = 0,
    greedy: Greedy = False,
    modules: Modules = None,
    cost: CostAddress = None,
    as_json: Json = False,
) -> None:
    """Write an animation of one episode (GIF).

    \b
    pcces render runs/CartSafe-v0/pcces-default-seed0 --seed 7
    """
    from pcces.rl.film import film

    with refusing():
        runs = playable([path], modules, cost)
        if len(runs) > 1:
            raise ValueError(f"{path} has {len(runs)} runs: give one of them, such as {runs[0].path}")
        target = out or path / "policy.gif"
        if target.suffix != ".gif":
            raise ValueError(f"the animation must be a .gif, got {target}")
        check_writable(target)
        made = film(runs[0], seed, greedy)
    made.save(target)
    costs = dict(zip(runs[0].problem.cost_names, made.costs))
    numbers = {"steps": made.steps, "return": round(made.total, 6), "costs": costs}
    announce({"animation": target, "frames": made.frames, **numbers}, as_json)
