"""The paper's claims, judged on results that are made up."""

from dataclasses import replace

import numpy as np
import pytest
from made_up import WHERE, about, experiment, record, study

from pcces.studies import charts, claims, measures
from pcces.studies.arm_results import at_equal_steps, comparisons, results_of
from pcces.studies.arms import Arm
from pcces.studies.catalogue import EXPERIMENTS, HEADLINES
from pcces.studies.experiment import Reported
from pcces.studies.markdown_page import section
from pcces.studies.statistics import verdict
from pcces.studies.store import Store
from pcces.studies.verdicts import answer, judged


def test_a_claim_of_higher_returns_is_judged_by_intervals(tmp_path):
    store = study(tmp_path, pcces=100.0, pcces_paper_literal=50.0, openes=90.0, asebo=100.0)
    e = about(store)
    words, finding = judged(e, results_of(e, store))
    assert words == "reproduced" and [part.holds for part in finding.parts] == [True, True]
    assert "higher in 1" in finding.parts[0].said and "no clear difference in 1" in finding.parts[1].said
    assert any("paper-literal preset" in line and "lower in 1" in line for line in finding.remarks)
    assert any("2 comparisons" in line and "clearly higher in 1, lower in 0" in line for line in finding.remarks)
    most = claims.higher_on_most(e, results_of(e, store))
    assert most.verdict == "not reached" and "on 0 of 1 tasks" in most.parts[-1].said


def test_half_of_the_tasks_are_not_most_of_them(tmp_path):
    store, tasks = Store(tmp_path), ("CartPole-v0", "Acrobot-v1", "Pendulum-v1")
    e = experiment(*(Arm(task, algorithm) for task in tasks for algorithm in ("pcces", "openes")))
    for task in tasks:
        store.add(Arm(task, "openes"), [record(i, 10.0 + i) for i in range(3)], WHERE)
        store.add(Arm(task), [record(i, 20.0 + i) for i in range(3)], WHERE)
    for equal, holds in ((tasks[:1], True), (tasks[:2], False)):
        for task in equal:
            store.add(Arm(task), [record(i, 10.0 + i) for i in range(3)], WHERE)
        assert claims.higher_on_most(e, results_of(e, store)).parts[-1].holds is holds
    two_tasks = replace(e, arms=[arm for arm in e.arms if arm.task != tasks[0]])
    half = claims.higher_on_most(two_tasks, results_of(two_tasks, store)).parts[-1]
    assert not half.holds and "on 1 of 2 tasks" in half.said


def test_more_steps_are_no_merit(tmp_path):
    store = study(tmp_path, openes=10.0)
    ours = Arm("CartPole-v0")
    runs = [record(i, 20.0) | {"steps": 4e6} for i in range(3)]
    for run in runs:
        run["curve"] |= {"return": [5.0, 20.0], "steps": [2e6, 4e6]}
    store.add(ours, runs, WHERE)
    cheap = store.read(store.arms()[0])
    for run in cheap.values():
        run["curve"] |= {"return": [0.0, run["return"]], "steps": [1e6, 2e6]}
    store.add(store.arms()[0], cheap.values(), WHERE)
    e = about(store)
    (pair,) = comparisons(results_of(e, store))
    assert verdict(pair.gap) == "higher" and at_equal_steps(pair).middle == pytest.approx(5.0 - 11.0)
    assert "lower in 1 of 1" in e.judge(e, results_of(e, store)).remarks[-1]


def test_where_the_claim_does_not_hold_it_says_so(tmp_path):
    store = study(tmp_path, pcces=100.0, openes=110.0)
    e = about(store)
    words, finding = judged(e, results_of(e, store))
    assert (
        words == "not reached" and "lower in 1: CartPole-v0, 40 samples (-10.0 [-10.0, -10.0])" in finding.parts[0].said
    )
    text = section(e, results_of(e, store), tmp_path / "img", tmp_path)
    assert "Verdict: **not reached**" in text and "- **does not hold**: beside OpenES" in text


def test_what_is_not_complete_is_not_called_reproduced(tmp_path):
    store = study(tmp_path, pcces=100.0, openes=90.0)
    e = about(store)
    more = experiment(*e.arms, Arm("Acrobot-v1"))
    assert judged(more, results_of(more, store))[0] == "not run at full scale; so far reproduced"
    fewer = experiment(*e.arms, seeds=4)
    assert judged(fewer, results_of(fewer, store))[0] == "not run at full scale; so far reproduced"
    assert judged(e, [])[0] == "not run"
    results = results_of(e, store)
    assert answer(HEADLINES[0], results, e.judge(e, results)) == "This holds, in what has run so far."
    assert answer(HEADLINES[0], [], e.judge(e, [])) == "Not tested yet."
    few = results_of(fewer, store)
    assert answer(HEADLINES[0], few, e.judge(e, few)) == "Not tested at full scale."
    costly = replace(e.judge(e, results), price="2 to 3")
    assert answer(HEADLINES[0], results, costly).endswith("with 2 to 3 times the steps of the others.")


