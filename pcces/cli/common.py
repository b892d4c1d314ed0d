"""What the commands share: their arguments, folders in, text out."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from pcces.cli.ending import on_a_terminal, tell
from pcces.envs.simulator import Simulator
from pcces.integrations.trackers import HOMES
from pcces.policies import ALGORITHMS, find_algorithm
from pcces.rl.arenas import elsewhere
from pcces.rl.folder import load, read_config
from pcces.rl.meanings import MEANINGS
from pcces.rl.run import Run
from pcces.support.jsonable import to_json
from pcces.support.text import printable, suggestion

Json = Annotated[bool, typer.Option("--json", help="Write one JSON object to standard output.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)]
RunFolders = Annotated[
    list[Path],
    typer.Argument(metavar="RUN...", help="Folders of runs, or of several seeds together.", show_default=False),
]

TaskName = Annotated[
    str, typer.Argument(metavar="TASK", help="One of `pcces envs`, or any Gymnasium id.", show_default=False)
]
AlgorithmName = Annotated[
    str | None, typer.Option(show_default="pcces", help=f"The algorithm: {', '.join(ALGORITHMS)}.")
]
PresetName = Annotated[
    str | None,
    typer.Option(
        show_default="default",
        help="Settings to start from: default; for pcces also paper (as we read it) and paper-literal.",
    ),
]
Population = Annotated[
    int | None,
    typer.Option(
        show_default="40", help="Policies per iteration, for openes, asebo and the presets of the paper. Must be even."
    ),
]
Further = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any other setting (`pcces settings` lists them). Can be repeated."
    ),
]
CostAddress = Annotated[
    str | None,
    typer.Option(
        "--cost",
        metavar="MODULE:FUNCTION",
        show_default=False,
        help="Function cost(observation, action, info), if the simulator reports no costs.",
    ),
]
Greedy = Annotated[bool, typer.Option("--greedy", help="Always take the likeliest action instead of drawing one.")]
Modules = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        show_default=False,
        help="The module that registers your own task; or MODULE:NAME, if NAME is the task itself.",
    ),
]
EnvArgs = Annotated[
    list[str] | None,
    typer.Option(
        "--env-arg",
        metavar="NAME=VALUE",
        show_default=False,
        help="Argument of the environment's constructor, such as gravity=9.0. Can be repeated.",
    ),
]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        show_default="the task's own", help="Maximum steps of an episode. Needed if the task has no time limit."
    ),
]
Threshold = Annotated[
    list[float] | None,
    typer.Option(metavar="NUMBER", help="Limit on the mean cost of an episode. Repeat it for each cost of the task."),
]
OtherEngine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        show_default="where it was trained",
        help="Where episodes run: local uses the simulator behind a task in JAX.",
    ),
]
Over = Annotated[
    str, typer.Option(metavar="AXIS", help="The horizontal axis: iteration, steps (of the environment) or time.")
]
Init = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        show_default=False,
        help="Folder of a finished run. Training starts from its policy instead of a random one.",
    ),
]
EventFiles = Annotated[
    bool, typer.Option("--tensorboard", help="Write event files for TensorBoard; the same as --track tensorboard.")
]
Track = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME", show_default=False,
        help=f"Also send the curves to one of {', '.join(HOMES)} (needs the extra of this name). Can be repeated.",
    ),
]  # fmt: skip


UNLIMITED = 10_000  # letters in a line


SETTING_EXAMPLES: dict[str, Any] = {"confidence": 0.95, "certify_episodes": 1000, "entropy_bounds": (0.0, 1.0)}


def setting(
    text: str, algorithm: str = "pcces", preset: str = "default", options: Sequence[str] = ()
) -> tuple[str, Any]:
    """The name and value in NAME=VALUE, of the type that this setting of the algorithm has.

    >>> setting("hidden=32,32"), setting("sigma0=0.2"), setting("normalise=no"), setting("clip=0.1", "ppo-lag")
    (('hidden', (32, 32)), ('sigma0', 0.2), ('normalise', False), ('clip', 0.1))
    """
    name, sign, value = text.partition("=")
    if not sign:
        raise ValueError(f"--set takes NAME=VALUE, got {text!r}")
    examples = settings_of(algorithm, preset)
    if name not in examples:
        whose = "" if algorithm == "pcces" else f" of {algorithm}"
        every, known = f"there are {', '.join(examples)}", [*examples, *map(as_option, options)]
        raise ValueError(f"unknown setting {name!r}{whose}; {suggestion(name, known, 1, every, MEANINGS)}")
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


def settings_of(algorithm: str = "pcces", preset: str = "default") -> dict[str, Any]:
    """An algorithm's settings with their values."""
    known = find_algorithm(algorithm)
    defaults = known.presets.get(preset, known.defaults)
    return {field.name: getattr(defaults, field.name) for field in fields(defaults)} | SETTING_EXAMPLES


def as_option(name: str) -> str:
    """A parameter's name as an option.

    >>> as_option("step_timeout")
    '--step-timeout'
    """
    return f"--{name.replace('_', '-')}"


