"""The baselines: their pieces by hand, their steps against brute force, and a little training of each."""

import importlib.util
import json
import math
import shutil
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import simulators
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pcces.baselines import BASELINES, asebo, cpo, on_policy, openes, population, ppo_lagrangian, rcpo
from pcces.cli import app
from pcces.engines import device
from pcces.engines.device import EPISODES, compiler_options, summed
from pcces.engines.keys import key
from pcces.engines.stepwise import StepwiseEngine
from pcces.envs import make
from pcces.envs.cartpole import CartPole200
from pcces.envs.environment import Environment
from pcces.envs.mountain_car import MountainCarContinuous
from pcces.envs.simulator import Simulator, simulator
from pcces.envs.task import Continuous, Discrete, Step
from pcces.policies import ALGORITHMS as NAMES
from pcces.policies import prepare, train
from pcces.rl import critics as critic_networks
from pcces.rl import epochs, improvement, training
from pcces.rl.batch_worker import BatchedWorker
from pcces.rl.device_arena import DeviceArena
from pcces.rl.folder import load
from pcces.rl.normalizer import identity
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy, forward, log_softmax, softmax
from pcces.rl.problem import problem_for
from pcces.rl.rollout import Acting, kernel_episode, rollout
from pcces.rl.worker import Chunk, Episode, EpisodeWorker, Played, Shared, Steps
from pcces.rl.worker_arena import WorkerArena
from pcces.rl.worker_epoch import laid_out, rounds
from pcces.strategies import Strategy, mirrored
from pcces.strategies.asebo import ActiveSubspace

NO_ENTROPY = (-math.inf, math.inf)
ON_POLICY = dict(
    hidden=(16,), critic_hidden=(16,), epoch_steps=1020, passes=5
)  # 51 episodes: too odd to be shared by devices


class TwoCosts(MountainCarContinuous):
    """A continuous task with two costs, short episodes and an end of its own."""

    name = "TwoCosts-v0"
    max_steps = 40
    cost_names = ("left", "fast")
    thresholds = (5.0, 10.0)

    def reset(self, key):
        return jax.random.uniform(key, (2,), minval=jnp.array([-0.6, -0.05]), maxval=jnp.array([0.4, 0.05]))

    def costs(self, position):
        return jnp.stack([position < -0.55, position > -0.5]).astype(jnp.float32)


def hasty():
    """Options for programs that run little: what counts is how long they take to compile."""
    return (compiler_options() or {}) | {"xla_backend_optimization_level": 0}


def quick(function):
    """Op by op it would take longer."""
    return jax.jit(function, compiler_options=hasty())


@contextmanager
def compiled_hastily():
    """To make an engine or an algorithm in: programs that all tests of a process share are not made there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device, "compiler_options", hasty)
        yield


@pytest.fixture
def hasty_engines(monkeypatch):
    begin = device.DeviceEngine.__init__

    def init(self, *given):
        with compiled_hastily():
            begin(self, *given)

    monkeypatch.setattr(device.DeviceEngine, "__init__", init)


def together(function, devices=1):
    """Call a function that sums over devices, on so many of them."""
    return quick(jax.vmap(lambda _: function(), axis_name=EPISODES))(jnp.arange(devices))


def first_of(tree):
    """What the first device has."""
    return jax.tree.map(lambda a: a[0], tree)


class Here:
    """A pool without processes that does its tasks last to first, as many workers might."""

    def __init__(self, recipe):
        self.handler = recipe()
        self.share = self.handler.share

    def map(self, tasks):
        return [self.handler.run(task) for task in reversed(tasks)][::-1]


class Straight(Here):
    def map(self, tasks):
        return [self.handler.run(task) for task in tasks]


def play_epoch(task, policy, x, normalizer, keys, discount):
    """An epoch on the device, a column a key, and the outcome of its first episodes."""
    columns, outcome = epochs.on_device(task, policy, x, normalizer, keys, discount)
    return epochs.epoch_of(normalizer, *columns), outcome


# -- evolution strategies ----------------------------------------------------------------------------------------------


def test_the_gradient_of_openes_points_up_a_quadratic():
    n, deviation = 6, 0.1

    @quick
    def cosine():
        x, optimum = jnp.ones(n), jnp.arange(n, dtype=jnp.float32)
        directions = mirrored(jax.random.normal(key(0), (4000, n)))
        f = ((x + deviation * directions - optimum) ** 2).sum(1)
        slope, true = openes.gradient(f, directions, deviation), 2 * (x - optimum)
        return slope @ true / jnp.linalg.norm(slope) / jnp.linalg.norm(true)

    assert float(cosine()) > 0.999


def test_the_gradient_of_openes_by_hand():
    """Ranks (-1/2, -1/6, 1/6, 1/2) of four samples, and the mean of rank times noise over sigma."""
    directions = mirrored(jnp.array([[1.0, 2.0], [0.0, 1.0]]))
    f = jnp.array([5.0, 1.0, 2.0, 9.0])  # ranks 2, 0, 1, 3
    expected = (jnp.array([1 / 6, -1 / 2, -1 / 6, 1 / 2]) @ directions) / (4 * 0.5)
    assert np.allclose(openes.gradient(f, directions, 0.5), expected)


@pytest.mark.parametrize("used", [[True, True], [True, False]])
def test_the_gradient_of_asebo_is_exact_on_a_plane(used):
    """f = s.x: half the difference of a pair is s.d sigma, so the estimate is the mean of d d^T s, in units of f's deviation."""
    rng = np.random.default_rng(1)
    half, slope = rng.standard_normal((2, 5)), rng.standard_normal(5)
    directions = np.concatenate([half, -half])
    f = 3 + 0.2 * directions @ slope
    mask = np.tile(used, 2)
    chosen = half[np.array(used)]
    expected = 2 * 0.2 * (chosen.T @ chosen @ slope) / (2 * len(chosen)) / f[mask].std()
    got = asebo.gradient(jnp.array(f), jnp.array(directions), jnp.array(mask))
    assert np.allclose(got, expected, rtol=1e-5)


