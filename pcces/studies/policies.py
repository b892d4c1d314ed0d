"""The policies behind the numbers: of every task the best that PCCES returned, kept beside the results, and at work."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from pcces.report import Chapter, Columns, Section, at_work
from pcces.rl.film import ordinary_film
from pcces.rl.folder import load, read_config
from pcces.studies.arm_results import results_of
from pcces.studies.experiment import Experiment
from pcces.studies.store import Store

FILES = ("config.json", "policy.npz", "certificate.json")  # what `pcces.load` needs of a run
WIDTH = 320  # pixels of an animation: a page has many
INTRODUCTION = (
    "For each task the best policy that PCCES returned, if it was kept. Each is a run in the folder policies/TASK, next to the"
    " results. pcces certify tests it again."
)


def folder(store: Store) -> Path:
    """The folder of policies, with one folder per task."""
    return store.folder / "policies"


def keep(experiments: Iterable[Experiment], store: Store) -> list[Path]:
    """Copy, of each of PCCES's arms in the figures, the certified policy of the highest return, if its run is still there.

    One that was trained for longer is not replaced: a quick study leaves the policies of a full one alone.
    """
    kept = []
    shown = [result for e in experiments if e.keeps for result in results_of(e, store) if result.ours]
    for result in shown:
        runs = {seed: store.folder / "runs" / result.ran.key / f"seed-{seed}" for seed in result.runs}
        there = {seed: (run / "policy.npz").exists() for seed, run in runs.items()}
        best = max(result.runs, key=lambda seed: (result.runs[seed]["certified"], result.returns[seed], there[seed]))
        run = runs[best]
        if not there[best]:
            continue
        target = folder(store) / result.asked.task
        if (target / "config.json").exists() and _length(target) > _length(run):
            continue
        target.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            shutil.copyfile(run / name, target / name)
        kept.append(target)
    return kept


def _length(run: Path) -> int:
    return int(read_config(run).get("steps") or 0)  # one of before there were budgets gives way


def films(store: Store, say: Callable[[str], None] = lambda text: None) -> list[Section]:
    """The chapter that shows them at work; `say` is told what is being filmed."""
    shown: list[Section] = []
    for path in sorted(path.parent for path in folder(store).glob("*/policy.npz")):
        say(f"filming {path.name}")
        shown += at_work([load(path)], f" on {path.name}", partial(ordinary_film, width=WIDTH))
    return [] if not shown else [Chapter("The policies at work", "policies", INTRODUCTION), Columns(shown)]
