"""PCCES with its episodes in workers: one result whatever the number of workers and whatever happens to them."""

import functools
import logging
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import simulators  # noqa: F401  registers the tests' environments
from small import BATCH, POPULATION

from pcces.engines.arena import Group
from pcces.engines.device import alone
from pcces.engines.keys import key
from pcces.engines.processes import LocalPool
from pcces.engines.stepwise import StepwiseEngine
from pcces.envs import make
from pcces.envs.lookup import resolve
from pcces.envs.simulator import simulator
from pcces.policies import train
from pcces.rl import population, worker_arena
from pcces.rl.algorithm import PCCES
from pcces.rl.device_arena import DeviceArena
from pcces.rl.lesson import joined
from pcces.rl.normalizer import identity
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy
from pcces.rl.problem import problem_for
from pcces.rl.progress import EpisodeProgress
from pcces.rl.rollout import rollout
from pcces.rl.worker import Chunk, Episode, EpisodeWorker, Shared, Steps
from pcces.rl.worker_arena import WorkerArena

# A population that is judged with care, and a batch.
SMALL = dict(
    preset="paper", population=8, episodes=3, metric_episodes=4, member_episodes=2, initial_tries=2, warm_up=1, m=3,
    hidden=(5, 4), restoration="merit", constraint_z=2.0, doubt=0.5, common_random_numbers=True, shaping="rank",
    beta=20.0, gamma=1.05, sigma0=1.0, sigma_max=2.0,
)  # fmt: skip
BOTH = pytest.mark.parametrize("settings", [SMALL, BATCH], ids=["population", "batch"])


def leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def same(a, b):
    return all(one.dtype == other.dtype and np.array_equal(one, other) for one, other in zip(leaves(a), leaves(b)))


def engine_for(sim, pool=None, seeds=(0,), step_timeout=None, **settings):
    chosen = PCCES.settings(**settings or SMALL)
    policy = Policy(sim.observation_size, sim.actions, chosen.hidden)
    pool, problem = pool or functools.partial(LocalPool, workers=2), problem_for(sim, chosen.mu)
    arena = WorkerArena(sim, policy, problem, chosen.discount, pool, PCCES.search(chosen), step_timeout)
    return StepwiseEngine(arena, PCCES.program(arena, chosen), seeds)


def trained(sim, iterations=4, pool=None, **options):
    """The final state and the metrics."""
    engine = engine_for(sim, pool, **options)
    try:
        return engine.advance(engine.start(), iterations)
    finally:
        engine.arena.close()


@BOTH
@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
def test_one_worker_or_two_give_the_same_bits(name, settings):
    sim = simulator(name, max_steps=60)
    one, metrics = trained(sim, pool=functools.partial(LocalPool, workers=1), seeds=(3, 4), **settings)
    two, others = trained(sim, pool=functools.partial(LocalPool, workers=2), seeds=(3, 4), **settings)
    assert same(one, two) and all(same(metrics[key], others[key]) for key in metrics)
    alone, _ = trained(sim, seeds=(4,), **settings)
    assert np.array_equal(alone.es.x[0], one.es.x[1])  # a seed's run does not depend on its neighbours


@BOTH
def test_states_keep_their_types_and_move(settings):
    engine = engine_for(simulator("Pendulum-v1", max_steps=40), **settings)
    try:
        first = engine.start()
        after, metrics = engine.advance(first, 5)
        template = engine.template()
    finally:
        engine.arena.close()
    for state in (after, template):
        assert [leaf.dtype for leaf in leaves(state)] == [leaf.dtype for leaf in leaves(first)]
        assert [leaf.shape for leaf in leaves(state)] == [leaf.shape for leaf in leaves(first)]
    assert after.es.x.dtype == np.float32 and metrics["x"].dtype == np.float32
    assert int(after.es.k[0]) == 5 and not np.array_equal(first.es.x, after.es.x)


@BOTH
def test_going_on_from_a_state_is_the_same_as_not_having_stopped(settings):
    sim = simulator("CartPole-v1", max_steps=50)
    engine = engine_for(sim, **settings)
    try:
        half, _ = engine.advance(engine.start(), 2)
    finally:
        engine.arena.close()
    engine = engine_for(sim, **settings)
    try:
        resumed, _ = engine.advance(half, 3)
    finally:
        engine.arena.close()
    assert same(resumed, trained(sim, 5, **settings)[0])


