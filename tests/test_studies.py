"""The paper's experiments as data: their results are kept, found again, compared and shown."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from made_up import WHERE, about, experiment, record, study

from pcces.policies import train_seeds
from pcces.rl.folder import load, read_metrics
from pcces.studies import charts, measures
from pcces.studies.arm_results import comparisons, results_of
from pcces.studies.arms import Arm
from pcces.studies.brief_page import make_brief_page
from pcces.studies.catalogue import EXPERIMENTS, FIRST_SEED
from pcces.studies.markdown_page import make_page
from pcces.studies.protocol import NAVIGATION, POPULATIONS, SAFE, SAFE_RIVALS, SCALES, TOO_SLOW, quick, scaled
from pcces.studies.store import Store, ends, rounded, thinned
from pcces.studies.study import Job, Study, jobs_for
from pcces.studies.tables import smaller
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
    (result,) = results_of(experiment(arm, seeds=3), store)
    assert {seed: run.get("where", result.made_on)["cores"] for seed, run in result.runs.items()} == {0: 2, 1: 16, 2: 2}
    assert result.machines() == {"CPU (x), 16 cores": 160.0, "CPU (x), 2 cores": 20.0} and result.seconds() == 180.0


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
    store, done, other = Store(tmp_path), Arm("CartSafe-v0"), Arm("CartPole-v0")
    store.add(done, [record(0, 1.0), record(1, 1.0)], WHERE)
    jobs = jobs_for([experiment(done, other, seeds=1), experiment(other, seeds=2)], store)
    assert [(job.arm.task, job.seeds) for job in jobs] == [("CartPole-v0", [0, 1])]
    assert [job.seeds for job in jobs_for([experiment(done, seeds=3)], store)] == [[2]]
    (job,) = jobs_for([experiment(done, seeds=1), experiment(done, seeds=1, measures=("variance",))], store)
    assert (job.seeds, job.measures) == ([0], ["variance"])  # it is there, but was not measured


def test_curves_are_thinned_to_means_of_equal_spans():
    values = np.arange(300.0)
    thin = thinned(values.tolist())
    assert len(thin) == 60 and thin[0] == 2.0 and thin[-1] == 297.0
    assert ends(values.tolist())[-1] == 299.0
    assert thinned([1.0, 2.0]) == [1.0, 2.0]
    assert rounded({"a": [1.23456789, 7], "b": True, "c": None}) == {"a": [1.2346, 7], "b": True, "c": None}


def test_seeds_that_are_not_the_first_are_named(tmp_path):
    arm, store = Arm("CartSafe-v0"), Store(tmp_path)
    e = experiment(arm)
    for seeds, words in (((0, 1), "2 of 3 seeds,"), ((0, 2), "2 of 3 seeds (0, 2),")):
        store.file(arm).unlink(missing_ok=True)
        store.add(arm, [record(i, 1.0, 1.0) for i in seeds], WHERE)
        (result,) = results_of(e, store)
        assert words in smaller(e, result)


def test_variance_is_measured_on_the_policy_that_came_out(trained):
    run = load(trained.folder)
    measured = measures.variance(run)
    fresh = run.evaluate(4000, seed=5)
    assert list(measured) == ["samples", "f", "off_centre"]
    for name, error in (("f", fresh["return_error"]), ("off_centre", fresh["costs_error"][0])):
        assert measured[name][0] == pytest.approx(4000 * error**2, rel=0.4)  # costs have long tails
        assert measured[name][5] == pytest.approx(measured[name][0] / 32, rel=0.4)


def test_one_colour_an_algorithm_and_one_panel_a_task_and_population(tmp_path):
    store = study(tmp_path, pcces=1.0, pcces_paper_literal=2.0, openes=3.0)
    e = about(store)
    (chart,) = charts.panels(e, results_of(e, store))
    assert chart.title == "CartPole-v0, 40 samples: return"
    assert [(s.group, s.colour) for s in chart.series] == [
        ("PCCES", 0),
        ("PCCES, paper-literal preset", 7),
        ("OpenES", 1),
    ]
    assert chart.series[0].name == "PCCES, mean of 3"
    accepted, sigma = charts.trace_charts(results_of(e, store))
    assert sigma.log and len(accepted.series) == 2  # of PCCES only


def test_algorithms_without_a_population_stand_beside_those_that_have_one(tmp_path):
    store = Store(tmp_path)
    arms = [Arm("CartSafe-v0", threshold=30.0), Arm("CartSafe-v0", "cpo", threshold=30.0)]
    arms.append(Arm("CartSafe-v0", "openes", threshold=30.0))
    for arm in arms:
        store.add(arm, [record(i, 100.0 + i, 20.0) for i in range(3)], WHERE)
    e = experiment(*arms, shows=("return", "cost"))
    results = results_of(e, store)
    returns, cost = charts.panels(e, results)
    assert returns.title == "CartSafe-v0: return" and cost.limits[0].value == 30
    assert [s.name for s in cost.series] == ["PCCES, mean of 3", "CPO, mean of 3", "OpenES, mean of 3"]
    assert len({s.colour for s in cost.series}) == 3 and len(set(charts.COLOURS.values())) == len(charts.COLOURS)
    assert [pair.theirs.asked.algorithm for pair in comparisons(results)] == ["cpo", "openes"]
    others = [Arm("CartSafe-v0", "asebo", population=40, threshold=30.0)]
    others.append(Arm("CartSafe-v0", preset="paper-literal", population=240, threshold=30.0))
    for arm in others:
        store.add(arm, [record(i, 100.0 + i, 20.0) for i in range(3)], WHERE)
    pairs = comparisons(results_of(experiment(*arms, *others), store), "paper-literal")
    assert [pair.theirs.asked.algorithm for pair in pairs] == ["pcces", "cpo", "openes"]  # 40 samples are not 240


def test_the_whole_page_without_results_and_twice_the_same(tmp_path):
    empty = make_page(Store(tmp_path), tmp_path / "img", tmp_path)
    assert empty.count("Verdict: **not run**") == len(EXPERIMENTS) and empty.count("**Not tested yet.**") == 2
    store = study(tmp_path, FIRST_SEED, pcces=100.0, openes=90.0)
    first = make_page(store, tmp_path / "img", tmp_path)
    picture = (tmp_path / "img" / "entropy.png").read_bytes()
    assert "**Not tested at full scale.**" in first and make_page(store, tmp_path / "img", tmp_path) == first
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
    both = list(EXPERIMENTS[name].arms)
    if scale == "quick":
        both = [arm for arm in both if arm.population not in POPULATIONS[1:]]
        both = [arm for arm in both if arm.task not in TOO_SLOW] or both
    for small in (e, scaled(EXPERIMENTS[name], scale, 2, 7)):  # what the paper reported stands beside smaller arms, too
        for whole, arm in zip(both, small.arms, strict=True):
            assert small.reported.get(arm.key) == EXPERIMENTS[name].reported.get(whole.key)


def test_the_study_runs_what_people_get_and_gives_it_no_more_steps_than_its_rivals():
    arms = {(arm.task, arm.algorithm, arm.preset): arm for arm in EXPERIMENTS["safe"].arms}
    for task in (*SAFE, *NAVIGATION):
        ours = arms[task, "pcces", "default"]
        assert set(ours.keywords()) == {"algorithm", "steps", "threshold"}  # and no setting of its own
        for rival in (arms[task, name, "default"] for name in SAFE_RIVALS):
            assert ours.keywords()["steps"] == rival.iterations * rival.resolved()["epoch_steps"] >= 9e6


def test_what_is_quick_plays_few_episodes_on_slow_tasks():
    arms = {(arm.task, arm.algorithm): arm.keywords() for arm in scaled(EXPERIMENTS["safe"], "quick", None, None).arms}
    ours, rival = arms["PointGoal1-v0", "pcces"], arms["PointGoal1-v0", "cpo"]
    assert ours["steps"] == rival["iterations"] * rival["epoch_steps"] == 10_000
    assert ours["certify_episodes"] == rival["certify_episodes"] == 4
    assert not any(task == "CarGoal1-v0" for task, _ in arms)
    assert {arm.task for arm in scaled(EXPERIMENTS["cpo"], "quick", None, None).arms} == {"PointButton1-v0"}


def test_a_quick_arm_stands_for_the_whole_one(tmp_path):
    store, e = Store(tmp_path), EXPERIMENTS["safe"]
    arm = next(a for a in e.arms if (a.task, a.algorithm, a.preset) == ("CartSafe-v0", "pcces", "default"))
    store.add(quick(arm), [record(FIRST_SEED, 5.0, 20.0)], WHERE)
    (result,) = results_of(e, store)
    assert result.asked == arm and result.ran == quick(arm) != replace(arm, iterations=30) and not result.full


def test_the_results_in_brief(tmp_path):
    empty = make_brief_page(Store(tmp_path / "none"), "page.md")
    assert empty.count("**Not tested yet.**") == 2 and "## At equal" not in empty and "](page.md)" in empty
    store = study(tmp_path, FIRST_SEED, pcces=100.0, openes=90.0)
    for algorithm, over in (("pcces", 0.1), ("cpo", 0.5)):
        arm = next(a for a in EXPERIMENTS["safe"].arms if (a.task, a.algorithm) == ("CartSafe-v0", algorithm))
        runs = [record(FIRST_SEED + i, 5.0 + i, 20.0, certified=i > 0) | {"over": over} for i in range(3)]
        store.add(arm, runs, WHERE)
    (tmp_path / "about.md").write_text("Of these results: few.")
    text = make_brief_page(store, "page.md")
    iterations, steps = text.split("## At equal environment steps")
    assert "| OpenES | 1 | 1 | 0 | 0 | 1.00 [1.00, 1.00] | 1 |" in iterations and "| OpenES | 1 | 1 | 0 | 0 |" in steps
    assert "| PCCES | 1 | 2 of 3 | 10 % |" in text and "| CPO | 1 | 2 of 3 | 50 % |" in text
    assert "Of these results: few." in text and len(text.split()) < 700


def test_a_page_without_what_is_drawn_at_a_glance(tmp_path):
    store = Store(tmp_path)
    arm = next(a for a in EXPERIMENTS["safe"].arms if a.task == "MountainCarContinuousSafe-v0")
    store.add(arm, [record(FIRST_SEED + i, 5.0, 2.0) for i in range(2)], WHERE)
    text = make_page(store, tmp_path / "img", tmp_path)
    assert "## At a glance" in text and "glance.png" not in text and "findings.md" not in text
    (tmp_path / "about.md").write_text("Of these results: few.")
    assert "Of these results: few." in make_page(store, tmp_path / "img", tmp_path)


def test_time_left_is_told_by_what_this_study_did(tmp_path):
    jobs = [
        Job(Arm("CartPole-v0", iterations=100), [0], begun=True, started=time.perf_counter() - 10, done=60, before=40),
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
    arm = Arm("CartPole-v0", preset="paper", iterations=20, population=8, certify_episodes=20)
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


def test_a_study_that_fails_says_why(tmp_path):
    job = Job(Arm("CartPole-v0", settings={"nonsense": 1}), [0])
    study = Study([job], Store(tmp_path))
    study.run()
    assert study.failed == [job] and "unknown setting 'nonsense'" in job.error


def test_files_of_others_among_the_results_are_passed_over(tmp_path):
    store = study(tmp_path, pcces=1.0)
    (tmp_path / "a_b_c.json").write_text("[1, 2]")
    (tmp_path / "d_e_f.json").write_text('{"runs": 3}')
    assert len(Store(tmp_path).arms()) == len(store.arms()) == 1
