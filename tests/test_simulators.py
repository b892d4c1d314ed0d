"""Any Gymnasium environment as a simulator: its spaces, costs, limits, seeds; and episodes of a policy on it."""

import importlib.util
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import simulators

from pcces.engines.pool import Watchdog
from pcces.envs.simulator import simulator
from pcces.envs.task import Continuous, Discrete
from pcces.rl.normalizer import identity, normalise
from pcces.rl.policy import Policy, forward
from pcces.rl.worker import EpisodePlayer

bullet = pytest.mark.skipif(importlib.util.find_spec("pybullet") is None, reason="needs the extra 'bullet'")


def policy_of(sim, hidden=(6, 5)):
    return Policy(sim.observation_size, sim.actions, hidden)


def play(sim, x=None, seed=0, greedy=False, normalizer=None, env=None):
    policy = policy_of(sim)
    x = np.random.default_rng(3).standard_normal(policy.size).astype(np.float32) if x is None else x
    normalizer = normalizer or identity(np.zeros(sim.observation_size, np.float32))
    return EpisodePlayer(policy, sim, 0.9, Watchdog(None)).play(env or sim.make(), x, normalizer, seed, greedy)


# -- what is found out -----------------------------------------------------------------------------------------------------


def test_shapes_limits_and_thresholds_are_gymnasiums():
    cartpole, pendulum = simulator("CartPole-v1"), simulator("Pendulum-v1")
    assert (cartpole.observation_size, cartpole.actions, cartpole.max_steps) == (4, Discrete(2), 500)
    assert cartpole.reward_threshold == 475 and cartpole.cost_names == ()
    assert (pendulum.actions, pendulum.max_steps) == (Continuous(-2.0, 2.0), 200)


def test_a_time_limit_can_be_given_and_made_shorter_but_not_longer():
    with pytest.raises(ValueError, match=r"tests/Endless-v0 has no time limit: give max_steps=\.\.\."):
        simulator("tests/Endless-v0")
    assert simulator("tests/Endless-v0", max_steps=11).max_steps == 11
    assert simulator("CartPole-v1", max_steps=20).max_steps == 20
    assert simulator("CartPole-v1", max_steps=1000).max_steps == 500
    assert play(simulator("tests/Short-v0"))[0].length == 7
    assert play(simulator("tests/Line-v0"))[0].length == 20  # the environment's own end comes first
    assert play(simulator("tests/Line-v0", max_steps=4))[0].length == 4


@pytest.mark.parametrize(
    ("options", "names", "sums"),
    [
        ({"costs": "cost"}, ("cost",), lambda over, acts: [over]),
        ({"costs": "constraint_costs"}, ("cost0", "cost1"), lambda over, acts: [over, 20]),
        ({"costs": "six"}, ("cost",), lambda over, acts: [over]),
        ({"cost": simulators.late_cost}, ("cost0", "cost1"), lambda over, acts: [over, acts]),
        ({}, (), lambda over, acts: []),
    ],
)  # fmt: skip
def test_costs_are_read_from_wherever_they_are(options, names, sums):
    sim = simulator("tests/Line-v0", **options)
    assert sim.cost_names == names
    outcome, steps = play(sim)
    after = np.append(steps.observations[0, 1:], steps.observations[0, -1] + 0.3 * np.clip(steps.actions[0, -1], -1, 1))
    expected = sums(np.sum(after > 0.5), np.abs(np.clip(steps.actions, -1, 1)).sum())
    assert outcome.costs[:, 0] == pytest.approx(expected, rel=1e-5)