def test_results_of_fewer_iterations_stand_in_and_are_named(tmp_path):
    store, arm = Store(tmp_path), Arm("CartPole-v0")
    for iterations in (5, 20):
        short = Arm("CartPole-v0", iterations=iterations)
        store.add(short, [record(0, float(iterations))], WHERE)
    (result,) = results_of(experiment(arm), store)
    assert result.ran.iterations == 20 and not result.full
    assert "PCCES (1 of 3 seeds, 20 of 300 iterations)" in section(
        experiment(arm), [result], tmp_path / "img", tmp_path
    )
    store.add(Arm("CartPole-v0", iterations=5), [record(1, 6.0)], WHERE)
    assert results_of(experiment(arm), store)[0].ran.iterations == 5  # two seeds say more than one that ran for longer
    one_seed = results_of(experiment(arm, seeds=1), store)[0]  # where one is asked for they do not
    assert one_seed.ran.iterations == 20 and not one_seed.full  # all seeds, but not all iterations


def safe(folder, our_cost, their_last_cost, their_return=250.0):
    ours, theirs = Arm("CartSafe-v0", threshold=30.0), Arm("CartSafe-v0", "cpo", threshold=30.0)
    e = experiment(ours, theirs, judge=claims.feasible_where_others_are_not, shows=("return", "cost"))
    store = Store(folder)
    store.add(ours, [record(i, 300.0 + i, our_cost) for i in range(3)] + [record(1000, -1e9, 0.0)], WHERE)
    runs = [record(i, their_return + i, 20.0) for i in range(3)]
    for run in runs:
        run["curve"]["cost_c"] = [50.0, their_last_cost]
    store.add(theirs, runs, WHERE)
    return e, results_of(e, store)


def test_feasible_where_others_are_not(tmp_path):
    e, results = safe(tmp_path, 20.0, 40.0)
    assert len(results[0].runs) == 3  # the tuning seed stays out
    assert judged(e, results)[0] == "reproduced"
    assert "CPO all 3" in e.judge(e, results).parts[1].said
    *_, own, on_the_way, steps = e.judge(e, results).remarks
    assert own == "Runs of PCCES that end training above the limit: 0 of 3." and "after equally many steps: " in steps
    assert "not clearly different in 1" in on_the_way
    cases = ((31.0, 40.0, 250.0, 0), (20.0, 29.0, 250.0, 1), (20.0, 30.0, 250.0, 1), (20.0, 40.0, 350.0, 2))
    for our_cost, last, returns, wrong in cases:  # a cost of 30 is no more than allowed
        e, results = safe(tmp_path, our_cost, last, returns)
        holds = [part.holds for part in e.judge(e, results).parts]
        assert holds == [number != wrong for number in range(3)]


def test_one_unlucky_run_of_another_does_not_hide_that_the_rest_are_higher(tmp_path):
    e, results = safe(tmp_path, 20.0, 40.0)
    assert "on most seeds" not in e.judge(e, results).parts[2].said
    for seed, returns in enumerate((305.0, 305.0, 100.0)):
        results[1].runs[seed]["return"] = returns
    part = e.judge(e, results).parts[2]
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
    text = section(e, results_of(e, store), tmp_path / "img", tmp_path)
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
        assert judged(e, results_of(e, store))[0] == words


def test_the_papers_preset_stands_beside_its_numbers_and_decides_nothing(tmp_path):
    arms = [Arm("CartSafe-v0", preset=preset, threshold=20.0) for preset in ("default", "paper")]
    reported = {arm.key: {"return": Reported(213.0, 10.0), "cost": Reported(7.0, 2.0)} for arm in arms}
    e = experiment(*arms, judge=claims.as_high_as_reported, shows=("return", "cost"), reported=reported)
    store = Store(tmp_path)
    for arm, returns in zip(arms, (300.0, 100.0)):
        store.add(arm, [record(i, returns + i, 10.0) for i in range(3)], WHERE)
    verdict, finding = judged(e, results_of(e, store))
    (remark,) = finding.remarks
    assert verdict == "exceeded" and "paper preset" in remark and "lower. Policies" in remark
    shown = [arm for arm in EXPERIMENTS["threshold"].arms if arm.threshold == 20.0]
    assert {arm.preset for arm in shown} == {"default", "paper", "paper-literal"}