def env_args_in(texts: Sequence[str] | None) -> dict[str, Any] | None:
    """The keyword arguments in texts NAME=VALUE: numbers, True, None and lists as Python writes them, all else as text.

    >>> env_args_in(["gravity=9.0", "wind=True", "map=4x4", "sizes=[1, 2]"])
    {'gravity': 9.0, 'wind': True, 'map': '4x4', 'sizes': [1, 2]}
    """
    named = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name.isidentifier():
            raise ValueError(f"--env-arg takes NAME=VALUE, got {text!r}")
        try:
            named[name] = ast.literal_eval({"true": "True", "false": "False", "null": "None"}.get(value, value))
        except (ValueError, SyntaxError):
            named[name] = value
    return named or None


def given(**named: Any) -> dict[str, Any]:
    """What a person did give.

    >>> given(population=None, engine="local")
    {'engine': 'local'}
    """
    return {name: value for name, value in named.items() if value is not None}


def further(texts: Sequence[str] | None, asked: dict[str, Any], options: Sequence[str] = ()) -> dict[str, Any]:
    """What --set says, for the algorithm that is asked for; `options` are names that have an option of their own."""
    settings = {}
    for text in texts or []:
        if (name := text.partition("=")[0]) in options:
            raise ValueError(f"give {name} as {as_option(name)}, not with --set")
        algorithm, preset = asked.get("algorithm", "pcces"), asked.get("preset", "default")
        _, settings[name] = setting(text, algorithm, preset, options)
    return settings


def look_here(address: str) -> None:
    """Let modules in the current folder be found, as Python's own command line does, if one is named (MODULE:NAME)."""
    if ":" in address and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))


def function(where: str, option: str = "--cost") -> Any:
    """A function, or what else a module has, by its address.

    >>> function("math:hypot")(3, 4)
    5.0
    """
    module, sign, name = where.partition(":")
    if not sign:
        raise ValueError(f"{option} takes MODULE:{'FUNCTION' if option == '--cost' else 'NAME'}, got {where!r}")
    look_here(where)
    home = importlib.import_module(module)
    if not hasattr(home, name):
        raise ValueError(f"there is no {'function ' if option == '--cost' else ''}{name!r} in {module}")
    return getattr(home, name)


def loaded(paths: Sequence[Path], modules: Sequence[str] | None = None, cost: str | None = None) -> list[Run]:
    """The runs in these folders; one that holds several seeds stands for all of them.

    A run's folder may come from a stranger, so only modules that the person names are imported.
    """
    named = {}
    for address in modules or ():
        module, _, name = address.partition(":")
        look_here(f"{module}:")
        importlib.import_module(module)
        if name:
            named[address] = function(address, "--import")
    costs = function(cost) if cost is not None else None
    folders: list[Path] = []
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"there is no folder {path}")
        inside = [file.parent for file in path.glob("seed-*/config.json")]
        inside.sort(key=lambda folder: (len(folder.name), folder.name))  # seed-2 before seed-10
        folders += inside if inside and not (path / "config.json").exists() else [path]
    return [load(path, costs, _named(path, named)) for path in dict.fromkeys(folders)]


def _named(path: Path, named: dict[str, Any]) -> Any:
    """The environment that a person named for a run that was given one as it is, if there is one."""
    config = read_config(path) if named else {}
    if not (config.get("simulator") or {}).get("given"):
        return None
    return named.get(config["task"], next(iter(named.values())) if len(named) == 1 else None)


def playable(
    paths: Sequence[Path], modules: Sequence[str] | None, cost: str | None, engine: str | None = None
) -> list[Run]:
    """Likewise; each must have its policy, and a task that can be played there."""
    runs = loaded(paths, modules, cost)
    for run in runs:
        run.trained()
        task = elsewhere(run, engine).task
        try:
            if isinstance(task, Simulator):
                task.known()
        except ModuleNotFoundError as error:
            module = error.name or getattr(error.__cause__, "name", None) or "MODULE"
            raise ImportError(
                f"{error}, which the task {task.name} comes from: go to its folder, and give --import {module}"
            ) from error
    return runs


def together(paths: Sequence[Path]) -> Path:
    """Where something about all of these goes: into the folder if there is one, else here."""
    return paths[0] if len(paths) == 1 else Path()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns that line up, on standard output; what goes into a pipe or a file is neither wrapped nor cut off.

    >>> print_table(["seed", "return"], [[0, "12.5"], [10, "7"]])
    seed  return
    0     12.5
    10    7
    """
    from rich.console import Console
    from rich.table import Column, Table

    width = None if on_a_terminal() else UNLIMITED
    console = Console(width=width, markup=False, highlight=False, emoji=False)
    table = Table(*(Column(name, overflow="fold") for name in columns), box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(*map(printable, row))
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        tell(line.rstrip())


def announce(data: dict[str, Any], as_json: bool) -> None:
    """Say what was made."""
    if as_json:
        show(data)
        return
    for name, value in data.items():
        words = ", ".join(f"{k} {v:g}" for k, v in value.items()) if isinstance(value, dict) else value
        words = ", ".join(words) if isinstance(words, list) else words
        if words != "":
            tell(f"{name}: {printable(words)}")


def show(data: Any) -> None:
    """Write one JSON object to standard output."""
    tell(to_json(data))


def described(run: Run) -> dict[str, Any]:
    """A finished run as plain data."""
    c = run.config
    identity = {name: c[name] for name in ("task", "algorithm", "preset", "seed")}
    limited = run.certificate is not None and bool(run.problem.limits or not run.certificate.holds)
    certificate = run.certificate.to_dict() if run.certificate is not None and limited else None
    return {"path": run.path, **identity, "words": run.words(), "certificate": certificate, "fresh_episodes": run.final}
