"""Which task somebody means: by name, or as it is; for a new run, or for the folder of an old one."""

from __future__ import annotations

import copy
import importlib
import re
import sys
from dataclasses import replace
from typing import Any

from pcces.engines import ENGINES
from pcces.envs.check import check
from pcces.envs.costs import Bounds, CostFunction, checked
from pcces.envs.making import check_options, find_id, gymnasium_id
from pcces.envs.registry import ALIASES, UnknownTaskError, in_jax, make, own_id, robot_of, scene_of, velocity_id
from pcces.envs.simulator import Simulator, looked_at_longer, made_with, simulator, time_limit_of, with_cost
from pcces.envs.task import Task


def name_of(task: Any) -> str:
    """What a task is called in configurations and folders.

    >>> name_of("CartPoleSafeDelayed-v0"), name_of("SafetyHopperVelocity-v1")
    ('CartSafeDelayed-v0', 'pcces/HopperVelocity-v1')
    """
    if not isinstance(task, str):
        return _own(task).name
    robot = robot_of(task)
    return velocity_id(robot) if robot else ALIASES.get(task, task)


def resolve(
    task: Any,
    engine: str | None = None,
    cost: CostFunction | None = None,
    cost_bounds: Bounds | str | None = None,
    episode_cost_bounds: Bounds | str | None = None,
    limited: bool = False,
    env_args: dict[str, Any] | None = None,
    max_steps: int | None = None,
) -> tuple[Task | Simulator, str]:
    """The task, and the engine that plays it: None means the device for JAX tasks and local workers for anything else.

    `limited`: its costs are to be limited, so they are looked for until they show. Bounds of "none": it has none any more.
    MODULE:NAME imports the module first, which registers the task with Gymnasium or with `pcces.envs`, or has it by that name.
    `env_args` are what it is made with, and `max_steps` cuts its episodes sooner.

    >>> resolve("CartPole-v1")[1], resolve("CartPole-v1", "local")[0].max_steps
    ('device', 500)
    """
    if engine is not None and engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; there are {', '.join(ENGINES)}")
    task = _registered(task)
    if engine is None:
        engine = "device" if _in_jax(task) and cost is None else "local"
    if engine == "device":
        compiled = adapted(_on_the_device(task, cost), env_args, max_steps)
        if cost_bounds is not None or episode_cost_bounds is not None:
            raise ValueError(
                f"{compiled.name} is a task in JAX, and says itself what a step or an episode costs: its `cost_bounds` and "
                "`episode_cost_bounds`"
            )
        return compiled, engine
    simulated = _by_workers(task, cost, env_args or {}, max_steps)
    if limited and not simulated.cost_names:
        simulated = looked_at_longer(simulated)
    if cost_bounds is not None:
        simulated = replace(simulated, cost_bounds=checked(cost_bounds))
    if episode_cost_bounds is not None:
        simulated = replace(simulated, episode_cost_bounds=checked(episode_cost_bounds, "episode"))
    return simulated, engine


def resolve_again(config: dict[str, Any], engine: str) -> Task | Simulator:
    """The task of a run folder as another engine plays it."""
    env_args, max_steps = config.get("env_args"), config.get("max_steps")
    return resolve(own_id(config["task"]), engine, env_args=env_args, max_steps=max_steps)[0]


def _own(task: Any) -> Any:
    """A task, a simulator, or what makes an environment that was given as it is (`pcces.envs.objects.Given`)."""
    if isinstance(task, type) and issubclass(task, Task):
        task = task()
    if isinstance(task, Task) and not type(task).__module__.startswith("pcces."):
        check(task)
    if isinstance(task, Task | Simulator):
        return task
    from pcces.envs.objects import is_given, understood

    if not is_given(task):
        raise TypeError(
            "a task is given by its id, as a pcces.envs.Task, or as an environment, its class, or a function that makes it; not "
            f"as {task!r}"
        )
    return understood(task)


def _registered(task: Any) -> Any:
    """The task that a module registers with us, by its name; what Gymnasium knows keeps its module."""
    if not isinstance(task, str):
        return _own(task)
    if ":" not in task:
        return task
    module, _, name = task.partition(":")
    if not re.fullmatch(r"\w+(\.\w+)*:[^:]+", task):
        raise UnknownTaskError(f"a task in a module is given as MODULE:NAME, got {task!r}")
    importlib.import_module(module)
    if in_jax(name):
        return name
    return task if _in_gymnasium(name) else _in_module(module, name) or task


def _in_module(module: str, name: str) -> Any:
    """What a module has by this name, if that is a task or an environment, its class, or a function that makes it."""
    found = getattr(sys.modules[module], name, None)
    if not (callable(found) or hasattr(found, "reset") or isinstance(found, Simulator)):
        return None
    own = _own(found)
    return own._replace(name=f"{module}:{name}") if hasattr(own, "_replace") else own


