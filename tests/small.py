"""Small runs for the tests of everything around training: one configuration each, so that it is compiled once."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from pcces.core.limits import Probability, Quantile

# Keywords of `train`: the smallest training with the default preset, and with the paper's.
BATCH = dict(epoch_steps=600, hidden=(4,), critic_hidden=(4,), passes=2, minibatches=2, bold=0.0)
FEW = dict(iterations=2, certify_episodes=20, **BATCH)
POPULATION = dict(preset="paper", iterations=2, population=8, warm_up=1, m=3, hidden=(4,), certify_episodes=20)

# Options that lead a search along different ways, for tests of budgets.
KINDS = [
    {},
    {"samples": 3},
    {"incumbent": "fresh"},
    {"incumbent": "kept", "samples_max": 5},
    {"deterministic": True},
    {"limits": [Probability(at_most=0.1)] * 2, "objective": Quantile(0.9)},
    {"constraint_range": ((-99.0, 99.0),) * 2},
    {"common_random_numbers": True},
    {"population": 30},
    {"certify_share": 0.9},
    {"max_iterations": 2},
]


def words(settings):
    """The same on the command line.

    >>> words(dict(iterations=2, hidden=(4, 3)))
    ['--iterations=2', '--set=hidden=4,3']
    """
    options = ("preset", "iterations", "population")
    said = {k: ",".join(map(str, v)) if isinstance(v, tuple) else v for k, v in settings.items()}
    return [f"--{name}={v}" if name in options else f"--set={name}={v}" for name, v in said.items()]


PCCES = str(Path(sys.executable).parent / "pcces")
# Long enough that a kill finds it in the middle.
SMALL = ["CartSafe-v0", *words(FEW | dict(iterations=200, certify_episodes=50))]
LOOSE, IMPOSSIBLE = ["--threshold", "250"], ["--threshold", "0"]  # limits that any policy keeps, and that none can


def environment():
    """Of a process that tests start: programs compile as quickly there as here."""
    return os.environ | {"COLUMNS": "100"}


def pcces(*words, cwd):
    """Run the command line as a person types it."""
    words = [PCCES, *map(str, words)]
    return subprocess.run(words, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=300)


ONE_AFTER_THE_OTHER = """
import json, sys
from typer.testing import CliRunner
from pcces.cli import app
done = [CliRunner().invoke(app, words) for words in json.loads(sys.argv[1])]
print("done:" + json.dumps([[one.exit_code, one.stdout, one.stderr] for one in done]))
"""


def several(*commands, cwd):
    """Run several commands in a single new process, for what each of them would have to import."""
    said = json.dumps([[str(word) for word in words] for words in commands])
    python = [sys.executable, "-c", ONE_AFTER_THE_OTHER, said]
    done = subprocess.run(python, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=300, check=True)
    results = json.loads(done.stdout.rpartition("done:")[2])
    return [subprocess.CompletedProcess(words, *result) for words, result in zip(commands, results)]


def start(*words, cwd, **streams):
    return subprocess.Popen([PCCES, *map(str, words)], cwd=cwd, env=environment(), **streams)


class Done(NamedTuple):
    """What a command said in the end, and the folder it left."""

    returncode: int
    stdout: str
    stderr: str
    folder: Path


def once(tmp_path_factory, name, *words):
    """Run a command once for all test processes."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    root.mkdir(exist_ok=True)
    said = root / "said.json"
    try:
        os.close(os.open(root / "begun", os.O_CREAT | os.O_EXCL))  # one test process runs it, the others wait
    except FileExistsError:
        latest = time.monotonic() + 300
        while not said.exists() and time.monotonic() < latest:
            time.sleep(0.1)
    else:
        done = pcces(*words, cwd=root)
        (root / "half.json").write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
        (root / "half.json").rename(said)
    (folder,) = root.glob("runs/*/*")
    return Done(*json.loads(said.read_text()), folder)
