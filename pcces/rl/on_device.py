"""PCCES as a program for the device engine: one iteration, episodes included, for `jax.jit`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from pcces.core.estimation import Estimate, estimate
from pcces.engines.device import Program, compiled, gathered, my_share, summed
from pcces.envs.task import Task
from pcces.rl import iteration, surrogate
from pcces.rl.iteration import Learner
from pcces.rl.normalizer import Normalizer, Seen, identity, normalise, seen_in, update
from pcces.rl.outcome import Outcome, Trajectory
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.rollout import rollout
from pcces.rl.settings import Settings

Array = Any
INITIAL_EPISODES = 4  # episodes by which a random policy is judged before the first iteration


def program(task: Task, policy: Policy, problem: Problem, settings: Settings) -> Program:
    """PCCES on this task."""
    members, n = settings.population * settings.member_episodes, settings.metric_episodes
    tries = len(iteration.STRIDES) * settings.stride_episodes
    return Program(
        partial(first, task, policy, problem, settings),
        partial(step, task, policy, problem, settings),
        math.gcd(members, n, settings.episodes, tries),
        partial(blank, task, policy, problem, settings),
    )


def blank(task: Task, policy: Policy, problem: Problem, settings: Settings, key: Array) -> Learner:
    """A learner of the right structure that has seen nothing."""
    x0, normalizer = jnp.zeros(policy.size), identity(jnp.zeros(policy.observation_size))
    return iteration.start(x0, normalizer, len(problem.names), settings)


@compiled(0, 1, 2, 3)
def first(task: Task, policy: Policy, problem: Problem, settings: Settings, key: Array) -> Learner:
    """x_0, the best of some random policies, and the normalisation their episodes give."""
    draw_key, look_key, play_key = jax.random.split(key, 3)
    z = jax.random.normal(draw_key, (settings.initial_tries, policy.size))
    points = jax.vmap(lambda row: policy.init(row, settings.log_std, settings.last_layer))(z)
    columns = jnp.repeat(points, INITIAL_EPISODES, axis=0).T

    def look(carry: tuple[Normalizer, Array], now: tuple[Array, Array]) -> tuple[tuple[Normalizer, Array], None]:
        """Play a few common episodes with every policy: which does best, and the normalisation after it."""
        normalizer, _ = carry
        key, learning = now
        keys = jnp.tile(jax.random.split(key, INITIAL_EPISODES), settings.initial_tries)
        discount = problem_discount(problem, settings)
        outcome, trajectory = rollout(task, policy, columns, normalizer, keys, discount, record=True)
        y = problem.outputs(outcome).reshape(settings.initial_tries, INITIAL_EPISODES, -1).mean(1)
        best = jnp.argmin(y[:, 0] + settings.rho * jnp.clip(y[:, 1:], 0).sum(1))
        count, total, _ = observed(trajectory, jnp.zeros_like(normalizer.mean))
        roughly = normalizer._replace(mean=total / count)  # so that sums are of what varies, from the start
        after = update(roughly, observed(trajectory, roughly.mean), frozen=jnp.bool_(False))
        return (jax.tree.map(partial(jnp.where, learning), after, normalizer), best), None

    # First what there is to see, then how the policies do once they see it well; a loop, so that both compile once.
    looks = [(look_key, True)] * settings.normalise + [(play_key, False)] * (settings.initial_tries > 1)
    normalizer, best = identity(jnp.zeros(policy.observation_size)), jnp.int32(0)
    if looks:
        keys, learning = zip(*looks)
        (normalizer, best), _ = jax.lax.scan(look, (normalizer, best), (jnp.stack(keys), jnp.array(learning)))
    return iteration.start(points[best], normalizer, len(problem.names), settings)


def step(
    task: Task, policy: Policy, problem: Problem, settings: Settings, learner: Learner, key: Array
) -> tuple[Learner, dict[str, Array]]:
    """One iteration. The devices that share it play a part of the episodes each, and agree on all the rest."""
    z_key, member_key, estimate_key, other_key = jax.random.split(jax.random.fold_in(key, learner.es.k), 4)
    lam, repeats, n, looks = settings.population, settings.member_episodes, settings.episodes, settings.metric_episodes
    width = iteration.make_strategy(settings).normals(policy.size)
    directions, points = iteration.population(learner, jax.random.normal(z_key, (lam // 2, width)), settings)

    paired = settings.common_random_numbers
    member_keys = jax.random.split(member_key, (lam // 2 if paired else lam) * repeats)
    member_keys = jnp.concatenate([member_keys, member_keys]) if paired else member_keys
    keys = jax.random.split(estimate_key, looks)
    x = learner.es.x
    mine = my_share(jnp.repeat(points, repeats, axis=0).T)
    episodes = mine.shape[1]
    columns = jnp.concatenate([mine, my_share(jnp.broadcast_to(x[:, None], (x.size, looks)))], axis=1)
    play = partial(rollout, task, policy, normalizer=learner.normalizer, discount=problem_discount(problem, settings))
    both, trajectory = play(columns, keys=jnp.concatenate([my_share(member_keys), my_share(keys)]), record=True)
    members = gathered(jax.tree.map(lambda a: a[..., :episodes], both))
    own = gathered(jax.tree.map(lambda a: a[..., episodes:], both))

    y = iteration.regularised(problem.outputs(members).reshape(lam, repeats, -1).mean(1), points, settings)
    fresh = problem.outputs(own)
    samples = iteration.regularised(fresh, x, settings)
    incumbent = estimate(samples[:n])
    if settings.incumbent == "kept":
        known = learner.incumbent.n > 0
        incumbent = jax.tree.map(lambda old, new: jnp.where(known, old, new), learner.incumbent, incumbent)
    assert trajectory is not None
    if settings.kl == 0:  # the paper's surrogate is of the samples alone
        columns, trajectory = mine, jax.tree.map(lambda a: a[..., :episodes], trajectory)
    guide, stride, critic, seen = learn_from(policy, task, settings, learner, columns, trajectory)
    weights, d, moments = iteration.direction(learner, directions, y, incumbent, settings)
    tried = jnp.float32(0)
    if stride is not None:
        try_key = jax.random.fold_in(other_key, 1)
        d, tried = with_stride(problem, settings, learner, d, stride, incumbent, play, try_key)
    x_trial = iteration.trial_point(learner, d, settings)
    trial_keys = keys[:n] if paired else jax.random.split(other_key, n)
    there = my_share(jnp.broadcast_to(x_trial[:, None], (x.size, n)))
    trial_outcome = gathered(play(there, keys=my_share(trial_keys))[0])
    trial_samples = iteration.regularised(problem.outputs(trial_outcome), x_trial, settings)

    after, metrics = iteration.conclude(
        policy, learner, directions, weights, d, moments, x_trial, trial_samples, samples[:n], incumbent,
        guide, critic, seen, settings,
    )  # fmt: skip
    steps = members.length.sum() + own.length.sum() + tried + trial_outcome.length.sum()
    return after, metrics | described(x, learner.normalizer, own, fresh, steps)


def with_stride(
    problem: Problem,
    settings: Settings,
    learner: Learner,
    d: Array,
    stride: Array,
    incumbent: Estimate,
    play: Any,
    key: Array,
) -> tuple[Array, Array]:
    """d_k with as much of the step along the natural gradient as some episodes of each length speak for; and their steps."""
    several, repeats = iteration.lengthened(d, stride, settings), settings.stride_episodes
    if len(several) == 1:
        return several[0], jnp.float32(0)
    points = jax.vmap(lambda row: iteration.trial_point(learner, row, settings))(several)
    keys = jnp.tile(jax.random.split(key, repeats), len(points))
    found = gathered(play(my_share(jnp.repeat(points, repeats, axis=0).T), keys=my_share(keys))[0])
    y = iteration.regularised(problem.outputs(found).reshape(len(points), repeats, -1).mean(1), points, settings)
    return several[jnp.argmin(iteration.merit(learner, y, incumbent, settings))], found.length.sum()


def problem_discount(problem: Problem, settings: Settings) -> float:
    """The discount of the returns that count, which are mostly plain ones."""
    return settings.discount if problem.discounted else 1.0


def described(x: Array, normalizer: Normalizer, own: Outcome, samples: Array, steps: Array) -> dict[str, Any]:
    """What every algorithm reports of an iteration: the policy it started from, and fresh episodes of that policy."""
    return {
        "return": own.returns.mean(),
        "costs": own.costs.mean(-1),
        "entropy": own.entropy.mean(),
        "length": own.length.mean(),
        "steps": steps,
        "x": x,
        "mean": normalizer.mean,
        "std": normalizer.std,
        "estimate": estimate(samples),
    }


def observed(trajectory: Trajectory | None, mean: Array) -> Seen:
    """What the normalisation learns from a trajectory."""
    assert trajectory is not None
    return seen_in(jnp.moveaxis(trajectory.observations, 1, 0), trajectory.alive.astype(jnp.float32), mean)


def learn_from(
    policy: Policy, task: Task, settings: Settings, learner: Learner, columns: Array, trajectory: Trajectory
) -> tuple[Array | None, Array | None, surrogate.Critic, Seen]:
    """The surrogate G_k, a step along the natural gradient, the critic after these episodes, and what the normalisation learns."""
    seen = observed(trajectory, learner.normalizer.mean)
    if settings.lesson == "observations":
        return None, None, learner.critic, summed(seen)
    alive = trajectory.alive.astype(jnp.float32)
    observations = normalise(learner.normalizer, jnp.moveaxis(trajectory.observations, 1, 0))  # (size, T, B)
    phi = surrogate.features(observations, task.max_steps) * alive
    phi = phi.reshape(phi.shape[0], -1)
    prices = iteration.cost_prices(learner, trajectory.costs.shape[1], settings)
    worth = surrogate.priced(trajectory.rewards, jnp.moveaxis(trajectory.costs, 1, 0), prices)
    to_go = surrogate.returns_to_go(worth, settings.discount)
    advantages = (to_go - (learner.critic.weights @ phi).reshape(to_go.shape)) * alive
    slopes = surrogate.slopes(policy, columns, observations, jnp.moveaxis(trajectory.actions, 0, -2))
    gradient = surrogate.policy_gradient(slopes, advantages)
    information = surrogate.fisher(slopes, alive) if settings.kl else None
    states = gathered(surrogate.states_of(observations, alive.sum(0))) if settings.lesson == "measured" else None
    sums = seen, gradient, information, phi @ phi.T, phi @ to_go.reshape(-1)
    seen, gradient, information, gram, moment = summed(sums)
    guide, stride = iteration.guidance(policy, learner, gradient, information, seen.count, states, settings)
    return guide, stride, surrogate.learn(learner.critic, gram, moment), seen