@pytest.mark.parametrize("name", ["CartSafe-v0", "Pendulum-v1"])
def test_workers_learn_from_an_episode_what_the_device_learns(name):
    task, batch = make(name), 3
    settings = PCCES.settings("paper", hidden=(5, 4))
    policy = Policy(task.observation_size, task.actions, settings.hidden)
    rng = np.random.default_rng(0)
    x = rng.normal(size=policy.size).astype(np.float32) / 3
    problem = problem_for(task, settings.mu)
    normalizer = identity(np.zeros(task.observation_size, np.float32))
    start = population.start(jnp.asarray(x), identity(jnp.zeros(task.observation_size)), len(problem.names), settings)
    weights = jnp.asarray(rng.normal(size=start.critic.weights.shape), jnp.float32)
    learner = start._replace(critic=start.critic._replace(weights=weights))
    learning = population.learning(learner, settings)
    arena = DeviceArena(task, policy, problem, settings.discount)

    def on_device(keys):
        _, lesson = arena.play([Group(jnp.asarray(x)[None], keys, learn=True)], learner.normalizer, learning)
        columns = jnp.broadcast_to(jnp.asarray(x)[:, None], (policy.size, batch))
        steps = rollout(task, policy, columns, learner.normalizer, keys, record=True)[1]  # the same, step by step
        return steps, lesson

    played, device = alone(on_device)(jax.random.split(key(0), batch))

    sim, _ = resolve(name, "local")
    worker = EpisodeWorker(sim, policy, settings.discount)
    shared = Shared(x, normalizer, learning._replace(critic=np.asarray(weights)))
    lessons = []
    for b in range(batch):
        alive = np.asarray(played.alive[:, b]) > 0
        observations, rewards, costs = (
            np.asarray(a[..., b])[alive].T for a in (played.observations, played.rewards, played.costs)
        )
        actions = np.asarray(played.actions[..., b])[alive].T
        steps = Steps(observations, actions, rewards, costs, observations[:, -1], False)
        lessons.append(worker._learnt(Chunk((), learn=True), shared, x, steps)[0])
    workers = joined(lessons)
    assert workers.seen.count == device.seen.count == np.sum(played.alive)
    for sums in ("gradient", "gram", "moment"):
        theirs, ours = getattr(device, sums), getattr(workers, sums)
        np.testing.assert_allclose(theirs, ours, rtol=1e-3, atol=1e-4 * np.abs(ours).max(), err_msg=sums)


def test_training_on_workers_learns():
    """A point on a line learns to stay at 0: worth -1 an episode instead of -20."""
    wide = SMALL | dict(population=16, initial_tries=1, last_layer=0.3, sigma0=0.5, log_std=-1.0)
    _, metrics = trained(simulator("tests/Line-v0"), 40, **wide)
    returns = metrics["return"][0]
    assert returns[-5:].mean() > -8 > returns[:3].mean()


# -- faults ------------------------------------------------------------------------------------------------------------


def test_workers_killed_in_the_middle_change_nothing(tmp_path):
    calm, deadly = tmp_path / "calm", tmp_path / "deadly"
    for folder in (calm, deadly):
        folder.mkdir()
    sim = simulator("tests/Deadly-v0", folder=str(calm))
    expected, metrics = trained(sim)
    engine = engine_for(replace(sim, options={"folder": str(deadly)}))
    try:
        state = engine.start()
        for number in range(4):
            if number in (1, 2):
                (deadly / f"{number}").touch()
            state, _ = engine.advance(state, 1)
        replaced = engine.arena.pool.replaced
    finally:
        engine.arena.close()
    assert replaced >= 2 and same(state, expected) and not metrics["failed_episodes"].any()


