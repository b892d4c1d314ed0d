"""A search as the log of a study has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial

from pcces.blackbox.optimizer import Optimizer
from pcces.integrations.optuna import log
from pcces.integrations.optuna.hands import Hands, Key
from pcces.integrations.optuna.parameters import Parameters


class Replica:
    """The search of a header, and what its log says of it so far."""

    def __init__(self, header: log.Header):
        self.header, self.parameters = header, Parameters.from_plain(header.space)
        start = self.parameters.point(header.start)
        self.hands = Hands(Optimizer(start, bounds=self.parameters.bounds, rng=header.seed, **header.arguments))
        self.entries: list[log.LogEntry] = []  # those that were taken in
        self.keys: dict[int, Key] = {}  # of trials
        self.spare: list[Key] = []  # handed out by the optimizer, and to no trial

    @property
    def optimizer(self) -> Optimizer:
        """The search itself."""
        return self.hands.optimizer

    def follows(self, entries: Sequence[log.LogEntry]) -> bool:
        """Whether a log begins with what was taken in: entries by other processes may come between."""
        return list(entries[: len(self.entries)]) == self.entries

    def take(self, entry: log.LogEntry, params: Mapping[str, Any]) -> None:
        """Take in an entry about a trial with these parameters."""
        self.entries.append(entry)
        if entry.kind == log.ASKED:
            self._asked(entry.trial, (int(entry.data[0]), int(entry.data[1])))
            return
        key, (f, c) = self.keys.get(entry.trial), entry.data
        asked_for = key is not None and self.parameters.same(self.parameters.params(self.hands.points[key]), params)
        if key is not None and asked_for and key not in self.hands.told:
            self.hands.tell(key, f, c)

    def _asked(self, trial: int, key: Key) -> None:
        if key not in self.hands.points:
            order = self.hands.ask()
            if order is not None:
                self.spare.append(order)
        if key in self.hands.points:
            self.keys[trial] = key
        if key in self.spare:
            self.spare.remove(key)

    def next(self) -> Key | None:
        """What the next trial is for: a new point, or where all are out the one that has been out for longest, because whoever
        evaluates it may be gone. None when the search is over."""
        if self.optimizer.stop():
            return None
        key = self.spare[0] if self.spare else self.hands.ask()
        if key is not None:
            self.spare = [key, *self.spare[1:]] if self.spare else [key]
            return key
        given = Counter(self.keys.values())
        return min(self.hands.out, key=lambda key: given[key], default=None)

    def params(self, key: Key) -> dict[str, Any]:
        """A point as Optuna has it."""
        return self.parameters.params(self.hands.points[key])

    def answer(self) -> dict[str, Any]:
        """The parameters of the answer so far."""
        return self.parameters.params(self.optimizer.result.x)

    def catch_up(self, trials: Sequence[FrozenTrial]) -> bool:
        """Take in what is new in the log; False where it does not go on from here."""
        entries = log.read(trials, self.header.search)
        if not self.follows(entries):
            return False
        by_number = {trial.number: trial for trial in trials}
        for entry in entries[len(self.entries) :]:
            self.take(entry, by_number[entry.trial].params)
        return True


def replayed(header: log.Header, trials: Sequence[FrozenTrial]) -> Replica:
    """The search from its log."""
    replica = Replica(header)
    replica.catch_up(trials)
    return replica
