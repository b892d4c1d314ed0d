"""OpenES: evolution strategies as a scalable alternative to reinforcement learning (Salimans et al. 2017, algorithm 2).

Mirrored Gaussian samples, their fitness as centred ranks, the weighted mean of the noise as a gradient for Adam, L2
weight decay. It knows no constraints: on tasks with costs, the costs over their limits are taken from the fitness.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax

from pcces.baselines.population import Evolution, EvolutionSettings
from pcces.rl.normalizer import Normalizer, Seen, carry_over
from pcces.rl.policy import Policy
from pcces.rl.settings import need, normalised
from pcces.strategies import gaussian
from pcces.strategies.gaussian import GaussianState
from pcces.strategies.shaping import centred_rank
from pcces.support.settings import FIRST, setting

Array = Any


@dataclass(frozen=True)
class OpenESSettings(EvolutionSettings):
    """The paper under reproduction: sigma^ES 1, step size 0.1 of [0.1, 0.01, 0.001, 0.05], L2 1e-4, lambda 40, 80, 240."""

    step_size: float = setting(0.1, "step size of Adam; the best of that grid (docs/results/baselines.md)", FIRST)

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.step_size > 0, f"step_size must be positive, got {self.step_size}")


class OpenESState(NamedTuple):
    """All that an iteration starts from."""

    k: Array
    x: Array
    adam: Any
    normalizer: Normalizer


def begin(settings: OpenESSettings, x: Array, normalizer: Normalizer) -> OpenESState:
    """Before the first iteration."""
    return OpenESState(jnp.int32(0), x, optax.adam(settings.step_size).init(x), normalizer)


def gradient(f: Array, directions: Array, deviation: float) -> Array:
    """The slope of the mean shaped f under x + deviation * direction, for f to be minimised; directions are standard normal.

    >>> d = jnp.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> print(gradient(jnp.array([3.0, 1.0]), d, 0.5))
    [1. 0.]
    """
    return centred_rank(f) @ directions / (f.shape[0] * deviation)


def conclude(
    policy: Policy,
    settings: OpenESSettings,
    state: OpenESState,
    directions: Array,
    used: Array,
    f: Array,
    seen: Seen,
) -> tuple[OpenESState, dict[str, Array]]:
    """An iteration, once its samples have been judged."""
    k, x, adam, normalizer = state
    slope = gradient(f, directions, settings.deviation(x.size))
    updates, adam = optax.adam(settings.step_size).update(slope + settings.l2 * x, adam)
    new = normalised(settings, normalizer, seen, k)
    after = carry_over(policy, x + updates, normalizer, new)
    metrics = {
        "success": jnp.bool_(True),
        "gradient": jnp.linalg.norm(slope),
        "step": jnp.linalg.norm(updates),
    }
    return OpenESState(k + 1, after, adam, new), metrics


EVOLUTION = Evolution(
    begin,
    search=lambda settings: gaussian,
    basis=lambda state: GaussianState(),
    scale=lambda settings, n: settings.deviation(n),
    used=lambda settings, state: np.ones(settings.population, bool),
    conclude=conclude,
)
