"""The paper's experiments as data: their results are kept, found again, compared and shown."""

import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import WHERE, about, experiment, record, study
from typer.testing import CliRunner

from pcces.cli import app
from pcces.policies import train_seeds
from pcces.rl.folder import load
from pcces.rl.run import read_metrics
from pcces.studies import claims, curves, measures
from pcces.studies.arms import Arm, Store, ends, rounded, thinned
from pcces.studies.catalogue import (
    EXPERIMENTS,
    FIRST_SEED,
    HEADLINES,
    POPULATIONS,
    SCALES,
    TOO_SLOW,
    Reported,
    quick,
    scaled,
)
from pcces.studies.page import answer, page, section
from pcces.studies.results import at_equal_steps, comparisons, known, named
from pcces.studies.statistics import band, beside_paper, clear_at_once, difference, mean_interval, verdict, wins
from pcces.studies.study import Job, Study, jobs_for
from pcces.studies.tables import judged, smaller
from pcces.studies.worker import work


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


def test_seeds_that_ran_elsewhere_say_so(tmp_path):
    store, arm = Store(tmp_path), Arm("CartSafe-v0")
    for seed, cores in ((0, 2), (1, 16), (2, 2)):
        store.add(arm, [record(seed, 5.0) | {"seconds": 10.0 * cores}], WHERE | {"cores": cores})
    (one,) = known(experiment(arm, seeds=3), store)
    assert {seed: run.get("where", one.where)["cores"] for seed, run in one.runs.items()} == {0: 2, 1: 16, 2: 2}
    assert one.machines() == {"CPU (x), 16 cores": 160.0, "CPU (x), 2 cores": 20.0} and one.seconds() == 180.0


def test_results_of_other_defaults_are_not_the_arms(tmp_path):
    store, arm = Store(tmp_path), Arm("CartSafe-v0")
    store.add(arm, [record(0, 1.0)], WHERE)
    assert store.missing(arm, [0]) == []
    data = json.loads(store.file(arm).read_text())
    data["settings"] |= {"sigma0": 123.0}
    store.file(arm).write_text(json.dumps(data))
    assert store.missing(arm, [0]) == [0]


def test_settings_that_are_others_on_slow_simulators_are_kept_as_they_were(tmp_path):
    store, arm = Store(tmp_path), Arm("HopperBulletEnv-v0")
    store.add(arm, [record(0, 1.0)], WHERE, arm.resolved() | {"initial_tries": 1})
    assert store.missing(arm, [0]) == [] and store.settings(arm) == arm.resolved() | {"initial_tries": 1}
    store.add(arm, [record(1, 1.0)], WHERE)  # more seeds do not make them forgotten
    assert store.settings(arm)["initial_tries"] == 1
    store.add(Arm("CartSafe-v0"), [record(0, 1.0)], WHERE, Arm("CartSafe-v0").resolved())
    assert "used" not in json.loads(store.file(Arm("CartSafe-v0")).read_text())


def test_what_is_done_is_not_done_again_and_a_shared_arm_is_one_job(tmp_path):
    store, one, other = Store(tmp_path), Arm("CartSafe-v0"), Arm("CartPole-v0")
    store.add(one, [record(0, 1.0), record(1, 1.0)], WHERE)
    jobs = jobs_for([experiment(one, other, seeds=1), experiment(other, seeds=2)], store)
    assert [(job.arm.task, job.seeds) for job in jobs] == [("CartPole-v0", [0, 1])]
    assert [job.seeds for job in jobs_for([experiment(one, seeds=3)], store)] == [[2]]
    (job,) = jobs_for([experiment(one, seeds=1), experiment(one, seeds=1, measures=("variance",))], store)
    assert (job.seeds, job.measures) == ([0], ["variance"])  # it is there, but was not measured


def test_curves_are_thinned_to_means_of_equal_spans():
    values = np.arange(300.0)
    thin = thinned(values.tolist())
    assert len(thin) == 60 and thin[0] == 2.0 and thin[-1] == 297.0
    assert ends(values.tolist())[-1] == 299.0
    assert thinned([1.0, 2.0]) == [1.0, 2.0]
    assert rounded({"a": [1.23456789, math.inf], "b": True}) == {"a": [1.2346, None], "b": True}


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_the_bootstrap_covers_the_mean_as_often_as_it_says(seeds):
    rng, hits = np.random.default_rng(1), 0
    for _ in range(600):
        _, low, high = mean_interval(rng.normal(3.0, 2.0, size=seeds))
        hits += low <= 3.0 <= high
    assert 0.92 <= hits / 600 <= 0.98


