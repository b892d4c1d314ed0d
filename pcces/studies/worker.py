"""One arm in a process of its own: `python -m pcces.studies.worker '{"arm": .., "seeds": .., "store": ..}'`.

Says how far it is in JSON lines on standard output. Killed, it goes on from its last checkpoint when called again.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import jax

from pcces.policies import train_seeds
from pcces.rl.folder import read_metrics
from pcces.rl.request import versions
from pcces.rl.run import Run
from pcces.studies.arms import Arm
from pcces.studies.protocol import NAVIGATION
from pcces.studies.store import Store, record
from pcces.support.jsonable import jsonable

PR_SET_PDEATHSIG = 1


def say(**said: Any) -> None:
    """One line for whoever listens."""
    print(json.dumps(said), flush=True)


def made_on(engine: str) -> dict[str, Any]:
    """What a result was made with."""
    device = "cpu"
    if engine == "device":
        device = jax.devices()[0].device_kind
    return {
        "device": device,
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "versions": versions(),
    }


def work(arm: Arm, seeds: list[int], store: Store, measures: list[str], **engine: Any) -> None:
    """Train the seeds, or go on with them, and keep what came out. Seeds that are done are only measured.

    Seeds that a stopped study left equally far go on together; those that it had not begun come last.
    """
    folder = store.folder / "runs" / arm.key
    far = {seed: iterations_in(folder / f"seed-{seed}") for seed in seeds}
    if "engine" not in engine and arm.task in NAVIGATION and jax.default_backend() != "cpu":
        engine["engine"] = "device"  # a GPU plays them in JAX; on a CPU workers with MuJoCo are faster
    for done in sorted(set(far.values()), reverse=True):
        together = [seed for seed in seeds if far[seed] == done]

        def progress(runs: list[Run], together: list[int] = together) -> None:
            far.update(dict.fromkeys(together, len(runs[0].metrics["iteration"])))
            share = arm.iterations / runs[0].config["settings"]["iterations"]  # PCCES's may be of more steps, or fewer
            say(done=sum(far.values()) / len(seeds) * share)

        say(done=sum(far.values()) / len(seeds))
        if not done:
            for seed in together:
                shutil.rmtree(folder / f"seed-{seed}", ignore_errors=True)
        runs = train_seeds(
            arm.task, together, out=folder, resume=done > 0, progress=False, callback=progress, report=False, **engine,
            **arm.keywords(),
        )  # fmt: skip
        used = jsonable(runs[0].config["settings"])
        store.add(arm, [record(run, measures) for run in runs], made_on(runs[0].config["engine"]), used)


def iterations_in(path: Path) -> int:
    """How far the run in a folder can go on from; 0 where there is none."""
    if not ((path / "checkpoint.npz").exists() or (path / "policy.npz").exists()):
        return 0
    return len(read_metrics(path / "metrics.csv")["iteration"])


def end_with_parent() -> None:
    """Have this process ended when the one that started it is, however that happens (Linux)."""
    with contextlib.suppress(OSError, AttributeError):  # elsewhere it ends when it next has something to say
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def main() -> None:
    """What `study` starts."""
    end_with_parent()
    asked = json.loads(sys.argv[1])
    os.sched_setaffinity(0, asked["cores"])  # before JAX counts them
    work(Arm(**asked["arm"]), asked["seeds"], Store(Path(asked["store"])), asked["measures"], **asked["engine"])


if __name__ == "__main__":
    main()