def test_asebo_samples_from_its_covariance():
    """Samples are linear in normals, so their covariance can be read off exactly: alpha / n I + (1 - alpha) / r U U^T."""
    n, alpha = 6, 0.3
    settings = asebo.ASEBOSettings(archive=4, least=2)
    U = np.linalg.qr(np.random.default_rng(0).standard_normal((n, 2)))[0].T
    basis = jnp.zeros((4, n)).at[:2].set(U)
    subspace = ActiveSubspace(basis, basis, jnp.float32(2), jnp.float32(alpha), jnp.int32(9))
    linear = settings.strategy.directions(subspace, jnp.eye(n + 4))  # a row for each normal
    expected = alpha / n * np.eye(n) + (1 - alpha) / 2 * U.T @ U
    assert np.allclose(linear.T @ linear, expected, atol=1e-6)
    assert float(jnp.trace(linear.T @ linear)) == pytest.approx(1, abs=1e-6)


def test_asebo_learns_subspace_and_alpha_from_gradients():
    settings = asebo.ASEBOSettings(archive=3, least=1, threshold=0.995, alpha_low=0.1, alpha_high=0.9)
    subspace = settings.strategy.init(jnp.zeros(4))
    update = quick(lambda subspace, gradient: settings.strategy.update(subspace, None, None, None, gradient))
    for _ in range(3):  # all energy along the first axis
        assert float(subspace.alpha) == 1.0  # isotropic until the archive is full
        assert int(asebo.pairs(subspace, settings)) == 20
        subspace = update(subspace, np.array([1.0, 0.0, 0.0, 0.0], np.float32))
    assert float(subspace.rank) == 1
    assert np.allclose(np.abs(subspace.basis[0]), [1, 0, 0, 0], atol=1e-6)
    # 36 % of the next gradient's energy is outside
    subspace = update(subspace, np.array([0.8, 0.6, 0.0, 0.0], np.float32))
    assert float(subspace.alpha) == pytest.approx(0.36, abs=1e-6)
    assert float(subspace.rank) == 2
    assert np.allclose(subspace.archive[1], [0.99, 0, 0, 0])  # decayed
    outside = update(subspace, np.array([0.0, 0.0, 1.0, 0.0], np.float32))
    assert float(outside.alpha) == pytest.approx(0.9)  # clipped


def test_the_number_of_samples_follows_the_subspace():
    settings = asebo.ASEBOSettings(population=40, least=10)
    subspace = settings.strategy.init(jnp.zeros(100))
    counts = [int(asebo.pairs(subspace._replace(rank=jnp.float32(r)), settings)) for r in (0, 3, 14, 60)]
    assert counts == [20, 10, 14, 20]


class Standing(NamedTuple):
    """The state of a strategy that learns nothing: it steps from x by the rows of `half` and their mirror images."""

    k: Any
    x: Any
    normalizer: Any
    half: Any
    used: Any


def in_these_directions():
    """A search distribution that draws nothing: its directions are its state."""
    return Strategy("these", None, lambda n: n, lambda half, z: half, None, None)


STILL = population.Evolution(
    begin=None,
    search=lambda settings: in_these_directions,
    basis=lambda state: state.half,
    scale=lambda settings, n: 1.0,
    used=lambda settings, state: state.used,
    conclude=None,
)


def judged(arena, settings, state, seed, evolution=STILL):
    """f of every sample, what the normalisation is told, and the steps counted in an iteration from this state."""

    def conclude(state, directions, used, f, seen):
        return (f, seen), {}

    (f, seen), metrics = population.step(evolution, arena, settings, conclude, state, arena.key(seed))
    return f, seen, metrics["steps"]


def test_samples_that_are_not_used_leave_no_trace():
    task = CartPole200()
    settings = population.EvolutionSettings(population=8, metric_episodes=4)
    policy = Policy(4, task.actions)
    problem = problem_for(task, 0.0, entropy_bounds=NO_ENTROPY)
    rng = np.random.default_rng(0)
    x = policy.init(rng.standard_normal(policy.size, dtype=np.float32))
    half = np.float32(0.1) * rng.standard_normal((4, policy.size), dtype=np.float32)
    used = np.arange(4) < 3
    state = Standing(np.int32(0), jnp.asarray(x), identity(jnp.zeros(4)), half, np.tile(used, 2))
    arena = DeviceArena(task, policy, problem, settings.discount)
    play = quick(
        lambda half, used: jax.vmap(
            lambda _: judged(arena, settings, state._replace(half=half, used=used), 2), axis_name=EPISODES
        )(jnp.arange(1))
    )
    some = first_of(play(half, state.used))
    wild = first_of(play(np.where(used[:, None], half, np.float32(100)), state.used))
    everyone = first_of(play(half, state.used | True))
    assert np.array_equal(some[0], wild[0])
    for a, b in zip(some[1], wild[1]):
        assert np.array_equal(a, b)
    assert same_order(some[0][state.used], everyone[0][state.used])
    assert float(some[2]) == float(wild[2]) < float(everyone[2])


def same_order(a, b):
    """A fitness is in units of the samples that are used, so only its order is the same with others beside them."""
    return np.array_equal(np.argsort(a), np.argsort(b))


def test_workers_do_not_play_samples_that_are_not_used():
    sim = simulator("tests/Line-v0")
    settings = openes.OpenESSettings(population=8, metric_episodes=4)
    policy = Policy(1, sim.actions, (3,))
    arena = WorkerArena(sim, policy, problem_for(sim, 0.0), settings.discount, Here, openes.EVOLUTION.search(settings))
    evolution = openes.EVOLUTION._replace(used=lambda settings, state: state.used)
    x = policy.init(np.random.default_rng(0).standard_normal(policy.size, dtype=np.float32))
    state = Standing(np.int32(0), x, identity(np.zeros(1, np.float32)), None, np.tile(np.arange(4) < 3, 2))
    some = judged(arena, settings, state, 2, evolution)
    everyone = judged(arena, settings, state._replace(used=state.used | True), 2, evolution)
    assert same_order(some[0][state.used], everyone[0][state.used]) and len(set(some[0])) == 6
    assert np.all(some[0][~state.used] == some[0].max())
    assert (some[2], everyone[2]) == ((6 * 2 + 4) * 20, (8 * 2 + 4) * 20)
    assert (some[1].count, everyone[1].count) == (6 * 2 * 20, 8 * 2 * 20)


