"""`pcces settings`: all settings, one line each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from pcces.blackbox.arguments import ARGUMENTS as OF_MINIMIZE
from pcces.blackbox.optimizer import Optimizer
from pcces.blackbox.options import Options
from pcces.cli.common import Json, print_table, show
from pcces.cli.ending import refusing, tell
from pcces.minimize import minimize
from pcces.policies import ALGORITHMS, find_algorithm, train, train_seeds
from pcces.rl.arguments import ARGUMENTS as OF_TRAIN
from pcces.rl.request import Request
from pcces.support.settings import Explained, by_use, settings_in, shown
from pcces.support.text import suggestion

MINIMIZE = "minimize"


def settings(
    of: Annotated[
        str | None,
        typer.Argument(
            metavar="OF", show_default=False, help=f"{', '.join(ALGORITHMS)}, or {MINIMIZE}; without it, all of pcces."
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(help="Preset of the algorithm: default; for pcces also paper and paper-literal.")
    ] = "default",
    as_json: Json = False,
) -> None:
    """List all settings with their defaults and meanings, the most used ones first.

    On the command line, settings of `pcces.train` are options of `pcces train`, or --set NAME=VALUE. Settings of
    `pcces.minimize` are its keywords.

    \b
    pcces settings
    pcces settings minimize
    pcces settings ppo-lag
    pcces settings pcces --preset paper
    """
    with refusing():
        known = {name: settings_of(name, preset) for name in ([of] if of else ["pcces", MINIMIZE])}
    if as_json:
        show({name: [each._asdict() for each in group] for name, group in known.items()})
        return
    for name, every in known.items():
        tell(f"pcces.{MINIMIZE}" if name == MINIMIZE else f"pcces.train, algorithm {name}, preset {preset}")
        for use, group in by_use(every).items():
            tell("")
            print_table([use, "default", ""], [[each.name, each.default, each.words] for each in group])
        tell("")


def settings_of(of: str, preset: str = "default") -> list[Explained]:
    """The arguments and settings of `minimize`, or of `train` with an algorithm and a preset.

    >>> [each.default for each in settings_of("cpo") if each.name == "delta"]
    ['0.01']
    >>> [each.default for each in settings_of("minimize") if each.name == "confidence"]
    ['0.95']
    """
    if of == MINIMIZE:
        return arguments(OF_MINIMIZE, Optimizer, minimize) + settings_in(Options)
    try:
        algorithm = find_algorithm(of)
    except ValueError as error:
        raise ValueError(f"there are no settings of {of!r}; {suggestion(of, [*ALGORITHMS, MINIMIZE])}") from error
    if preset not in algorithm.presets:
        raise ValueError(f"unknown preset {preset!r} of {algorithm.name}; there are {', '.join(algorithm.presets)}")
    values = algorithm.presets[preset]
    own = [each._replace(default=shown(getattr(values, each.name))) for each in settings_in(type(values))]
    by_name = {each.name for each in own}
    named = [each for each in arguments(OF_TRAIN, Request, train_seeds, train) if each.name not in by_name]
    # What this algorithm has no population for is no argument of it.
    return [each for each in named if each.name != "population"] + own


def arguments(words: Mapping[str, Explained], *functions: Callable[..., Any]) -> list[Explained]:
    """Arguments with the defaults that these functions have; the last one's count."""
    defaults: dict[str, Any] = {}
    for function in functions:
        defaults |= {name: each.default for name, each in inspect.signature(function).parameters.items()}
    empty = inspect.Parameter.empty
    return [
        each._replace(default="" if defaults[name] is empty else shown(defaults[name])) for name, each in words.items()
    ]