def test_costs_can_be_named_and_limited():
    sim = simulator(
        "tests/Line-v0", cost=simulators.late_cost, cost_names=("far", "effort"), thresholds=(2, 5), cost_bounds=(0, 1)
    )
    assert (sim.cost_names, sim.thresholds, sim.cost_bounds) == (("far", "effort"), (2.0, 5.0), (0, 1))
    with pytest.raises(ValueError, match=r"has 2 costs, but 1 cost_names were given: far"):
        simulator("tests/Line-v0", cost=simulators.late_cost, cost_names=("far",))


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        (
            "tests/Photo-v0",
            ValueError,
            "has observations of 27648 numbers.*as pictures have.*gymnasium.wrappers.Grayscale",
        ),
        ("tests/Story-v0", ValueError, r"has the observations Sequence\(.*, which have no fixed size"),
        ("tests/Only-v0", ValueError, "tests/Only-v0 has only one action: there is nothing to learn"),
        ("CartPol-v1", ValueError, r"unknown task 'CartPol-v1'; did you mean 'CartPole-v1' or 'CartPole-v0'"),
        ("CartPole-v9", ValueError, r"unknown task 'CartPole-v9'; did you mean 'CartPole-v1'"),
        ("nowhere/Nothing-v3", ValueError, "`pcces envs` lists ours, gymnasium.registry all others"),
    ],
)
def test_what_cannot_be_used_is_told_with_what_to_do(name, error, words):
    with pytest.raises(error, match=words):
        simulator(name)


# -- episodes --------------------------------------------------------------------------------------------------------------


def by_hand(name, sim, x, seed, normalizer, **options):
    """The same episode with Gymnasium and the policy's plain functions; actions are the likeliest."""
    env = gymnasium.make(name, **options)
    observation, _ = env.reset(seed=seed)
    policy, total, steps, over = policy_of(sim), 0.0, 0, False
    layers, _ = policy.unpack(x)
    while not over:
        head = forward(layers, normalise(normalizer, np.asarray(observation, np.float32)))
        action = policy.mode(head)
        action = int(action) if policy.discrete else np.clip(action, env.action_space.low, env.action_space.high)
        observation, reward, terminated, truncated, _ = env.step(action + getattr(env.action_space, "start", 0))
        total, steps, over = total + float(reward), steps + 1, terminated or truncated
    return total, steps


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1", "Acrobot-v1", "tests/Numbered-v0"])
def test_episodes_are_those_of_gymnasium(name):
    sim = simulator(name)
    size = sim.observation_size
    normalizer = identity(np.zeros(size, np.float32))._replace(
        mean=np.linspace(-0.1, 0.1, size, dtype=np.float32), std=np.linspace(0.05, 2, size, dtype=np.float32)
    )  # narrow enough for some observations to be clipped
    x = np.random.default_rng(1).standard_normal(policy_of(sim).size).astype(np.float32)
    env = sim.make()
    for seed in range(5):
        outcome, _ = play(sim, x, seed, greedy=True, normalizer=normalizer, env=env)
        total, steps = by_hand(name, sim, x, seed, normalizer)
        assert outcome.length == steps and outcome.returns[0] == pytest.approx(total, rel=2e-3)  # chaos


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_an_episode_depends_on_its_seed_alone(name):
    sim = simulator(name)
    used, fresh = sim.make(), sim.make()
    for seed in (5, 6, 7):
        play(sim, seed=seed, env=used)
    again = {seed: play(sim, seed=seed, env=used) for seed in (7, 5)}
    for seed, (outcome, steps) in again.items():
        same_outcome, same_steps = play(sim, seed=seed, env=fresh)
        assert all(map(np.array_equal, outcome, same_outcome)) and all(map(np.array_equal, steps, same_steps))
    assert not np.array_equal(again[5][1].observations[:, 0], again[7][1].observations[:, 0])


def test_actions_are_drawn_from_the_policys_distribution():
    """Logits 0, 1, 2 whatever the observation: 9, 24.5 and 66.5 percent."""
    sim = simulator("tests/Numbered-v0")
    policy = policy_of(sim)
    x = np.zeros(policy.size, np.float32)
    policy.unpack(x)[0][-1].bias[:] = [0, 1, 2]
    env = sim.make()
    actions = np.concatenate([play(sim, x, seed, env=env)[1].actions for seed in range(400)])
    shares = np.bincount(actions, minlength=3) / len(actions)
    assert shares == pytest.approx(np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), abs=4 * 0.5 / np.sqrt(len(actions)))


