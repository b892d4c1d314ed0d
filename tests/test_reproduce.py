"""`pcces reproduce` as a person types it."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_up import study
from typer.testing import CliRunner

from pcces.cli import app, reproduce
from pcces.studies.catalogue import EXPERIMENTS, FIRST_SEED
from pcces.studies.study import Study


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
    while not (workers := [int(pid) for file in children.glob("*/children") for pid in file.read_text().split()]):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    time.sleep(1.0)
    process.kill()  # it has no time to tell them
    process.communicate()
    deadline = time.monotonic() + 4  # left alone, they would still be compiling then
    while any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_reproduce_on_the_command_line(tmp_path):
    run = CliRunner().invoke
    command = ["reproduce", "entropy", "--task", "CartPole-v0", "--algorithm", "openes", "--seeds", "1"]
    command += ["--iterations", "2", "--out", str(tmp_path / "results")]
    first = run(app, [*command, "--json"])
    assert first.exit_code == 0, first.output
    (result,) = json.loads(first.stdout)["results"]["entropy"]
    assert result["arm"]["algorithm"] == "openes"
    (run_of_it,) = result["runs"]
    assert run_of_it["seed"] == FIRST_SEED and run_of_it["entropy_bounds"] == [None, None]  # JSON knows no infinity
    again = run(app, [*command, "--page", str(tmp_path / "results.md")])
    assert again.exit_code == 0 and re.search(
        r"^CartPole-v0 +OpenES, 40 samples  (1\d\d|200)", again.stdout, re.MULTILINE
    )
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
        (["threshold", "--ray-address", "auto"], "ray_address needs engine='ray'"),
        (["--task", "Bogus"], "--task needs an experiment: NAME one of entropy, safe"),
        (["--scale", "paper"], "--scale needs an experiment"),
        (["--seeds", "3"], "--seeds needs an experiment"),
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
    assert result.exit_code == 3 and "out of luck" in result.stderr
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


def test_reproduce_lists_what_there_is(tmp_path):
    result = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path)])
    assert result.exit_code == 0
    assert all(f"{name}: " in result.stdout for name in EXPERIMENTS)


def test_the_help_names_the_experiments():
    assert tuple(EXPERIMENTS) == reproduce.EXPERIMENTS
