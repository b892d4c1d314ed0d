"""RCPO: reward constrained policy optimization (Tessler, Mankowitz, Mannor 2019).

The penalty is part of the reward, r - sum_i lambda_i c_i (eq. 11), and one critic learns the penalised return; PPO is
the actor. Rewards count in units of the deviation of what is still to come of them, costs in units in which their limit is
25, so that it does not matter in what they are measured. The multipliers are on the slowest time scale: plain gradient ascent (eq. 8) on the Monte-Carlo estimate of
(mean cost of an episode - limit), within [0, multiplier_max].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pcces.baselines import on_policy
from pcces.baselines.on_policy import ClippedSettings, OnPolicy
from pcces.engines.device import summed
from pcces.rl import critics as critic_networks
from pcces.rl import improvement
from pcces.rl.critics import Critics
from pcces.rl.epochs import Epoch
from pcces.rl.normalizer import Normalizer
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.settings import need
from pcces.support.settings import SOMETIMES, setting

Array = Any


@dataclass(frozen=True)
class RCPOSettings(ClippedSettings):
    """The multiplier's rate is for costs over the limit of the size of the limit: it is divided by the limit."""

    multiplier: float = setting(0.0, "the multipliers lambda_i at the start")
    multiplier_rate: float = setting(
        0.03, "increase of a multiplier after an epoch with twice the allowed cost", SOMETIMES
    )
    multiplier_max: float = setting(100.0, "upper bound of the multipliers")

    def __post_init__(self) -> None:
        super().__post_init__()
        need(
            0 <= self.multiplier <= self.multiplier_max and self.multiplier_rate > 0,
            "0 <= multiplier <= multiplier_max must hold, and its rate be positive",
        )


class RCPOState(NamedTuple):
    """All that an epoch starts from."""

    k: Array
    x: Array
    adam: Any
    multipliers: Array  # (r,)
    critics: Critics
    normalizer: Normalizer
    unit: Array  # of rewards; 0: none was seen so far


def begin(
    problem: Problem, net: Policy, settings: RCPOSettings, x: Array, normalizer: Normalizer, key: Array
) -> RCPOState:
    """Before the first epoch."""
    multipliers = jnp.full(len(problem.cost_names), settings.multiplier)
    critics = critic_networks.init_critics(net, 1, settings, jax.random.fold_in(key, 1))
    adam = optax.scale_by_adam().init(x)
    return RCPOState(jnp.int32(0), x, adam, multipliers, critics, normalizer, jnp.float32(0))


def ascend(multipliers: Array, costs: Array, limits: Array, settings: RCPOSettings) -> Array:
    """Eq. 8 on mean costs and limits (r,).

    >>> settings, limits = RCPOSettings(multiplier_rate=0.25), jnp.array([10.0, 10.0])
    >>> print(ascend(jnp.array([0.5, 0.125]), jnp.array([20.0, 0.0]), limits, settings))
    [0.75 0.  ]
    """
    scale = jnp.where(limits == 0, 1.0, jnp.abs(limits))
    moved = multipliers + settings.multiplier_rate * (costs - limits) / scale
    return jnp.clip(moved, 0, settings.multiplier_max)


def reward_unit(known: Array, epoch: Epoch, settings: RCPOSettings) -> Array:
    """The deviation of the discounted rewards to come, over the epochs so far; the latest counts as much as the critics have it."""
    to_come = critic_networks.advantages(
        epoch.signals[0], jnp.zeros_like(epoch.observations[0]), epoch.played, epoch.going, settings.discount, 1.0
    )
    mean = summed((to_come * epoch.weights).sum())
    deviation = jnp.sqrt(summed(((to_come - mean) ** 2 * epoch.weights).sum()))
    return known + jnp.where(known > 0, critic_networks.UNITS, 1.0) * (deviation - known)


def learn(
    policy: Policy,
    problem: Problem,
    net: Policy,
    settings: RCPOSettings,
    state: RCPOState,
    epoch: Epoch,
    key: Array,
) -> tuple[RCPOState, dict[str, Array]]:
    """What one epoch teaches."""
    k, x, adam, multipliers, critics, normalizer, unit = state
    learn_key, critic_key = jax.random.split(key)
    unit = reward_unit(unit, epoch, settings)
    reward = epoch.signals[0] / jnp.where(unit > 0, unit, 1.0)
    costs = epoch.signals[1:] / on_policy.cost_units(problem)[:, None, None]
    penalised = reward - jnp.tensordot(multipliers, costs, 1)  # eq. 11
    value = critic_networks.values(net, critics, epoch)[0]
    advantage = critic_networks.advantages(penalised, value, epoch.played, epoch.going, settings.discount, settings.gae)

    did = improvement.acted(policy, x, epoch)
    scaled = improvement.centred(advantage, epoch.weights, scale=True)
    after, adam, own = improvement.improve(policy, settings, x, adam, did, scaled, k, learn_key)
    critics = critic_networks.fit(net, settings, critics, epoch, (advantage + value[:-1])[None], critic_key)
    after, critics, new = on_policy.moved_on(policy, net, settings, after, critics, normalizer, epoch, k)
    metrics = own | {"success": jnp.bool_(True), "multiplier": multipliers.sum()}
    metrics |= {f"price_{name}": multipliers[i] for i, name in enumerate(problem.cost_names)}
    # What the next epoch pays for this one's costs.
    multipliers = ascend(multipliers, epoch.costs, jnp.array(problem.thresholds), settings)
    return RCPOState(k + 1, after, adam, multipliers, critics, new, unit), metrics


METHOD = OnPolicy(begin, learn)
