"""Evaluations that are asked for a few at a time, as workers become free: what is known of each, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

_none = partial(np.zeros, 0)


@dataclass(eq=False)
class Order:
    """One evaluation: where, on which seed, and why; and what came back."""

    z: np.ndarray
    seed: int
    why: str  # start, sample, propose, trial, incumbent, certify
    run: int  # evaluations made before the run of the search began that it belongs to
    pair: int = -1  # samples come in mirrored pairs, which have a number
    number: int = -1  # of the batch in which it was handed out; -1: it was not yet
    row: int = 0  # in that batch
    outputs: np.ndarray = field(default_factory=_none)  # (1 + r,); empty until it was told

    @property
    def out(self) -> bool:
        """Whether somebody is evaluating it."""
        return self.number >= 0 and not self.told

    @property
    def told(self) -> bool:
        """Whether its outcome is known."""
        return len(self.outputs) > 0


@dataclass(eq=False)
class Desk:
    """The evaluations of an asynchronous search that are to be made, are being made, or were made and not yet used."""

    group: list[Order] = field(default_factory=list)  # all that a phase wants to know before it decides
    at_trial: int = 0  # of the group
    others: list[Order] = field(default_factory=list)  # samples, proposals, and what may be needed next
    proposed: int = 0  # points so far

    def __iter__(self) -> Iterator[Order]:
        return iter([*self.group, *self.others])

    def find(self, number: int, row: int) -> Order | None:
        """The order that was handed out as a row of a batch, while somebody is evaluating it."""
        return next((order for order in self if order.out and (order.number, order.row) == (number, row)), None)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, for a file."""
        orders = list(self)
        width = max((len(order.outputs) for order in orders), default=0)
        outputs = np.full((len(orders), width), np.inf)
        for row, order in zip(outputs, orders):
            row[: len(order.outputs)] = order.outputs
        columns: dict[str, Any] = {
            "seed": np.int64,
            "why": "U9",
            "run": int,
            "pair": int,
            "number": int,
            "row": int,
            "told": bool,
        }
        arrays = {
            name: np.array([getattr(order, name) for order in orders], dtype=kind) for name, kind in columns.items()
        }
        arrays |= {"outputs": outputs, "numbers": np.array([len(self.group), self.at_trial, self.proposed])}
        if orders:
            arrays["z"] = np.stack([order.z for order in orders])
        return {f"desk_{name}": array for name, array in arrays.items()}

    @classmethod
    def restored(cls, arrays: dict[str, np.ndarray]) -> Desk | None:
        """What `arrays` gave; None where there is nothing of the kind."""
        if "desk_numbers" not in arrays:
            return None
        a = {name.removeprefix("desk_"): array for name, array in arrays.items() if name.startswith("desk_")}
        orders = [
            Order(a["z"][i], int(a["seed"][i]), str(a["why"][i]), int(a["run"][i]), int(a["pair"][i]), int(a["number"][i]),
                  int(a["row"][i]), a["outputs"][i] if a["told"][i] else _none())
            for i in range(len(a["seed"]))
        ]  # fmt: skip
        grouped, at_trial, proposed = a["numbers"].tolist()
        return cls(orders[:grouped], at_trial, orders[grouped:], proposed)
