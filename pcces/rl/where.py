"""Where a task's episodes are played: on the device if it is written in JAX, by workers if it is a simulator."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

from pcces.envs import make, tasks
from pcces.envs.registry import ALIASES, in_jax
from pcces.envs.simulator import CostFunction, Simulator, checked_cost_bounds, simulator
from pcces.envs.task import Task

ENGINES = ("device", "local", "ray")


def name_of(task: str | Task | Simulator) -> str:
    """What a task is called in configurations and folders.

    >>> name_of("CartPoleSafeDelayed-v0")
    'CartSafeDelayed-v0'
    """
    return ALIASES.get(task, task) if isinstance(task, str) else task.name


def find(
    task: str | Task | Simulator,
    engine: str | None = None,
    cost: CostFunction | None = None,
    cost_bounds: tuple[float, float] | None = None,
) -> tuple[Task | Simulator, str]:
    """The task, and the engine that plays it: None means the device for JAX tasks and local workers for anything else.

    MODULE:NAME imports the module first, which registers the task with Gymnasium or with `pcces.envs`.

    >>> find("CartPole-v1")[1], find("CartPole-v1", "local")[0].max_steps
    ('device', 500)
    """
    if engine is not None and engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; there are {', '.join(ENGINES)}")
    found, engine = _find(_registered(task), engine, cost)
    if cost_bounds is None:
        return found, engine
    if engine == "device":
        raise ValueError(f"{found.name} is a task in JAX, and says itself what a step costs: its `cost_bounds`")
    assert isinstance(found, Simulator)
    return replace(found, cost_bounds=checked_cost_bounds(cost_bounds)), engine


def _registered(task: str | Task | Simulator) -> str | Task | Simulator:
    """The task that a module registers with us, by its name; what Gymnasium knows keeps its module."""
    if not isinstance(task, str) or ":" not in task:
        return task
    module, _, name = task.partition(":")
    importlib.import_module(module)
    return name if in_jax(name) else task


def _find(task: str | Task | Simulator, engine: str | None, cost: CostFunction | None) -> tuple[Task | Simulator, str]:
    name = name_of(task)
    compiled = isinstance(task, Task) or in_jax(name)
    if engine is None:
        engine = "device" if compiled and cost is None else "local"
    if engine == "device":
        if not isinstance(task, Task) and (scene := _safety(name)) is not None:
            from pcces.envs.safety.in_jax import safety_task

            return safety_task(scene), engine
        if isinstance(task, Simulator) or (not compiled and _is_simulator(name)):
            raise ValueError(f"{name} is a simulator, not a task in JAX: give engine='local' or 'ray', not 'device'")
        if cost is not None:
            raise ValueError("a task in JAX has its own costs: a cost function needs engine='local' or 'ray'")
        return make(task), engine
    if isinstance(task, Simulator):
        return (task if cost is None else simulator(name, cost, **task.options)), engine
    if compiled:
        return _by_workers(make(task), cost), engine
    return _other(name, cost), engine


def _safety(name: str) -> str | None:
    from pcces.envs.safety.simulator import known_as

    return known_as(name)


def _is_simulator(name: str) -> bool:
    try:
        _other(name, None)
    except ValueError as error:
        return "unknown task" not in str(error)
    return True


def _other(name: str, cost: CostFunction | None) -> Simulator:
    """A simulator by name: a safety task, or whatever Gymnasium knows."""
    from pcces.envs.safety.simulator import known_as, safety_simulator

    if cost is None and known_as(name):
        return safety_simulator(name)
    return simulator(name, cost)


def _by_workers(task: Task, cost: CostFunction | None) -> Simulator:
    """One of our tasks as a simulator: Gymnasium's own where it has one of that name, else ours one step at a time."""
    import gymnasium

    if task.name.startswith("brax/"):
        raise ValueError(f"{task.name} runs on the device engine only: one step at a time it would take forever")
    if not type(task).__module__.startswith("pcces."):
        raise ValueError(
            f"{task.name} is a task of your own in JAX, which workers do not know: it runs on the device engine"
        )
    theirs = task.name in gymnasium.registry and not task.cost_names
    found = simulator(task.name if theirs else f"pcces/{task.name}", cost)
    if cost is None and task.cost_names:
        found = replace(
            found, cost_names=task.cost_names, thresholds=tuple(task.thresholds), cost_bounds=task.cost_bounds
        )
    return replace(found, name=task.name, entropy_bounds=task.entropy_bounds)


def known(name: str) -> Task:
    """The task in JAX of a run folder, which may come from a stranger: the module that registers it is not imported here.

    >>> known("dam:Dam-v0")
    Traceback (most recent call last):
    ...
    ValueError: unknown task 'dam:Dam-v0': import its module first (`import dam`, or --import dam from the folder it is in)
    """
    module, _, own = name.rpartition(":")
    if module and not in_jax(own):
        raise ValueError(
            f"unknown task {name!r}: import its module first (`import {module}`, or --import {module} from the folder it is in)"
        )
    found = find(own, "device")[0]
    assert isinstance(found, Task)
    return found


def remembered(name: str, data: dict[str, Any], cost: CostFunction | None) -> Simulator:
    """The simulator of a run folder."""
    from pcces.envs.safety.simulator import known_as, safety_simulator

    if not data["cost_function"] and known_as(name):
        return safety_simulator(name)
    found = Simulator.from_dict(name, data, cost)
    if name in tasks():
        import gymnasium

        id_ = name if name in gymnasium.registry and not make(name).cost_names else f"pcces/{name}"
        found = replace(found, spec=gymnasium.spec(id_))
    return found
