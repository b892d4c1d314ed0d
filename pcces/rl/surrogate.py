"""The surrogate gradient of guided search (appendix B): the actor-critic policy gradient of the episodes played.

G = sum_t A_t grad log pi(a_t | s_t) with A_t = R_t - V_v(s_t). The gradient of the tanh network is written out, so that
workers can compute it in NumPy and the device in JAX with one implementation.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pcces.core.arrays import array_namespace
from pcces.core.linalg import inverse_factor
from pcces.rl.policy import Policy, affine, back

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
    """R_t = sum_s discount^s r_{t+s} along the first axis, by blocks of about sqrt(T) steps: two small products.

    >>> import numpy as np
    >>> returns_to_go(np.array([1.0, 1.0, 1.0]), 0.5)
    array([1.75, 1.5 , 1.  ])
    """
    xp = array_namespace(rewards)
    steps, rest = rewards.shape[0], rewards.shape[1:]
    size = math.isqrt(steps - 1) + 1
    count = -(-steps // size)
    padding = xp.zeros((size * count - steps, *rest), dtype=rewards.dtype)
    blocks = xp.reshape(xp.concat([rewards, padding]), (count, size, -1))

    def powers(ratio: float, n: int, first: int) -> Array:
        """(n, n): ratio^(j - i - first) where that exponent is not negative, else zero."""
        table = [[ratio ** (j - i - first) if j - i >= first else 0.0 for j in range(n)] for i in range(n)]
        return xp.asarray(table, dtype=rewards.dtype)

    within = xp.matmul(powers(discount, size, 0), blocks)
    after = powers(discount**size, count, 1) @ within[:, 0]  # what the blocks behind are worth at a block's end
    to_the_end = xp.asarray([discount ** (size - i) for i in range(size)], dtype=rewards.dtype)
    total = within + to_the_end[:, None] * after[:, None]
    return xp.reshape(total, (size * count, *rest))[:steps]


def learn(critic: Critic, gram: Array, moment: Array) -> Critic:
    """Take in the sums of phi phi^T and phi R_t over new steps; the oldest fade."""
    xp = array_namespace(gram)
    gram, moment = DECAY * critic.gram + gram, DECAY * critic.moment + moment
    ridge = RIDGE * (1 + xp.linalg.trace(gram) / gram.shape[0])
    factor, _ = inverse_factor(gram + ridge * xp.eye(gram.shape[0], dtype=gram.dtype))
    return Critic(gram, moment, factor.T @ (factor @ moment))


def policy_gradient(policy: Policy, x: Array, observations: Array, actions: Array, advantages: Array) -> Array:
    """sum_t A_t grad_x log pi_x(a_t | s_t) over all steps: of one member, x (n,), its normalised observations (size, T) and
    advantages (T,), or of a population, (n, B), (size, T, B) and (T, B)."""
    xp = array_namespace(x)
    layers, log_std = policy.unpack(x)
    inputs = [observations]
    for layer in layers[:-1]:
        inputs.append(xp.tanh(affine(layer, inputs[-1])))
    delta, log_std_slopes = policy.score(affine(layers[-1], inputs[-1]), log_std, actions)
    deltas = [delta]
    for layer, h in reversed(list(zip(layers[1:], inputs[1:]))):
        delta = back(layer, delta) * (1 - h**2)
        deltas.insert(0, delta)
    a = xp.reshape(advantages, (-1,))
    with_one = [_flat(xp.concat([h, xp.ones_like(h[:1])])) for h in inputs]
    parts = [xp.reshape(h @ (_flat(delta) * a).T, (-1,)) for h, delta in zip(with_one, deltas)]
    return xp.concat([*parts, _flat(log_std_slopes) @ a])


def _flat(rows: Array) -> Array:
    """(features, steps) of (features, T) or (features, T, B)."""
    return array_namespace(rows).reshape(rows, (rows.shape[0], math.prod(rows.shape[1:])))