def test_costs_over_the_limit_are_penalised_and_pairs_share_their_episodes():
    task = make("CartSafe-v0")
    policy = Policy(4, task.actions)
    x = policy.init(np.random.default_rng(0).standard_normal(policy.size, dtype=np.float32), last=3.0)
    still = np.zeros((2, policy.size), np.float32)  # four times the same policy
    state = Standing(np.int32(0), jnp.asarray(x), identity(jnp.zeros(4)), still, np.ones(4, bool))

    def f(penalty, threshold):
        settings = population.EvolutionSettings(population=4, metric_episodes=4, penalty=penalty)
        problem = problem_for(task, 0.0, threshold=threshold, entropy_bounds=NO_ENTROPY)
        arena = DeviceArena(task, policy, problem, settings.discount)
        return first_of(together(lambda: judged(arena, settings, state, 3)[0]))

    blind, strict, lenient = f(0.0, 0.0), f(2.0, 0.0), f(2.0, 1000.0)
    assert np.array_equal(blind, lenient)
    assert bool(jnp.all(strict > blind))
    assert np.array_equal(blind[:2], blind[2:])  # a pair
    assert float(blind[0]) != float(blind[1])


# -- advantages and critics --------------------------------------------------------------------------------------------


def test_advantages_by_hand():
    """Columns of four rows. In the first an episode ends after two steps and another has not ended when the column does;
    the second is one long episode that ends on its last step; in the third the time limit cuts one off after one step."""
    r = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 0.0], [6.0, 8.0, 9.0], [2.0, 3.0, 5.0]])
    v = np.array([[0.5, 0.1, 0.2], [0.6, 0.3, 0.4], [0.7, 0.9, 0.8], [0.2, 2.0, 1.1], [3.0, 7.0, 4.0]])
    played = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    going = np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    gamma, lam = 0.9, 0.5
    episodes = [  # column, first row, the value after each step
        (0, 0, [0.6, 0.0]), (0, 2, [0.2, 3.0]), (1, 0, [0.3, 0.9, 2.0, 0.0]), (2, 0, [0.4]), (2, 2, [1.1, 4.0]),
    ]  # fmt: skip
    expected = np.zeros((4, 3))
    for column, first, after in episodes:
        carried = 0.0
        for t in reversed(range(first, first + len(after))):
            delta = r[t, column] + gamma * after[t - first] - v[t, column]
            carried = delta + gamma * lam * carried
            expected[t, column] = carried
    estimate = quick(critic_networks.advantages)
    both = estimate(np.stack([r, 2 * r]), np.stack([v, 2 * v]), played, going, gamma, lam)  # two signals
    assert np.allclose(both, [expected, 2 * expected], atol=1e-6)


def test_an_epoch_is_full_and_its_first_episodes_are_the_plain_rollout():
    task, count = CartPole200(), 6
    policy = Policy(4, task.actions, (1,))
    x = jnp.array([0.0, 0, 2, 2, 0, -1, 1, 0, 0])  # pushes to where the pole leans and falls: some balance to the end
    keys = jax.random.split(key(4), count)
    epoch, outcome = first_of(together(lambda: play_epoch(task, policy, x, identity(x[:4]), keys, 0.9)))
    plain, trajectory = quick(lambda keys: rollout(task, policy, x, identity(x[:4]), keys, 0.9, record=True))(keys)
    for name in Outcome._fields:
        assert np.allclose(getattr(outcome, name), getattr(plain, name), rtol=1e-4), name
    assert 200 in plain.length and min(plain.length) < 150
    assert float(epoch.length) == pytest.approx(float(plain.length.mean()))
    first = np.asarray(trajectory.alive[:200])
    seen, actions, going = np.asarray(epoch.observations), np.asarray(epoch.actions), np.asarray(epoch.going) > 0
    whole = np.moveaxis(np.asarray(trajectory.observations[:200]), 1, 0)
    assert np.allclose(seen[:, :200][:, first], whole[:, first], atol=0.01)  # rounding grows with time
    # Every row is a step of the task, also the last of a column; where it ends, the next row is a start.
    np.testing.assert_allclose(epoch.seen.total, seen[:, :200].sum((1, 2)), rtol=1e-3, atol=0.1)
    assert float(epoch.seen.count) == count * 200 and np.allclose(epoch.weights, 1 / (count * 200))
    after = quick(jax.vmap(jax.vmap(lambda s, a: task.step(s, a, keys[0]), -1, -1), -1, -1))(seen[:, :200], actions)
    assert np.array_equal(going, ~np.asarray(after.terminated))
    assert np.allclose(seen[:, 1:][:, going], np.asarray(after.state)[:, going], atol=1e-5)
    starts = seen[:, 1:][:, ~going].T
    assert np.all(np.abs(starts) <= 0.05) and len(np.unique(starts[:, 0])) == len(starts) > count / 2


def test_the_kernel_of_whole_episodes_leaves_epochs_alone():
    task = make("CartSafe-v0")
    policy = Policy(4, task.actions)
    assert kernel_episode(Acting(task, policy)) is not None
    assert kernel_episode(Acting(epochs.Endless(task), policy)) is None  # its steps need random numbers


def test_critics_say_the_same_in_other_units():
    settings = on_policy.OnPolicySettings(critic_hidden=(5,))
    net = critic_networks.network(3, 2, settings)
    critics = critic_networks.init_critics(net, 2, settings, key(0))
    weights = jax.random.normal(key(1), critics.weights.shape)
    critics = critics._replace(weights=weights, mean=jnp.array([1.0, -2.0]), std=jnp.ones(2))
    signals = jax.random.normal(key(3), (2, 3, 6))
    epoch = epoch_of_ones(jax.random.normal(key(2), (3, 4, 6)), signals)
    rescaled = quick(partial(critic_networks.rescaled, net))
    other = rescaled(critics, np.array([50.0, 0.1], np.float32), np.array([20.0, 0.03], np.float32))

    def value(critics):
        return first_of(together(lambda: critic_networks.values(net, critics, epoch)))

    assert np.allclose(value(critics), value(other), atol=2e-4)


def epoch_of_ones(observations, signals, going=None):
    """An epoch whose steps all count alike."""
    blank = jnp.zeros(signals.shape[1:])
    going = blank + 1 if going is None else going
    weights = blank + 1 / blank.size
    return epochs.Epoch(observations, blank, signals, blank + 1, going, weights, None, None, None)


