"""Episodes and the surrogate on the device: what is fast must give the numbers of what is plain."""

from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pcces.engines.device import DeviceEngine
from pcces.engines.keys import key
from pcces.envs import make
from pcces.envs.task import Continuous, Discrete, Step, Task
from pcces.rl import surrogate
from pcces.rl.algorithm import PCCES
from pcces.rl.device_arena import DeviceArena
from pcces.rl.normalizer import identity, normalise
from pcces.rl.policy import Policy, forward
from pcces.rl.population import program
from pcces.rl.problem import problem_for
from pcces.rl.rollout import CHUNK, rollout


def setting(name, batch, hidden=(10, 10), seed=0):
    task = make(name)
    policy = Policy(task.observation_size, task.actions, hidden)
    normals = jax.random.normal(key(seed), (policy.size, batch))
    x = jax.vmap(policy.init, -1, -1)(normals)
    normalizer = identity(jnp.zeros(task.observation_size))
    keys = jax.random.split(key(seed + 1), batch)
    return task, policy, x, normalizer, keys


def plain(task, policy, x, normalizer, key_, discount=1.0):
    """One episode, step by step."""
    layers, log_std = policy.unpack(x)
    state = task.reset(jax.random.fold_in(key_, 2**31 - 1))
    draw = jax.random.uniform if policy.discrete else jax.random.normal
    total, discounted, costs, entropy = 0.0, 0.0, np.zeros(len(task.cost_names)), 0.0
    step = jax.jit(task.step)
    for t in range(task.max_steps):
        if t % CHUNK == 0:
            noise = draw(jax.random.fold_in(key_, 2**32 - 1 - t // CHUNK), (CHUNK, policy.noise_size))
        head = forward(layers, normalise(normalizer, task.observe(state)))
        action = policy.act(head, log_std, noise[t % CHUNK][0] if policy.discrete else noise[t % CHUNK])
        state, reward, cost, terminated = step(state, action, jax.random.fold_in(key_, t))
        total, discounted = total + float(reward), discounted + float(reward) * discount**t
        costs, entropy = costs + np.asarray(cost), entropy + float(policy.entropy(head, log_std))
        if terminated:
            break
    return total, discounted, costs, entropy, t + 1


@pytest.mark.parametrize("name", ["CartPole-v0", "CartSafe-v0"])
def test_a_batch_of_episodes_is_those_episodes_one_by_one(name):
    task, policy, x, normalizer, keys = setting(name, 3)
    outcome, trajectory = rollout(task, policy, x, normalizer, keys, discount=0.9, record=True)
    for b in range(3):
        returns, discounted, costs, entropy, length = plain(task, policy, x[:, b], normalizer, keys[b], 0.9)
        assert int(outcome.length[b]) == length == int(trajectory.alive[:, b].sum())
        np.testing.assert_allclose(outcome.returns[b], returns, rtol=1e-4)
        np.testing.assert_allclose(outcome.discounted[b], discounted, rtol=1e-4)
        np.testing.assert_allclose(outcome.costs[:, b], costs)
        np.testing.assert_allclose(outcome.entropy[b], entropy, rtol=1e-4)
        np.testing.assert_allclose(trajectory.rewards[:, b].sum(), returns, rtol=1e-4)


def test_seeds_side_by_side_play_as_they_do_alone():
    """Their loops end together, so the seed whose episodes end first must not be touched by the steps it waits."""
    task, policy, x, normalizer, keys = setting("CartPole-v1", 6)
    columns, both_keys = jnp.stack([x, 0.2 * x]), jnp.stack([keys, jax.random.split(key(9), 6)])

    def play(x, keys):
        return rollout(task, policy, x, normalizer, keys, record=True)

    together = jax.jit(jax.vmap(play))(columns, both_keys)
    for i in range(2):
        alone = jax.jit(play)(columns[i], both_keys[i])
        beside = jax.tree.map(lambda a, i=i: a[i], together)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), beside, alone)