def test_gaussian_actions_have_the_policys_mean_and_deviation():
    sim = simulator("Pendulum-v1")
    policy = policy_of(sim)
    x = np.zeros(policy.size, np.float32)
    policy.unpack(x)[0][-1].bias[:] = 0.5
    x[-1] = np.log(0.2)
    env = sim.make()
    outcomes, steps = zip(*(play(sim, x, seed, env=env) for seed in range(20)))
    actions = np.concatenate([s.actions[0] for s in steps])
    assert actions.mean() == pytest.approx(1.0, abs=0.03) and actions.std() == pytest.approx(0.4, rel=0.05)
    a_step = np.log(0.4) + 0.5 * np.log(2 * np.pi * np.e)
    assert outcomes[0].entropy[0] == pytest.approx(200 * a_step, rel=1e-4)


def test_long_episodes_are_played_in_blocks(monkeypatch):
    """A block of noise at a time, and buffers that grow: what came before is kept."""
    sim = simulator("Pendulum-v1")
    whole = play(sim)
    monkeypatch.setattr("pcces.rl.worker.BLOCK", 60)
    outcome, steps = play(sim)
    assert outcome.length == 200 and np.array_equal(steps.observations[:, :60], whole[1].observations[:, :60])
    before, after = (
        steps.observations[2, :-1],
        steps.observations[2, 1:],
    )  # the pendulum's speed changes a little a step
    assert np.all(np.abs(after - before) < 1.5) and np.all(steps.actions != 0)


def test_arrays_that_an_environment_keeps_or_uses_again_do_no_harm():
    sim = simulator("tests/Keeping-v0")
    env = sim.make()
    _, steps = play(sim, env=env)
    kept = np.array([float(a[0]) for a in env.env.kept])
    assert kept == pytest.approx(np.clip(steps.actions[0], -1, 1)) and len(set(kept)) > 4
    assert len(set(steps.observations[0])) > 10


@pytest.mark.parametrize("kind", ["raise", "nan reward", "nan observation"])
def test_an_environment_in_trouble_is_an_error_that_its_seed_brings_back(kind):
    sim = simulator("tests/Trouble-v0", kind=kind)
    for _ in range(2):
        with pytest.raises(ArithmeticError, match="diverged at 13" if kind == "raise" else "returned nan or inf"):
            play(sim, seed=13)
    assert play(sim, seed=14)[0].length == 20


# -- PyBullet --------------------------------------------------------------------------------------------------------------


@bullet
@pytest.mark.parametrize(
    ("name", "size", "dims", "bounds"),
    [
        ("InvertedPendulumBulletEnv-v0", 5, 1, (-1000, 3000)),
        ("InvertedDoublePendulumBulletEnv-v0", 9, 1, (0, 1000)),
        ("HopperBulletEnv-v0", 15, 3, (0, 1000)),
        ("Walker2DBulletEnv-v0", 22, 6, (0, 2000)),
        ("AntBulletEnv-v0", 28, 8, (0, 5000)),
    ],
)
def test_the_papers_pybullet_tasks(name, size, dims, bounds):
    sim = simulator(name)
    assert (sim.observation_size, sim.actions.size, sim.max_steps, sim.entropy_bounds) == (size, dims, 1000, bounds)
    sim = simulator(name, max_steps=60)
    used, fresh = sim.make(), sim.make()
    first = [play(sim, seed=seed, env=used)[0].returns[0] for seed in (1, 2, 1)]
    assert first[0] == first[2] == play(sim, seed=1, env=fresh)[0].returns[0]  # the first episode is no exception
    assert first[0] != first[1]


@bullet
def test_pybullet_prints_nothing():
    code = "from pcces.envs.simulator import simulator; env = simulator('HopperBulletEnv-v0').make(); env.reset(1)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.stdout == "" and done.stderr == ""


@pytest.mark.skipif(importlib.util.find_spec("pybullet") is not None, reason="the extra is there")
def test_a_missing_extra_is_named():
    with pytest.raises(ImportError, match=r"HopperBulletEnv-v0 needs the extra 'bullet'"):
        simulator("HopperBulletEnv-v0")