def test_critics_see_what_the_step_before_earned_and_cost():
    signals = jnp.stack([2.0 * jnp.ones((3, 2)), jnp.array([[0.0, 1], [1, 0], [0, 0]])])
    going = jnp.array([[1.0, 1], [0, 1], [1, 1]])  # the first column's second step is an episode's last
    epoch = epoch_of_ones(jnp.full((1, 4, 2), 7.0), signals, going)
    seen = np.asarray(first_of(together(lambda: critic_networks.inputs(epoch))))
    assert np.array_equal(seen[0], np.full((4, 2), 7.0))
    assert np.allclose(seen[1], [[0, 0], [1, 1], [0, 1], [1, 1]])  # in units of their size
    assert np.allclose(seen[2], [[0, 0], [0, math.sqrt(3)], [0, 0], [0, 0]])


def test_critics_foretell_costs_that_observations_hide():
    """A cost that goes on from step to step, where nothing that is observed tells."""
    settings = on_policy.OnPolicySettings(critic_hidden=(16,), passes=40)
    net, rng = critic_networks.network(1, 2, settings), np.random.default_rng(0)
    stays, costly = rng.random((60, 50)) < 0.9, [rng.random(50) < 0.3]
    for t in range(1, 60):
        costly.append(np.where(stays[t], costly[-1], rng.random(50) < 0.3))
    costs = jnp.array(costly, dtype=jnp.float32)
    epoch = epoch_of_ones(jnp.array(rng.normal(size=(1, 61, 50)), dtype=jnp.float32), jnp.stack([0 * costs, costs]))
    targets = jnp.stack([0 * costs, costs])  # what the next step costs

    def foretold():
        critics = critic_networks.init_critics(net, 2, settings, key(1))
        critics = critic_networks.fit(net, settings, critics, epoch, targets, key(2))
        return critic_networks.values(net, critics, epoch)[1, :-1]

    error = np.asarray(first_of(together(foretold)))[1:] - np.asarray(costs)[1:]
    assert np.var(error) < 0.5 * np.var(costs)


def test_critics_learn_targets_of_any_size():
    settings = on_policy.OnPolicySettings(critic_hidden=(32,), passes=60)
    net = critic_networks.network(2, 2, settings)
    observations = jax.random.normal(key(0), (2, 41, 25))
    targets = jnp.stack([500 + 300 * jnp.tanh(observations[0, :-1]), 0.1 * observations[1, :-1]])
    epoch = epoch_of_ones(observations, jnp.zeros((2, 40, 25)))

    def run():
        critics = critic_networks.init_critics(net, 2, settings, key(1))
        return critic_networks.values(net, critic_networks.fit(net, settings, critics, epoch, targets, key(2)), epoch)

    error = np.asarray(first_of(together(run)))[:, :-1] - targets
    assert np.all(np.std(error, (1, 2)) < 0.3 * np.std(targets, (1, 2)))


# -- policies ----------------------------------------------------------------------------------------------------------


def actions_for(policy, x, count=50):
    @quick
    def act(x):
        observations = jax.random.normal(key(10), (policy.observation_size, count))
        layers, log_std = policy.unpack(x)
        head = forward(layers, observations)
        draw = jax.random.uniform if policy.discrete else jax.random.normal
        noise = draw(key(11), (count,) if policy.discrete else (policy.outputs, count))
        actions = policy.act(head, log_std, noise)
        log_probability = policy.log_probability(head, log_std, actions)
        return improvement.Actions(observations, actions, head, log_std, log_probability, jnp.full(count, 1 / count))

    return act(x)


@pytest.mark.parametrize("space", [Discrete(3), Continuous((-2.0, 0.0), (2.0, 1.0))])
def test_divergence_is_zero_at_home_and_its_mean_log_ratio_elsewhere(space):
    policy, rng = Policy(3, space, (6,)), np.random.default_rng(0)
    x = policy.init(rng.standard_normal(policy.size, dtype=np.float32))
    y = x + 0.3 * rng.standard_normal(policy.size, dtype=np.float32)

    @quick
    def measure(y, did):
        ratio = improvement.ratios(policy, y, did)
        return improvement.divergence(policy, y, did), -jnp.log(ratio) @ did.weights, ratio @ did.weights

    did = actions_for(policy, x, 200_000)
    assert float(measure(x, did)[0]) == pytest.approx(0, abs=1e-6)
    kl, log_ratio, ratio = map(float, measure(y, did))
    assert kl > 0.02
    assert kl == pytest.approx(log_ratio, rel=0.03)
    assert ratio == pytest.approx(1, abs=0.02)


def test_the_divergence_bends_like_the_fisher_matrix():
    """At home the Hessian of the divergence is E[score score^T], here summed over all actions exactly."""
    policy, rng = Policy(2, Discrete(3), (3,)), np.random.default_rng(0)
    x = policy.init(rng.standard_normal(policy.size, dtype=np.float32))
    v = rng.standard_normal(policy.size, dtype=np.float32)
    did = actions_for(policy, x, 7)

    def chances(y):  # (actions, columns)
        return log_softmax(forward(policy.unpack(y)[0], did.observations))

    @quick
    def both(x):
        scores = jax.jacrev(chances)(x)
        fisher = jnp.einsum("ac,aci,acj->ij", softmax(did.head) / 7, scores, scores)
        bend = improvement.divergence(policy, x + 0.02 * v, did) / (0.5 * 0.02**2)
        return fisher @ v, improvement.curvature(policy, x, did)(v), bend

    expected, curved, bend = both(x)
    assert np.allclose(curved, expected, atol=1e-5)
    assert float(bend) == pytest.approx(float(v @ expected), rel=0.03)


@pytest.mark.parametrize("space", [Discrete(2), Continuous(-1.0, 1.0)])
def test_ppo_makes_good_actions_likelier_and_stops_when_far(space):
    policy = Policy(3, space, (8,))
    x = policy.init(np.random.default_rng(0).standard_normal(policy.size, dtype=np.float32))
    did = actions_for(policy, x, 400)
    side = np.asarray(did.actions > 0 if policy.discrete else did.actions[0] > 0)
    advantage = np.where(side, np.float32(1), np.float32(-1)).reshape(20, 20)
    settings = on_policy.ClippedSettings(rate=0.01, minibatches=4, target_kl=0.02, passes=50)

    def run():
        adam = optax.scale_by_adam().init(jnp.asarray(x))
        y, _, far = improvement.improve(policy, settings, x, adam, did, advantage, jnp.int32(0), key(1))
        return improvement.ratios(policy, y, did), far

    ratio, far = first_of(together(run))
    assert float(ratio[side].mean()) > 1.05
    assert float(ratio[~side].mean()) < 0.95
    assert int(far["passes"]) < 50
    assert float(far["kl"]) > 0.02


