"""OpenES: evolution strategies as a scalable alternative to reinforcement learning (Salimans et al. 2017, algorithm 2).

Mirrored Gaussian samples, their fitness as centred ranks, the weighted mean of the noise as a gradient for Adam, L2
weight decay. It knows no constraints: on tasks with costs, the costs over their limits are taken from the fitness.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pcces.baselines import start
from pcces.baselines.population import PopulationSettings, play
from pcces.engines.device import Program
from pcces.envs.task import Task
from pcces.rl.normalizer import Normalizer, carry_over
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.strategies import mirrored
from pcces.strategies.shaping import centred_rank

Array = Any


@dataclass(frozen=True)
class OpenESSettings(PopulationSettings):
    """The paper under reproduction: sigma^ES 1, step size 0.1 of [0.1, 0.01, 0.001, 0.05], L2 1e-4, lambda 40, 80, 240."""

    step_size: float = 0.1  # of Adam


class OpenESState(NamedTuple):
    """All that an iteration starts from."""

    k: Array
    x: Array
    adam: Any
    normalizer: Normalizer


def program(task: Task, policy: Policy, problem: Problem, settings: OpenESSettings) -> Program:
    """OpenES on this task."""

    def begin(x: Array, normalizer: Normalizer) -> OpenESState:
        return OpenESState(jnp.int32(0), x, optax.adam(settings.step_size).init(x), normalizer)

    return Program(
        lambda key: begin(*start.first(task, policy, problem, settings, key)),
        partial(step, task, policy, problem, settings),
        settings.shares,
        lambda key: begin(*start.blank(policy)),
    )


def gradient(f: Array, directions: Array, deviation: float) -> Array:
    """The slope of the mean shaped f under x + deviation * direction, for f to be minimised; directions are standard normal.

    >>> d = jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> print(gradient(jnp.array([3.0, 1.0]), d, 0.5))
    [1. 0.]
    """
    return centred_rank(f) @ directions / (f.shape[0] * deviation)


def step(
    task: Task, policy: Policy, problem: Problem, settings: OpenESSettings, state: OpenESState, key: Array
) -> tuple[OpenESState, dict[str, Any]]:
    """One iteration."""
    k, x, adam, normalizer = state
    z_key, play_key = jax.random.split(jax.random.fold_in(key, k))
    deviation = settings.deviation(x.size)
    directions = mirrored(jax.random.normal(z_key, (settings.population // 2, x.size)))
    everyone = jnp.ones(settings.population, bool)
    points = x + deviation * directions
    played = play(task, policy, problem, settings, x, normalizer, points, everyone, play_key)

    slope = gradient(played.f, directions, deviation)
    updates, adam = optax.adam(settings.step_size).update(slope + settings.l2 * x, adam)
    new = start.learnt(settings, normalizer, played.seen, k)
    after = carry_over(policy, x + updates, normalizer, new)
    metrics = played.metrics | {
        "success": jnp.bool_(True),
        "gradient": jnp.linalg.norm(slope),
        "step": jnp.linalg.norm(updates),
    }
    return OpenESState(k + 1, after, adam, new), metrics
