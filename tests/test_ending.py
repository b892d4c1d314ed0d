"""How commands end: with results alone on standard output, an exit code that means something, and words for what went wrong."""

import errno
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest
import small
from small import PCCES, environment, pcces, start
from test_strangers import edited, finished, here

from pcces import report
from pcces.cli.train import default_folder
from pcces.engines import processes
from pcces.rl import checkpoints
from pcces.support import files

FEW = small.words(small.FEW)
NOISY = """
import multiprocessing, os
import gymnasium
import numpy as np
print("imported")

class Noisy(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        print("made")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.t += 1
        print("stepped", flush=True)
        os.write(1, b"stepped, says C\\n")
        return self.np_random.uniform(-1, 1, 2).astype(np.float32), 1.0, False, False, {"cost": 7.5 * (self.t == 3)}

def cost(observation, action, info):
    return 0.5

gymnasium.register("Noisy-v0", entry_point="noisy:Noisy", max_episode_steps=5)
"""


@pytest.fixture
def noisy(tmp_path):
    """A folder with a simulator that prints wherever it can, and a step of which costs 7.5."""
    (tmp_path / "noisy.py").write_text(NOISY)
    return tmp_path


# -- standard output, standard error -----------------------------------------------------------------------------------


def test_json_is_all_there_is_on_standard_output_whatever_a_simulator_prints(noisy):
    done = pcces("train", "noisy:Noisy-v0", "--threshold", 50, "--workers", 1, *FEW, "--json", cwd=noisy)
    assert done.returncode in (0, 1) and json.loads(done.stdout)["runs"][0]["task"] == "noisy:Noisy-v0"
    assert {"imported", "made", "stepped", "stepped, says C"} <= set(done.stderr.splitlines())
    folder = json.loads(done.stdout)["folder"]
    done = pcces("evaluate", folder, "--import", "noisy", "--episodes", 2, "--json", cwd=noisy)
    assert json.loads(done.stdout)["runs"][0]["episodes"] == 2


def test_a_reader_of_results_who_goes_away_changes_no_verdict(trained, tmp_path):
    process = start(
        "certify", trained.folder, "--episodes", 50, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    said = process.stderr.read().decode()
    assert process.wait(60) == 0 and said == "standard output was closed before everything was written\n"


def through_shell(words, redirection, folder):
    command = f'"$@" {redirection}'
    return subprocess.run(
        ["sh", "-c", command, "sh", PCCES, *map(str, words)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )


def test_results_that_cannot_be_written_are_a_failure_in_words(trained, tmp_path):
    done = through_shell(["certify", trained.folder, "--episodes", 50], ">/dev/full", tmp_path)
    assert done.returncode == 3
    assert done.stderr == "error: the results cannot be written to standard output (the disk is full)\n"
    done = through_shell(["--version"], ">&-", tmp_path)
    assert "Traceback" not in done.stderr
    done = through_shell(["--help"], ">/dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (3, "error: this cannot be written (the disk is full)\n")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&1 >/dev/null | true", "<&- 2>&- >&-"])
def test_a_training_that_nobody_listens_to_is_a_training(redirection, tmp_path):
    done = through_shell(["train", "CartPole-v0", *FEW, "--out", "run"], redirection, tmp_path)
    assert done.returncode in (0, 1)
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == [
        "certificate.json", "checkpoint.npz", "config.json", "metrics.csv", "policy.npz", "report.html",
    ]  # fmt: skip
    verdict = json.loads((tmp_path / "run" / "certificate.json").read_text())["certificate"]["holds"]
    if "|" not in redirection:
        assert done.returncode == (0 if verdict else 1)


# -- faults ------------------------------------------------------------------------------------------------------------


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device", "run/checkpoint.npz")


def test_a_full_disk_stops_a_training_in_words_and_says_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "write", full)
    done = here("train", "CartPole-v0", *FEW, "--out", tmp_path / "run")
    assert done.exit_code == 3 and done.stdout == ""
    said = done.stderr.splitlines()[-2:]
    assert said[0] == "error: the disk is full: run/checkpoint.npz could not be written"
    assert (
        said[1] == "stopped after 1 iterations (the last 1 could not be saved); continue with: pcces train CartPole-v0 "
        f"--out {tmp_path / 'run'} --resume"
    )
    monkeypatch.undo()
    assert here("train", "CartPole-v0", "--out", tmp_path / "run", "--resume").exit_code in (0, 1)


