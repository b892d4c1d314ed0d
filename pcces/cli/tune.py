"""`pcces tune`: settings that suit a task."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from pcces.cli.common import (
    AlgorithmName,
    CostAddress,
    EnvArgs,
    Further,
    Json,
    MaxSteps,
    TaskName,
    Threshold,
    as_option,
    env_args_in,
    function,
    further,
    given,
    look_here,
    show,
)
from pcces.cli.ending import INTERRUPTED, refusing, tell
from pcces.cli.train import CostBounds, EngineName, EpisodeCostBounds, LimitWords, Workers, bounds_in
from pcces.envs.lookup import name_of
from pcces.policies import algorithm_name, tuning
from pcces.rl.tuning import FILE, as_text
from pcces.support.streams import say
from pcces.support.text import printable


def tune(
    task: TaskName,
    steps: Annotated[float, typer.Option(metavar="NUMBER", help="Environment steps of each training.")] = 1e6,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", show_default="30 trainings", help="Environment steps of all trainings together."
        ),
    ] = None,
    algorithm: AlgorithmName = None,
    threshold: Threshold = None,
    limit: LimitWords = None,
    engine: EngineName = None,
    workers: Workers = None,
    cost: CostAddress = None,
    cost_bounds: CostBounds = None,
    episode_cost_bounds: EpisodeCostBounds = None,
    env_arg: EnvArgs = None,
    max_steps: MaxSteps = None,
    out: Annotated[
        Path | None, typer.Option(show_default="runs/TASK/ALGORITHM-tune", help="The folder to write.")
    ] = None,
    set_: Further = None,
    as_json: Json = False,
) -> None:
    """Search for settings that suit a task.

    The search varies the settings that matter. It trains many candidates with one seed, the better half with another, and so
    on. Then it compares the best with the defaults on fresh seeds. To resume a stopped search, type the same command again.

    \b
    pcces tune CartSafe-v0 --steps 3e5
    pcces tune Pendulum-v1 --engine local --steps 2e5 --budget 3e6 --set hidden=32,32
    \f
    Many parameters: each is an argument or an option of the command.
    """
    with refusing():
        look_here(task)
        name = printable(name_of(task))
        asked = given(
            algorithm=algorithm and algorithm_name(algorithm), threshold=tuple(threshold) if threshold else None,
            limits=limit, engine=engine, workers=workers, env_args=env_args_in(env_arg), max_steps=max_steps,
            cost=None if cost is None else function(cost),
        )  # fmt: skip
        for option, text in (("cost_bounds", cost_bounds), ("episode_cost_bounds", episode_cost_bounds)):
            asked |= {} if text is None else {option: bounds_in(text, option)}
        fixed = further(set_, asked)
        folder = out or Path("runs") / name / f"{asked.get('algorithm', 'pcces')}-tune"
        search = tuning(task, steps=steps, budget=budget, out=folder, **asked | fixed)
    say(f"{search.trainings} trainings of {steps:.4g} steps: {search.count} candidates; saved in {printable(folder)}")
    try:
        tuned = search.run(progress=True)
    except KeyboardInterrupt:
        say(f"\ninterrupted after {len(search.trials)} of {search.trainings} trainings; the same command continues")
        raise typer.Exit(INTERRUPTED) from None
    words = ["pcces", "train", name, "--steps", f"{steps:g}"]
    typed: dict[str, Any] = {
        "algorithm": algorithm, "threshold": threshold, "limit": limit, "engine": engine, "workers": workers, "cost": cost,
        "cost_bounds": cost_bounds, "episode_cost_bounds": episode_cost_bounds, "env_arg": env_arg, "max_steps": max_steps,
        "set": [f"{setting}={as_text(value)}" for setting, value in (fixed | tuned.settings).items()],
    }  # fmt: skip
    for option, value in given(**typed).items():
        for each in value if isinstance(value, list) else [value]:
            words += [as_option(option), str(each)]
    if as_json:
        found: dict[str, Any] = {"settings": tuned.settings, "words": tuned.words, "command": shlex.join(words)}
        show(found | {"path": folder / FILE, "trials": [trial._asdict() for trial in tuned.trials]})
        return
    tell(tuned.words)
    if tuned.settings:
        tell(printable(shlex.join(words)))
