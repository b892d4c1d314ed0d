"""Trackers: what they are told, that training does not suffer from them, and those of other tools in their offline modes."""

import functools
import json
import logging
import struct
import sys
from types import SimpleNamespace

import pytest
from small import FEW
from typer.testing import CliRunner

from pcces.cli import app
from pcces.cli.train import again
from pcces.core.certificate import Certificate
from pcces.integrations.trackers import Tracking, makers
from pcces.policies import train, train_seeds


class Notes:
    """A tracker of one's own."""

    def __init__(self, run=None, fails_at=None):
        self.config, self.rows, self.closed, self.fails_at = None, [], 0, fails_at

    def log_config(self, config):
        self.config = config

    def log_metrics(self, step, values):
        if self.fails_at is not None and len(self.rows) == self.fails_at:
            raise RuntimeError("no connection")
        self.rows.append((step, values))

    def close(self):
        self.closed += 1


def run_of(path=None, count=3):
    steps, returns = [100.0 * (k + 1) for k in range(count)], [1.5 * k for k in range(count)]
    metrics = {
        "iteration": list(range(count)),
        "return": returns,
        "steps": steps,
        "seconds": [0.5 * k for k in range(count)],
    }
    metrics["cost_heat"] = [float("nan"), 2.0, 1.0][:count]
    config = {
        "task": "Mill-v0",
        "algorithm": "pcces",
        "seed": 4,
        "settings": {"rate": 0.1, "hidden": [4, 4]},
        "steps": None,
    }
    final = {"return": 7.0, "costs": [0.25], "cost_names": ["heat"]}
    return SimpleNamespace(
        config=config, path=path, metrics=metrics, final=final, certificate=Certificate(True, 0.95, (), 9, "t")
    )


def followed(tracker, run):
    """Everything of a finished run."""
    tracking = Tracking(tracker)
    tracking([run])
    tracking.close()


def test_a_tracker_of_ones_own_is_told_of_every_iteration_once_and_of_the_certificate():
    notes, run = Notes(), run_of()
    tracking = Tracking(notes)
    whole = run.metrics
    for count in (1, 1, 3):
        run.metrics = {name: column[:count] for name, column in whole.items()}
        tracking([run])
    assert notes.config is run.config and not notes.closed
    assert notes.rows[0] == (100, {"iteration": 0.0, "return": 0.0, "seconds": 0.0})  # what is not known is left out
    assert notes.rows[2] == (300, {"iteration": 2.0, "return": 3.0, "seconds": 1.0, "cost_heat": 1.0})
    assert len(notes.rows) == 3
    tracking.close()
    end = {"iteration": 2, "seconds": 1.0, "certified": 1.0, "final_return": 7.0, "final_cost_heat": 0.25}
    assert notes.rows[3:] == [(300, end)] and notes.closed == 1
    tracking.close()
    assert notes.closed == 1


def test_training_is_followed():
    notes, seen = Notes(), []
    run = train(
        "CartSafe-v0", trackers=[notes], callback=lambda runs: seen.append(len(notes.rows)), report=False, **FEW
    )
    assert [step for step, _ in notes.rows] == [*run.metrics["steps"], run.metrics["steps"][-1]] and notes.closed == 1
    assert [values["return"] for _, values in notes.rows[:2]] == run.metrics["return"]
    assert notes.rows[-1][1]["certified"] == float(run.certificate.holds) and notes.config == run.config
    assert seen == [1, 2]  # other callbacks are called as well
    made = []
    runs = train_seeds(
        "CartSafe-v0", range(2), trackers=lambda run: made.append(Notes()) or made[-1], report=False, **FEW
    )
    assert [notes.config["seed"] for notes in made] == [0, 1] and all(notes.closed == 1 for notes in made)
    assert [notes.rows[0][1]["return"] for notes in made] == [run.metrics["return"][0] for run in runs]
    with pytest.raises(ValueError, match="follows one run, but there are 2"):
        train_seeds("CartSafe-v0", range(2), trackers=notes, **FEW)


