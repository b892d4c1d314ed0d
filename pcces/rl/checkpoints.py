"""Checkpoints of runs that advance together: all of them are at the same iteration, even after a kill between two files.

A checkpoint is written next to the one before it, and takes its place when the checkpoints of all seeds are written.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pcces.rl.folder import read_metrics
from pcces.rl.run import Metrics, Run
from pcces.support import files as storage
from pcces.support.schema import FLAG, NUMBER, check, whole
from pcces.support.text import short
from pcces.support.trees import leaves, rebuilt

NAME, NEXT = "checkpoint.npz", ".checkpoint-next.npz"
DATA = {"done": whole(0), "moved": FLAG, "seconds": NUMBER}
LAYOUT = 3  # what a state's arrays mean and how a search goes on from them; 1 had plain sums of observations, 2 no natural gradient


class Checkpoint(NamedTuple):
    """All that one run needs to go on to the same end."""

    state: list[np.ndarray]  # the leaves of the algorithm's state
    candidates: dict[str, np.ndarray]
    done: int  # iterations
    moved: bool  # whether the last of them accepted its trial point
    seconds: float  # spent so far


def write(runs: Sequence[Run], checkpoints: Sequence[Checkpoint]) -> None:
    """Write the checkpoints of all runs that have a folder."""
    there = [(run, run.path, checkpoint) for run, checkpoint in zip(runs, checkpoints) if run.path is not None]
    for run, path, checkpoint in there:
        arrays = {f"state.{j}": leaf for j, leaf in enumerate(checkpoint.state)}
        arrays |= {f"candidates.{name}": value for name, value in checkpoint.candidates.items()}
        data = {"done": checkpoint.done, "moved": checkpoint.moved, "seconds": checkpoint.seconds}
        storage.save(path / NEXT, "checkpoint", arrays, data | {"layout": LAYOUT} | _owner(run))
    for _, path, _ in there:
        os.replace(path / NEXT, path / NAME)


def read(runs: Sequence[Run]) -> list[Checkpoint] | None:
    """The newest checkpoints that all of these runs have, or None if some run has none yet."""
    kept = []
    for run in runs:
        assert run.path is not None
        if not (run.path / NAME).exists() and not (run.path / NEXT).exists():
            return None
        mine = [_read(run, run.path / name) for name in (NAME, NEXT) if (run.path / name).exists()]
        kept.append({checkpoint.done: checkpoint for checkpoint in mine})
    common = set.intersection(*(set(mine) for mine in kept))
    if not common:
        raise ValueError("the runs are not at the same iteration: resume them one by one")
    return [mine[max(common)] for mine in kept]


def metrics_before(checkpoint: Checkpoint, file: Path) -> Metrics:
    """The metrics of all iterations before a checkpoint. Those of later ones, which a kill may have left, are dropped."""
    if not checkpoint.done:
        return {}
    try:
        metrics = {name: column[: checkpoint.done] for name, column in read_metrics(file).items()}
        there = metrics["iteration"]
        if len(there) < checkpoint.done or there != list(range(checkpoint.done)):
            raise ValueError(f"{file} has not all of the {checkpoint.done} iterations before the checkpoint")
    except (OSError, ValueError) as error:
        raise ValueError(f"{error}: this run cannot continue, train again in another folder") from error
    return metrics


def _owner(run: Run) -> dict[str, Any]:
    return {name: run.config[name] for name in ("task", "algorithm", "seed")}


def _read(run: Run, file: Path) -> Checkpoint:
    arrays, data = storage.load(file, "checkpoint")
    for name, mine in _owner(run).items():
        if data.get(name) != mine:
            theirs = short(repr(data.get(name)))
            raise ValueError(f"{file} is the checkpoint of a run with {name} {theirs}, not {mine!r}")
    if data.get("layout", 1) != LAYOUT:
        raise ValueError(f"{file} was written by another version of pcces: continue with that version, or train again")
    try:
        check(data, DATA)
        count = sum(name.startswith("state.") for name in arrays)
        state = [arrays[f"state.{j}"] for j in range(count)]
    except (ValueError, KeyError) as error:
        raise ValueError(f"{file} is damaged ({error})") from error
    candidates = {name.partition(".")[2]: value for name, value in arrays.items() if name.startswith("candidates.")}
    return Checkpoint(state, candidates, data["done"], data["moved"], data["seconds"])


def stacked(template: Any, kept: Sequence[Checkpoint]) -> Any:
    """The states of all runs, seeds first, in the structure of the template."""
    parts = leaves(template)
    for checkpoint in kept:
        there = [(part.shape, part.dtype.kind) for part in checkpoint.state]
        if there != [(part.shape[1:], np.dtype(part.dtype).kind) for part in parts]:
            raise ValueError("the checkpoint is of another run, or of another version of pcces: start the run again")
    return rebuilt(template, [np.stack([checkpoint.state[j] for checkpoint in kept]) for j in range(len(parts))])
