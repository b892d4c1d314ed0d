"""ASEBO: from complexity to simplicity, adaptive ES-active subspaces for blackbox optimization (Choromanski et al. 2019).

PCA of the decayed past gradients gives the active subspace U: the components that reach 99.5 % of their energy, at
least ten. Samples come from N(0, alpha / n I + (1 - alpha) / r U U^T), as many as U has dimensions; alpha is the share
of the last gradient's energy outside of U. Until the archive is full, samples are isotropic.

The covariance is never formed: a sample is sqrt(alpha / n) z + sqrt((1 - alpha) / r) U z', two small draws
(`pcces.strategies.asebo`, which also PCCES can use). A compiled program has a population of one size, so samples that
are not asked for are played and then ignored: no weight, no steps counted, nothing learnt from them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pcces.baselines import start
from pcces.baselines.population import PopulationSettings, play
from pcces.baselines.settings import need
from pcces.engines.device import Program
from pcces.envs.task import Task
from pcces.rl.normalizer import Normalizer, carry_over
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.strategies import mirrored
from pcces.strategies.asebo import ASEBOState as Subspace
from pcces.strategies.asebo import asebo
from pcces.strategies.base import Strategy

Array = Any


@dataclass(frozen=True)
class ASEBOSettings(PopulationSettings):
    """The authors' code: k 70, Adam 0.05, at least 10 components, threshold 0.995, decay 0.99, samples of norm 1."""

    step_size: float = 0.05  # of Adam
    archive: int = 70  # k: gradients remembered, and iterations of isotropic warm-up
    threshold: float = 0.995  # of the gradients' energy that the subspace holds
    least: int = 10  # components, and so pairs of samples, at least
    decay: float = 0.99  # of older gradients
    alpha_low: float = 0.1  # limits of the share of sampling outside the subspace
    alpha_high: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        need(0 < self.threshold <= 1 and 0 < self.decay <= 1, "threshold and decay must lie in (0, 1]")
        need(0 <= self.alpha_low <= self.alpha_high <= 1, "0 <= alpha_low <= alpha_high <= 1 must hold")

    @property
    def strategy(self) -> Strategy:
        """The search distribution: `directions` has the covariance above, `update` learns U and alpha from a gradient."""
        return asebo(
            m=self.archive,
            threshold=self.threshold,
            least=self.least,
            decay=self.decay,
            alpha_range=(self.alpha_low, self.alpha_high),
        )


class ASEBOState(NamedTuple):
    """All that an iteration starts from."""

    k: Array
    x: Array
    adam: Any
    subspace: Subspace
    normalizer: Normalizer


def program(task: Task, policy: Policy, problem: Problem, settings: ASEBOSettings) -> Program:
    """ASEBO on this task."""

    def begin(x: Array, normalizer: Normalizer) -> ASEBOState:
        adam = optax.adam(settings.step_size).init(x)
        return ASEBOState(jnp.int32(0), x, adam, settings.strategy.init(x), normalizer)

    return Program(
        lambda key: begin(*start.first(task, policy, problem, settings, key)),
        partial(step, task, policy, problem, settings),
        settings.shares,
        lambda key: begin(*start.blank(policy)),
    )


def pairs(subspace: Subspace, settings: ASEBOSettings) -> Array:
    """How many pairs of samples this iteration has: the subspace's dimensions, or lambda / 2 if those are fewer."""
    half = settings.population // 2
    return jnp.where(subspace.rank > 0, jnp.clip(subspace.rank, min(settings.least, half), half), half)


def gradient(f: Array, directions: Array, used: Array) -> Array:
    """The mean over the used pairs of half their difference in f times the direction; f in units of its deviation.

    >>> d = jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> print(gradient(jnp.array([3.0, 9.0, 1.0, 0.0]), d, jnp.array([True, False, True, False])))
    [1. 0.]
    """
    half = f.shape[0] // 2
    weights = used.astype(f.dtype) / used.sum()
    f = jnp.where(used, f, 0.0)
    mean = weights @ f
    deviation = jnp.sqrt(weights @ (f - mean) ** 2)
    difference = (f[:half] - f[half:]) / jnp.where(deviation > 0, deviation, 1.0)
    return (weights[:half] * difference) @ directions[:half]


def step(
    task: Task, policy: Policy, problem: Problem, settings: ASEBOSettings, state: ASEBOState, key: Array
) -> tuple[ASEBOState, dict[str, Any]]:
    """One iteration."""
    k, x, adam, subspace, normalizer = state
    strategy, half = settings.strategy, settings.population // 2
    z_key, play_key = jax.random.split(jax.random.fold_in(key, k))
    directions = mirrored(strategy.directions(subspace, jax.random.normal(z_key, (half, strategy.normals(x.size)))))
    count = pairs(subspace, settings)
    used = jnp.tile(jnp.arange(half) < count, 2)
    points = x + settings.deviation(x.size) * math.sqrt(x.size) * directions  # directions have norm ~ 1
    played = play(task, policy, problem, settings, x, normalizer, points, used, play_key)

    slope = gradient(played.f, directions, used)
    updates, adam = optax.adam(settings.step_size).update(slope + settings.l2 * x, adam)
    new = start.learnt(settings, normalizer, played.seen, k)
    after = carry_over(policy, x + updates, normalizer, new)
    metrics = played.metrics | {
        "success": jnp.bool_(True),
        "gradient": jnp.linalg.norm(slope),
        "step": jnp.linalg.norm(updates),
        "alpha": subspace.alpha,
        "rank": subspace.rank,
        "samples": 2 * count,
    }
    subspace = strategy.update(subspace, directions, None, updates, slope)
    return ASEBOState(k + 1, after, adam, subspace, new), metrics