def test_one_seed_says_nothing_of_others():
    assert mean_interval([5.0]) == (5.0, -math.inf, math.inf)
    for gap in (mean_interval([9.0]), difference({0: 9.0, 1: 1.0}, {0: 1.0}), beside_paper([9.0], 1.0, 0.1, seeds=5)):
        assert gap.middle > 0 and verdict(gap) == "no clear difference"
    assert all(np.array_equal(part, [9.0, 8.0]) for part in band([[9.0, 8.0]]))


def test_differences_are_paired():
    noise = np.random.default_rng(2).normal(0, 100, size=10)
    ours, theirs = ({i: float(v + shift) for i, v in enumerate(noise)} for shift in (1.0, 0.0))
    gap = difference(ours, theirs)
    assert gap.middle == pytest.approx(1.0) and verdict(gap) == "higher"
    assert verdict(difference(theirs, ours)) == "lower"


def test_many_comparisons_allow_for_luck():
    rng, false, found = np.random.default_rng(3), 0, 0
    for _ in range(300):
        ties = rng.normal(size=(40, 10))
        words = clear_at_once([*ties, rng.normal(3.0, 1.0, size=10)])
        false += set(words[:-1]) != {"no clear difference"}
        found += words[-1] == "higher"
    assert false / 300 < 0.09 and found / 300 > 0.9  # one by one, two of forty ties would look clear each time
    assert clear_at_once([[-2.0, -2.0], [0.0, 0.0], [7.0]]) == ["lower", "no clear difference", "no clear difference"]


def test_wins_are_counted_task_by_task():
    assert wins([([1.0, 3.0], [2.0, 2.0])]).middle == 0.5
    sure = wins([(list(range(10, 20)), list(range(10)))] * 3)
    assert sure == (1.0, 1.0, 1.0)
    rng = np.random.default_rng(0)
    for tasks, seeds in ((1, 5), (3, 10)):  # 0.638 is what normal values have that are half a standard deviation apart
        drawn = [[(rng.normal(0.5, 1, seeds), rng.normal(size=seeds)) for _ in range(tasks)] for _ in range(200)]
        assert 0.92 < np.mean([(won := wins(some)).low <= 0.638 <= won.high for some in drawn]) < 0.995
    same = wins([(rng.normal(size=10), rng.normal(size=10)) for _ in range(8)])
    assert same.low < 0.5 < same.high and same.high - same.low < 0.35


def test_a_reported_mean_has_noise_of_its_own():
    ours = np.random.default_rng(0).normal(10.0, 1.0, size=10)
    alone, both = mean_interval(ours), beside_paper(ours, 9.0, 3.0, seeds=5)
    assert both.middle == pytest.approx(alone.middle - 9)
    assert both.high - both.low > 2 * (alone.high - alone.low) and verdict(both) == "no clear difference"


def test_bands_hold_the_mean_of_every_point():
    rows = np.random.default_rng(0).normal(size=(10, 5))
    middle, low, high = band(rows)
    assert np.allclose(middle, rows.mean(0)) and np.all(low < middle) and np.all(middle < high)
    of_one = mean_interval(rows[:, 0])
    assert (low[0], high[0]) == pytest.approx((of_one.low, of_one.high), abs=0.1)


# -- claims ------------------------------------------------------------------------------------------------------------


def test_a_claim_of_higher_returns_is_judged_by_intervals(tmp_path):
    store = study(tmp_path, pcces=100.0, pcces_paper=50.0, openes=90.0, asebo=100.0)
    e = about(store)
    words, finding = judged(e, known(e, store))
    assert words == "reproduced" and [part.holds for part in finding.parts] == [True, True]
    assert "higher in 1" in finding.parts[0].said and "no clear difference in 1" in finding.parts[1].said
    assert any("paper preset" in line and "lower in 1" in line for line in finding.remarks)
    assert any("2 comparisons" in line and "clearly higher in 1, lower in 0" in line for line in finding.remarks)
    most = claims.higher_on_most(e, known(e, store))
    assert most.verdict == "not reached" and "on 0 of 1 tasks" in most.parts[-1].said


