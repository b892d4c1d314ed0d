"""What PPO-Lagrangian, RCPO and CPO share: how an epoch goes, critics, advantages, and the distance of policies.

An epoch is played on the device or by workers (`epochs`); what is learnt from it is one compiled function either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pcces.baselines import start
from pcces.baselines.epochs import Epoch, epoch_of, laid_out, play, raw_columns, rounds
from pcces.baselines.settings import Common
from pcces.engines.device import Program, alone, configure, summed
from pcces.engines.keys import key as random_key
from pcces.envs.simulator import Simulator
from pcces.envs.task import Continuous, Task
from pcces.rl.crew import Crew
from pcces.rl.episodes import Episode, Played
from pcces.rl.normalizer import Normalizer, carry_over
from pcces.rl.on_device import described
from pcces.rl.on_workers import episode_seeds
from pcces.rl.policy import Policy, forward
from pcces.rl.problem import Problem
from pcces.rl.settings import need

Array = Any


@dataclass(frozen=True)
class OnPolicySettings(Common):
    """An epoch and its critics."""

    hidden: tuple[int, ...] = (64, 64)  # widths of the policy's layers
    epoch_steps: int = 30_000  # environment steps an epoch, rounded to whole episodes of the longest kind
    gae: float = 0.95  # lambda of the generalised advantages, of rewards and costs
    critic_hidden: tuple[int, ...] = (64, 64)
    critic_rate: float = 1e-3  # Adam's
    passes: int = 10  # over an epoch's steps, for the critics and for PPO
    minibatches: int = 8  # a pass

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.epoch_steps >= 1, f"epoch_steps must be positive, got {self.epoch_steps}")
        need(0 <= self.gae <= 1, f"gae must lie in [0, 1], got {self.gae}")
        need(self.critic_rate > 0, f"critic_rate must be positive, got {self.critic_rate}")
        need(self.passes >= 1 and self.minibatches >= 1, "passes and minibatches must be at least 1")

    def episodes(self, task: Task | Simulator) -> int:
        """The episodes an epoch has if all run into the time limit; if not, others follow."""
        return max(1, round(self.epoch_steps / task.max_steps))


# -- a method on the device and on workers --------------------------------------------------------------------------------


class OnPolicy(NamedTuple):
    """A method as pure functions. Its states have k, x, normalizer."""

    begin: Callable[..., Any]
    """problem, net, settings, x, normalisation, key -> state"""
    learn: Callable[..., tuple[Any, dict[str, Array]]]
    """policy, problem, net, settings, state, epoch, key -> state, metrics"""


def program(method: OnPolicy, task: Task, policy: Policy, problem: Problem, settings: OnPolicySettings) -> Program:
    """A method on this task."""
    net = network(task.observation_size, settings)
    begin = jax.jit(partial(method.begin, problem, net, settings))  # op by op it would take seconds

    def step(state: Any, key: Array) -> tuple[Any, dict[str, Any]]:
        play_key, learn_key = jax.random.split(jax.random.fold_in(key, state.k))
        keys = jax.random.split(play_key, settings.episodes(task))
        epoch, outcome = play(task, policy, state.x, state.normalizer, keys, settings.discount)
        after, own = method.learn(policy, problem, net, settings, state, epoch, learn_key)
        samples = problem.outputs(outcome)
        return after, described(state.x, state.normalizer, outcome, samples, epoch.seen.count) | own

    return Program(
        lambda key: begin(*start.first(task, policy, problem, settings, key), key),
        step,
        settings.episodes(task),
        lambda key: begin(*start.blank(policy), key),
        chunk=1,
    )


class OnPolicyDriver:
    """A method whose episodes are played by workers."""

    def __init__(self, method: OnPolicy, crew: Crew, problem: Problem, settings: OnPolicySettings):
        configure()
        self.crew, self.problem, self.settings = crew, problem, settings
        net = network(crew.task.observation_size, settings)
        self._begin = jax.jit(partial(method.begin, problem, net, settings))

        def learn(state: Any, played: tuple, key: Array) -> tuple[Any, dict[str, Array]]:
            return method.learn(crew.policy, problem, net, settings, state, epoch_of(state.normalizer, *played), key)

        self._learn = alone(learn)

    def blank(self, x: np.ndarray, normalizer: Normalizer) -> Any:
        """Any state around x."""
        return jax.tree.map(np.asarray, self._begin(x, normalizer, random_key(0)))

    def first(self, seed: int) -> Any:
        """The state before the first iteration."""
        x, normalizer = self.crew.first(start.as_pcces(self.settings), seed)
        return jax.tree.map(np.asarray, self._begin(x, normalizer, random_key(seed)))

    def step(self, seed: int, state: Any) -> tuple[Any, dict[str, Any]]:
        """One epoch."""
        crew, k, count = self.crew, int(state.k), self.settings.episodes(self.crew.task)
        rng = episode_seeds(seed, k)
        crew.share_point(state.x, state.normalizer)

        def play(size: int) -> Played:
            seeds = rng.integers(2**31, size=size)
            return crew.play_groups([([Episode(-1, 1, int(s)) for s in seeds], "steps")])[0]

        played = rounds(play, count, count * crew.task.max_steps)
        column = laid_out(crew.policy, count * (crew.task.max_steps + 1), played)
        key = jax.random.fold_in(random_key(seed), k)
        after, own = jax.tree.map(np.asarray, self._learn(state, column, key))
        return after, crew.described(state.x, state.normalizer, played[0], crew.outputs(played[0]), played) | own


# -- critics -----------------------------------------------------------------------------------------------------------


class Critics(NamedTuple):
    """Tanh networks of the observation, one for each signal, that predict its discounted sum in units of their own.

    The units follow the targets, and the last layers follow the units (as in PopArt), so that the same step sizes serve
    returns of 1 and of 1000.
    """

    weights: Array  # (1 + r, n)
    mean: Array  # (1 + r,) the units
    std: Array
    adam: Any


def network(observation_size: int, settings: OnPolicySettings) -> Policy:
    """A network with one output, as a policy's: the deviation that belongs to a policy's head is there and not used."""
    return Policy(observation_size, Continuous(-1.0, 1.0), settings.critic_hidden)


def init_critics(net: Policy, signals: int, settings: OnPolicySettings, key: Array) -> Critics:
    """Critics that say about zero."""
    z = jax.random.normal(key, (signals, net.size))
    weights = jax.vmap(lambda row: net.init(row, last=0.01))(z)
    return Critics(weights, jnp.zeros(signals), jnp.ones(signals), optax.adam(settings.critic_rate).init(weights))


def said(net: Policy, weights: Array, observations: Array) -> Array:
    """What one critic says in its own units: (N,) for observations (size, N)."""
    return forward(net.unpack(weights)[0], observations)[0]


def all_said(net: Policy, weights: Array, observations: Array) -> Array:
    """What all critics say (1 + r, N); one after the other, as a CPU is slow at batches of small products."""
    return jnp.stack([said(net, row, observations) for row in weights])


def values(net: Policy, critics: Critics, observations: Array) -> Array:
    """(1 + r, T + 1, B)"""
    out = all_said(net, critics.weights, raw_columns(observations))
    out = critics.mean[:, None] + critics.std[:, None] * out
    return out.reshape(-1, *observations.shape[1:])


def advantages(signals: Array, value: Array, played: Array, going: Array, discount: float, gae: float) -> Array:
    """Generalised advantages (Schulman et al. 2016): signals (.., T, B), value (.., T + 1, B), an epoch's masks (T, B).

    After an episode's end there is no value; after a cut by the time limit there is the critic's. Nothing flows from
    one episode into another.

    >>> one, going = jnp.ones((3, 1)), jnp.array([[1.0], [0.0], [1.0]])  # an episode of two steps, and another begins
    >>> print(advantages(one, jnp.zeros((4, 1)), one, going, 1.0, 0.5)[:, 0])
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
    ratio = critics.std / std
    w = critics.weights
    out = w[:, last - 1 - h : last - 1] * ratio[:, None]
    bias = w[:, last - 1] * ratio + (critics.mean - mean) / std
    w = w.at[:, last - 1 - h : last - 1].set(out).at[:, last - 1].set(bias)
    return critics._replace(weights=w, mean=mean, std=std)


