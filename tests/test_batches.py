"""PCCES on batches that are used three times: what is estimated, what is accepted, what a limit costs."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from small import BATCH

import pcces
from pcces.core import algorithm
from pcces.envs import Discrete, Step, Task
from pcces.rl import batches
from pcces.rl.batches import BatchLearner, IncumbentEstimate, Prices
from pcces.rl.settings import BatchSettings

SETTINGS = BatchSettings(doubt=0.0, kappa=0.2, weight=0.25, gamma=2.0, sigma0=0.5)


def known(f=0.0, c=-1.0, variance=0.0, noise=0.0, spread=1.0):
    """What is known of f, a constraint and failures."""
    return IncumbentEstimate(
        jnp.array([f, c, -0.1]), jnp.full(3, variance), jnp.full(3, noise), jnp.array([spread, 1.0, 1.0])
    )


def learner(of=None, price=1.0, sigma=0.5):
    es = algorithm.init(jnp.zeros(2), sigma, 0.0)._replace(k=jnp.int32(3))
    price = jnp.array([price, 1.0])
    return BatchLearner(es, jnp.ones(2), None, None, None, of or known(), Prices(price, price))


def decided(f_trial, c_trial=-1.0, *, of=None, price=1.0, settings=SETTINGS, first=False):
    """Whether a trial point is accepted whose batch had these means, and the state after that."""
    this, mean = learner(of, price), jnp.array([f_trial, c_trial, -0.1])
    there = this.known.mean + settings.weight * (mean - this.known.mean)
    after, success, over = batches.decide(this, this.known, there, mean, jnp.bool_(first), settings)
    return bool(success), after, float(over)


def test_a_trial_is_accepted_for_a_sufficient_decrease_and_sigma_follows():
    least = 0.5 * SETTINGS.kappa * 0.5**2  # kappa / 2 sigma^2, in units of an episode's spread
    good, after, _ = decided(-1.01 * least)
    assert good and np.array_equal(after.x, [1, 1]) and float(after.sigma) == 1.0
    bad, after, _ = decided(-0.99 * least)
    assert not bad and np.array_equal(after.x, [0, 0]) and float(after.sigma) == 0.25
    wide = known(spread=10.0)
    assert decided(-10.1 * least, of=wide)[0] and not decided(-9.9 * least, of=wide)[0]
    assert decided(5.0, c_trial=3.0, first=True)[0]  # there is nothing yet to compare it with


def test_the_doubt_is_in_standard_errors_of_the_difference():
    noisy, doubtful = known(noise=0.09, variance=0.16), BatchSettings(doubt=1.0, kappa=1e-9, weight=0.25)
    assert decided(0.49, of=noisy, settings=doubtful)[0] and not decided(0.51, of=noisy, settings=doubtful)[0]


def test_constraints_are_judged_by_estimates_that_lean_on_the_incumbents():
    # A batch at 2 after an estimate of -1: -1 + 0.25 * 3 = -0.25; one at 4: 0.25.
    assert decided(-1.0, c_trial=2.0)[0] and not decided(-1.0, c_trial=4.0)[0]


def test_an_incumbent_that_breaks_its_limit_pays_the_price():
    broken = known(c=1.0)
    assert decided(-1.0, c_trial=1.0, of=broken)[0]  # f alone
    good, _, over = decided(1.0, c_trial=-0.5, of=broken)  # 1 more of f for 1.5 less of the cost
    assert good and over == 1.0
    assert not decided(1.0, c_trial=-0.5, of=broken, price=0.5)[0]
    assert decided(9.0, c_trial=-4.0, of=broken)[0]  # feasible at last, at any f


def test_estimates_of_the_incumbent_are_means_over_the_latest_batches():
    samples = jnp.array([[1.0, 4.0, 0.0], [3.0, 4.0, 0.0]])
    before = known(f=10.0, c=0.0, noise=1.0, spread=2.0)
    now, there, mean = batches.estimated(before, samples, jnp.bool_(False), SETTINGS)
    assert np.allclose(mean, [2, 4, 0]) and np.allclose(there[:2], [10 - 0.25 * 8, 0.25 * 4])
    assert np.allclose(now.noise, [0.9 + 0.1 * 1.0, 0.9, 0.9])  # a variance of 2 over two episodes
    assert np.allclose(now.spread, [0.9 * 2 + 0.1 * 2**0.5, 0.9, 0.9])
    now, there, _ = batches.estimated(before, samples, jnp.bool_(True), SETTINGS)
    assert np.allclose(there, [2, 4, 0]) and np.allclose(now.noise, [1, 0, 0])


def test_failures_are_a_constraint_and_leave_the_other_means_alone():
    rows = batches.with_failing(jnp.array([[1.0, 2.0], [jnp.inf, jnp.inf], [3.0, 4.0]]), known())
    assert np.allclose(rows.mean(0)[:2], [2, 3]) and float(rows[:, 2].mean()) == pytest.approx(1 / 3 - 1 / 6)
    assert float(batches.with_failing(jnp.ones((4, 2)), known())[:, 2].mean()) == -0.125  # none: kept
    everything = batches.with_failing(jnp.full((2, 2), jnp.inf), known(f=7.0))
    assert np.allclose(everything.mean(0)[:2], [7, -1])


def test_prices_rise_while_a_limit_is_broken_and_fall_while_it_is_kept_in_any_units():
    settings = BatchSettings(iterations=100, price_rate=10.0, price_reaction=1.0, aim=0.0)
    start = Prices(jnp.array([0.5, 0.0]), jnp.array([0.5, 0.0]))

    def after(c, unit=1.0):
        estimate = known(c=c * unit)._replace(spread=jnp.array([1.0, unit, 1.0]))
        return batches.repriced(start, estimate, settings)

    up, down = after(1.0), after(-1.0)
    assert float(up.steady[0]) == pytest.approx(0.6) and float(up.values[0]) == pytest.approx(1.1)
    assert float(down.steady[0]) == pytest.approx(0.4) and float(down.values[0]) == 0.0
    near = after(batches.FAR / 2)
    assert float(near.steady[0]) == pytest.approx(0.55) and float(near.values[0]) == pytest.approx(
        0.55 + batches.FAR / 2
    )
    assert np.allclose(after(0.3).values, after(0.3, 1000.0).values)
    assert np.allclose(after(50.0).values, after(batches.FARTHEST).values)  # one episode in a thousand may cost a lot
    careful = batches.repriced(start, known(noise=0.01, c=0.0), replace(settings, aim=1.0))
    margin = 0.1 * settings.weight**0.5
    assert float(careful.steady[0]) == pytest.approx(
        0.5 + 0.1 * margin / batches.FAR
    )  # below, by what it does not know


class Countdown(Task):
    """Ends by itself after five steps, or is cut off there by a limit on time."""

    observation_size, actions, cost_names, thresholds, cost_bounds = 1, Discrete(2), ("push",), (2.0,), (0.0, 1.0)

    def __init__(self, cut: bool):
        self.name, self.cut, self.max_steps = f"Countdown{cut:d}-v0", cut, 5 if cut else 6

    def reset(self, key):
        return jnp.zeros(1)

    def step(self, state, action, key):
        push = (action == 1).astype(jnp.float32)
        left = jnp.bool_(False) if self.cut else state[0] >= 3.5
        return Step(state + 1, push * (1 + state[0]), push[None], left)


def test_what_is_to_come_is_discounted_only_as_far_as_a_limit_on_time_cuts_episodes_off():
    def policy(cut, discount):
        run = pcces.train(
            Countdown(cut), iterations=4, discount=discount, certify_episodes=20, report=False, **BATCH | {"bold": 0.0}
        )
        return run.x

    assert np.array_equal(policy(False, 0.5), policy(False, 0.99))
    assert not np.allclose(policy(True, 0.5), policy(True, 0.99))


def test_an_iteration_plays_one_batch_and_learns_from_it():
    run = pcces.train("CartSafe-v0", iterations=5, certify_episodes=20, threshold=100, report=False, **BATCH)
    assert np.allclose(np.diff(run.metrics["steps"]), BATCH["epoch_steps"])
    assert all(1 <= passes <= BATCH["passes"] for passes in run.metrics["passes"]) and min(run.metrics["d"]) > 0


def test_no_step_is_longer_than_d_max_or_goes_further_than_target_kl():
    def course(**more):
        seen = []
        given = dict(certify_episodes=20, report=False, normalise=False, initial_tries=1, iterations=6)
        pcces.train("CartSafe-v0", callback=lambda runs: seen.append(runs[0].x.copy()), **BATCH | given | more)
        return np.linalg.norm(
            np.diff(seen, axis=0), axis=1
        )  # a step of a trial point that was refused: to the next one

    assert max(course(d_max=1e-6)) < 1e-5 and max(course(target_kl=1e-14)) < 1e-4 < max(course())
