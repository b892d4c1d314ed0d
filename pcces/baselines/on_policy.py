"""What PPO-Lagrangian, RCPO and CPO share: how an epoch goes.

It is played in an arena, on the device or by workers; what is learnt from it is one compiled function either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pcces.engines.arena import Program
from pcces.envs.simulator import Simulator
from pcces.envs.task import Task
from pcces.rl.critics import Critics, network
from pcces.rl.epochs import Epoch, epoch_program
from pcces.rl.normalizer import Normalizer, carry_over
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.settings import Common, need, normalised
from pcces.support.settings import FIRST, SOMETIMES, setting

Array = Any


@dataclass(frozen=True)
class OnPolicySettings(Common):
    """An epoch and its critics."""

    hidden: tuple[int, ...] = (64, 64)
    epoch_steps: int = setting(
        30_000, "environment steps per epoch, rounded to whole episodes of the longest kind", FIRST
    )
    gae: float = setting(0.95, "lambda of the generalised advantage estimates, of rewards and costs", SOMETIMES)
    critic_hidden: tuple[int, ...] = setting((64, 64), "widths of the critics' layers", SOMETIMES)
    critic_rate: float = setting(1e-3, "learning rate of the critics (Adam)", SOMETIMES)
    passes: int = setting(10, "passes over an epoch's steps, of the critics and of PPO", SOMETIMES)
    minibatches: int = setting(8, "minibatches per pass", SOMETIMES)

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.epoch_steps >= 1, f"epoch_steps must be positive, got {self.epoch_steps}")
        need(0 <= self.gae <= 1, f"gae must lie in [0, 1], got {self.gae}")
        need(self.critic_rate > 0, f"critic_rate must be positive, got {self.critic_rate}")
        need(self.passes >= 1 and self.minibatches >= 1, "passes and minibatches must be at least 1")

    def episodes(self, task: Task | Simulator) -> int:
        """The episodes of an epoch if all run into the time limit; otherwise others follow."""
        return max(1, round(self.epoch_steps / task.max_steps))

    def iteration_steps(self, task: Task | Simulator) -> int:
        """Environment steps that an epoch takes."""
        return self.episodes(task) * task.max_steps


class OnPolicy(NamedTuple):
    """A method as pure functions. Its states have k, x, normalizer."""

    begin: Callable[..., Any]
    """problem, net, settings, x, normalisation, key -> state"""
    learn: Callable[..., tuple[Any, dict[str, Array]]]
    """policy, problem, net, settings, state, epoch, key -> state, metrics"""


def program(method: OnPolicy, arena: Any, settings: OnPolicySettings) -> Program:
    """A method in this arena."""
    policy, problem = arena.policy, arena.problem
    net = network(arena.task.observation_size, 1 + len(problem.cost_names), settings)

    def learn(state: Any, epoch: Epoch, samples: Array, lengths: Array, key: Array) -> tuple[Any, dict[str, Array]]:
        return method.learn(policy, problem, net, settings, state, epoch, key)

    begin = partial(method.begin, problem, net, settings)
    return epoch_program(arena, settings, begin, learn, lambda state: (state.x, state.k))


@dataclass(frozen=True)
class ClippedSettings(OnPolicySettings):
    """PPO: many small steps on one epoch, as long as the policy stays close."""

    rate: float = setting(3e-4, "learning rate of the policy (Adam)", FIRST)
    clip: float = setting(0.2, "changes of an action's probability beyond 1 +- clip earn nothing")
    target_kl: float = setting(
        0.02, "the passes of an epoch end when the policy has moved further than this (KL divergence)", SOMETIMES
    )
    anneal: bool = setting(True, "decrease the rate linearly to zero over the iterations", SOMETIMES)
    entropy: float = setting(0.0, "weight of an entropy bonus", SOMETIMES)

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.rate > 0 and self.clip > 0 and self.target_kl > 0, "rate, clip and target_kl must be positive")


USUAL_LIMIT = 25.0  # Safety Gym's, with which multipliers' first values and rates were found


def cost_units(problem: Problem) -> Array:
    """What a unit of each cost is where its limit counts as the usual one; itself where nothing is allowed.

    >>> from pcces.envs import make
    >>> from pcces.rl.problem import problem_for
    >>> print(cost_units(problem_for(make("CartSafe-v0"), 0.0, 50.0)))
    [2.]
    """
    limits = jnp.array(problem.thresholds)
    return jnp.where(limits > 0, limits / USUAL_LIMIT, 1.0)


def moved_on(
    policy: Policy,
    net: Policy,
    settings: OnPolicySettings,
    x: Array,
    critics: Critics,
    normalizer: Normalizer,
    epoch: Epoch,
    k: Array,
) -> tuple[Array, Critics, Normalizer]:
    """Let the normalisation learn; policy and critics stay what they are."""
    new = normalised(settings, normalizer, epoch.seen, k)
    x = carry_over(policy, x, normalizer, new)
    carried = jax.vmap(lambda w: carry_over(net, w, normalizer, new))(critics.weights)
    return x, critics._replace(weights=carried), new
