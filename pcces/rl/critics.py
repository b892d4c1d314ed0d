"""Critics: networks that predict the discounted sums of rewards and costs, and the advantages that follow from them.

Settings are those of any algorithm that has critics: `critic_hidden`, `critic_rate`, `passes`, `minibatches`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pcces.engines.device import summed
from pcces.envs.task import Continuous
from pcces.rl.epochs import Epoch, step_columns
from pcces.rl.policy import Policy, forward

import os
Array = Any
ACT = {"relu": jax.nn.relu, "silu": jax.nn.silu, "tanh": jnp.tanh}[os.environ.get("CACT", "tanh")]
PREV = bool(os.environ.get("CPREV"))
CMB = int(os.environ.get("CMB", "1"))


def view(epoch):
    if not PREV:
        return epoch.observations
    sig = epoch.signals
    unit = jnp.sqrt(summed((sig**2 * epoch.weights).sum((1, 2)))) + 1e-8
    shown = sig * (epoch.going * epoch.played) / unit[:, None, None]
    before = jnp.concatenate([jnp.zeros_like(shown[:, :1]), shown], axis=1)
    return jnp.concatenate([epoch.observations, before])


class Critics(NamedTuple):
    """Tanh networks of the observation, one for each signal, that predict its discounted sum in units of their own.

    The units follow the targets, and the last layers follow the units (as in PopArt), so that the same step sizes serve
    returns of 1 and of 1000.
    """

    weights: Array  # (1 + r, n)
    mean: Array  # (1 + r,) the units
    std: Array  # 0: nothing was seen of this signal so far
    adam: Any


def network(observation_size: int, settings: Any) -> Policy:
    """A network with one output, as a policy's: the deviation that belongs to a policy's head is there and not used."""
    return Policy(observation_size, Continuous(-1.0, 1.0), settings.critic_hidden)


def init_critics(net: Policy, signals: int, settings: Any, key: Array) -> Critics:
    """Critics that say about zero."""
    z = jax.random.normal(key, (signals, net.size))
    weights = jax.vmap(lambda row: net.init(row, last=0.01))(z)
    unknown = jnp.zeros(signals)
    return Critics(weights, unknown, unknown, optax.adam(settings.critic_rate).init(weights))


def said(net: Policy, weights: Array, observations: Array) -> Array:
    """What one critic says in its own units: (N,) for observations (size, N)."""
    h = observations
    layers = net.unpack(weights)[0]
    for layer in layers[:-1]:
        h = ACT(layer.weights.T @ h + layer.bias[:, None])
    return (layers[-1].weights.T @ h + layers[-1].bias[:, None])[0]


def all_said(net: Policy, weights: Array, observations: Array) -> Array:
    """What all critics say (1 + r, N); one after the other, as a CPU is slow at batches of small products."""
    return jnp.stack([said(net, row, observations) for row in weights])


def values(net: Policy, critics: Critics, observations: Array) -> Array:
    """(1 + r, T + 1, B)"""
    out = all_said(net, critics.weights, step_columns(observations))
    out = critics.mean[:, None] + critics.std[:, None] * out
    return out.reshape(-1, *observations.shape[1:])


def advantages(signals: Array, value: Array, played: Array, going: Array, discount: Any, gae: float) -> Array:
    """Generalised advantages (Schulman et al. 2016): signals (.., T, B), value (.., T + 1, B), an epoch's masks (T, B).

    After an episode's end there is no value; after a cut by the time limit there is the critic's. Nothing flows from
    one episode into another.

    >>> ones, going = jnp.ones((3, 1)), jnp.array([[1.0], [0.0], [1.0]])  # an episode of two steps, and another begins
    >>> print(advantages(ones, jnp.zeros((4, 1)), ones, going, 1.0, 0.5)[:, 0])
    [1.5 1.  1. ]
    """
    delta = (signals + discount * going * value[..., 1:, :] - value[..., :-1, :]) * played
    factors = jnp.broadcast_to(discount * gae * going, delta.shape)

    def after(later: tuple, earlier: tuple) -> tuple:
        """A_t = delta_t + factor_t A_{t + 1}, of two stretches of time."""
        return earlier[0] * later[0], earlier[1] + earlier[0] * later[1]

    return jax.lax.associative_scan(after, (factors, delta), reverse=True, axis=delta.ndim - 2)[1]


def rescaled(net: Policy, critics: Critics, mean: Array, std: Array) -> Critics:
    """Critics that say the same in other units."""
    h, last = net.hidden[-1] if net.hidden else net.observation_size, net.size - 1  # the output's bias is before `last`
    ratio = jnp.where(critics.std > 0, critics.std / usable(std), 1.0)
    w = critics.weights
    out = w[:, last - 1 - h : last - 1] * ratio[:, None]
    bias = w[:, last - 1] * ratio + jnp.where(critics.std > 0, (critics.mean - mean) / usable(std), 0.0)
    w = w.at[:, last - 1 - h : last - 1].set(out).at[:, last - 1].set(bias)
    return critics._replace(weights=w, mean=mean, std=std)


def usable(std: Array) -> Array:
    """Deviations that one can divide by."""
    return jnp.where(std > 0, std, 1.0)


UNITS = 0.2  # how fast the critics' units follow their targets
CONSTANT = 1e-6  # targets that vary by less, in units of their mean, are constant but for rounding


def fit(net: Policy, settings: Any, critics: Critics, epoch: Epoch, targets: Array, key: Array) -> Critics:
    """Regress on targets (1 + r, T, B). The first that vary set a signal's units alone."""
    target, weights = step_columns(targets), step_columns(epoch.weights)
    mean = summed(target @ weights)
    spread = jnp.sqrt(summed((target - mean[:, None]) ** 2 @ weights))
    spread = jnp.where(spread > CONSTANT * jnp.abs(mean), spread, critics.std)
    rate = jnp.where(critics.std > 0, UNITS, 1.0)
    units = critics.mean + rate * (mean - critics.mean), critics.std + rate * (spread - critics.std)
    critics = rescaled(net, critics, *units)
    target = (target - critics.mean[:, None]) / usable(critics.std)[:, None]

    def loss(w: Array, part: tuple) -> Array:
        observations, target, weights = part
        error = all_said(net, w, observations) - target
        return 0.5 * (error**2 @ weights).sum()

    def update(carry: tuple, part: tuple) -> tuple:
        w, adam = carry
        updates, adam = optax.adam(settings.critic_rate).update(summed(jax.grad(loss)(w, part)), adam)
        return w + updates, adam

    columns = step_columns(view(epoch)[:, :-1]), target, weights
    carry = critics.weights, critics.adam
    for_passes = jax.random.split(key, settings.passes)
    (w, adam), _ = jax.lax.scan(lambda c, k: (one_pass(settings, update, c, columns, k, settings.minibatches * CMB), None), carry, for_passes)
    return critics._replace(weights=w, adam=adam)


def shuffled(key: Array, count: int) -> Array:
    """0 to count - 1 in random order. Sorting numbers whose last digits say which they are takes a tenth of the time of
    sorting pairs, as `jax.random.permutation` does.

    >>> sorted(shuffled(jax.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    mask = jnp.uint32((1 << (count - 1).bit_length()) - 1)
    return jnp.sort(jax.random.bits(key, (count,)) & ~mask | jnp.arange(count, dtype=jnp.uint32)) & mask


def one_pass(settings: Any, update: Callable[[Any, Any], Any], carry: Any, columns: tuple, key: Array, minibatches: int = 0) -> Any:
    """`update` on every minibatch of the columns (.., N), the last of which are the steps' weights, in random order."""
    count = columns[-1].shape[-1]
    minibatches = minibatches or settings.minibatches
    size = count // minibatches
    order = shuffled(key, count)[: size * minibatches].reshape(minibatches, size)

    def body(carry: Any, rows: Array) -> tuple:
        *part, weights = (jnp.take(column, rows, axis=-1) for column in columns)
        total = summed(weights.sum())
        return update(carry, (*part, weights / jnp.where(total > 0, total, 1.0))), None

    return jax.lax.scan(body, carry, order)[0]
