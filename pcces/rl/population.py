"""PCCES on policies as the paper has it, with a population of samples: `step` is an iteration, the rest are its parts.

An arena plays and learns (`pcces.engines.arena`). All else are pure functions: the device traces them into one compiled
program, with workers they run on NumPy arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from pcces import strategies
from pcces.core import algorithm
from pcces.core.arrays import array_namespace
from pcces.core.barrier import barrier, comparable, violation
from pcces.core.estimation import Estimate, estimate
from pcces.engines.arena import Around, Group, Program
from pcces.rl.first import First, first_of
from pcces.rl.lesson import Learning, Lesson
from pcces.rl.normalizer import Normalizer, Seen, carry_over, nothing_seen
from pcces.rl.outcome import Spent
from pcces.rl.policy import Policy
from pcces.rl.problem import regularised
from pcces.rl.settings import PopulationSettings, normalised
from pcces.rl.surrogate import Critic, init_critic, learn
from pcces.strategies import Strategy

Array = Any


class Learner(NamedTuple):
    """All that iteration k starts from: a checkpoint is this and the seed."""

    es: algorithm.State
    strategy: Any
    critic: Critic
    normalizer: Normalizer
    incumbent: Estimate  # of x_k, of y = (f, c); without samples before the first iteration


class Proposal(NamedTuple):
    """What Steps 1 to 3 come to, and what was learnt on the way."""

    incumbent: Estimate  # f_k and c_k
    directions: Array
    weights: Array
    d: Array
    x_trial: Array
    guide: Array | None  # the surrogate gradient to remember; None: d_k itself
    critic: Critic
    seen: Seen


def program(arena: Any, settings: PopulationSettings) -> Program:
    """PCCES in this arena."""
    s, constraints = settings, len(arena.problem.names)
    begin = arena.compiled(lambda x0, normalizer: start(x0, normalizer, constraints, s))

    def init(key: Any, given: First | None = None) -> tuple[Learner, Any]:
        x0, normalizer, spent = first_of(arena, s, key, given)
        return begin(x0, normalizer), spent

    return Program(
        init=init,
        step=partial(step, arena, s),
        shares=math.gcd(s.population * s.member_episodes, s.metric_episodes, s.episodes),
        blank=lambda key: begin(*arena.blank()),
    )


def step(arena: Any, settings: PopulationSettings, learner: Learner, key: Any) -> tuple[Learner, dict[str, Array]]:
    """One iteration of Algorithm 1: sample, propose, try, decide."""
    s, n, x, xp = settings, settings.episodes, learner.es.x, array_namespace(learner.es.x)
    z_key, member_key, own_key, other_key = arena.keys(key, learner.es.k, 4)

    # Step 1: the samples. Mirrored pairs share their seeds, and so do trial point and incumbent.
    width = make_strategy(s).normals(x.shape[0])
    directions, points = population(learner, arena.normals(z_key, s.population // 2, width), s)
    paired = s.common_random_numbers
    seeds = arena.seeds(member_key, s.population * s.member_episodes // (2 if paired else 1))
    own_seeds = arena.seeds(own_key, s.metric_episodes)
    trial_seeds = own_seeds[:n] if paired else arena.seeds(other_key, n)
    sampled = Group(
        points,
        xp.concat([seeds, seeds]) if paired else seeds,
        Around(x, learner.es.sigma_es, learner.strategy, z_key),
        learn=True,
    )

    # Step 2: what they are worth, and what the incumbent is
    (members, own), lesson = arena.play([sampled, Group(x[None], own_seeds)], learner.normalizer, learning(learner, s))
    y = xp.mean(xp.reshape(arena.outputs(members), (s.population, s.member_episodes, -1)), axis=1)
    fresh = arena.outputs(own)
    samples = regularised(fresh, x, s.l2)[:n]
    incumbent = estimated(learner, samples, s)

    # Step 3: d_k and the trial point
    guide, critic = guidance(learner, lesson, s)
    weights, d = direction(learner, directions, regularised(y, points, s.l2), s)
    x_trial = algorithm.trial_point(learner.es, d, s.rule)
    (there,), _ = arena.play([Group(x_trial[None], trial_seeds)], learner.normalizer)
    trial_samples = regularised(arena.outputs(there), x_trial, s.l2)

    # Steps 4 and 5
    seen = nothing_seen(learner.normalizer) if lesson is None else lesson.seen
    proposal = Proposal(incumbent, directions, weights, d, x_trial, guide, critic, seen)
    after, metrics = conclude(arena.policy, learner, proposal, trial_samples, samples, s)
    return after, metrics | arena.described(x, learner.normalizer, own, fresh, Spent.on(members, own, there))


def search(settings: PopulationSettings) -> Callable[[], Strategy]:
    """Makes the search distribution: guided, or isotropic with directions of the same length. It can be sent to workers."""
    alpha = 1.0 if settings.surrogate == "none" else settings.alpha
    return partial(strategies.guided, m=settings.m, alpha=alpha, beta=settings.beta)


def make_strategy(settings: PopulationSettings) -> Strategy:
    """The search distribution."""
    return search(settings)()


def start(x0: Array, normalizer: Normalizer, constraints: int, settings: PopulationSettings) -> Learner:
    """Before the first iteration."""
    xp = array_namespace(x0)
    zeros = xp.zeros((1 + constraints,), dtype=x0.dtype)
    return Learner(
        algorithm.init(x0, settings.sigma0, settings.sigma_es0),
        make_strategy(settings).init(x0),
        init_critic(normalizer.mean.shape[0], x0),
        normalizer,
        Estimate(xp.asarray(0.0, dtype=x0.dtype), zeros, zeros),
    )


def population(learner: Learner, z: Array, settings: PopulationSettings) -> tuple[Array, Array]:
    """Step 1: directions and sample points, a row each, from standard normals z (lambda / 2, normals)."""
    directions = strategies.mirrored(make_strategy(settings).directions(learner.strategy, z))
    return directions, algorithm.sample_points(learner.es.x, learner.es.sigma_es, directions)


def upper_bounds(e: Estimate, settings: PopulationSettings) -> Array:
    """Upper confidence bounds of the constraints."""
    xp = array_namespace(e.mean)
    variance = e.squares / xp.clip(e.n - 1, 1.0, None)
    return e.c + settings.constraint_z * xp.sqrt(variance[1:] / xp.clip(e.n, 1.0, None))


def broken(e: Estimate, sigma: Array, settings: PopulationSettings) -> Array:
    """The violation of an estimate: what its upper confidence bounds exceed eps_c sigma_k by."""
    return violation(upper_bounds(e, settings), settings.eps_c * sigma)


def learning(learner: Learner, settings: PopulationSettings) -> Learning:
    """What this iteration's episodes are to teach."""
    return Learning(settings.surrogate == "policy-gradient", learner.critic.weights)