def test_more_steps_are_no_merit(tmp_path):
    store = study(tmp_path, openes=10.0)
    ours = Arm("CartPole-v0", population=40)
    runs = [record(i, 20.0) | {"steps": 4e6} for i in range(3)]
    for run in runs:
        run["curve"] |= {"return": [5.0, 20.0], "steps": [2e6, 4e6]}
    store.add(ours, runs, WHERE)
    cheap = store.read(store.arms()[0])
    for run in cheap.values():
        run["curve"] |= {"return": [0.0, run["return"]], "steps": [1e6, 2e6]}
    store.add(store.arms()[0], cheap.values(), WHERE)
    e = about(store)
    (one,) = comparisons(known(e, store))
    assert verdict(one.gap) == "higher" and at_equal_steps(one).middle == pytest.approx(5.0 - 11.0)
    assert "lower in 1 of 1" in e.judge(e, known(e, store)).remarks[-1]


def test_where_the_claim_does_not_hold_it_says_so(tmp_path):
    store = study(tmp_path, pcces=100.0, openes=110.0)
    e = about(store)
    words, finding = judged(e, known(e, store))
    assert (
        words == "not reached" and "lower in 1: CartPole-v0, 40 samples (-10.0 [-10.0, -10.0])" in finding.parts[0].said
    )
    text = section(e, known(e, store), tmp_path / "img", tmp_path)
    assert "Verdict: **not reached**" in text and "- **does not hold**: beside OpenES" in text


def test_what_is_not_complete_is_not_called_reproduced(tmp_path):
    store = study(tmp_path, pcces=100.0, openes=90.0)
    e = about(store)
    more = experiment(*e.arms, Arm("Acrobot-v1"))
    assert judged(more, known(more, store))[0] == "not run at full scale; so far reproduced"
    fewer = experiment(*e.arms, seeds=4)
    assert judged(fewer, known(fewer, store))[0] == "not run at full scale; so far reproduced"
    assert judged(e, [])[0] == "not run"
    found = known(e, store)
    assert answer(HEADLINES[0], found, e.judge(e, found)) == "This holds, in what has run so far."
    assert answer(HEADLINES[0], [], e.judge(e, [])) == "Not tested yet."
    few = known(fewer, store)
    assert answer(HEADLINES[0], few, e.judge(e, few)) == "Not tested at full scale."
    costly = replace(e.judge(e, found), price="2 to 3")
    assert answer(HEADLINES[0], found, costly).endswith("with 2 to 3 times the steps of the others.")


def test_results_of_fewer_iterations_stand_in_and_are_named(tmp_path):
    store, arm = Store(tmp_path), Arm("CartPole-v0", population=40)
    for iterations in (5, 20):
        short = Arm("CartPole-v0", population=40, iterations=iterations)
        store.add(short, [record(0, float(iterations))], WHERE)
    (found,) = known(experiment(arm), store)
    assert found.ran.iterations == 20 and not found.full
    assert "PCCES, 40 samples (1 of 3 seeds, 20 of 300 iterations)" in section(
        experiment(arm), [found], tmp_path / "img", tmp_path
    )
    store.add(Arm("CartPole-v0", population=40, iterations=5), [record(1, 6.0)], WHERE)
    assert known(experiment(arm), store)[0].ran.iterations == 5  # two seeds say more than one that ran for longer
    assert known(experiment(arm, seeds=1), store)[0].ran.iterations == 20  # where one is asked for they do not


def safe(folder, our_cost, their_last_cost, their_return=250.0):
    ours, theirs = Arm("CartSafe-v0", threshold=30.0), Arm("CartSafe-v0", "cpo", threshold=30.0)
    e = experiment(ours, theirs, judge=claims.feasible_where_others_are_not, shows=("return", "cost"))
    store = Store(folder)
    store.add(ours, [record(i, 300.0 + i, our_cost) for i in range(3)] + [record(1000, -1e9, 0.0)], WHERE)
    runs = [record(i, their_return + i, 20.0) for i in range(3)]
    for run in runs:
        run["curve"]["cost_c"] = [50.0, their_last_cost]
    store.add(theirs, runs, WHERE)
    return e, known(e, store)


