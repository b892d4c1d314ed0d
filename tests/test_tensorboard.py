"""Event files, read back by TensorBoard itself."""

import subprocess
import sys
import time
from dataclasses import replace

import pytest
from small import environment
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner

from pcces.cli import app
from pcces.integrations.tensorboard import NAME, TensorBoard
from pcces.integrations.trackers import Tracking
from pcces.rl.folder import load

SHOWN = {"episode/return": "return", "costs/off_centre": "cost_off_centre", "search/sigma": "sigma"}


def shown(folder):
    """What TensorBoard shows of a folder: the events of every tag, in the order of the file."""
    events = EventAccumulator(str(folder), purge_orphaned_data=False).Reload()
    return {tag: events.Scalars(tag) for tag in events.Tags()["scalars"]}


def test_every_iteration_is_in_the_event_file_and_nothing_twice(trained, tmp_path):
    run = replace(load(trained.folder), path=tmp_path)
    half = replace(run, metrics={name: column[:90] for name, column in run.metrics.items()})
    board = Tracking("tensorboard")
    board([half])
    half.metrics = run.metrics  # as in a training, whose runs are always the same
    for _ in range(2):
        board([half])
    board.close()
    curves = shown(tmp_path)
    columns = len(run.metrics) - 2  # all but the number of the iteration and the time
    certificate = {"certificate/certified", "certificate/return", "certificate/cost_off_centre"}
    assert certificate <= set(curves) and len(curves) == 2 * (columns + len(certificate))
    assert curves["certificate/return"][0].value == pytest.approx(run.final["return"])
    for tag, column in SHOWN.items():
        over_steps = curves[f"by_steps/{tag}"]
        assert [event.step for event in curves[tag]] == list(range(200))
        assert [event.step for event in over_steps] == run.metrics["steps"]
        for events in (curves[tag], over_steps):
            assert [event.value for event in events] == pytest.approx(run.metrics[column])
    assert curves["search/sigma"][-1].wall_time == pytest.approx(
        time.time() - half_time(run) + run.metrics["seconds"][-1], abs=60
    )
    times = [event.wall_time for event in curves["search/sigma"]]
    assert [at - times[0] for at in times] == pytest.approx(
        [seconds - run.metrics["seconds"][0] for seconds in run.metrics["seconds"]], abs=1e-5
    )


def half_time(run):
    """How long its training had taken when half of it was first shown."""
    return run.metrics["seconds"][89]


def test_a_resumed_run_shows_no_iteration_twice(trained, tmp_path):
    run = replace(load(trained.folder), path=tmp_path)
    Tracking("tensorboard")([replace(run, metrics={name: column[:90] for name, column in run.metrics.items()})])
    assert len(shown(tmp_path)["search/sigma"]) == 90
    Tracking("tensorboard")([run])  # as another process does that goes on from an earlier checkpoint
    assert [event.step for event in shown(tmp_path)["search/sigma"]] == list(range(200))


def test_what_was_written_is_there_when_the_process_is_killed(tmp_path):
    code = (
        "import os, pathlib, types; from pcces.integrations.trackers import Tracking;"
        "metrics = {'iteration': [0, 1], 'steps': [5, 9], 'seconds': [1.0, 2.0], 'return': [3.0, 4.0]};"
        f"run = types.SimpleNamespace(path=pathlib.Path({str(tmp_path)!r}), metrics=metrics, config={{}});"
        "Tracking('tensorboard')([run]);"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], env=environment())
    assert [event.value for event in shown(tmp_path)["episode/return"]] == [3.0, 4.0]


def test_the_command_line_writes_event_files_when_asked(trained, two_seeds):
    assert not list(trained.folder.glob("*tfevents*"))
    for seed in ("seed-0", "seed-1"):
        folder = two_seeds.folder / seed
        curves = shown(folder)
        assert [file.name for file in folder.glob("*tfevents*")] == [NAME]
        for tag, column in SHOWN.items():
            assert [event.value for event in curves[tag]] == pytest.approx(load(folder).metrics[column])


def test_without_the_extra_it_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ImportError, match=r"pip install 'pcces\[tensorboard\]'"):
        TensorBoard.check()
    done = CliRunner().invoke(app, ["train", "CartSafe-v0", "--iterations", "1", "--tensorboard"])
    assert done.exit_code == 2 and done.stderr.startswith("error: ") and "pcces[tensorboard]" in done.stderr
    assert not list(tmp_path.iterdir())
