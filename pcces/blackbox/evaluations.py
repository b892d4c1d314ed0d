"""Every evaluation of a search: where, on which seed, what came out, when, and why it was made."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

if TYPE_CHECKING:
    from pcces.blackbox.coding import Variables

MOST_NUMBERS = 10_000_000  # numbers that are kept, 80 MB: of a run that has more, the newest evaluations
WIDEST = 100_000  # variables: of longer points only seeds and outputs are kept
FIRST_ROOM = 256
TAKEN = re.compile(r"f|c\d+|seed|seconds|why")  # columns that no variable can have


def column_names(variables: Sequence[str]) -> list[str]:
    """What the columns of variables are called.

    >>> column_names(["heat", "f"])
    ['heat', 'x_f']
    """
    return [f"x_{name}" if TAKEN.fullmatch(name) else name for name in variables]


class Evaluations(Sequence[dict[str, Any]]):
    """A table with one row for each evaluation, oldest first: `pandas.DataFrame(res.evaluations)` shows all of it.

    `table[i]` is a row, `table["f"]` a column. The columns are those of the point (x0, x1, .. or the names of the
    variables), then `f`, `c0`, `c1`, .. as the function returned them (nan where it failed), `seed`, `seconds` since the
    search began, and `why` it was made: start, propose, sample, trial, incumbent, certify. Of a very long run it holds the newest
    evaluations; `dropped` says how many are gone.

    >>> table = Evaluations(["rate"])
    >>> table.add(np.array([[0.5], [1.0]]), np.array([3, 4]), ["trial", "incumbent"], np.array([1.0, 2.0]), None)
    >>> table["rate"], table[1]["f"], table[-1]["why"]
    (array([0.5, 1. ]), 2.0, 'incumbent')
    """

    def __init__(self, names: Sequence[str], variables: Variables | None = None):
        self.variables = variables
        self.names = column_names(names if variables is None else variables.labels)
        self.dropped = 0
        self._began = time.monotonic()
        self._size = 0
        self._points = len(names) <= WIDEST
        self._room: dict[str, np.ndarray] = {
            "x": np.empty((0, len(names) if self._points else 0)), "f": np.empty(0), "c": np.empty((0, 0)),
            "seed": np.empty(0, dtype=np.int64), "seconds": np.empty(0), "why": np.empty(0, dtype="U9"),
        }  # fmt: skip

    @property
    def seconds(self) -> float:
        """Since the search began; pauses between `save` and `load` do not count."""
        return time.monotonic() - self._began

    @property
    def columns(self) -> list[str]:
        """Their names."""
        constraints = [f"c{j}" for j in range(self._room["c"].shape[1])]
        return [*(self.names if self._points else []), "f", *constraints, "seed", "seconds", "why"]

    def add(self, points: Any, seeds: np.ndarray, why: Sequence[str], f: np.ndarray, c: np.ndarray | None) -> None:
        """Take in evaluations: `points` (k, n), and f (k,) and c (k, m) as they were told."""
        k, now = len(seeds), self.seconds
        width = self._room["c"].shape[1] if c is None else c.shape[1]
        self._make_room(k, width)
        rows = slice(self._size, self._size + k)
        room = self._room
        if self._points:
            room["x"][rows] = points
        room["f"][rows] = np.where(np.isfinite(f), f, np.nan)
        room["c"][rows] = np.nan if c is None else c
        room["seed"][rows], room["seconds"][rows], room["why"][rows] = seeds, now, why
        self._size += k

    def _make_room(self, k: int, width: int) -> None:
        """Room for k rows more, with so many constraints; if there would be too many, the older half goes."""
        size, capacity = self._size, len(self._room["f"])
        known = self._room["c"].shape[1]
        if size + k <= capacity and width == known:
            return
        most = max(MOST_NUMBERS // (self._room["x"].shape[1] + width + 8), FIRST_ROOM, 2 * k)
        kept = size if size + k <= most else min(size, most // 2)
        self.dropped += size - kept
        capacity = max(kept + k, min(max(2 * (kept + k), FIRST_ROOM), most))
        for name, old in self._room.items():
            shape = (capacity, width) if name == "c" else (capacity, *old.shape[1:])
            new = np.full(shape, np.nan) if name == "c" else np.empty(shape, dtype=old.dtype)
            if width == known or name != "c":
                new[:kept] = old[size - kept : size]
            self._room[name] = new
        self._size = kept

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, which: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, which: slice) -> list[dict[str, Any]]: ...

    @overload
    def __getitem__(self, which: str) -> np.ndarray: ...

    def __getitem__(self, which: int | slice | str) -> Any:
        if isinstance(which, slice):
            return [self[i] for i in range(*which.indices(len(self)))]
        if isinstance(which, str):
            return self._column(which)
        i = range(len(self))[which]
        x = self._room["x"][i]
        if self.variables is not None:
            x = np.array([self.variables.column(j, x[None, j])[0] for j in range(len(x))], dtype=object)
        values = [*x.tolist(), self._room["f"][i].item(), *self._room["c"][i].tolist()]
        values += [self._room[name][i].item() for name in ("seed", "seconds", "why")]
        return dict(zip(self.columns, values))

    def _column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.columns)}")
        if name in ("f", "seed", "seconds", "why"):
            return self._room[name][: self._size].copy()
        if self._points and name in self.names:
            column = self._room["x"][: self._size, self.names.index(name)].copy()
            return column if self.variables is None else self.variables.column(self.names.index(name), column)
        return self._room["c"][: self._size, int(name[1:])].copy()

    @property
    def points(self) -> np.ndarray:
        """All points as numbers, one row each (for a choice, the index of its option). No columns if points are too long to keep."""
        return self._room["x"][: self._size]

    def __repr__(self) -> str:
        dropped = f" ({self.dropped} older ones were dropped)" if self.dropped else ""
        names = self.columns if len(self.columns) <= 20 else [*self.columns[:10], "..", *self.columns[-4:]]
        return f"{len(self)} evaluations{dropped}: {', '.join(names)}"

    def of_search(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Points and constraints, in their order in time, of the latest evaluations that did not fail and were not the
        certificate's. None if points are too long to keep.

        >>> table = Evaluations(["rate"])
        >>> table.add(np.array([[0.5], [1.0]]), np.array([3, 4]), ["trial", "certify"], np.array([1.0, 2.0]), np.ones((2, 1)))
        >>> table.of_search(9)
        (array([[0.5]]), array([[1.]]))
        """
        room, rows = self._room, slice(self._size)
        good = (
            (room["why"][rows] != "certify") & np.isfinite(room["f"][rows]) & np.isfinite(room["c"][rows]).all(axis=1)
        )
        chosen = np.flatnonzero(good)[-most:] if self._points else np.zeros(0, dtype=int)
        return room["x"][chosen], room["c"][chosen]

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, for a file."""
        arrays = {f"evaluations_{name}": array[: self._size] for name, array in self._room.items()}
        return arrays | {"evaluations_dropped": np.array([self.dropped, self.seconds])}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what `arrays` gave; files of earlier versions have none."""
        names = {f"evaluations_{name}": name for name in self._room}
        if not names.keys() <= arrays.keys():
            return
        room = {name: arrays[key] for key, name in names.items()}
        for name, old in self._room.items():
            width = room[name].shape[1:] if name == "c" else old.shape[1:]
            if room[name].ndim != old.ndim or room[name].shape != (len(room["f"]), *width):
                raise ValueError(f"its table of evaluations is damaged: {name} has shape {room[name].shape}")
        self._room = {name: array.astype(self._room[name].dtype) for name, array in room.items()}
        self._size = len(room["f"])
        dropped, seconds = np.nan_to_num(np.resize(arrays["evaluations_dropped"].astype(float), 2))
        self.dropped, self._began = int(dropped), time.monotonic() - float(seconds)
