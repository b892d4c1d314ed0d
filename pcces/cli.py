"""The command line: `pcces train | evaluate | certify | plot | render | report | reproduce | envs`.

Results go to standard output (with --json as one object), everything else to standard error. Exit codes: 0 all is well and
certified, 1 the work is done but a policy is not certified, 2 the request cannot be met, 130 interrupted.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from pcces.envs import make, tasks
from pcces.envs.task import Continuous, Task
from pcces.experiments.command import reproduce
from pcces.rl import algorithms
from pcces.rl.problem import from_json
from pcces.rl.settings import near
from pcces.rl.train import Training, load, prepare
from pcces.rl.where import elsewhere, name_of
from pcces.runs import Run, read_config

app = typer.Typer(
    help="Train policies that keep their cost limits, and know how sure that is.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]
RunFolders = Annotated[
    list[Path],
    typer.Argument(metavar="RUN...", help="Folders of runs, or of several seeds together.", show_default=False),
]

OtherEngine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        show_default="where it was trained",
        help="Where to play: local for the simulator behind a task in JAX.",
    ),
]


app.command()(reproduce)


@contextmanager
def refusing() -> Iterator[None]:
    """What a person got wrong is one line and exit code 2; a fault of ours keeps its traceback."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version and end.")] = False) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("pcces"))
        raise typer.Exit


