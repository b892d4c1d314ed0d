"""One iteration of PCCES on policies, as pure functions between evaluations; the same on every engine.

    population  -> an engine plays the samples -> direction -> an engine plays trial and incumbent -> conclude

The engine on the device traces them into one compiled program; the drivers of workers call them on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from pcces import strategies
from pcces.core import algorithm
from pcces.core.arrays import array_namespace
from pcces.core.barrier import barrier, comparable, violation
from pcces.core.estimation import Estimate, estimate
from pcces.rl.normalizer import Normalizer, Seen, carry_over, update
from pcces.rl.policy import Policy
from pcces.rl.settings import Settings
from pcces.rl.surrogate import Critic, init_critic, measured, natural_step
from pcces.strategies import Strategy

Array = Any
STRIDES = (0.0, 0.1, 0.3, 1.0)  # how much of the step along the natural gradient may go into d_k
PRICES = 1e3  # how far prices may move from rho, up and down


class Moments(NamedTuple):
    """Decayed means of the recombined directions and of their squares, as in Adam."""

    first: Array
    second: Array


class Learner(NamedTuple):
    """All that iteration k starts from: a checkpoint is this and the seed."""

    es: algorithm.State
    strategy: Any
    critic: Critic
    normalizer: Normalizer
    incumbent: Estimate  # of x_k, of y = (f, c); without samples before the first iteration
    moments: Moments
    prices: Array  # of a unit of each constraint, in units of f


def search(settings: Settings) -> Callable[[], Strategy]:
    """Makes the search distribution: guided, or isotropic with directions of the same length. It can be sent to workers."""
    alpha = 1.0 if settings.surrogate == "none" else settings.alpha
    return partial(strategies.guided, m=settings.m, alpha=alpha, beta=settings.beta)


def make_strategy(settings: Settings) -> Strategy:
    """The search distribution."""
    return search(settings)()


def start(x0: Array, normalizer: Normalizer, constraints: int, settings: Settings) -> Learner:
    """Before the first iteration."""
    xp = array_namespace(x0)
    zeros = xp.zeros((1 + constraints,), dtype=x0.dtype)
    return Learner(
        algorithm.init(x0, settings.sigma0, settings.sigma_es0),
        make_strategy(settings).init(x0),
        init_critic(normalizer.mean.shape[0], x0),
        normalizer,
        Estimate(xp.asarray(0.0, dtype=x0.dtype), zeros, zeros),
        Moments(xp.zeros_like(x0), xp.zeros_like(x0)),
        xp.full((constraints,), settings.rho, dtype=x0.dtype),
    )


def population(learner: Learner, z: Array, settings: Settings) -> tuple[Array, Array]:
    """Step 1: directions and sample points, a row each, from standard normals z (lambda / 2, normals)."""
    directions = strategies.mirrored(make_strategy(settings).directions(learner.strategy, z))
    return directions, algorithm.sample_points(learner.es.x, learner.es.sigma_es, directions)


def regularised(y: Array, x: Array, settings: Settings) -> Array:
    """The outputs with the L2 term on their objective: rows of y belong to rows of x, or all to one x."""
    xp = array_namespace(y)
    return xp.concat([y[..., :1] + settings.l2 * xp.sum(x**2, axis=-1, keepdims=True), y[..., 1:]], axis=-1)


def upper_bounds(e: Estimate, settings: Settings) -> Array:
    """Upper confidence bounds of the constraints."""
    xp = array_namespace(e.mean)
    variance = e.squares / xp.clip(e.n - 1, 1.0, None)
    return e.c + settings.constraint_z * xp.sqrt(variance[1:] / xp.clip(e.n, 1.0, None))


def broken(e: Estimate, sigma: Array, settings: Settings) -> Array:
    """The violation of an estimate: what its upper confidence bounds exceed eps_c sigma_k by."""
    return violation(upper_bounds(e, settings), settings.eps_c * sigma)


def guidance(
    policy: Policy,
    learner: Learner,
    gradient: Array,
    information: Array | None,
    steps: Array,
    states: Array | None,
    settings: Settings,
) -> tuple[Array | None, Array | None]:
    """The surrogate to remember, and the natural gradient's part of d_k, from sums over an iteration's episodes and
    some of their states."""
    guide = gradient if settings.surrogate == "policy-gradient" else None
    if information is None:
        return guide, None
    stride = natural_step(policy, remembered(learner, gradient, settings), information, steps, settings.kl)
    return guide, stride if states is None else measured(policy, learner.es.x, stride, states, settings.kl)


def remembered(learner: Learner, gradient: Array, settings: Settings) -> Array:
    """The policy gradient with those of earlier iterations, which count the more the shorter the steps since are.

    Where long steps succeed, the gradient has changed since; where only short ones do, it is hidden by noise.
    """
    if settings.memory == 0:
        return gradient
    xp = array_namespace(gradient)
    archive = learner.strategy.archive  # unit vectors, the newest first
    ages = xp.arange(1, archive.shape[0] + 1, dtype=gradient.dtype)
    length = xp.linalg.vector_norm(gradient)
    return gradient / xp.where(length > 0, length, 1.0) + xp.exp(-ages * learner.es.sigma / settings.memory) @ archive


def merit(learner: Learner, y: Array, incumbent: Estimate, settings: Settings) -> Array:
    """What points are compared by, from their outputs y (count, 1 + r): f, and all that a constraint takes up at its
    price, unless it is far away."""
    xp = array_namespace(y)
    allowed = settings.eps_c * learner.es.sigma
    f, c = y[:, 0], y[:, 1:] - allowed
    if settings.restoration != "merit":
        return f
    near = xp.any((c > 0) & xp.isfinite(c), axis=0) | (upper_bounds(incumbent, settings) > allowed)
    return f + xp.sum(learner.prices * xp.where(near, c, 0.0), axis=1)


def direction(
    learner: Learner, directions: Array, y: Array, incumbent: Estimate, settings: Settings
) -> tuple[Array, Array, Moments]:
    """Steps 2 and 3: weights, d_k and its moments from the samples' outputs y (lambda, 1 + r)."""
    f = merit(learner, y, incumbent, settings)
    weights = make_strategy(settings).weights(strategies.SHAPINGS[settings.shaping](f))
    return weights, *recombined(learner, weights @ directions, settings)


