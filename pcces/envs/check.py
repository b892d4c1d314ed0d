"""Finding mistakes in a task before it runs."""

from __future__ import annotations

import re

from pcces.envs.task import Continuous, Discrete, Step, Task

MOST_OBSERVATIONS = 4000  # numbers: a batch of 30 000 steps takes half a gigabyte then


def check(task: Task) -> None:
    """Say in plain words what is wrong with a task. Inside a compiled rollout, JAX could say it only in its own.

    Nothing is computed: shapes and types alone are traced. `register_task` calls this.

    >>> from pcces.envs import make
    >>> check(make("Pendulum-v1"))
    """
    import jax
    import jax.numpy as jnp

    for attribute in ("name", "observation_size", "actions", "max_steps"):
        if not hasattr(task, attribute):
            raise ValueError(f"{type(task).__name__} has no {attribute}: set it as a class attribute")
    if not re.fullmatch(r"[\w.-]+", task.name):
        raise ValueError(f"a task's name is letters, digits and '_.-', for example MyTask-v0, not {task.name!r}")
    if not isinstance(task.actions, Discrete | Continuous):
        raise TypeError(f"{task.name}: actions must be Discrete(n) or Continuous(low, high), not {task.actions!r}")
    if len(task.thresholds) != len(task.cost_names):
        raise ValueError(f"{task.name}: every cost needs a threshold, got {task.cost_names} and {task.thresholds}")
    check_size(task.name, task.observation_size)
    for limits in (task.observation_low, task.observation_high):
        if len(limits) not in (0, task.observation_size):
            raise ValueError(f"{task.name}: {task.observation_size} observations, but {len(limits)} limits for them")

    key = jax.random.key(0)
    action = jnp.int32(0) if isinstance(task.actions, Discrete) else jnp.zeros(task.actions.size)
    state = jax.eval_shape(task.reset, key)
    after = jax.eval_shape(task.step, state, action, key)
    if not isinstance(after, Step):
        raise TypeError(f"{task.name}: step must return a pcces.envs.Step, not a {type(after).__name__}")

    def shape(tree: object) -> str:
        return str(jax.tree.map(lambda leaf: f"{leaf.dtype}{list(leaf.shape)}", tree)).replace("'", "")

    for what, actual, wanted in (
        ("the state after a step", shape(after.state), shape(state)),
        ("an observation", shape(jax.eval_shape(task.observe, state)), f"float32[{task.observation_size}]"),
        ("the reward", shape(after.reward), "float32[]"),
        ("costs", shape(after.costs), f"float32[{len(task.cost_names)}]"),
        ("terminated", shape(after.terminated), "bool[]"),
    ):
        if actual != wanted:
            raise ValueError(f"{task.name}: {what} must be {wanted}, but is {actual}")


def check_size(name: str, size: int, space: object = None) -> None:
    """Refuse observations of more numbers than a small dense network has a use for, and say what helps.

    >>> check_size("CarRacing-v3", 27648)
    Traceback (most recent call last):
    ...
    ValueError: CarRacing-v3 has observations of 27648 numbers, as pictures have; policies here are small dense networks, which take at most 4000. Give them what the picture shows, such as the places and speeds the simulator knows, or the output of an encoder of yours; or make it small: gymnasium.wrappers.GrayscaleObservation, then ResizeObservation to (32, 32)
    """
    if size > MOST_OBSERVATIONS:
        kind = "" if space is None else f" ({space})"
        raise ValueError(
            f"{name} has observations of {size} numbers{kind}, as pictures have; policies here are small dense networks, which "
            f"take at most {MOST_OBSERVATIONS}. Give them what the picture shows, such as the places and speeds the simulator "
            "knows, or the output of an encoder of yours; or make it small: gymnasium.wrappers.GrayscaleObservation, then "
            "ResizeObservation to (32, 32)"
        )