@app.command()
def train(
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="One of `pcces envs`, or any Gymnasium id.", show_default=False)
    ],
    algorithm: Annotated[
        str | None, typer.Option(show_default="pcces", help=f"What trains: {', '.join(algorithms.NAMES)}.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(show_default="default", help="Its settings: default, or for pcces also paper.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(show_default="300", help="Or epochs, of ppo-lag, rcpo and cpo.")
    ] = None,
    population: Annotated[
        int | None,
        typer.Option(show_default="40", help="Policies tried in an iteration of pcces, openes and asebo; even."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 0,
    seeds: Annotated[
        int | None, typer.Option(help="So many seeds at once, from --seed on, in one compiled program.")
    ] = None,
    threshold: Annotated[
        list[float] | None,
        typer.Option(help="The most an episode may cost on average; once for each of the task's costs."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            show_default="device for tasks in JAX, else local",
            help="Where episodes are played: device, local (worker processes) or ray (a cluster).",
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(show_default="one a core", help="How many, for the engines local and ray.")
    ] = None,
    ray_address: Annotated[
        str | None, typer.Option(show_default="a Ray of our own on this machine", help="The cluster of --engine ray.")
    ] = None,
    step_timeout: Annotated[
        float | None,
        typer.Option(help="Seconds after which a simulator's step counts as hung, and its episode as failed."),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION", help="cost(observation, action, info), where a simulator gives no costs."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(show_default="runs/TASK/ALGORITHM-PRESET-seedSEED", help="The folder to write.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped or killed.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write event files for TensorBoard, too.")] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any further setting, as often as needed."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a policy and certify it on fresh episodes.

    Ends with exit code 0 only if the certificate holds: the policy keeps its limits with 95 % confidence.

    \b
    pcces train CartSafe-v0
    pcces train CartSafe-v0 --seeds 10 --threshold 20
    pcces train CartSafe-v0 --iterations 1000 --set sigma0=0.2 --set hidden=32,32
    pcces train CartSafe-v0 --resume
    pcces train HopperBulletEnv-v0 --workers 8 --set hidden=64,64
    pcces train CartSafe-v0 --algorithm ppo-lag --iterations 100 --set epoch_steps=10000
    """
    given = {
        "algorithm": algorithm, "preset": preset, "iterations": iterations, "population": population,
        "threshold": tuple(threshold) if threshold else None, "engine": engine, "workers": workers,
        "ray_address": ray_address, "step_timeout": step_timeout,
    }  # fmt: skip
    training: Training | None = None
    folder = out or Path()
    try:
        with refusing():
            if seeds is not None and seeds < 1:
                raise ValueError(f"--seeds must be at least 1, got {seeds}")
            name_ = name_of(task)
            if ":" in task:  # a module that registers the environment
                look_here()
            asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
            numbers = range(seed, seed + seeds) if seeds is not None else None
            if cost is not None:
                asked["cost"] = function(cost)
            folder = out or default_folder(name_, asked, seed, numbers)
            wanted: Sequence[int] = numbers or [seed]
            together = numbers is not None
            if resume:
                found, together = seeds_in(folder, together)
                if numbers is None:
                    wanted = found
                asked = resumed(name_, folder / f"seed-{found[0]}" if together else folder) | asked
            for text in set_ or []:
                name, value = setting(text, asked.get("algorithm", "pcces"))
                if name in given:
                    raise ValueError(f"give {name} as --{name}, not with --set")
                asked[name] = value
            training = prepare(task, wanted, out=folder if together else [folder], resume=resume, **asked)
        from pcces.tensorboard import TensorBoard

        training.run(progress=True, callback=TensorBoard() if tensorboard else None)
    except KeyboardInterrupt:
        interrupted(task, training, folder)
    conclude(training.runs, folder, as_json)


def look_here() -> None:
    """Let modules in the current folder be found, as Python's own command line does."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def function(where: str) -> Any:
    """A function by its address.

    >>> function("math:hypot")(3, 4)
    5.0
    """
    module, sign, name = where.partition(":")
    if not sign:
        raise ValueError(f"--cost takes MODULE:FUNCTION, got {where!r}")
    look_here()
    home = importlib.import_module(module)
    if not hasattr(home, name):
        raise ValueError(f"there is no function {name!r} in {module}")
    return getattr(home, name)


def default_folder(task: str, asked: dict[str, Any], seed: int, seeds: range | None) -> Path:
    """Where a run goes unless told otherwise.

    >>> default_folder("CartSafe-v0", {"preset": "paper"}, 3, None).as_posix()
    'runs/CartSafe-v0/pcces-paper-seed3'
    >>> default_folder("CartSafe-v0", {}, 0, range(10)).as_posix()
    'runs/CartSafe-v0/pcces-default-seeds0-9'
    """
    name = f"{asked.get('algorithm', 'pcces')}-{asked.get('preset', 'default')}"
    which = f"seed{seed}" if seeds is None else f"seeds{seeds[0]}-{seeds[-1]}"
    return Path("runs") / task / f"{name}-{which}"


SETTING_EXAMPLES: dict[str, Any] = {"confidence": 0.95, "certify_episodes": 1000, "entropy_bounds": (0.0, 1.0)}


def setting(text: str, algorithm: str = "pcces") -> tuple[str, Any]:
    """The name and value in NAME=VALUE, of the type that this setting of the algorithm has.

    >>> setting("hidden=32,32"), setting("sigma0=0.2"), setting("normalise=no"), setting("clip=0.1", "ppo-lag")
    (('hidden', (32, 32)), ('sigma0', 0.2), ('normalise', False), ('clip', 0.1))
    """
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"--set takes NAME=VALUE, got {text!r}")
    defaults = algorithms.find(algorithm).defaults
    examples = {field.name: getattr(defaults, field.name) for field in fields(defaults)} | SETTING_EXAMPLES
    if name not in examples:
        whose = "" if algorithm == "pcces" else f" of {algorithm}"
        raise ValueError(f"unknown setting {name!r}{whose}; {near(name, list(examples))}")
    example = examples[name]
    try:
        if isinstance(example, tuple):
            return name, tuple(type(example[0])(part) for part in value.split(","))
        if isinstance(example, bool):
            return name, {"yes": True, "true": True, "no": False, "false": False}[value.lower()]
        return name, type(example)(value)
    except (ValueError, KeyError) as error:
        kinds = {bool: "yes or no", int: "a whole number", float: "a number", tuple: "numbers such as 32,32"}
        raise ValueError(f"{name} must be {kinds[type(example)]}, got {value!r}") from error


def seeds_in(folder: Path, together: bool) -> tuple[list[int], bool]:
    """The seeds of the run, or runs, that a folder holds, and whether it holds several."""
    inside = sorted(folder.glob("seed-*/config.json"))
    if (folder / "config.json").exists() and not together:
        return [read_config(folder)["seed"]], False
    if not inside:
        raise FileNotFoundError(f"there is no run to go on with in {folder}")
    return sorted(read_config(file.parent)["seed"] for file in inside), True


def resumed(task: str, path: Path) -> dict[str, Any]:
    """What the run in a folder was asked for, as the keywords of `prepare`."""
    config = read_config(path)
    if config["task"] != task:
        raise ValueError(f"the run in {path} is of {config['task']}, not of {task}: it cannot go on as that")
    names = (
        "algorithm",
        "preset",
        "engine",
        "workers",
        "ray_address",
        "step_timeout",
        "confidence",
        "certify_episodes",
    )
    kept = {name: config[name] for name in names if name in config}
    limits = {"threshold": config["thresholds"] or None, "entropy_bounds": from_json(config["entropy_bounds"])}
    settings = {name: tuple(v) if isinstance(v, list) else v for name, v in config["settings"].items()}
    return kept | limits | settings


def interrupted(task: str, training: Training | None, folder: Path) -> NoReturn:
    """Say what is left and how to go on, and end."""
    if training is None:
        typer.echo("\ninterrupted before anything was done", err=True)
    else:
        again = shlex.join(["pcces", "train", task, "--out", str(folder), "--resume"])
        typer.echo(f"\ninterrupted after {training.done} iterations; go on with: {again}", err=True)
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(130)  # at once: a compilation that still runs in the background cannot be stopped


def conclude(runs: Sequence[Run], folder: Path, as_json: bool) -> None:
    """The certificates in words, and the exit code that goes with them."""
    report = folder / "report.html"
    good = [run for run in runs if run.certificate is not None and run.certificate.holds]
    if as_json:
        show({"folder": folder, "report": report, "certified": len(good), "runs": [described(run) for run in runs]})
    else:
        if len(runs) == 1:
            typer.echo(runs[0].words())
        else:
            typer.echo(seeds_table(runs))
            typer.echo(f"{len(good)} of {len(runs)} certified with {100 * runs[0].config['confidence']:g} % confidence")
        typer.echo(f"report: {report}")
    if len(good) < len(runs):
        whose = "" if len(runs) == 1 else f" of seeds {', '.join(str(r.config['seed']) for r in runs if r not in good)}"
        typer.echo(
            f"not certified: the policy{whose} may break its limits; train longer (--iterations) or allow more"
            " (--threshold)",
            err=True,
        )
        raise typer.Exit(1)


def described(run: Run) -> dict[str, Any]:
    """A finished run as plain data."""
    c = run.config
    identity = {name: c[name] for name in ("task", "algorithm", "preset", "seed")}
    certificate = run.certificate.to_dict() if run.certificate is not None else None
    return {"path": run.path, **identity, "words": run.words(), "certificate": certificate, "fresh_episodes": run.final}


def seeds_table(runs: Sequence[Run]) -> str:
    """Return, costs and certificate of every seed, and the means."""
    problem = runs[0].problem
    limits = [f"{name} (limit {t:g})" for name, t in zip(problem.cost_names, problem.thresholds)]
    rows = []
    for run in runs:
        assert run.certificate is not None
        costs = [f"{cost:.3g}" for cost in run.final["costs"]]
        rows.append(
            [run.config["seed"], f"{run.final['return']:.4g}", *costs, "yes" if run.certificate.holds else "NO"]
        )
    means = [math.fsum(values) / len(runs) for values in zip(*([r.final["return"], *r.final["costs"]] for r in runs))]
    rows.append(["mean", f"{means[0]:.4g}", *(f"{value:.3g}" for value in means[1:]), ""])
    return text_table(["seed", "return", *limits, "certified"], rows)


@app.command()
def evaluate(
    paths: RunFolders,
    episodes: Annotated[int, typer.Option(min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="Other episodes.")] = 1_000_000,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always the likeliest action.")] = False,
    engine: OtherEngine = None,
    as_json: Json = False,
) -> None:
    """Play fresh episodes with a run's policy.

    \b
    pcces evaluate runs/CartSafe-v0/pcces-default-seed0 --episodes 5000
    """
    with refusing():
        runs = finished(paths)
        known_there(runs, engine)
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


def known_there(runs: Sequence[Run], engine: str | None) -> None:
    """Refuse an engine that cannot play the runs' tasks."""
    for run in runs:
        elsewhere(run, engine)


@app.command()
def certify(
    paths: RunFolders,
    episodes: Annotated[int, typer.Option(min=2)] = 1000,
    confidence: Annotated[float, typer.Option(help="Between 0 and 1.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Other episodes.")] = 2_000_000,
    engine: OtherEngine = None,
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
        runs = finished(paths)
        known_there(runs, engine)
    tested = [run.certified(episodes, seed, confidence, engine) for run in runs]
    if as_json:
        show({"runs": [described(run) for run in tested]})
    else:
        for run in tested:
            typer.echo(f"{run.path}: {run.words()}" if len(tested) > 1 else run.words())
    if not all(run.certificate is not None and run.certificate.holds for run in tested):
        raise typer.Exit(1)


@app.command()
def plot(
    paths: RunFolders,
    out: Annotated[
        Path | None, typer.Option(show_default="RUN/curves.png", help="The picture: .png, .pdf or .svg.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw the curves of runs on one task.

    Seeds become a mean with a band of one standard deviation, other differences lines of their own.

    \b
    pcces plot runs/CartSafe-v0/pcces-*
    """
    from pcces import report

    with refusing():
        runs = loaded(paths)
        names = sorted({run.config["task"] for run in runs})
        if len(names) > 1:
            raise ValueError(
                f"a picture shows one task, these runs are of {', '.join(names)}; `pcces report` takes all"
            )
        if not any(run.metrics for run in runs):
            raise ValueError("there is nothing to draw yet: no iteration is finished")
        path = out or together(paths) / "curves.png"
        if path.suffix not in (".png", ".pdf", ".svg"):
            raise ValueError(f"the picture must be a .png, .pdf or .svg, got {path}")
    report.draw(report.charts(runs), path, names[0])
    announce({"picture": path}, as_json)


@app.command("report")
def report_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Folders of runs, or the folder of a study (`pcces reproduce`), or a search saved by `Optimizer.save`.",
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, typer.Option(show_default="RUN/report.html", help="The page.")] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Draw its curves into this folder, too, as PNG and PDF.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page about one or more runs, or about a study.

    Certificates, curves, an animation, final numbers and configuration; one file, works offline. Of a study: the paper's
    claims and the verdict on each figure and table.

    \b
    pcces report runs/CartSafe-v0/pcces-* --out cartsafe.html
    pcces report results --figures paper/figures
    pcces report search.npz
    """
    from pcces import report
    from pcces.experiments import study_page
    from pcces.experiments.arms import Store
    from pcces.optimizer import Optimizer
    from pcces.report.search import charts, search_page

    drawn: list[Path] = []
    with refusing():
        if len(paths) == 1 and paths[0].is_file():
            result = Optimizer.load(paths[0]).result
            path = search_page(result).save(out or paths[0].with_suffix(".html"))
            drawn = report.draw_both(charts(result), figures, paths[0].stem) if figures else []
        elif len(paths) == 1 and not (paths[0] / "config.json").exists() and Store(paths[0]).arms():
            store = Store(paths[0])
            path = study_page.study_page(store).save(out or paths[0] / "report.html")
            drawn = study_page.figures(store, figures) if figures else []
        else:
            runs = loaded(paths)
            path = report.write(runs, out or together(paths) / "report.html")
            for task in dict.fromkeys(run.config["task"] for run in runs) if figures else ():
                some = [run for run in runs if run.config["task"] == task]
                drawn += report.draw_both(report.charts(some), figures, task.replace("/", "-"))
    announce({"report": path} | ({"figures": [str(one) for one in drawn]} if figures else {}), as_json)


@app.command()
def render(
    path: RunFolder,
    out: Annotated[Path | None, typer.Option(show_default="RUN/policy.gif", help="The animation.")] = None,
    seed: Annotated[int, typer.Option(help="Another episode.")] = 0,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always the likeliest action.")] = False,
    as_json: Json = False,
) -> None:
    """Film one episode of a run's policy (GIF).

    \b
    pcces render runs/CartSafe-v0/pcces-default-seed0 --seed 7
    """
    from pcces.render import film

    with refusing():
        runs = finished([path])
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


@app.command()
def envs(as_json: Json = False) -> None:
    """List the tasks.

    Actions, size of the observation, steps, costs with their thresholds, bounds of the entropy.

    \b
    pcces envs
    """
    found = [make(name) for name in tasks()]
    if as_json:
        show({"tasks": [task_data(task) for task in found]})
        return
    rows = []
    for task in found:
        limits = ", ".join(f"{name} <= {t:g}" for name, t in zip(task.cost_names, task.thresholds)) or "none"
        low, high = task.entropy_bounds
        rows.append([task.name, actions(task), task.observation_size, task.max_steps, limits, f"{low:g} to {high:g}"])
    typer.echo(text_table(["task", "actions", "observation", "steps", "costs", "entropy"], rows))


def actions(task: Task) -> str:
    """A task's actions in words.

    >>> actions(make("CartSafe-v0")), actions(make("Pendulum-v1"))
    ('2 choices', '1 in [-2, 2]')
    """
    if isinstance(task.actions, Continuous):
        box = f"[{min(task.actions.low):g}, {max(task.actions.high):g}]"
        return f"{task.actions.size} in {box}"
    return f"{task.actions.n} choices"


def task_data(task: Task) -> dict[str, Any]:
    """A task as plain data."""
    continuous = isinstance(task.actions, Continuous)
    return {
        "name": task.name,
        "actions": "continuous" if continuous else "discrete",
        "action_size": task.actions.size if isinstance(task.actions, Continuous) else task.actions.n,
        "observation_size": task.observation_size,
        "max_steps": task.max_steps,
        "thresholds": dict(zip(task.cost_names, task.thresholds)),
        "entropy_bounds": task.entropy_bounds,
        "reward_threshold": task.reward_threshold,
    }


# -- folders in, text out ----------------------------------------------------------------------------------------------


def loaded(paths: Sequence[Path]) -> list[Run]:
    """The runs in these folders; one that holds several seeds stands for all of them."""
    found = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"there is no folder {path}")
        inside = [file.parent for file in path.glob("seed-*/config.json")]
        inside.sort(key=lambda folder: (len(folder.name), folder.name))  # seed-2 before seed-10
        found += inside if inside and not (path / "config.json").exists() else [path]
    return [load(path) for path in dict.fromkeys(found)]


def finished(paths: Sequence[Path]) -> list[Run]:
    """Likewise; each must have its policy."""
    runs = loaded(paths)
    for run in runs:
        run.trained()
    return runs


def together(paths: Sequence[Path]) -> Path:
    """Where something about all of these goes: into the folder if there is one, else here."""
    return paths[0] if len(paths) == 1 else Path()


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Columns that line up.

    >>> print(text_table(["seed", "return"], [[0, "12.5"], [10, "7"]]))
    seed  return
    0     12.5
    10    7
    """
    cells = [list(map(str, row)) for row in [columns, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in cells)


def announce(data: dict[str, Any], as_json: bool) -> None:
    """Say what was made."""
    if as_json:
        show(data)
        return
    for name, value in data.items():
        words = ", ".join(f"{k} {v:g}" for k, v in value.items()) if isinstance(value, dict) else value
        words = ", ".join(words) if isinstance(words, list) else words
        if words != "":
            typer.echo(f"{name}: {words}")


def show(data: Any) -> None:
    """One JSON object on standard output."""
    typer.echo(json.dumps(clean(data), indent=1, allow_nan=False))


def clean(data: Any) -> Any:
    """Data that JSON can hold: paths become text, infinities and nan null.

    >>> clean({"a": (1, math.inf), "b": Path("x")})
    {'a': [1, None], 'b': 'x'}
    """
    if isinstance(data, dict):
        return {name: clean(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [clean(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return str(data) if isinstance(data, Path) else data
