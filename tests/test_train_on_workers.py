"""`pcces.train` on simulators: which engine, what is refused, folders, and drivers that are killed."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import simulators
from small import BATCH, FEW, POPULATION, several, words
from small import pcces as command
from test_engines import alive, wait_until

import pcces
from pcces.envs.costs import CostBoundsError
from pcces.envs.lookup import resolve
from pcces.envs.simulator import simulator
from pcces.policies import prepare
from pcces.rl.progress import TrainingProgress

HERE = Path(__file__).parent
TINY = FEW | dict(iterations=3, epoch_steps=100)


@pytest.fixture(scope="module")
def costly(tmp_path_factory):
    """A finished run whose costs come from a function."""
    folder = tmp_path_factory.mktemp("costly") / "run"
    run = pcces.train(
        "tests/Line-v0", cost=simulators.late_cost, threshold=(30, 40), workers=2, out=folder, seed=3, **TINY
    )
    return run, folder


def same_policy(a, b):
    return all(
        np.array_equal(one, other)
        for one, other in ((a.x, b.x), (a.normalizer.mean, b.normalizer.mean), (a.normalizer.std, b.normalizer.std))
    )


# -- which engine ----------------------------------------------------------------------------------------------------------


def test_tasks_in_jax_go_to_the_device_and_all_else_to_workers():
    assert resolve("CartSafe-v0")[1] == "device"
    assert resolve("tests/Line-v0")[1] == "local"
    assert resolve("SafetyPointGoal1-v0")[0].thresholds == (25.0,)
    assert resolve(simulator("tests/Line-v0"))[1] == "local"
    ours, engine = resolve("CartSafe-v0", "ray")
    assert (ours.name, ours.cost_names, ours.thresholds, engine) == ("CartSafe-v0", ("off_centre",), (30.0,), "ray")
    assert ours.spec.id == "pcces/CartSafe-v0" and ours.entropy_bounds == pcces.envs.make("CartSafe-v0").entropy_bounds
    theirs, _ = resolve("CartPole-v1", "local")
    assert theirs.spec.entry_point.startswith("gymnasium.")


@pytest.mark.parametrize(
    ("task", "options", "words"),
    [
        ("tests/Line-v0", {"engine": "device"}, "tests/Line-v0 is a simulator, not a task in JAX: give engine='local'"),
        ("CartPol-v1", {}, "unknown task 'CartPol-v1'; did you mean 'CartPole-v1'"),
        ("CartPol-v1", {"engine": "device"}, "unknown task 'CartPol-v1'"),
        ("tests/Line-v0", {"engine": "slurm"}, "unknown engine 'slurm'; there are device, local, ray"),
        ("CartSafe-v0", {"workers": 2}, "the device engine uses all cores: leave out workers=2"),
        ("CartSafe-v0", {"step_timeout": 2.0}, "step_timeout is only for engine"),
        ("CartSafe-v0", {"engine": "device", "cost": simulators.late_cost}, "a task in JAX has its own costs"),
        ("tests/Line-v0", {"ray_address": "auto"}, "ray_address needs engine='ray'"),
        ("tests/Line-v0", {"workers": 0}, "workers must be at least 1, got 0"),
        ("tests/Line-v0", {"step_timeout": -1.0}, "step_timeout must be a positive number of seconds"),
        ("tests/Line-v0", {"threshold": 3.0}, "has no costs, so there is nothing a threshold of 3.0 could limit"),
        ("tests/Line-v0", {"cost": simulators.late_cost}, "has the costs cost0, cost1 but no thresholds"),
        ("tests/Photo-v0", {}, "Grayscale"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_starts(task, options, words):
    with pytest.raises(ValueError, match=words):
        prepare(task, [0], **TINY, **options)


def test_slow_episodes_have_other_defaults(capsys):
    def settings(task, **asked):
        training = prepare(task, [0], iterations=2, workers=1, **asked)
        training.arena.close()
        return training, training.runs[0].config["settings"]

    training, noisy = settings("Pendulum-v1", engine="local", entropy_bounds=(0.0, 200.0), **BATCH)
    assert noisy["log_std"] == pytest.approx(-0.919, abs=1e-3)  # in the middle of what the bounds allow
    assert training.runs[0].config["certify_episodes"] == 200
    with TrainingProgress(training, wanted=True):
        assert capsys.readouterr().err.endswith("starting workers\n")
    assert settings("tests/Line-v0", log_std=-2.0, **BATCH)[1]["log_std"] == -2.0  # what is asked for stays
    _, rival = settings("tests/Line-v0", algorithm="openes")
    assert rival["initial_tries"] == 1 and rival["member_episodes"] > 1
    _, paper = settings("tests/Line-v0", initial_tries=5, preset="paper")
    assert (paper["initial_tries"], paper["last_layer"]) == (5, 1.0)


# -- folders ---------------------------------------------------------------------------------------------------------------


def test_a_run_on_workers_is_certified_and_written_like_any_other(costly):
    run, folder = costly
    assert run.certificate.holds and run.metrics["failed_episodes"] == [0.0] * 3
    assert run.problem.cost_names == ("cost0", "cost1") and len(run.final["costs"]) == 2
    names = ["certificate.json", "checkpoint.npz", "config.json", "metrics.csv", "policy.npz", "report.html"]
    assert sorted(file.name for file in folder.iterdir()) == names
    config = json.loads((folder / "config.json").read_text(), parse_constant=pytest.fail)  # strict JSON
    assert (
        config["engine"] == "local" and config["simulator"]["cost_function"] and config["entropy_bounds"] == [None] * 2
    )


def test_a_loaded_run_acts_at_once_and_is_evaluated_with_its_cost_function(costly):
    run, folder = costly
    loaded = pcces.load(folder)
    assert np.array_equal(loaded.policy([0.5]), run.policy([0.5]))
    with pytest.raises(ValueError, match=r"come from a function.*pcces.load\(path, cost=\.\.\.\)"):
        loaded.evaluate(10)
    found = pcces.load(folder, cost=simulators.late_cost).evaluate(60)
    assert found["costs"] == pytest.approx(run.final["costs"], rel=0.5, abs=3) and min(found["costs"]) > 0
    assert found["episodes"] == 60
    assert pcces.load(folder, cost=simulators.late_cost).certify(60).holds


def test_loading_a_run_makes_no_environment_and_imports_nothing(costly, tmp_path):
    """The id may name a module to import: a stranger's folder must not make us do that."""
    _, folder = costly
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    config["task"] = "antigravity:Evil-v0"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"config\.json says antigravity:Evil-v0"):  # it is not what the policy is of
        pcces.load(tmp_path)
    (tmp_path / "policy.npz").unlink()
    assert pcces.load(tmp_path).shape.size == costly[0].shape.size and "antigravity" not in sys.modules


