"""The command line as a person types it."""

import json
import math
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
import small
import typer
from small import IMPOSSIBLE, LOOSE, SMALL, environment, pcces, start
from typer.testing import CliRunner

import pcces as library
from pcces.cli import app
from pcces.cli.common import print_table
from pcces.cli.train import conclude
from pcces.envs.safety import NAMES
from pcces.envs.velocity import ROBOTS, velocity_id
from pcces.rl import checkpoints
from pcces.rl.folder import load
from pcces.support import files as storage

FILES = ["certificate.json", "checkpoint.npz", "config.json", "metrics.csv", "policy.npz", "report.html"]


def here(*words):
    """In this process: the fast way to see what a command answers."""
    return CliRunner().invoke(app, [str(word) for word in words])


# -- training ----------------------------------------------------------------------------------------------------------


def test_train_shows_progress_writes_the_folder_and_ends_with_the_certificate(trained):
    done, folder = trained, trained.folder
    assert done.returncode == 0
    assert done.stdout.startswith("CERTIFIED: off_centre at most ") and "(limit 250)" in done.stdout
    assert done.stdout.endswith("report: runs/CartSafe-v0/pcces-default-threshold250-seed0/report.html\n")
    shown = r"iteration 200/200  return \S+  off_centre \S+ \(limit 250\)  entropy \S+  sigma \S+  accepted \d+ %"
    assert re.search(shown, done.stderr) and re.search(r"\d+ s left", done.stderr)
    assert re.match(
        r"pcces: 200 iterations of .*\ncompiling\n", done.stderr
    )  # something is said at once, long before the first iterations
    assert sorted(file.name for file in folder.iterdir()) == FILES
    config = json.loads((folder / "config.json").read_text())
    assert config["thresholds"] == [250.0] and config["settings"]["hidden"] == [4]
    run = library.load(folder)
    assert run.certificate.holds and len(run.metrics["return"]) == 200
    assert run.words() == json.loads((folder / "certificate.json").read_text())["words"] in done.stdout


def test_several_seeds_in_json_and_a_run_that_cannot_be_certified_says_so(two_seeds):
    done, folder = two_seeds, two_seeds.folder
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert said["certified"] == 0 and [run["seed"] for run in said["runs"]] == [0, 1]
    assert all(run["words"].startswith("NOT CERTIFIED") for run in said["runs"])
    assert said["runs"][0]["fresh_episodes"]["return"] != said["runs"][1]["fresh_episodes"]["return"]
    assert done.stderr.endswith("train longer (--iterations) or allow more (--threshold)\n")
    assert "seeds 0, 1 may break its limits" in done.stderr and "mean of 2 seeds" in done.stderr
    assert (folder / "report.html").exists()
    for seed in (0, 1):
        written = sorted(file.name for file in (folder / f"seed-{seed}").iterdir())
        assert written == sorted([*FILES, "events.out.tfevents.pcces"])


def test_several_seeds_end_with_a_table(two_seeds, capsys):
    folder = two_seeds.folder
    runs = [load(folder / f"seed-{seed}") for seed in (0, 1)]
    with pytest.raises(typer.Exit) as end:
        conclude(runs, folder, as_json=False)
    assert end.value.exit_code == 1
    head, first, second, mean, count, _ = capsys.readouterr().out.splitlines()
    assert head.split("  ") == ["seed", "return", "off_centre (limit 0)", "certified"]
    assert first.split() == ["0", f"{runs[0].final['return']:.4g}", f"{runs[0].final['costs'][0]:.3g}", "NO"]
    assert second.split()[0] == "1" and mean.split()[0] == "mean"
    assert float(mean.split()[1]) == pytest.approx(np.mean([run.final["return"] for run in runs]), rel=1e-3)
    assert count == "0 of 2 certified with 95 % confidence"


