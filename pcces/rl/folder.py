"""The folder of a run, read: what is in it is checked, because a folder may be damaged, or come from a stranger."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from pcces.core.certificate import Certificate
from pcces.envs.lookup import simulator_of_run, task_of_run
from pcces.envs.simulator import CostFunction, Simulator
from pcces.envs.task import Task
from pcces.rl.normalizer import frozen
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem, from_json, problem_for
from pcces.rl.run import Metrics, Run
from pcces.support import files as storage

COLUMNS = ("iteration", "return", "entropy", "length", "steps", "seconds")  # of every run's metrics, among others
FINAL = {"episodes"} | {name + error for name in ("return", "entropy", "length", "costs") for error in ("", "_error")}


def read_config(path: Path) -> dict[str, Any]:
    """The configuration in a run folder; a folder without one, or a damaged one, is an error that says so."""
    file = path / "config.json"
    if not file.exists():
        raise FileNotFoundError(f"{path} is not a run folder: it has no config.json")
    try:
        config = json.loads(file.read_text())
        missing = {"task", "algorithm", "preset", "seed", "thresholds", "entropy_bounds", "settings"} - set(config)
        if not missing:
            needed = {"iterations", "hidden", "mu", "discounted"}
            missing = {f"settings.{name}" for name in needed - set(config["settings"])}
    except (ValueError, TypeError) as error:
        raise ValueError(f"{file} is damaged ({error})") from error
    if missing:
        raise ValueError(f"{file} is not a run's configuration: it lacks {', '.join(sorted(missing))}")
    return config


def read_metrics(path: Path) -> Metrics:
    """metrics.csv as columns of numbers; a missing or damaged one is an error that says so."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing")
    try:
        with path.open(newline="") as file:
            lines = list(csv.reader(file))
        if not lines:
            raise ValueError("it is empty")
        head, *rows = lines
        if not head and not rows:  # as it is written before the first iteration
            return {name: [] for name in COLUMNS}
        if missing := [name for name in COLUMNS if name not in head]:
            raise ValueError(f"it lacks the columns {', '.join(missing)}")
        if any(len(row) != len(head) for row in rows):
            raise ValueError(f"not every line has {len(head)} numbers")
        return {name: [float(row[i]) for row in rows] for i, name in enumerate(head)}
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path} is damaged ({error})") from error


def read_certificate(path: Path, problem: Problem) -> tuple[Certificate, dict[str, Any]]:
    """certificate.json: the certificate and the means over its episodes; a missing or damaged one is an error that says so."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing")
    try:
        said = json.loads(path.read_text())
        certificate, final = Certificate.from_dict(said["certificate"]), said["fresh_episodes"]
        if missing := FINAL - set(final):
            raise ValueError(f"its fresh_episodes lack {', '.join(sorted(missing))}")
        if (len(certificate.upper_bounds), len(final["costs"])) != (len(problem.names), len(problem.cost_names)):
            raise ValueError("it is about other limits than the run's")
    except KeyError as error:
        raise ValueError(f"{path} is damaged (it lacks {error})") from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error})") from error
    return certificate, final


def load(path: str | Path, cost: CostFunction | None = None) -> Run:
    """A run from its folder; a task of your own has to be registered first (`pcces.envs.register_task`).

    A cost function that the run was given has to be given again to evaluate it; for all else it is not needed.
    """
    path = Path(path)
    config = read_config(path)
    task: Task | Simulator
    if config.get("simulator"):
        task = simulator_of_run(config["task"], config["simulator"], cost)
    else:
        task = task_of_run(config["task"])
    settings = config["settings"]
    problem = problem_for(
        task,
        settings["mu"],
        tuple(config["thresholds"]) or None,
        from_json(config["entropy_bounds"]),
        settings["discounted"],
    )
    shape = Policy(task.observation_size, task.actions, tuple(settings["hidden"]))
    run = Run(config, task, shape, problem, path=path)
    if (path / "metrics.csv").exists():
        run.metrics = read_metrics(path / "metrics.csv")
    if (path / "policy.npz").exists():
        arrays, data = storage.load(path / "policy.npz", "policy")
        if data["task"] != config["task"]:
            raise ValueError(f"the policy in {path} is of {data['task']}, but its config says {config['task']}")
        run.x, run.normalizer = arrays["x"], frozen(arrays["mean"], arrays["std"])
        run.certificate, run.final = read_certificate(path / "certificate.json", problem)
    return run