UNITS = 0.2  # how fast the critics' units follow their targets


def fit(
    net: Policy, settings: OnPolicySettings, critics: Critics, epoch: Epoch, targets: Array, key: Array, first: Array
) -> Critics:
    """Regress on targets (1 + r, T, B). `first`: these are the first targets, and set the units alone."""
    target, weights = raw_columns(targets), raw_columns(epoch.weights)
    mean = summed(target @ weights)
    spread = jnp.sqrt(summed((target - mean[:, None]) ** 2 @ weights))
    rate = jnp.where(first, 1.0, UNITS)
    units = critics.mean + rate * (mean - critics.mean), critics.std + rate * (jnp.clip(spread, 1e-2) - critics.std)
    critics = rescaled(net, critics, *units)
    target = (target - critics.mean[:, None]) / critics.std[:, None]

    def loss(w: Array, part: tuple) -> Array:
        observations, target, weights = part
        error = all_said(net, w, observations) - target
        return 0.5 * (error**2 @ weights).sum()

    def update(carry: tuple, part: tuple) -> tuple:
        w, adam = carry
        updates, adam = optax.adam(settings.critic_rate).update(summed(jax.grad(loss)(w, part)), adam)
        return w + updates, adam

    columns = raw_columns(epoch.observations[:, :-1]), target, weights
    carry = critics.weights, critics.adam
    for_passes = jax.random.split(key, settings.passes)
    (w, adam), _ = jax.lax.scan(lambda c, k: (one_pass(settings, update, c, columns, k), None), carry, for_passes)
    return critics._replace(weights=w, adam=adam)