def test_feasible_where_others_are_not(tmp_path):
    e, found = safe(tmp_path, 20.0, 40.0)
    assert len(found[0].runs) == 3  # the tuning seed stays out
    assert judged(e, found)[0] == "reproduced"
    assert "CPO all 3" in e.judge(e, found).parts[1].said
    *_, own, on_the_way, steps = e.judge(e, found).remarks
    assert own == "Runs of PCCES that end training above the limit: 0 of 3." and "after equally many steps: " in steps
    assert "not clearly different in 1" in on_the_way
    for our_cost, last, returns, wrong in ((31.0, 40.0, 250.0, 0), (20.0, 29.0, 250.0, 1), (20.0, 40.0, 350.0, 2)):
        e, found = safe(tmp_path, our_cost, last, returns)
        holds = [part.holds for part in e.judge(e, found).parts]
        assert holds == [number != wrong for number in range(3)]


def test_one_unlucky_run_of_another_does_not_hide_that_the_rest_are_higher(tmp_path):
    e, found = safe(tmp_path, 20.0, 40.0)
    assert "on most seeds" not in e.judge(e, found).parts[2].said
    for seed, returns in enumerate((305.0, 305.0, 100.0)):
        found[1].runs[seed]["return"] = returns
    part = e.judge(e, found).parts[2]
    assert part.holds and part.said.endswith(
        ": 0. Lower on most seeds, though not clearly: CPO on CartSafe-v0 (2 of 3)."
    )


def test_numbers_stand_beside_the_papers(tmp_path):
    arm = Arm("CartSafe-v0", threshold=30.0)
    e = experiment(
        arm, judge=claims.as_high_as_reported, shows=("return", "cost"),
        reported={arm.key: {"return": Reported(213.0, 10.0), "cost": Reported(7.0, 2.0)}},
    )  # fmt: skip
    store = Store(tmp_path)
    store.add(arm, [record(i, 300.0 + i, 20.0) for i in range(3)], WHERE)
    text = section(e, known(e, store), tmp_path / "img", tmp_path)
    row = "| CartSafe-v0 | PCCES | 301.0 [298.3, 303.7] | 301 | 20.0 [20.0, 20.0] | 30 | 3 of 3 | 25 % | 2.0 M | 36 s | 213 ± 10 | 7 ± 2 |"
    assert row in text and "Verdict: **exceeded**" in text and "(img/name.png)" in text
    assert "CPU (x), 2 cores: 36 s of training. 3 runs" in text  # seeds side by side count once
    assert (tmp_path / "img" / "name.png").read_bytes()[:4] == b"\x89PNG"


def test_the_choice_of_a_threshold_matters_little_or_it_does(tmp_path):
    arms = [Arm("CartSafe-v0", threshold=limit) for limit in (20.0, 30.0)]
    reported = {arm.key: {"return": Reported(213.0, 10.0), "cost": Reported(7.0, 2.0)} for arm in arms}
    e, store = (
        experiment(*arms, judge=claims.as_high_as_reported, shows=("return", "cost"), reported=reported),
        Store(tmp_path),
    )
    for second, words in ((310.0, "exceeded"), (330.0, "not reached")):  # 3 % and 10 % more
        for arm, returns in zip(arms, (300.0, second)):
            store.add(arm, [record(i, returns + i, 10.0) for i in range(3)], WHERE)
        assert judged(e, known(e, store))[0] == words


def test_seeds_that_are_not_the_first_are_named(tmp_path):
    arm, store = Arm("CartSafe-v0"), Store(tmp_path)
    e = experiment(arm)
    for seeds, words in (((0, 1), "2 of 3 seeds,"), ((0, 2), "2 of 3 seeds (0, 2),")):
        store.file(arm).unlink(missing_ok=True)
        store.add(arm, [record(i, 1.0, 1.0) for i in seeds], WHERE)
        (one,) = known(e, store)
        assert words in smaller(e, one)


@pytest.mark.parametrize(("cost", "words"), [(60.0, "reproduced"), (10.0, "exceeded")])
def test_cpo_is_over_its_limit_or_better_than_the_papers(tmp_path, cost, words):
    e, store = EXPERIMENTS["cpo"], Store(tmp_path)
    for arm in e.arms:
        store.add(arm, [record(i, 1.0, cost) | {"thresholds": [25.0]} for i in e.numbers], WHERE)
    assert judged(e, known(e, store))[0] == words
    mixed = [record(i, 1.0, 70.0 - cost) | {"thresholds": [25.0]} for i in e.numbers]
    store.add(e.arms[0], mixed, WHERE)
    assert judged(e, known(e, store))[0] == "not reached"