@pytest.mark.parametrize("kind", ["raise", "nan reward", "nan observation", "hang", "exit"])
def test_episodes_that_fail_are_counted_and_named_by_a_seed_that_brings_them_back(kind, caplog):
    sim = simulator("tests/Trouble-v0", kind=kind)
    timeout = 0.4 if kind == "hang" else None
    iterations = 1 if kind in ("hang", "exit") else 3
    engine = engine_for(sim, step_timeout=timeout)
    with caplog.at_level(logging.WARNING, "pcces"):
        try:
            _, metrics = engine.advance(engine.start(), iterations)
            logged = re.findall(r"replay it with seed (\d+)\): (.*)", caplog.text)
            assert metrics["failed_episodes"].sum() > 0 and logged
            assert {int(seed) % 10 for seed, _ in logged} == {3}
            assert len(logged) <= 3 * len({why.partition(";")[0] for _, why in logged})  # the same is not told for ever
            words = {"raise": "ArithmeticError: contact", "hang": "timeout", "exit": "exit code 7"}
            assert all(words.get(kind, "returned nan or inf") in why for _, why in logged)
            x, normalizer = np.zeros(engine.arena.policy.size, np.float32), identity(np.zeros(1, np.float32))
            seeds = [int(logged[0][0]), 4]
            engine.arena.pool.share(Shared(x, normalizer))
            (again,) = engine.arena.play_groups([([Episode(-1, 1, seed) for seed in seeds], False, False)])
        finally:
            engine.arena.close()
    assert [seed for seed, _ in again.errors] == seeds[:1]
    assert list(np.isfinite(again.outcome.returns)) == [False, True]


def test_failed_episodes_make_a_policy_infeasible_never_better():
    engine = engine_for(simulator("tests/Trouble-v0"))
    try:
        _, metrics = engine.advance(engine.start(), 6)
    finally:
        engine.arena.close()
    failed = ~np.isfinite(metrics["estimate"].mean[0, :, 0])
    assert np.all(np.isfinite(metrics["x"])) and np.all(np.isfinite(metrics["return"]))
    assert failed.any() or not metrics["failed_episodes"].any()


# -- the same task on the device ---------------------------------------------------------------------------------------


def test_worker_and_device_agree_on_a_policys_returns():
    """Gymnasium's CartPole in a worker, ours on the device: the same mean return, length and entropy of one policy."""
    task, sim, episodes = make("CartPole-v1"), simulator("CartPole-v1"), 1000
    engine = engine_for(sim, **SMALL | {"hidden": (10, 10)})
    x = np.random.default_rng(9).standard_normal(engine.arena.policy.size).astype(np.float32)
    normalizer = identity(np.zeros(4, np.float32))._replace(std=np.array([0.5, 0.5, 0.1, 0.5], np.float32))
    try:
        theirs = engine.arena.fresh(x, normalizer, episodes, seed=1)
    finally:
        engine.arena.close()
    arena = DeviceArena(task, engine.arena.policy, problem_for(task, 0.0), 1.0)
    ours = arena.fresh(x, normalizer, episodes, seed=1)
    assert theirs.returns.std() > 1
    for name in ("returns", "length", "entropy"):
        a, b = (np.asarray(getattr(outcome, name), dtype=float) for outcome in (theirs, ours))
        error = np.sqrt((a.var() + b.var()) / episodes)
        assert abs(a.mean() - b.mean()) < 4 * error, name
        assert a.std() == pytest.approx(b.std(), rel=0.15)


def test_long_evaluations_say_how_far_they_are(capsys, monkeypatch):
    monkeypatch.setattr(worker_arena, "PIECE", 4)
    run = train(
        "CartPole-v0", engine="local", workers=1, progress=False, report=False,
        **POPULATION | dict(iterations=1, population=4, certify_episodes=4),
    )  # fmt: skip
    capsys.readouterr()
    quiet = run.evaluate(10, progress=False)
    assert capsys.readouterr().err == ""
    assert run.evaluate(10, progress=True) == quiet  # the same episodes, in whatever pieces
    assert capsys.readouterr().err.splitlines() == ["episode 4/10", "episode 8/10"]
    with EpisodeProgress(True) as shown:
        shown.update(5, 5)
    assert capsys.readouterr().err == ""  # nothing was left to wait for


def test_points_played_together_are_each_point_alone():
    sim = simulator("CartPole-v1", max_steps=60)
    engine = engine_for(sim)
    try:
        rng, seeds = np.random.default_rng(0), np.array([5, 6, 7, 8])
        points = rng.normal(size=(3, engine.arena.policy.size)).astype(np.float32)
        plain = identity(np.zeros(4, np.float32))
        groups = Group(points[:2], np.tile(seeds, 2)), Group(points[2:], seeds)
        (two, last), lesson = engine.arena.play(groups, plain)
        assert lesson is None
        together = [Outcome(*(part[..., i * 4 : i * 4 + 4] for part in two)) for i in range(2)] + [last]
        alone = [engine.arena.play([Group(x[None], seeds)], plain)[0][0] for x in points]
        assert all(same(a, b) for a, b in zip(together, alone))
        assert not same(together[0], together[1])
    finally:
        engine.arena.close()