def test_resuming_with_other_workers_ends_at_the_same_policy(costly, tmp_path):
    whole, _ = costly

    class EnoughError(Exception):
        pass

    def stop(runs):
        if len(runs[0].metrics["return"]) == 2:
            raise EnoughError

    options = dict(cost=simulators.late_cost, threshold=(30, 40), out=tmp_path / "run", seed=3)
    with pytest.raises(EnoughError):
        pcces.train("tests/Line-v0", workers=2, callback=stop, **options, **TINY)
    with pytest.raises(ValueError, match=r"has engine = 'local', but 'device' is asked for|is a simulator"):
        pcces.train("tests/Line-v0", engine="device", resume=True, **options, **TINY)
    run = pcces.train("tests/Line-v0", workers=1, step_timeout=30.0, resume=True, **options, **TINY)
    assert same_policy(run, whole) and run.metrics["return"] == whole.metrics["return"]


def test_a_run_on_workers_goes_on_only_with_all_of_its_metrics(costly, tmp_path):
    folder = shutil.copytree(costly[1], tmp_path / "run")
    lines = (folder / "metrics.csv").read_text().splitlines(keepends=True)
    (folder / "metrics.csv").write_text("".join(lines[:2]))
    longer = TINY | {"iterations": 4}
    with pytest.raises(ValueError, match=r"metrics\.csv has not all of the 3 iterations before the checkpoint"):
        prepare(
            "tests/Line-v0", [3], cost=simulators.late_cost, threshold=(30, 40), out=[folder], resume=True, **longer
        )


def test_no_worker_is_left_after_an_error_in_the_middle():
    def stop(runs):
        raise ZeroDivisionError

    training = prepare("tests/Line-v0", [0], workers=2, **TINY)
    processes = [worker.process for worker in training.arena.pool._workers]
    with pytest.raises(ZeroDivisionError):
        training.run(progress=False, callback=stop)
    assert len(processes) == 2 and not any(process.is_alive() for process in processes)


def test_failed_episodes_are_reported_and_not_certified():
    run = pcces.train("tests/Trouble-v0", workers=2, **TINY | {"certify_episodes": 60})
    assert not run.certificate.holds and run.final["failed_episodes"] > 0
    assert np.isfinite(run.final["return"]) and sum(run.metrics["failed_episodes"]) > 0