@pytest.mark.parametrize(("cost", "words"), [(60.0, "reproduced"), (10.0, "exceeded")])
def test_cpo_is_over_its_limit_or_better_than_the_papers(tmp_path, cost, words):
    e, store = EXPERIMENTS["cpo"], Store(tmp_path)
    for arm in e.arms:
        store.add(arm, [record(i, 1.0, cost) | {"thresholds": [25.0]} for i in e.numbers], WHERE)
    assert judged(e, results_of(e, store))[0] == words
    mixed = [record(i, 1.0, 70.0 - cost) | {"thresholds": [25.0]} for i in e.numbers]
    store.add(e.arms[0], mixed, WHERE)
    assert judged(e, results_of(e, store))[0] == "not reached"


def test_mu_matters_when_it_changes_much(tmp_path):
    e, store = EXPERIMENTS["mu"], Store(tmp_path)
    for arm in e.arms:
        shift = {0.0: -2.0, 1e-4: 0.0, 2e-4: 0.0, 1e-1: -50.0}[arm.resolved()["mu"]]
        noise = np.random.default_rng(len(arm.key)).normal(size=5) if shift == 0 and "Cart" in arm.task else np.zeros(5)
        store.add(arm, [record(i, 100.0 + shift + noise[i % 5]) for i in e.numbers], WHERE)
    words, finding = judged(e, results_of(e, store))
    assert words == "reproduced" and "AntBulletEnv-v0 2.00" in finding.parts[2].said
    small_step = next(arm for arm in e.arms if arm.task == "Acrobot-v1" and arm.resolved()["mu"] == 2e-4)
    store.add(small_step, [record(i, 90.0) for i in e.numbers], WHERE)
    words, finding = judged(e, results_of(e, store))
    assert words == "not reached" and [part.holds for part in finding.parts] == [False, True, True]
    assert "1 of 6 tasks: Acrobot-v1 -10.0" in finding.parts[0].said


def test_marks_are_reached_by_the_mean(tmp_path):
    e, store = EXPERIMENTS["marks"], Store(tmp_path)
    for arm in e.arms:
        mark = e.reported[arm.key]["return"].mean
        store.add(arm, [record(i, mark + (-1.0 if i % 2 else 1.2)) for i in e.numbers], WHERE)
    words, finding = judged(e, results_of(e, store))
    assert words == "reproduced" and "the lowest of 10 runs 199; the mark is 200." in finding.parts[0].said
    text = section(e, results_of(e, store), tmp_path / "img", tmp_path)
    assert "mark: return" in text and "The paper:" not in text
    assert [(m.value, m.goal) for m in charts.panels(e, results_of(e, store))[0].limits] == [(200.0, True)]
    store.add(e.arms[0], [record(i, 200.0) for i in e.numbers], WHERE)
    assert judged(e, results_of(e, store))[0] == "reproduced"  # exactly
    store.add(e.arms[0], [record(e.numbers[0], 100.0)], WHERE)
    assert judged(e, results_of(e, store))[0] == "not reached"


def test_entropy_is_judged_by_its_bounds(tmp_path):
    arm = Arm("CartPole-v0")
    e, store = experiment(arm, judge=claims.entropy_within_bounds, shows=("entropy",)), Store(tmp_path)
    store.add(arm, [record(i, 1.0, entropy_bounds=[0.0, 1.0 + i]) for i in range(3)], WHERE)
    assert judged(e, results_of(e, store))[0] == "reproduced"
    (chart,) = charts.panels(e, results_of(e, store))
    assert list(chart.series[0].y) == [9.0, 1.0] and [limit.name for limit in chart.limits] == [
        "at most 1",
        "at least 0",
    ]
    store.add(arm, [record(1, 1.0, entropy_bounds=[2.0, None])], WHERE)
    assert "2 of 3" in e.judge(e, results_of(e, store)).parts[0].said


def test_variance_falls_as_the_theory_asks(tmp_path):
    values = np.random.default_rng(0).normal(0.0, 2.0, size=measures.EPISODES)
    falling = measures.variances(values)
    assert falling[0] == pytest.approx(4.0, rel=0.05) and falling[4] == pytest.approx(4.0 / 16, rel=0.15)
    e, store = EXPERIMENTS["variance"], Store(tmp_path)
    for f, words in ((falling, "reproduced"), ([4.0] * 9, "not reached")):
        measured = {"samples": list(measures.SAMPLES), "f": f}
        for arm in e.arms:
            store.add(arm, [record(i, 1.0, 1.0, variance=measured) for i in e.numbers], WHERE)
        assert judged(e, results_of(e, store))[0] == words
    assert "| CartSafe-v0 | f | 4 | 4 |" in section(e, results_of(e, store), tmp_path / "img", tmp_path)
