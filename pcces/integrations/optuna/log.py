"""What a search has done, as a log in the study itself: which points were handed out to which trials, and what came back.

Every trial carries its own entries, each with a number that says when. Whoever reads them in this order, in any process, comes to
the same state of the search: nothing else has to be kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from optuna.trial import FrozenTrial

if TYPE_CHECKING:
    from optuna import Study

ASKED, TOLD, SEARCH = "pcces:asked", "pcces:told", "pcces:search"
CONSTRAINTS = "constraints"  # where Optuna's samplers keep them, in the order of a list, or by name behind a colon
PIECE = 2000  # letters in one entry of a database

Constraints = dict[str, float] | list[float] | None


class LogEntry(NamedTuple):
    """An entry of the log. Entries with the same number are ordered by trial, oldest first."""

    number: int
    trial: int
    kind: str  # asked or told
    data: tuple[Any, ...]  # (batch, row) of what was handed out; or f and the constraints


class Header(NamedTuple):
    """What a search was begun with; another one begins where any of this changes."""

    search: int  # which of the study's searches it is
    seed: int
    space: dict[str, str]  # the distributions of its parameters
    arguments: dict[str, Any]  # of the optimizer
    start: dict[str, Any]  # parameters of the best trial so far
    earlier: list[int]  # trials that were finished by then

    def asks_for(self, space: dict[str, str], arguments: Mapping[str, Any], seed: int | None) -> bool:
        """Whether this is the search that is wanted."""
        return self.space == space and self.arguments == arguments and seed in (None, self.seed)


def read_header(study: Study) -> Header | None:
    """The study's latest search."""
    text = _joined(study._storage.get_study_system_attrs(study._study_id), SEARCH)
    return Header(**json.loads(text)) if text else None


def write_header(study: Study, header: Header) -> None:
    """Begin a search."""
    text = json.dumps(header._asdict())
    for i in range(-(-len(text) // PIECE) + 1):  # the last is empty: it ends a longer text of before
        study._storage.set_study_system_attr(study._study_id, f"{SEARCH}:{i}", text[i * PIECE : (i + 1) * PIECE])


def _joined(attributes: Mapping[str, Any], name: str) -> str:
    pieces: list[str] = []
    while attributes.get(f"{name}:{len(pieces)}"):
        pieces.append(attributes[f"{name}:{len(pieces)}"])
    return "".join(pieces)


def read(trials: Sequence[FrozenTrial], search: int) -> list[LogEntry]:
    """The log of a search, in order."""
    entries = []
    for trial in trials:
        for name in (ASKED, TOLD):
            attribute = trial.system_attrs.get(name)
            if attribute is not None and attribute[0] == search:
                entries.append(LogEntry(int(attribute[1]), trial.number, name, tuple(attribute[2:])))
    return sorted(entries, key=lambda entry: entry[:3])


def write(study: Study, trial: FrozenTrial, search: int, entry: LogEntry) -> None:
    """Add an entry."""
    study._storage.set_trial_system_attr(trial._trial_id, entry.kind, [search, entry.number, *entry.data])


def next_number(entries: Sequence[LogEntry]) -> int:
    """The number of an entry that comes after all of these."""
    return 1 + max((entry.number for entry in entries), default=0)


def constraints_of(trial: FrozenTrial) -> Constraints:
    """A trial's constraints: those that a sampler's function gave, in a list, or those that the trial was given by name."""
    given = trial.system_attrs.get(CONSTRAINTS)
    if given is not None:
        return [float(c) for c in given]
    prefix = f"{CONSTRAINTS}:"
    named = {key.removeprefix(prefix): c for key, c in trial.system_attrs.items() if key.startswith(prefix)}
    return dict(sorted(named.items())) or None
