"""The first phase of a run: what is its first point worth, and is there noise?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import limits, propose
from pcces.blackbox.batch import Batch, repeated
from pcces.core.estimation import estimate, pool

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

ENOUGH = 20  # evaluations that show how much noise there is


def ask(search: Search) -> Batch:
    """x_0 twice, where two values that differ would show noise, or more often if there is said to be some; then to see how
    much."""
    run, options = search.state.run, search.options
    fixed = options.samples if isinstance(options.samples, int) else 0
    if options.deterministic and not search.state.noise.present:
        times = max(1, fixed)
    else:
        said = options.constraint_range is not None or limits.shaped(search)
        first = ENOUGH if said and search.max_evaluations > 10 * ENOUGH else 2
        times = max(first, fixed) if run.incumbent.estimate.n == 0 or search.few else ENOUGH - 2
    batch, others = repeated(search, run.es.x, times), search.state.starts
    if run.incumbent.estimate.n > 0 or search.state.ends or not len(others):
        return batch
    points = np.vstack([np.repeat(run.es.x[None], len(batch), axis=0), others])[: search.state.budget.left]
    seeds = search.streams.seeds(batch.number, len(points))
    if search.common_random_numbers:
        seeds[len(batch) :] = seeds[0]
    return Batch(search.space.to_x(points), seeds, batch.number, "start", directions=points)


def tell(search: Search, batch: Batch, outputs: np.ndarray) -> bool:
    """Take in what came of it; whether that is enough."""
    state, point = search.state, search.state.run.incumbent
    if batch.several_starts:
        assert isinstance(batch.directions, np.ndarray)
        outputs = _begin_at_best(search, batch.directions, outputs)
    if not len(outputs):  # all are missing: again, while there is room
        return state.budget.left <= search.reserve()
    fresh = estimate(outputs)
    point.estimate = fresh if search.few else pool(point.estimate, fresh)  # there, the estimate so far is a model's
    search.notice(point.estimate, outputs, 1.0)
    if search.archive is not None:
        point.row = search.archive.record(point.row, state.run.es.x, outputs)
    state.surprise = False
    search.note_shape(outputs)
    if search.few:  # all evaluations together will tell
        propose.begin(search)
        return True
    unclear = state.noise.present and point.estimate.n < ENOUGH and isinstance(search.options.samples, str)
    return not (unclear and state.budget.left > 2 * ENOUGH)


def _begin_at_best(search: Search, points: np.ndarray, outputs: np.ndarray) -> np.ndarray:
    """Begin at the best of several starting points; the others are where later runs begin. The outputs of the best."""
    state, run = search.state, search.state.run
    starts = np.vstack([run.es.x[None], state.starts])
    of_each = [outputs[(points == z).all(1)] for z in starts]
    for each in of_each:
        search.notice(estimate(each), each, 1.0)

    def rank(i: int) -> tuple[float, float]:
        known = estimate(of_each[i])
        return limits.broken(search, known), limits.worth(search, known)

    best, *others = sorted((i for i, each in enumerate(of_each) if len(each)), key=rank)
    x, here = starts[best], (points == starts[best]).all(1)
    if search.archive is not None:
        search.archive.place(points[~here], outputs[~here])
    state.starts, state.origin, state.first = starts[others], x, estimate(of_each[best])
    state.given += len(others)
    run.es, run.strategy = run.es._replace(x=x), search.strategy.init(x)
    if best != 0:  # what workers were given in advance lies around another point
        run.start = state.budget.evaluations
    return of_each[best]
