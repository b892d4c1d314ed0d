"""Where a task's episodes are played: on the device if it is written in JAX, by workers if it is a simulator."""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pcces.envs import make, tasks
from pcces.envs.registry import ALIASES, in_jax
from pcces.envs.simulator import CostFunction, Simulator, checked_cost_bounds, simulator
from pcces.envs.task import Continuous, Task
from pcces.rl import algorithms

if TYPE_CHECKING:
    from pcces.rl.crew import Crew
    from pcces.rl.episodes import Search
    from pcces.rl.run import Run

ENGINES = ("device", "local", "ray")
CERTIFY_EPISODES = {"device": 1000, "local": 200, "ray": 200}
GAUSSIAN = 0.5 * math.log(2 * math.pi * math.e)  # the entropy of a standard normal


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


def first_settings(
    task: Task | Simulator, engine: str, entropy_bounds: tuple[float, float], slow: dict[str, Any]
) -> dict[str, Any]:
    """What the defaults become where episodes are slow: an algorithm's settings `slow`, and a start feasible to the end.

    A Gaussian head starts with the noise in the middle of what the entropy bounds allow an episode of full length, if
    they do not allow its usual noise. Early episodes are short and keep the bounds with any noise, but one coordinate
    among thousands moves too slowly to get the noise down by the time they are long.

    >>> from pcces.envs import make
    >>> first_settings(make("Pendulum-v1"), "local", (0.0, 200.0), {"last_layer": 0.3})
    {'last_layer': 0.3, 'log_std': -0.9189}
    >>> first_settings(make("Pendulum-v1"), "device", (0.0, 200.0), {"last_layer": 0.3})
    {}
    """
    if engine == "device" and not (isinstance(task, Task) and task.costly):
        return {}
    calm = dict(slow)
    low, high = entropy_bounds
    if isinstance(task.actions, Continuous) and math.isfinite(high) and math.isfinite(low):
        numbers = task.max_steps * task.actions.size
        if not low <= GAUSSIAN * numbers <= high:
            calm["log_std"] = round((low + high) / 2 / numbers - GAUSSIAN, 4)
    return calm


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


def checked(engine: str, workers: int | None, ray_address: str | None, step_timeout: float | None) -> dict[str, Any]:
    """What is asked of the engine, as plain data, if it has a meaning.

    >>> checked("local", 2, None, 10.0)
    {'workers': 2, 'ray_address': None, 'step_timeout': 10.0}
    """
    if engine == "device":
        if workers is not None:
            raise ValueError(f"the device engine uses every core by itself: workers={workers} has no meaning for it")
        if step_timeout is not None:
            raise ValueError("a step on the device cannot hang: step_timeout is for engine='local' and 'ray'")
    if ray_address is not None and engine != "ray":
        raise ValueError("ray_address is the address of a Ray cluster: give engine='ray' with it")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    if step_timeout is not None and not step_timeout > 0:
        raise ValueError(f"step_timeout must be a positive number of seconds, got {step_timeout}")
    return {"workers": workers, "ray_address": ray_address, "step_timeout": step_timeout}


def make_engine(run: Run, seeds: Sequence[int], settings: Any) -> Any:
    """What advances these runs."""
    c = run.config
    algorithm = algorithms.find(c["algorithm"])
    if c.get("engine", "device") == "device":
        from pcces.engines.device import DeviceEngine, configure

        assert isinstance(run.task, Task)
        configure()
        return DeviceEngine(
            run.task, run.shape, _program(c["algorithm"], run.task, run.shape, run.problem, settings), seeds
        )
    from pcces.rl.on_workers import WorkerEngine

    crew = _crew(run, c["engine"], c.get("workers"), c.get("ray_address"), algorithm.search(settings))
    return WorkerEngine(crew, algorithm.driver(crew, run.problem, settings), seeds)


@functools.lru_cache(maxsize=8)
def _program(algorithm: str, *what: Any) -> Any:
    """Equal runs share their program, and with it what was compiled of it."""
    return algorithms.find(algorithm).program(*what)


def _crew(run: Run, engine: str, workers: int | None, address: str | None, search: Search | None = None) -> Crew:
    from pcces.rl.crew import Crew

    assert isinstance(run.task, Simulator)
    pool: Callable[..., Any]
    if engine == "ray":
        from pcces.engines.ray import RayPool

        pool = functools.partial(RayPool, workers=workers, address=address)
    else:
        from pcces.engines.processes import LocalPool

        pool = functools.partial(LocalPool, workers=workers)
    discount = run.config["settings"]["discount"]
    return Crew(run.task.known(), run.shape, run.problem, discount, pool, search, run.config.get("step_timeout"))


def close(engine: Any) -> None:
    """Let go of what an engine holds."""
    if hasattr(engine, "close"):
        engine.close()


def elsewhere(run: Run, engine: str | None) -> Run:
    """The run with its task as another engine plays it: a policy trained in JAX, say, on the simulator it is meant for."""
    if engine is None or engine == run.config.get("engine", "device"):
        return run
    return replace(run, task=find(run.config["task"], engine)[0])


@contextmanager
def playing(run: Run, progress: bool | None = None) -> Iterator[Any]:
    """A function that plays fresh episodes of policies of a finished run; simulators run in workers of this machine."""
    from pcces.rl.progress import EpisodeProgress

    engine: Any
    if isinstance(run.task, Simulator):
        engine = _crew(run, "local", None, None)
    else:
        from pcces.engines.device import Player, configure

        configure()
        engine = Player(run.task, run.shape)
    try:
        with EpisodeProgress(progress) as shown:
            engine.watch = shown.update
            yield engine.play
    finally:
        close(engine)
