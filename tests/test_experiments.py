"""The paper's experiments as data: their results are kept, found again, compared and shown."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from pcces.cli import app
from pcces.experiments.arms import Arm, Store, ends, rounded, thinned
from pcces.experiments.catalogue import EXPERIMENTS, SCALES, Experiment, Reported, scaled
from pcces.experiments.page import known, section
from pcces.experiments.statistics import difference, mean_interval, verdict
from pcces.experiments.study import Job, Study, jobs_for

WHERE = {"device": "cpu", "cores": 2, "machine": "x", "versions": {}}


def record(seed, value, cost=None, certified=True):
    """What a run leaves, made up."""
    curve = {"return": [0.0, value], "iteration": [0, 1], "steps": [10, 20]}
    costs = [] if cost is None else [cost]
    if costs:
        curve["cost_c"] = [cost + 1, cost]
    return {
        "seed": seed, "return": value, "costs": costs, "entropy": 1.0, "length": 5.0, "episodes": 10,
        "certified": certified, "upper_bounds": [], "thresholds": [30.0] * len(costs), "entropy_bounds": [None, None],
        "over": 0.25 if costs else None, "steps": 2e6, "seconds": 36.0, "curve": curve,
    }  # fmt: skip


def test_an_arm_is_found_again_by_what_it_is(tmp_path):
    store, arm = Store(tmp_path), Arm("CartSafe-v0", settings={"hidden": (64, 64)})
    assert store.missing(arm, range(3)) == [0, 1, 2]
    store.add(arm, [record(1, 5.0)], WHERE)
    store.add(arm, [record(0, 4.0)], WHERE)
    again = Arm("CartSafe-v0", settings={"hidden": [64, 64]})  # as it comes out of JSON
    assert store.missing(again, range(3)) == [2]
    assert [store.read(again)[seed]["return"] for seed in (0, 1)] == [4.0, 5.0]
    assert store.missing(Arm("CartSafe-v0"), range(1)) == [0]
    assert again.keywords()["hidden"] == (64, 64)


def test_results_of_other_defaults_are_not_the_arms(tmp_path):
    store, arm = Store(tmp_path), Arm("CartSafe-v0")
    store.add(arm, [record(0, 1.0)], WHERE)
    assert store.missing(arm, [0]) == []
    data = json.loads(store.file(arm).read_text())
    data["settings"] |= {"sigma0": 123.0}
    store.file(arm).write_text(json.dumps(data))
    assert store.missing(arm, [0]) == [0]
    data["settings"] = {"an_option_that_is_gone": 1}
    store.file(arm).write_text(json.dumps(data))
    assert store.missing(arm, [0]) == []


def test_what_is_done_is_not_done_again_and_a_shared_arm_is_one_job(tmp_path):
    store, one, other = Store(tmp_path), Arm("CartSafe-v0"), Arm("CartPole-v0")
    store.add(one, [record(0, 1.0), record(1, 1.0)], WHERE)
    jobs = jobs_for([one, other, other], range(2), store)
    assert [(job.arm.task, job.seeds) for job in jobs] == [("CartPole-v0", [0, 1])]
    assert [job.seeds for job in jobs_for([one], range(3), store)] == [[2]]


def test_curves_are_thinned_to_means_of_equal_spans():
    values = np.arange(300.0)
    thin = thinned(values.tolist())
    assert len(thin) == 60 and thin[0] == 2.0 and thin[-1] == 297.0
    assert ends(values.tolist())[-1] == 299.0
    assert thinned([1.0, 2.0]) == [1.0, 2.0]
    assert rounded({"a": [1.23456789, math.inf], "b": True}) == {"a": [1.2346, None], "b": True}


def test_the_bootstrap_covers_the_mean_about_as_often_as_it_says():
    rng, hits = np.random.default_rng(1), 0
    for _ in range(200):
        _, low, high = mean_interval(rng.normal(3.0, 2.0, size=20))
        hits += low <= 3.0 <= high
    assert 0.87 <= hits / 200 <= 0.99  # a percentile bootstrap of 20 values is a little too narrow


def test_differences_are_paired():
    noise = np.random.default_rng(2).normal(0, 100, size=10)
    ours, theirs = ({i: float(v + shift) for i, v in enumerate(noise)} for shift in (1.0, 0.0))
    gap = difference(ours, theirs)
    assert gap.middle == pytest.approx(1.0) and verdict(gap) == "higher"
    assert verdict(difference(theirs, ours)) == "lower"


def test_a_section_shows_numbers_intervals_the_paper_and_what_follows(tmp_path):
    ours, theirs, missing = Arm("CartSafe-v0", threshold=30.0), Arm("CartSafe-v0", "cpo", threshold=30.0), Arm("X-v0")
    reported = {ours.key: {"return": Reported(213.0, 10.0)}}
    experiment = Experiment("safe", "Costs", "Figure 2", "a claim", [ours, theirs, missing], 3, reported)
    store = Store(tmp_path / "results")
    store.add(ours, [record(i, 300.0 + i, 20.0) for i in range(3)] + [record(1000, -1e9, 0.0)], WHERE)
    store.add(theirs, [record(i, 310.0 + i, 40.0, certified=False) for i in range(3)], WHERE)
    text = section(experiment, store, tmp_path / "img", tmp_path)
    assert "| CartSafe-v0 | PCCES | 301.0 [300.0, 302.0] | 301 | 20.0 [20.0, 20.0] (30) | 3 of 3 | 25 % |" in text
    assert "return 213 ± 10" in text and "0 of 3" in text
    assert "| CartSafe-v0 | PCCES | CPO | -10.0 [-10.0, -10.0] | lower |" in text
    assert "Not run: 1 of 3 arms" in text and "(img/safe.png)" in text
    assert (tmp_path / "img" / "safe.png").read_bytes()[:4] == b"\x89PNG"
    assert len(known(experiment, store)[0][1]) == 3  # the tuning seed stays out


def test_an_experiment_nobody_ran_says_so(tmp_path):
    assert "Not run yet." in section(EXPERIMENTS["mu"], Store(tmp_path), tmp_path, tmp_path)


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", SCALES)
def test_every_experiment_is_sound(name, scale):
    experiment = scaled(EXPERIMENTS[name], scale, None, None)
    keys = [arm.key for arm in experiment.arms]
    assert keys and len(set(keys)) == len(keys)
    assert set(EXPERIMENTS[name].reported) <= {arm.key for arm in EXPERIMENTS[name].arms}
    assert scaled(experiment, scale, 4, 7).seeds == 4 and scaled(experiment, scale, 4, 7).arms[0].iterations == 7


def test_a_study_that_fails_says_why(tmp_path):
    job = Job(Arm("CartPole-v0", settings={"nonsense": 1}), [0])
    study = Study([job], Store(tmp_path))
    study.run()
    assert study.failed == [job] and "unknown setting 'nonsense'" in job.error


def test_reproduce_on_the_command_line(tmp_path):
    run = CliRunner().invoke
    command = ["reproduce", "entropy", "--task", "CartPole-v0", "--algorithm", "openes", "--seeds", "1"]
    command += ["--iterations", "2", "--out", str(tmp_path / "results")]
    first = run(app, [*command, "--json"])
    assert first.exit_code == 0, first.output
    (found,) = json.loads(first.stdout)["results"]["entropy"]
    assert found["arm"]["algorithm"] == "openes" and len(found["runs"]) == 1
    again = run(app, [*command, "--page", str(tmp_path / "results.md")])
    assert again.exit_code == 0 and "| CartPole-v0 | OpenES, 40 samples |" in again.stdout
    assert "0 of" not in again.stderr  # nothing was left to run
    assert (tmp_path / "results.md").read_text().startswith("# The paper's experiments")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["entropi"], "did you mean 'entropy'?"),
        (["entropy", "--scale", "huge"], "there are paper, quick"),
        (["threshold", "--task", "Ant"], "no arm"),
    ],
)
def test_reproduce_refuses_in_words(arguments, said):
    result = CliRunner().invoke(app, ["reproduce", *arguments])
    assert result.exit_code == 2 and said in result.stderr


def test_reproduce_lists_what_there_is(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert all(f"{name}: " in result.stdout for name in EXPERIMENTS)
