"""`pcces bench`: how fast training is here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer

from pcces.cli.common import (
    AlgorithmName,
    CostAddress,
    EnvArgs,
    Further,
    Json,
    MaxSteps,
    Population,
    PresetName,
    TaskName,
    Threshold,
    env_args_in,
    function,
    further,
    given,
    look_here,
    print_table,
    show,
)
from pcces.cli.ending import refusing
from pcces.envs.lookup import resolve
from pcces.rl.progress import duration
from pcces.support.streams import say

LOOSE = 1e9  # a limit on costs that have none


def bench(
    task: TaskName,
    algorithm: AlgorithmName = None,
    preset: PresetName = None,
    population: Population = None,
    seeds: Annotated[int, typer.Option(help="Number of seeds that are trained at once.")] = 1,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            show_default="device for tasks in JAX, else local", help="device, local or ray. Repeat it to compare."
        ),
    ] = None,
    workers: Annotated[
        list[int] | None,
        typer.Option(
            show_default="one per core", help="Number of workers, for the engines local and ray. Repeat it to compare."
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Seconds to time each, after its first iteration.")] = 5.0,
    iterations: Annotated[int, typer.Option(help="Length of the training whose duration is predicted.")] = 300,
    threshold: Threshold = None,
    cost: CostAddress = None,
    env_arg: EnvArgs = None,
    max_steps: MaxSteps = None,
    set_: Further = None,
    as_json: Json = False,
) -> None:
    """Measure the speed of training on this machine, by engine and number of workers.

    It times the first iterations. Episodes may get longer or shorter while a policy learns. Steps after the end of an episode
    do not count. Costs without a limit are treated as limited, which takes the same time.

    \b
    pcces bench CartSafe-v0
    pcces bench CartPole-v1 --engine device --engine local --workers 1 --workers 2
    pcces bench HopperBulletEnv-v0 --preset paper --population 120 --set hidden=64,64
    pcces bench my_module:Plant-v0 --cost my_module:wear --workers 1 --workers 4
    \f
    Many parameters: each is an argument or an option of the command.
    """
    from pcces.policies import prepare
    from pcces.rl.speed import Speed, measure

    speeds: list[Speed] = []
    with refusing():
        if seeds < 1:
            raise ValueError(f"--seeds must be at least 1, got {seeds}")
        look_here(task)
        asked: dict[str, Any] = given(algorithm=algorithm, preset=preset, population=population, iterations=iterations)
        asked |= given(threshold=tuple(threshold) if threshold else None)
        own = given(cost=None if cost is None else function(cost), env_args=env_args_in(env_arg), max_steps=max_steps)
        asked |= further(set_, asked, ("algorithm", "preset", "population", "iterations"))
        engines: Sequence[str | None] = engine or (None,)
        counts: Sequence[int | None] = workers or (None,)
        for where in engines:
            for count in counts if where != "device" else (None,):
                say(f"timing {where or 'training'}{f' x{count}' if count else ''}")
                known, place = resolve(task, where, limited=bool(threshold), **own)
                if len(known.thresholds) != len(known.cost_names):
                    asked = {"threshold": (LOOSE,) * len(known.cost_names)} | asked
                training = partial(prepare, known, range(seeds), engine=place, workers=count, **asked)
                speeds.append(measure(training, seconds))
    if as_json:
        show({"task": task, "seeds": seeds, "iterations": iterations, "speeds": [speed._asdict() for speed in speeds]})
        return
    rows = []
    for speed in speeds:
        name = speed.engine if speed.workers is None else f"{speed.engine} x{speed.workers}"
        whole = duration(speed.first + (iterations - 1) * speed.iteration)
        rows.append([name, duration(speed.first), f"{1e3 * speed.iteration:.3g} ms", f"{speed.steps:,.0f}", whole])
    print_table(["engine", "first iteration", "iteration", "steps/s", f"{iterations} iterations"], rows)
