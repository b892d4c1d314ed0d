"""The first phase of a run: what is its first point worth, and is there noise?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import limits
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
    return repeated(search, run.es.x, times)


def tell(search: Search, batch: Batch, outputs: np.ndarray) -> bool:
    """Take in what came of it; whether that is enough."""
    state, point = search.state, search.state.run.incumbent
    fresh = estimate(outputs)
    point.estimate = fresh if search.few else pool(point.estimate, fresh)  # there, the estimate so far is a model's
    search.notice(point.estimate, outputs, 1.0)
    if search.archive is not None:
        point.row = search.archive.record(point.row, state.run.es.x, outputs)
    state.surprise = False
    search.note_shape(outputs)
    if search.few:  # all evaluations together will tell
        return True
    unclear = state.noise.present and point.estimate.n < ENOUGH and isinstance(search.options.samples, str)
    return not (unclear and state.budget.left > 2 * ENOUGH)
