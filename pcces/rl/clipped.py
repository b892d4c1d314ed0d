"""Gaussian policies in a box: an action beyond the box is clipped, so all that lies beyond an end is one and the same action.

The density of the Gaussian there says that such actions differ, which is nothing but noise to learn from, and that policies
whose means are far outside are far apart, although they act alike. So the end has the probability of everything beyond it
(Fujita and Maeda, Clipped Action Policy Gradient, 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax.scipy.special import log_ndtr, ndtr
from jax.scipy.stats import norm

from pcces.envs.simulator import Simulator
from pcces.envs.task import Task
from pcces.rl.policy import Policy, column

Array = Any
NO_END = 1e3  # half widths from the middle: where an action without a limit never comes


@dataclass(frozen=True)
class Clipped(Policy):
    """A policy whose actions are clipped before the task sees them."""

    def log_probability(self, head: Array, log_std: Array, actions: Array) -> Array:
        """log pi(a | s) per column, where a may be an end of the box.

        >>> from pcces.envs.task import Continuous
        >>> policy, head, log_std = Clipped(1, Continuous(-1.0, 1.0)), jnp.array([[0.0, 0.0]]), jnp.zeros(1)
        >>> print(jnp.exp(policy.log_probability(head, log_std, jnp.array([[1.0, 5.0]]))))  # the same action
        [0.15865... 0.15865...]
        """
        middle, half = (column(jnp.asarray(part, dtype=head.dtype), head) for part in self.scale())
        low, high = self._ends(head)
        at, log_deviation = (actions - middle) / half, column(log_std, head)
        deviation = jnp.exp(log_deviation)
        between = -0.5 * ((at - head) / deviation) ** 2 - log_deviation - jnp.log(half) - 0.5 * math.log(2 * math.pi)
        above, below = log_ndtr((head - high) / deviation), log_ndtr((low - head) / deviation)
        return jnp.where(at >= high, above, jnp.where(at <= low, below, between)).sum(0)

    def divergence(self, head: Array, log_std: Array, other_head: Array, other_log_std: Array) -> Array:
        """The KL divergence from one distribution over clipped actions to another, per column, in closed form."""
        low, high = self._ends(head)
        deviation, other_deviation = (jnp.exp(column(each, head)) for each in (log_std, other_log_std))
        a, b = (low - head) / deviation, (high - head) / deviation
        # Moments of the standard normal between a and b.
        zeroth = ndtr(b) - ndtr(a)
        first = norm.pdf(a) - norm.pdf(b)
        second = zeroth + a * norm.pdf(a) - b * norm.pdf(b)
        gap = head - other_head
        squares = deviation**2 * second + 2 * deviation * gap * first + gap**2 * zeroth
        between = zeroth * jnp.log(other_deviation / deviation) - 0.5 * second + 0.5 * squares / other_deviation**2
        below = ndtr(a) * (log_ndtr(a) - log_ndtr((low - other_head) / other_deviation))
        above = ndtr(-b) * (log_ndtr(-b) - log_ndtr((other_head - high) / other_deviation))
        return jnp.maximum(between + below + above, 0.0).sum(0)

    def _ends(self, like: Array) -> tuple[Array, Array]:
        """Of the box, in units of the head."""
        middle, half = self.scale()
        ends = (self.actions.low, self.actions.high)  # type: ignore[union-attr]
        low, high = (
            jnp.clip(jnp.array([(e - m) / h for e, m, h in zip(end, middle, half)]), -NO_END, NO_END) for end in ends
        )
        return column(low.astype(like.dtype), like), column(high.astype(like.dtype), like)


def as_clipped(policy: Policy, task: Task | Simulator) -> Policy:
    """The policy as its actions reach the task: clipped, unless they are categories or the task takes them as they are drawn."""
    if policy.discrete or task.overshoot:
        return policy
    return Clipped(policy.observation_size, policy.actions, policy.hidden)
