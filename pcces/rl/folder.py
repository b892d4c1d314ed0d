"""The folder of a run, read: what is in it is checked, because a folder may be damaged, or come from a stranger."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from pcces.core.certificate import Certificate
from pcces.core.limits import Limit, from_dict
from pcces.envs.costs import CostFunction
from pcces.envs.lookup import simulator_of_run, task_of_run
from pcces.envs.simulator import Simulator
from pcces.envs.task import Task
from pcces.rl.first import First, KeptCritics
from pcces.rl.normalizer import frozen
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem, problem_for
from pcces.rl.run import Metrics, Run
from pcces.rl.spread import check_spread
from pcces.support import files as storage
from pcces.support.jsonable import interval
from pcces.support.schema import (
    ANY_NUMBER,
    FLAG,
    NAMES,
    NUMBER,
    SHARE,
    TEXT,
    Kind,
    check,
    optional,
    several,
    whole,
)  # fmt: skip
from pcces.support.text import printable, short

COLUMNS = ("iteration", "return", "entropy", "length", "steps", "seconds")  # of every run's metrics, among others
FAR = 4.0  # standard errors
MOST_JSON, MOST_METRICS, MOST_POLICY = 2 << 20, 128 << 20, 256 << 20  # bytes

# What the files of a run must hold, wherever they come from.
CONFIG = {
    "task": TEXT, "algorithm": TEXT, "preset": TEXT, "seed": whole(0), "engine": TEXT,
    "workers": optional(whole(1, 100_000)), "ray_address": optional(TEXT), "step_timeout": optional(NUMBER),
    "simulator": optional(NAMES), "env_args": optional(NAMES), "max_steps": optional(whole(1)), "thresholds": several(NUMBER), "limits": optional(NAMES),
    "entropy_bounds": several(optional(NUMBER), 2),
    "confidence": SHARE, "certify_episodes": whole(2), "steps": optional(whole(1)), "settings": NAMES, "versions": NAMES,
    "init": optional(NAMES),
}  # fmt: skip
RENAMED = {"growth": "gamma"}  # settings, from what earlier versions called them
NEEDED = {"task", "algorithm", "preset", "seed", "thresholds", "entropy_bounds", "settings"}
SETTINGS = {
    "iterations": whole(1), "hidden": several(whole(1, 1 << 20)), "mu": NUMBER, "discounted": FLAG, "discount": NUMBER,
}  # fmt: skip
SIMULATOR = {
    "observation_size": whole(1, 1 << 20), "actions": NAMES, "max_steps": whole(1), "cost_names": several(TEXT),
    "cost_bounds": optional(several(NUMBER, 2)), "cost_function": FLAG, "reward_threshold": optional(NUMBER),
    "options": NAMES, "episode_cost_bounds": optional(several(NUMBER, 2)), "given": FLAG,
}  # fmt: skip
BOX = {"low": several(optional(NUMBER)), "high": several(optional(NUMBER))}
FINAL = {
    "episodes": whole(0), "costs": several(ANY_NUMBER), "costs_error": several(ANY_NUMBER), "limited": several(ANY_NUMBER),
    **{name + error: ANY_NUMBER for name in ("return", "entropy", "length") for error in ("", "_error")},
}  # fmt: skip
FINAL_OF_LATE = {"certification_steps": NUMBER, "certification_costs": several(ANY_NUMBER), "iteration": whole(0)}
CERTIFICATE = {"certificate": NAMES, "fresh_episodes": NAMES, "words": TEXT, "limits": several(NAMES)}
BY_TYPE: dict[Any, Kind] = {  # of a certificate's fields
    "bool": FLAG, "float": NUMBER, "int": whole(0), "str": TEXT, "tuple[float, ...]": several(ANY_NUMBER),
}  # fmt: skip


def read_config(path: Path) -> dict[str, Any]:
    """The configuration in a run folder; a folder without one, or a damaged one, is an error that says so."""
    file = path / "config.json"
    if not file.exists():
        raise FileNotFoundError(f"{path} is not a run folder: it has no config.json")
    config = storage.read_json(file, MOST_JSON)
    try:
        check(config, CONFIG, needed=NEEDED)
        check(config["settings"], SETTINGS, "settings", set(SETTINGS) - {"discount"})
        if config.get("simulator") is not None:
            check(config["simulator"], SIMULATOR, "simulator", set(SIMULATOR) - {"episode_cost_bounds", "given"})
            actions = config["simulator"]["actions"]
            check(actions, {"n": whole(2, 1 << 20)} if "n" in actions else BOX, "simulator.actions")
    except ValueError as error:
        raise ValueError(f"{file} is not a run's configuration: {error}") from error
    settings = {RENAMED.get(name, name): value for name, value in config["settings"].items()}
    return config | {"settings": settings}


def read_metrics(path: Path) -> Metrics:
    """metrics.csv as columns of numbers; a missing or damaged one is an error that says so."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing")
    try:
        with io.TextIOWrapper(storage.opened(path, MOST_METRICS), encoding="utf-8", newline="") as file:
            return _columns(csv.reader(file))
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path} is damaged ({error})") from error


