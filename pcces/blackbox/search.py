"""The search: what its phases share, and how it goes from one to the next.

    start -> sample -> trial -> sample -> trial -> ... -> certify -> done
      ^                   |
      +- another run -----+

A phase is a module: its `ask` says which points to evaluate, from the state alone, so that asking again gives the same
batch; its `tell` takes in the outcomes and says whether the phase is over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from pcces.blackbox import certify, limits, sample, start, trial
from pcces.blackbox.batch import RESTARTS, Streams
from pcces.blackbox.history import History
from pcces.blackbox.models.archive import Archive
from pcces.blackbox.options import Options
from pcces.blackbox.space import Space
from pcces.blackbox.state import End, RunState, SearchState
from pcces.core import algorithm
from pcces.core.algorithm import Rule
from pcces.strategies import Strategy

PHASES = {"start": start, "sample": sample, "trial": trial, "certify": certify}
STALL = 40  # iterations without progress that end a noise-free run
AGREEING_RUNS = 5  # noise-free runs that end at the best value seen and so end the search


@dataclass(eq=False)
class Search:
    """Everything between the first evaluation and the certificate: what was asked for, and what is known."""

    space: Space
    options: Options
    rule: Rule  # of Algorithm 1, kappa in units of `state.f_scale`
    strategy: Strategy
    normals: int  # that a direction is made of
    population: int
    max_evaluations: int
    confidence: float
    common_random_numbers: bool
    streams: Streams
    archive: Archive | None  # what regression models learn from; None where the strategy does without
    state: SearchState
    history: History = field(default_factory=History)

    def next_phase(self) -> None:
        """Go on from a phase that is over."""
        state, options = self.state, self.options
        if state.phase == "sample":
            state.phase = "trial"
        elif state.phase == "certify":
            state.phase = "done"
        elif state.budget.left <= self.reserve() + self.population + trial.LEAST + 2:
            self.end(f"the budget of {self.max_evaluations} evaluations is spent")
        elif options.max_iterations is not None and int(state.run.es.k) >= options.max_iterations:
            self.end(f"{options.max_iterations} iterations are done")
        elif not (why := self._converged()):
            state.phase = "sample"
        elif self._another_run():
            state.phase = "start"
        else:
            self.end(f"converged: {why}")

    def reserve(self) -> int:
        """The evaluations kept for the certificate."""
        if self.state.constraints.number <= 0:
            return 0
        if self.state.noise.present is False:  # repeats at the answer, in case there is noise after all
            return max(2, min(10, self.max_evaluations // 40))
        return int(self.options.certify_share * self.max_evaluations)

    def _converged(self) -> str:
        """Why this run has nothing more to gain, or an empty string."""
        run, budget = self.state.run, self.state.budget
        if run.es.sigma < self.options.sigma_stop:
            return f"the step size fell below {self.options.sigma_stop:g}"
        if self.archive is None:
            return ""
        if not self.state.noise.present:
            return f"{STALL} iterations without progress" if run.stalls >= STALL else ""
        if run.es.sigma < 0.2 * max(float(run.es.sigma_es), 1e-6):
            # Noise drowns what steps this small could gain, while the models have seen more since: look up again.
            run.es = run.es._replace(sigma=np.asarray(1.5 * max(float(run.es.sigma_es), 1e-4)))
            run.stalls += 1
        long = budget.evaluations - run.start > 0.25 * (self.max_evaluations - self.reserve())
        return "noise hides what is left to gain" if run.stalls >= 5 and long else ""

    def _another_run(self) -> bool:
        """Keep the end of this run and begin another one elsewhere, if that is wanted and affordable."""
        state, space, options = self.state, self.space, self.options
        if not options.restarts or state.budget.left - self.reserve() < 0.15 * self.max_evaluations:
            return False
        ends = [*state.ends, self._this_end()]
        best = min(float(end.estimate.f) if limits.broken(self, end.estimate) <= 0 else math.inf for end in ends)
        same = [end for end in ends if end.estimate.f <= best + 1e-6 * max(abs(best), state.f_scale or 0.0)]
        if not state.noise.present and math.isfinite(best) and len(same) >= AGREEING_RUNS:
            return False
        state.ends = ends
        z = self.streams(RESTARTS, len(ends)).random(space.n)
        finite = np.isfinite(space.z_lower) & np.isfinite(space.z_upper)
        away = ends[0].x + (2 * z - 1) * 4 * options.sigma0
        z = space.project(np.where(finite, z, away).astype(space.dtype))
        es = algorithm.init(z, options.sigma0, options.sigma_es0 or options.sigma0)
        es = es._replace(k=state.run.es.k, successes=state.run.es.successes)
        state.run = RunState(
            self.strategy.init(z), es, multipliers=state.run.multipliers, start=state.budget.evaluations
        )
        return True

    def _this_end(self) -> End:
        run = self.state.run
        factor = getattr(run.strategy, "factor", np.zeros((0, 0)))
        return End(run.es.x, run.incumbent.estimate, factor, run.es.sigma_es, run.multipliers)

    def end(self, why: str) -> None:
        """The search is over: take up the best of the runs for the certificate."""
        state, run = self.state, self.state.run
        state.message, state.phase = why, "done"
        if run.incumbent.estimate.n == 0:
            return
        state.ends.append(self._this_end())
        state.ends.sort(key=lambda end: (limits.broken(self, end.estimate), float(end.estimate.f)))
        best = state.ends[0]
        run.es = run.es._replace(x=best.x, sigma_es=best.spread)
        run.incumbent.estimate, run.multipliers = best.estimate, best.multipliers
        if best.factor.size:
            run.strategy = run.strategy._replace(factor=best.factor)
        if not certify.next_candidate(self):
            state.phase = "certify"
