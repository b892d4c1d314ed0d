"""The surrogate gradient of guided search (appendix B): each member's actor-critic policy gradient.

G = sum_t A_t grad log pi(a_t | s_t) with A_t = R_t - V_v(s_t), averaged over the population. The gradient of the tanh
network is written out, so that workers can compute it in NumPy and the device in JAX with one implementation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pcces.arrays import array_namespace
from pcces.rl.policy import Policy, affine

Array = Any


class Critic(NamedTuple):
    """V_v, linear in features of the observation and of time, by least squares over the episodes seen lately."""

    gram: Array  # (F, F) decayed sum of phi phi^T
    moment: Array  # (F,) decayed sum of phi R_t
    weights: Array  # (F,) v


DECAY = 0.9  # of what the critic learnt an iteration ago
RIDGE = 1e-3


def init_critic(observation_size: int, like: Array) -> Critic:
    """A critic that has seen nothing and says zero."""
    xp = array_namespace(like)
    f = 2 * observation_size + 3
    zeros = xp.zeros((f,), dtype=like.dtype)
    return Critic(xp.zeros((f, f), dtype=like.dtype), zeros, zeros)


def features(observations: Array, horizon: int) -> Array:
    """phi (F, T, ...) of normalised observations (size, T, ...): linear and squared terms, and time."""
    xp = array_namespace(observations)
    steps = observations.shape[1]
    time = xp.reshape(xp.arange(steps, dtype=observations.dtype) / horizon, (1, steps, *(1,) * (observations.ndim - 2)))
    time = xp.broadcast_to(time, (1, *observations.shape[1:]))
    return xp.concat([observations, observations**2, time, time**2, xp.ones_like(time)])


def returns_to_go(rewards: Array, discount: float) -> Array:
    """R_t = sum_s discount^s r_{t+s} along the first axis, by doubling: log2(T) passes on any array library.

    >>> import numpy as np
    >>> returns_to_go(np.array([1.0, 1.0, 1.0]), 0.5)
    array([1.75, 1.5 , 1.  ])
    """
    xp = array_namespace(rewards)
    total, shift = rewards, 1
    while shift < rewards.shape[0]:
        ahead = xp.concat([total[shift:], xp.zeros_like(total[:shift])])
        total = total + discount**shift * ahead
        shift *= 2
    return total


def learn(critic: Critic, gram: Array, moment: Array) -> Critic:
    """Take in the sums of phi phi^T and phi R_t over new steps; the oldest fade."""
    xp = array_namespace(gram)
    gram, moment = DECAY * critic.gram + gram, DECAY * critic.moment + moment
    ridge = RIDGE * (1 + xp.linalg.trace(gram) / gram.shape[0])
    return Critic(gram, moment, solve_positive(gram + ridge * xp.eye(gram.shape[0], dtype=gram.dtype), moment))


def solve_positive(a: Array, b: Array) -> Array:
    """Solve a x = b for a small positive definite a, by elimination in a few array operations a row.

    A library's solver costs a slow call on a GPU; this fuses.
    """
    xp = array_namespace(a)
    n = a.shape[0]
    rows = xp.concat([a, b[:, None]], axis=1)
    index = xp.arange(n)
    for k in range(n):
        pivot = rows[k] / rows[k, k]
        factor = xp.where(index == k, xp.zeros_like(rows[:, k]), rows[:, k])
        rows = xp.where((index == k)[:, None], pivot[None], rows - factor[:, None] * pivot[None])
    return rows[:, -1]


def policy_gradient(policy: Policy, x: Array, observations: Array, actions: Array, advantages: Array) -> Array:
    """sum_t A_t grad_x log pi_x(a_t | s_t) for one member: x (n,), normalised observations (size, T), A (T,)."""
    xp = array_namespace(x)
    layers, log_std = policy.unpack(x)
    inputs = [observations]
    for layer in layers[:-1]:
        inputs.append(xp.tanh(affine(layer, inputs[-1])))
    slopes, log_std_slopes = policy.score(affine(layers[-1], inputs[-1]), log_std, actions)
    delta = slopes * advantages
    parts = []
    for layer, h in zip(reversed(layers), reversed(inputs)):
        parts += [xp.sum(delta, axis=1), xp.reshape(h @ delta.T, (-1,))]
        delta = (layer.weights @ delta) * (1 - h**2)  # of no use below the first layer, where it is dropped
    return xp.concat([*reversed(parts), xp.sum(log_std_slopes * advantages, axis=1)])