def _columns(lines: Iterator[list[str]]) -> Metrics:
    first = next(lines, None)
    if first is None:
        raise ValueError("it is empty")
    head = [printable(name) for name in first]
    columns: Metrics = {name: [] for name in head or COLUMNS}  # without names before the first iteration
    if missing := [name for name in COLUMNS if name not in columns]:
        raise ValueError(f"it lacks the columns {', '.join(missing)}")
    if len(columns) < len(head):
        raise ValueError("it has two columns of one name")
    for row in lines:  # one after the other: as text they take three times as much
        if len(row) != len(head):
            raise ValueError(f"not every line has {len(head)} numbers")
        for name, number in zip(head, row):
            columns[name].append(float(number))
    return columns


def read_certificate(path: Path, problem: Problem) -> tuple[Certificate, dict[str, Any]]:
    """certificate.json: the certificate and the means over its episodes; a missing or damaged one is an error that says so."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing")
    said = storage.read_json(path, MOST_JSON)
    try:
        check(said, CERTIFICATE, needed={"certificate", "fresh_episodes"})
        stated, final = said["certificate"], said["fresh_episodes"]
        kinds = {field.name: BY_TYPE[field.type] for field in fields(Certificate) if field.type in BY_TYPE}
        check(stated, kinds, "certificate", {"holds", "confidence", "upper_bounds", "samples", "method"})
        check(final, FINAL, "fresh_episodes", set(FINAL) - ({"limited"} if problem.on_means else set()))
        check(final, FINAL_OF_LATE, "fresh_episodes", set())
        check_spread(final, len(problem.cost_names))
        certificate = Certificate.from_dict(stated)
        counts = len(certificate.upper_bounds), len(final["costs"]), len(final["costs_error"])
        if counts != (len(problem.names), len(problem.cost_names), len(problem.cost_names)) or _others(said, problem):
            raise ValueError("it is about other limits than config.json's")
        if certificate.holds and not all(bound <= certificate.tolerance for bound in certificate.upper_bounds):
            raise ValueError("it says that limits hold, and has bounds that do not")
        if certificate.holds and _contradicted(problem, final):
            raise ValueError("it says that limits hold, and its episodes are far from keeping them")
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error})") from error
    return certificate, final


def _contradicted(problem: Problem, final: dict[str, Any]) -> bool:
    """Whether the means of a certificate's own episodes are so far beyond their limits that it cannot be about these."""
    means = [*zip(final["costs"], final["costs_error"]), *[(final["entropy"], final["entropy_error"])] * 2]
    over = [
        mean - limit.value if limit.at_most else limit.value - mean for limit, (mean, _) in zip(problem.limits, means)
    ]
    on_means = [limit.kind == "mean" for limit in problem.limits]
    return any(far > FAR * error for far, (_, error), mean in zip(over, means, on_means) if mean)


