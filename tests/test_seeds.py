"""Any whole number is a seed, from the first iteration to the certificate."""

import jax
import numpy as np
import pytest
from small import FEW

import pcces
from pcces.engines.keys import key, keys
from pcces.rl.film import film
from pcces.rl.seeds import certify_seed

LARGE = [20241118, 2**32 - 1, 2**32 + 5, 2**63 - 1]


def test_keys_of_old_seeds_are_what_they_were_and_new_ones_differ_from_them():
    old = [jax.random.key_data(jax.random.key(np.uint32(seed), impl=key(0).dtype._impl)) for seed in (0, 7, 2**32 - 1)]
    new = [jax.random.key_data(key(seed)) for seed in (0, 7, 2**32 - 1)]
    assert np.array_equal(old, new) and np.array_equal(new[1], [0, 7])
    assert np.array_equal(jax.random.key_data(keys([7, 2**32 + 7])), [[0, 7], [1, 7]])
    assert jax.random.bits(key(7)) != jax.random.bits(key(2**32 + 7)) != jax.random.bits(key(2**33 + 7))


def test_tests_of_different_seeds_are_on_different_episodes():
    seeds = [0, 1, 4_284_967, 4_284_968, *LARGE, 2**63 - 2, 2**54, 2**54 + 1]
    made = [certify_seed(seed) for seed in seeds]
    assert len(set(made)) == len(seeds) and all(0 < seed < 2**63 - 1000 for seed in made)
    assert made[1] == 10_001_000 and certify_seed(20241118) == 10_000_000 + 20241118 * 1000


@pytest.mark.parametrize("seed", LARGE)
def test_a_training_with_a_large_seed_ends_with_its_certificate_and_can_be_looked_at(seed, tmp_path):
    run = pcces.train("CartPole-v0", seed=seed, out=tmp_path / "run", report=False, **FEW)
    assert run.certificate is not None and pcces.load(tmp_path / "run").config["seed"] == seed
    assert run.evaluate(4, seed=seed)["return"] > 0 and film(run, seed=seed).steps > 0
    again = pcces.train("CartPole-v0", seed=seed, out=tmp_path / "run", resume=True, report=False, **FEW)
    assert np.array_equal(again.x, run.x)


def test_so_does_one_on_workers():
    (run,) = pcces.train_seeds("CartPole-v1", [2**63 - 1], engine="local", workers=1, **FEW)
    assert run.certificate is not None and run.evaluate(4, seed=2**63 - 1)["return"] > 0


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "1"])
def test_what_is_no_seed_is_refused_before_any_work(seed, tmp_path):
    with pytest.raises(ValueError, match=r"a seed must be a whole number from 0 to 2\^63 - 1, got"):
        pcces.train("CartPole-v0", seed=seed, out=tmp_path / "run", **FEW)
    assert not (tmp_path / "run").exists()
