"""Do the evaluations of a search depend on each other? A drift, or noise that lasts, may be too slow to show in the certificate's
samples alone, which come one right after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import limits
from pcces.blackbox.models.quadratic import residuals
from pcces.core.bounds import dependence
from pcces.core.certificate import UNENDING

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

MOST = 4000  # of the latest evaluations
NEAR = 0.5  # of them: the nearest half,
NEARER = 0.5  # and of these, the nearest half once more
ALARM, CONFIRMED = 0.01, 0.05  # how often each sees what is not there
WIDEST = 100  # variables


def of_search(search: Search, z: np.ndarray) -> np.ndarray:
    """How dependent on each other the search's evaluations near z seem, for each inequality (r,): `bounds.dependence`.

    What a quadratic does not explain of them is looked at in their order in time. Its misfit may look the same, but grows
    smaller nearer by, where dependence does not. Beside how much outcomes with two values vary, misfit is small anyway, and
    nearer by there are too few of them to see anything.
    """
    columns = limits.columns(search)
    r, two = len(columns), np.array([column.values is not None for column in columns])
    table = search.evaluations
    if table is None or not search.state.noise.present or search.common_random_numbers or search.space.n > WIDEST:
        return np.ones(r)
    points, c = table.of_search(MOST)
    if not len(points) or not c.shape[1]:
        return np.ones(r)
    equal = search.state.constraints.equal
    c = np.concatenate([np.delete(c, equal, axis=1), c[:, equal], c[:, equal]], axis=1)
    offsets = search.space.to_z(points) - z
    spread = np.std(offsets[len(offsets) // 2 :], axis=0)
    offsets = offsets / np.where(spread > 0, spread, 1.0)
    order = np.argsort((offsets**2).sum(1), kind="stable")
    near = int(NEAR * len(order))
    at_both = [_seen(offsets, c, np.sort(order[:rows]), alarm) for rows, alarm in
             ((near, ALARM / max(r, 1)), (int(NEARER * near), CONFIRMED))]  # fmt: skip
    return np.where(two | (at_both[1] > 1), np.minimum(at_both[0], max(near / UNENDING, 1.0)), 1.0)


def _seen(offsets: np.ndarray, c: np.ndarray, rows: np.ndarray, alarm: float) -> np.ndarray:
    """For each column, from these rows."""
    left = residuals(offsets[rows], c[rows])
    if left is None:
        return np.ones(c.shape[1])
    exact = left.std(0) <= 1e-9 * np.abs(c[rows]).max(0)  # rounding alone
    return np.array([1.0 if same else dependence(x, alarm, ranked=False) for x, same in zip(left.T, exact)])
