"""`pcces evaluate`: the means of fresh episodes."""

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
    playable,
    print_table,
    show,
)
from pcces.cli.ending import refusing
from pcces.rl.seeds import checked_seed


def evaluate(
    paths: RunFolders,
    episodes: Annotated[int, typer.Option(min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the episodes.")] = 1_000_000,
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
        seed = checked_seed(seed, "--seed")
        runs = playable(paths, modules, cost, engine)
    evaluations = [{"path": run.path, **run.evaluate(episodes, seed, greedy, engine)} for run in runs]
    if as_json:
        show({"runs": evaluations})
        return
    rows = []
    for means in evaluations:
        rows.append([means["path"], "return", with_error(means["return"], means["return_error"]), ""])
        costs = map(with_error, means["costs"], means["costs_error"])
        rows += [
            ["", name, cost, "" if "limits" in means else f"limit {t:g}"]
            for name, cost, t in zip(means["cost_names"], costs, means["thresholds"])
        ]
        rows += [
            ["", limit, f"{value:.4g}", ""] for limit, value in zip(means.get("limits", []), means.get("limited", []))
        ]
        rows += [["", name, with_error(means[name], means[f"{name}_error"]), ""] for name in ("entropy", "length")]
    print_table(["run", f"mean of {episodes}", "± standard error", ""], rows)


def with_error(mean: float, error: float) -> str:
    """A mean and its standard error.

    >>> with_error(12.3456, 0.789)
    '12.35 ± 0.79'
    """
    return f"{mean:.4g} ± {error:.2g}"
