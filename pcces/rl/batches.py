"""PCCES on policies, as people get it: every batch of episodes is used three times.

A batch is played with the trial point. It is

1. the trial point's estimate, by which Step 4 decides,
2. a part of the incumbent's estimate, which is a mean over the latest batches: policies change little from one to the next,
3. what d_k is made from: critics of the reward and of each cost, generalised advantages, costs at their prices, and a few
   passes over the steps. They lead from x_k to some x; d_k = x - x_k, and the next trial point is x_k + sigma_k d_k.

A rejected batch is used as well: it was played close to x_k, and ratios of probabilities say how close.
Where episodes may fail, that none does is a constraint like the others; it has no gradient, as what failed has no steps.
docs/explanation/theory.md says what each economy does to the theorem's assumptions.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from pcces.core import algorithm
from pcces.core.barrier import comparable
from pcces.engines.arena import Program
from pcces.rl.critics import Critics, advantages, fit, init_critics, network, values
from pcces.rl.epochs import Epoch, epoch_program
from pcces.rl.improvement import acted, centred, improve
from pcces.rl.normalizer import Normalizer, carry_over
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.settings import BatchSettings as Settings
from pcces.rl.settings import normalised

Array = Any
LIMIT_OF_PRICES = 100.0
FARTHEST = 2.0  # deviations by which an episode's cost can be over its limit, as far as prices react to it
MEMORY = 0.9  # of an iteration's spreads, an iteration later


class IncumbentEstimate(NamedTuple):
    """What is known of y = (f, c, failing), an entry an output."""

    mean: Array  # at the incumbent
    variance: Array  # of that mean
    noise: Array  # variance of one batch's mean, lately
    spread: Array  # deviation of one episode, lately


class Prices(NamedTuple):
    """What a deviation of an episode's constraint costs, in deviations of its return."""

    values: Array  # (r + 1,) the last is of failing
    steady: Array  # the part that remains when the limit is just kept


class BatchLearner(NamedTuple):
    """All that an iteration starts from: a checkpoint is this and the seed."""

    es: algorithm.State
    x_trial: Array
    adam: Any
    critics: Critics
    normalizer: Normalizer
    known: IncumbentEstimate
    prices: Prices
    lane: Any = 0.0


LANE_NAMES: list = []
LANE_KEYS = None
LANE_VALUES = None


class Lane:
    def __init__(self, settings, row):
        self.settings, self.row = settings, row

    def __getattr__(self, name):
        if name in LANE_NAMES:
            return self.row[LANE_NAMES.index(name)]
        return getattr(self.settings, name)


def lane_of(key):
    data = jax.random.key_data(key)
    same = (LANE_KEYS == data).all(-1)
    return LANE_VALUES[jnp.argmax(same)]


def program(arena: Any, settings: Settings) -> Program:
    """PCCES in this arena."""
    task, policy, problem = arena.task, arena.policy, arena.problem
    from pcces.rl.critics import PREV
    net = network(task.observation_size + (1 + len(problem.cost_names)) * PREV, settings)

    def learn(
        learner: BatchLearner, epoch: Epoch, samples: Array, lengths: Array, key: Array
    ) -> tuple[BatchLearner, dict[str, Array]]:
        cut = jnp.mean(lengths >= task.max_steps)
        use = Lane(settings, learner.lane) if LANE_NAMES else settings
        return conclude(policy, net, problem, use, learner, epoch, samples, cut, key)

    begin = partial(start, net, problem, settings)
    return epoch_program(arena, settings, begin, learn, lambda learner: (learner.x_trial, learner.es.k))


def start(
    net: Policy, problem: Problem, settings: Settings, x0: Array, normalizer: Normalizer, key: Array
) -> BatchLearner:
    """Before the first iteration, whose trial point is x_0."""
    lane = lane_of(key) if LANE_NAMES else jnp.float32(0)
    first_price = Lane(settings, lane).first_price if LANE_NAMES else settings.first_price
    outputs = 1 + len(problem.names) + 1
    zeros = jnp.zeros(outputs)
    critics = init_critics(net, 1 + len(problem.cost_names), settings, jax.random.fold_in(key, 1))
    return BatchLearner(
        algorithm.init(x0, settings.sigma0, 0.0),
        x0,
        optax.scale_by_adam().init(x0),
        critics,
        normalizer,
        IncumbentEstimate(zeros, zeros, zeros, zeros),
        Prices(zeros[1:] + first_price, zeros[1:] + first_price),
        lane,
    )


