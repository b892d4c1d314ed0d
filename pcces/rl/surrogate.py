"""The surrogate gradient of guided search (appendix B): each member's actor-critic policy gradient.

G = sum_t A_t grad log pi(a_t | s_t) with A_t = R_t - V_v(s_t), averaged over the population. The gradient of the tanh
network is written out, so that workers can compute it in NumPy and the device in JAX with one implementation.

Where layers are wide, most of G is in what all units of a layer have in common, and a hundredth of the step that other
directions allow is too long there. The natural gradient takes that out: each layer's G by the inverse of the second
moments of its inputs, which is the Fisher matrix of its weights up to what the outputs contribute.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pcces.arrays import array_namespace
from pcces.factor import inverse_factor
from pcces.rl.policy import Layer, Policy, affine, back

Array = Any


class Critic(NamedTuple):
    """V_v, linear in features of the observation and of time, by least squares over the episodes seen lately."""

    gram: Array  # (F, F) decayed sum of phi phi^T
    moment: Array  # (F,) decayed sum of phi R_t
    weights: Array  # (F,) v


GRADIENTS = ("policy-gradient", "natural-gradient")  # surrogates that come from trajectories
DECAY = 0.9  # of what the critic learnt an iteration ago
RIDGE = 1e-3
DAMPING = 0.01  # of a layer's second moments, as a share of their mean


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
    """sum_t A_t grad_x log pi_x(a_t | s_t) for one member: x (n,), normalised observations (size, T), A (T,).

    For a population, x (n, B), observations (size, T, B) and A (T, B) give the sum over its members.
    """
    xp = array_namespace(x)
    layers, log_std = policy.unpack(x)
    inputs = layer_inputs(layers, observations)
    slopes, log_std_slopes = policy.score(affine(layers[-1], inputs[-1]), log_std, actions)
    delta = slopes * advantages
    parts = []
    for number, h in reversed(list(enumerate(inputs))):
        parts.append(xp.reshape(flat(with_one(h)) @ flat(delta).T, (-1,)))
        if number:
            delta = back(layers[number], delta) * (1 - h**2)
    return xp.concat([*reversed(parts), xp.sum(flat(log_std_slopes * advantages), axis=1)])


def layer_inputs(layers: list[Layer], observations: Array) -> list[Array]:
    """What each layer sees."""
    xp = array_namespace(observations)
    inputs = [observations]
    for layer in layers[:-1]:
        inputs.append(xp.tanh(affine(layer, inputs[-1])))
    return inputs


def with_one(h: Array) -> Array:
    """A layer's inputs, and a one whose weight is the bias."""
    xp = array_namespace(h)
    return xp.concat([h, xp.ones_like(h[:1])])


def flat(rows: Array) -> Array:
    """(rows, T) or (rows, T, B) as (rows, all)."""
    return array_namespace(rows).reshape(rows, (rows.shape[0], math.prod(rows.shape[1:])))


def input_moments(policy: Policy, x: Array, observations: Array, alive: Array | None = None) -> Array:
    """sum_t h_t h_t^T of every layer's inputs and one, flat and one after the other; arguments as `policy_gradient`.

    `alive` (T, B): steps that count.
    """
    xp = array_namespace(x)
    layers, _ = policy.unpack(x)
    rows = [with_one(h) if alive is None else with_one(h) * alive for h in layer_inputs(layers, observations)]
    return xp.concat([xp.reshape(flat(h) @ flat(h).T, (-1,)) for h in rows])


def natural_gradient(policy: Policy, gradient: Array, moments: Array, steps: Array) -> Array:
    """A policy gradient with each layer's part by the inverse of its inputs' second moments, over so many steps.

    >>> import numpy as np
    >>> from pcces.envs.task import Discrete
    >>> policy, moments = Policy(1, Discrete(2), hidden=()), np.array([[4.0, 0.0], [0.0, 1.0]])
    >>> natural_gradient(policy, np.array([4.0, 8.0, 1.0, 1.0]), moments.reshape(-1), 1.0).round(1)
    array([1., 2., 1., 1.])
    """
    xp = array_namespace(gradient)
    parts, i, j = [], 0, 0
    for inputs, outputs in policy.shapes:
        size = inputs + 1
        matrix = xp.reshape(moments[j : j + size**2], (size, size)) / steps
        damped = matrix + DAMPING * xp.linalg.trace(matrix) / size * xp.eye(size, dtype=matrix.dtype)
        factor, _ = inverse_factor(damped)
        layer = xp.reshape(gradient[i : i + size * outputs], (size, outputs))
        parts.append(xp.reshape(factor.T @ (factor @ layer), (-1,)))
        i, j = i + size * outputs, j + size**2
    return xp.concat([*parts, gradient[i:]])
