"""The black-box benchmark counts what it says it counts."""

import sys

import numpy as np
import pytest

from benchmarks.blackbox import run
from benchmarks.blackbox.noise import Oracle
from benchmarks.blackbox.peers import PEERS, Simulator
from benchmarks.blackbox.problems import PROBLEMS
from benchmarks.blackbox.table import summary


def test_simulator_averages_raises_by_the_margin_and_fails_past_the_budget():
    p = PROBLEMS["three_bar_truss"]
    oracle = Oracle(p, 0.01, 0, budget=6000)
    _, c = p.evaluate(p.x0)
    means = [Simulator(oracle, average=20).values(Simulator(oracle).z0)[1] - c for _ in range(100)]
    np.testing.assert_allclose(np.std(means, axis=0), 0.01 / np.sqrt(20), rtol=0.3)
    raised = [
        Simulator(oracle, average=20, standard_errors=2.0).values(Simulator(oracle).z0)[1] - c for _ in range(100)
    ]
    np.testing.assert_allclose(np.mean(raised, axis=0), 2 * 0.01 / np.sqrt(20), rtol=0.2)
    simulator = Simulator(oracle, average=1900)
    assert np.isfinite(simulator.values(simulator.z0)[0])
    simulator.memo.clear()
    assert np.isnan(simulator.values(simulator.z0)[0]) and simulator.rank(simulator.z0)[0] == np.inf


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["cobyqa", "de"])
def test_scipy_peers_solve_an_easy_problem(solver):
    p = PROBLEMS["three_bar_truss"]
    record = run.run(solver, p.name, 0.0, 0, None)
    assert record["success"] and record["feasible"] and record["claims_feasible"] and record["error"] is None
    assert record["evaluations"] <= 2000 * p.n


def test_a_solver_that_raises_claims_nothing(monkeypatch):
    def broken(oracle, problem, seed):
        raise RuntimeError("no")

    monkeypatch.setitem(PEERS, "broken", broken)
    record = run.run("broken", "g06", 0.0, 0, None)
    assert record["error"] == "RuntimeError: no"
    assert not record["success"] and not record["feasible"] and not record["claims_feasible"]


def test_summary_tells_success_truth_and_false_claims_apart():
    def record(success, feasible, claims):
        return {"success": success, "feasible": feasible, "claims_feasible": claims}

    cases = [
        record(True, True, True),
        record(True, False, True),
        record(False, False, False),
        record(False, True, True),
    ]
    runs = {("ours", p, level): [] for p in PROBLEMS for level in (0.0, 0.001, 0.01)}
    runs["ours", "g06", 0.01] = cases
    assert summary(runs, ["ours"]).splitlines()[-1] == "| ours | - | - | 50 (25) | - / - / 25 | 4 |"


def test_runs_resume_where_they_stopped(tmp_path, monkeypatch, capsys):
    out = tmp_path / "runs.jsonl"
    arguments = ["run.py", "--solvers", "de", "--problems", "three_bar_truss", "--levels", "0.01", "--processes", "1"]
    for seeds in ("1", "2", "2"):
        monkeypatch.setattr(sys, "argv", [*arguments, "--seeds", seeds, "--out", str(out)])
        run.main()
    assert len(out.read_text().splitlines()) == 2