def test_multipliers_rise_over_the_limit_and_stay_at_zero_below():
    values = jnp.array([0.0, 1.0])
    multipliers = ppo_lagrangian.Multipliers(values, optax.adam(0.1).init(values))
    m = s = np.zeros(2)
    expected = np.array([0.0, 1.0])
    for t, over in enumerate(([-4.0, 2.0], [3.0, 2.0], [3.0, -50.0]), 1):  # Adam by hand
        slope = -np.array(over)
        m, s = 0.9 * m + 0.1 * slope, 0.999 * s + 0.001 * slope**2
        expected = np.maximum(0, expected - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8))
        multipliers = ppo_lagrangian.ascend(multipliers, jnp.array(over), 0.1)
        assert np.allclose(multipliers.values, expected, atol=1e-6)
    settings = rcpo.RCPOSettings(multiplier_rate=0.05, multiplier_max=2.0)
    limits = jnp.array([10.0, 20.0])
    assert np.allclose(rcpo.ascend(jnp.array([1.0, 1.0]), jnp.array([30.0, 10.0]), limits, settings), [1.1, 0.975])
    assert np.allclose(rcpo.ascend(jnp.array([0.0, 1.9]), jnp.array([0.0, 200.0]), limits, settings), [0.0, 2.0])


# -- CPO's step --------------------------------------------------------------------------------------------------------


def brute_force(g, b, c, delta):
    """The best d with |d|^2 / 2 <= delta and c + b.d <= 0 in two dimensions, or None where there is none."""
    radius = math.sqrt(2 * delta)
    angles = np.linspace(0, 2 * math.pi, 20_001)
    circle = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    foot = -c / (b @ b) * b  # on the line c + b.d = 0
    half = radius**2 - foot @ foot
    line = np.zeros((0, 2))
    if half >= 0:
        across = np.array([-b[1], b[0]]) / np.linalg.norm(b)
        line = foot + np.linspace(-1, 1, 1001)[:, None] * math.sqrt(half) * across
    points = np.concatenate([circle, line])
    good = c + points @ b <= 1e-9 + 1e-7 * np.abs(b).sum()
    return None if not good.any() else max(points[good] @ g)


