"""Behaviour cloning: policies from demonstrations, and trainings that begin with them."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from small import FEW

import pcces
from pcces.envs import Continuous, Step, Task
from pcces.rl.cloning import ROUNDING, demonstrations, normalization
from pcces.rl.policy import Policy

TASK = "CartPole-v0"
GAINS = np.array([[0.4, -0.1], [0.0, 0.3], [-0.2, 0.5]])  # (observations, actions) of a linear controller


@pytest.fixture(scope="module")
def shown():
    """What somebody saw and did who balances the pole by its angle and how fast that changes, pushed about by others."""
    environment, pushes = gymnasium.make("CartPole-v1").unwrapped, np.random.default_rng(0)
    observations, actions = [], []
    for episode in range(5):
        observation, _ = environment.reset(seed=episode)
        for _ in range(200):
            observations.append(observation)
            actions.append(int(observation[2] + 0.3 * observation[3] + 0.05 * observation[1] > 0))
            pushed = actions[-1] if pushes.random() < 0.7 else int(pushes.integers(2))
            observation, _, terminated, _, _ = environment.step(pushed)
            assert not terminated
    return np.array(observations), np.array(actions)


@pytest.fixture(scope="module")
def clone(shown):
    return pcces.clone(TASK, *shown, hidden=(8,), seed=3)


def test_a_clone_does_what_it_was_shown(shown, clone):
    observations, actions = shown
    assert np.mean(clone.policy(observations) == actions) > 0.97
    assert clone.evaluate(episodes=50)["return"] > 190  # of 200
    best = np.nanmax(clone.metrics["held_out"])
    assert clone.metrics["held_out"][0] < -0.4 < -0.1 < best <= 0  # from about log(1/2)
    assert np.allclose(clone.normalizer.mean, observations.mean(0), atol=1e-5)
    assert np.allclose(clone.normalizer.std, observations.std(0), rtol=1e-4) and clone.normalizer.count == 1000


def test_a_clone_is_a_run_without_a_certificate(clone, tmp_path):
    assert clone.certificate is None and clone.path is None and clone.config["algorithm"] == "clone"
    assert "no certificate yet" in repr(clone) and "not finished" not in repr(clone)
    put_to_the_test = clone.certified(episodes=20)
    assert put_to_the_test.certificate.samples == 20 and put_to_the_test.final["return"] > 150
    namespace = {}
    exec(clone.export(tmp_path / "taught.py").read_text(), namespace)
    assert namespace["policy"]([0.0, 0.0, 0.1, 1.0]) == clone.policy([0.0, 0.0, 0.1, 1.0]) == 1


def test_a_training_begins_where_the_clone_is(clone):
    run = pcces.train(TASK, init=clone, report=False, **{k: v for k, v in FEW.items() if k != "hidden"})
    assert tuple(run.config["settings"]["hidden"]) == (8,)
    assert run.metrics["return"][0] > 190  # a random policy has 20
    assert run.config["init"]["from"] == f"clone on {TASK}, seed 3"


@pytest.fixture(scope="module")
def linear():
    """Actions that are linear in what is seen, with normal noise: the likeliest policy has a closed form."""
    rng = np.random.default_rng(1)
    observations = rng.normal(size=(1500, 3)) * [1.0, 20.0, 0.1] + [0.0, 300.0, -5.0]
    actions = (observations - [0.0, 300.0, -5.0]) / [1.0, 20.0, 0.1] @ GAINS + rng.normal(size=(1500, 2)) * [0.2, 0.5]
    return observations, actions


class Plant(Task):
    """Something with three observations and a box of two actions."""

    name, observation_size, max_steps = "Plant-v0", 3, 10
    actions = Continuous((-4.0, -8.0), (4.0, 8.0))

    def reset(self, key):
        return jnp.zeros(3)

    def step(self, state, action, key):
        return Step(state, action.sum(), jnp.zeros(0), jnp.bool_(False))


def test_of_a_linear_policy_the_clone_is_near_least_squares(linear):
    observations, actions = linear
    learnt = pcces.clone(Plant(), observations, actions, hidden=(), rate=3e-3, least_std=0.01)
    wanted, *_ = np.linalg.lstsq(np.c_[observations, np.ones(1500)], actions, rcond=None)
    fitted = np.c_[observations, np.ones(1500)] @ wanted
    assert np.abs(learnt.policy(observations) - fitted).max() < 0.25  # actions vary by 1
    assert np.sqrt(np.mean((learnt.policy(observations) - fitted) ** 2)) < 0.06
    deviations = np.exp(learnt.x[-2:]) * [4.0, 8.0]
    assert np.allclose(deviations, (actions - fitted).std(0), rtol=0.1)
    # The mean log likelihood of a normal distribution with these deviations, whose entropy is its opposite.
    entropy = np.log(deviations).sum() + np.log(2 * np.pi * np.e)
    assert learnt.metrics["log_likelihood"][-1] == pytest.approx(-entropy, abs=0.05)


def test_the_least_deviation_and_the_seed_are_kept_to(linear):
    observations, actions = linear
    runs = [pcces.clone(Plant(), observations, actions, hidden=(), passes=2, seed=s, least_std=0.9) for s in (0, 0, 1)]
    assert np.array_equal(runs[0].x, runs[1].x) and not np.array_equal(runs[0].x, runs[2].x)
    short = pcces.clone(Plant(), observations, actions, hidden=(), passes=80, rate=3e-3, least_std=0.9)
    assert np.allclose(np.exp(short.x[-2:]), 0.9) and len(runs[0].metrics["iteration"]) == 2


def test_learning_ends_when_what_is_held_out_gets_no_likelier():
    """Actions that have nothing to do with what is seen can be learnt by heart only."""
    rng = np.random.default_rng(0)
    observations, actions = rng.normal(size=(60, 4)), rng.integers(0, 2, 60)
    run = pcces.clone(TASK, observations, actions, rate=1e-2, held_out=0.5)
    held_out = run.metrics["held_out"]
    assert len(held_out) < 100 and len(held_out) - 1 - int(np.argmax(held_out)) == 20
    assert run.metrics["log_likelihood"][-1] > held_out[-1] + 0.1
    by_heart = pcces.clone(TASK, observations, actions, rate=1e-2, held_out=0, passes=60)
    assert np.isnan(by_heart.metrics["held_out"]).all() and np.mean(by_heart.policy(observations) == actions) > 0.95


def test_what_cannot_be_learnt_from_is_refused_in_words(linear):
    observations, actions = linear
    cart, choice = np.zeros((50, 4)), np.zeros(50)

    def refused(match, *given, task=TASK, error=ValueError, **asked):
        with pytest.raises(error, match=match):
            pcces.clone(task, *given, **asked)

    refused(r"observations must be of shape \(N, 4\), a row for each action, got \(50, 3\)", np.zeros((50, 3)), choice)
    refused(r"there are 50 observations, so actions must be of shape \(50,\), got \(49,\)", cart, choice[1:])
    refused(
        r"there are 1500 observations, so actions must be of shape \(1500, 2\), got",
        observations,
        actions[:, 0],
        task=Plant(),
    )
    refused("20 demonstrations are needed, .* got 3", cart[:3], choice[:3])
    refused("actions must be whole numbers from 0 to 1, got 0 to 2", cart, np.arange(50) % 3)
    refused("actions must be whole numbers from 0 to 1, got 0.5 to 0.5", cart, choice + 0.5)
    refused("must be an array of numbers, a row for each step", [[1.0], [2.0, 3.0]], choice)
    refused(
        "observations must be finite numbers, but 2 of 50 rows have nan or inf",
        np.where(np.arange(50)[:, None] < 2, np.nan, cart),
        choice,
    )
    refused("actions must be finite numbers, but 1 of 50", cart, np.where(np.arange(50) == 7, np.inf, choice))
    far = np.where(np.arange(1500)[:, None] == [7, 7], 9.0, actions)
    refused(
        r"1 of 1500 actions are outside the space, such as 9, which must be from -4 to 4",
        observations,
        far,
        task=Plant(),
    )
    refused("clone has no init; about the task it takes threshold, limits", cart, choice, error=TypeError, init=1)
    refused("passes must be a whole number of at least 1, got 0", cart, choice, passes=0)
    refused("rate must be a positive number, got nan", cart, choice, rate=float("nan"))
    refused("least_std must be a positive number", cart, choice, least_std=0)
    refused(
        "the likelihood of these actions became nan: a rate of 1e\\+30 is too large",
        observations,
        actions,
        task=Plant(),
        rate=1e30,
        hidden=(),
    )


def test_an_action_that_rounding_put_outside_is_inside():
    policy = Policy(1, Continuous(-2.0, 2.0), ())
    _, actions = demonstrations(policy, np.zeros((30, 1)), np.full(30, 2.0 + ROUNDING))
    assert actions.shape == (30, 1) and np.all(actions == 2.0)


def test_what_never_varies_is_left_in_its_own_units():
    normalizer = normalization(np.tile([9.81, 0.0], (40, 1)) + np.arange(40)[:, None] * [0.0, 1.0])
    assert np.allclose(normalizer.mean, [9.81, 19.5]) and normalizer.std[0] == 1
    assert normalizer.std[1] == pytest.approx(np.arange(40).std())