def lengthened(d: Array, stride: Array, settings: Settings) -> Array:
    """What d_k may be, a row each: what the samples say, with more and more of the step along the natural gradient."""
    xp = array_namespace(d)
    return xp.stack([d + share * stride for share in (STRIDES if settings.stride_episodes else (1.0,))])


def cost_prices(learner: Learner, costs: int, settings: Settings) -> Array:
    """What a unit of each cost takes from the rewards, for the surrogate: costs come first among the constraints."""
    prices = learner.prices[:costs]
    return prices if settings.restoration == "merit" else 0 * prices


def recombined(learner: Learner, d: Array, settings: Settings) -> tuple[Array, Moments]:
    """What the samples say: that itself, or with momentum, each coordinate in units of its usual size (Adam); or nothing."""
    if settings.recombination != "adam":
        return (0 * d if settings.recombination == "none" else d), learner.moments
    xp = array_namespace(d)
    keep, keep_squares = settings.momentum, settings.momentum_squares
    first = keep * learner.moments.first + (1 - keep) * d
    second = keep_squares * learner.moments.second + (1 - keep_squares) * d**2
    k = xp.astype(learner.es.k + 1, d.dtype)
    size = xp.sqrt(second / (1 - keep_squares**k)) + 1e-8
    return first / (1 - keep**k) / size / d.shape[0] ** 0.5, Moments(first, second)


def trial_point(learner: Learner, d: Array, settings: Settings) -> Array:
    """Step 3: x_k + sigma_k d_k."""
    return algorithm.trial_point(learner.es, d, settings.rule)


def credited(trial: Array, incumbent: Array, settings: Settings) -> Array:
    """The trial's estimate of f with the benefit of the doubt, from the outputs (N, 1 + r) of both points' episodes.

    Differences the size of their own noise are as often progress as not, and a search that refuses them stands still.
    An estimate that is `doubt` standard errors too low is still one that Theorem 1 allows: its mean square error is
    1 + doubt^2 times that of the mean, so that it takes as many times the episodes (docs/theory.md).
    """
    xp = array_namespace(trial)
    n = trial.shape[0]
    f = estimate(trial).f
    if settings.doubt == 0 or n < 2:
        return f
    a, b = (xp.where(xp.isfinite(y[:, 0]), y[:, 0], 0.0) for y in (trial, incumbent))  # a failed trial stays at +inf
    if settings.common_random_numbers:
        variance = xp.var(a - b, correction=1)
    else:
        variance = xp.var(a, correction=1) + xp.var(b, correction=1)
    return f - settings.doubt * xp.sqrt(variance / n)