def test_a_search_that_begins_among_failures_finds_its_way_out():
    careful = dict(restoration="merit", shaping="rank", constraint_z=2.0, episodes=32, metric_episodes=32, beta=20.0)
    careful |= dict(sigma0=1.0, sigma_max=2.0, gamma=1.05, common_random_numbers=True, iterations=60, population=20)
    run = pcces.train("tests/Cliff-v0", seed=1, workers=2, **POPULATION | careful)
    lost = run.metrics["failed_episodes"]
    assert lost[0] > 20 and sum(lost[-10:]) < 300  # 85 here; about 900 where a step has to end them all


def test_a_simulator_with_options_of_its_own():
    sim = simulator("tests/Line-v0", costs="cost", cost_names=("far",), thresholds=12, max_steps=15)
    run = pcces.train(sim, workers=1, **TINY)
    assert run.problem.names == ("far <= 12",) and run.evaluate(20)["length"] == 15


# -- the command line --------------------------------------------------------------------------------------------------------


@pytest.fixture
def tests_on_the_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(HERE))


@pytest.mark.slow
def test_the_command_line_trains_evaluates_and_draws_a_simulator(tmp_path, tests_on_the_path):
    done = command("train", "Pendulum-v1", "--engine", "local", "--workers", 2, "--step-timeout", 30, "--out", "run",
                   "--json", *words(FEW), cwd=tmp_path)  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert json.loads(done.stdout)["runs"][0]["task"] == "Pendulum-v1" and "starting workers" in done.stderr
    again = command("evaluate", "run", "--episodes", 10, "--json", cwd=tmp_path)
    assert json.loads(again.stdout)["runs"][0]["length"] == 200
    resumed = command("train", "Pendulum-v1", "--out", "run", "--resume", "--workers", 1, "--json", cwd=tmp_path)
    assert json.loads(resumed.stdout)["runs"] == json.loads(done.stdout)["runs"]


@pytest.mark.slow
def test_the_command_line_takes_a_cost_function_and_a_module_with_the_environment(tmp_path, tests_on_the_path):
    line = ["train", "simulators:tests/Line-v0", "--cost", "simulators:late_cost", "--threshold", 30, "--threshold", 40]
    few = [*words(FEW), "--out", "run"]
    done = command(*line, *few, "--workers", 1, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        "CERTIFIED: cost0 at most" in done.stdout and "--cost-bounds" in done.stderr
    )  # the t bound trusts what was seen
    certify = ["certify", "run", "--episodes", 20]
    refused, again = several(
        [*certify, "--import", "simulators"], [*certify, "--cost", "simulators:late_cost"], cwd=tmp_path
    )
    assert refused.returncode == 2 and "--cost MODULE:FUNCTION" in refused.stderr
    assert again.returncode == 0 and "CERTIFIED: cost0 at most" in again.stdout
    bounds = ["--cost-bounds", "0,1", "--out", "bounded"]
    done = command(*line, *few[:-2], "--workers", 1, *bounds, cwd=tmp_path)
    assert done.returncode == 0 and "betting bound" in done.stdout and "--cost-bounds" not in done.stderr
    wrong = {
        ("--cost-bounds", "1,0"): "two finite numbers low < high",
        ("--cost-bounds", "0"): "cost_bounds are",
        ("--cost-bounds", "a,b"): "such as 0,1",
        ("--cost", "simulators"): "--cost takes MODULE:FUNCTION",
        ("--cost", "simulators:none"): "there is no function 'none'",
    }
    same, *refused = several(
        [*line[:4], "--resume", "--out", "bounded"], *([*line, *option] for option in wrong), cwd=tmp_path
    )
    assert same.stdout == done.stdout
    for each, said in zip(refused, wrong.values(), strict=True):
        assert each.returncode == 2 and said in each.stderr


@pytest.mark.slow
def test_the_command_line_finds_tasks_of_ones_own_by_their_modules(tmp_path):
    own = """
from pcces.envs import register_task
from pcces.envs.cartpole import CartSafe

@register_task
class Mine(CartSafe):
    name = "Mine-v0"
"""
    (tmp_path / "own.py").write_text(own)
    done = command("train", "own:Mine-v0", *words(FEW), "--out", "run", cwd=tmp_path)
    assert done.returncode in (0, 1) and "off_centre" in done.stdout, done.stderr
    later = [["evaluate", "run", "--episodes", 10], ["plot", "run"], ["report", "run"]]
    named = [[*words, "--import", "own"] for words in later]  # after the others: a module stays imported
    elsewhere = [["train", "own:Mine-v0", "--engine", "local"], ["train", "none:Mine-v0"]]
    *said, local, unknown = several(*later, *named, *elsewhere, cwd=tmp_path)
    for refused in said[:3]:
        assert refused.returncode == 2 and "--import own" in refused.stderr  # a folder may be a stranger's
    assert [known.returncode for known in said[3:]] == [0, 0, 0]
    assert local.returncode == 2 and "runs on the device engine" in local.stderr
    assert "No module named 'none'" in unknown.stderr


