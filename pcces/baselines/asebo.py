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
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import optax

from pcces.baselines.population import Evolution, EvolutionSettings
from pcces.rl.normalizer import Normalizer, Seen, carry_over
from pcces.rl.policy import Policy
from pcces.rl.settings import need, normalised
from pcces.strategies.asebo import ActiveSubspace, asebo
from pcces.strategies.base import Strategy
from pcces.support.settings import FIRST, setting

Array = Any


@dataclass(frozen=True)
class ASEBOSettings(EvolutionSettings):
    """The authors' code: k 70, at least 10 components, threshold 0.995, decay 0.99, samples of norm 1; Adam 0.05 there."""

    step_size: float = setting(
        0.1, "step size of Adam; the best of [0.1, 0.01, 0.001, 0.05] (docs/results/baselines.md)", FIRST
    )
    archive: int = setting(70, "k: gradients remembered, and iterations of isotropic warm-up")
    threshold: float = setting(0.995, "share of the gradients' energy that the subspace holds")
    least: int = setting(10, "components, and so pairs of samples, at least")
    decay: float = setting(0.99, "decay of older gradients")
    alpha_low: float = setting(0.1, "lower bound of the share of sampling outside the subspace")
    alpha_high: float = setting(0.9, "upper bound of this share")

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.step_size > 0, f"step_size must be positive, got {self.step_size}")
        need(self.archive >= 1 and self.least >= 1, "archive and least must be at least 1")
        need(0 < self.threshold <= 1 and 0 < self.decay <= 1, "threshold and decay must lie in (0, 1]")
        need(0 <= self.alpha_low <= self.alpha_high <= 1, "0 <= alpha_low <= alpha_high <= 1 must hold")

    @property
    def strategy(self) -> Strategy:
        """The search distribution: `directions` has the covariance above, `update` learns U and alpha from a gradient."""
        return search(self)()


def search(settings: ASEBOSettings) -> Callable[[], Strategy]:
    """Makes the search distribution."""
    return partial(
        asebo,
        m=settings.archive,
        threshold=settings.threshold,
        least=settings.least,
        decay=settings.decay,
        alpha_range=(settings.alpha_low, settings.alpha_high),
    )


class ASEBOState(NamedTuple):
    """All that an iteration starts from."""

    k: Array
    x: Array
    adam: Any
    subspace: ActiveSubspace
    normalizer: Normalizer


def begin(settings: ASEBOSettings, x: Array, normalizer: Normalizer) -> ASEBOState:
    """Before the first iteration."""
    adam = optax.adam(settings.step_size).init(x)
    return ASEBOState(jnp.int32(0), x, adam, settings.strategy.init(jnp.asarray(x)), normalizer)


def pairs(subspace: ActiveSubspace, settings: ASEBOSettings) -> Array:
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


def used(settings: ASEBOSettings, state: ASEBOState) -> Array:
    """Which samples count (lambda,): the first pairs."""
    return jnp.tile(jnp.arange(settings.population // 2) < pairs(state.subspace, settings), 2)


def conclude(
    policy: Policy,
    settings: ASEBOSettings,
    state: ASEBOState,
    directions: Array,
    used: Array,
    f: Array,
    seen: Seen,
) -> tuple[ASEBOState, dict[str, Array]]:
    """An iteration, once its samples have been judged."""
    k, x, adam, subspace, normalizer = state
    slope = gradient(f, directions, used)
    updates, adam = optax.adam(settings.step_size).update(slope + settings.l2 * x, adam)
    new = normalised(settings, normalizer, seen, k)
    after = carry_over(policy, x + updates, normalizer, new)
    metrics = {
        "success": jnp.bool_(True),
        "gradient": jnp.linalg.norm(slope),
        "step": jnp.linalg.norm(updates),
        "alpha": subspace.alpha,
        "rank": subspace.rank,
        "samples": used.sum(),
    }
    subspace = settings.strategy.update(subspace, directions, None, updates, slope)
    return ASEBOState(k + 1, after, adam, subspace, new), metrics


EVOLUTION = Evolution(
    begin,
    search,
    basis=lambda state: state.subspace,
    scale=lambda settings, n: settings.deviation(n) * math.sqrt(n),  # directions have norm ~ 1
    used=used,
    conclude=conclude,
)