def random_quadratics(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        g, b = rng.standard_normal((2, 2)) * 10 ** rng.uniform(-2, 1, (2, 1))
        delta = 10 ** rng.uniform(-3, 0)
        reach = math.sqrt(2 * delta) * np.linalg.norm(b)  # the cost a step can change
        yield g, b, reach * rng.uniform(-2, 2), delta


step_of_cpo = jax.jit(lambda g, b, c, delta: cpo.solve(g, g, b, b, c, delta))  # H = I


def test_the_step_of_cpo_matches_brute_force_on_random_quadratics():
    seen = dict.fromkeys(("free", "active", "recoverable", "hopeless"), 0)
    for g, b, c, delta in random_quadratics(600):
        d = np.asarray(step_of_cpo(g, b, c, delta).d, dtype=float)
        radius = math.sqrt(2 * delta)
        assert np.linalg.norm(d) <= radius * (1 + 1e-4)
        best = brute_force(g, b, c, delta)
        reach = radius * np.linalg.norm(b)
        if best is None:  # as far down the cost as can be
            seen["hopeless"] += 1
            assert c > 0
            assert np.allclose(d, -radius * b / np.linalg.norm(b), atol=1e-4 * radius)
            continue
        assert c + b @ d <= 1e-4 * reach  # meets the linearised constraint, from wherever it starts
        assert g @ d == pytest.approx(best, abs=2e-3 * radius * np.linalg.norm(g))
        free = c + b @ (radius * g / np.linalg.norm(g)) <= 0
        seen["free" if free else "active" if c <= 0 else "recoverable"] += 1
    assert min(seen.values()) >= 50, seen


@example([0.0, 1.625, 0.0, 1.375, 0.0], 1.0)  # slopes that point the same way
@given(
    st.lists(st.floats(-2, 2), min_size=5, max_size=5).filter(
        lambda a: math.hypot(a[0], a[1]) > 0.1 and math.hypot(a[2], a[3]) > 0.1
    ),
    st.floats(0.01, 1),
)
def test_the_step_of_cpo_never_leaves_what_can_be_kept(numbers, delta):
    g, b, c = np.array(numbers[:2]), np.array(numbers[2:4]), round(numbers[4], 6)  # no denormal numbers
    direction = step_of_cpo(g, b, c, delta)
    d = np.asarray(direction.d, dtype=float)
    radius, reach = math.sqrt(2 * delta), math.sqrt(2 * delta) * np.linalg.norm(b)
    assert np.linalg.norm(d) <= radius * (1 + 1e-3)
    assert c + b @ d <= max(0.0, c - reach) + 1e-3 * (reach + abs(c))
    assert bool(direction.recovering) == (np.float32(c) > 0)


def test_the_step_of_cpo_with_a_hessian():
    """With H = L L^T the problem is the one with H = I in the coordinates L^T d."""
    rng = np.random.default_rng(3)

    @jax.jit
    def step(H, g, b, c, delta):
        v, w = (cpo.conjugate_gradients(H.__matmul__, a, 10) for a in (g, b))
        return cpo.solve(g, v, b, w, c, delta).d

    for g, b, c, delta in random_quadratics(50):
        L = np.tril(rng.standard_normal((2, 2))) + 2 * np.eye(2)
        H = L @ L.T
        d = np.asarray(step(jnp.array(H), jnp.array(g), jnp.array(b), c, delta), dtype=float)
        g2, b2 = np.linalg.solve(L, g), np.linalg.solve(L, b)
        plain = step(jnp.eye(2), jnp.array(g2), jnp.array(b2), c, delta)
        assert np.allclose(L.T @ d, plain, atol=2e-2 * math.sqrt(delta))


def test_the_line_search_takes_the_longest_good_step():
    settings = cpo.CPOSettings(backtracks=10, shrink=0.5)
    x, d = jnp.zeros(1), jnp.ones(1)

    def search(limit):
        y, kl, share = cpo.line_search(settings, x, d, lambda y: (y[0] <= limit, y[0] ** 2))
        return float(y[0]), float(kl), float(share)

    assert search(1.0) == (1.0, 1.0, 1.0)
    assert search(0.3) == (0.25, 0.0625, 0.25)
    assert search(-1.0) == (0.0, 0.0, 0.0)


# -- training ----------------------------------------------------------------------------------------------------------


class Tempting(CartPole200):
    """A push to the right costs 1 and pays 1 + x, for an x that is new on every step: the limit decides from which x on."""

    name = "Tempting-v0"
    max_steps = 20
    cost_names = ("right",)
    thresholds = (6.0,)

    def step(self, state, action, key):
        right = (action == 1).astype(jnp.float32)
        fresh = jax.random.uniform(key, (4,), minval=-1, maxval=1)
        return Step(fresh, right * (1 + state[0]), right[None], jnp.bool_(False))


TEMPTING = Tempting()
LEARNT = {
    "openes": dict(
        iterations=60,
        initial_tries=1,
        hidden=(16,),
        population=16,
        metric_episodes=15,
        step_size=0.05,
        last_layer=0.1,
        penalty=1.0,
    ),
    "asebo": dict(
        iterations=60,
        initial_tries=1,
        step_size=0.05,
        hidden=(16,),
        population=16,
        metric_episodes=15,
        archive=8,
        least=4,
        last_layer=0.1,
        penalty=1.0,
    ),
    "ppo-lag": ON_POLICY | dict(iterations=60, rate=6e-3, multiplier_rate=0.012),
    "rcpo": ON_POLICY | dict(iterations=60, rate=6e-3, multiplier_rate=0.03),
    "cpo": ON_POLICY | dict(iterations=60, delta=0.05),
}


def same_run(a, b):
    assert np.array_equal(a.x, b.x) and a.certificate == b.certificate and a.final == b.final
    without_time = [{k: v for k, v in run.metrics.items() if k != "seconds"} for run in (a, b)]
    assert without_time[0] == without_time[1]


@pytest.mark.parametrize("name", NAMES[1:])
def test_every_baseline_trains_up_to_the_limit_and_resumes_to_the_same_bits(name, tmp_path, monkeypatch, hasty_engines):
    """At a cost of 6 of 20, pushes at x > 0.4 pay 1.7 each: 10.2. A blind policy gets 20 for a cost of 20."""
    if name != "cpo":  # one film is enough
        monkeypatch.setattr("pcces.report.runs.at_work", lambda runs, where, film: [])

    def keep(runs):
        done = len(runs[0].metrics["return"])
        if done == 40:
            monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
        if done == 50:  # what a kill would leave
            shutil.copytree(tmp_path / "whole", tmp_path / "killed")
            monkeypatch.setattr(training, "CHECKPOINT_SECONDS", math.inf)

    given = dict(algorithm=name, seed=3, normalise=False, certify_episodes=50) | LEARNT[name]
    whole = train(TEMPTING, out=tmp_path / "whole", callback=keep, **given)
    m = {column: np.array(values) for column, values in whole.metrics.items()}
    assert len(m["return"]) == given["iterations"] and all(np.isfinite(values).all() for values in m.values())
    assert m["cost_right"][-20:].mean() == pytest.approx(6, abs=2)
    assert m["return"][-20:].mean() == pytest.approx(10.2, abs=3.4)
    assert whole.problem.names == ("right <= 6",)  # baselines know no bounds on the entropy
    again = train(TEMPTING, out=tmp_path / "killed", resume=True, **given)
    same_run(again, whole)
    names = ["certificate.json", "checkpoint.npz", "config.json", "metrics.csv", "policy.npz", "report.html"]
    assert sorted(file.name for file in (tmp_path / "killed").iterdir()) == names


ON_WORKERS = {
    "openes": dict(population=8, metric_episodes=4, initial_tries=2),
    "asebo": dict(population=8, metric_episodes=4, initial_tries=1, archive=2, least=2),
    "ppo-lag": dict(hidden=(5,), critic_hidden=(5,), epoch_steps=120, passes=2, minibatches=2),
}
ON_WORKERS["rcpo"] = ON_WORKERS["cpo"] = ON_WORKERS["ppo-lag"]


@pytest.mark.parametrize("name", NAMES[1:])
def test_baselines_on_workers_do_not_depend_on_who_plays_first(name):
    """Gaussian heads and two costs, on a Gymnasium environment."""
    algorithm = BASELINES[name]
    settings = algorithm.settings(**ON_WORKERS[name])
    sim = simulator("tests/Line-v0", simulators.late_cost, thresholds=(1.0, 40.0))
    policy, problem = Policy(1, sim.actions, settings.hidden), problem_for(sim, settings.mu)
    arena = WorkerArena(sim, policy, problem, settings.discount, Here, algorithm.search(settings))
    with compiled_hastily():
        engine = StepwiseEngine(arena, algorithm.program(arena, settings), [3])
    backwards = engine.advance(engine.start(), 4)
    arena.pool = Straight(lambda: arena.worker)
    forwards = engine.advance(engine.start(), 4)
    state, metrics = backwards
    for a, b in zip(jax.tree.leaves(backwards), jax.tree.leaves(forwards), strict=True):
        assert a.dtype == b.dtype and np.array_equal(a, b)
    assert jax.tree.structure(engine.template()) == jax.tree.structure(state)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((state, metrics)))
    assert metrics["costs"].shape == (1, 4, 2) and not metrics["failed_episodes"].any()
    if name in ("ppo-lag", "rcpo"):
        assert np.all(metrics["passes"] == ON_WORKERS[name]["passes"])  # all there are: the policy is never far
    if name in ("ppo-lag", "rcpo", "cpo"):
        assert np.all(metrics["steps"] == 100) and np.all(metrics["length"] == 20)  # 2 episodes of 50 steps, or 5 of 20
        assert np.any(metrics["recovering" if name == "cpo" else "multiplier"] > 0)