def conclude(
    policy: Policy,
    net: Policy,
    problem: Problem,
    settings: Settings,
    learner: BatchLearner,
    epoch: Epoch,
    samples: Array,
    cut: Array,
    key: Array,
) -> tuple[BatchLearner, dict[str, Array]]:
    """What an iteration makes of the batch played with its trial point, whose episodes have the outputs `samples`; the limit on
    time has cut off a share `cut` of them.

    Many parameters: what never changes comes first, then what an iteration starts from, then what was played.
    """
    learn_key, critic_key = jax.random.split(key)
    first = learner.es.k == 0
    known, there, mean = estimated(learner.known, with_failing(samples, learner.known), first, settings)

    # Step 4: is the trial point better than the incumbent?
    decided, success, over = decide(learner, known, there, mean, first, settings)
    kept = known.mean + settings.weight * (1 - settings.weight) * (
        mean - known.mean
    )  # a neighbour's batch tells of x_k, too
    known = known._replace(
        mean=jnp.where(success, there, kept),
        variance=jnp.where(
            success & ~first, settings.weight * known.noise, jnp.where(first, known.noise, known.variance)
        ),
    )
    prices = repriced(learner.prices, known, settings)

    # Steps 1 to 3 of the next iteration: where should it go from here?
    from pcces.rl.critics import view, PREV
    value = values(net, learner.critics, view(epoch))
    # f is not discounted. What lies beyond a cut has to be, or there would be no end to it; where episodes end, nothing has.
    r = len(problem.cost_names)
    discount = jnp.stack([jnp.asarray(settings.discount)] + [jnp.asarray(settings.cost_discount)] * r)[:, None, None]
    discount = 1 - (1 - discount) * cut
    gae = jnp.stack([jnp.asarray(settings.gae)] + [jnp.asarray(settings.cost_gae)] * r)[:, None, None]
    gae = settings.gae_ended + (gae - settings.gae_ended) * cut
    advantage = advantages(epoch.signals, value, epoch.played, epoch.going, discount, gae)
    priced, bonus = objective(problem, settings, advantage, epoch, prices)
    did = acted(policy, learner.x_trial, epoch)
    moved, adam, own = improve(policy, settings, decided.x, learner.adam, did, priced, decided.k - 1, learn_key, bonus)
    d = near_enough(moved - decided.x, own["kl"], settings)
    x_trial = algorithm.trial_point(decided, d, settings.rule)

    critics = fit(net, settings, learner.critics, epoch, advantage + value[:, :-1], critic_key)
    normalizer = normalised(settings, learner.normalizer, epoch.seen, learner.es.k)
    if settings.normalise:
        x, x_trial = (carry_over(policy, y, learner.normalizer, normalizer) for y in (decided.x, x_trial))
        decided = decided._replace(x=x)
        extra = (1 + len(problem.cost_names)) * PREV
        padded = [n._replace(mean=jnp.pad(n.mean, (0, extra)), std=jnp.pad(n.std, (0, extra), constant_values=1.0)) for n in (learner.normalizer, normalizer)]
        carried = jax.vmap(lambda w: carry_over(net, w, *padded))(critics.weights)
        critics = critics._replace(weights=carried)
    metrics = (
        own
        | {
            "success": success,
            "moved": jnp.bool_(True),
            "sigma": learner.es.sigma,
            "d": jnp.linalg.norm(d),
            "f": known.mean[0],
            "violation": over,
            "price": prices.values.sum(),
        }
        | {f"price_{name}": prices.values[i] for i, name in enumerate(problem.cost_names)}
    )
    return BatchLearner(decided, x_trial, adam, critics, normalizer, known, prices, learner.lane), metrics


def near_enough(d: Array, kl: Array, settings: Settings) -> Array:
    """d_k, shortened where the last pass went too far: the KL divergence grows with the square of the step.

    >>> near_enough(jnp.array([3.0, 4.0]), jnp.float32(0.08), Settings(target_kl=0.02)).tolist()
    [1.5, 2.0]
    """
    return d * jnp.sqrt(jnp.minimum(1.0, settings.target_kl / jnp.maximum(kl, 1e-12)))


def with_failing(samples: Array, known: IncumbentEstimate) -> Array:
    """Outputs of episodes (N, 1 + r) with one more, which is above zero on average as soon as one of them failed. Otherwise
    an episode that failed counts as the mean of the others."""
    good = jnp.isfinite(samples).all(1)
    usual = jnp.where(good[:, None], samples, 0.0).sum(0) / jnp.maximum(good.sum(), 1)
    usual = jnp.where(good.any(), usual, known.mean[:-1])
    failing = jnp.where(good, 0.0, 1.0) - 0.5 / len(samples)
    return jnp.column_stack([jnp.where(good[:, None], samples, usual), failing])


