"""Training that begins with the policy of another run."""

import json
import shutil
from dataclasses import replace

import jax
import numpy as np
import pytest
from small import BATCH, FEW, POPULATION, words
from typer.testing import CliRunner

from pcces.cli import app
from pcces.engines.device import alone
from pcces.envs.simulator import simulator
from pcces.envs.task import Continuous, Discrete
from pcces.policies import find_algorithm, train, train_seeds
from pcces.rl.arenas import _device_program
from pcces.rl.beginning import Beginning, alike, critics_of, keep, kept
from pcces.rl.critics import network, said
from pcces.rl.device_arena import DeviceArena
from pcces.rl.first import First, KeptCritics
from pcces.rl.folder import load, read_config
from pcces.rl.normalizer import Normalizer, frozen, normalise
from pcces.rl.policy import Policy
from pcces.rl.request import Request

TASK = "CartSafe-v0"
SMALL = dict(hidden=(4,), certify_episodes=20, iterations=2)
ON_POLICY = SMALL | dict(epoch_steps=600, critic_hidden=(4,), passes=2, minibatches=2)
SEARCH = SMALL | dict(population=8, initial_tries=1)
BY_ALGORITHM = {
    "pcces": FEW, "pcces-paper": POPULATION, "openes": SEARCH, "asebo": SEARCH, "ppo-lag": ON_POLICY, "rcpo": ON_POLICY,
    "cpo": ON_POLICY,
}  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A finished run, and its folder."""
    return train(TASK, seed=3, threshold=250, out=tmp_path_factory.mktemp("source") / "run", report=False, **FEW)


def begun(name, init, **changed):
    """The state in which an algorithm begins, in the order of its fields."""
    settings = {**BY_ALGORITHM[name], "init": init, **changed}
    algorithm = find_algorithm(name.split("-paper")[0])
    request = Request.of(TASK, [0], algorithm, settings)
    (run,) = request.runs()
    settings = algorithm.from_dict(run.config["settings"])
    arena, program = _device_program(algorithm.program, run.task, run.shape, run.problem, settings)
    return program.init(arena.key(0), request.beginning.arrays(settings.discount)), run


def x_of(state):
    return np.asarray(state.es.x if hasattr(state, "es") else state.x)


@pytest.mark.parametrize("name", BY_ALGORITHM)
def test_every_algorithm_begins_with_the_policy_it_is_given(name, source):
    (state, spent), run = begun(name, source)
    assert np.array_equal(x_of(state), source.x) and float(spent.steps) == 0 and spent.costs.tolist() == [0]
    normalizer = state.normalizer
    assert np.array_equal(normalizer.mean, source.normalizer.mean)
    assert np.array_equal(normalizer.std, source.normalizer.std)
    assert float(normalizer.count) == source.metrics["steps"][-1] > 0
    assert run.config["init"]["from"] == str(source.path)
    if name == "pcces":
        assert np.array_equal(state.x_trial, source.x)
    if name in ("pcces", "ppo-lag", "cpo"):  # those with a critic for the reward and one for each cost
        assert np.array_equal(state.critics.weights, source.critics.weights)
        assert np.array_equal(state.critics.std, source.critics.std) and (source.critics.std > 0).all()


@pytest.mark.parametrize("changed", [dict(critic_hidden=(5,)), dict(discount=0.9)])
def test_critics_that_do_not_fit_stay_behind(changed, source):
    (state, _), _ = begun("pcces", source, **changed)
    assert np.array_equal(x_of(state), source.x) and not np.any(state.critics.std)


def test_critics_are_kept_as_they_see_what_the_policy_sees(source):
    """Those of the last iteration, carried over to the normalisation of the policy that is returned."""
    assert source.critics.weights.shape[0] == 2 and np.array_equal(
        load(source.path).critics.weights, source.critics.weights
    )
    settings = find_algorithm("pcces").settings(**BATCH)
    net, rng = network(3, 2, settings), np.random.default_rng(0)
    weights = rng.normal(size=(1, 2, net.size)).astype(np.float32)
    had, sees = (frozen(*np.float32([mean, std])) for mean, std in (([1, 2, 3], [1, 2, 4]), ([0, 2, 5], [2, 1, 3])))

    class State:
        critics = KeptCritics(weights, np.zeros((1, 2)), np.ones((1, 2)))
        normalizer = Normalizer(*(part[None] for part in had))

    carried = critics_of(State(), 0, settings, sees, signals=2)
    o, last = (rng.normal(size=size).astype(np.float32) for size in ((3, 5), (2, 5)))
    for before, after in zip(weights[0], carried.weights):
        there, here = (np.concatenate([normalise(each, o), last]) for each in (sees, had))
        assert said(net, after, there) == pytest.approx(said(net, before, here), abs=1e-4)


def test_the_first_iteration_plays_the_policy_it_is_given(source):
    runs = [train(TASK, seed=1, threshold=250, init=init, report=False, **FEW) for init in (source, str(source.path))]
    assert np.array_equal(runs[0].x, runs[1].x) and runs[0].metrics["return"] == runs[1].metrics["return"]
    scratch = train(TASK, seed=1, threshold=250, report=False, **FEW)
    assert runs[0].metrics["steps"][0] == 600 < scratch.metrics["steps"][0]  # no random policies were tried
    # Episodes of the first batch have the same seeds as those of the source's policy, played by hand.
    run = runs[0]
    arena = DeviceArena(run.task, run.shape, run.problem, 1.0)
    first = Beginning.of(source).first
    normalizer = jax.tree.map(jax.numpy.asarray, first.normalizer)
    play_key, _ = arena.keys(arena.key(1), np.int32(0), 2)
    _, outcome, _ = alone(lambda key: arena.epoch(jax.numpy.asarray(first.x), normalizer, key, 2))(play_key)
    assert run.metrics["return"][0] == pytest.approx(float(outcome.returns.mean()), rel=1e-4)


def test_seeds_begin_with_the_same_policy_and_part(source):
    runs = train_seeds(TASK, range(2), threshold=250, init=source, report=False, **FEW)
    assert {run.config["init"]["policy"] for run in runs} == {Beginning.of(source).to_dict()["policy"]}
    assert runs[0].metrics["return"][0] != runs[1].metrics["return"][0]


def test_a_run_that_goes_on_needs_no_init(source, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(source.path, moved)
    options = dict(seed=1, threshold=250, report=False) | FEW
    whole = train(TASK, init=moved, out=tmp_path / "whole", **options)
    shutil.copytree(tmp_path / "whole", tmp_path / "early")
    for name in ("checkpoint.npz", "policy.npz", "certificate.json", "metrics.csv"):
        (tmp_path / "early" / name).unlink()  # as if it had been killed before its first checkpoint
    shutil.rmtree(moved)
    again = train(TASK, out=tmp_path / "early", resume=True, **options)
    assert np.array_equal(again.x, whole.x) and again.metrics["return"] == whole.metrics["return"]
    assert again.config["init"] == whole.config["init"] == read_config(tmp_path / "early")["init"]
    again = train(TASK, init=source, out=tmp_path / "early", resume=True, **options)  # the same policy
    with pytest.raises(ValueError, match=r"has init\.from = .*, but .* is asked for"):
        train(TASK, init=replace(source, x=source.x + 1), out=tmp_path / "early", resume=True, **options)
    train(TASK, out=tmp_path / "bare", **options)
    with pytest.raises(ValueError, match="init = None, but"):
        train(TASK, init=source, out=tmp_path / "bare", resume=True, **options)


def test_a_damaged_beginning_is_refused(source, tmp_path):
    (tmp_path / "init.npz").write_bytes((source.path / "policy.npz").read_bytes())
    with pytest.raises(ValueError, match="holds a policy, not a beginning"):
        kept(tmp_path, source.shape)
    first = Beginning.of(source).first
    keep(tmp_path, first)
    there = kept(tmp_path, source.shape)
    assert isinstance(there, First) and np.array_equal(there.critics.weights, first.critics.weights)
    assert all(np.array_equal(a, b) for a, b in zip(there.normalizer, first.normalizer))
    with pytest.raises(ValueError, match=r"init\.npz is damaged: x must be"):
        kept(tmp_path, Policy(4, Discrete(2), (3,)))
    keep(tmp_path, first._replace(critics=first.critics._replace(mean=np.float32([np.nan, 0.0]))))
    with pytest.raises(ValueError, match="critics"):
        kept(tmp_path, source.shape)


def test_what_cannot_be_begun_with_is_refused(source, tmp_path):
    def refused(match, task=TASK, error=ValueError, **asked):
        with pytest.raises(error, match=match):
            train(task, **{**{k: v for k, v in FEW.items() if k != "hidden"}, **asked})

    refused(r"hidden layers \(4,\), but this training has \(9,\): leave hidden out", init=source, hidden=(9,))
    refused(r"has the observations 4, but this training has 2", "MountainCar-v0", init=source)
    refused(r"has the actions Discrete\(n=2\), but this training has Discrete\(n=3\)", simulator_of(), init=source)
    refused("a finished run or the folder of one, got 5", error=TypeError, init=5)
    refused("not a run folder", error=FileNotFoundError, init=tmp_path)
    shutil.copytree(source.path, tmp_path / "both" / "seed-7")
    refused(r"has several seeds: init takes one of them, such as .*both/seed-7", init=tmp_path / "both")
    (tmp_path / "both" / "seed-7" / "policy.npz").unlink()
    refused(r"not finished, .* continue with: pcces train", init=tmp_path / "both" / "seed-7")


def simulator_of():
    """Of four observations and three actions."""
    return replace(simulator("CartPole-v1"), actions=Discrete(3))


def test_boxes_of_32_bits_are_those_of_64():
    assert alike(Continuous(-0.4, 0.4), Continuous(float(np.float32(-0.4)), float(np.float32(0.4))))
    assert not alike(Continuous(-0.4, 0.4), Continuous(-0.4, 0.5)) and not alike(Continuous(-1.0, 1.0), Discrete(2))


@pytest.mark.parametrize("name", ["pcces", "pcces-paper", "cpo"])
def test_workers_begin_with_the_policy_they_are_given(name):
    task = simulator("CartPole-v1", max_steps=20)
    settings = BY_ALGORITHM[name] | dict(workers=1, certify_episodes=4, report=False)
    settings |= dict(epoch_steps=60) if "epoch_steps" in settings else dict(population=4)
    algorithm = name.split("-paper")[0]
    source = train(task, algorithm, seed=5, **settings)
    seen = []
    run = train(
        task, algorithm, seed=6, init=source, callback=lambda runs: seen.append(runs[0].policy(np.zeros(4))), **settings
    )
    assert run.metrics["steps"][0] < source.metrics["steps"][0] - 100  # no random policies were tried
    assert run.config["init"]["from"].startswith(f"{algorithm} on CartPole-v1, seed 5")
    assert seen[0] == source.policy(np.zeros(4))


def test_the_command_line_begins_with_a_folder(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ["train", TASK, *words({k: v for k, v in FEW.items() if k != "hidden"}), "--threshold", "250"]
    done = CliRunner().invoke(app, [*asked, "--init", str(source.path)])
    assert done.exit_code == 0, done.stderr
    folder = tmp_path / "runs" / TASK / "pcces-default-threshold250-init-seed0"
    config = json.loads((folder / "config.json").read_text())
    assert config["init"]["from"] == str(source.path) and config["settings"]["hidden"] == [4]
    before = (folder / "policy.npz").read_bytes()
    (folder / "policy.npz").unlink()
    done = CliRunner().invoke(app, ["train", TASK, "--resume", "--out", str(folder)])
    assert done.exit_code == 0 and (folder / "policy.npz").read_bytes() == before
    done = CliRunner().invoke(app, [*asked, "--init", str(tmp_path / "nowhere"), "--out", "other"])
    assert done.exit_code == 2 and "not a run folder" in done.stderr and not (tmp_path / "other").exists()