def failures(samples: Array) -> Array:
    """How many episodes failed. Where some of x_k do, fewer of them are progress: all of them at once would be asking too
    much of one step.

    >>> import numpy as np
    >>> float(failures(np.array([[1.0, 0.0], [np.inf, 2.0]])))
    1.0
    """
    xp = array_namespace(samples)
    return xp.sum(xp.astype(~xp.all(xp.isfinite(samples), axis=1), samples.dtype))


def conclude(
    policy: Policy,
    learner: Learner,
    directions: Array,
    weights: Array,
    d: Array,
    moments: Moments,
    x_trial: Array,
    trial_samples: Array,
    samples: Array,
    incumbent: Estimate,
    surrogate: Array | None,
    critic: Critic,
    seen: Seen,
    settings: Settings,
) -> tuple[Learner, dict[str, Array]]:
    """Steps 4 and 5: accept or reject, adapt the step sizes, remember the surrogate. The first iterations only collect.

    `trial_samples` and `samples` are the outputs of this iteration's episodes of the trial point and of x_k.
    """
    xp = array_namespace(x_trial)
    es, sigma = learner.es, learner.es.sigma
    trial, f_trial = estimate(trial_samples), credited(trial_samples, samples, settings)
    over_trial, over = broken(trial, sigma, settings), broken(incumbent, sigma, settings)
    if settings.restoration == "merit":
        f_trial, f_k = comparable(f_trial, over_trial, incumbent.f, over, settings.rho)
        lost_trial, lost = failures(trial_samples), failures(samples)
        f_trial, f_k = xp.where(lost > 0, lost_trial, f_trial), xp.where(lost > 0, lost, f_k)
    else:
        f_trial, f_k = barrier(f_trial, over_trial), incumbent.f
    decided, success = algorithm.decide(es, x_trial, f_trial, f_k, settings.rule)

    waiting = es.k < settings.warm_up
    success = success & ~waiting
    factor = xp.astype(xp.where(success, settings.growth, settings.shrink), es.sigma_es.dtype)
    grown = xp.clip(es.sigma_es * factor, settings.sigma_es_min, settings.sigma_es0)
    after = algorithm.State(
        xp.where(waiting, es.x, decided.x),
        xp.where(waiting, sigma, decided.sigma),
        xp.where(waiting, es.sigma_es, grown) if settings.sigma_es == "tied" else es.sigma_es,
        decided.k,
        xp.where(waiting, es.successes, decided.successes),
    )
    guide = d if surrogate is None else surrogate
    strategy = make_strategy(settings).update(learner.strategy, directions, weights, d, guide)
    normalizer = learner.normalizer
    if settings.normalise:
        # Without a freeze the number of iterations is left out, so that programs compiled for another one can be used.
        last = settings.freeze * settings.iterations if settings.freeze < 1 else float("inf")
        normalizer = update(normalizer, seen, frozen=es.k + 1 > last)
        after = after._replace(x=carry_over(policy, after.x, learner.normalizer, normalizer))
    kept = Estimate(*(xp.where(success, a, b) for a, b in zip(trial, incumbent)))
    metrics = {
        "success": success,
        "sigma": sigma,
        "sigma_es": es.sigma_es,
        "d": xp.linalg.vector_norm(d),
        "f": incumbent.f,
        "violation": over,
        "trial_f": trial.f,
        "trial_violation": over_trial,
    }
    prices = repriced(learner.prices, upper_bounds(trial, settings) > settings.eps_c * sigma, success, settings)
    return Learner(after, strategy, critic, normalizer, kept, moments, prices), metrics


def repriced(prices: Array, broken: Array, success: Array, settings: Settings) -> Array:
    """The prices of the constraints after a trial point that breaks some of them.

    A limit that keeps stopping the search must cost the samples more, so that d_k turns along it; one that is kept,
    less, so that the search comes near it again. A step that breaks a limit and is accepted (it leads back) says neither.
    """
    xp = array_namespace(prices)
    refused = xp.where(success, 1.0, settings.price_growth)
    factor = xp.astype(xp.where(broken, refused, settings.price_shrink), prices.dtype)
    return xp.clip(prices * factor, settings.rho / PRICES, settings.rho * PRICES)
