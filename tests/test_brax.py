"""Brax's environments as tasks of the device engine."""

import importlib.util

import numpy as np
import pytest
from small import FEW

import pcces
from pcces.envs import registry
from pcces.envs.lookup import resolve
from pcces.rl.request import GAUSSIAN, slow_settings
from pcces.rl.settings import CALM

jax = pytest.importorskip("jax")
brax = pytest.mark.skipif(not importlib.util.find_spec("brax"), reason="needs the extra brax")
TINY = FEW | dict(certify_episodes=8)


def test_without_brax_its_tasks_are_not_listed_and_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not any(name.startswith("brax/") for name in registry.tasks())
    with pytest.raises(ImportError, match=r"brax/ant needs the extra 'brax': pip install 'pcces\[rl,brax\]'"):
        pcces.train("brax/ant", **TINY)


@brax
def test_what_there_is_not_is_refused_with_what_there_is():
    with pytest.raises(ValueError, match="unknown environment of Brax 'horse'; there are ant, hopper"):
        resolve("brax/horse")
    with pytest.raises(ValueError, match="unknown backend of Brax 'fast'; there are spring"):
        resolve("brax/ant-fast")
    with pytest.raises(ValueError, match="brax/ant only runs on the device engine"):
        resolve("brax/ant", "local")


@brax
def test_brax_starts_calm_and_within_its_entropy_bounds():
    assert set(registry.BRAX) <= set(pcces.envs.tasks())
    for name in registry.BRAX:
        task, engine = resolve(name)
        first = slow_settings(task, engine, task.entropy_bounds, CALM)
        entropy = task.max_steps * task.actions.size * (first.get("log_std", 0.0) + GAUSSIAN)
        assert engine == "device" and first["initial_tries"] == 1
        assert task.entropy_bounds[0] < entropy < task.entropy_bounds[1]


@brax
@pytest.mark.slow
@pytest.mark.parametrize("name", registry.BRAX)
def test_the_sizes_written_down_are_those_of_brax(name):
    import jax.numpy as jnp

    task = pcces.envs.make(name)
    key = jax.random.key(0)
    before = jax.eval_shape(task.reset, key)
    after = jax.eval_shape(task.step, before, jnp.zeros(task.actions.size), key)

    def shapes(tree):
        return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)

    assert jax.eval_shape(task.observe, before).shape == (task.observation_size,)
    assert shapes(after.state) == shapes(before) and after.terminated.dtype == bool
    from brax import envs

    assert envs.get_environment(name.removeprefix("brax/"), backend="spring").action_size == task.actions.size


@brax
@pytest.mark.slow
def test_an_episode_is_the_one_brax_plays_without_a_reset_at_its_end():
    """A policy that does nothing, stepped by Brax itself, falls over after as many steps and as much reward."""
    import jax.numpy as jnp
    from brax import envs

    from pcces.rl.normalizer import identity
    from pcces.rl.policy import Policy
    from pcces.rl.rollout import rollout

    task = pcces.envs.make("brax/inverted_pendulum")
    policy = Policy(task.observation_size, task.actions, (4,))
    keys = jax.random.split(jax.random.key(3), 4)
    x, normalizer = jnp.zeros(policy.size), identity(jnp.zeros(4))
    outcome = jax.jit(lambda keys: rollout(task, policy, x, normalizer, keys, greedy=True)[0])(keys)
    env = envs.get_environment("inverted_pendulum", backend="spring")
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    for number, key in enumerate(keys):
        state = reset(jax.random.fold_in(key, 2**31 - 1))  # the key a rollout starts an episode with
        length = 0
        while not state.done:
            state, length = step(state, jnp.zeros(1)), length + 1
        assert abs(length - outcome.length[number]) <= 1 and 5 < length < 1000
        assert outcome.returns[number] == outcome.length[number]


@brax
@pytest.mark.slow
def test_training_on_brax_is_written_and_loaded_like_any_other(tmp_path):
    run = pcces.train("brax/inverted_pendulum", out=tmp_path / "run", seed=1, normalise=False, **TINY)
    assert run.certificate.holds and run.config["engine"] == "device" and 5 < run.final["return"] <= 1000
    loaded = pcces.load(tmp_path / "run")
    assert np.array_equal(loaded.policy(np.zeros(4)), run.policy(np.zeros(4)))
