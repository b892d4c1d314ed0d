"""What an experiment is: which arms, how many seeds, and what the paper reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pcces.studies.arms import Arm

if TYPE_CHECKING:
    from pcces.studies.arm_results import ArmResult
    from pcces.studies.claims.finding import Finding


@dataclass(frozen=True)
class Reported:
    """A number of the paper or another source: mean and standard deviation over seeds."""

    mean: float
    deviation: float = 0.0

    def __str__(self) -> str:
        """As the paper has it.

        >>> print(Reported(94.9, 0.4))
        94.9 ± 0.4
        """
        return f"{self.mean:g} ± {self.deviation:g}" if self.deviation else f"{self.mean:g}"


Judge = Callable[["Experiment", Sequence["ArmResult"]], "Finding"]


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper."""

    name: str
    title: str
    where: str  # in the paper
    claim: str  # what the paper says it shows
    arms: Sequence[Arm]
    judge: Judge  # whether the claim holds in the results
    seeds: int = 10  # how many
    first_seed: int = 0
    shows: tuple[str, ...] = ("return",)  # what is drawn: return, cost, entropy, variance
    reported: dict[str, dict[str, Reported]] = field(default_factory=dict)  # by the arm's key: return, cost
    measures: tuple[str, ...] = ()  # taken on the policies that come out (`measures.MEASURES`)
    note: str = ""  # how the paper was read where it leaves a choice
    source: str = "paper"  # of the claim and of the numbers reported
    keeps: bool = False  # whether the best policies of PCCES are kept, and shown at work
    ends: bool = False  # whether the reported numbers are of the end of training, and so are to stand beside those

    @property
    def numbers(self) -> range:
        """The seeds' numbers."""
        return range(self.first_seed, self.first_seed + self.seeds)

    def about(self) -> str:
        """Where it is from, and what is claimed."""
        whose = "The paper: " if self.source == "paper" else ""
        return f"{self.where}. {whose}{self.claim} {self.note}".strip()

    def tasks(self) -> list[str]:
        """In the order of the arms."""
        return list(dict.fromkeys(arm.task for arm in self.arms))


@dataclass(frozen=True)
class Headline:
    """A claim of the whole paper, tested on the results of some experiments."""

    claim: str
    experiments: tuple[str, ...]
    judge: Judge
