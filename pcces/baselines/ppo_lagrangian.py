"""PPO-Lagrangian: benchmarking safe exploration in deep reinforcement learning (Ray, Achiam, Amodei 2019, section 5).

PPO maximises (A_r - sum_i lambda_i A_i) / (1 + sum_i lambda_i), with a critic for the reward and one for each cost; the
multipliers lambda_i >= 0 ascend on (mean cost of an episode - limit) by Adam. As in the authors' code and OmniSafe's,
A_r is in units of its deviation and the A_i are centred only; but here a cost counts in units in which its limit is 25, the
limit that those values were found for, so that it does not matter in what a cost is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pcces.baselines import on_policy
from pcces.baselines.on_policy import ClippedSettings, OnPolicy
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
class PPOLagrangianSettings(ClippedSettings):
    """OmniSafe's values for the multipliers; `lagrangian=False` is plain PPO, blind to costs."""

    lagrangian: bool = setting(True, "False is plain PPO, which ignores costs", SOMETIMES)
    multiplier: float = setting(0.001, "the multipliers lambda_i at the start")
    multiplier_rate: float = setting(0.035, "learning rate of the multipliers (Adam)", SOMETIMES)

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.multiplier >= 0 and self.multiplier_rate > 0, "multiplier must not be negative, its rate positive")


class Multipliers(NamedTuple):
    """lambda, one for each cost, and Adam's moments."""

    values: Array  # (r,)
    adam: Any


class PPOLagrangianState(NamedTuple):
    """All that an epoch starts from."""

    k: Array
    x: Array
    adam: Any
    multipliers: Multipliers
    critics: Critics
    normalizer: Normalizer


def begin(
    problem: Problem, net: Policy, settings: PPOLagrangianSettings, x: Array, normalizer: Normalizer, key: Array
) -> PPOLagrangianState:
    """Before the first epoch."""
    costs = jnp.full(len(problem.cost_names), settings.multiplier * settings.lagrangian)
    multipliers = Multipliers(costs, optax.adam(settings.multiplier_rate).init(costs))
    critics = critic_networks.init_critics(net, 1 + costs.size, settings, jax.random.fold_in(key, 1))
    return PPOLagrangianState(jnp.int32(0), x, optax.scale_by_adam().init(x), multipliers, critics, normalizer)


def ascend(multipliers: Multipliers, over: Array, rate: float) -> Multipliers:
    """One step of Adam upwards on the costs over their limits (r,), and never below zero.

    >>> start = jnp.array([0.1, 0.1])
    >>> after = ascend(Multipliers(start, optax.adam(0.05).init(start)), jnp.array([7.0, -7.0]), 0.05)
    >>> print(after.values.round(3))
    [0.15 0.05]
    """
    updates, adam = optax.adam(rate).update(-over, multipliers.adam)
    return Multipliers(jnp.clip(multipliers.values + updates, 0), adam)


def learn(
    policy: Policy,
    problem: Problem,
    net: Policy,
    settings: PPOLagrangianSettings,
    state: PPOLagrangianState,
    epoch: Epoch,
    key: Array,
) -> tuple[PPOLagrangianState, dict[str, Array]]:
    """What one epoch teaches."""
    k, x, adam, multipliers, critics, normalizer = state
    learn_key, critic_key = jax.random.split(key)
    value = critic_networks.values(net, critics, epoch)  # (1 + r, T + 1, B)
    advantage = critic_networks.advantages(
        epoch.signals, value, epoch.played, epoch.going, settings.discount, settings.gae
    )  # (1 + r, T, B)

    if settings.lagrangian:
        over = (epoch.costs - jnp.array(problem.thresholds)) / on_policy.cost_units(problem)
        multipliers = ascend(multipliers, over, settings.multiplier_rate)
    lam = multipliers.values
    reward = improvement.centred(advantage[0], epoch.weights, scale=True)
    costs = jax.vmap(lambda a: improvement.centred(a, epoch.weights, scale=False))(advantage[1:])
    costs = costs / on_policy.cost_units(problem)[:, None, None]
    combined = (reward - jnp.tensordot(lam, costs, 1)) / (1 + lam.sum())

    did = improvement.acted(policy, x, epoch)
    after, adam, own = improvement.improve(policy, settings, x, adam, did, combined, k, learn_key)
    critics = critic_networks.fit(net, settings, critics, epoch, advantage + value[:, :-1], critic_key)
    after, critics, new = on_policy.moved_on(policy, net, settings, after, critics, normalizer, epoch, k)
    metrics = own | {"success": jnp.bool_(True), "multiplier": lam.sum()}
    metrics |= {f"price_{name}": lam[i] for i, name in enumerate(problem.cost_names)}
    return PPOLagrangianState(k + 1, after, adam, multipliers, critics, new), metrics


METHOD = OnPolicy(begin, learn)
