"""Tasks by name. Nothing here imports JAX before a task is made."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from typing import NamedTuple, TypeVar, cast

from pcces.envs.check import check
from pcces.envs.task import Task
from pcces.support.text import suggestion


class Entry(NamedTuple):
    """The place of a task's class, and what Gymnasium must know before the class, and so JAX, is imported."""

    where: str  # module:Class in pcces.envs; Delayed(...) around it for the delayed ones
    max_steps: int
    reward_threshold: float | None = None
    delayed: bool = False


BUILT_IN = {
    "CartPole-v1": Entry("cartpole:CartPole", 500, 475.0),
    "CartPole-v0": Entry("cartpole:CartPole200", 200, 195.0),
    "Acrobot-v1": Entry("acrobot:Acrobot", 500, -100.0),
    "Pendulum-v1": Entry("pendulum:Pendulum", 200),
    "MountainCar-v0": Entry("mountain_car:MountainCar", 200, -110.0),
    "MountainCarContinuous-v0": Entry("mountain_car:MountainCarContinuous", 999, 90.0),
    "CartSafe-v0": Entry("cartpole:CartSafe", 300, 520.0),
    "MountainCarContinuousSafe-v0": Entry("mountain_car:MountainCarContinuousSafe", 999, 90.0),
    "CartSafeDelayed-v0": Entry("cartpole:CartSafe", 300, 520.0, delayed=True),
    "MountainCarContinuousSafeDelayed-v0": Entry("mountain_car:MountainCarContinuousSafe", 999, 90.0, delayed=True),
}
ALIASES = {  # the names in the paper's Tables 5 and 6
    "CartPoleSafeDelayed-v0": "CartSafeDelayed-v0",
    "MountainCarSafeDelayed-v0": "MountainCarContinuousSafeDelayed-v0",
}
BRAX = tuple(f"brax/{name}" for name in ("ant", "hopper", "walker2d", "inverted_pendulum", "inverted_double_pendulum"))
SCENES = tuple(  # of safety navigation, known here without importing it
    f"{agent}{task}{level}" for agent in ("Point", "Car") for task in ("Goal", "Button") for level in range(3)
)
SCENE_ID = re.compile(r"(?:pcces/|Safety|Safexp-)?(\w+?)(?:-v0)?")
ROBOTS = ("Hopper", "HalfCheetah", "Walker2d", "Ant", "Swimmer", "Humanoid")  # of the velocity tasks, likewise
VELOCITY_ID = re.compile(r"(?:pcces/)?(?:Safety)?(\w+?)Velocity-v1")
_own: dict[str, Task] = {}


class UnknownTaskError(ValueError):
    """There is no task of that name."""


TaskOrClass = TypeVar("TaskOrClass", bound=Task | type[Task])


def tasks() -> tuple[str, ...]:
    """The ids that `make` knows, those you registered last; Brax's where it is installed.

    >>> "CartSafe-v0" in tasks()
    True
    """
    return (*BUILT_IN, *(BRAX if importlib.util.find_spec("brax") else ()), *_own)


def in_jax(name: str) -> bool:
    """Whether an id is that of a task in JAX, be what it needs installed or not.

    >>> in_jax("CartSafe-v0"), in_jax("brax/ant-mjx"), in_jax("HopperBulletEnv-v0")
    (True, True, False)
    """
    return name.startswith("brax/") or name in tasks() or name in ALIASES


def own_id(name: str) -> str:
    """The id in MODULE:NAME of a run folder. The folder may come from a stranger, so the module is not imported for it.

    >>> own_id("math:Dam-v0"), own_id("Dam-v0")
    ('Dam-v0', 'Dam-v0')
    >>> own_id("dam:Dam-v0")
    Traceback (most recent call last):
    ...
    pcces.envs.registry.UnknownTaskError: unknown task 'dam:Dam-v0': a run folder imports no modules; import its module first (`import dam`, or --import dam from the folder it is in)
    """
    module, _, own = name.rpartition(":")
    if module and module not in sys.modules and not in_jax(own):
        raise UnknownTaskError(
            f"unknown task {name!r}: a run folder imports no modules; import its module first "
            f"(`import {module}`, or --import {module} from the folder it is in)"
        )
    return own


