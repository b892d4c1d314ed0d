"""Rollouts, problems, training and certificates on the device engine."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import BATCH, POPULATION

from pcces.core import algorithm
from pcces.core.estimation import Estimate, estimate
from pcces.engines.device import DeviceEngine
from pcces.engines.keys import key
from pcces.envs import make
from pcces.envs.cartpole import CartPole
from pcces.envs.task import Step
from pcces.policies import prepare, train, train_seeds
from pcces.rl import certify, checkpoints, population, selection
from pcces.rl.algorithm import PCCES
from pcces.rl.device_arena import DeviceArena
from pcces.rl.folder import load
from pcces.rl.iterates import Candidates
from pcces.rl.normalizer import Seen, frozen, identity, normalise
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy, forward
from pcces.rl.problem import problem_for
from pcces.rl.rollout import rollout

TINY = BATCH | dict(iterations=6, certify_episodes=60)
SIMPLE = POPULATION | dict(iterations=6)  # whose iterations do not depend on how many there will be
CAREFUL = dict(  # estimates of several episodes, with their errors
    gamma=1.05, shrink=1 / 1.05, sigma_max=2.0, constraint_z=2.0, restoration="merit", doubt=0.5, episodes=8,
    common_random_numbers=True, shaping="rank",
)  # fmt: skip


def policy_for(task, hidden=(10, 10)):
    return Policy(task.observation_size, task.actions, hidden)


# -- random keys ---------------------------------------------------------------------------------------------------------


def test_keys_give_uniform_independent_numbers():
    streams = {
        "one key": jax.random.uniform(key(1), (200_000,)),
        "split": jax.vmap(jax.random.uniform)(jax.random.split(key(2), 200_000)),
        "seeds": jax.vmap(lambda s: jax.random.uniform(key(s)))(jnp.arange(200_000)),
        "folded": jax.vmap(lambda i: jax.random.uniform(jax.random.fold_in(key(3), i)))(jnp.arange(200_000)),
    }
    for name, u in streams.items():
        u = np.asarray(u, dtype=float)
        counts = np.bincount((u * 100).astype(int), minlength=100)
        chi_square = float(((counts - 2000) ** 2 / 2000).sum())
        assert chi_square < 160, name  # 99 degrees of freedom: 1 in 10 000
        for lag in (1, 2, 7):
            assert abs(np.corrcoef(u[lag:], u[:-lag])[0, 1]) < 0.01, (name, lag)
    together = np.stack([np.asarray(u) for u in streams.values()])
    assert np.abs(np.corrcoef(together) - np.eye(4)).max() < 0.01


# -- rollouts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "steps"),
    [("CartSafe-v0", 300), ("MountainCarContinuousSafe-v0", 60), ("Acrobot-v1", 60)],  # chaos: float32 drifts apart
)
def test_a_rollout_is_the_task_stepped_by_hand(name, steps):
    task = make(name)
    task.max_steps = steps
    policy = policy_for(task)
    x = policy.init(jax.random.normal(key(5), (policy.size,)))
    normalizer = identity(jnp.zeros(task.observation_size))._replace(std=jnp.full(task.observation_size, 0.5))
    keys = jax.random.split(key(1), 3)
    outcome, trajectory = rollout(task, policy, x, normalizer, keys, discount=0.9, record=True)
    layers, log_std = policy.unpack(x)
    for i in range(3):
        state = task.reset(jax.random.fold_in(keys[i], 2**31 - 1))
        returns = discounted = entropy = 0.0
        costs = np.zeros(len(task.cost_names))
        for t in range(steps):
            observation = task.observe(state)
            assert np.allclose(trajectory.observations[t, :, i], observation, atol=1e-3)
            head = forward(layers, normalise(normalizer, observation))
            step = task.step(state, trajectory.actions[t, ..., i], keys[i])
            assert float(trajectory.rewards[t, i]) == pytest.approx(float(step.reward), abs=1e-3)
            assert np.array_equal(trajectory.costs[t, :, i], step.costs)
            returns += float(step.reward)
            discounted += 0.9**t * float(step.reward)
            entropy += float(policy.entropy(head, log_std))
            costs += np.asarray(step.costs)
            state = step.state
            if bool(step.terminated):
                break
        assert float(outcome.length[i]) == t + 1 == int(trajectory.alive[:, i].sum())
        assert float(outcome.returns[i]) == pytest.approx(returns, rel=1e-3)
        assert float(outcome.discounted[i]) == pytest.approx(discounted, rel=1e-3)
        assert float(outcome.entropy[i]) == pytest.approx(entropy, rel=1e-3)
        assert np.array_equal(outcome.costs[:, i], costs)
    if name == "CartSafe-v0":  # it does go where that costs, and some episodes end before the others
        assert np.all(outcome.costs > 0) and len(set(outcome.length.tolist())) > 1


def test_equal_keys_are_common_random_numbers_and_columns_do_not_mix():
    task = make("CartSafe-v0")
    policy = policy_for(task)
    x = jax.random.normal(key(0), (policy.size, 4))
    keys = jax.random.split(key(1), 2)
    keys = jnp.concatenate([keys, keys])
    both, _ = rollout(task, policy, jnp.concatenate([x[:, :2], x[:, :2]], axis=1), identity(jnp.zeros(4)), keys)
    assert np.array_equal(both.returns[:2], both.returns[2:])
    other, _ = rollout(task, policy, x, identity(jnp.zeros(4)), keys)
    assert np.array_equal(other.returns[:2], both.returns[:2])
    assert not np.array_equal(other.returns[2:], both.returns[2:])


class Counted(CartPole):
    """CartPole that counts how often its step runs, all episodes at once."""

    name = "Counted-v0"
    calls = 0

    def step(self, state, action, key):
        jax.debug.callback(Counted.count)
        return super().step(state, action, key)

    @staticmethod
    def count():
        Counted.calls += 1


def test_episodes_that_all_end_early_cost_no_further_steps():
    task = Counted()
    policy = policy_for(task)
    push_right = jnp.zeros(policy.size).at[-1].set(50.0)
    outcome, _ = rollout(task, policy, push_right, identity(jnp.zeros(4)), jax.random.split(key(0), 1))
    jax.effects_barrier()
    assert float(outcome.length[0]) < 20
    assert Counted.calls <= 50  # one chunk of 500 steps


class TwoCosts(CartPole):
    """CartPole with two costs that are known in advance."""

    name = "TwoCosts-v0"
    max_steps = 7
    cost_names = ("time", "half")
    thresholds = (8.0, 3.0)
    cost_bounds = (0.0, 1.0)

    def step(self, state, action, key):
        step = super().step(state, action, key)
        return Step(step.state, step.reward, jnp.array([1.0, 0.5]), jnp.bool_(False))


def test_several_costs_and_both_signs_of_the_entropy_bounds():
    task = TwoCosts()
    problem = problem_for(task, mu=0.1, entropy_bounds=(1.0, 2.0))
    assert problem.names == ("time <= 8", "half <= 3", "entropy <= 2", "entropy >= 1")
    policy = policy_for(task)
    outcome, _ = rollout(task, policy, jnp.zeros(policy.size), identity(jnp.zeros(4)), jax.random.split(key(0), 2))
    y = problem.outputs(outcome)
    h = 7 * math.log(2)
    assert np.allclose(y[0], [-7 - 0.1 * h + 0.1 * 10.5, 7 - 8, 3.5 - 3, h - 2, 1 - h], atol=1e-5)


def test_problem_errors():
    with pytest.raises(ValueError, match="no costs"):
        problem_for(make("CartPole-v1"), 0.0, threshold=3.0)
    with pytest.raises(ValueError, match="2 costs"):
        problem_for(TwoCosts(), 0.0, threshold=(1.0, 2.0, 3.0))
    with pytest.raises(ValueError, match="low < high"):
        problem_for(make("CartPole-v1"), 0.0, entropy_bounds=(2.0, 1.0))


# -- one iteration -------------------------------------------------------------------------------------------------------


def careful(**settings):
    return PCCES.settings("paper", **CAREFUL | settings)


def concluded(f_trial, c_trial, f_k, c_k, k=100, lost=(0, 0), **settings):
    """Whether a trial point is accepted, from four episodes of it and of the incumbent: f, mean and sum of squares of c.
    `lost` of each failed."""
    chosen = careful(surrogate="updates", normalise=False, sigma0=0.3, **settings)
    learner = population.start(np.zeros(3), identity(np.zeros(2)), 1, chosen)
    learner = learner._replace(es=learner.es._replace(k=np.asarray(k)))
    trial, incumbent = (
        np.array([[f, c + sign * math.sqrt(s / 4)] for sign in (1, -1, 1, -1)])
        for (f, (c, s)) in ((f_trial, c_trial), (f_k, c_k))
    )
    trial[: lost[0]], incumbent[: lost[1]] = np.inf, np.inf
    proposal = population.Proposal(
        incumbent=estimate(incumbent),
        directions=np.zeros((4, 3)),
        weights=np.zeros(4),
        d=np.ones(3),
        x_trial=np.ones(3),
        guide=None,
        critic=learner.critic,
        seen=Seen(np.float64(0), np.zeros(2), np.zeros(2)),
    )
    policy = Policy(2, make("CartPole-v1").actions, ())
    after, metrics = population.conclude(policy, learner, proposal, trial, incumbent, chosen)
    return bool(metrics["success"]), after


FINE, BAD, WORSE = (-1.0, 0.0), (0.5, 0.0), (0.9, 0.0)


def test_acceptance_needs_sufficient_decrease():
    kappa, sigma = 0.005, 0.3
    enough = 0.5 * kappa * sigma**2
    assert concluded(-enough * 1.01, FINE, 0.0, FINE)[0]
    assert not concluded(-enough * 0.99, FINE, 0.0, FINE)[0]


def test_a_trial_point_gets_the_benefit_of_the_doubt_about_f():
    trial, incumbent = (np.array([[f, 0.0] for f in fs]) for fs in ((3.0, 5.0, 4.0, 8.0), (1.0, 4.0, 1.0, 6.0)))
    credited = partial(population.credited, trial, incumbent)
    error = np.std([2.0, 1.0, 3.0, 2.0], ddof=1) / 2
    assert credited(careful()) == pytest.approx(5.0 - 0.5 * error)
    apart = math.sqrt((trial[:, 0].var(ddof=1) + incumbent[:, 0].var(ddof=1)) / 4)
    assert credited(careful(doubt=1.0, common_random_numbers=False)) == pytest.approx(5.0 - apart)
    assert credited(PCCES.settings("paper-literal")) == 5.0
    failed = np.where(trial == 8.0, np.inf, trial)
    assert population.credited(failed, incumbent, careful()) == np.inf


def test_a_broken_trial_is_refused_however_good_unless_the_incumbent_is_broken_too():
    assert not concluded(-100.0, BAD, 0.0, FINE)[0]
    assert concluded(-1.0, BAD, 0.0, WORSE)[0]  # the merit falls
    assert not concluded(0.3, WORSE, 0.0, BAD)[0]
    assert not concluded(-100.0, BAD, 0.0, WORSE, restoration="none")[0]  # the paper's rule has no way back


def test_where_episodes_fail_fewer_of_them_are_progress():
    assert not concluded(-100.0, FINE, 0.0, FINE, lost=(1, 0))[0]
    assert concluded(100.0, BAD, 0.0, FINE, lost=(2, 3))[0]  # whatever else there is
    assert not concluded(-100.0, FINE, 0.0, FINE, lost=(3, 3))[0]
    assert concluded(100.0, FINE, 0.0, FINE, lost=(0, 1))[0]
    assert not concluded(0.0, FINE, 0.0, FINE, lost=(2, 3), restoration="none")[0]


def test_constraints_are_judged_by_their_upper_confidence_bound():
    spread = (-0.1, 3.0)  # mean -0.1, variance 3 / 3, four episodes: standard error 0.5
    assert not concluded(-1.0, spread, 0.0, FINE, constraint_z=2.0)[0]
    assert concluded(-1.0, spread, 0.0, FINE, constraint_z=0.0)[0]


def test_the_first_iterations_only_collect():
    success, after = concluded(-1.0, FINE, 0.0, FINE, k=3, warm_up=4)
    assert not success
    assert float(after.es.sigma) == pytest.approx(0.3)
    assert np.array_equal(after.es.x, np.zeros(3))
    assert float(np.abs(after.strategy.archive[0]).sum()) > 0


def test_sigma_es_follows_sigma_only_when_tied():
    for how, expected in (("tied", 1 / 1.05), ("fixed", 1.0)):
        assert float(concluded(1.0, FINE, 0.0, FINE, sigma_es=how)[1].es.sigma_es) == pytest.approx(expected)


def test_numpy_and_jax_take_the_same_decisions():
    chosen = careful(population=8, m=1, warm_up=1, sigma0=1.0)  # larger bases are the same up to their vectors' signs
    policy = Policy(2, make("CartPole-v1").actions, (3,))
    rng = np.random.default_rng(0)
    x0 = rng.normal(size=policy.size).astype(np.float32)
    results = []
    for xp in (np, jnp):
        learner = population.start(xp.asarray(x0), identity(xp.zeros(2, dtype=xp.float32)), 1, chosen)
        generator = np.random.default_rng(1)
        successes = []
        for _ in range(60):
            z = xp.asarray(generator.normal(size=(4, policy.size + chosen.m)).astype(np.float32))
            directions, points = population.population(learner, z, chosen)

            def outputs(x, xp=xp):
                return xp.stack([xp.sum((x - 1) ** 2, axis=-1), xp.sum(x, axis=-1) - 1], axis=-1)

            def exact(x, xp=xp, outputs=outputs):
                return xp.stack([outputs(x)] * 8)  # eight episodes that are all alike

            samples = exact(learner.es.x)
            incumbent = estimate(samples)
            weights, d = population.direction(learner, directions, outputs(points), chosen)
            x_trial = algorithm.trial_point(learner.es, d, chosen.rule)
            seen = Seen(*(xp.asarray(v, dtype=xp.float32) for v in (3.0, [1.0, 2.0], [4.0, 5.0])))
            guide = xp.asarray(generator.normal(size=policy.size).astype(np.float32))
            proposal = population.Proposal(incumbent, directions, weights, d, x_trial, guide, learner.critic, seen)
            learner, metrics = population.conclude(policy, learner, proposal, exact(x_trial), samples, chosen)
            successes.append(bool(metrics["success"]))
        results.append((successes, np.asarray(learner.es.x), float(learner.es.sigma)))
    assert results[0][0] == results[1][0]
    assert any(results[0][0])
    assert np.allclose(results[0][1], results[1][1], atol=2e-3)
    assert results[0][2] == pytest.approx(results[1][2], rel=1e-4)


# -- training ------------------------------------------------------------------------------------------------------------


def test_training_learns_and_certifies():
    run = train("CartPole-v0", steps=60_000, hidden=(16,), critic_hidden=(16,), certify_episodes=200, seed=3)
    assert run.certificate.holds
    assert run.final["return"] > 150
    assert run.metrics["steps"][-1] > run.metrics["steps"][0]
    assert set(run.metrics) >= {"iteration", "return", "entropy", "length", "sigma", "success", "steps", "seconds"}


@pytest.mark.parametrize(
    "change",
    [
        BATCH,
        POPULATION,
        POPULATION | {"preset": "paper-literal"},
        POPULATION | CAREFUL | {"metric_episodes": 8, "initial_tries": 4, "surrogate": "updates"},
        POPULATION | {"surrogate": "none", "shaping": "standardised", "sigma_es": "fixed"},
    ],
)
def test_presets_and_surrogates_run_on_both_kinds_of_constraint(change):
    run = train("CartSafe-v0", **change | {"iterations": 6})
    assert "cost_off_centre" in run.metrics
    assert {0.0, 1.0} >= set(run.metrics["over_threshold"])
    assert len(run.metrics["return"]) == 6


def test_seeds_together_are_each_seed_alone():
    together = train_seeds("CartPole-v0", [4, 5], **TINY)
    alone = train("CartPole-v0", seed=5, **TINY)
    # After the first accepted step rounding decides between actions, and episodes go their own ways.
    assert together[1].metrics["return"][:3] == pytest.approx(alone.metrics["return"][:3], rel=1e-4)
    assert not np.allclose(together[0].metrics["return"], together[1].metrics["return"])


def test_runs_that_differ_in_their_seeds_alone_are_compiled_once():
    one, other, stricter = (
        prepare("CartSafe-v0", [seed], **TINY, **given) for seed, given in ((0, {}), (1, {}), (1, {"threshold": 0.01}))
    )
    assert one.engine._iterations is other.engine._iterations is not stricter.engine._iterations


@pytest.mark.slow
def test_an_interrupted_run_resumes_to_the_same_policy(tmp_path):
    given = TINY | {"iterations": 25, "report": False}
    whole = train("CartSafe-v0", out=tmp_path / "whole", **given)

    def stop(runs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("CartSafe-v0", out=tmp_path / "cut", callback=stop, **given)
    assert load(tmp_path / "cut").x is None
    again = train("CartSafe-v0", out=tmp_path / "cut", resume=True, **given)
    assert np.array_equal(again.x, whole.x)
    assert again.metrics["return"] == whole.metrics["return"]
    assert again.final == whole.final
    loaded = load(tmp_path / "cut")
    assert np.array_equal(loaded.x, whole.x)
    assert loaded.certificate == whole.certificate
    assert loaded.words() == whole.words()
    assert whole.words() in repr(loaded) and len(repr(loaded)) < 600  # not the whole course of training


def test_a_run_that_goes_on_for_longer_ends_as_if_it_had_been_as_long_from_the_start(tmp_path):
    def trained(folder, iterations, **given):
        given |= SIMPLE | {"iterations": iterations, "report": False}
        return train("CartSafe-v0", out=tmp_path / folder, **given)

    whole = trained("whole", 22)
    first = trained("longer", 12)
    longer = trained("longer", 22, resume=True)
    assert len(first.metrics["return"]) == 12 and longer.metrics["return"] == whole.metrics["return"]
    assert np.array_equal(longer.x, whole.x) and longer.final == whole.final
    assert load(tmp_path / "longer").words() == whole.words()
    assert trained("longer", 12, resume=True).final == longer.final  # it is as long as that: nothing to do

    def stop(runs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained("longer", 40, resume=True, callback=stop)
    cut = load(tmp_path / "longer")
    assert cut.x is None and cut.certificate is None
    done = len(cut.metrics["return"])
    with pytest.raises(ValueError, match=f"has {done} iterations: with iterations={done} it ends here"):
        trained("longer", 22, resume=True)
    assert len(trained("longer", done, resume=True).metrics["return"]) == done


def test_a_run_goes_on_from_its_checkpoint_and_only_with_all_of_its_metrics(tmp_path):
    def resumed(iterations, **given):
        given |= {"report": False, "progress": False, "resume": (tmp_path / "run").exists()}
        return train("CartSafe-v0", out=tmp_path / "run", **(SIMPLE | {"iterations": iterations}), **given)

    resumed(6)
    file = tmp_path / "run" / "metrics.csv"
    lines = file.read_bytes().splitlines(keepends=True)
    before = {path.name: path.read_bytes() for path in file.parent.iterdir() if path != file}
    for content, why in (
        (lines[:5], "has not all of the 6 iterations before the checkpoint"),
        (lines[:1], "has not all of the 6 iterations"),
        (lines[:3] + lines[4:], "has not all of the 6 iterations"),
        ([b"\r\n"], "has not all of the 6 iterations"),
        ([b"garbage\n"], r"is damaged \(it lacks the columns iteration, return"),
        ([*lines[:6], lines[6][:9]], r"is damaged \(not every line has \d+ numbers"),
        ([b"\xff\x00"], "is damaged"),
        ([], r"is damaged \(it is empty\)"),
        (None, "is missing"),
    ):
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(b"".join(content))
        with pytest.raises(
            ValueError, match=rf"metrics\.csv {why}.*: this run cannot continue, train again in another folder"
        ):
            resumed(8)
    assert before == {path.name: path.read_bytes() for path in file.parent.iterdir() if path != file}
    file.write_bytes(b"".join([*lines, lines[-1].replace(b"5", b"6", 1)]))  # killed before the checkpoint was written
    longer = resumed(8)
    whole = train("CartSafe-v0", **(SIMPLE | {"iterations": 8}))
    assert longer.metrics["iteration"] == list(range(8)) and longer.metrics["return"] == whole.metrics["return"]
    assert np.array_equal(longer.x, whole.x)


def test_metrics_of_another_version_keep_their_columns(tmp_path):
    train("CartSafe-v0", out=tmp_path / "run", report=False, **SIMPLE)
    file = tmp_path / "run" / "metrics.csv"
    file.write_text(file.read_text().replace("sigma_es", "spread"))
    found = train(
        "CartSafe-v0", out=tmp_path / "run", report=False, resume=True, **(SIMPLE | {"iterations": 8})
    ).metrics
    assert {len(column) for column in found.values()} == {8}
    assert np.isnan(found["sigma_es"]).tolist() == [True] * 6 + [False] * 2
    assert np.isnan(found["spread"]).tolist() == [False] * 6 + [True] * 2
    assert len(load(tmp_path / "run").metrics["return"]) == 8


def test_a_run_stopped_before_its_first_iteration_has_no_metrics_yet(tmp_path, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DeviceEngine, "advance", stop)
        with pytest.raises(KeyboardInterrupt):
            train("CartSafe-v0", out=tmp_path / "run", report=False, **TINY)
    assert load(tmp_path / "run").metrics["iteration"] == []
    run = train("CartSafe-v0", out=tmp_path / "run", report=False, resume=True, **TINY)
    assert len(run.metrics["return"]) == 6


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (dict(initial_tries=0), "initial_tries must be at least 1, got 0"),
        (dict(d_max=-1), "d_max must be positive, got -1"),
        (dict(beta=0), "beta must be positive"),
        (dict(rho=-1), "rho must not be negative, got -1"),
        (dict(warm_up=-1), "warm_up must not be negative"),
        (dict(l2=-1e-4), "l2 must not be negative"),
        (dict(eps_c=-1), "eps_c must not be negative"),
        (dict(constraint_z=-1), "constraint_z must not be negative"),
        (dict(freeze=3), r"freeze must lie in \[0, 1\], got 3"),
        (dict(mu=math.inf), "mu must be a finite number, got inf"),
        (dict(doubt=math.nan), "doubt must be a finite number, got nan"),
        (dict(kappa="small"), "kappa must be a finite number, got 'small'"),
        (dict(sigma0=100), r"sigma0 must lie between sigma_min and sigma_max \(0.001 and 0.1\), got 100"),
        (dict(sigma0=0.01, sigma_min=0.05), "sigma0 must lie between sigma_min and sigma_max"),
        (dict(hidden=(10, 0)), r"hidden must be whole numbers of at least 1, such as \(32, 32\), got \(10, 0\)"),
        (dict(hidden=8), "hidden must be whole numbers of at least 1"),
        (dict(hidden=(8.0,)), "hidden must be whole numbers of at least 1"),
        (dict(iterations=2.0), r"iterations must be a whole number, got 2\.0"),
        (dict(population=8.0), r"population must be a whole number, got 8\.0"),
        (dict(normalise="no"), "normalise must be True or False, got 'no'"),
        (dict(shaping=3), "shaping must be text, got 3"),
        (dict(seed=1.5), r"a seed must be a whole number from 0 to 2\^63 - 1, got 1\.5"),
        (dict(certify_episodes=50.0), r"certify_episodes must be a whole number, got 50\.0"),
        (dict(entropy_bounds=5), r"entropy_bounds must be two numbers, such as \(0, 100\), got 5"),
        (dict(entropy_bounds=(5,)), r"entropy_bounds must be two numbers, .* got \(5,\)"),
        (dict(entropy_bounds=(9, 5)), "entropy bounds must be low < high, got 9 and 5"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_any_work(wrong, why, tmp_path):
    with pytest.raises(ValueError, match=why):
        train("CartSafe-v0", out=tmp_path / "run", **(POPULATION | wrong))
    assert not (tmp_path / "run").exists()


def test_settings_at_the_edge_of_what_makes_sense_are_taken():
    edge = PCCES.settings("paper", sigma0=0.1, warm_up=0, rho=0, l2=0, eps_c=0, constraint_z=0, freeze=0, mu=0)
    assert edge.sigma0 == edge.sigma_max and PCCES.settings(hidden=()).hidden == ()
    of_numpy = PCCES.settings(iterations=np.int64(5), mu=np.float32(0.5), hidden=[np.int64(4), 3])
    assert of_numpy == PCCES.settings(iterations=5, mu=0.5, hidden=(4, 3)) and type(of_numpy.iterations) is int


def test_what_cannot_be_trained_is_refused_before_any_work(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'CartSafe-v0'"):
        train("CartSaef-v0")
    with pytest.raises(ValueError, match="even number"):
        train("CartSafe-v0", preset="paper", population=7)
    with pytest.raises(
        ValueError, match=r"with the preset default: .* presets paper and paper-literal try a population"
    ):
        train("CartSafe-v0", population=8)
    with pytest.raises(ValueError, match="no costs"):
        train("CartPole-v1", threshold=3)
    with pytest.raises(TypeError, match="sigma0"):
        train("CartPole-v1", sigma_0=0.1)
    with pytest.raises(ValueError, match="unknown algorithm"):
        train("CartPole-v1", algorithm="sgd")
    with pytest.raises(ValueError, match="unknown engine"):
        train("CartPole-v1", engine="fpga")
    train("CartPole-v0", out=tmp_path / "run", report=False, **TINY)
    with pytest.raises(FileExistsError, match="exists already"):
        train("CartPole-v0", out=tmp_path / "run", **TINY)
    with pytest.raises(ValueError, match=r"CartPole-v0.*CartSafe-v0"):
        train("CartSafe-v0", out=tmp_path / "run", resume=True, **TINY)
    with pytest.raises(ValueError, match=r"settings\.kappa"):
        train("CartPole-v0", out=tmp_path / "run", resume=True, kappa=1.0, **TINY)
    with pytest.raises(FileNotFoundError, match="no run"):
        train("CartPole-v0", out=tmp_path / "nowhere", resume=True, **TINY)


def test_the_policy_acts_as_the_environment_expects():
    gymnasium = pytest.importorskip("gymnasium")
    for name in ("CartSafe-v0", "Pendulum-v1"):
        run = train(name, **TINY)
        env = gymnasium.make(f"pcces.envs:pcces/{name}")
        observation, _ = env.reset(seed=0)
        assert env.action_space.contains(run.policy(observation))
        observation, *_ = env.step(run.policy(observation, np.random.default_rng(0)))
        assert env.observation_space.contains(observation)
        with pytest.raises(ValueError, match="shape"):
            run.policy(np.zeros(9))


# -- certificates --------------------------------------------------------------------------------------------------------


def fixed_policy(task, right):
    """A policy that always pushes one way (logit `right`)."""
    policy = policy_for(task)
    return policy, np.zeros(policy.size, np.float32) + np.eye(policy.size, dtype=np.float32)[-1] * right


def fresh_episodes(task, policy):
    """What plays them, as certificates take it."""
    return DeviceArena(task, policy, problem_for(task, 0.0), 1.0).fresh


def test_an_unsafe_policy_is_refused_and_a_safe_one_certified():
    task = make("CartSafe-v0")
    policy, x = fixed_policy(task, 0.0)  # coin flips stay near the middle most of the time, but not always
    normalizer = frozen(np.zeros(4, np.float32), np.ones(4, np.float32))
    play = fresh_episodes(task, policy)
    mean_cost = float(play(x, normalizer, 4000, 7).costs.mean())
    for threshold, expected in ((mean_cost + 8, True), (mean_cost - 1, False)):
        problem = problem_for(task, 1e-4, threshold)
        outcome = play(x, normalizer, 1000, 1)
        certificate = certify.certify(problem, outcome, certify.ranges(task, policy, problem, x))
        assert certificate.holds is expected
        assert certificate.method == "betting"
        looks = [certify.certify(problem, outcome, certify.ranges(task, policy, problem, x), look=n) for n in (1, 6)]
        bounds = np.array([each.upper_bounds for each in (certificate, *looks)])  # on a grid
        assert np.all(np.diff(bounds, axis=0) >= 0) and np.all(bounds[0] < bounds[-1])  # they share the confidence


@pytest.mark.parametrize("threshold", [0.1, 0.7, 2.3, 64.3872])
def test_the_most_that_an_episode_can_cost_is_in_range_however_it_is_rounded(threshold):
    task = TwoCosts()
    policy, x = fixed_policy(task, 0.0)
    normalizer = frozen(np.zeros(4, np.float32), np.ones(4, np.float32))
    problem = problem_for(task, 0.0, threshold=(threshold, 100.0))
    outcome = fresh_episodes(task, policy)(x, normalizer, 64, 1)
    certificate = certify.certify(problem, outcome, certify.ranges(task, policy, problem, x))
    assert np.all(outcome.costs[0] == 7) and certificate.holds is (threshold > 7)


def test_entropy_bounds_are_certified_too():
    task = make("CartPole-v0")
    policy, x = fixed_policy(task, 0.0)
    normalizer = frozen(np.zeros(4, np.float32), np.ones(4, np.float32))
    play = fresh_episodes(task, policy)
    entropy = float(play(x, normalizer, 2000, 7).entropy.mean())  # log 2 a step
    for bounds, expected in (((0.0, entropy + 2), True), ((0.0, entropy - 1), False), ((entropy + 1, 200.0), False)):
        problem = problem_for(task, 0.0, entropy_bounds=bounds)
        outcome = play(x, normalizer, 1000, 1)
        assert certify.certify(problem, outcome, certify.ranges(task, policy, problem, x)).holds is expected


def test_the_best_iterate_that_can_be_certified_is_returned():
    """Three candidates with known costs: the best return breaks the limit, the second keeps it."""
    task = TwoCosts()
    problem = problem_for(task, 0.0, threshold=(5.0, 100.0), entropy_bounds=(-math.inf, math.inf))
    policy = policy_for(task)
    truth = {0.0: (10.0, 6.0), 1.0: (8.0, 4.0), 2.0: (3.0, 1.0)}  # x[0] -> return, cost

    def play(x, normalizer, episodes, seed):
        returns, cost = truth[float(x[0])]
        rng = np.random.default_rng(seed)
        noise = rng.uniform(-0.5, 0.5, episodes)
        zeros = np.zeros(episodes)
        return Outcome(returns + noise, zeros, np.stack([cost + noise, zeros]), zeros, zeros + 7)

    candidates = Candidates(policy.size, 4, 3)
    for marker, (returns, cost) in truth.items():
        x = np.full(policy.size, marker, np.float32)
        # each was lucky when the search saw it
        lucky = Estimate(np.float64(8), np.array([-returns, cost - 1.5 - 5, -1.0]), np.array([0.5, 0.5, 0.0]))
        candidates.add(x, np.zeros(4), np.ones(4), lucky, moved=True)
    x, _, certificate, *_ = selection.choose(task, policy, problem, play, candidates, 400, seed=0)
    assert float(x[0]) == 1.0
    assert certificate.holds

    hopeless = problem_for(task, 0.0, threshold=(0.5, 100.0), entropy_bounds=(-math.inf, math.inf))
    x, _, certificate, *_ = selection.choose(task, policy, hopeless, play, candidates, 400, seed=0)
    assert not certificate.holds
    assert float(x[0]) == 2.0  # the closest
    assert certificate.samples == 400  # what is over its limit is not played for longer


def test_iterates_are_looked_at_on_the_same_episodes_and_tested_on_others():
    """Where episodes differ by a hundred times more than iterates do, the best is found all the same."""
    task = TwoCosts()
    problem = problem_for(task, 0.0, threshold=(5.0, 100.0), entropy_bounds=(-math.inf, math.inf))
    policy, tests = policy_for(task), []
    for seed in range(5):
        for number in (3, 15):
            played = []

            def play(x, normalizer, episodes, seed, played=played):
                played.append(seed)
                returns = float(x[0]) + np.random.default_rng(seed).normal(0, 100, episodes)
                zeros = np.zeros(episodes)
                return Outcome(returns, zeros, np.zeros((2, episodes)), zeros, zeros + 7)

            candidates = Candidates(policy.size, 4, 3)
            seen = Estimate(np.float64(8), np.array([0.0, -5.0, -100.0]), np.array([1e4, 0.0, 0.0]))
            for marker in range(number):
                x = np.full(policy.size, marker % 3, np.float32)
                candidates.add(x, np.zeros(4), np.ones(4), seen, moved=True)
            x, *_ = selection.choose(task, policy, problem, play, candidates, 400, seed=100 * seed)
            assert float(x[0]) == 2.0
            *looked, tested = played
            assert len(set(looked)) == 1 and tested not in looked
            tests.append(tested)
    assert tests[::2] == tests[1::2] and len(set(tests)) == 5  # the same, however many there were to look at


def test_iterates_that_a_look_does_not_tell_apart_are_judged_by_all_their_episodes():
    """Failures too rare to be seen in one look were seen, or not, in training: the gain must be more than they may cost."""
    task = TwoCosts()
    problem = problem_for(task, 0.0, threshold=(5.0, 100.0), entropy_bounds=(-math.inf, math.inf))
    policy = policy_for(task)
    trained = {0.0: 2000, 1.0: 32, 2.0: 32}  # episodes of: one that never failed, a new one, one that does fail

    def choose(gain):
        def play(x, normalizer, episodes, seed):
            zeros = np.zeros(episodes)
            returns = zeros + 200 + gain * (x[0] == 1)
            returns[: 4 * int(x[0] == 2)] -= 50
            return Outcome(returns, zeros, np.zeros((2, episodes)), zeros, zeros + 7)

        candidates = Candidates(policy.size, 4, 3)
        for marker, n in trained.items():
            x = np.full(policy.size, marker, np.float32)
            squares = np.array([n * 50.0 * (marker == 2), 0.0, 0.0])
            returns = float(play(x, None, 200, 0).returns.mean())
            candidates.add(
                x, np.zeros(4), np.ones(4), Estimate(np.float64(n), np.array([-returns, -5.0, -100.0]), squares), True
            )
        return float(selection.choose(task, policy, problem, play, candidates, 400, seed=0)[0][0])

    assert choose(0.001) == 0.0
    assert choose(1.0) == 1.0


@pytest.mark.parametrize(("disaster", "holds"), [(0.0, True), (300.0, True), (2e4, False)])
def test_a_disaster_that_was_seen_in_training_is_not_forgotten_in_the_test(disaster, holds):
    task = type("Unbounded", (TwoCosts,), {"cost_bounds": None})()  # so that the bound is Student's
    problem = problem_for(task, 0.0, threshold=(5.0, 100.0), entropy_bounds=(-math.inf, math.inf))
    policy = policy_for(task)

    def play(x, normalizer, episodes, seed):
        zeros = np.zeros(episodes)
        return Outcome(zeros, zeros, np.zeros((2, episodes)), zeros, zeros + 7)

    candidates = Candidates(policy.size, 4, 3)
    y = np.tile([0.0, -5.0, -100.0], (64, 1))
    y[10, 1] += disaster
    candidates.add(np.zeros(policy.size), np.zeros(4), np.ones(4), estimate(y), True)
    certificate = selection.choose(task, policy, problem, play, candidates, 400, seed=0)[2]
    assert certificate.holds is holds and certificate.samples >= 400


def test_a_run_that_ends_infeasible_says_so():
    run = train("CartSafe-v0", threshold=0.01, **TINY)
    assert not run.certificate.holds
    assert run.words().startswith("NOT CERTIFIED")


def test_candidates_keep_the_best_when_there_are_many():
    candidates = Candidates(1, 1, 2)
    for i in range(300):
        e = Estimate(np.float64(4), np.array([-float(i == 50), -1.0]), np.zeros(2))
        candidates.add(np.full(1, i), np.zeros(1), np.ones(1), e, moved=True)
    assert len(candidates) <= 150 and len(candidates.course_n) == 300
    assert candidates.x[candidates.order(1.0)[0], 0] == 50
    assert candidates.x[-1, 0] == 299


def test_a_candidate_known_for_longer_stands_before_one_of_few_episodes():
    candidates = Candidates(1, 1, 1)
    noisy, known, few = (
        Estimate(np.float64(n), np.array([f]), np.array([squares]))
        for n, f, squares in ((32, 5.0, 64.0), (320, -1.0, 0.0), (8, -1.01, 0.0))
    )
    for e in (noisy, known, few):
        candidates.add(np.zeros(1), np.zeros(1), np.ones(1), e, moved=True)
    assert list(candidates.order(1.0)) == [1, 2, 0]


def test_samples_are_compared_with_what_they_break_only_where_the_merit_is_asked_for():
    learner = population.start(np.zeros(1), identity(np.zeros(2)), 1, careful())
    directions = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    y = np.array([[1.0, -3.0], [1.0, -1.0], [1.0, 0.5], [0.0, 2.0]])
    fitness = {"merit": y[:, 0] + 3 * np.clip(y[:, 1], 0, None), "none": y[:, 0]}
    for how, f in fitness.items():
        chosen = careful(population=4, shaping="raw", rho=3.0, restoration=how)
        weights, d = population.direction(learner, directions, y, chosen)
        np.testing.assert_allclose(weights, population.make_strategy(chosen).weights(f))
        np.testing.assert_allclose(d, weights @ directions)


class Weighed(CartPole):
    """CartPole that also feels its weight."""

    name = "Weighed-v0"
    observation_size = 5

    def observe(self, state):
        return jnp.append(super().observe(state), 9.81)


def test_what_never_changes_is_left_alone_and_what_is_reported_is_without_the_penalty_on_weights():
    task, chosen = Weighed(), careful(population=32, initial_tries=32, episodes=32, metric_episodes=32, l2=1.0)
    policy, problem = policy_for(task), problem_for(task, chosen.mu)
    engine = DeviceEngine(population.program(DeviceArena(task, policy, problem, chosen.discount), chosen), [0])
    _, metrics = engine.advance(engine.start(), 5)
    assert np.all(metrics["std"][..., -1] == 1) and not np.any(metrics["std"][..., :-1] == 1)
    assert np.allclose(metrics["mean"][..., -1], 9.81)
    expected = -metrics["return"] - chosen.mu * metrics["entropy"]
    assert np.allclose(metrics["estimate"].mean[..., 0], expected, rtol=1e-4)
    assert np.all(metrics["f"] > expected + 1)  # which is what the search minimises


def test_a_checkpoint_of_another_layout_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "LAYOUT", 1)
    train("CartSafe-v0", out=tmp_path, progress=False, report=False, **TINY)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="another version of pcces"):
        train("CartSafe-v0", out=tmp_path, progress=False, report=False, resume=True, **{**TINY, "iterations": 7})
