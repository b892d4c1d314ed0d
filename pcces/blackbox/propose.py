"""One phase for whole iterations, where evaluations are few: evaluate what the Gaussian processes propose, and decide.

Step 4 is that of every other search; only the estimates it compares, of the trial point and of x_k, are the processes', which
use all evaluations, not the means of repeated ones. The trial point is the best of the points evaluated so far.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import acquire, candidate, limits, missing
from pcces.blackbox.batch import Batch
from pcces.blackbox.history import Iteration
from pcces.blackbox.state import Accepted, Measured
from pcces.blackbox.trial import rule
from pcces.core import algorithm
from pcces.core.barrier import comparable
from pcces.core.estimation import Estimate

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

DESIGN = 2  # points to begin with, times the dimension
LARGEST = 0.25  # of the budget
ENOUGH = 20, 10  # evaluations without noise for the quadratic model: so many, and so many for each variable
MANY = 400  # points under noise
SETTLED = 0.4  # of the search is over, and from then on
ANSWERS = 3  # in so many proposals, one is the answer so far


def ask(search: Search) -> Batch:
    """First points that fill the space; then those that promise most."""
    state, space = search.state, search.space
    room = max(1, state.budget.left - search.reserve())
    archive = search.archive
    assert archive is not None
    if state.f_scale is None:
        points = acquire.design(search, min(max(designed(search) - state.given, search.population), room))
    elif (answer := _answer_so_far(search)) is not None:
        points = answer[None]
    else:
        points = acquire.next_points(search, min(search.population, room))
    seeds = search.streams.seeds(state.budget.batches, len(points))
    return Batch(space.to_x(points), seeds, state.budget.batches, "propose", directions=points)


def _answer_so_far(search: Search) -> np.ndarray | None:
    """What would be put to the test if the search ended now, if it is its turn: the processes have to be right there."""
    state, reserved = search.state, search.reserve()
    used = 1 - (state.budget.left - reserved) / max(search.max_evaluations - reserved, 1)
    turn = used > SETTLED and int(state.run.es.k) % ANSWERS == ANSWERS - 1
    if not turn or search.population > 1 or not state.noise.present or state.constraints.number <= 0:
        return None
    return candidate.best(search, reserved)


def designed(search: Search) -> int:
    """How many first points there are to be."""
    return min(max(5, DESIGN * search.space.n), max(2, int(LARGEST * search.max_evaluations)))


def enough(search: Search) -> bool:
    """Whether there are evaluations enough for other models, which are faster."""
    assert search.archive is not None
    if search.state.noise.present is False:
        return search.state.budget.evaluations >= ENOUGH[0] + ENOUGH[1] * search.space.n
    return len(search.archive.points) >= MANY


def tell(search: Search, batch: Batch, outputs: np.ndarray) -> bool:
    """Take in the results, and choose the best known point."""
    state, archive = search.state, search.archive
    assert archive is not None and isinstance(batch.directions, np.ndarray)
    known = missing.kept(search, outputs)
    archive.place(batch.directions[known], outputs[known])
    finite = np.isfinite(outputs[:, 0])
    if not len(archive.points):
        return True
    if state.desk is not None and len(archive.points) + len(archive.failed) < designed(search):
        return True
    if finite.any():
        _take_stock(search)
    if state.f_scale is not None:
        acquire.learn(search)
        _decide(search)
    return True


def begin(search: Search) -> None:
    """Skip the points that fill the space if earlier evaluations already show as much; propose the most promising ones."""
    assert search.archive is not None
    if search.state.given >= designed(search) and len(search.archive.points):
        _take_stock(search)
        acquire.learn(search)


def _take_stock(search: Search) -> None:
    if search.state.f_scale is None and search.archive is not None:
        search.state.f_scale = float(search.archive.outputs[:, 0].std()) or 1.0


def _estimate(search: Search, mean: np.ndarray, error: np.ndarray) -> Estimate:
    """What a process says of a point, as if it were the mean of so many evaluations."""
    noise = search.state.noise.deviation
    worth = (noise[0] / max(float(error[0]), 1e-300)) ** 2 if noise[0] > 0 else 1.0
    return Estimate(np.float64(max(1.0, min(worth, 1e6))), mean, np.zeros(len(mean)))


def _decide(search: Search) -> None:
    """Step 4, on the processes' estimates; x_k's is renewed with them."""
    state, run, archive = search.state, search.state.run, search.archive
    assert archive is not None
    model, es, constants = acquire.posterior(search), run.es, rule(search)
    points = model.data.points
    mean, error = model.at_points()
    if search.state.noise.present is False:
        mean, error = archive.outputs, np.zeros_like(error)
    broken = np.maximum(limits.clearance(search, mean).max(1, initial=0.0), 0.0)
    here = np.flatnonzero((points == es.x).all(1))
    order = np.lexsort((mean[:, 0], broken))
    order = order[~np.isin(order, here)]
    if len(here):
        i = int(here[0])
        run.incumbent = Measured(_estimate(search, mean[i], error[i]), int(here[0]))
        f_old, broken_old = mean[i, 0], broken[i]
    else:
        f_old, broken_old = np.float64(math.inf), np.float64(math.inf)
    if not len(order):
        return
    j = int(order[0])
    f_new, f_k = comparable(mean[j, 0], broken[j], f_old, broken_old)
    run.es, accepted = algorithm.decide(es, points[j], f_new, f_k, constants)
    run.es = algorithm.update_sigma_es(run.es, run.es.sigma)
    success = bool(accepted)
    if success:
        run.incumbent = Measured(_estimate(search, mean[j], error[j]), j)
        state.accepted.append(Accepted(run.es.x, mean[j], float(run.incumbent.estimate.n)))
        run.stalls = 0
    else:
        run.stalls += 1
    kept = run.incumbent.estimate
    row = Iteration(
        state.budget.evaluations, float(kept.mean[0]), float(run.es.sigma), float(run.es.sigma_es), 1, int(kept.n), success,
        bool((broken[j] if success else broken_old) <= 0), "gp", kept.mean[1:], limits.excess(search),
    )  # fmt: skip
    search.history.rows.append(row)