def test_mu_matters_when_it_changes_much(tmp_path):
    e, store = EXPERIMENTS["mu"], Store(tmp_path)
    for arm in e.arms:
        shift = {0.0: -2.0, 1e-4: 0.0, 2e-4: 0.0, 1e-1: -50.0}[arm.resolved()["mu"]]
        noise = np.random.default_rng(len(arm.key)).normal(size=5) if shift == 0 and "Cart" in arm.task else np.zeros(5)
        store.add(arm, [record(i, 100.0 + shift + noise[i % 5]) for i in e.numbers], WHERE)
    words, finding = judged(e, known(e, store))
    assert words == "reproduced" and "AntBulletEnv-v0 2.00" in finding.parts[2].said


def test_marks_are_reached_by_the_mean(tmp_path):
    e, store = EXPERIMENTS["marks"], Store(tmp_path)
    for arm in e.arms:
        mark = e.reported[arm.key]["return"].mean
        store.add(arm, [record(i, mark + (-1.0 if i % 2 else 1.2)) for i in e.numbers], WHERE)
    words, finding = judged(e, known(e, store))
    assert words == "reproduced" and "the lowest of 10 runs 199; the mark is 200." in finding.parts[0].said
    text = section(e, known(e, store), tmp_path / "img", tmp_path)
    assert "mark: return" in text and "The paper:" not in text
    assert [(m.value, m.goal) for m in curves.panels(e, known(e, store))[0].limits] == [(200.0, True)]
    store.add(e.arms[0], [record(e.numbers[0], 100.0)], WHERE)
    assert judged(e, known(e, store))[0] == "not reached"


def test_entropy_is_judged_by_its_bounds(tmp_path):
    arm = Arm("CartPole-v0", population=40)
    e, store = experiment(arm, judge=claims.entropy_within_bounds, shows=("entropy",)), Store(tmp_path)
    store.add(arm, [record(i, 1.0, entropy_bounds=[0.0, 1.0 + i]) for i in range(3)], WHERE)
    assert judged(e, known(e, store))[0] == "reproduced"
    (chart,) = curves.panels(e, known(e, store))
    assert list(chart.series[0].y) == [9.0, 1.0] and [limit.name for limit in chart.limits] == [
        "at most 1",
        "at least 0",
    ]
    store.add(arm, [record(1, 1.0, entropy_bounds=[2.0, None])], WHERE)
    assert "2 of 3" in e.judge(e, known(e, store)).parts[0].said


def test_variance_falls_as_the_theory_asks(tmp_path):
    values = np.random.default_rng(0).normal(0.0, 2.0, size=measures.EPISODES)
    falling = measures.variances(values)
    assert falling[0] == pytest.approx(4.0, rel=0.05) and falling[4] == pytest.approx(4.0 / 16, rel=0.15)
    e, store = EXPERIMENTS["variance"], Store(tmp_path)
    for f, words in ((falling, "reproduced"), ([4.0] * 9, "not reached")):
        measured = {"samples": list(measures.SAMPLES), "f": f}
        for arm in e.arms:
            store.add(arm, [record(i, 1.0, 1.0, variance=measured) for i in e.numbers], WHERE)
        assert judged(e, known(e, store))[0] == words
    assert "| CartSafe-v0 | f | 4 | 4 |" in section(e, known(e, store), tmp_path / "img", tmp_path)


def test_variance_is_measured_on_the_policy_that_came_out(one):
    run = load(one.folder)
    measured = measures.variance(run)
    fresh = run.evaluate(4000, seed=5)
    assert list(measured) == ["samples", "f", "off_centre"]
    for name, error in (("f", fresh["return_error"]), ("off_centre", fresh["costs_error"][0])):
        assert measured[name][0] == pytest.approx(4000 * error**2, rel=0.4)  # costs have long tails
        assert measured[name][5] == pytest.approx(measured[name][0] / 32, rel=0.4)


def test_one_colour_an_algorithm_and_one_panel_a_task_and_population(tmp_path):
    store = study(tmp_path, pcces=1.0, pcces_paper=2.0, openes=3.0)
    e = about(store)
    (chart,) = curves.panels(e, known(e, store))
    assert chart.title == "CartPole-v0, 40 samples: return"
    assert [(s.group, s.colour) for s in chart.series] == [("PCCES", 0), ("PCCES, paper preset", 5), ("OpenES", 1)]
    assert chart.series[0].name == "PCCES, mean of 3"
    accepted, sigma = curves.traces(known(e, store))
    assert sigma.log and len(accepted.series) == 2  # of PCCES only