def adapted(task: Task, env_args: dict[str, Any] | None, max_steps: int | None) -> Task:
    """A task in JAX made with other arguments, or cut sooner.

    >>> adapted(make("CartSafe-v0"), None, 50).max_steps
    50
    """
    if env_args:
        try:
            task = type(task)(**env_args)
        except TypeError as error:
            raise TypeError(f"{task.name} is not made with {', '.join(env_args)}: {error}") from error
    if max_steps is not None:
        task = copy.copy(task)
        task.max_steps = time_limit_of(task.name, task.max_steps, max_steps)
    return task


def _in_jax(task: Any) -> bool:
    return isinstance(task, Task) or (isinstance(task, str) and in_jax(task))


def _on_the_device(task: Any, cost: CostFunction | None) -> Task:
    name = name_of(task)
    scene = scene_of(name)
    given = not isinstance(task, str | Task)
    if given or not (_in_jax(task) or scene or not _in_gymnasium(name)):
        raise ValueError(f"{name} is a simulator, not a task in JAX: give engine='local' or 'ray', not 'device'")
    if cost is not None:
        raise ValueError("a task in JAX has its own costs: a cost function needs engine='local' or 'ray'")
    if scene and not _in_jax(task):
        from pcces.envs.safety.in_jax import safety_task

        return safety_task(scene)
    return make(task)


def _in_gymnasium(name: str) -> bool:
    try:
        find_id(name)
    except UnknownTaskError:
        return False
    return True


def _by_workers(task: Any, cost: CostFunction | None, env_args: dict[str, Any], max_steps: int | None) -> Simulator:
    if isinstance(task, Simulator):
        if env_args:
            raise ValueError(
                f"{task.name} was made with its arguments already: give {', '.join(env_args)} to simulator(...)"
            )
        task = replace(task, max_steps=time_limit_of(task.name, task.max_steps, max_steps))
        return task if cost is None else with_cost(task, cost)
    if isinstance(task, Task) or (isinstance(task, str) and in_jax(task)):
        return _step_by_step(make(task), cost, env_args, max_steps)
    if isinstance(task, str) and (scene := scene_of(task)):
        from pcces.envs.safety.simulator import safety_simulator

        return _by_workers(safety_simulator(scene, **env_args), cost, {}, max_steps)
    if cost is None and isinstance(task, str) and robot_of(task):
        from pcces.envs.velocity import velocity_simulator

        return _by_workers(velocity_simulator(task, **env_args), None, {}, max_steps)
    return simulator(name_of(task) if isinstance(task, str) else task, cost, max_steps=max_steps, **env_args)


def _step_by_step(task: Task, cost: CostFunction | None, env_args: dict[str, Any], max_steps: int | None) -> Simulator:
    """One of our tasks as a simulator: Gymnasium's own where it has one of that name, else ours one step at a time."""
    if task.name.startswith("brax/"):
        raise ValueError(f"{task.name} only runs on the device engine: single steps would take too long")
    if not type(task).__module__.startswith("pcces."):
        raise ValueError(
            f"{task.name} is your own task in JAX, which workers do not know: it runs on the device engine"
        )
    simulated = simulator(gymnasium_id(task.name), cost, max_steps=max_steps, **env_args)
    if cost is None and task.cost_names:
        simulated = replace(
            simulated, cost_names=task.cost_names, thresholds=tuple(task.thresholds), cost_bounds=task.cost_bounds,
            episode_cost_bounds=task.episode_cost_bounds,
        )  # fmt: skip
    return replace(simulated, name=task.name, entropy_bounds=task.entropy_bounds)


def task_of_run(name: str, env_args: dict[str, Any] | None = None, max_steps: int | None = None) -> Task:
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
            f"unknown task {name!r} in JAX: register your own task first (import its module, or --import MODULE)"
        )
    check_options(name, env_args or {})
    try:
        return adapted(_on_the_device(own, None), env_args, max_steps)
    except TypeError as error:  # arguments that were changed in the file, not given by who calls
        raise ValueError(str(error)) from error


def simulator_of_run(name: str, data: dict[str, Any], cost: CostFunction | None, given: Any = None) -> Simulator:
    """The simulator of a run folder, from what `Simulator.to_dict` gave; `given`: its environment as it is."""
    kept = Simulator.from_dict(name, data, cost)
    if given is not None:
        return made_with(kept, _own(given))
    if scene_of(name):
        from pcces.envs.safety.simulator import scene_of_run

        return scene_of_run(kept)
    return kept