def test_policies_on_simulators_can_be_filmed(tmp_path):
    pytest.importorskip("pygame")
    from pcces.rl.film import film

    run = pcces.train("CartPole-v1", engine="local", workers=1, **TINY)
    made = film(run, seed=1)
    assert made.gif[:6] == b"GIF89a" and made.steps == made.total >= 8 and made.frames >= 2


# -- drivers that are killed ---------------------------------------------------------------------------------------------------

DRIVER = """
import sys
import simulators
import pcces
import pcces.rl.training
pcces.rl.training.CHECKPOINT_SECONDS = 0.0
run = pcces.train("tests/Brisk-v0", workers=2, out=sys.argv[1], resume=sys.argv[2] == "resume", iterations=25,
                  preset="paper", population=8, certify_episodes=10, warm_up=2, m=3, hidden=(4,))
assert not {"jax", "matplotlib"} & set(sys.modules)  # so that a driver is there within a second
"""


def offspring(pid):
    """The processes that a process has started."""
    try:
        children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return children + [one for child in children for one in offspring(child)]


@pytest.mark.slow
def test_a_driver_killed_eight_times_at_random_moments_ends_at_the_same_policy_and_leaves_no_one(tmp_path):
    environment = os.environ | {"PYTHONPATH": f"{HERE}{os.pathsep}{HERE.parent}"}

    def start(folder, how):
        return subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(folder), how], env=environment, stderr=subprocess.PIPE
        )

    whole = start(tmp_path / "whole", "new")
    rng, seen, orphans = random.Random(0), set(), set()
    folder = tmp_path / "killed"
    checkpoint = folder / "checkpoint.npz"
    for number in range(8):
        there = (folder / "config.json").exists()
        process = start(folder, "resume" if there else "new")
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        deadline = time.monotonic() + 120
        # Half of them when something new was written, so that it gets on; half at any moment, imports and all included.
        while number % 2 == 0 and process.poll() is None and time.monotonic() < deadline:
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns != before:
                break
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.3) if number % 2 == 0 else rng.uniform(0, 1.5))
        orphans.update(offspring(process.pid))
        process.send_signal(signal.SIGKILL)
        said = process.communicate()[1]
        assert process.returncode in (0, -signal.SIGKILL), said.decode()
        if checkpoint.exists():
            seen.add(checkpoint.stat().st_mtime_ns)
        elif folder.exists() and not there and not (folder / "config.json").exists():
            folder.rmdir()  # killed between making the folder and writing what it is for
    last = start(folder, "resume")
    assert last.wait(300) == 0, last.stderr.read().decode()
    assert whole.wait(300) == 0, whole.stderr.read().decode()
    a, b = pcces.load(tmp_path / "whole"), pcces.load(folder)
    assert len(seen) > 3 and same_policy(a, b)
    assert a.metrics["return"] == b.metrics["return"] and a.certificate == b.certificate
    assert len(orphans) > 5 and wait_until(lambda: not any(map(alive, orphans)))


def test_what_stops_a_training_costs_none_of_its_iterations(costly, tmp_path):
    """A cost beyond what was said, at a moment when the last checkpoint is old: it goes on with other bounds to the same end."""
    whole, _ = costly

    def rise(runs):
        if len(runs[0].metrics["return"]) == 2:
            raise CostBoundsError("a step cost more")

    asked = dict(cost=simulators.late_cost, threshold=(30, 40), workers=1, **TINY)
    options = asked | dict(seed=3, out=tmp_path / "run")
    training = prepare("tests/Line-v0", [3], out=[tmp_path / "run"], cost_bounds=(0, 1.5), **asked)
    with pytest.raises(CostBoundsError):
        training.run(False, rise)
    assert (training.done, training.kept) == (2, 2)
    with pytest.raises(ValueError, match=r"cost_bounds = \[0.0, 1.5\], but None is asked for"):
        pcces.train("tests/Line-v0", resume=True, **options)
    run = pcces.train("tests/Line-v0", resume=True, cost_bounds=(0, 2), **options)
    assert run.metrics["return"] == whole.metrics["return"] and run.certificate.method == "betting"
    assert pcces.load(tmp_path / "run").task.cost_bounds == (0.0, 2.0)
    with pytest.raises(ValueError, match=r"cost_bounds = \[0.0, 2.0\], but \[0.0, 3.0\] is asked for"):
        pcces.train("tests/Line-v0", resume=True, cost_bounds=(0, 3), **options)
