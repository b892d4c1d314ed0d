"""The benchmark of few evaluations counts what it says it counts."""

import sys

import numpy as np
import pytest

from benchmarks.few import run
from benchmarks.few.oracle import Oracle
from benchmarks.few.peers import ANYTIME
from benchmarks.few.problems import PROBLEMS, TUNED_ON
from benchmarks.few.table import breakdown, summary
from benchmarks.harness import Answer, BudgetExhaustedError, records


@pytest.mark.parametrize("p", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_optima_are_feasible_and_nothing_near_them_is_better(p):
    f, c = p.exact(p.x_star)
    assert f == pytest.approx(p.f_star, rel=1e-9) and max(c) <= 1e-6 and p.gap(p.x_star) == pytest.approx(0.0, abs=1e-9)
    rng, width = np.random.default_rng(0), p.upper - p.lower
    near = p.x_star + 10 ** rng.uniform(-5, -1, (1500, 1)) * width * rng.standard_normal((1500, p.n))
    gaps = [p.gap(x) for x in np.clip(near, p.lower, p.upper) if p.feasible(x)]
    assert len(gaps) >= 5 and min(gaps) > -1e-6
    assert 0.02 <= p.noise <= 0.05
    assert p.gap(p.x0) > 0.1 or not p.feasible(p.x0)


def test_half_of_the_problems_were_not_tuned_on():
    assert len(PROBLEMS) == 12 and len(TUNED_ON) == 6 and set(TUNED_ON) < set(PROBLEMS)


def test_the_oracle_adds_noise_of_the_size_it_says_and_keeps_the_budget():
    p = PROBLEMS["queues"]
    oracle = Oracle(p, seed=0, budget=400)
    outputs = np.array([[f, *c] for f, c in (oracle(p.x0) for _ in range(400))])
    f, c = p.exact(p.x0)
    assert np.allclose(outputs.std(0), [p.noise * p.f_star, p.noise, p.noise], rtol=0.15)
    assert np.allclose(outputs.mean(0), [f, *c], atol=4 * p.noise * p.f_star / 20)
    with pytest.raises(BudgetExhaustedError):
        oracle(p.x0)
    with pytest.raises(ValueError, match="outside its bounds"):
        Oracle(p, 0, 10)(p.upper + 1)


def test_pcces_answers_at_each_budget_for_itself():
    made = run.run("pcces", "valleys", 100, [50])
    assert [row["evaluations"] for row in made] == [50] and made[0]["error"] is None and 0 < made[0]["seconds"] < 60
    assert made[0]["gap"] == pytest.approx(PROBLEMS["valleys"].gap(np.array(made[0]["x"])))


def test_an_anytime_solver_makes_one_run_for_all_budgets(tmp_path, monkeypatch, capsys):
    calls = []

    def stays(oracle, problem, seed, budgets):
        calls.append(list(budgets))
        for budget in budgets:
            while oracle.evaluations < budget:
                oracle(problem.x0)
            if budget == 100:
                raise RuntimeError("no")
            yield Answer(problem.x_star, True)

    monkeypatch.setitem(ANYTIME, "botorch-scbo", stays)
    monkeypatch.setitem(run.NEEDS, "botorch-scbo", "numpy")
    made = run.run("botorch-scbo", "queues", 0, [50, 100, 200])
    assert [row["budget"] for row in made] == [50, 100, 200] and [row["evaluations"] for row in made] == [50, 100, 100]
    assert [row["error"] for row in made] == [None, "RuntimeError: no", "RuntimeError: no"]
    assert [row["claims_feasible"] for row in made] == [True, False, False] and made[1]["gap"] is None
    # What is in the file is not run again, and a smaller budget comes from the same run.
    out = tmp_path / "few.jsonl"
    calls.clear()
    for budgets in (["50"], ["50", "40"], ["50", "40"]):
        arguments = ["run.py", "--solvers", "pycma", "--problems", "valleys", "--seeds", "1", "--processes", "1"]
        monkeypatch.setattr(sys, "argv", [*arguments, "--out", str(out), "--budgets", *budgets])
        monkeypatch.setitem(run.AT_ONCE, "pycma", lambda oracle, problem, seed: Answer(problem.x0, False))
        monkeypatch.setitem(run.NEEDS, "pycma", "numpy")
        run.main()
    assert sorted(row["budget"] for row in records(out)) == [40, 50]


def test_no_run_begins_when_the_time_is_up(tmp_path, monkeypatch, capsys):
    out = tmp_path / "few.jsonl"
    arguments = ["run.py", "--solvers", "cobyqa", "--problems", "valleys", "--budgets", "50", "--seeds", "1"]
    for minutes in ("0", "1"):
        assert records(out) == []
        monkeypatch.setattr(sys, "argv", [*arguments, "--processes", "1", "--out", str(out), "--minutes", minutes])
        run.main()
    assert len(records(out)) == 1


def test_the_table_tells_claims_truth_and_nearness_apart():
    def row(claims, feasible, gap):
        return {"claims_feasible": claims, "feasible": feasible, "gap": gap, "seconds": 2.0}

    runs = {("pcces", name, budget): [] for name in PROBLEMS for budget in run.BUDGETS}
    runs["pcces", "pid", 100] = [
        row(True, True, 0.04),
        row(True, False, 0.0),
        row(False, True, 0.2),
        row(False, False, None),
    ]
    line = summary(runs, ["pcces"], list(PROBLEMS)).splitlines()[-1]
    assert line == "| pcces | - | 50 / 50 / 25 / **25**; 12.0 %; 2 s | - | - |"
    assert "| pid (3) | 1 of 4 |" in breakdown(runs, ["pcces"], 100)