def test_one_policy_that_is_not_certified_is_enough_for_the_exit_code(trained, two_seeds, capsys):
    good, bad = load(trained.folder), load(two_seeds.folder / "seed-0")
    conclude([good], trained.folder, as_json=False)
    assert "(guaranteed, " in capsys.readouterr().out
    with pytest.raises(typer.Exit) as end:
        conclude([good, bad], trained.folder, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert end.value.exit_code == 1 and (said["certified"], said["guaranteed"]) == (1, 1)
    asymptotic = replace(good, certificate=replace(good.certificate, method="t", for_a_guarantee="say more"))
    conclude([good, asymptotic], trained.folder, as_json=False)
    shown = capsys.readouterr()
    assert "2 of 2 certified with 95 % confidence (1 guaranteed, 1 asymptotic)" in shown.out
    assert [line.split()[-1] for line in shown.out.splitlines()[1:3]] == ["guaranteed", "asymptotic"]
    assert "could be fooled by rare large values" in shown.err and "for a guarantee say more" in shown.err


def test_a_finished_run_resumed_says_what_it_said_and_does_nothing(trained):
    done, folder = trained, trained.folder
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    for given in ([], ["--seed", 0, "--algorithm", "pcces"], ["--iterations", 100]):
        again = here("train", "CartSafe-v0", "--out", folder, "--resume", *given)
        assert again.exit_code == 0 and again.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    assert before == {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}


def test_one_of_several_seeds_is_resumed_alone(two_seeds):
    again = here("train", "CartSafe-v0", "--out", two_seeds.folder, "--resume", "--seed", 1, "--json")
    (run,) = json.loads(again.stdout)["runs"]
    assert again.exit_code == 1 and run | {"path": ""} == json.loads(two_seeds.stdout)["runs"][1] | {"path": ""}


def test_a_finished_run_goes_on_for_more_iterations(trained, tmp_path):
    folder = shutil.copytree(trained.folder, tmp_path / "run")
    assert here("train", "CartSafe-v0", "--out", folder, "--resume", "--iterations", 202).exit_code == 0
    assert load(folder).metrics["iteration"] == list(range(202))


def test_on_a_terminal_there_is_one_live_display(tmp_path):
    ours, theirs = pty.openpty()
    process = start("train", *SMALL, *LOOSE, "--out", "run", cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # how the end of a terminal looks on Linux
        pass
    assert process.wait() == 0
    assert shown.count(b"compiling") >= 1 and re.search(rb"iteration \d+/200", shown)
    assert re.search(rb"\x1b\[32moff_centre \S+ \(limit 250\)", shown)  # a limit that is kept is green
    assert b"200 iterations" in shown.splitlines()[-3]


# -- stopped and resumed -----------------------------------------------------------------------------------------------


def stopped(folder, checkpoint, number, *words):
    """Start a run, send it a signal once its first checkpoint is there, and return its code and what it said."""
    process = start("train", *SMALL, *words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (folder / checkpoint).exists() and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    return process.returncode, said


@pytest.mark.slow
def test_an_interrupted_run_says_how_to_go_on_and_ends_at_the_same_policy(trained, tmp_path):
    code, said = stopped(tmp_path, "run/checkpoint.npz", signal.SIGINT, *LOOSE, "--out", "run")
    assert code == 130
    last = said.splitlines()[-1]
    done = int(re.match(r"interrupted after (\d+) iterations; continue with: pcces train ", last)[1])
    assert 0 < done < 200 and done == len((tmp_path / "run" / "metrics.csv").read_text().splitlines()) - 1
    unfinished = pcces("evaluate", "run", cwd=tmp_path)
    assert unfinished.returncode == 2 and "not finished" in unfinished.stderr
    assert here("report", tmp_path / "run").exit_code == 0  # but one can look at it
    assert "not finished" in (tmp_path / "run" / "report.html").read_text()

    command = last.partition("continue with: pcces ")[2].split()
    assert pcces(*command, cwd=tmp_path).returncode == 0
    assert (tmp_path / "run" / "policy.npz").read_bytes() == (trained.folder / "policy.npz").read_bytes()
    assert without_time(tmp_path / "run") == without_time(trained.folder)


def without_time(folder):
    return {name: column for name, column in load(folder).metrics.items() if name != "seconds"}


@pytest.mark.slow
def test_killed_seeds_end_at_the_same_policies(two_seeds, tmp_path):
    code, _ = stopped(
        tmp_path, "runs/seed-1/checkpoint.npz", signal.SIGKILL, *IMPOSSIBLE, "--seeds", 2, "--out", "runs"
    )
    assert code == -signal.SIGKILL and not (tmp_path / "runs" / "seed-0" / "policy.npz").exists()
    assert pcces("train", "CartSafe-v0", "--out", "runs", "--resume", cwd=tmp_path).returncode == 1
    for seed in ("seed-0", "seed-1"):
        assert (tmp_path / "runs" / seed / "policy.npz").read_bytes() == (
            two_seeds.folder / seed / "policy.npz"
        ).read_bytes()
        assert without_time(tmp_path / "runs" / seed) == without_time(two_seeds.folder / seed)


def test_a_kill_between_the_checkpoints_of_two_seeds_leaves_them_at_one_iteration(two_seeds, tmp_path, monkeypatch):
    shutil.copytree(two_seeds.folder, tmp_path, dirs_exist_ok=True)
    runs = [load(tmp_path / seed) for seed in ("seed-0", "seed-1")]
    last = checkpoints.read(runs)
    assert [checkpoint.done for checkpoint in last] == [200, 200]

    replace, left = os.replace, [3]  # two files written, the first of them in its place: then the power goes

    def failing(source, target):
        if not left[0]:
            raise SystemExit
        left[0] -= 1
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(SystemExit):
        checkpoints.write(runs, [checkpoint._replace(done=210) for checkpoint in last])
    assert [checkpoint.done for checkpoint in checkpoints.read(runs)] == [210, 210]


# -- the other commands ------------------------------------------------------------------------------------------------


def test_evaluate(trained):
    done = pcces("evaluate", trained.folder, "--episodes", 50, "--json", cwd=trained.folder)
    assert done.returncode == 0 and done.stderr == ""
    (typed,) = json.loads(done.stdout)["runs"]
    assert typed["episodes"] == 50 and typed["thresholds"] == [250.0] and typed["cost_names"] == ["off_centre"]
    (means,) = json.loads(here("evaluate", trained.folder, "--episodes", 50, "--json").stdout)["runs"]
    assert means["return"] == load(trained.folder).evaluate(episodes=50)["return"]
    assert means == typed | {"path": means["path"]}
    text = here("evaluate", trained.folder, "--episodes", 50).stdout
    assert f"{means['return']:.4g} ± {means['return_error']:.2g}" in text
    assert re.search(rf"off_centre +{means['costs'][0]:.4g} ± {means['costs_error'][0]:.2g} +limit 250", text)
    other = json.loads(here("evaluate", trained.folder, "--episodes", 50, "--seed", 7, "--json").stdout)["runs"][0]
    greedy = json.loads(here("evaluate", trained.folder, "--episodes", 50, "--greedy", "--json").stdout)["runs"][0]
    assert len({means["return"], other["return"], greedy["return"]}) == 3


def test_evaluate_on_another_engine(trained):
    """The policy of a task in JAX, in the same task played by workers: other random numbers, about the same outcome."""
    here_, there = (
        json.loads(here("evaluate", trained.folder, "--episodes", 40, "--json", *engine).stdout)["runs"][0]
        for engine in ((), ("--engine", "local"))
    )
    assert here_["return"] != there["return"]
    assert abs(here_["return"] - there["return"]) < 6 * math.hypot(here_["return_error"], there["return_error"])
    refused = here("evaluate", trained.folder, "--engine", "nowhere")
    assert refused.exit_code == 2 and "there are device, local, ray" in refused.stderr


def test_certify(trained):
    good = here("certify", trained.folder, "--episodes", 50, "--json")
    assert good.exit_code == 0
    (run,) = json.loads(good.stdout)["runs"]
    assert run["certificate"]["holds"] and run["certificate"]["samples"] == 50 and run["words"].startswith("CERTIFIED")
    few = here("certify", trained.folder, "--episodes", 2)  # two episodes prove nothing
    assert few.exit_code == 1 and few.stdout.startswith("NOT CERTIFIED")
    assert few.stderr == f"{trained.folder}: the means keep their limits; more episodes may certify it: --episodes 8\n"
    own = json.loads((trained.folder / "certificate.json").read_text())["certificate"]["samples"]
    (greedy,) = json.loads(here("certify", trained.folder, "--episodes", 50, "--greedy", "--json").stdout)["runs"]
    (evaluated,) = json.loads(
        here("evaluate", trained.folder, "--episodes", 50, "--seed", 2_000_000, "--greedy", "--json").stdout
    )["runs"]
    assert greedy["fresh_episodes"]["return"] == evaluated["return"]
    (again,) = json.loads(here("certify", trained.folder, "--json").stdout)["runs"]
    assert again["certificate"]["samples"] == own
    sure = json.loads(here("certify", trained.folder, "--episodes", 50, "--confidence", 0.999, "--json").stdout)[
        "runs"
    ][0]
    assert sure["certificate"]["upper_bounds"][0] > run["certificate"]["upper_bounds"][0]


def test_plot(trained, two_seeds, tmp_path):
    from PIL import Image

    done = here("plot", trained.folder, two_seeds.folder, "--out", tmp_path / "curves.png")
    assert done.exit_code == 0 and done.stdout == f"picture: {tmp_path / 'curves.png'}\n"
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.format == "PNG" and picture.width > 1000
    assert json.loads(here("plot", two_seeds.folder, "--json").stdout) == {
        "picture": str(two_seeds.folder / "curves.png")
    }


def test_render(trained, tmp_path):
    from PIL import Image

    done = here("render", trained.folder, "--out", tmp_path / "a.gif", "--seed", 3, "--json")
    said = json.loads(done.stdout)
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == said["frames"] == -(-said["steps"] // 2) + 1  # 50 steps a second, every other one
        assert film.info["duration"] == 40 and film.size == (600, 428)
        film.seek(film.n_frames - 1)
        assert film.info["duration"] == 1500  # the end stands still for a moment
    assert set(said["costs"]) == {"off_centre"}
    again = json.loads(here("render", trained.folder, "--out", tmp_path / "b.gif", "--seed", 3, "--json").stdout)
    greedy = json.loads(
        here("render", trained.folder, "--out", tmp_path / "c.gif", "--seed", 3, "--greedy", "--json").stdout
    )
    assert again["return"] == said["return"] != greedy["return"]


def test_envs():
    done = pcces("envs", cwd=".")
    rows = {line.split()[0]: re.split(r"\s\s+", line) for line in done.stdout.splitlines()}
    ours = {name for name in library.envs.tasks() if type(library.envs.make(name)).__module__.startswith("pcces.")}
    assert set(rows) == {"task", *ours, *(f"{name}-v0" for name in NAMES), *map(velocity_id, ROBOTS)}
    assert rows["PointGoal1-v0"] == ["PointGoal1-v0", "2 in [-1, 1]", "60", "1000", "cost <= 25", "-1000 to 5000"]
    assert rows["CartSafe-v0"] == ["CartSafe-v0", "2 choices", "4", "300", "off_centre <= 30", "0 to 2000"]
    known = {task["name"]: task for task in json.loads(here("envs", "--json").stdout)["tasks"]}
    assert known["CartSafe-v0"]["thresholds"] == {"off_centre": 30.0}
    assert known["Pendulum-v1"]["actions"] == "continuous" and known["Pendulum-v1"]["action_size"] == 1


@pytest.mark.parametrize("command", [command.callback.__name__ for command in app.registered_commands])
def test_every_command_has_help_with_an_example(command):
    done = here(command, "--help")
    assert done.exit_code == 0 and f"\n pcces {command}" in done.stdout and "--json" in done.stdout
    assert "Many parameters" not in done.stdout  # what is said to readers of the code alone


def test_a_command_is_a_module_of_its_name():
    for command in app.registered_commands:
        assert command.callback.__module__ == f"pcces.cli.{command.callback.__name__}"


def test_what_a_table_holds_is_never_cut_off_in_a_pipe(capsys):
    rows = [["[bold]" + 300 * "x", "1 in [-2, 2]"], [":smile:", 200 * "y"]]
    print_table(["a", "b"], rows)
    head, first, second = capsys.readouterr().out.splitlines()
    assert first == f"[bold]{300 * 'x'}  1 in [-2, 2]" and second.split() == rows[1] and head.split() == ["a", "b"]
    assert first.index("1 in") == second.index("y") == head.index("b")


def test_bench_times_every_engine_that_is_asked_for():
    few = [*small.words(small.BATCH), "--seconds", "0.1", "--iterations", "50"]
    words = [
        "bench",
        "CartPole-v0",
        "--engine",
        "device",
        "--engine",
        "local",
        "--workers",
        "1",
        "--workers",
        "2",
        *few,
    ]
    said = json.loads(here(*words, "--json").stdout)
    assert [(s["engine"], s["workers"]) for s in said["speeds"]] == [("device", None), ("local", 1), ("local", 2)]
    assert all(s["first"] > 0 and 0 < s["iteration"] < 10 and s["steps"] > 0 for s in said["speeds"])
    shown = here("bench", "CartPole-v0", *few).stdout.splitlines()
    assert shown[0].split()[-2:] == ["50", "iterations"] and shown[1].startswith("device ") and " ms " in shown[1]
    for bad, why in ((["--workers", "0"], "workers must be"), (["--seconds", "0"], "seconds must be positive")):
        done = here("bench", "CartPole-v0", "--engine", "local", *few, *bad)
        assert done.exit_code == 2 and why in done.stderr


# -- what goes wrong ---------------------------------------------------------------------------------------------------


BAD = [
    (["CartSave-v0"], "unknown task 'CartSave-v0'; did you mean 'CartSafe-v0'"),
    (["CartSafe-v0", "--preset", "paper", "--population", "7"], "population must be an even number"),
    (["CartSafe-v0", "--population", "8"], "no population with the preset default"),
    (["CartPole-v1", "--threshold", "3"], "CartPole-v1 has no costs"),
    (["CartSafe-v0", "--threshold", "3", "--threshold", "4"], "has 1 costs (off_centre), got 2 thresholds"),
    (["CartSafe-v0", "--threshold", "nan"], "a threshold must be a finite number"),
    (["CartSafe-v0", "--algorithm", "sgd"], "unknown algorithm 'sgd'"),
    (["CartSafe-v0", "--preset", "noisy"], "unknown preset 'noisy'; there are default, paper, paper-literal"),
    (["CartSafe-v0", "--engine", "gpu"], "unknown engine 'gpu'"),
    (["CartSafe-v0", "--workers", "4"], "the device engine uses all cores"),
    (["CartSafe-v0", "--iterations", "0"], "iterations must be at least 1"),
    (["CartSafe-v0", "--seeds", "0"], "--seeds must be at least 1"),
    (["CartSafe-v0", "--seed", "-1"], "a seed must be a whole number from 0 to 2^63 - 1, got -1"),
    (["CartSafe-v0", "--set", "sigma=1"], "unknown setting 'sigma'; did you mean 'sigma0'?"),
    (["CartSafe-v0", "--set", "sigma0"], "--set takes NAME=VALUE, got 'sigma0'"),
    (["CartSafe-v0", "--preset", "paper", "--set", "m=many"], "m must be a whole number, got 'many'"),
    (["CartSafe-v0", "--set", "normalise=perhaps"], "normalise must be yes or no, got 'perhaps'"),
    (["CartSafe-v0", "--set", "population=8"], "give population as --population"),
    (["CartSafe-v0", "--preset", "paper", "--set", "shaping=odd"], "shaping must be one of"),
    (["CartSafe-v0", "--set", "confidence=2"], "confidence must lie between 0 and 1"),
    (["CartSafe-v0", "--set", "entropy_bounds=5"], "entropy_bounds must be two numbers"),
    (["CartSafe-v0", "--preset", "paper", "--set", "initial_tries=0"], "initial_tries must be at least 1, got 0"),
    (["CartSafe-v0", "--set", "certify_episodes=1"], "a certificate needs at least 2 episodes"),
    (["CartSafe-v0", "--resume"], "there is no run to continue in runs/CartSafe-v0/pcces-default-seed0"),
]


def is_refused(done, says):
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and says in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(("words", "says"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_bad_requests_are_refused_in_one_line_before_any_work(words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    is_refused(here("train", *words), says)
    assert not list(tmp_path.iterdir())


def test_a_refusal_as_a_person_sees_it(tmp_path):
    done = pcces("train", "CartSave-v0", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1


def test_folders_that_do_not_fit_are_refused(trained, two_seeds, tmp_path):
    is_refused(here("train", *SMALL, "--out", trained.folder), "exists already")
    resume = ["--out", trained.folder, "--resume"]
    is_refused(here("train", "CartPole-v1", *resume), "is of CartSafe-v0, not of CartPole-v1")
    changed = here("train", "CartSafe-v0", "--set", "passes=10", *resume)
    is_refused(changed, "has settings.passes = 2, but 10 is asked for")
    for option, now, name, was in (
        ("--seed", 3, "seed", "0"),
        ("--algorithm", "cpo", "algorithm", "'pcces'"),
        ("--preset", "paper", "preset", "'default'"),
        ("--engine", "local", "engine", "'device'"),
        ("--threshold", 20, "thresholds", "[250.0]"),
        ("--set", "confidence=0.9", "confidence", "0.95"),
    ):
        is_refused(here("train", "CartSafe-v0", option, now, *resume), f"has {name} = {was}, but")
    is_refused(
        here("train", "CartSafe-v0", "--out", two_seeds.folder, "--resume", "--seed", 3),
        "there is no run to continue",
    )
    is_refused(here("evaluate", tmp_path / "nothing"), "there is no folder")
    is_refused(here("evaluate", tmp_path), "is not a run folder: it has no config.json")
    is_refused(here("certify", trained.folder, "--confidence", 2), "confidence must lie between 0 and 1")
    is_refused(here("render", two_seeds.folder), "has 2 runs: give one of them")
    is_refused(here("render", trained.folder, "--out", "a.mp4"), "must be a .gif")
    is_refused(here("plot", trained.folder, "--out", "a.doc"), "must be a .png, .pdf or .svg")


def test_damaged_folders_are_refused(trained, tmp_path):
    def copy(name):
        shutil.copytree(trained.folder, tmp_path / name)
        (tmp_path / name / "policy.npz").unlink()  # as if it were not finished
        return tmp_path / name

    def resume(folder):
        return here("train", "CartSafe-v0", "--out", folder, "--resume")

    cut = copy("cut") / "checkpoint.npz"
    cut.write_bytes(cut.read_bytes()[:1000])
    is_refused(resume(cut.parent), "checkpoint.npz is not a file written by pcces, or it is damaged")

    foreign = copy("foreign") / "checkpoint.npz"
    arrays, data = storage.load(foreign, "checkpoint")
    storage.save(foreign, "checkpoint", arrays, data | {"task": "CartPole-v1"})
    is_refused(resume(foreign.parent), "is the checkpoint of a run with task 'CartPole-v1', not 'CartSafe-v0'")

    (copy("config") / "config.json").write_text("{")
    is_refused(resume(tmp_path / "config"), "config.json is damaged")
    (tmp_path / "config" / "config.json").write_text("{}")
    is_refused(here("evaluate", tmp_path / "config"), "is not a run's configuration: it lacks algorithm")

    whole = tmp_path / "policy"
    shutil.copytree(trained.folder, whole)
    (whole / "policy.npz").write_bytes(b"PK")
    is_refused(here("evaluate", whole), "policy.npz is not a file written by pcces")


def test_damaged_metrics_and_certificates_are_refused(trained, tmp_path):
    folder = shutil.copytree(trained.folder, tmp_path / "run")
    metrics, certificate = folder / "metrics.csv", folder / "certificate.json"
    whole = metrics.read_text()
    metrics.write_text("garbage\n")
    says = "metrics.csv is damaged (it lacks the columns iteration, return"
    is_refused(here("plot", folder), says)
    is_refused(here("report", folder), says)
    is_refused(here("train", "CartSafe-v0", "--out", folder, "--resume", "--iterations", 300), says)
    metrics.write_text(whole.splitlines()[0])
    is_refused(here("plot", folder), "there is nothing to draw yet")
    metrics.write_text(whole)

    said = json.loads(certificate.read_text())
    bounds = {**said, "certificate": said["certificate"] | {"upper_bounds": []}}
    for content, why in (
        ("{}", "is damaged (it lacks certificate, fresh_episodes)"),
        ("{", "is damaged ("),
        ("[]", "is damaged ("),
        (json.dumps(said | {"certificate": {}}), "is damaged (it lacks certificate.confidence, certificate.holds"),
        (
            json.dumps(said | {"fresh_episodes": {"costs": [1.0]}}),
            "it lacks fresh_episodes.costs_error, fresh_episodes.entropy",
        ),
        (json.dumps(bounds), "it is about other limits than config.json's"),
        (None, "is missing"),
    ):
        certificate.unlink(missing_ok=True)
        if content is not None:
            certificate.write_text(content)
        for command in ("report", "evaluate"):
            done = here(command, folder)
            is_refused(done, why)
            assert "certificate.json " in done.stderr


def test_a_configuration_without_its_settings_is_refused(trained, tmp_path):
    config = json.loads((trained.folder / "config.json").read_text())
    del config["settings"]["mu"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    is_refused(here("evaluate", tmp_path), "is not a run's configuration: it lacks settings.mu")


def test_without_typer_the_entry_point_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from pcces.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "error: the command line needs typer: pip install 'pcces[rl]'\n"


def test_importing_pcces_imports_neither_jax_nor_gymnasium_nor_the_command_line():
    code = (
        "import sys, pcces; heavy = {'jax', 'gymnasium', 'typer', 'matplotlib'}; assert not heavy & set(sys.modules);"
        "assert {'train', 'train_seeds', 'load', 'envs'} <= set(dir(pcces)); pcces.train, pcces.load;"
        "assert not {'jax', 'typer', 'matplotlib'} & set(sys.modules); print(pcces.envs.make('CartSafe-v0').thresholds)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert done.stdout == "(30.0,)\n", done.stderr
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        library.trian  # noqa: B018


def test_only_reproduce_and_the_report_of_a_study_import_studies(trained, tmp_path):
    """A training cannot, since nothing below the command line may (tests/test_architecture.py)."""
    code = """
import sys, pathlib, pcces
from pcces.cli import app, report

def studies():
    return sorted(name for name in sys.modules if name.startswith("pcces.studies"))

for words in (["train", "--help"], ["reproduce", "--help"], ["envs", "--json"], ["plot", "no-such-folder"]):
    try:
        app(words)
    except SystemExit:
        assert not studies(), (words, studies())
report.subject([pathlib.Path(sys.argv[1])])
assert not studies(), studies()
try:
    app(["reproduce", "--out", sys.argv[2]])
except SystemExit:
    print(len(studies()))
"""
    command = [sys.executable, "-c", code, str(trained.folder), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) > 10


def test_version():
    assert here("--version").stdout == "0.1.0\n"
