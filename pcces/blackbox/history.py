"""What happened, iteration by iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

COLUMNS = (
    "evaluations",
    "fun",
    "sigma",
    "sigma_es",
    "samples_trial",
    "samples_incumbent",
    "success",
    "feasible",
    "kind",
)


class History:
    """One row an iteration; `history["fun"]` is a column, `history["constr"]` the constraints (rows, r).

    >>> history = History()
    >>> history.add(constr=np.array([-1.0]), **dict.fromkeys(COLUMNS, 1))
    >>> len(history), history["fun"], history["constr"]
    (1, array([1]), array([[-1.]]))
    >>> history
    1 iteration: evaluations, fun, sigma, sigma_es, samples_trial, samples_incumbent, success, feasible, kind, constr
    """

    def __init__(self) -> None:
        self._rows: dict[str, list[Any]] = {name: [] for name in (*COLUMNS, "constr")}

    def add(self, **values: Any) -> None:
        """Append one iteration."""
        for name, column in self._rows.items():
            column.append(values[name])

    def __repr__(self) -> str:
        return f"{len(self)} iteration{'s' * (len(self) != 1)}: {', '.join(self._rows)}"

    def __len__(self) -> int:
        return len(self._rows["fun"])

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._rows:
            raise KeyError(f"no column {name!r}; there are {', '.join(self._rows)}")
        if name == "constr":  # while every evaluation fails, not even the number of constraints is known
            width = max(map(len, self._rows[name]), default=0)
            return np.array([c if len(c) == width else np.full(width, np.inf) for c in self._rows[name]])
        return np.array(self._rows[name])

    def last(self, name: str) -> Any:
        """The newest entry of a column."""
        return self._rows[name][-1]

    def arrays(self) -> dict[str, np.ndarray]:
        """All columns, for a file."""
        return {f"history_{name}": self[name] for name in self._rows} if len(self) else {}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what `arrays` gave."""
        for name in self._rows:
            saved = arrays.get(f"history_{name}")
            if saved is not None:
                self._rows[name] = list(saved) if name == "constr" else saved.tolist()