def test_an_interrupted_training_lets_its_trackers_go():
    notes = Notes()

    def interrupt(runs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("CartSafe-v0", trackers=notes, callback=interrupt, report=False, **FEW)
    assert len(notes.rows) == 1 and notes.closed == 1  # and of a certificate nothing is told


def test_a_tracker_that_fails_is_left_out_and_the_others_go_on(caplog):
    good, bad = Notes(), Notes(fails_at=1)
    tracking = Tracking([bad, good])
    with caplog.at_level(logging.WARNING, "pcces"):
        for _ in range(3):
            tracking([run_of()])
        tracking.close()
    assert [len(notes.rows) for notes in (good, bad)] == [4, 1] and (good.closed, bad.closed) == (1, 0)
    assert [r.getMessage() for r in caplog.records] == ["Notes was dropped: RuntimeError: no connection"]


def test_a_tracker_that_cannot_begin_says_so():
    def unreachable(run):
        raise RuntimeError("no key")

    with pytest.raises(ConnectionError, match=r"unreachable cannot follow the run \(RuntimeError: no key\)"):
        Tracking(unreachable)([run_of()])


def test_what_is_no_tracker_is_refused():
    with pytest.raises(TypeError, match="or a function that makes one for a run; got 3"):
        makers(3)
    with pytest.raises(ValueError, match="unknown tracker 'tensorbord'; there are tensorboard, wandb, mlflow"):
        train("CartSafe-v0", trackers="tensorbord", **FEW)
    done = CliRunner().invoke(app, ["train", "CartSafe-v0", "--track", "neptune"])
    assert done.exit_code == 2 and "unknown tracker 'neptune'" in done.stderr
    assert makers(None) == [] and isinstance(makers(Notes)[0](run_of()), Notes)  # a class makes them, too


def test_what_to_type_to_go_on_names_the_trackers(tmp_path):
    words = again("CartSafe-v0", tmp_path, {"track": ["wandb", "tensorboard"]})
    assert words.endswith("--resume --track wandb --track tensorboard")


def records(data):
    """The records of a LevelDB log after a head of 7 bytes, which is what Weights & Biases writes offline.

    In blocks of 32 kB are pieces: a checksum (4 bytes), a length (2), whether a record begins or ends there (1), content.
    """
    at, record = 7, b""
    while at + 7 <= len(data):
        if 2**15 - at % 2**15 < 7:  # a block's rest is empty
            at += 2**15 - at % 2**15
            continue
        length, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield record
            record = b""


def test_weights_and_biases_offline(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.chdir(tmp_path)
    from wandb.proto import wandb_internal_pb2

    from pcces.integrations.wandb import WandB

    (tmp_path / "run").mkdir()
    followed(functools.partial(WandB, project="mills"), run_of(tmp_path / "run"))
    assert wandb.run is None
    (file,) = (tmp_path / "run").glob("wandb/offline-run-*/*.wandb")
    rows, config, project = [], {}, ""
    for data in records(file.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "history":
            items = {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record.history.item}
            rows.append({name: value for name, value in items.items() if not name.startswith("_")})
        elif kind == "config":
            config |= {i.key or "/".join(i.nested_key): json.loads(i.value_json) for i in record.config.update}
        elif kind == "run":
            project = record.run.project
    assert project == "mills" and config["seed"] == 4 and config["settings"] == {"rate": 0.1, "hidden": [4, 4]}
    assert [row["steps"] for row in rows] == [100, 200, 300, 300]
    assert rows[1] == {"steps": 200, "iteration": 1, "seconds": 0.5, "episode/return": 1.5, "costs/heat": 2.0}
    assert rows[3]["certificate/certified"] == 1 and rows[3]["certificate/cost_heat"] == 0.25


def test_mlflow_in_a_file(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    from pcces.integrations.mlflow import MLflow

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    followed([functools.partial(MLflow, experiment="mills", uri=uri)], run_of())
    client = mlflow.MlflowClient(uri)
    (run,) = client.search_runs([client.get_experiment_by_name("mills").experiment_id])
    assert run.info.status == "FINISHED" and run.info.run_name == "Mill-v0-pcces-seed4"
    assert run.data.params["settings.hidden"] == "[4, 4]" and run.data.params["task"] == "Mill-v0"
    over = {name: client.get_metric_history(run.info.run_id, name) for name in run.data.metrics}
    assert [(m.step, m.value) for m in over["episode/return"]] == [(100, 0.0), (200, 1.5), (300, 3.0)]
    assert [(m.step, m.value) for m in over["by_iteration/costs/heat"]] == [(1, 2.0), (2, 1.0)]
    assert [m.value for m in over["by_iteration/search/steps"]] == [100, 200, 300]
    times = [m.timestamp for m in over["episode/return"]]
    assert times[2] - times[0] == 1000 and run.data.metrics["certificate/return"] == 7.0


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_without_the_extra_it_is_refused_before_any_work(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"pip install 'pcces\[{name}\]'"):
        train("CartSafe-v0", trackers=name, out=tmp_path / "run", **FEW)
    assert not list(tmp_path.iterdir())
