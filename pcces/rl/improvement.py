"""How a policy is improved from its own steps: the clipped objective of PPO, and the distance of policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pcces.engines.device import summed
from pcces.rl.critics import one_pass
from pcces.rl.epochs import Epoch, step_columns
from pcces.rl.policy import Policy, forward

Array = Any


class Actions(NamedTuple):
    """What a policy did on an epoch's N steps, and how likely it found it."""

    observations: Array  # (size, N)
    actions: Array  # (N,), or (dims, N)
    head: Array  # (outputs, N)
    log_std: Array
    log_probability: Array  # (N,)
    weights: Array  # (N,)


def acted(policy: Policy, x: Array, epoch: Epoch) -> Actions:
    """An epoch as columns, beside the distributions its actions came from."""
    observations, actions = step_columns(epoch.observations[:, :-1]), step_columns(epoch.actions)
    layers, log_std = policy.unpack(x)
    head = forward(layers, observations)
    log_probability = policy.log_probability(head, log_std, actions)
    return Actions(observations, actions, head, log_std, log_probability, step_columns(epoch.weights))


def ratios(policy: Policy, x: Array, did: Actions) -> Array:
    """pi_x(a | s) / pi(a | s), per column."""
    layers, log_std = policy.unpack(x)
    head = forward(layers, did.observations)
    return jnp.exp(policy.log_probability(head, log_std, did.actions) - did.log_probability)


def distributions(policy: Policy, x: Array, did: Actions) -> tuple[Array, Array]:
    """Head (outputs, N) and log standard deviations of the policy x on an epoch's steps."""
    layers, log_std = policy.unpack(x)
    return forward(layers, did.observations), log_std


def divergence_of(policy: Policy, distribution: tuple[Array, Array], did: Actions) -> Array:
    """This device's part of E[KL(pi || the given distributions)], in closed form."""
    return policy.divergence(did.head, did.log_std, *distribution) @ did.weights


def divergence(policy: Policy, x: Array, did: Actions) -> Array:
    """This device's part of E[KL(pi || pi_x)]."""
    import os
    if os.environ.get("CAPG"):
        r = ratios(policy, x, did)
        return (r - 1 - jnp.log(jnp.maximum(r, 1e-20))) @ did.weights
    return divergence_of(policy, distributions(policy, x, did), did)


def curvature(policy: Policy, x: Array, did: Actions) -> Callable[[Array], Array]:
    """v -> this device's part of H v, where H is the Hessian of the divergence at pi itself.

    There the divergence has no slope in the distributions, so H = J^T F J, with the Jacobian J of the distributions in
    x: a third less work than the slope of a slope.
    """
    there, along = jax.linearize(lambda y: distributions(policy, y, did), x)
    back = jax.linear_transpose(along, x)
    bend = jax.linearize(jax.grad(lambda distribution: divergence_of(policy, distribution, did)), there)[1]
    return lambda v: back(bend(along(v)))[0]


def centred(advantage: Array, weights: Array, scale: bool) -> Array:
    """An advantage (T, B) less its mean over the epoch's steps, and if `scale` in units of its deviation."""
    mean = summed((advantage * weights).sum())
    off = advantage - mean
    if not scale:
        return off
    return off / (jnp.sqrt(summed((off**2 * weights).sum())) + 1e-8)


def improve(
    policy: Policy,
    settings: Any,
    x: Array,
    adam: Any,
    did: Actions,
    advantage: Array,
    k: Array,
    key: Array,
    bonus: Array | None = None,
) -> tuple[Array, Any, dict[str, Array]]:
    """Maximise E[min(ratio A, clip(ratio) A)] for an advantage (T, B), until the passes are done or the policy is far.

    Many parameters: settings, what to start from, what was played, and the weight of an entropy bonus.
    """
    bonus = settings.entropy if bonus is None else bonus
    low, high = 1 - settings.clip, 1 + settings.clip
    rate = settings.rate * jnp.where(settings.anneal, 1 - k / settings.iterations, 1.0)

    def loss(x: Array, part: tuple) -> Array:
        observations, actions, log_probability, advantage, weights = part
        layers, log_std = policy.unpack(x)
        head = forward(layers, observations)
        ratio = jnp.exp(policy.log_probability(head, log_std, actions) - log_probability)
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, low, high) * advantage)
        return -(gain + bonus * policy.entropy(head, log_std)) @ weights

    def update(carry: tuple, part: tuple) -> tuple:
        x, adam = carry
        updates, adam = optax.scale_by_adam().update(summed(jax.grad(loss)(x, part)), adam)
        import os
        if os.environ.get("SLOWSTD") and not policy.discrete:
            updates = updates.at[-policy.outputs:].multiply(float(os.environ["SLOWSTD"]))
        return x - rate * updates, adam

    columns = did.observations, did.actions, did.log_probability, step_columns(advantage), did.weights

    def going_on(carry: tuple) -> Array:
        number, _, kl = carry
        return (number < settings.passes) & (kl <= settings.target_kl)

    def body(carry: tuple) -> tuple:
        number, inner, _ = carry
        inner = one_pass(settings, update, inner, columns, jax.random.fold_in(key, number))
        return number + 1, inner, summed(divergence(policy, inner[0], did))

    number, (x, adam), kl = jax.lax.while_loop(going_on, body, (jnp.int32(0), (x, adam), jnp.float32(0)))
    return x, adam, {"kl": kl, "passes": number}