def estimated(learner: Learner, samples: Array, settings: PopulationSettings) -> Estimate:
    """f_k and c_k: from this iteration's episodes of x_k, or what was kept of earlier ones."""
    fresh = estimate(samples)
    if settings.incumbent != "kept":
        return fresh
    xp, known = array_namespace(samples), learner.incumbent.n > 0
    return Estimate(*(xp.where(known, old, new) for old, new in zip(learner.incumbent, fresh)))


def guidance(learner: Learner, lesson: Lesson | None, settings: PopulationSettings) -> tuple[Array | None, Critic]:
    """The surrogate to remember, and the critic after these episodes."""
    if lesson is None or settings.surrogate != "policy-gradient":
        return None, learner.critic
    return lesson.gradient, learn(learner.critic, lesson.gram, lesson.moment)


def direction(learner: Learner, directions: Array, y: Array, settings: PopulationSettings) -> tuple[Array, Array]:
    """Steps 2 and 3: weights and d_k, from the samples' outputs y (lambda, 1 + r)."""
    f = y[:, 0]
    if settings.restoration == "merit":
        f = f + settings.rho * violation(y[:, 1:], settings.eps_c * learner.es.sigma)
    weights = make_strategy(settings).weights(strategies.SHAPINGS[settings.shaping](f))
    return weights, weights @ directions


def credited(trial: Array, incumbent: Array, settings: PopulationSettings) -> Array:
    """The trial's estimate of f with the benefit of the doubt, from the outputs (N, 1 + r) of both points' episodes.

    Differences the size of their own noise are as often progress as not, and a search that refuses them stands still.
    An estimate that is `doubt` standard errors too low is still one that Theorem 1 allows: its mean square error is
    1 + doubt^2 times that of the mean, so that it takes as many times the episodes (docs/explanation/theory.md).
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
    proposal: Proposal,
    trial_samples: Array,
    samples: Array,
    settings: PopulationSettings,
) -> tuple[Learner, dict[str, Array]]:
    """Steps 4 and 5: accept or reject, adapt the step sizes, remember the surrogate. The first iterations only collect.

    `trial_samples` and `samples` are the outputs of this iteration's episodes of the trial point and of x_k.
    """
    incumbent, directions, weights, d, x_trial, surrogate, critic, seen = proposal
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
        if settings.restoration == "barrier":
            f_k = barrier(f_k, over)
    decided, success = algorithm.decide(es, x_trial, f_trial, f_k, settings.rule)
    if settings.sigma_es == "tied":
        factor = xp.astype(xp.where(success, settings.gamma, settings.shrink), es.sigma_es.dtype)
        decided = algorithm.update_sigma_es(decided, es.sigma_es * factor, settings.sigma_es_min, settings.sigma_es0)
    waiting = es.k < settings.warm_up
    success = success & ~waiting
    after = algorithm.State(*(xp.where(waiting, old, new) for old, new in zip(es, decided)))._replace(k=decided.k)
    guide = d if surrogate is None else surrogate
    strategy = make_strategy(settings).update(learner.strategy, directions, weights, d, guide)
    normalizer = normalised(settings, learner.normalizer, seen, es.k)
    if settings.normalise:
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
    return Learner(after, strategy, critic, normalizer, kept), metrics