def test_algorithms_without_a_population_stand_beside_those_that_have_one(tmp_path):
    store = Store(tmp_path)
    arms = [Arm("CartSafe-v0", population=256, threshold=30.0), Arm("CartSafe-v0", "cpo", threshold=30.0)]
    arms.append(Arm("CartSafe-v0", "openes", threshold=30.0))
    for arm in arms:
        store.add(arm, [record(i, 100.0 + i, 20.0) for i in range(3)], WHERE)
    e = experiment(*arms, shows=("return", "cost"))
    found = known(e, store)
    returns, cost = curves.panels(e, found)
    assert returns.title == "CartSafe-v0: return" and cost.limits[0].value == 30
    assert [s.name for s in cost.series] == ["PCCES, mean of 3", "CPO, mean of 3", "OpenES, mean of 3"]
    assert len({s.colour for s in cost.series}) == 3 and len(set(curves.COLOURS.values())) == len(curves.COLOURS)
    assert [one.theirs.asked.algorithm for one in comparisons(found)] == ["cpo", "openes"]


def test_the_whole_page_without_results_and_twice_the_same(tmp_path):
    empty = page(Store(tmp_path), tmp_path / "img", tmp_path)
    assert empty.count("Verdict: **not run**") == len(EXPERIMENTS) and empty.count("**Not tested yet.**") == 2
    store = study(tmp_path, FIRST_SEED, pcces=100.0, openes=90.0)
    first = page(store, tmp_path / "img", tmp_path)
    picture = (tmp_path / "img" / "entropy.png").read_bytes()
    assert "**Not tested at full scale.**" in first and page(store, tmp_path / "img", tmp_path) == first
    assert (tmp_path / "img" / "entropy.png").read_bytes() == picture


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("scale", SCALES)
def test_every_experiment_is_sound(name, scale):
    e = scaled(EXPERIMENTS[name], scale, None, None)
    keys = [arm.key for arm in e.arms]
    assert keys and len(set(keys)) == len(keys)
    assert set(EXPERIMENTS[name].reported) <= {arm.key for arm in EXPERIMENTS[name].arms}
    assert set(EXPERIMENTS[name].measures) <= set(measures.MEASURES)
    few = scaled(EXPERIMENTS[name], scale, 1, 2)
    assert few.seeds == 1 and {arm.iterations for arm in few.arms} == {2}
    more = scaled(EXPERIMENTS[name], scale, 99, 10**6)
    assert more.seeds == EXPERIMENTS[name].seeds and max(arm.iterations for arm in more.arms) <= 1000
    assert all(arm.resolved() for arm in e.arms)
    assert all((", noisy preset" in named(arm)) == (arm.settings.get("recombination") == "none") for arm in e.arms)
    both = list(EXPERIMENTS[name].arms)
    if scale == "quick":
        both = [arm for arm in both if arm.population not in POPULATIONS[1:]]
        both = [arm for arm in both if arm.task not in TOO_SLOW] or both
    for small in (e, scaled(EXPERIMENTS[name], scale, 2, 7)):  # what the paper reported stands beside smaller arms, too
        for whole, arm in zip(both, small.arms, strict=True):
            assert small.reported.get(arm.key) == EXPERIMENTS[name].reported.get(whole.key)


def test_the_study_runs_what_the_preset_for_noisy_tasks_gives_to_users():
    arm = next(a for a in EXPERIMENTS["safe"].arms if (a.task, a.algorithm) == ("PointGoal1-v0", "pcces"))
    assert arm.resolved() == Arm("PointGoal1-v0", preset="noisy", iterations=500).resolved()


def test_what_is_quick_plays_few_episodes_on_noisy_tasks():
    arms = {(arm.task, arm.algorithm): arm for arm in scaled(EXPERIMENTS["safe"], "quick", None, None).arms}
    point = arms["PointGoal1-v0", "pcces"].resolved()
    assert (point["population"], point["episodes"], point["initial_tries"], point["iterations"]) == (16, 16, 1, 2)
    assert point["recombination"] == "none" and arms["PointGoal1-v0", "cpo"].iterations == 2
    assert arms["PointGoal1-v0", "cpo"].keywords()["certify_episodes"] == 4
    assert not any(task == "CarGoal1-v0" for task, _ in arms)
    assert {arm.task for arm in scaled(EXPERIMENTS["cpo"], "quick", None, None).arms} == {"PointButton1-v0"}


