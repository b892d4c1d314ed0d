"""Results in a folder: one JSON file an arm, found again by the arm's configuration, so that what is done is not done twice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcces.studies.arms import Arm
from pcces.studies.measures import MEASURES
from pcces.support import files
from pcces.support.jsonable import jsonable, to_json
from pcces.support.schema import FLAG, NAMES, NUMBER, TEXT, check, optional, several, whole

if TYPE_CHECKING:
    from pcces.rl.run import Run

POINTS = 60  # of a curve that is kept: each is a mean over as many iterations as it takes
DIGITS = 5
FILES = "*_*_*.json"
ARM = {
    "task": TEXT, "algorithm": TEXT, "preset": TEXT, "iterations": whole(1), "population": optional(whole(1)),
    "threshold": optional(NUMBER), "settings": NAMES,
}  # fmt: skip
RUN = {
    "seed": whole(0), "return": optional(NUMBER), "costs": several(optional(NUMBER)), "entropy": optional(NUMBER),
    "length": optional(NUMBER), "episodes": whole(0), "certified": FLAG, "grade": TEXT, "upper_bounds": several(optional(NUMBER)),
    "thresholds": several(NUMBER), "steps": optional(NUMBER), "seconds": optional(NUMBER), "curve": NAMES,
}  # fmt: skip

Record = dict[str, Any]


def record(run: Run, measures: Iterable[str] = ()) -> Record:
    """A finished run in a few kilobytes: its final numbers, its certificate, a thinned curve, and what else is asked for."""
    assert run.certificate is not None
    over = run.metrics.get("over_threshold", [])
    final = {name: run.final[name] for name in ("return", "costs", "entropy", "length", "episodes")}
    drawn = ("return", "entropy", "over_threshold", "success", "sigma")
    curves = {name: v for name, v in run.metrics.items() if name in drawn or name.startswith("cost_")}
    kept: Record = {
        "seed": run.config["seed"],
        **final,
        "certified": run.certificate.holds,
        "grade": run.certificate.grade,
        "upper_bounds": list(run.certificate.upper_bounds),
        "thresholds": list(run.problem.thresholds),
        "entropy_bounds": list(run.problem.entropy_bounds),
        "over": sum(over) / len(over) if over else None,
        "steps": run.metrics["steps"][-1],
        "seconds": run.metrics["seconds"][-1],
        "curve": {name: thinned(values) for name, values in curves.items()}
        | {name: ends(run.metrics[name]) for name in ("iteration", "steps")},
    }
    kept |= {name: MEASURES[name](run) for name in measures}
    return {name: rounded(value) for name, value in jsonable(kept).items()}


def spans(count: int) -> list[tuple[int, int]]:
    """At most POINTS spans of a curve's entries."""
    points = min(POINTS, count)
    return [(i * count // points, (i + 1) * count // points) for i in range(points)]


def thinned(values: Sequence[float]) -> list[float]:
    """Means over the spans."""
    return [math.fsum(values[a:b]) / (b - a) for a, b in spans(len(values))]


def ends(values: Sequence[float]) -> list[float]:
    """The last values of the spans."""
    return [values[b - 1] for _, b in spans(len(values))]


def rounded(value: Any) -> Any:
    """Plain data whose numbers have DIGITS digits.

    >>> rounded({"a": [1.23456789, None], "b": True})
    {'a': [1.2346, None], 'b': True}
    """
    if isinstance(value, dict):
        return {name: rounded(v) for name, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _read(file: Path) -> dict[str, Any]:
    """What a file holds: of the results of an arm, all that belongs to them."""
    try:
        data = files.read_json(file)
        if not isinstance(data, dict):
            return {}  # not ours
        if "arm" in data:
            check(data, {"arm": NAMES, "settings": NAMES, "where": NAMES, "runs": several(NAMES)})
            check(data["arm"], ARM, "arm", {"task", "algorithm", "preset", "iterations", "settings"})
            for run in data["runs"]:
                check(run, RUN, "a run", needed=set(RUN) - {"grade"})  # of earlier results there is none
    except ValueError as error:
        raise ValueError(f"{file} is damaged ({error}): delete it and run the study again") from error
    return data


class Store:
    """The folder of results."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self._cache: dict[Path, tuple[int, dict[str, Any]]] = {}

    def _load(self, file: Path) -> dict[str, Any]:
        changed = file.stat().st_mtime_ns
        if self._cache.get(file, (0,))[0] != changed:
            self._cache[file] = changed, _read(file)
        return self._cache[file][1]

    def file(self, arm: Arm) -> Path:
        """Where an arm's results are."""
        return self.folder / f"{arm.key}.json"

    def read(self, arm: Arm) -> dict[int, Record]:
        """What is known of an arm, by seed. Results of other settings (the defaults have changed since) are not."""
        if not self.file(arm).exists():
            return {}
        data = self._load(self.file(arm))
        if data["settings"] != arm.resolved():
            return {}
        return {run["seed"]: run for run in data["runs"]}

    def nearest(self, arm: Arm, seeds: Iterable[int]) -> Arm | None:
        """The arm itself, or one that differs only in having fewer iterations: the one that most of the seeds ran,
        and of several the longest."""
        shorter = [other for other in self.arms() if other.iterations < arm.iterations]
        alike = [arm, *(other for other in shorter if replace(other, iterations=arm.iterations) == arm)]
        ran = {other.key: len(set(seeds) & set(self.read(other))) for other in alike}
        best = max(alike, key=lambda other: (ran[other.key], other.iterations))
        return best if ran[best.key] else None

    def arms(self) -> list[Arm]:
        """All that there are results of."""
        loaded = map(self._load, sorted(self.folder.glob(FILES)))
        return [Arm.from_dict(data["arm"]) for data in loaded if "arm" in data]  # the others are not ours

    def made_on(self, arm: Arm) -> dict[str, Any]:
        """What an arm's results were made with, but for runs that say otherwise."""
        return dict(self._load(self.file(arm))["where"])

    def settings(self, arm: Arm) -> dict[str, Any]:
        """All settings an arm's results were made with, those included that are others on slow simulators."""
        data = self._load(self.file(arm))
        return data["settings"] | data.get("used", {})

    def add(
        self, arm: Arm, records: Iterable[Record], made_on: dict[str, Any], used: dict[str, Any] | None = None
    ) -> None:
        """Keep results; seeds that are there already are replaced. Those made elsewhere than the first ones say so.

        `used` are the settings of the runs, which differ from the arm's where episodes are slow.
        """
        there = self.read(arm)
        first = self.made_on(arm) if there else made_on
        runs = there | {run["seed"]: run if made_on == first else run | {"where": made_on} for run in records}
        asked = arm.resolved()
        data: dict[str, Any] = {"arm": arm.to_dict(), "settings": asked, "where": first}
        used = self.settings(arm) if there and used is None else used or asked
        if others := {name: value for name, value in used.items() if asked[name] != value}:
            data["used"] = others
        data["runs"] = [runs[seed] for seed in sorted(runs)]
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = to_json(data, indent=None).replace('{"seed"', '\n{"seed"')
        files.write_atomically(self.file(arm), lines.encode())

    def missing(self, arm: Arm, seeds: Iterable[int], measures: Iterable[str] = ()) -> list[int]:
        """The seeds still to be run, or to be measured."""
        there = {seed for seed, run in self.read(arm).items() if set(measures) <= set(run)}
        return [seed for seed in seeds if seed not in there]
