"""Which task somebody means: by name, or as a task or simulator itself; for a new run, or for the folder of an old one."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from typing import Any

from pcces.engines import ENGINES
from pcces.envs.costs import Bounds, CostFunction, checked
from pcces.envs.making import gymnasium_id, make_gymnasium
from pcces.envs.registry import ALIASES, UnknownTaskError, in_jax, make, own_id, robot_of, scene_of, velocity_id
from pcces.envs.simulator import Simulator, looked_at_longer, simulator, with_cost
from pcces.envs.task import Task


def name_of(task: str | Task | Simulator) -> str:
    """What a task is called in configurations and folders.

    >>> name_of("CartPoleSafeDelayed-v0"), name_of("SafetyHopperVelocity-v1")
    ('CartSafeDelayed-v0', 'pcces/HopperVelocity-v1')
    """
    if not isinstance(task, str):
        return task.name
    robot = robot_of(task)
    return velocity_id(robot) if robot else ALIASES.get(task, task)


def resolve(
    task: str | Task | Simulator,
    engine: str | None = None,
    cost: CostFunction | None = None,
    cost_bounds: Bounds | str | None = None,
    episode_cost_bounds: Bounds | str | None = None,
    limited: bool = False,
) -> tuple[Task | Simulator, str]:
    """The task, and the engine that plays it: None means the device for JAX tasks and local workers for anything else.

    `limited`: its costs are to be limited, so they are looked for until they show. Bounds of "none": it has none any more.
    MODULE:NAME imports the module first, which registers the task with Gymnasium or with `pcces.envs`.

    >>> resolve("CartPole-v1")[1], resolve("CartPole-v1", "local")[0].max_steps
    ('device', 500)
    """
    if engine is not None and engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; there are {', '.join(ENGINES)}")
    task = _registered(task)
    if engine is None:
        engine = "device" if _in_jax(task) and cost is None else "local"
    if engine == "device":
        compiled = _on_the_device(task, cost)
        if cost_bounds is not None or episode_cost_bounds is not None:
            raise ValueError(
                f"{compiled.name} is a task in JAX, and says itself what a step or an episode costs: its `cost_bounds` and "
                "`episode_cost_bounds`"
            )
        return compiled, engine
    simulated = _by_workers(task, cost)
    if limited and not simulated.cost_names:
        simulated = looked_at_longer(simulated)
    if cost_bounds is not None:
        simulated = replace(simulated, cost_bounds=checked(cost_bounds))
    if episode_cost_bounds is not None:
        simulated = replace(simulated, episode_cost_bounds=checked(episode_cost_bounds, "episode"))
    return simulated, engine


def resolve_again(name: str, engine: str) -> Task | Simulator:
    """The task of a run folder as another engine plays it."""
    return resolve(own_id(name), engine)[0]


def _registered(task: str | Task | Simulator) -> str | Task | Simulator:
    """The task that a module registers with us, by its name; what Gymnasium knows keeps its module."""
    if not isinstance(task, str) or ":" not in task:
        return task
    module, _, name = task.partition(":")
    if not re.fullmatch(r"\w+(\.\w+)*:[^:]+", task):
        raise UnknownTaskError(f"a task in a module is given as MODULE:NAME, got {task!r}")
    importlib.import_module(module)
    return name if in_jax(name) else task


def _in_jax(task: str | Task | Simulator) -> bool:
    return isinstance(task, Task) or (isinstance(task, str) and in_jax(task))


def _on_the_device(task: str | Task | Simulator, cost: CostFunction | None) -> Task:
    name = name_of(task)
    scene = scene_of(name)
    if isinstance(task, Simulator) or not (_in_jax(task) or scene or not _in_gymnasium(name)):
        raise ValueError(f"{name} is a simulator, not a task in JAX: give engine='local' or 'ray', not 'device'")
    if cost is not None:
        raise ValueError("a task in JAX has its own costs: a cost function needs engine='local' or 'ray'")
    if scene and not _in_jax(task):
        from pcces.envs.safety.in_jax import safety_task

        return safety_task(scene)
    return make(task)


def _in_gymnasium(name: str) -> bool:
    try:
        make_gymnasium(name).close()
    except UnknownTaskError:
        return False
    return True


def _by_workers(task: str | Task | Simulator, cost: CostFunction | None) -> Simulator:
    if isinstance(task, Simulator):
        return task if cost is None else with_cost(task, cost)
    if isinstance(task, Task) or in_jax(task):
        return _step_by_step(make(task), cost)
    if scene := scene_of(task):
        from pcces.envs.safety.simulator import safety_simulator

        return _by_workers(safety_simulator(scene), cost)
    if cost is None and robot_of(task):
        from pcces.envs.velocity import velocity_simulator

        return velocity_simulator(task)
    return simulator(name_of(task), cost)


def _step_by_step(task: Task, cost: CostFunction | None) -> Simulator:
    """One of our tasks as a simulator: Gymnasium's own where it has one of that name, else ours one step at a time."""
    if task.name.startswith("brax/"):
        raise ValueError(f"{task.name} runs on the device engine only: one step at a time it would take forever")
    if not type(task).__module__.startswith("pcces."):
        raise ValueError(
            f"{task.name} is a task of your own in JAX, which workers do not know: it runs on the device engine"
        )
    simulated = simulator(gymnasium_id(task.name), cost)
    if cost is None and task.cost_names:
        simulated = replace(
            simulated, cost_names=task.cost_names, thresholds=tuple(task.thresholds), cost_bounds=task.cost_bounds,
            episode_cost_bounds=task.episode_cost_bounds,
        )  # fmt: skip
    return replace(simulated, name=task.name, entropy_bounds=task.entropy_bounds)


def task_of_run(name: str) -> Task:
    """The task in JAX of a run folder, which may come from a stranger: nothing is imported for it but what is ours.

    >>> task_of_run("HopperBulletEnv-v0")
    Traceback (most recent call last):
    ...
    pcces.envs.registry.UnknownTaskError: unknown task 'HopperBulletEnv-v0' in JAX: one of your own has to be registered first (import its module, or --import MODULE)
    """
    own = own_id(name)
    scene = scene_of(own)
    if not in_jax(own) and not scene:
        raise UnknownTaskError(
            f"unknown task {name!r} in JAX: one of your own has to be registered first (import its module, or "
            "--import MODULE)"
        )
    return _on_the_device(own, None)


def simulator_of_run(name: str, data: dict[str, Any], cost: CostFunction | None) -> Simulator:
    """The simulator of a run folder, from what `Simulator.to_dict` gave."""
    kept = Simulator.from_dict(name, data, cost)
    if scene_of(name):
        from pcces.envs.safety.simulator import scene_of_run

        return scene_of_run(kept)
    return kept