def test_a_quick_arm_stands_for_the_whole_one(tmp_path):
    store, e = Store(tmp_path), EXPERIMENTS["safe"]
    arm = next(a for a in e.arms if (a.task, a.algorithm, a.preset) == ("CartSafe-v0", "pcces", "default"))
    store.add(quick(arm), [record(FIRST_SEED, 5.0, 20.0)], WHERE)
    (one,) = known(e, store)
    assert one.asked == arm and one.ran == quick(arm) != replace(arm, iterations=30) and not one.full


def test_a_page_without_what_is_drawn_at_a_glance(tmp_path):
    store = Store(tmp_path)
    arm = next(a for a in EXPERIMENTS["safe"].arms if a.task == "MountainCarContinuousSafe-v0")
    store.add(arm, [record(FIRST_SEED + i, 5.0, 2.0) for i in range(2)], WHERE)
    text = page(store, tmp_path / "img", tmp_path)
    assert "## At a glance" in text and "glance.png" not in text and "findings.md" not in text
    (tmp_path / "about.md").write_text("Of these results: few.")
    assert "Of these results: few." in page(store, tmp_path / "img", tmp_path)


def test_time_left_is_told_by_what_this_study_did(tmp_path):
    jobs = [
        Job(Arm("CartPole-v0", iterations=100), [0], begun=True, started=time.perf_counter() - 10, done=60, found=40),
        Job(Arm("CartPole-v1", iterations=100), [0]),
    ]
    study = Study(jobs, Store(tmp_path))
    assert study.share == pytest.approx(0.3 / 1.1)
    # Ten seconds for 20 iterations; 50 are left, counting the certificate as ten, and then 110.
    assert study.seconds_left() == pytest.approx(80, rel=0.05)
    jobs.append(Job(Arm("CartPole-v1", iterations=100), [1], begun=True, started=1.0, seconds=11.0))
    assert study.seconds_left() == pytest.approx(25 + 11, rel=0.05)  # the second task is faster, as is known now
    del jobs[2]
    jobs[0].done = 40
    assert study.seconds_left() is None


