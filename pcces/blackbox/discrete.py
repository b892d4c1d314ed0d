"""Integers and choices: how a search that moves by steps gets from one value to another.

A point is rounded before it is evaluated, and x_k always is. So when steps are smaller than those between the values, nothing
would change any more. Therefore some of the samples have one discrete variable changed, whatever the step size; and if the best
sample is such a neighbour, and better than x_k, it is put on trial.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import limits
from pcces.blackbox.batch import VARIED

if TYPE_CHECKING:
    from pcces.blackbox.models.qp import Solution
    from pcces.blackbox.models.quadratic import LocalModel
    from pcces.blackbox.search import Search

SHARE = 0.35  # of the samples, that have a discrete variable changed


def neighbours(search: Search, points: np.ndarray) -> np.ndarray:
    """Points z (k, n) as they will be evaluated: rounded, and a share of them with one discrete variable changed."""
    space, variables = search.space, search.space.variables
    if variables is None or not space.rounds:
        return points
    rng = search.streams(VARIED, search.state.budget.batches)
    numbers = variables.varied(space.to_x(points), space.to_x(search.state.run.es.x), rng, SHARE)
    return np.where(space.discrete, space.to_z(numbers), points)


def better(search: Search, points: np.ndarray | None, f: np.ndarray, broken: np.ndarray) -> np.ndarray | None:
    """The best of the samples, if its discrete variables are not those of x_k, and it seems to be better than that."""
    space, run = search.space, search.state.run
    if points is None or not space.rounds or not np.isfinite(f).any():
        return None
    i = int(np.lexsort((f, broken))[0])
    old = run.incumbent.estimate
    worse = (float(broken[i]), float(f[i])) >= (limits.broken(search, old, 1), limits.worth(search, old, 1))
    if worse or np.array_equal(points[i][space.discrete], run.es.x[space.discrete]):
        return None
    return points[i]


def settled(
    search: Search, model: LocalModel, radius: float, backoff: np.ndarray, others: np.ndarray | None
) -> Solution | None:
    """The model's best step; with what is rounded first left free, and then held at the values that gives."""
    space, run = search.space, search.state.run
    step = model.step(space.half_spaces, radius, backoff, run.multipliers, others)
    if step is None or not space.rounds:
        return step
    whole = np.where(space.discrete, space.project(run.es.x + step.x), run.es.x)
    again = model.step(space.half_spaces_at(whole), radius, backoff, step.multipliers, (whole - run.es.x)[None])
    return step if again is None else again
