"""The arena of a run: the device if its task is written in JAX, workers if it is a simulator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pcces.engines.arena import Engine, Program
from pcces.envs.lookup import resolve_again
from pcces.envs.simulator import Simulator
from pcces.envs.task import Task
from pcces.rl.progress import EpisodeProgress

if TYPE_CHECKING:
    from pcces.rl.algorithm import Algorithm
    from pcces.rl.run import Run
    from pcces.rl.worker import Search


def arena_and_engine(run: Run, algorithm: Algorithm, settings: Any, seeds: Sequence[int]) -> tuple[Any, Engine]:
    """The arena of runs like this one, and the program that advances them."""
    c = run.config
    if c.get("engine", "device") == "device":
        from pcces.engines.device import DeviceEngine, configure

        configure()
        arena, program = _device_program(algorithm.program, run.task, run.shape, run.problem, settings)
        return arena, DeviceEngine(program, seeds)
    from pcces.engines.stepwise import StepwiseEngine

    arena = worker_arena(run, c["engine"], c.get("workers"), c.get("ray_address"), algorithm.search(settings))
    return arena, StepwiseEngine(arena, algorithm.program(arena, settings), seeds)


@functools.lru_cache(maxsize=8)
def _device_program(
    make: Callable[[Any, Any], Program], task: Task, policy: Any, problem: Any, settings: Any
) -> tuple[Any, Program]:
    """Equal runs share their program, and with it what was compiled of it."""
    from pcces.rl.device_arena import DeviceArena

    arena = DeviceArena(task, policy, problem, settings.discount)
    return arena, make(arena, settings)


def worker_arena(run: Run, engine: str, workers: int | None, address: str | None, search: Search | None = None) -> Any:
    """Workers on this machine, or on a Ray cluster."""
    from pcces.rl.worker_arena import WorkerArena

    assert isinstance(run.task, Simulator)
    pool: Callable[..., Any]
    if engine == "ray":
        from pcces.engines.ray import RayPool

        pool = functools.partial(RayPool, workers=workers, address=address)
    else:
        from pcces.engines.processes import LocalPool

        pool = functools.partial(LocalPool, workers=workers)
    discount = run.config["settings"]["discount"]
    return WorkerArena(run.task.known(), run.shape, run.problem, discount, pool, search, run.config.get("step_timeout"))


def elsewhere(run: Run, engine: str | None) -> Run:
    """The run with its task as another engine plays it: a policy trained in JAX, say, on the simulator it is meant for."""
    here = run.task
    if engine is None or engine == run.config.get("engine", "device"):
        return run
    if isinstance(here, Simulator) and engine in ("local", "ray"):
        return run  # with its options and its cost function, as workers of either kind play it
    if isinstance(here, Simulator) and (here.options or here.cost is not None or here.maker is not None):
        raise ValueError(
            f"{here.name} was made with options or a cost function, or given as it is, which the engine {engine} does not know"
        )
    task = resolve_again(run.config, engine)
    if (task.observation_size, task.actions) != (here.observation_size, here.actions):
        raise ValueError(
            f"{task.name} has {task.observation_size} observations and the actions {task.actions} there, but the policy is "
            f"for {here.observation_size} and {here.actions}"
        )
    return replace(run, task=task)


@contextmanager
def playing(run: Run, progress: bool | None = None) -> Iterator[Any]:
    """A function that plays fresh episodes of policies of a finished run; simulators run in workers of this machine."""
    arena: Any
    if isinstance(run.task, Simulator):
        arena = worker_arena(run, "local", None, None)
    else:
        from pcces.engines.device import configure
        from pcces.rl.device_arena import DeviceArena

        configure()
        arena = DeviceArena(run.task, run.shape, run.problem, 1.0)
    try:
        with EpisodeProgress(progress) as shown:
            arena.watch = shown.update
            yield arena.fresh
    finally:
        arena.close()
