"""`pcces tune`: what is varied, who is dropped, what is said, and that it goes on where it was stopped."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import pcces
from pcces.cli import app
from pcces.policies import prepare, tuning
from pcces.rl import tuning as module
from pcces.rl.progress import chosen


class Played:
    """Stands for trainings: what their policies return is a function of their settings and seeds."""

    def __init__(self, worth, limited=True):
        self.worth, self.asked = worth, []

    def of(self, request):
        self.asked.append((request.settings, list(request.seeds)))
        self.runs = request.runs()
        return self

    def run(self, progress, callback, report):
        for run in self.runs:
            mean, holds = self.worth(run.config["settings"], run.config["seed"])
            run.final, run.certificate = {"return": mean}, type("Certificate", (), {"holds": holds})


@pytest.fixture
def played(monkeypatch):
    def as_if(worth):
        monkeypatch.setattr(module, "Training", Played(worth))
        return module.Training

    return as_if


def search(task="CartSafe-v0", algorithm="pcces", budget=30e6, **asked):
    return tuning(task, algorithm, steps=1e6, budget=budget, **asked)


def by_rate(settings, seed):
    """Returns are highest where the rate is 3e-3; seeds move them, the same way for all."""
    return 100 - 10 * abs(np.log(settings["rate"] / 3e-3)) + seed % 7, True


def test_the_better_half_goes_on_and_the_best_is_compared_on_fresh_seeds(played):
    calls = played(by_rate).asked
    tuned = search().run()
    seeds = [seed for _, each in calls for seed in each]
    assert [seeds.count(seed) for seed in range(1000, 1007)] == [12, 6, 3, 2, 2, 2, 2]
    best = min(tuned.candidates, key=lambda s: abs(np.log(s.get("rate", 2e-3) / 3e-3)))
    assert tuned.settings == best
    assert f"higher by {10 * (np.log(3e-3 / 2e-3) - abs(np.log(best['rate'] / 3e-3))):.3g}" in tuned.words
    assert len(tuned.trials) == 29 and "4 of 4 certified" in tuned.words


def test_a_certificate_counts_for_more_than_a_return(played):
    played(lambda settings, seed: (1 / settings["rate"], settings["rate"] > 3e-3))
    tuned = search().run()
    rates = [s["rate"] for s in tuned.candidates if s.get("rate", 0) > 3e-3]
    assert tuned.settings["rate"] == min(rates) and "more of its policies are certified" in tuned.words


def test_luck_is_not_better_than_the_defaults(played):
    rng = np.random.default_rng(0)
    played(lambda settings, seed: (rng.normal(), True))
    tuned = search().run()
    assert tuned.settings == {} and "keep the defaults" in tuned.words


def test_what_is_varied_suits_the_task_and_what_is_given_stays(played):
    played(by_rate)
    names = {name for each in search(hidden=(8, 8)).candidates for name in each}
    assert names == {"rate", "epoch_steps", "target_kl", "price_rate", "discount"}
    continuous = {name for each in search("Pendulum-v1").candidates for name in each}
    assert continuous == names - {"price_rate"} | {"log_std", "hidden"}
    assert {name for each in search("Pendulum-v1", "openes").candidates for name in each} >= {"step_size", "sigma"}
    for each in search().candidates[1:]:
        assert 5e-4 <= each["rate"] <= 8e-3 and 0.95 <= each.get("discount", 0.99) <= 0.998


def test_a_search_goes_on_where_it_was_stopped(played, tmp_path):
    whole = (played(by_rate), search(out=tmp_path / "whole").run())[1]

    def stops(settings, seed):
        if seed == 1001:
            raise KeyboardInterrupt
        return by_rate(settings, seed)

    played(stops)
    with pytest.raises(KeyboardInterrupt):
        search(out=tmp_path / "cut").run()
    calls = played(by_rate).asked
    assert search(out=tmp_path / "cut").run() == whole
    assert all(1000 not in seeds for _, seeds in calls)
    with pytest.raises(ValueError, match="other thresholds: give another folder"):
        search(out=tmp_path / "cut", threshold=20)
    (tmp_path / "cut" / module.FILE).write_text("[1")
    with pytest.raises(ValueError, match="is not a search for settings"):
        search(out=tmp_path / "cut")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"budget": 5e6},
            "at least 11 trainings: with 1e[+]06 steps each the budget must be at least 1.1e[+]07, got 5e[+]06",
        ),
        ({"budget": float("nan")}, "must be numbers of environment steps"),
        ({"iterations": 5}, "has no iterations"),
        ({"rat": 1}, "did you mean 'rate'"),
    ],
)
def test_what_cannot_be_done_is_said_before_any_work(asked, message):
    with pytest.raises((ValueError, TypeError), match=message):
        search(**asked)


def test_the_command_says_what_to_type(tmp_path, played, monkeypatch):
    monkeypatch.chdir(tmp_path)
    played(by_rate)
    words = ["tune", "CartSafe-v0", "--threshold", "20", "--set", "hidden=8,8"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    typed = result.stdout.splitlines()[-1]
    assert typed.startswith("pcces train CartSafe-v0 --steps 1e+06 --threshold 20.0 --set hidden=8,8 --set rate=0.003 ")
    assert "29 trainings of 1e+06 steps" in result.stderr and "training 29/29: defaults" not in result.stderr
    data = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert data["command"] == typed and len(data["trials"]) == 29
    kept = json.loads((tmp_path / "runs/CartSafe-v0/pcces-tune" / module.FILE).read_text())
    assert kept["found"]["settings"] == data["settings"] and kept["trials"] == data["trials"]


@pytest.mark.slow
def test_real_trainings_are_told_apart(monkeypatch):
    monkeypatch.setattr(module, "FEWEST", 2)
    monkeypatch.setattr(module, "COMPARED", 2)
    found = pcces.tune(
        "CartPole-v1", "openes", steps=3_000, budget=18_000, certify_episodes=20, population=4, progress=False,
        engine="local", workers=1, max_steps=200,
    )  # fmt: skip
    assert len(found.trials) == 6 and all(9 <= trial.mean_return <= 200 for trial in found.trials)


@pytest.mark.parametrize(
    ("task", "asked", "words"),
    [
        ("CartSafe-v0", {"steps": 2e5}, "66 iterations of 3000 steps (10 episodes); starts with the best of 13"),
        ("CartSafe-v0", {"threshold": 20}, "600 iterations of 3000 steps (10 episodes); starts with the best of 64 random policies; "
         "limits: off_centre <= 20, entropy <= 2000, entropy >= 0; on the device"),
        ("Pendulum-v1", {"engine": "local", "workers": 2}, "by 2 workers"),
        ("CartSafe-v0", {"algorithm": "openes"}, "openes: 300 iterations of 40 policies"),
    ],
)  # fmt: skip
def test_a_training_says_what_it_chose(task, asked, words):
    training = prepare(task, [0], **asked)
    if training.runs[0].config["engine"] != "device":
        training.arena.close()
    assert words in chosen(training)
