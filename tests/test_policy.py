"""Policies and their gradients against Monte Carlo, finite differences and JAX's own derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcces.envs.task import Continuous, Discrete
from pcces.rl.normalizer import carry_over, identity, normalise, seen_in, update
from pcces.rl.policy import Policy, forward
from pcces.rl.surrogate import features, init_critic, learn, policy_gradient, returns_to_go

HEADS = {
    "categorical": Policy(3, Discrete(4), (5,)),
    "gaussian": Policy(3, Continuous((-2.0, 0.0), (2.0, 1.0)), (5, 6)),
    "no hidden layer": Policy(3, Discrete(2), ()),
}


def parameters(policy, seed=0):
    return np.random.default_rng(seed).normal(size=policy.size) * 0.7


def head_of(policy, x, o):
    layers, log_std = policy.unpack(x)
    return forward(layers, o), log_std


@pytest.mark.parametrize("policy", HEADS.values(), ids=HEADS)
def test_size_is_what_unpack_uses(policy):
    layers, log_std = policy.unpack(np.zeros(policy.size))
    assert sum(layer.weights.size + layer.bias.size for layer in layers) + log_std.size == policy.size


def test_a_population_is_a_policy_for_each_column():
    for hidden in ((10, 10), (40,)):  # narrow layers are summed term by term, wide ones are products
        policy = Policy(3, Discrete(4), hidden)
        rng = np.random.default_rng(1)
        x, o = rng.normal(size=(policy.size, 7)), rng.normal(size=(3, 7))
        together, _ = head_of(policy, x, o)
        alone = np.stack([head_of(policy, x[:, i], o[:, i])[0] for i in range(7)], axis=1)
        assert np.allclose(together, alone)


def test_entropy_of_a_categorical_against_monte_carlo():
    policy = HEADS["categorical"]
    head, log_std = head_of(policy, parameters(policy), np.array([0.3, -1.0, 2.0]))
    u = np.random.default_rng(0).random((1, 200_000))
    actions = policy.act(head[:, None] + 0 * u, log_std, u[0])
    frequencies = np.bincount(actions, minlength=4) / actions.size
    assert np.allclose(frequencies, np.exp(head) / np.exp(head).sum(), atol=0.005)
    logs = policy.log_probability(head[:, None] + 0 * u, log_std, actions)
    assert -logs.mean() == pytest.approx(float(policy.entropy(head, log_std)), abs=0.005)


def test_entropy_of_a_gaussian_against_monte_carlo():
    policy = HEADS["gaussian"]
    head, log_std = head_of(policy, parameters(policy), np.array([0.3, -1.0, 2.0]))
    z = np.random.default_rng(0).normal(size=(2, 200_000))
    actions = policy.act(head[:, None] + 0 * z, log_std, z)
    logs = policy.log_probability(head[:, None] + 0 * z, log_std, actions)
    assert -logs.mean() == pytest.approx(float(policy.entropy(head, log_std)), abs=0.01)
    # the density itself: standard deviations are those of the actions, in their own units
    assert np.allclose(actions.std(1), np.exp(log_std) * np.array([2.0, 0.5]), rtol=0.01)
    assert np.allclose(actions.mean(1), policy.mode(head), atol=0.02)


@pytest.mark.parametrize("policy", HEADS.values(), ids=HEADS)
def test_policy_gradient_against_finite_differences(policy):
    rng = np.random.default_rng(2)
    x, o, advantages = parameters(policy, 3), rng.normal(size=(3, 6)), rng.normal(size=6)
    actions = rng.integers(policy.outputs, size=6) if policy.discrete else rng.normal(size=(policy.outputs, 6))

    def objective(x):
        head, log_std = head_of(policy, x, o)
        return float((policy.log_probability(head, log_std, actions) * advantages).sum())

    found = policy_gradient(policy, x, o, actions, advantages)
    step = 1e-6
    expected = [(objective(x + step * e) - objective(x - step * e)) / (2 * step) for e in np.eye(policy.size)]
    assert np.allclose(found, expected, atol=1e-6)


def divergence(policy, x, y, o):
    """The mean KL divergence between the actions of two policies at these observations."""
    (head, log_std), (other, other_log_std) = head_of(policy, x, o), head_of(policy, y, o)
    if policy.discrete:
        p, q = (np.exp(h) / np.exp(h).sum(0) for h in (head, other))
        return float((p * np.log(p / q)).sum(0).mean())
    ratio, apart = np.exp(2 * (log_std - other_log_std)), (head - other) / np.exp(other_log_std)[:, None]
    return float(0.5 * ((ratio - 1 - np.log(ratio)).sum() + (apart**2).sum(0).mean()))


@pytest.mark.parametrize("policy", HEADS.values(), ids=HEADS)
def test_the_divergence_of_a_policy(policy):
    rng = np.random.default_rng(6)
    x, o, step = parameters(policy, 3), rng.normal(size=(3, 500)), rng.normal(size=policy.size)
    here, there = head_of(policy, x, o), head_of(policy, x + step, o)
    assert policy.divergence(*here, *there).mean() == pytest.approx(divergence(policy, x, x + step, o))


def test_policy_gradient_in_jax_is_the_one_in_numpy():
    policy = HEADS["gaussian"]
    rng = np.random.default_rng(2)
    x, o, advantages = parameters(policy, 3), rng.normal(size=(3, 6)), rng.normal(size=6)
    actions = rng.normal(size=(2, 6))

    in_jax = jax.jit(policy_gradient, static_argnums=0)(policy, *map(jnp.asarray, (x, o, actions, advantages)))
    np.testing.assert_allclose(in_jax, policy_gradient(policy, x, o, actions, advantages), rtol=1e-3, atol=1e-4)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=40), st.floats(0.1, 1.0))
def test_returns_to_go_against_the_recursion(rewards, discount):
    expected, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + discount * total
        expected.append(total)
    assert np.allclose(returns_to_go(np.array(rewards), discount), expected[::-1])


def test_the_critic_learns_what_is_linear_in_its_features():
    rng = np.random.default_rng(0)
    o = rng.normal(size=(2, 50, 30))
    phi = features(o, 50)
    truth = rng.normal(size=phi.shape[0])
    target = np.einsum("f,ftb->tb", truth, phi)
    critic = init_critic(2, phi)
    for _ in range(30):
        critic = learn(critic, np.einsum("ftb,gtb->fg", phi, phi), np.einsum("ftb,tb->f", phi, target))
    assert np.abs(np.einsum("f,ftb->tb", critic.weights, phi) - target).max() < 0.1


def learnt(normalizer, seen, frozen=False):
    """The normalisation after it has seen the columns of `seen`."""
    return update(normalizer, seen_in(seen, np.ones(seen.shape[1:], seen.dtype), normalizer.mean), np.bool_(frozen))


def test_normalisation_is_of_what_was_seen_and_stops_when_frozen():
    rng = np.random.default_rng(0)
    seen = rng.normal(3.0, 2.0, size=(2, 1000))
    n = learnt(identity(np.zeros(2)), seen)
    assert np.allclose(normalise(n, seen).mean(1), 0, atol=1e-9)
    assert np.allclose(normalise(n, seen).std(1), 1)
    later = learnt(n, np.full((2, 10), 1e3), frozen=True)
    assert np.array_equal(later.mean, n.mean)
    assert np.array_equal(later.std, n.std)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.booleans(), st.integers(0, 1000))
def test_normalisation_is_the_same_however_the_observations_are_cut(sizes, frozen_first, seed):
    sizes = [*sizes, 3]
    seen = np.random.default_rng(seed).normal(3.0, 2.0, size=(2, sum(sizes)))
    n = identity(np.zeros(2))
    for i, part in enumerate(np.split(seen, np.cumsum(sizes)[:-1], axis=1)):
        n = learnt(n, part, frozen=frozen_first and i == 0)
    assert np.allclose(n.mean, seen.mean(1))
    assert np.allclose(n.std, seen.std(1))


@pytest.mark.parametrize("xp", [np, jnp])
def test_gravity_does_not_vary_and_small_changes_do(xp):
    """In 32 bits sums of 9.81 and of its square are off by enough to look like a deviation of 0.005."""
    rng = np.random.default_rng(0)
    n = identity(xp.zeros(3, dtype=xp.float32))._replace(mean=xp.asarray([9.81, 0.0, 290.0], dtype=xp.float32))
    for _ in range(30):
        rows = np.full(40_000, 9.81), rng.normal(0, 1e-4, 40_000), rng.normal(293.0, 0.5, 40_000)
        n = learnt(n, xp.asarray(np.stack(rows), dtype=xp.float32))
        assert np.allclose(n.std, [1.0, 1e-4, 0.5], rtol=0.02)
    assert np.allclose(n.mean, [9.81, 0.0, 293.0], atol=0.01)


def test_carrying_over_keeps_the_policy():
    policy = HEADS["gaussian"]
    x, o = parameters(policy), np.random.default_rng(1).normal(size=(3, 9))
    old = identity(np.zeros(3))._replace(mean=np.array([0.1, 0.2, 0.3]), std=np.array([1.0, 2.0, 0.5]))
    new = old._replace(mean=np.array([-0.4, 0.0, 1.0]), std=np.array([1.5, 1.0, 0.6]))
    moved = carry_over(policy, x, old, new)
    before, after = (head_of(policy, a, normalise(n, o))[0] for a, n in ((x, old), (moved, new)))
    assert np.allclose(before, after)
    assert np.array_equal(moved[-2:], x[-2:])


def test_widths_must_be_positive():
    with pytest.raises(ValueError, match="hidden"):
        Policy(3, Discrete(2), (10, 0))