class Ends(simulators.Line):
    """Over as soon as the point is far out; a cost on the right."""

    def step(self, action):
        observation, reward, cost, _, truncated, info = super().step(action)
        return observation, reward, cost, abs(self.position) > 1.2, truncated, info


class Several:
    """Environments stepped side by side; those whose episode is over go on unheard."""

    def __init__(self, count):
        self.envs = [Ends("six") for _ in range(count)]

    def reset(self, seed):
        return np.stack([env.reset(seed=s)[0] for env, s in zip(self.envs, seed)])

    def step(self, actions):
        *parts, _ = zip(*(env.step(action) for env, action in zip(self.envs, actions)))
        return (*map(np.array, parts), {})


class SideBySide(Simulator):
    def make(self):
        return Environment(Ends("six"), ("right",), None)

    def make_batch(self, count):
        return Several(count)


def test_steps_are_the_same_one_by_one_and_side_by_side():
    sim = SideBySide("Ends-v0", 1, Continuous(-1.0, 1.0), 15, ("right",), (1.0,))
    policy = Policy(1, sim.actions, (3,))
    x = policy.init(np.random.default_rng(0).standard_normal(policy.size).astype(np.float32), log_std=0.5)
    chunk = Chunk(tuple(Episode(-1, 1, seed) for seed in range(8)), steps=True)
    played = []
    for kind in (EpisodeWorker, BatchedWorker):
        worker = kind(sim, policy, 0.99)
        worker.share(Shared(x, identity(np.zeros(1, np.float32))))
        played.append(worker.run(chunk))
    for a, b in zip(played[0].steps, played[1].steps, strict=True):
        assert all(np.allclose(one, other, atol=1e-5) for one, other in zip(a, b, strict=True))
    assert {one.cut for one in played[0].steps} == {True, False}
    assert all(one.rewards.size == 15 for one in played[0].steps if one.cut)
    assert np.allclose(played[0].outcome.costs, [[one.costs.sum() for one in played[0].steps]])


def test_an_epoch_of_workers_is_what_they_played():
    """An episode that the task ends, one that failed, one that is cut by the time limit; in a later round one that the end
    of the column cuts, and one for which there is no room."""
    lengths = (2, False), (3, True), (4, False), (2, False)
    ended, cut, late, lost = (
        Steps(
            np.arange(2.0 * t).reshape(2, t) + 1, np.arange(t), np.ones(t), np.full((1, t), 2.0), np.full(2, 9.0), limit
        )
        for t, limit in lengths
    )
    nan, zeros = np.nan, np.zeros(3)
    outcome = Outcome(np.array([2.0, nan, 3.0]), zeros, np.array([[4.0, nan, 6.0]]), zeros, np.array([2.0, 0.0, 3.0]))
    first = Played(outcome, None, ((9, "broken"),), (ended, None, cut))
    column = laid_out(Policy(2, Discrete(2)), 8, [first, first._replace(steps=(late, lost))])
    raw, actions, signals, played, going, costs, length = column
    assert np.array_equal(raw[0, :, 0], [1, 2, 1, 2, 3, 9, 1, 2, 3])
    assert np.array_equal(played[:, 0], [1, 1, 1, 1, 1, 0, 1, 1])
    assert np.array_equal(going[:, 0], [1, 0, 1, 1, 1, 0, 1, 1])
    assert np.array_equal(actions[:, 0], [0, 1, 0, 1, 2, 0, 0, 1])
    assert np.array_equal(signals[..., 0], [played[:, 0], 2 * played[:, 0]])
    assert (costs, length) == (5, 2.5)
    # What the time limit cut off inside the column counts, as does what the column's end does; what an end does not.
    estimate = quick(critic_networks.advantages)(signals, 10 * raw[0], played, going, 1.0, 0.0)[0, :, 0]
    assert np.array_equal(estimate, [11, -19, 11, 11, 61, 0, 11, 11])


@pytest.mark.parametrize(
    ("lengths", "sizes"),
    [
        (lambda size: [50] * size, [4]),  # all as long as they may be
        (lambda size: [10] * size, [4, 4, 8, 4]),  # doubled, until what is missing needs fewer
        (lambda size: [30] + [0] * (size - 1), [4, 4, 8, 16, 22, 18, 8]),  # most fail
        (lambda size: [0] * size, [4]),
    ],
)
def test_workers_play_until_the_steps_are_there(lengths, sizes):
    def play(size):
        return Played(Outcome(None, None, None, None, np.array(lengths(size), np.float32)), None, ())

    assert [part.outcome.length.size for part in rounds(play, 4, 200)] == sizes


@pytest.mark.parametrize("name", ["openes", "ppo-lag"])
def test_failed_episodes_are_counted_with_any_number_of_workers(name):
    given = dict(algorithm=name, iterations=2, certify_episodes=10) | ON_WORKERS[name]
    with compiled_hastily():
        one, two = (train("tests/Trouble-v0", workers=n, **given) for n in (1, 2))
    same_run(one, two)
    assert sum(one.metrics["failed_episodes"]) > 0 and np.isfinite(one.x).all()


def test_the_command_line_trains_baselines(tmp_path, monkeypatch, hasty_engines):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pcces.report.runs.at_work", lambda runs, where, film: [])

    def command(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    few = [
        "--iterations",
        2,
        "--population",
        8,
        "--set=initial_tries=4",
        "--set=metric_episodes=15",
        "--set=certify_episodes=20",
    ]
    words = ["train", "CartSafe-v0", "--algorithm", "openes", "--threshold", 250, "--json", "--set=sigma=0.5", *few]
    done = command(*words)
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["runs"][0]["algorithm"] == "openes"
    assert said["folder"] == "runs/CartSafe-v0/openes-default-threshold250-seed0"
    again = command("train", "CartSafe-v0", "--out", said["folder"], "--resume", "--json", "--set=sigma=0.5")
    assert json.loads(again.stdout) == said
    run = load(said["folder"])
    assert run.config["settings"]["sigma"] == 0.5 and run.trained()[0].size == run.shape.size
    refused = command("train", "CartSafe-v0", "--algorithm", "cpo", "--set", "clip=0.1")
    assert refused.exit_code == 2 and "unknown setting 'clip' of cpo" in refused.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (dict(algorithm="cpo", population=40), "cpo has no population"),
        (dict(algorithm="openes", preset="paper"), "unknown preset 'paper' of openes; there are default"),
        (dict(algorithm="ppo-lag", clipp=0.1), "unknown setting 'clipp' of ppo-lag; did you mean 'clip'"),
        (dict(algorithm="sgd"), "unknown algorithm 'sgd'; there are pcces, openes, asebo, ppo-lag, rcpo, cpo"),
    ],
)
def test_what_an_algorithm_does_not_have_is_refused(given, words):
    with pytest.raises((ValueError, TypeError), match=words):
        prepare("CartSafe-v0", [0], **given)
    assert tuple(BASELINES) == NAMES[1:]


