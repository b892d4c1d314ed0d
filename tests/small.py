"""Small runs for the tests of everything around training: one configuration, so that it is compiled once."""

import os
import subprocess
import sys
from pathlib import Path

PCCES = str(Path(sys.executable).parent / "pcces")
# Long enough that a kill finds it in the middle; a limit that a bound from 50 episodes can be below.
SETTINGS = dict(iterations=200, population=8, initial_tries=4, certify_episodes=50, warm_up=2)
SMALL = ["CartSafe-v0", "--iterations", "200", "--population", "8"]
SMALL += [f"--set={name}={SETTINGS[name]}" for name in ("initial_tries", "certify_episodes", "warm_up")]
LOOSE = ["--threshold", "250"]


def environment():
    return os.environ | {"COLUMNS": "100"}


def pcces(*words, cwd):
    """Run the command line as a person types it."""
    words = [PCCES, *map(str, words)]
    return subprocess.run(words, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=300)


def start(*words, cwd, **streams):
    return subprocess.Popen([PCCES, *map(str, words)], cwd=cwd, env=environment(), **streams)
