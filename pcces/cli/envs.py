"""`pcces envs`: the tasks there are."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from pcces.cli.common import Json, print_table, show
from pcces.envs import make, tasks
from pcces.envs.registry import ROBOTS, velocity_id
from pcces.envs.safety import NAMES
from pcces.envs.safety.simulator import safety_simulator
from pcces.envs.simulator import Simulator
from pcces.envs.task import Continuous, Task
from pcces.envs.velocity import velocity_simulator


def envs(as_json: Json = False) -> None:
    """List the tasks.

    The columns are the actions, the size of the observation, the steps per episode, the costs with their thresholds, and the
    bounds of the entropy. Point.. and Car.. are navigation tasks on MuJoCo (extra safety); most of them also run in JAX
    (--engine device). ..Velocity-v1 are MuJoCo robots with a speed limit, as in Safety-Gymnasium. You can train on any other
    environment of gymnasium.make too, such as HopperBulletEnv-v0 (extra bullet).

    \b
    pcces envs
    """
    known: list[Task | Simulator] = [make(name) for name in tasks()]
    known += [replace(safety_simulator(name), name=f"{name}-v0") for name in NAMES]
    known += [velocity_simulator(velocity_id(robot)) for robot in ROBOTS]
    if as_json:
        show({"tasks": [task_data(task) for task in known]})
        return
    rows = []
    for task in known:
        limits = ", ".join(f"{name} <= {t:g}" for name, t in zip(task.cost_names, task.thresholds)) or "none"
        low, high = task.entropy_bounds
        entropy = f"{low:g} to {high:g}" if math.isfinite(low) or math.isfinite(high) else "any"
        rows.append([task.name, actions(task), task.observation_size, task.max_steps, limits, entropy])
    print_table(["task", "actions", "observation", "steps", "costs", "entropy"], rows)


def actions(task: Task | Simulator) -> str:
    """A task's actions in words.

    >>> actions(make("CartSafe-v0")), actions(make("Pendulum-v1"))
    ('2 choices', '1 in [-2, 2]')
    """
    if isinstance(task.actions, Continuous):
        box = f"[{min(task.actions.low):g}, {max(task.actions.high):g}]"
        return f"{task.actions.size} in {box}"
    return f"{task.actions.n} choices"


def task_data(task: Task | Simulator) -> dict[str, Any]:
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
        "reward_threshold": getattr(task, "reward_threshold", None),
    }
