"""An arm of an experiment: one algorithm on one task with its settings, trained on several seeds; and what came of it.

Results are kept in a folder, one JSON file an arm, found again by the arm's configuration: what is done is not done twice.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcces.studies.measures import MEASURES
from pcces.support import files as storage

if TYPE_CHECKING:
    from pcces.rl.run import Run

POINTS = 60  # of a curve that is kept: each is a mean over as many iterations as it takes
DIGITS = 5
NAMES = {
    "pcces": "PCCES",
    "openes": "OpenES",
    "asebo": "ASEBO",
    "ppo-lag": "PPO-Lagrangian",
    "rcpo": "RCPO",
    "cpo": "CPO",
}


@dataclass(frozen=True)
class Arm:
    """What `train_seeds` is asked for. Equal arms have equal results, so they are run once."""

    task: str
    algorithm: str = "pcces"
    preset: str = "default"
    iterations: int = 300
    population: int | None = None
    threshold: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    certify_episodes: int | None = None  # where other than usual

    @property
    def label(self) -> str:
        """The algorithm's name as a figure shows it.

        >>> Arm("CartSafe-v0", preset="paper").label, Arm("CartSafe-v0", "cpo").label
        ('PCCES, paper preset', 'CPO')
        """
        name = NAMES.get(self.algorithm, self.algorithm)
        return name if self.preset == "default" else f"{name}, {self.preset} preset"

    def keywords(self) -> dict[str, Any]:
        """The arguments of `train_seeds`."""
        given = {"algorithm": self.algorithm, "iterations": self.iterations}
        given |= {"preset": self.preset} if self.preset != "default" else {}
        given |= {"population": self.population} if self.population is not None else {}
        given |= {"threshold": self.threshold} if self.threshold is not None else {}
        given |= {"certify_episodes": self.certify_episodes} if self.certify_episodes is not None else {}
        return given | {name: tuple(v) if isinstance(v, list) else v for name, v in self.settings.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {name: v for name, v in asdict(self).items() if name != "certify_episodes" or v is not None}

    def resolved(self) -> dict[str, Any]:
        """Every setting, those included that the arm leaves at their defaults.

        >>> Arm("CartSafe-v0", population=80).resolved()["population"]
        80
        """
        from pcces.policies import find_algorithm

        others = ("algorithm", "preset", "threshold", "certify_episodes")
        given = {name: v for name, v in self.keywords().items() if name not in others}
        chosen = find_algorithm(self.algorithm).settings(self.preset, **given)
        return dict(json.loads(json.dumps(chosen.to_dict())))

    @property
    def key(self) -> str:
        """The name of the arm's files.

        >>> Arm("CartSafe-v0").key == Arm("CartSafe-v0", iterations=300).key != Arm("CartSafe-v0", threshold=20).key
        True
        """
        said = json.dumps(self.to_dict(), sort_keys=True)
        short = hashlib.sha256(said.encode()).hexdigest()[:8]
        preset = "" if self.preset == "default" else f"-{self.preset}"
        return f"{self.task.replace('/', '-')}_{self.algorithm}{preset}_{short}"


Record = dict[str, Any]


def record(run: Run, measures: Iterable[str] = ()) -> Record:
    """A finished run in a few kilobytes: its final numbers, its certificate, a thinned curve, and what else is asked for."""
    assert run.certificate is not None
    over = run.metrics.get("over_threshold", [])
    final = {name: run.final[name] for name in ("return", "costs", "entropy", "length", "episodes")}
    kept = ("return", "entropy", "over_threshold", "success", "sigma")
    curves = {name: v for name, v in run.metrics.items() if name in kept or name.startswith("cost_")}
    found = {
        "seed": run.config["seed"],
        **final,
        "certified": run.certificate.holds,
        "upper_bounds": list(run.certificate.upper_bounds),
        "thresholds": list(run.problem.thresholds),
        "entropy_bounds": list(run.problem.entropy_bounds),
        "over": sum(over) / len(over) if over else None,
        "steps": run.metrics["steps"][-1],
        "seconds": run.metrics["seconds"][-1],
        "curve": {name: thinned(values) for name, values in curves.items()}
        | {name: ends(run.metrics[name]) for name in ("iteration", "steps")},
    }
    return rounded(found | {name: MEASURES[name](run) for name in measures})


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
    """Numbers with DIGITS digits, and None for what JSON does not know."""
    if isinstance(value, bool) or value is None or isinstance(value, str | int):
        return value
    if isinstance(value, dict):
        return {name: rounded(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return float(f"{float(value):.{DIGITS}g}") if math.isfinite(value) else None


def _read(file: Path) -> dict[str, Any]:
    """What a file holds: of the results of an arm, all that belongs to them."""
    try:
        data = json.loads(file.read_text())
        if not isinstance(data, dict):
            return {}  # not ours
        if lacking := {"settings", "where", "runs"} - set(data) if "arm" in data else set():
            raise ValueError(f"it lacks {', '.join(sorted(lacking))}")
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
        """Of the arm itself and those that differ only in having fewer iterations, the one that most of the seeds ran,
        and of several the longest."""
        shorter = [other for other in self.arms() if other.iterations < arm.iterations]
        alike = [arm, *(other for other in shorter if replace(other, iterations=arm.iterations) == arm)]
        ran = {other.key: len(set(seeds) & set(self.read(other))) for other in alike}
        best = max(alike, key=lambda other: (ran[other.key], other.iterations))
        return best if ran[best.key] else None

    def arms(self) -> list[Arm]:
        """All that there are results of."""
        found = []
        for file in sorted(self.folder.glob("*_*_*.json")):
            said = self._load(file).get("arm")
            if said is None:
                continue  # not ours
            settings = {name: tuple(v) if isinstance(v, list) else v for name, v in said["settings"].items()}
            found.append(Arm(**said | {"settings": settings}))
        return found

    def where(self, arm: Arm) -> dict[str, Any]:
        """What an arm's results were made with, but for runs that say otherwise."""
        return dict(self._load(self.file(arm))["where"])

    def settings(self, arm: Arm) -> dict[str, Any]:
        """All settings an arm's results were made with, those included that are others on slow simulators."""
        data = self._load(self.file(arm))
        return data["settings"] | data.get("used", {})

    def add(
        self, arm: Arm, records: Iterable[Record], where: dict[str, Any], used: dict[str, Any] | None = None
    ) -> None:
        """Keep results; seeds that are there already are replaced. Those made elsewhere than the first ones say so.

        `used` are the settings of the runs, which differ from the arm's where episodes are slow.
        """
        there = self.read(arm)
        first = self.where(arm) if there else where
        runs = there | {one["seed"]: one if where == first else one | {"where": where} for one in records}
        asked = arm.resolved()
        data: dict[str, Any] = {"arm": arm.to_dict(), "settings": asked, "where": first}
        used = self.settings(arm) if there and used is None else used or asked
        if others := {name: value for name, value in used.items() if asked[name] != value}:
            data["used"] = others
        data["runs"] = [runs[seed] for seed in sorted(runs)]
        self.folder.mkdir(parents=True, exist_ok=True)
        lines = json.dumps(data, separators=(",", ":")).replace('{"seed"', '\n{"seed"')
        storage.write_atomically(self.file(arm), lines.encode())

    def missing(self, arm: Arm, seeds: Iterable[int], measures: Iterable[str] = ()) -> list[int]:
        """The seeds still to be run, or to be measured."""
        there = {seed for seed, run in self.read(arm).items() if set(measures) <= set(run)}
        return [seed for seed in seeds if seed not in there]
