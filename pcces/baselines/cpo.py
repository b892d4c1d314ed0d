"""CPO: constrained policy optimization (Achiam, Held, Tamar, Abbeel 2017).

Every epoch solves the trust-region problem (eq. 11)

    max_d g.d   subject to   c + b.d <= 0   and   d.H d / 2 <= delta

where g and b are the slopes of the reward's and the cost's surrogate E[ratio A], H is the Hessian of the mean KL
divergence, and c is how far the mean cost of an episode is over its limit; then it walks back along d until the
divergence, the surrogate cost and, unless the cost comes first, the surrogate reward are what they should be.

The surrogates are means over steps, and an episode has L of them: c is therefore divided by L.

Of several costs the step regards the one that the unconstrained step would break most, in units of the trust region;
the walk back regards them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pcces.baselines import on_policy
from pcces.baselines.on_policy import OnPolicy, OnPolicySettings
from pcces.engines.device import summed
from pcces.rl import critics as critic_networks
from pcces.rl import improvement
from pcces.rl.critics import Critics
from pcces.rl.epochs import Epoch, step_columns
from pcces.rl.normalizer import Normalizer
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.settings import need
from pcces.support.settings import FIRST, SOMETIMES, setting

Array = Any
TINY = 1e-8
PARALLEL = 1e-6  # of slopes whose angle's squared sine is less, nothing but rounding is left inside the plane


@dataclass(frozen=True)
class CPOSettings(OnPolicySettings):
    """The authors' values, as in OpenAI's safety-starter-agents; `constrained=False` is TRPO, blind to costs."""

    constrained: bool = setting(True, "False is TRPO, which ignores costs", SOMETIMES)
    delta: float = setting(0.01, "the trust region: E[KL] of a step", FIRST)
    damping: float = setting(0.1, "damping, added to the Hessian's diagonal")
    cg_iterations: int = setting(15, "iterations of the conjugate gradient")
    backtracks: int = setting(15, "backtracks of the line search, at most")
    shrink: float = setting(0.8, "factor by which a backtrack shortens the step")

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.delta > 0 and self.damping >= 0, "delta must be positive and damping not negative")
        need(0 < self.shrink < 1, f"shrink must lie between 0 and 1, got {self.shrink}")
        need(self.cg_iterations >= 1 and self.backtracks >= 1, "cg_iterations and backtracks must be at least 1")


class CPOState(NamedTuple):
    """All that an epoch starts from."""

    k: Array
    x: Array
    critics: Critics
    normalizer: Normalizer


def begin(
    problem: Problem, net: Policy, settings: CPOSettings, x: Array, normalizer: Normalizer, key: Array
) -> CPOState:
    """Before the first epoch."""
    critics = critic_networks.init_critics(net, 1 + len(problem.cost_names), settings, jax.random.fold_in(key, 1))
    return CPOState(jnp.int32(0), x, critics, normalizer)


def conjugate_gradients(product: Callable[[Array], Array], b: Array, iterations: int) -> Array:
    """H^-1 b from products H v.

    >>> H = jnp.array([[2.0, 1.0], [1.0, 3.0]])
    >>> print((H @ conjugate_gradients(lambda v: H @ v, jnp.array([1.0, 2.0]), 2)).round(3))
    [1. 2.]
    """

    def body(_: Array, carry: tuple) -> tuple:
        x, r, p, rr = carry
        going = rr > 1e-10 * bb
        Hp = product(p)
        alpha = jnp.where(going, rr / jnp.where(going, p @ Hp, 1.0), 0.0)
        x, r = x + alpha * p, r - alpha * Hp
        after = r @ r
        p = r + jnp.where(going, after / jnp.where(going, rr, 1.0), 0.0) * p
        return x, r, p, jnp.where(going, after, rr)

    bb = b @ b
    return jax.lax.fori_loop(0, iterations, body, (jnp.zeros_like(b), b, b, bb))[0]


class Direction(NamedTuple):
    """The step of eq. 11, before any walk back."""

    d: Array
    recovering: Array  # the cost is over its limit: the reward need not improve
    multiplier: Array  # nu: what a unit of cost weighs against a unit of reward; 0 in the cases 1 and 3


def solve(g: Array, v: Array, b: Array, w: Array, c: Array, delta: float) -> Direction:
    """Eq. 11 for one cost, from g, v = H^-1 g, b and w = H^-1 b. The dual of the authors (eq. 12) in three cases:

    1. the best step of the trust region, v sqrt(2 delta / q), keeps the constraint: it is the answer (nu = 0);
    2. it does not, but some step does: both constraints are active. The answer is the point -c / s w of the plane
       c + b.d = 0 that is nearest to 0, and from there along the part of v inside the plane as far as the trust region
       goes;
    3. none does: go straight down the cost (eq. 14).

    >>> unit = jnp.eye(2)
    >>> print(solve(unit[0], unit[0], unit[1], unit[1], jnp.float32(0.6), delta=0.5).d.round(3))  # down by 0.6 in a unit circle
    [ 0.8 -0.6]
    """
    q, r, s = g @ v, g @ w, b @ w
    free = v * jnp.sqrt(2 * delta / jnp.maximum(q, TINY))
    safe_s = jnp.maximum(s, TINY)
    inside = v - r / safe_s * w  # b . inside = 0
    A = jnp.maximum((g - r / safe_s * b) @ inside, 0.0)  # its squared length in H; as q - r^2 / s it would cancel
    apart = PARALLEL * q < A
    B = 2 * delta - c**2 / safe_s  # what the trust region leaves for it, squared
    lam = jnp.sqrt(A / jnp.maximum(B, TINY * delta))
    both = -c / safe_s * w + inside * jnp.where(apart, jnp.sqrt(jnp.maximum(B, 0.0) / jnp.where(apart, A, 1.0)), 0.0)
    down = -w * jnp.sqrt(2 * delta / safe_s)
    flat = s <= TINY  # the cost cannot be changed
    kept = (c + b @ free <= 0) | flat
    d = jnp.where(kept, free, jnp.where(B > 0, both, down))
    nu = jnp.where(kept | (B <= 0), 0.0, jnp.maximum(0.0, r + lam * c) / safe_s)
    return Direction(d, (c > 0) & ~flat, nu)


def line_search(
    settings: CPOSettings, x: Array, d: Array, judge: Callable[[Array], tuple[Array, Array]]
) -> tuple[Array, Array, Array]:
    """The longest of x + d, x + shrink d, x + shrink^2 d, .. that `judge` finds good: x itself if none is.

    `judge` gives (good, divergence); back come the point, its divergence, and the share of d that was taken.
    """

    def going_on(carry: tuple) -> Array:
        number, good, *_ = carry
        return (number < settings.backtracks) & ~good

    def body(carry: tuple) -> tuple:
        number, _, share, _ = carry
        share = jnp.where(number == 0, 1.0, share * settings.shrink)
        good, kl = judge(x + share * d)
        return number + 1, good, share, kl

    begin = (jnp.int32(0), jnp.bool_(False), jnp.float32(1), jnp.float32(0))
    _, good, share, kl = jax.lax.while_loop(going_on, body, begin)
    return jnp.where(good, x + share * d, x), jnp.where(good, kl, 0.0), jnp.where(good, share, 0.0)


def learn(
    policy: Policy, problem: Problem, net: Policy, settings: CPOSettings, state: CPOState, epoch: Epoch, key: Array
) -> tuple[CPOState, dict[str, Array]]:
    """What one epoch teaches."""
    k, x, critics, normalizer = state
    value = critic_networks.values(net, critics, epoch)
    advantage = critic_networks.advantages(
        epoch.signals, value, epoch.played, epoch.going, settings.discount, settings.gae
    )
    reward = improvement.centred(advantage[0], epoch.weights, scale=True)[None]
    costs = jax.vmap(lambda a: improvement.centred(a, epoch.weights, scale=False))(advantage[1:])
    columns = step_columns(jnp.concatenate([reward, costs]))  # (1 + r, N)
    over = (epoch.costs - jnp.array(problem.thresholds)) / epoch.length  # c, a step

    did = improvement.acted(policy, x, epoch)

    def surrogates(y: Array) -> Array:
        """E[ratio A] of reward and costs: this device's part."""
        return columns @ (improvement.ratios(policy, y, did) * did.weights)

    def divergence(y: Array) -> Array:
        return improvement.divergence(policy, y, did)

    along = improvement.curvature(policy, x, did)

    def product(v: Array) -> Array:
        """H v."""
        return summed(along(v)) + settings.damping * v

    slopes = summed(jax.jacrev(surrogates)(x))  # (1 + r, n)
    solved = jnp.stack([conjugate_gradients(product, b, settings.cg_iterations) for b in slopes])
    g, v = slopes[0], solved[0]
    if problem.cost_names and settings.constrained:
        free = v * jnp.sqrt(2 * settings.delta / jnp.maximum(g @ v, TINY))
        s = jnp.maximum((slopes[1:] * solved[1:]).sum(1), TINY)
        i = jnp.argmax((over + slopes[1:] @ free) / jnp.sqrt(s))  # the constraint to regard
        direction = solve(g, v, slopes[1 + i], solved[1 + i], over[i], settings.delta)
    else:
        direction = solve(g, v, jnp.zeros_like(g), jnp.zeros_like(g), jnp.float32(-1), settings.delta)

    before = summed(surrogates(x))

    def judge(y: Array) -> tuple[Array, Array]:
        change = summed(surrogates(y)) - before
        kl = summed(divergence(y))
        kept = jnp.all(change[1:] <= jnp.maximum(-over, 0.0)) if settings.constrained else jnp.bool_(True)
        return (kl <= settings.delta) & kept & ((change[0] >= 0) | direction.recovering), kl

    after, kl, share = line_search(settings, x, direction.d, judge)
    critics = critic_networks.fit(net, settings, critics, epoch, advantage + value[:, :-1], key)
    after, critics, new = on_policy.moved_on(policy, net, settings, after, critics, normalizer, epoch, k)
    metrics = {
        "success": share > 0,
        "kl": kl,
        "step": share,
        "recovering": direction.recovering,
        "multiplier": direction.multiplier,
    }
    return CPOState(k + 1, after, critics, new), metrics


METHOD = OnPolicy(begin, learn)