def _others(said: dict[str, Any], problem: Problem) -> bool:
    """Whether certificate.json speaks of other limits than these."""
    if "limits" in said:
        stated = [{"kind": "mean", "share": 1.0} | limit for limit in said["limits"]]
        return bool(stated != [limit._asdict() for limit in problem.limits])
    # Earlier versions noted the thresholds, and all limits in words only.
    final, in_words = said["fresh_episodes"], re.findall(r"\(limit (\S+)\)", said.get("words", ""))
    return bool(
        final.get("thresholds", [*problem.thresholds]) != [*problem.thresholds]
        or (in_words and in_words != [f"{limit.value:g}" for limit in problem.limits])
    )


def read_policy(path: Path, task: str, shape: Policy) -> First:
    """policy.npz: the policy of a task, its normalisation and critics; a damaged one, or another's, is an error that says so."""
    arrays, data = storage.load(path, "policy", MOST_POLICY)
    if data.get("task") != task:
        raise ValueError(f"the policy in {path} is of {short(data.get('task'))}, but config.json says {short(task)}")
    for name, size in (("x", shape.size), ("mean", shape.observation_size), ("std", shape.observation_size)):
        array = arrays.get(name)
        if array is None or array.dtype.kind != "f" or array.shape != (size,) or not np.isfinite(array).all():
            raise ValueError(f"{path} is damaged: {name} must be {size} finite numbers, as config.json has it")
    return First(arrays["x"], frozen(arrays["mean"], arrays["std"]), critics_in(arrays, path))


def critics_in(arrays: dict[str, np.ndarray], file: Path) -> KeptCritics | None:
    """The critics among a file's arrays, if it has any."""
    parts = [arrays[name] for name in KeptCritics.names() if name in arrays]
    if not parts:
        return None
    shapes = [part.shape for part in parts]
    rows = shapes[0][:1]
    good = all(part.dtype.kind == "f" and np.isfinite(part).all() for part in parts)
    if len(shapes[0]) != 2 or shapes[1:] != [rows, rows] or not good:
        raise ValueError(f"{file} is damaged: its critics are of the shapes {shapes}")
    return KeptCritics(*parts)


def _limits(path: Path, config: dict[str, Any]) -> dict[str, Limit] | None:
    """The limits on costs, where they are not on means alone."""
    if not config.get("limits"):
        return None
    try:
        limits = {name: from_dict(limit) for name, limit in config["limits"].items()}
        if [limit.origin for limit in limits.values()] != config["thresholds"]:
            raise ValueError(f"its thresholds {config['thresholds']} are those of other limits")
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path / 'config.json'} is not a run's configuration: limits: {error}") from error
    return limits


def load(path: str | Path, cost: CostFunction | None = None, task: Any = None) -> Run:
    """A run from its folder; a task of your own has to be registered first (`pcces.envs.register_task`).

    A cost function that the run was given has to be given again to evaluate it, and so has an environment that was given as
    it is (`task`: the environment, its class, or a function that makes it); for all else they are not needed. The folder
    may come from a stranger: nothing it names is imported (import the module of a task of your own first), and what is
    damaged or makes no sense is a ValueError.
    """
    path = Path(path)
    config = read_config(path)
    its: Task | Simulator
    if config.get("simulator"):
        its = simulator_of_run(config["task"], config["simulator"], cost, task)
    elif task is not None:
        raise ValueError(
            f"the task of {path} is written in JAX: register it (pcces.envs.register_task), and leave out task=..."
        )
    else:
        its = task_of_run(config["task"], config.get("env_args"), config.get("max_steps"))
    settings = config["settings"]
    problem = problem_for(
        its,
        settings["mu"],
        None if config.get("limits") else tuple(config["thresholds"]) or None,
        interval(config["entropy_bounds"]),
        settings["discounted"],
        _limits(path, config),
        settings.get("cost_weight", 0.0),
    )
    shape = Policy(its.observation_size, its.actions, tuple(settings["hidden"]))
    run = Run(config, its, shape, problem, path=path)
    if (path / "metrics.csv").exists():
        run.metrics = read_metrics(path / "metrics.csv")
    if (path / "policy.npz").exists():
        run.x, run.normalizer, run.critics = read_policy(path / "policy.npz", config["task"], shape)
        run.certificate, run.final = read_certificate(path / "certificate.json", problem)
    return run
