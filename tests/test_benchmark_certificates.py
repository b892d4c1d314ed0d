"""The attack on certificates: runs are made once, and counted as what they are."""

import json
import sys

from benchmarks.certificates import attack, rates
from benchmarks.certificates.cases import RUNS, cases
from benchmarks.harness import records

CASE = "dependent: it remembers (0.5), by its range (1000)"


def attacked(monkeypatch, out, *words):
    monkeypatch.setattr(sys, "argv", ["attack.py", "--cases", CASE, "--out", str(out), *words])
    attack.main()
    return records(out)


def test_an_attack_goes_on_where_it_stopped(monkeypatch, tmp_path, capsys):
    out = tmp_path / "runs.jsonl"
    assert attacked(monkeypatch, out, "--runs", "1", "--minutes", "0") == []
    (first,) = attacked(monkeypatch, out, "--runs", "1")
    assert (first["case"], first["seed"]) == (CASE, attack.FIRST_SEED) and first["nfev"] <= 1000
    with out.open("a") as file:  # as a process leaves it that is killed in the middle of a line
        file.write(json.dumps(first | {"seed": attack.FIRST_SEED + 1})[:40])
    again, second = attacked(monkeypatch, out, "--runs", "2")
    assert again == first and second["seed"] == attack.FIRST_SEED + 1
    assert len(out.read_text().splitlines()) == 2
    capsys.readouterr()
    assert attacked(monkeypatch, out, "--runs", "2") == [first, second]
    assert capsys.readouterr().out == "0 runs are missing\n"


def test_the_same_seed_is_the_same_run():
    first, second = (attack.by_name(CASE, (3,))[0] for _ in range(2))
    assert first | {"seconds": 0} == second | {"seconds": 0}


def test_runs_of_slow_cases_are_handed_out_one_by_one(tmp_path):
    arguments = type("Asked", (), dict(cases="power", runs=RUNS, first_seed=0, out=tmp_path / "none"))
    tasks, slow = attack.missing(arguments), {case.key: case.slow for case in cases()}
    assert {len(seeds) for key, seeds in tasks if slow[key]} == {1}
    assert {len(seeds) for key, seeds in tasks if not slow[key]} == {attack.AT_A_TIME}
    assert sum(len(seeds) for _, seeds in tasks) == RUNS * sum(case.group == "power" for case in cases())


def test_a_certificate_is_false_where_the_point_is_not_feasible(monkeypatch, tmp_path, capsys):
    row = {"case": CASE, "grade": "guaranteed", "feasible": True, "gap": 0.1, "nfev": 900, "seconds": 1.0}
    runs = [row | {"seed": seed, "feasible": seed > 0} for seed in range(3)]
    runs += [row | {"seed": 3, "grade": "asymptotic"}, row | {"seed": 4, "grade": "not certified", "feasible": False}]
    out = tmp_path / "runs.jsonl"
    out.write_text("".join(json.dumps(run) + "\n" for run in runs))
    monkeypatch.setattr(sys, "argv", ["rates.py", "--out", str(out)])
    rates.main()
    assert "| it remembers (0.5), by its range | 1000 | 5 | 60 % | 1 (20 %) | 20 % | 0 |" in capsys.readouterr().out
