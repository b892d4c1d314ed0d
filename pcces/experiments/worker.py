"""One arm in a process of its own: `python -m pcces.experiments.worker '{"arm": .., "seeds": .., "store": ..}'`.

Says how far it is in JSON lines on standard output. Killed, it goes on from its last checkpoint when called again.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from pcces.experiments.arms import Arm, Store, record
from pcces.rl.train import train_seeds, versions
from pcces.runs import Run, read_metrics


def say(**said: Any) -> None:
    """One line for whoever listens."""
    print(json.dumps(said), flush=True)


def place(engine: str) -> dict[str, Any]:
    """What a result was made with."""
    device = "cpu"
    if engine == "device":
        import jax

        device = jax.devices()[0].device_kind
    return {
        "device": device,
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "versions": versions(),
    }


def work(arm: Arm, seeds: list[int], store: Store, measures: list[str], **engine: Any) -> None:
    """Train the seeds, or go on with them, and keep what came out. Seeds that are done are only measured."""
    folder = store.folder / "runs" / arm.key
    paths = [folder / f"seed-{seed}" for seed in seeds]
    going_on = all((path / "checkpoint.npz").exists() or (path / "policy.npz").exists() for path in paths)
    if not going_on:
        for path in paths:
            shutil.rmtree(path, ignore_errors=True)

    def progress(runs: list[Run]) -> None:
        say(done=len(runs[0].metrics["iteration"]))

    say(done=len(read_metrics(paths[0] / "metrics.csv")["iteration"]) if going_on else 0)

    runs = train_seeds(
        arm.task, seeds, out=folder, resume=going_on, progress=False, callback=progress, report=False, **engine,
        **arm.keywords(),
    )  # fmt: skip
    used = json.loads(json.dumps(runs[0].config["settings"]))
    store.add(arm, [record(run, measures) for run in runs], place(runs[0].config["engine"]), used)


def main() -> None:
    """What `study` starts."""
    asked = json.loads(sys.argv[1])
    os.sched_setaffinity(0, asked["cores"])  # before JAX counts them
    work(Arm(**asked["arm"]), asked["seeds"], Store(Path(asked["store"])), asked["measures"], **asked["engine"])


if __name__ == "__main__":
    main()
