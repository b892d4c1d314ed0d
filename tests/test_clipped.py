"""Actions that are clipped: probabilities and divergences are those of what the task gets."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from pcces.envs import make
from pcces.envs.task import Continuous, Discrete
from pcces.rl.clipped import Clipped, as_clipped
from pcces.rl.policy import Policy

BOX = Continuous((-1.0, -2.0, 0.0), (1.0, 4.0, math.inf))
LOG_STD = jnp.array([-0.5, 0.0, 0.3])


def column(*values):
    return jnp.array(values, dtype=jnp.float32)[:, None]


def test_the_probabilities_of_all_actions_sum_to_one():
    policy = Clipped(1, Continuous(-2.0, 4.0))

    def probability(action):
        return float(jnp.exp(policy.log_probability(column(0.9), jnp.array([-0.3]), column(action)))[0])

    between = quad(probability, -2.0 + 1e-6, 4.0 - 1e-6)[0]
    assert probability(-2.0) + between + probability(4.0) == pytest.approx(1.0, abs=1e-4)
    assert probability(4.0) == probability(7.0) > 0.2  # one and the same action


def test_what_lies_beyond_an_end_is_no_reason_to_go_farther():
    policy = Clipped(1, Continuous(-1.0, 1.0))
    slope = jax.grad(lambda head: policy.log_probability(head, jnp.zeros(1), column(1.7)).sum())
    plain = jax.grad(lambda head: Policy.log_probability(policy, head, jnp.zeros(1), column(1.7)).sum())
    assert abs(float(slope(column(4.0))[0, 0])) < 0.01  # the action was the box's end already
    assert float(plain(column(4.0))[0, 0]) == pytest.approx(-2.3)  # which the Gaussian's density does not know


@pytest.mark.parametrize("seed", range(4))
def test_the_divergence_is_the_mean_of_log_ratios(seed):
    rng, policy, n = np.random.default_rng(seed), Clipped(1, BOX), 100_000
    head, other = column(*rng.normal(0, 1.2, 3)), column(*rng.normal(0, 1.2, 3))
    other_log_std = LOG_STD + 0.3 * rng.standard_normal(3)
    middle, half = (np.array(part)[:, None] for part in policy.scale())
    actions = middle + half * (np.array(head) + np.exp(np.array(LOG_STD))[:, None] * rng.standard_normal((3, n)))
    wide = [jnp.repeat(each, n, axis=1) for each in (head, other)]
    actions = jnp.array(actions, dtype=jnp.float32)
    ratios = policy.log_probability(wide[0], LOG_STD, actions) - policy.log_probability(wide[1], other_log_std, actions)
    exact = float(policy.divergence(head, LOG_STD, other, other_log_std)[0])
    assert abs(exact - float(ratios.mean())) < 5 * float(ratios.std()) / math.sqrt(n)
    assert exact < float(
        Policy.divergence(policy, head, LOG_STD, other, other_log_std)[0]
    )  # clipping hides differences


def test_without_limits_it_is_the_gaussian():
    free = Continuous((-math.inf, -math.inf), (math.inf, math.inf))
    policy, plain = Clipped(1, free), Policy(1, free)
    head, other, log_std = column(0.3, -2.0), column(0.1, 1.0), jnp.array([-0.5, 0.2])
    action = column(50.0, -3.0)
    for name, args in {
        "log_probability": (head, log_std, action),
        "divergence": (head, log_std, other, log_std + 0.1),
    }.items():
        assert np.allclose(getattr(policy, name)(*args), getattr(plain, name)(*args), rtol=1e-4)


def test_means_far_outside_have_finite_slopes():
    policy = Clipped(1, BOX)
    far = column(80.0, -80.0, 80.0)
    for action in (1.0, -2.0, 0.0, 30.0):
        slope = jax.grad(lambda head, a=action: policy.log_probability(head, LOG_STD, column(a, a, a)).sum())(far)
        assert np.isfinite(slope).all()
    assert np.isfinite(jax.grad(lambda y: policy.divergence(far, LOG_STD, y, LOG_STD).sum())(far + 1)).all()


def test_who_clips():
    box, free = make("Pendulum-v1"), make("MountainCarContinuous-v0")
    assert isinstance(as_clipped(Policy(3, box.actions), box), Clipped) == (not box.overshoot)
    assert type(as_clipped(Policy(2, free.actions), free)) is Policy  # it charges for the push that was asked for
    cart = make("CartPole-v1")
    assert cart.actions == Discrete(2) and type(as_clipped(Policy(4, cart.actions), cart)) is Policy
