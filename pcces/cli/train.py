"""`pcces train`: a policy, and its certificate."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from pcces.cli.common import (
    AlgorithmName,
    CostAddress,
    EnvArgs,
    EventFiles,
    Further,
    Init,
    Json,
    MaxSteps,
    Population,
    PresetName,
    TaskName,
    Threshold,
    Track,
    as_option,
    env_args_in,
    function,
    further,
    given,
    look_here,
)
from pcces.cli.conclusion import conclude
from pcces.cli.ending import FAILED, INTERRUPTED, REFUSED, in_words, refusing
from pcces.core.limits import from_dict
from pcces.engines.pool import PoolError
from pcces.envs.costs import NONE, CostBoundsError, CostError, UnlimitedCostError
from pcces.envs.lookup import name_of
from pcces.envs.making import check_options
from pcces.integrations.trackers import Tracking
from pcces.policies import algorithm_name, find_algorithm, prepare
from pcces.rl.folder import read_config
from pcces.rl.problem import named_limits
from pcces.rl.request import check_current, check_same
from pcces.rl.stopping import seconds_in
from pcces.rl.training import Training
from pcces.support.jsonable import interval
from pcces.support.streams import say
from pcces.support.text import printable

Iterations = Annotated[int | None, typer.Option(show_default="300", help="For ppo-lag, rcpo and cpo: epochs.")]
Steps = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="Budget of environment steps, such as 15e6, instead of --iterations. The certificate's"
        " episodes are counted apart.",
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        metavar="TIME",
        parser=seconds_in,
        help="Stop the training after this time, such as 90s, 10m or 2h, and certify.",
    ),
]
Target = Annotated[float | None, typer.Option(help="Stop at this mean return, if all limits are kept, and certify.")]
Patience = Annotated[
    float | None,
    typer.Option(metavar="STEPS", help="Stop after this many environment steps without a better return, and certify."),
]
Seed = Annotated[int | None, typer.Option(show_default="0", help="The same seed gives the same run.")]
Seeds = Annotated[
    int | None, typer.Option(help="Number of seeds, starting at --seed, trained in one compiled program.")
]
LimitWords = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME: LIMIT",
        help="A limit that need not be on the mean: 'off_centre: P(> 30) <= 0.05' (at most 5 % of the episodes cost "
        "more than 30), 'off_centre: q0.95 <= 40' or 'off_centre: CVaR0.1 <= 50'. Repeat it for each cost.",
    ),
]
EngineName = Annotated[
    str | None,
    typer.Option(
        show_default="device for tasks in JAX, else local",
        help="Where episodes run: device, local (worker processes) or ray (a cluster).",
    ),
]
Workers = Annotated[
    int | None, typer.Option(show_default="one per core", help="Number of workers, for the engines local and ray.")
]
RayAddress = Annotated[
    str | None, typer.Option(show_default="a new Ray on this machine", help="Address of the cluster for --engine ray.")
]
StepTimeout = Annotated[
    float | None,
    typer.Option(help="Seconds after which a step of a simulator counts as hung, and its episode as failed."),
]
CostBounds = Annotated[
    str | None,
    typer.Option(metavar="LOW,HIGH", show_default=False, help="Range of the cost of a simulator's step, or none."),
]
EpisodeCostBounds = Annotated[
    str | None,
    typer.Option(metavar="LOW,HIGH", show_default=False, help="Range of the cost of an episode, or none."),
]
Out = Annotated[
    Path | None, typer.Option(show_default="runs/TASK/ALGORITHM-PRESET-seedSEED", help="The folder to write.")
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Continue a run that was stopped or killed, or a finished one with more --iterations."
    ),
]


COSTS = ("cost", "cost_bounds", "episode_cost_bounds")
# The groups of its options in --help.
PANELS = {
    "Most used": ("algorithm", "steps", "threshold", "limit", "seed", "seeds", "out", "resume"),
    "How long": ("iterations", "max_time", "target", "patience"),
    "Settings": ("preset", "population", "init", "set_"),
    "The environment and its costs": ("env_arg", "max_steps", "cost", "cost_bounds", "episode_cost_bounds"),
    "Where it runs": ("engine", "workers", "ray_address", "step_timeout"),
    "What it writes": ("track", "tensorboard", "as_json"),
}


def train(
    task: TaskName,
    algorithm: AlgorithmName = None,
    preset: PresetName = None,
    iterations: Iterations = None,
    steps: Steps = None,
    max_time: MaxTime = None,
    target: Target = None,
    patience: Patience = None,
    population: Population = None,
    seed: Seed = None,
    seeds: Seeds = None,
    threshold: Threshold = None,
    limit: LimitWords = None,
    engine: EngineName = None,
    workers: Workers = None,
    ray_address: RayAddress = None,
    step_timeout: StepTimeout = None,
    cost: CostAddress = None,
    cost_bounds: CostBounds = None,
    episode_cost_bounds: EpisodeCostBounds = None,
    env_arg: EnvArgs = None,
    max_steps: MaxSteps = None,
    init: Init = None,
    out: Out = None,
    resume: Resume = False,
    track: Track = None,
    tensorboard: EventFiles = False,
    set_: Further = None,
    as_json: Json = False,
) -> None:
    """Train a policy and certify it on fresh episodes.

    The exit code is 0 only if the policy is certified to keep its limits with 95 % confidence. Without limits there is
    nothing to certify, and the exit code is 0 too.

    \b
    pcces train CartSafe-v0
    pcces train CartSafe-v0 --seeds 10 --threshold 20
    pcces train CartSafe-v0 --limit "off_centre: P(> 30) <= 0.05"
    pcces train CartSafe-v0 --iterations 1000 --set sigma0=0.2 --set hidden=32,32
    pcces train CartSafe-v0 --resume
    pcces train CartSafe-v0 --threshold 10 --init runs/CartSafe-v0/pcces-default-seed0
    pcces train CartSafe-v0 --steps 3e6 --algorithm cpo
    pcces train CartSafe-v0 --steps 9e6 --max-time 10m --target 490
    pcces train HopperBulletEnv-v0 --workers 8 --set hidden=64,64
    pcces train Pendulum-v1 --engine local --env-arg g=9.0 --max-steps 100
    pcces train CartSafe-v0 --algorithm ppo-lag --iterations 100 --set epoch_steps=10000
    \f
    Many parameters: each is an argument or an option of the command.

    Long: half of it names them.
    """
    options: dict[str, Any] = {
        "algorithm": algorithm, "preset": preset, "iterations": iterations, "steps": steps, "population": population,
        "threshold": tuple(threshold) if threshold else None, "limits": limit, "engine": engine, "workers": workers,
        "ray_address": ray_address, "step_timeout": step_timeout, "max_time": max_time, "target": target,
        "patience": patience, "init": init,
    }  # fmt: skip
    training: Training | None = None
    folder = out or Path()
    track = list(dict.fromkeys([*(track or ()), *["tensorboard"] * tensorboard]))
    kept_apart = given(cost=cost, ray_address=ray_address, track=track or None)  # from the folder
    try:
        with refusing():
            options |= {"env_args": env_args_in(env_arg), "max_steps": max_steps}
            name, together, numbers = name_of(task), seeds is not None, numbers_of(seed, seeds)
            look_here(task)
            asked = given(**options | {"algorithm": algorithm and algorithm_name(algorithm)})
            asked |= {} if cost is None else {"cost": function(cost)}
            for option, text in (("cost_bounds", cost_bounds), ("episode_cost_bounds", episode_cost_bounds)):
                asked |= {} if text is None else {option: bounds_in(text, option)}
            folder = out or default_folder(name, asked, numbers, together)
            if resume:
                there, together = seeds_in(folder, together)
                numbers = there if seed is None and seeds is None else numbers
                asked = resumed(name, folder / f"seed-{there[0]}" if together else folder, asked)
            asked |= further(set_, asked, (*options, "limit", "env_arg", "seed", "seeds", *COSTS, "out"))
            asked |= further(set_, asked, (*options, "limit", "seed", "seeds", *COSTS, "out"))
            tracking = Tracking(track, len(numbers))
            training = prepare(task, numbers, out=folder if together else [folder], resume=resume, **asked)
        with closing(tracking):
            training.run(progress=True, callback=tracking if track else None)
    except KeyboardInterrupt:
        interrupted(task, training, folder, kept_apart)
    except (CostError, OSError, MemoryError, PoolError) as error:
        stopped(error, task, training, folder, kept_apart)
    conclude(training.runs, folder, as_json)


def numbers_of(seed: int | None, seeds: int | None) -> Sequence[int]:
    """The seeds that --seed and --seeds ask for.

    >>> list(numbers_of(None, None)), list(numbers_of(5, 2))
    ([0], [5, 6])
    """
    if seeds is not None and seeds < 1:
        raise ValueError(f"--seeds must be at least 1, got {seeds}")
    return range(seed or 0, (seed or 0) + (seeds or 1))


def bounds_in(text: str, option: str = "cost_bounds") -> Any:
    """The two numbers in LOW,HIGH; or "none".

    >>> bounds_in("0,1.5"), bounds_in("None")
    ((0.0, 1.5), 'none')
    """
    if text.lower() == NONE:
        return NONE
    try:
        return tuple(map(float, text.split(",")))
    except ValueError as error:
        raise ValueError(f"{as_option(option)} takes two numbers, such as 0,1, or none; got {text!r}") from error


def default_folder(task: str, asked: dict[str, Any], seeds: Sequence[int], together: bool) -> Path:
    """The default folder of a run.

    >>> default_folder("CartSafe-v0", {"preset": "paper"}, [3], together=False).as_posix()
    'runs/CartSafe-v0/pcces-paper-seed3'
    >>> default_folder("CartSafe-v0", {"threshold": (20.0,)}, range(10), together=True).as_posix()
    'runs/CartSafe-v0/pcces-default-threshold20-seeds0-9'
    >>> default_folder("CartSafe-v0", {"limits": ["off_centre: P(> 30) <= 0.05"]}, [0], together=False).name
    'pcces-default-limit-off-centre-P-30-0.05-seed0'
    >>> default_folder("Pendulum-v1", {"env_args": {"g": 9.0}, "max_steps": 50}, [0], together=False).name
    'pcces-default-g9.0-max50-seed0'
    """
    name = f"{asked.get('algorithm', 'pcces')}-{asked.get('preset', 'default')}"
    if "threshold" in asked:
        name += "-threshold" + "-".join(f"{limit:g}" for limit in asked["threshold"])
    if "limits" in asked:
        words = "-".join(f"{what}-{limit}" for what, limit in named_limits(asked["limits"]).items())
        name += "-limit-" + _plain(words)
    for what, value in (asked.get("env_args") or {}).items():
        name += "-" + _plain(f"{what}{value}")
    name += f"-max{asked['max_steps']}" if "max_steps" in asked else ""
    name += "-init" if "init" in asked else ""
    which = f"seeds{seeds[0]}-{seeds[-1]}" if together else f"seed{seeds[0]}"
    return Path("runs") / task / f"{name}-{which}"


def _plain(words: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-")


def seeds_in(folder: Path, together: bool) -> tuple[list[int], bool]:
    """The seeds of the run, or runs, that a folder holds, and whether it holds several."""
    inside = sorted(folder.glob("seed-*/config.json"))
    if (folder / "config.json").exists() and not together:
        return [read_config(folder)["seed"]], False
    if not inside:
        raise FileNotFoundError(f"there is no run to continue in {folder}")
    return sorted(read_config(file.parent)["seed"] for file in inside), True


def resumed(task: str, path: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """What the run in a folder was asked for, and is asked for now, as the keywords of `prepare`."""
    config = read_config(path)
    if config["task"] != task:
        raise ValueError(f"the run in {path} is of {config['task']}, not of {task}: it cannot continue as that")
    # The others are compared in the end; with these changed, the run's settings would make no sense.
    check_same(path, config, {name: asked[name] for name in ("algorithm", "preset", "engine") if name in asked})
    check_current(path, config, find_algorithm(config["algorithm"]))
    if (address := config.get("ray_address")) and not {"engine", "ray_address"} & set(asked):
        raise ValueError(  # what answers there could run anything here, and the folder may come from a stranger
            f"the run in {path} ran on the Ray cluster at {address}: to continue there, give --ray-address {address}, "
            "or else --engine local"
        )
    names = ("algorithm", "preset", "engine", "workers", "step_timeout", "confidence", "certify_episodes")
    kept = {name: config[name] for name in names if name in config}
    limits = {"threshold": config["thresholds"] or None, "entropy_bounds": interval(config["entropy_bounds"])}
    if config.get("limits"):
        limits |= {"threshold": None, "limits": {name: from_dict(limit) for name, limit in config["limits"].items()}}
    if "limits" in asked or "threshold" in asked:  # it will be compared
        limits |= {"threshold": None, "limits": None}
    simulator = config.get("simulator") or {}
    kept["env_args"] = simulator.get("options") or config.get("env_args")
    check_options(task, kept["env_args"] or {})
    kept["max_steps"] = simulator.get("max_steps") or config.get("max_steps")
    for name in ("cost_bounds", "episode_cost_bounds"):
        limits[name] = tuple(bounds) if (bounds := simulator.get(name)) else None
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in config["settings"].items()}
    if config.get("steps") and "iterations" not in asked:
        settings.pop("iterations")
        kept["steps"] = config["steps"]
    return kept | limits | settings | asked


def again(task: str, folder: Path, kept_apart: dict[str, Any]) -> str:
    """What to type to go on.

    >>> again("mill:Mill-v0", Path("a run"), {"cost": "mill:cost"})
    "pcces train mill:Mill-v0 --out 'a run' --resume --cost mill:cost"
    """
    words = ["pcces", "train", task, "--out", str(folder), "--resume"]
    for name, value in kept_apart.items():
        for each in value if isinstance(value, list) else [value]:
            words += [f"--{name.replace('_', '-')}"] + ([] if each is True else [str(each)])
    return printable(shlex.join(words))


def so_far(training: Training) -> str:
    """How long a training was, and how much of that it can go on from."""
    lost = training.done - training.kept
    return f"{training.done} iterations" + (f" (the last {lost} could not be saved)" if lost else "")


def interrupted(task: str, training: Training | None, folder: Path, kept_apart: dict[str, Any]) -> NoReturn:
    """Say what is left and how to go on, and end."""
    if training is None:
        say("\ninterrupted before anything was done")
    elif training.finished and training.saved:
        report = shlex.join(["pcces", "report", str(folder)])
        say(f"\ninterrupted while the report was written; the training is finished; to write the report: {report}")
    else:
        say(f"\ninterrupted after {so_far(training)}; continue with: {again(task, folder, kept_apart)}")
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
    os._exit(INTERRUPTED)  # at once: a compilation that still runs in the background cannot be stopped


def stopped(
    error: Exception, task: str, training: Training | None, folder: Path, kept_apart: dict[str, Any]
) -> NoReturn:
    """Say what stopped a training and, if it can, how to go on; and end."""
    say(f"error: {in_words(error)}")
    corrected = {}
    if isinstance(error, CostBoundsError) and training is not None and training.runs[0].config["simulator"] is not None:
        corrected = {error.option: "LOW,HIGH"}
    if training is not None and not isinstance(error, UnlimitedCostError):  # a run has its limits from the start
        say(f"stopped after {so_far(training)}; continue with: {again(task, folder, kept_apart | corrected)}")
    raise typer.Exit(REFUSED if isinstance(error, CostError) else FAILED) from error