def test_more_seeds_do_not_throw_away_what_others_had_learnt(tmp_path, capsys):
    arm = Arm("CartPole-v0", iterations=20, population=8, settings={"initial_tries": 2}, certify_episodes=20)
    store = Store(tmp_path)

    def stop(runs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_seeds(arm.task, [0], out=tmp_path / "runs" / arm.key, callback=stop, report=False, **arm.keywords())
    half = read_metrics(tmp_path / "runs" / arm.key / "seed-0" / "metrics.csv")["seconds"]
    assert len(half) == 10
    work(arm, [0, 1], store, [])
    said = [json.loads(line)["done"] for line in capsys.readouterr().out.splitlines()]
    assert said[0] == 5.0 and said[-1] == 20.0  # on the mean of both
    assert set(store.read(arm)) == {0, 1}
    whole = read_metrics(tmp_path / "runs" / arm.key / "seed-0" / "metrics.csv")["seconds"]
    assert whole[:10] == half and len(whole) == 20
    work(arm, [0, 1, 2], store, [])
    assert set(store.read(arm)) == {0, 1, 2}


def test_a_study_that_is_ended_leaves_nobody_behind(tmp_path):
    words = [
        "reproduce",
        "marks",
        "--task",
        "CartPole-v0",
        "--iterations",
        "100",
        "--seeds",
        "10",
        "--out",
        str(tmp_path),
    ]
    process = subprocess.Popen([sys.executable, "-m", "pcces", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").parent.parent
    deadline = time.monotonic() + 60
    while not (found := [int(pid) for file in children.glob("*/children") for pid in file.read_text().split()]):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    time.sleep(1.0)
    process.kill()  # it has no time to tell them
    process.communicate()
    deadline = time.monotonic() + 4  # left alone, they would still be compiling then
    while any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found):
        assert time.monotonic() < deadline
        time.sleep(0.1)


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
    assert "OpenES, 40 samples (1 of 10 seeds, 2 of 300 iterations)" in (tmp_path / "results.md").read_text()
    assert "0 of" not in again.stderr  # nothing was left to run
    assert (tmp_path / "results.md").read_text().startswith("# The paper's experiments")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["entropi"], "did you mean 'entropy'?"),
        (["entropy", "--scale", "huge"], "there are paper, quick"),
        (["threshold", "--task", "Ant"], "no arm"),
        (
            ["threshold", "--task", "CartSafe-v0", "--task", "Ant"],
            "no arm of these experiments has 'Ant'; there are Cart",
        ),
        (["threshold", "--algorithm", "sgd"], "no arm of these experiments has 'sgd'; there are pcces"),
        (["safe", "--task", "PointGoal1-v0", "--algorithm", "openes"], "on that task with that algorithm"),
        (["threshold", "--iterations", "0"], "--iterations must be at least 1, got 0"),
        (["threshold", "--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["threshold", "--seeds", "-2"], "--seeds must be at least 1, got -2"),
        (["threshold", "--processes", "0"], "--processes must be at least 1, got 0"),
        (["threshold", "--engine", "gpu"], "unknown engine 'gpu'; there are device, local, ray"),
        (["entropy", "--engine", "device"], "InvertedPendulumBulletEnv-v0 is a simulator, not a task in JAX"),
        (["threshold", "--ray-address", "auto"], "give engine='ray' with it"),
        (["--task", "Bogus"], "--task is about what to run: NAME an experiment, of entropy, safe"),
        (["--scale", "paper"], "--scale is about what to run"),
        (["--seeds", "3"], "--seeds is about what to run"),
        (["--page", "page.md"], "there are no results in results: give their folder as --out, or NAME an experiment"),
        (["--out", "typo", "--page", "page.md"], "there are no results in typo"),
        (["entropy", "--page", "."], ". is a folder: give the page a name, such as results.md"),
    ],
)
def test_reproduce_refuses_in_words_before_any_work(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Study, "run", lambda *_: pytest.fail("it runs"))
    (tmp_path / "page.md").write_text("a page")
    result = CliRunner().invoke(app, ["reproduce", *arguments])
    assert result.exit_code == 2 and result.stderr.startswith("error: ") and said in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"] and (tmp_path / "page.md").read_text() == "a page"


def test_where_all_arms_fail_the_page_is_left(tmp_path, monkeypatch):
    def fail(study, _):
        study.jobs[0].error = "out of luck"

    monkeypatch.setattr(Study, "run", fail)
    (tmp_path / "page.md").write_text("a page")
    words = ["reproduce", "threshold", "--out", str(tmp_path / "results"), "--page", str(tmp_path / "page.md")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1 and "out of luck" in result.stderr
    assert (tmp_path / "page.md").read_text() == "a page"


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: text[: len(text) // 2], ""),
        (lambda text: "", "Expecting value: line 1 column 1"),
        (lambda text: "<<<<<<< ours\n" + text, "Expecting value"),
        (lambda text: text.replace('"runs"', '"run"'), "it lacks runs"),
    ],
    ids=["cut", "empty", "unmerged", "incomplete"],
)
@pytest.mark.parametrize(
    "words",
    [
        ["report"],
        ["reproduce", "--out"],
        ["reproduce", "threshold", "--out"],
        ["reproduce", "--page", "page.md", "--out"],
    ],
    ids=lambda words: " ".join(words),
)
def test_a_damaged_file_of_results_is_named(damage, why, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Study, "run", lambda *_: pytest.fail("it runs"))
    store = study(tmp_path / "results", pcces=1.0, openes=2.0)
    file = store.file(store.arms()[0])
    file.write_text(damage(file.read_text()))
    result = CliRunner().invoke(app, [*words, "results"])
    assert result.exit_code == 2 and result.stderr.startswith(f"error: results/{file.name} is damaged (")
    assert why in result.stderr and result.stderr.endswith("): delete it and run the study again\n")
    file.unlink()
    assert CliRunner().invoke(app, ["reproduce", "--out", "results"]).exit_code == 0


def test_files_of_others_among_the_results_are_passed_over(tmp_path):
    store = study(tmp_path, pcces=1.0)
    (tmp_path / "a_b_c.json").write_text("[1, 2]")
    (tmp_path / "d_e_f.json").write_text('{"runs": 3}')
    assert len(Store(tmp_path).arms()) == len(store.arms()) == 1


def test_reproduce_lists_what_there_is(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert all(f"{name}: " in result.stdout for name in EXPERIMENTS)