@pytest.mark.parametrize(
    ("name", "blind"),
    [("ppo-lag", dict(lagrangian=False)), ("cpo", dict(constrained=False))],
)
def test_without_multipliers_costs_do_not_matter(name, blind):
    method = {"ppo-lag": ppo_lagrangian, "cpo": cpo}[name].METHOD
    policy, net = Policy(4, TEMPTING.actions, (4,)), Policy(4 + 2, Continuous(-1.0, 1.0), (4,))
    problem = problem_for(TEMPTING, 0.0, entropy_bounds=NO_ENTROPY)
    x = policy.init(np.random.default_rng(0).standard_normal(policy.size, dtype=np.float32))

    settings = BASELINES[name].settings(**blind)

    def after(scale):
        epoch, _ = play_epoch(TEMPTING, policy, x, identity(x[:4]), jax.random.split(key(1), 30), 0.99)
        dearer = epoch.signals * jnp.array([1.0, scale])[:, None, None]
        state = method.begin(problem, net, settings, jnp.asarray(x), identity(x[:4]), key(2))
        epoch = epoch._replace(signals=dearer, costs=epoch.costs * scale)
        return method.learn(policy, problem, net, settings, state, epoch, key(3))[0].x

    cheap, dear = first_of(together(lambda: jax.lax.map(after, jnp.array([1.0, 50.0]))))
    assert np.allclose(cheap, dear, atol=1e-6)
    assert not np.allclose(cheap, x, atol=1e-3)


def test_devices_that_share_an_epoch_find_the_same():
    task, settings = TwoCosts(), on_policy.OnPolicySettings(passes=1, minibatches=1)
    policy, net = Policy(2, task.actions, (4,)), Policy(2 + 3, Continuous(-1.0, 1.0), (4,))
    x = policy.init(np.random.default_rng(0).standard_normal(policy.size, dtype=np.float32))

    def run():
        epoch, outcome = play_epoch(task, policy, x, identity(x[:2]), jax.random.split(key(1), 8), 0.9)
        critics = critic_networks.init_critics(net, 3, settings, key(2))
        critics = critic_networks.fit(net, settings, critics, epoch, epoch.signals, key(3))
        step = summed(improvement.curvature(policy, x, improvement.acted(policy, x, epoch))(x))
        return epoch.costs, epoch.length, epoch.seen, outcome, critics, step

    one, two = together(run), together(run, devices=2)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two)):
        assert np.allclose(a[0], b[0], rtol=1e-4, atol=1e-5) and np.array_equal(b[0], b[1])


# -- the comparison with OmniSafe ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CartSafe-v0", "MountainCarContinuousSafe-v0"])
def test_the_tasks_given_to_omnisafe_are_ours(name):
    where = Path(__file__).parents[1] / "benchmarks" / "omnisafe_peer.py"
    spec = importlib.util.spec_from_file_location("omnisafe_peer", where)
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    task, copies = make(name), {"C": peer.SignCarts, "M": peer.MountainCars}[name[0]]
    assert (copies.size, copies.limit, copies.cost_limit) == (
        task.observation_size,
        task.max_steps,
        task.thresholds[0],
    )
    starts = copies(2000, np.random.default_rng(0)).state
    ours = np.asarray(quick(jax.vmap(task.reset))(jax.random.split(key(0), 2000)))
    assert np.allclose(starts.min(0), ours.min(0), atol=0.01)
    assert np.allclose(starts.max(0), ours.max(0), atol=0.01)
    rng = np.random.default_rng(1)
    low, high = {"C": ([-2.6, -2, 0, -5], [2.6, 2, 6.2, 5]), "M": ([-1.2, -0.07], [0.6, 0.07])}[name[0]]
    state, action = rng.uniform(low, high, (500, len(low))), rng.uniform(-2, 2, 500)
    theirs = copies.move(state, action)
    act = (action > 0).astype(int) if name[0] == "C" else action[:, None].astype(np.float32)
    after = quick(jax.vmap(lambda s, a: task.step(s, a, key(0))))(state.astype(np.float32), act)
    assert np.allclose(theirs[0], after.state, atol=1e-4)
    assert np.allclose(theirs[1], after.reward, atol=1e-4)
    assert np.mean(theirs[2] == after.costs[:, 0]) > 0.99  # float32 may fall on the other side of a border
    assert np.mean(theirs[3] == after.terminated) > 0.99


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BASELINES)
def test_settings_survive_json(name):
    settings = BASELINES[name].settings(hidden=(7, 5), iterations=12)
    assert type(settings).from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("openes", dict(population=7)),
        ("openes", dict(sigma_of="norm")),
        ("asebo", dict(alpha_low=0.9, alpha_high=0.1)),
        ("ppo-lag", dict(clip=0.0)),
        ("ppo-lag", dict(multiplier=-1.0)),
        ("rcpo", dict(multiplier=1e9)),
        ("cpo", dict(shrink=1.5)),
        ("cpo", dict(iterations=0)),
        ("cpo", dict(iterations=2.0)),
        ("cpo", dict(freeze=3.0)),
        ("openes", dict(l2=-1.0)),
        ("openes", dict(step_size=0.0)),
        ("asebo", dict(archive=0)),
        ("asebo", dict(mu=math.inf)),
        ("ppo-lag", dict(critic_hidden=(64, 0))),
        ("ppo-lag", dict(critic_rate=-1e-3)),
        ("rcpo", dict(hidden=64)),
    ],
)
def test_bad_settings_are_refused(name, wrong):
    with pytest.raises(ValueError, match=r"must|needs|<="):
        BASELINES[name].settings(**wrong)