def test_a_report_that_cannot_be_written_costs_no_training_and_comes_later(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(report, "write", full)
    done = here("train", "CartPole-v0", *FEW, "--out", tmp_path / "run")
    assert done.exit_code in (0, 1) and "No space left on device" in caplog.text
    assert f"to write it: pcces report {tmp_path / 'run'}" in caplog.text
    assert (
        done.stdout.splitlines()[-1] == f"folder: {tmp_path / 'run'}"
    )  # and not the name of a report that is not there
    assert (
        json.loads(here("train", "CartPole-v0", "--out", tmp_path / "run", "--resume", "--json").stdout)["report"]
        is None
    )
    monkeypatch.undo()
    again = here("train", "CartPole-v0", "--out", tmp_path / "run", "--resume")
    assert again.exit_code == done.exit_code
    assert again.stdout.splitlines()[-1] == f"report: {tmp_path / 'run' / 'report.html'}"
    assert (tmp_path / "run" / "report.html").exists()


def test_an_interrupt_while_the_report_is_written_says_that_the_training_is_finished(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from pcces import report, __main__\n"
        "report.write = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.argv = ['pcces', *{['train', 'CartPole-v0', *map(str, FEW), '--out', 'run']}]\n"
        "__main__.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 130
    last = done.stderr.splitlines()[-1]
    assert last == (
        "interrupted while the report was written; the training is finished; to write the report: pcces report run"
    )
    assert pcces("report", "run", cwd=tmp_path).stdout == "report: run/report.html\n"


def test_a_fault_of_ours_is_not_a_policy_that_is_not_certified():
    code = (
        "import sys, pcces.cli; from pcces import __main__\n"
        "pcces.cli.app = lambda **_: 1 / 0\nsys.argv = ['pcces']\n__main__.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_workers_that_cannot_start_are_a_failure(noisy):
    (noisy / "deadly.py").write_text(
        "import multiprocessing, os\nif multiprocessing.parent_process():\n    os._exit(7)\n\n\ndef cost(o, a, i):\n    return 0.0\n"
    )
    done = pcces(
        "train",
        "noisy:Noisy-v0",
        "--cost",
        "deadly:cost",
        "--threshold",
        1,
        "--workers",
        1,
        *FEW,
        "--out",
        "run",
        cwd=noisy,
    )
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert "error: workers die while they start (exit code 7)" in done.stderr


@pytest.mark.parametrize("module", ["numpy", "typer", "jax"])
def test_an_interrupt_while_modules_are_imported_is_no_page_of_traceback(module, tmp_path):
    """As if Ctrl-C were pressed at that moment."""
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt")
    env = environment() | {"PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))}
    words = [PCCES, "train", "CartSafe-v0", "--out", "run"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 130 and done.stderr.startswith("\ninterrupted") and done.stderr.count("\n") == 2


def test_an_interrupted_evaluation_ends_with_the_code_of_interrupts(trained):
    process = start(
        "evaluate", trained.folder, "--episodes", 10**6, cwd=trained.folder, stderr=subprocess.PIPE, text=True
    )
    time.sleep(4)  # it takes half a minute
    process.send_signal(signal.SIGINT)
    assert process.wait(60) in (130, -signal.SIGINT)


# -- requests that cannot be met ---------------------------------------------------------------------------------------


def test_a_cost_beyond_its_bounds_is_seen_at_once_and_told_in_its_own_units(noisy):
    done = pcces("train", "noisy:Noisy-v0", "--threshold", 50, "--cost-bounds", "0,1", "--workers", 1, *FEW, cwd=noisy)
    assert done.returncode == 2 and "Traceback" not in done.stderr and "certifying" not in done.stderr
    last, advice = done.stderr.splitlines()[-2:]
    assert re.match(r"error: step \d+ of noisy:Noisy-v0 cost 7.5 \(cost, in the episode of seed \d+\), but", last)
    assert "said to cost 0 to 1: give other cost_bounds (--cost-bounds LOW,HIGH), or none" in last
    advice = advice.removeprefix("stopped after 0 iterations; continue with: ").replace("LOW,HIGH", "0,8")
    program, *words = shlex.split(advice)
    assert program == "pcces" and words[-2:] == ["--cost-bounds", "0,8"]
    done = pcces(*words, cwd=noisy)
    assert done.returncode in (0, 1) and "CERTIFIED" in done.stdout
    again = pcces(*words[:-1], "0,9", cwd=noisy)  # it is finished: its certificate is about 0 to 8
    assert again.returncode == 2 and "cost_bounds = [0.0, 8.0], but [0.0, 9.0] is asked for" in again.stderr


BAD = [
    (["train", ""], "unknown task ''"),
    (["train", "a b"], "unknown task 'a b'"),
    (["train", "CartPole-v0", "--steps", "inf"], "steps must be a number of environment steps, such as 1e6, got inf"),
    (["train", "CartPole-v0", "--steps", "nan"], "steps must be a number of environment steps, such as 1e6, got nan"),
    (["train", "CartPole-v0", "--iterations", 10**20], "iterations must be below 2^31"),
    (["train", "CartPole-v0", "--set", "hidden=99999,99999"], "has 10,000,599,995 parameters; give smaller ones"),
    (["train", "CartPole-v0", "--seed", 2**63], "a seed must be a whole number from 0 to 2^63 - 1"),
    (["evaluate", "RUN", "--seed", -1], "--seed must be a whole number from 0 to 2^63 - 1, got -1"),
    (["certify", "RUN", "--seed", -1], "--seed must be a whole number from 0 to 2^63 - 1, got -1"),
    (["render", "RUN", "--seed", -1], "a seed must be a whole number from 0 to 2^63 - 1, got -1"),
    (["report", "RUN", "--out", "/proc/x.html"], "/proc/x.html cannot be written"),
    (["plot", "RUN", "--out", "/proc/x.png"], "/proc/x.png cannot be written"),
    (["render", "RUN", "--out", "/proc/x.gif"], "/proc/x.gif cannot be written"),
    (["train", "CartPole-v0", "--out", "/proc/x"], "/proc/x"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_what_cannot_be_done_is_one_line(words, says, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = here(*(trained.folder if word == "RUN" else word for word in words))
    assert done.exit_code == 2 and done.stdout == "" and isinstance(done.exception, SystemExit)
    assert done.stderr.startswith("error: ") and says in done.stderr and done.stderr.count("\n") == 1


def test_a_cluster_named_in_a_folder_is_not_connected_to(tmp_path):
    folder = edited(finished(tmp_path / "run"), engine="ray", ray_address="evil.example:6379")
    done = here("train", "Pendulum-v1", "--out", folder, "--resume", "--iterations", 1000)
    assert done.exit_code == 2 and "give --ray-address evil.example:6379, or else --engine local" in done.stderr


def test_runs_under_other_limits_go_into_other_folders():
    names = {
        default_folder("A", asked, [0], False).name
        for asked in (
            {},
            {"threshold": (20.0,)},
            {"threshold": (20.0, 3.0)},
            {"threshold": (25.5,)},
            {"preset": "paper"},
        )
    }
    assert len(names) == 5 and "pcces-default-threshold20-3-seed0" in names and "pcces-default-seed0" in names


# -- what a terminal would obey ----------------------------------------------------------------------------------------

ESCAPES = "evil\x1b]0;title\x07\x1b[2J"


@pytest.mark.slow
def test_names_from_folders_are_shown_and_not_obeyed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(processes, "cores", lambda: 1)
    folder = finished(tmp_path / ESCAPES, "CartSafe-v0")
    config = json.loads((folder / "config.json").read_text())
    config["simulator"]["cost_names"] = [ESCAPES + "\nCERTIFIED: all is well"]
    config["versions"][ESCAPES] = ESCAPES
    (folder / "config.json").write_text(json.dumps(config))
    said = (folder / "certificate.json").read_text()
    (folder / "certificate.json").write_text(
        said.replace('"off_centre"', json.dumps(config["simulator"]["cost_names"][0]))
    )
    shutil.copytree(folder, tmp_path / ("2" + ESCAPES))
    for words in (
        ["evaluate", "--episodes", 2],
        ["certify", "--episodes", 2],
        ["report"],
        ["plot"],
        ["render"],
        ["evaluate", "--episodes", 2, "--json"],
    ):
        second = [] if words[0] == "render" or "--json" in words else [tmp_path / ("2" + ESCAPES)]
        done = here(words[0], folder, *second, *words[1:])
        assert "\x1b" not in done.output and "\x07" not in done.output
        assert isinstance(done.exception, SystemExit | None)
        assert not any(line.startswith("CERTIFIED: all is well") for line in done.output.splitlines())


def test_a_link_in_a_folder_is_not_written_through(trained, tmp_path):
    folder = shutil.copytree(trained.folder, tmp_path / "run")
    (tmp_path / "precious").write_text("mine")
    for name in ("curves.png", "report.html", "policy.gif", "figures"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(tmp_path / "precious")
    for words in (["plot"], ["report"], ["render"]):
        assert here(words[0], folder).exit_code == 0
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "CartSafe-v0.png").symlink_to(tmp_path / "precious")
    assert here("report", folder, "--figures", tmp_path / "figures").exit_code == 0
    assert (tmp_path / "precious").read_text() == "mine"
    assert not list(tmp_path.rglob(".*"))  # and nothing half-written is left
    assert files.read_text(folder / "report.html").startswith("<!doctype html>")