class Short(Task):
    """Ends after three steps, and counts the steps that are played."""

    name, observation_size, actions, max_steps = "Short-v0", 1, Discrete(2), 10 * CHUNK
    played: ClassVar[list[int]] = []

    def reset(self, key):
        return jnp.zeros(1)

    def step(self, state, action, key):
        jax.debug.callback(self.played.append, 1)
        return Step(state + 1, jnp.float32(1), jnp.zeros(0), state[0] >= 2)


@pytest.mark.parametrize("seeds", [None, 2])
def test_steps_after_every_episodes_end_are_not_run(seeds):
    task, policy = Short(), Policy(1, Discrete(2), (2,))
    task.played.clear()

    def play(key):
        return rollout(task, policy, jnp.zeros(policy.size), identity(jnp.zeros(1)), key[None])[0].length

    keys = jax.random.split(key(0), seeds) if seeds else key(0)
    length = (jax.vmap(play) if seeds else play)(keys)
    jax.effects_barrier()
    assert np.all(length == 3)
    assert len(task.played) == CHUNK


@pytest.mark.parametrize("hidden", [(10, 10), (40,)])
@pytest.mark.parametrize("actions", [Discrete(3), Continuous((-1.0, 0.0), (1.0, 3.0))])
def test_the_surrogate_is_the_gradient_of_the_weighted_log_probability(actions, hidden):
    policy = Policy(4, actions, hidden)
    rng = np.random.default_rng(0)
    members, steps = 5, 7
    x = jnp.asarray(rng.normal(size=(policy.size, members)), jnp.float32)
    observations = jnp.asarray(rng.normal(size=(4, steps, members)), jnp.float32)
    advantages = jnp.asarray(rng.normal(size=(steps, members)), jnp.float32)
    if policy.discrete:
        taken = jnp.asarray(rng.integers(3, size=(steps, members)))
    else:
        taken = jnp.asarray(rng.normal(size=(2, steps, members)), jnp.float32)

    def objective(x, observations, taken, advantages):
        layers, log_std = policy.unpack(x)
        log_p = policy.log_probability(forward(layers, observations), log_std, taken)
        return jnp.sum(advantages * log_p)

    true = jax.jit(jax.vmap(jax.grad(objective), -1))(x, observations, taken, advantages).sum(0)
    together = jax.jit(partial(surrogate.policy_gradient, policy))(x, observations, taken, advantages)
    one_by_one = sum(
        surrogate.policy_gradient(policy, *(np.asarray(a[..., b]) for a in (x, observations, taken, advantages)))
        for b in range(members)
    )
    np.testing.assert_allclose(together, true, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(one_by_one, true, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("steps", [1, 2, 5, 300])
def test_returns_to_go_are_the_discounted_sums(steps):
    rewards = np.random.default_rng(1).normal(size=(steps, 2))
    true, total = [], np.zeros(2)
    for row in rewards[::-1]:
        total = row + 0.97 * total
        true.append(total)
    np.testing.assert_allclose(surrogate.returns_to_go(rewards, 0.97), true[::-1])


@pytest.mark.slow
@pytest.mark.skipif(len(jax.devices()) < 2, reason="one device")
def test_devices_that_share_an_iteration_come_to_what_one_comes_to():
    task, policy, *_ = setting("CartSafe-v0", 2)
    settings = PCCES.settings("paper", population=8, initial_tries=4, warm_up=1, episodes=4, metric_episodes=4)
    arena = DeviceArena(task, policy, problem_for(task, settings.mu), settings.discount)
    iteration = program(arena, settings)
    results = []
    for devices in jax.devices()[:1], jax.devices()[:2]:
        engine = DeviceEngine(iteration, [0], devices)
        assert engine.mesh.size == len(devices)
        results.append(engine.advance(engine.start(), 2)[1])
    alone, shared = results
    assert np.all(alone["steps"] == shared["steps"])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3), alone, shared)
