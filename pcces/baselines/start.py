"""Where every algorithm starts, and how its normalisation learns: as PCCES does, so that equal seeds and networks start equal."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from pcces.baselines.settings import Common
from pcces.envs.task import Task
from pcces.rl import on_device
from pcces.rl.normalizer import Normalizer, Seen, identity, update
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.settings import Settings

Array = Any


def as_pcces(settings: Common) -> Settings:
    """The settings by which PCCES would start in the same way."""
    return Settings(
        hidden=settings.hidden,
        log_std=settings.log_std,
        last_layer=settings.last_layer,
        initial_tries=settings.initial_tries,
        normalise=settings.normalise,
        discount=settings.discount,
    )


def first(task: Task, policy: Policy, problem: Problem, settings: Common, key: Array) -> tuple[Array, Normalizer]:
    """x_0, the best of `initial_tries` random policies, and the normalisation that their episodes give."""
    learner = on_device.first(task, policy, problem, as_pcces(settings), key)
    return learner.es.x, learner.normalizer


def blank(policy: Policy) -> tuple[Array, Normalizer]:
    """The same structure without content."""
    return jnp.zeros(policy.size), identity(jnp.zeros(policy.observation_size))


def learnt(settings: Common, normalizer: Normalizer, seen: Seen, k: Array) -> Normalizer:
    """The normalisation after iteration k has seen so much."""
    if not settings.normalise:
        return normalizer
    return update(normalizer, seen, frozen=k + 1 > settings.freeze * settings.iterations)
