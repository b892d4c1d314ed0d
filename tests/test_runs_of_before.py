"""Run folders that the first version wrote: they load, their policies are what they were, and they go on where they can."""

import math
import shutil
from pathlib import Path

import pytest

import pcces

FOLDERS = Path(__file__).parent / "data" / "runs-of-before"  # three iterations of each, on CartSafe-v0
SAID = {
    "openes": ["off_centre at most 25.56 (limit 30)"],
    "pcces": [
        "off_centre at most 23.11 (limit 30)", "entropy at most 18.03 (limit 2000)", "entropy at least 12.73 (limit 0)",
    ],
}  # fmt: skip
ASKED = dict(threshold=30, population=4, seed=5, certify_episodes=40, hidden=(3,), report=False, resume=True)


@pytest.fixture
def before(tmp_path):
    return shutil.copytree(FOLDERS, tmp_path / "runs")


@pytest.mark.parametrize("algorithm", SAID)
def test_a_policy_still_does_what_its_certificate_says(before, algorithm):
    run = pcces.load(before / algorithm)
    assert run.certificate.holds and run.limits() == SAID[algorithm] and run.metrics["iteration"] == [0, 1, 2]
    now = run.evaluate(episodes=400, seed=1)
    for name in ("return", "entropy", "length"):
        assert abs(now[name] - run.final[name]) < 4 * math.hypot(now[f"{name}_error"], run.final[f"{name}_error"])
    assert run.certify(episodes=2000).upper_bounds[0] < 0


def test_a_setting_has_the_name_it_has_now(before):
    settings = pcces.load(before / "pcces").config["settings"]
    assert settings["gamma"] == 1.05 and "growth" not in settings


def test_a_run_goes_on(before):
    done = pcces.load(before / "openes")
    run = pcces.train("CartSafe-v0", "openes", iterations=5, out=before / "openes", **ASKED)
    assert run.metrics["iteration"] == [0, 1, 2, 3, 4] and run.metrics["steps"][3] > done.metrics["steps"][2]
    assert {name: run.metrics[name][:3] for name in done.metrics} == done.metrics
    assert all(map(math.isnan, run.metrics["total_cost_off_centre"]))  # what the first three cost is not known


def test_a_run_whose_algorithm_has_changed_does_not_go_on_as_something_else(before):
    with pytest.raises(ValueError, match=r"another version of pcces, which differs in .*: it can be evaluated"):
        pcces.train("CartSafe-v0", iterations=5, out=before / "pcces", preset="paper", **ASKED)
    assert pcces.load(before / "pcces").certificate.holds
