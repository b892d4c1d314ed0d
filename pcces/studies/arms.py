"""An arm of an experiment: one algorithm on one task with its settings, trained on several seeds."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

from pcces.support.jsonable import jsonable

NAMES = {
    "pcces": "PCCES",
    "openes": "OpenES",
    "asebo": "ASEBO",
    "ppo-lag": "PPO-Lagrangian",
    "rcpo": "RCPO",
    "cpo": "CPO",
}
# Settings that are not part of a name: how large nets are, how they start, how much is played.
UNSAID = ("hidden", "initial_tries", "last_layer", "member_episodes", "epoch_steps")
# Environment steps that count as an iteration of PCCES; one of CPO, RCPO and PPO-Lagrangian has them.
EPOCH_STEPS = 30_000


@dataclass(frozen=True)
class Arm:
    """What `train_seeds` is asked for. Equal arms have equal results, so they are run once.

    PCCES chooses the size of its batches by its budget, so its iterations stand for EPOCH_STEPS environment steps each, if
    it is not told how large they are.
    """

    task: str
    algorithm: str = "pcces"
    preset: str = "default"
    iterations: int = 300
    population: int | None = None
    threshold: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    certify_episodes: int | None = None  # where other than usual

    @property
    def ours(self) -> bool:
        """Whether it is PCCES as people get it."""
        return (self.algorithm, self.preset) == ("pcces", "default")

    @property
    def label(self) -> str:
        """The algorithm's name as a figure shows it.

        >>> Arm("CartSafe-v0", preset="paper").label, Arm("CartSafe-v0", "cpo").label
        ('PCCES, paper preset', 'CPO')
        """
        name = NAMES.get(self.algorithm, self.algorithm)
        return name if self.preset == "default" else f"{name}, {self.preset} preset"

    @property
    def name(self) -> str:
        """What it is called within its task.

        >>> Arm("Acrobot-v1", "openes", population=80, settings={"mu": 0.1}).name
        'OpenES, 80 samples, mu 0.1'
        """
        shown = {name: value for name, value in self.settings.items() if name not in UNSAID}
        population = f", {self.population} samples" if self.population else ""
        return self.label + population + "".join(f", {name} {value:g}" for name, value in shown.items())

    def keywords(self) -> dict[str, Any]:
        """The arguments of `train_seeds`."""
        given: dict[str, Any] = {"algorithm": self.algorithm}
        if self.ours:
            given |= {"steps": self.iterations * self.settings.get("epoch_steps", EPOCH_STEPS)}
        else:
            given |= {"iterations": self.iterations}
        given |= {"preset": self.preset} if self.preset != "default" else {}
        given |= {"population": self.population} if self.population is not None else {}
        given |= {"threshold": self.threshold} if self.threshold is not None else {}
        given |= {"certify_episodes": self.certify_episodes} if self.certify_episodes is not None else {}
        return given | {name: tuple(v) if isinstance(v, list) else v for name, v in self.settings.items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Arm:
        """What `to_dict` gave, after JSON has made lists of tuples."""
        settings = {name: tuple(v) if isinstance(v, list) else v for name, v in data["settings"].items()}
        return cls(**data | {"settings": settings})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return {name: v for name, v in asdict(self).items() if name != "certify_episodes" or v is not None}

    def resolved(self) -> dict[str, Any]:
        """Every setting, those included that the arm leaves at their defaults.

        >>> Arm("CartSafe-v0", "openes", population=80).resolved()["population"]
        80
        """
        from pcces.policies import find_algorithm

        others = ("algorithm", "preset", "threshold", "certify_episodes", "steps")
        given = {name: v for name, v in self.keywords().items() if name not in others} | {"iterations": self.iterations}
        chosen = find_algorithm(self.algorithm).settings(self.preset, **given)
        return dict(jsonable(chosen.to_dict()))

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
