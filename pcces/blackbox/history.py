"""What happened, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class Iteration(NamedTuple):
    """One iteration: what x_k was worth in the end, and how it came to that."""

    evaluations: int  # made so far
    fun: float
    sigma: float
    sigma_es: float
    samples_trial: int
    samples_incumbent: int
    success: bool
    feasible: bool
    kind: str  # who proposed the trial point
    constr: np.ndarray  # means of the inequalities; of an equality, both sides
    excess: np.ndarray  # what is limited less its limit, one value per constraint


WIDE = ("constr", "excess")  # columns with several values


@dataclass(eq=False, repr=False)
class History:
    """One row an iteration; `history["fun"]` is a column, `history["constr"]` and `history["excess"]` have a column
    for each constraint.

    >>> history = History([Iteration(14, 0.5, 0.1, 0.1, 2, 2, True, True, "cma", np.array([-1.0]), np.array([-1.0]))])
    >>> len(history), history["evaluations"], history["constr"]
    (1, array([14]), array([[-1.]]))
    >>> history
    1 iteration: evaluations, fun, sigma, sigma_es, samples_trial, samples_incumbent, success, feasible, kind, constr, excess
    """

    rows: list[Iteration] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"{len(self)} iteration{'s' * (len(self) != 1)}: {', '.join(Iteration._fields)}"

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in Iteration._fields:
            raise KeyError(f"no column {name!r}; there are {', '.join(Iteration._fields)}")
        column = [getattr(row, name) for row in self.rows]
        if name in WIDE:  # while every evaluation fails, not even the number of constraints is known
            width = max(map(len, column), default=0)
            column = [c if len(c) == width else np.full(width, np.inf) for c in column]
        return np.array(column)

    def arrays(self) -> dict[str, np.ndarray]:
        """All columns, for a file."""
        return {f"history_{name}": self[name] for name in Iteration._fields} if len(self) else {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what `arrays` gave."""
        if "history_fun" in arrays:
            arrays = {"history_excess": arrays["history_constr"]} | arrays  # files of earlier versions do without
            columns = [arrays[f"history_{name}"] for name in Iteration._fields]
            plain = [column if name in WIDE else column.tolist() for name, column in zip(Iteration._fields, columns)]
            self.rows = [Iteration(*row) for row in zip(*plain)]