def scene_of(name: str) -> str | None:
    """The scene of safety navigation behind a task's id, by ours or Safety-Gymnasium's or the paper's name, or None.

    >>> scene_of("SafetyPointGoal1-v0"), scene_of("Safexp-CarGoal1-v0"), scene_of("pcces/PointButton1-v0")
    ('PointGoal1', 'CarGoal1', 'PointButton1')
    >>> scene_of("CartPole-v1") is None
    True
    """
    match = SCENE_ID.fullmatch(name)
    return match[1] if match and match[1] in SCENES else None


def robot_of(name: str) -> str | None:
    """The robot of a velocity task's id, by ours or Safety-Gymnasium's name, or None.

    >>> robot_of("SafetyHopperVelocity-v1"), robot_of("pcces/AntVelocity-v1"), robot_of("Hopper-v5")
    ('Hopper', 'Ant', None)
    """
    match = VELOCITY_ID.fullmatch(name)
    return match[1] if match and match[1] in ROBOTS else None


def velocity_id(robot: str) -> str:
    """The Gymnasium id of a robot's velocity task.

    >>> velocity_id("Hopper")
    'pcces/HopperVelocity-v1'
    """
    return f"pcces/{robot}Velocity-v1"


def make(task: str | Task) -> Task:
    """The task with this id. A task object is returned unchanged.

    >>> make("CartSafe-v0").thresholds
    (30.0,)
    >>> make("cartsafe")
    Traceback (most recent call last):
    pcces.envs.registry.UnknownTaskError: unknown task 'cartsafe'; did you mean 'CartSafe-v0' or 'CartSafeDelayed-v0'? (pcces.envs.tasks() lists all)
    """
    if isinstance(task, Task):
        return task
    if not isinstance(task, str):
        raise TypeError(f"a task is given by its id or as a pcces.envs.Task, not as {task!r}")
    name = ALIASES.get(task, task)
    if name in _own:
        return _own[name]
    if name.startswith("brax/"):
        if not importlib.util.find_spec("brax"):
            raise ImportError(f"{name} needs the extra 'brax': pip install 'pcces[rl,brax]'")
        from pcces.envs.brax import named

        return named(name)
    if name not in BUILT_IN:
        raise UnknownTaskError(f"unknown task {task!r}; {suggestion(task, tasks(), 3)} (pcces.envs.tasks() lists all)")
    module, _, cls = BUILT_IN[name].where.partition(":")
    try:
        made = getattr(importlib.import_module(f"pcces.envs.{module}"), cls)()
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("pcces"):
            raise
        raise ImportError(f"the task {name} needs {error.name}: pip install 'pcces[rl]'") from error
    if BUILT_IN[name].delayed:
        from pcces.envs.delayed import Delayed

        return Delayed(made)
    return cast(Task, made)


def register_task(task: TaskOrClass) -> TaskOrClass:
    """Register your own task for `make`, and for Gymnasium as `pcces/NAME`. It also works as a class decorator.

    It replaces a task of yours with the same name, so you can run a notebook cell again.

    >>> from pcces.envs.delayed import Delayed
    >>> delayed = register_task(Delayed(make("Pendulum-v1")))
    >>> make("PendulumDelayed-v1") is delayed
    True
    """
    instance = task() if isinstance(task, type) and issubclass(task, Task) else task
    if not isinstance(instance, Task):
        raise TypeError(f"register_task takes a pcces.envs.Task or a subclass of it, not {task!r}")
    check(instance)
    if instance.name in BUILT_IN or instance.name in ALIASES:
        raise ValueError(f"{instance.name} is the name of a built-in task: choose another name")
    from pcces.envs.gymnasium_ids import register

    _own[instance.name] = instance
    register(instance.name, instance.max_steps, instance.reward_threshold)
    return task


def own_tasks() -> tuple[Task, ...]:
    """Those that were registered."""
    return tuple(_own.values())