def one_pass(
    settings: OnPolicySettings, update: Callable[[Any, Any], Any], carry: Any, columns: tuple, key: Array
) -> Any:
    """`update` on every minibatch of the columns (.., N), the last of which are the steps' weights, in random order."""
    count = columns[-1].shape[-1]
    size = count // settings.minibatches
    order = jax.random.permutation(key, count)[: size * settings.minibatches].reshape(settings.minibatches, size)

    def body(carry: Any, rows: Array) -> tuple:
        *part, weights = (jnp.take(column, rows, axis=-1) for column in columns)
        total = summed(weights.sum())
        return update(carry, (*part, weights / jnp.where(total > 0, total, 1.0))), None

    return jax.lax.scan(body, carry, order)[0]


# -- policies ----------------------------------------------------------------------------------------------------------


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
    observations, actions = raw_columns(epoch.observations[:, :-1]), raw_columns(epoch.actions)
    layers, log_std = policy.unpack(x)
    head = forward(layers, observations)
    log_probability = policy.log_probability(head, log_std, actions)
    return Actions(observations, actions, head, log_std, log_probability, raw_columns(epoch.weights))


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


# -- PPO's clipped objective (Schulman et al. 2017) ---------------------------------------------------------------------


@dataclass(frozen=True)
class ClippedSettings(OnPolicySettings):
    """PPO: many small steps on one epoch, as long as the policy stays close."""

    rate: float = 3e-4  # Adam's, of the policy
    clip: float = 0.2  # beyond 1 +- clip, a change of probability gains nothing
    target_kl: float = 0.02  # stop an epoch's passes when the policy has moved further than this
    anneal: bool = True  # the rate falls linearly to zero over the iterations
    entropy: float = 0.0  # weight of an entropy bonus

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.rate > 0 and self.clip > 0 and self.target_kl > 0, "rate, clip and target_kl must be positive")


def improve(
    policy: Policy, settings: ClippedSettings, x: Array, adam: Any, did: Actions, advantage: Array, k: Array, key: Array
) -> tuple[Array, Any, dict[str, Array]]:
    """Maximise E[min(ratio A, clip(ratio) A)] for an advantage (T, B), until the passes are done or the policy is far."""
    low, high = 1 - settings.clip, 1 + settings.clip
    rate = settings.rate * jnp.where(settings.anneal, 1 - k / settings.iterations, 1.0)

    def loss(x: Array, part: tuple) -> Array:
        observations, actions, log_probability, advantage, weights = part
        layers, log_std = policy.unpack(x)
        head = forward(layers, observations)
        ratio = jnp.exp(policy.log_probability(head, log_std, actions) - log_probability)
        gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, low, high) * advantage)
        return -(gain + settings.entropy * policy.entropy(head, log_std)) @ weights

    def update(carry: tuple, part: tuple) -> tuple:
        x, adam = carry
        updates, adam = optax.scale_by_adam().update(summed(jax.grad(loss)(x, part)), adam)
        return x - rate * updates, adam

    columns = did.observations, did.actions, did.log_probability, raw_columns(advantage), did.weights

    def going_on(carry: tuple) -> Array:
        number, _, kl = carry
        return (number < settings.passes) & (kl <= settings.target_kl)

    def body(carry: tuple) -> tuple:
        number, inner, _ = carry
        inner = one_pass(settings, update, inner, columns, jax.random.fold_in(key, number))
        return number + 1, inner, summed(divergence(policy, inner[0], did))

    number, (x, adam), kl = jax.lax.while_loop(going_on, body, (jnp.int32(0), (x, adam), jnp.float32(0)))
    return x, adam, {"kl": kl, "passes": number}


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
    new = start.learnt(settings, normalizer, epoch.seen, k)
    x = carry_over(policy, x, normalizer, new)
    carried = jax.vmap(lambda w: carry_over(net, w, normalizer, new))(critics.weights)
    return x, critics._replace(weights=carried), new
