"""Budgets of environment steps: for every algorithm, counted as people count them."""

import json

import numpy as np
import pytest

import pcces
from pcces.rl.folder import read_metrics

FEW = {"certify_episodes": 20, "progress": False, "report": False}
SMALL_EPOCH = {"epoch_steps": 1000, "hidden": (8,), "critic_hidden": (8,), "passes": 2, "minibatches": 2}
SMALL_POPULATION = {"population": 8, "initial_tries": 4, "metric_episodes": 4}


@pytest.mark.parametrize(
    ("algorithm", "settings", "iteration"),
    [
        ("pcces", SMALL_EPOCH | {"bold": 0.0}, 900),
        ("ppo-lag", SMALL_EPOCH, 900),
        ("cpo", SMALL_EPOCH, 900),
        ("openes", SMALL_POPULATION, None),
    ],
)
def test_training_ends_with_its_budget(algorithm, settings, iteration):
    run = pcces.train("CartSafe-v0", algorithm, steps=5000, **settings, **FEW)
    played = np.diff([0.0, *run.metrics["steps"]])
    assert 5000 - played.max() <= run.metrics["steps"][-1] <= 5000 + played.max() / 2
    if iteration:
        assert len(played) in (4, 5) and (played[1:] == iteration).all()
        assert run.config["settings"]["iterations"] == 5  # what rates are annealed over
    assert run.final["certification_steps"] >= run.certificate.samples


def test_steps_of_random_first_policies_are_counted():
    """CartPole's reward is 1 a step: so many were played as rewards were earned."""
    few = {
        "preset": "paper",
        "iterations": 1,
        "population": 4,
        "member_episodes": 1,
        "episodes": 1,
        "metric_episodes": 1,
    }
    lengths = []
    for tries in (1, 64):
        run = pcces.train("CartPole-v0", initial_tries=tries, normalise=False, **few, **FEW)
        lengths.append(run.metrics["steps"][0])
    assert lengths[1] - lengths[0] > 64 * 4 * 8  # the shortest episode has eight steps


def test_a_run_goes_on_to_a_larger_budget(tmp_path):
    out = tmp_path / "run"
    pcces.train("CartSafe-v0", "ppo-lag", steps=3000, out=out, **SMALL_EPOCH, **FEW)
    longer = pcces.train("CartSafe-v0", "ppo-lag", steps=6000, out=out, resume=True, **SMALL_EPOCH, **FEW)
    assert longer.metrics["steps"][-1] > 5000
    assert json.loads((out / "config.json").read_text())["steps"] == 6000
    assert read_metrics(out / "metrics.csv")["steps"] == longer.metrics["steps"]
    again = pcces.train("CartSafe-v0", "ppo-lag", steps=6000, out=out, resume=True, **SMALL_EPOCH, **FEW)
    assert again.metrics["steps"] == longer.metrics["steps"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"steps": 5000, "iterations": 3}, "not both"),
        ({"steps": 100}, "less than one iteration"),
        ({"steps": float("nan")}, "number of environment steps"),
    ],
)
def test_budgets_that_make_no_sense_are_refused(asked, words):
    with pytest.raises(ValueError, match=words):
        pcces.train("CartSafe-v0", "ppo-lag", **asked, **FEW)
