"""What the policy of a run does: `pcces evaluate`, `pcces certify`, `pcces render`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pcces.cli.common import (
    CostAddress,
    Greedy,
    Json,
    Modules,
    OtherEngine,
    RunFolder,
    RunFolders,
    announce,
    described,
    playable,
    refusing,
    show,
    text_table,
)


def evaluate(
    paths: RunFolders,
    episodes: Annotated[int, typer.Option(min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="Other episodes.")] = 1_000_000,
    greedy: Greedy = False,
    engine: OtherEngine = None,
    modules: Modules = None,
    cost: CostAddress = None,
    as_json: Json = False,
) -> None:
    """Play fresh episodes with a run's policy.

    \b
    pcces evaluate runs/CartSafe-v0/pcces-default-seed0 --episodes 5000
    """
    with refusing():
        runs = playable(paths, modules, cost, engine)
    found = [{"path": run.path, **run.evaluate(episodes, seed, greedy, engine)} for run in runs]
    if as_json:
        show({"runs": found})
        return
    rows = []
    for one in found:
        rows.append([one["path"], "return", f"{one['return']:.4g} ± {one['return_error']:.2g}", ""])
        for i, (name, limit) in enumerate(zip(one["cost_names"], one["thresholds"])):
            rows.append(["", name, f"{one['costs'][i]:.4g} ± {one['costs_error'][i]:.2g}", f"limit {limit:g}"])
        rows += [["", name, f"{one[name]:.4g} ± {one[f'{name}_error']:.2g}", ""] for name in ("entropy", "length")]
    typer.echo(text_table(["run", f"mean of {episodes}", "± standard error", ""], rows))


def certify(
    paths: RunFolders,
    episodes: Annotated[
        int | None, typer.Option(min=2, show_default="as many as the run's own certificate took")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Between 0 and 1.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Other episodes.")] = 2_000_000,
    greedy: Greedy = False,
    engine: OtherEngine = None,
    modules: Modules = None,
    cost: CostAddress = None,
    as_json: Json = False,
) -> None:
    """Put a run's policy to the test again.

    Other fresh episodes decide; the run's own certificate stays as it is. Exit code 1 if it does not hold.

    \b
    pcces certify runs/CartSafe-v0/pcces-default-seed0 --episodes 10000 --confidence 0.99
    """
    with refusing():
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
        runs = playable(paths, modules, cost, engine)
    tested = [run.certified(episodes, seed, confidence, engine, greedy=greedy) for run in runs]
    if as_json:
        show({"runs": [described(run) for run in tested]})
    else:
        for run in tested:
            typer.echo(f"{run.path}: {run.words()}" if len(tested) > 1 else run.words())
    failed = [run for run in tested if run.certificate is not None and not run.certificate.holds]
    for run in failed:
        if run.keeps_limits():
            more = 4 * run.final["episodes"]
            typer.echo(
                f"{run.path}: the means keep their limits; more episodes may show it: --episodes {more}", err=True
            )
    if failed:
        raise typer.Exit(1)


def render(
    path: RunFolder,
    out: Annotated[Path | None, typer.Option(show_default="RUN/policy.gif", help="The animation.")] = None,
    seed: Annotated[int, typer.Option(help="Another episode.")] = 0,
    greedy: Greedy = False,
    modules: Modules = None,
    cost: CostAddress = None,
    as_json: Json = False,
) -> None:
    """Film one episode of a run's policy (GIF).

    \b
    pcces render runs/CartSafe-v0/pcces-default-seed0 --seed 7
    """
    from pcces.rl.film import film

    with refusing():
        runs = playable([path], modules, cost)
        if len(runs) > 1:
            raise ValueError(f"{path} holds {len(runs)} runs: give one of them, such as {runs[0].path}")
        target = out or path / "policy.gif"
        if target.suffix != ".gif":
            raise ValueError(f"the animation must be a .gif, got {target}")
        made = film(runs[0], seed, greedy)
    made.save(target)
    costs = dict(zip(runs[0].problem.cost_names, made.costs))
    numbers = {"steps": made.steps, "return": round(made.total, 6), "costs": costs}
    announce({"animation": target, "frames": made.frames, **numbers}, as_json)
