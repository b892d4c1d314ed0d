"""The surrogate gradient of guided search (appendix B): the actor-critic policy gradient of the episodes played.

G = sum_t A_t grad log pi(a_t | s_t) with A_t = R_t - V_v(s_t). The gradient of the tanh network is written out, so that
workers can compute it in NumPy and the device in JAX with one implementation. Divided by the policy's Fisher information
it is the natural gradient, of which a step goes into d_k.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pcces.core.arrays import array_namespace
from pcces.core.linalg import inverse, inverse_factor
from pcces.rl.policy import Policy, affine, back, forward

Array = Any


class Critic(NamedTuple):
    """V_v, linear in features of the observation and of time, by least squares over the episodes seen lately."""

    gram: Array  # (F, F) decayed sum of phi phi^T
    moment: Array  # (F,) decayed sum of phi R_t
    weights: Array  # (F,) v


DECAY = 0.9  # of what the critic learnt an iteration ago
RIDGE = 1e-3
DAMPING = 1e-2  # of the Fisher information, beside its mean
LEAST = 1e-8  # damping: a policy that leaves nothing to chance has no information at all
STATES = 16  # of an episode, at which it is measured how far a step moves the policy


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


def priced(rewards: Array, costs: Array, prices: Array) -> Array:
    """Rewards less the costs (r, ...) at their prices (r,).

    >>> import numpy as np
    >>> priced(np.array([1.0, 1.0]), np.array([[0.0, 2.0]]), np.array([0.5]))
    array([1., 0.])
    """
    for cost, price in zip(costs, prices):
        rewards = rewards - price * cost
    return rewards


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


class Slopes(NamedTuple):
    """Of log pi(a_t | s_t), step by step: what goes into each layer (a one for its bias included), the slopes in what
    comes out of it, and those in the log standard deviations. The first axis is features."""

    inputs: list[Array]
    outputs: list[Array]
    log_std: Array


def slopes(policy: Policy, x: Array, observations: Array, actions: Array) -> Slopes:
    """Of one member, x (n,) and its normalised observations (size, T), or of a population, (n, B) and (size, T, B)."""
    xp = array_namespace(x)
    layers, log_std = policy.unpack(x)
    inputs = [observations]
    for layer in layers[:-1]:
        inputs.append(xp.tanh(affine(layer, inputs[-1])))
    delta, log_std_slopes = policy.score(affine(layers[-1], inputs[-1]), log_std, actions)
    outputs = [delta]
    for layer, h in reversed(list(zip(layers[1:], inputs[1:]))):
        delta = back(layer, delta) * (1 - h**2)
        outputs.insert(0, delta)
    with_one = [_flat(xp.concat([h, xp.ones_like(h[:1])])) for h in inputs]
    return Slopes(with_one, [_flat(delta) for delta in outputs], _flat(log_std_slopes))


def policy_gradient(steps: Slopes, advantages: Array) -> Array:
    """sum_t A_t grad_x log pi_x(a_t | s_t) over all steps, with their advantages (T,) or (T, B)."""
    xp = array_namespace(advantages)
    a = xp.reshape(advantages, (-1,))
    layers = [xp.reshape(h @ (delta * a).T, (-1,)) for h, delta in zip(steps.inputs, steps.outputs)]
    return xp.concat([*layers, steps.log_std @ a])


def fisher(steps: Slopes, alive: Array | None = None) -> Array:
    """The Fisher information of the policy in Kronecker factors (Martens and Grosse 2015), summed over steps, as one vector.

    A layer's part is close to the product of sum h h^T, h what goes in, and sum s s^T, s the slopes in what comes out:
    small matrices, which workers can add up, where the whole has n^2 numbers. `alive` says which steps count.
    """
    xp = array_namespace(steps.log_std)
    parts = []
    for rows in (rows for layer in zip(steps.inputs, steps.outputs) for rows in layer):
        counted = rows if alive is None else rows * xp.reshape(alive, (-1,))
        parts.append(xp.reshape(counted @ rows.T, (-1,)))
    return xp.concat(parts)


def natural_step(policy: Policy, gradient: Array, information: Array, steps: Array, kl: float) -> Array:
    """A step uphill along the natural gradient, as far as the policy's actions change by a KL divergence of `kl`.

    From sums over `steps` steps: the policy gradient, of which only the direction matters, and the Fisher information.
    """
    xp = array_namespace(gradient)
    length = xp.linalg.vector_norm(gradient)
    usable = xp.isfinite(length) & (length > 0)
    unit = xp.where(usable, gradient / xp.where(usable, length, 1.0), 0.0)

    def divided(size: int) -> Array:
        nonlocal information
        a, information = xp.reshape(information[: size**2], (size, size)) / steps, information[size**2 :]
        damping = xp.clip(DAMPING * xp.linalg.trace(a) / size, LEAST, None)
        return inverse(a + damping * xp.eye(size, dtype=a.dtype))

    parts, i = [], 0
    for inputs, outputs in policy.shapes:
        size = (inputs + 1) * outputs
        part = xp.reshape(unit[i : i + size], (inputs + 1, outputs))
        parts.append(xp.reshape(divided(inputs + 1) @ part @ divided(outputs), (-1,)))
        i += size
    natural = xp.concat([*parts, unit[i:] / 2])  # a normal distribution has two of it for each log standard deviation
    return natural * xp.sqrt(2 * kl / (unit @ natural + 1e-12))


def states_of(observations: Array, lengths: Array) -> Array:
    """STATES of an episode, (size, T) and its length, or of many, (size, T, B) and (B,): evenly spread, side by side."""
    xp = array_namespace(observations)
    j = xp.reshape(xp.arange(STATES), (STATES, *(1,) * lengths.ndim))
    which = j * xp.astype(lengths, int) // STATES
    return _flat(xp.take_along_axis(observations, which[None], axis=1))


def measured(policy: Policy, x: Array, step: Array, states: Array, kl: float) -> Array:
    """The step, as long as it has to be for the policy's actions in these states to change by a mean KL divergence of `kl`.

    Each round takes the divergence for a square of the length, which it is of a short one.
    """
    xp = array_namespace(x)

    def distribution(y: Array) -> tuple[Array, Array]:
        layers, log_std = policy.unpack(y)
        return forward(layers, states), log_std

    here = distribution(x)
    for _ in range(3):
        moved = xp.mean(policy.divergence(*here, *distribution(x + step)))
        step = step * xp.clip(xp.sqrt(kl / xp.clip(moved, 1e-12, None)), 0.1, 10.0)
    return step


def _flat(rows: Array) -> Array:
    """(features, steps) of (features, T) or (features, T, B)."""
    return array_namespace(rows).reshape(rows, (rows.shape[0], math.prod(rows.shape[1:])))