def estimated(
    known: IncumbentEstimate, samples: Array, first: Array, settings: Settings
) -> tuple[IncumbentEstimate, Array, Array]:
    """What is known with this batch's spread in it, the estimate of the trial point, and the batch's own mean.

    The estimate of the trial point leans on the incumbent's: it is near, and a batch says little by itself.
    """
    n = samples.shape[0]
    mean, variance = samples.mean(0), samples.var(0, ddof=1) if n > 1 else jnp.zeros_like(samples[0])
    noise = jnp.where(first, variance / n, MEMORY * known.noise + (1 - MEMORY) * variance / n)
    spread = jnp.where(first, jnp.sqrt(variance), MEMORY * known.spread + (1 - MEMORY) * jnp.sqrt(variance))
    there = jnp.where(first, mean, known.mean + settings.weight * (mean - known.mean))
    return known._replace(noise=noise, spread=spread), there, mean


def decide(
    learner: BatchLearner, known: IncumbentEstimate, there: Array, mean: Array, first: Array, settings: Settings
) -> tuple[algorithm.State, Array, Array]:
    """Step 4, on f in units of an episode's spread: the state after it, whether it succeeded, and the incumbent's violation.

    The objective of the trial point is the mean of its own batch, with the benefit of the doubt; its constraints are the
    estimates that lean on the incumbent's.
    """
    unit = jnp.maximum(known.spread[0], 1e-12)
    weighed = jnp.concatenate([jnp.ones(1), in_units_of_f(learner.prices, known)])
    over_trial, over = (jnp.max(y[1:], initial=0.0) for y in (there, known.mean))
    weights = jnp.where(over > 0, weighed, weighed * (jnp.arange(len(weighed)) == 0))  # merit, while a limit is broken
    error = jnp.sqrt(weights**2 @ (known.noise + known.variance))
    f_trial, f_k = weights @ mean - settings.doubt * error, weights @ known.mean
    trial, incumbent = comparable(f_trial / unit, over_trial, f_k / unit, over, 0.0)
    trial = jnp.where(first, -jnp.inf, trial)
    decided, success = algorithm.decide(learner.es, learner.x_trial, trial, incumbent, settings.rule)
    return decided._replace(sigma=jnp.where(first, learner.es.sigma, decided.sigma)), success, over


def in_units_of_f(prices: Prices, known: IncumbentEstimate) -> Array:
    """What a unit of each constraint costs, in units of f."""
    return prices.values * known.spread[0] / jnp.maximum(known.spread[1:], 1e-12)


def repriced(prices: Prices, known: IncumbentEstimate, settings: Settings) -> Prices:
    """Prices rise while a limit is broken and fall while it is kept: by a steady part, and by a reaction at once.

    They aim a little below the limit, by as much as the estimate is uncertain.
    """
    margin = settings.aim * jnp.sqrt(settings.weight * known.noise[1:])
    off = (known.mean[1:] + margin) / jnp.maximum(known.spread[1:], 1e-12)
    slow = jnp.clip(off, -settings.price_clip, settings.price_clip)
    fast = jnp.clip(off, -settings.reaction_clip, settings.reaction_clip)
    if True:
        factor = jnp.clip(prices.steady * jnp.exp(settings.price_rate * slow), 0.05, 100.0)
        nothing = jnp.exp(-settings.price_reaction * settings.reaction_clip)
        kind1 = factor * (jnp.exp(settings.price_reaction * fast) - nothing) / (1 - nothing)
    steady = jnp.clip(prices.steady + settings.price_rate * slow, 0.0, LIMIT_OF_PRICES)
    one = jnp.asarray(settings.price_kind) == 1
    kind0 = jnp.clip(steady + settings.price_reaction * fast, 0.0, LIMIT_OF_PRICES)
    return Prices(jnp.where(one, kind1, kind0), jnp.where(one, factor, steady))


def objective(
    problem: Problem, settings: Settings, advantage: Array, epoch: Epoch, prices: Prices
) -> tuple[Array, Array]:
    """What the passes maximise: the advantage of the reward less those of the costs at their prices, each in units of its
    deviation; and the weight of the policy's entropy, from the prices of its limits."""
    scaled = jax.vmap(lambda a: centred(a, epoch.weights, scale=True))(advantage)
    costs, values = len(problem.cost_names), prices.values[:-1]
    whole = 1 + values.sum()
    priced = (scaled[0] - jnp.tensordot(values[:costs], scaled[1:], 1)) / whole
    signs = jnp.array([-1.0 if limit.at_most else 1.0 for limit in problem.limits[costs:]])
    return priced, settings.entropy + (signs @ values[costs:] if signs.size else 0.0) / whole
