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
from typing import TYPE_CHECKING, Any

import numpy as np

from pcces.blackbox import certify, limits, missing, propose, sample, start, trial
from pcces.blackbox.batch import RESTARTS, Batch, Streams
from pcces.blackbox.history import History
from pcces.blackbox.models.archive import Archive
from pcces.blackbox.options import Options
from pcces.blackbox.space import Space
from pcces.blackbox.state import End, RunState, SearchState
from pcces.core import algorithm
from pcces.core.algorithm import Rule
from pcces.core.certificate import Column
from pcces.core.estimation import Estimate, estimate, pool
from pcces.strategies import Strategy
from pcces.strategies.cma import default_population

if TYPE_CHECKING:
    from pcces.blackbox.evaluations import Evaluations

PHASES = {"start": start, "propose": propose, "sample": sample, "trial": trial, "certify": certify}
STALL = 40  # iterations without progress that end a noise-free run
RESIDUALS = 2000  # the latest of them say which shape the noise has
REPEATS = 300  # of the answer show what happens more often than once in a hundred times
AGREEING_RUNS = 5  # noise-free runs that end at the best value seen and so end the search


@dataclass(eq=False)
class Search:
    """The state between the first evaluation and the certificate: what was requested, and what is known."""

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
    equalities: tuple[int, ...] = ()  # which constraints must be 0, once it is known how many there are
    later: Options | None = None  # the options from where Gaussian processes hand over to the strategy
    posterior: Any = None  # what they say, and what it was made of
    history: History = field(default_factory=History)
    evaluations: Evaluations | None = None  # in their order in time
    columns: tuple[Any, list[Column]] = (None, [])  # what is known of each inequality, and what that was made of

    @property
    def few(self) -> bool:
        """Whether Gaussian processes propose, because evaluations are few."""
        return self.state.few

    def hand_over(self) -> None:
        """Switch to the quadratic model and the strategy, which get all evaluations so far."""
        state, self.posterior = self.state, None
        assert self.later is not None
        self.options, self.rule = self.later, self.later.rule
        self.population = self._later_population
        if state.few:
            sigma = min(float(state.run.es.sigma), self.options.sigma0)
            state.run.es = state.run.es._replace(sigma=np.asarray(sigma), sigma_es=np.asarray(sigma))
            state.run.stalls, state.run.progress_f = 0, math.inf
        state.few = False

    @property
    def _later_population(self) -> int:
        assert self.later is not None
        population = self.later.population or default_population(self.space.n)
        return max(4, population + population % 2)

    @property
    def needs_samples(self) -> bool:
        """Whether the certificate takes many samples: there is noise, or its bounds do not care that none was seen."""
        formal = any(column.formal for column in limits.columns(self)) or self.options.failure_limit is not None
        return formal or self.state.noise.present is not False

    @property
    def limited(self) -> bool:
        """Whether there is anything that a certificate has to show: constraints, or how often evaluations fail at most."""
        number = self.state.constraints.number
        return number > 0 or (number == 0 and self.options.failure_limit is not None)

    def notice(self, e: Estimate, repeats: np.ndarray, weight: float = 0.0) -> None:
        """Take in what repeated evaluations of a point showed of the noise: there may be some after all."""
        state = self.state
        before = state.noise.present
        state.noise = state.noise.learn(e, weight).saw(repeats)
        state.surprise |= before is False and state.noise.present is True

    def note_shape(self, repeats: np.ndarray) -> None:
        """Keep how repeated evaluations of a point lay around their mean, where the shape of the noise matters."""
        state, n = self.state, len(repeats)
        if not limits.shaped(self) or n < 4 or not np.all(np.isfinite(repeats)):
            return
        noise = np.where(state.noise.deviation > 0, state.noise.deviation, 1.0)
        rows = (repeats - repeats.mean(0)) * math.sqrt(n / (n - 1)) / noise
        state.residuals = np.vstack([state.residuals, rows])[-RESIDUALS:] if len(state.residuals) else rows

    def note_first(self, batch: Batch, outputs: np.ndarray) -> None:
        """Keep what repeated evaluations say of x_0."""
        repeats = {"start": outputs, "trial": outputs[batch.at_trial :]}.get(batch.phase, outputs[:0])
        if batch.several_starts:
            return  # of which one will be x_0
        if len(repeats) and np.array_equal(self.state.run.es.x, self.state.origin):
            self.state.first = pool(self.state.first, estimate(repeats))

    def next_phase(self) -> None:
        """Go on from a phase that is over."""
        state, options = self.state, self.options
        if state.phase == "sample":
            state.phase = "trial"
        elif state.phase == "certify":
            state.phase = "done"
        elif not self.can_go_on():
            self.end(f"its share of the {self.max_evaluations} evaluations is used")
        elif (state.surprise or (self.few and state.noise.present is None)) and self._stands():
            state.surprise, state.phase = False, "start"  # where repeated evaluations show how much noise there is
        elif options.max_iterations is not None and int(state.run.es.k) >= options.max_iterations:
            self.end(f"{options.max_iterations} iterations are done")
        elif not (why := self._converged()):
            if self.few and self._holds(self._later_population) and propose.enough(self):
                self.hand_over()
            state.phase = "propose" if self.few else "sample"
        elif self._another_run():
            state.phase = "start"
        else:
            self.end(f"converged: {why}", converged=True)

    def _stands(self) -> bool:
        """Whether x_k could be evaluated."""
        return math.isfinite(self.state.run.incumbent.estimate.f)

    def can_go_on(self) -> bool:
        """Whether the budget holds another iteration and the certificate."""
        return self._holds(0 if self.few else self.population)

    def _holds(self, population: int) -> bool:
        """Whether the budget holds the certificate and an iteration with so many samples; 0: with one proposal."""
        return self.state.budget.left > self.reserve() + (population + trial.LEAST + 2 if population else 0)

    def reserve(self) -> int:
        """The evaluations kept for the certificate."""
        if not self.limited:
            return 0
        if self.needs_samples:
            return int(self.options.certify_share * self.max_evaluations)
        if self.options.deterministic:
            return missing.TRIES if self.options.missing else 1
        return max(2, min(REPEATS, self.max_evaluations // 20))  # at the answer, in case there is noise after all

    def _converged(self) -> str:
        """Why this run has nothing more to gain, or an empty string."""
        run, budget = self.state.run, self.state.budget
        if run.es.sigma < self.options.sigma_stop:
            return f"the step size fell below {self.options.sigma_stop:g}"
        if self.archive is None or self.few:
            return ""
        if not self.state.noise.present:
            return f"{STALL} iterations without progress" if run.stalls >= STALL else ""
        if run.es.sigma < 0.2 * max(float(run.es.sigma_es), 1e-6):
            # Noise drowns what steps this small could gain, while the models have seen more since: look up again.
            run.es = run.es._replace(sigma=np.asarray(1.5 * max(float(run.es.sigma_es), 1e-4)))
            run.stalls += 1
        long = budget.evaluations - run.start > 0.25 * (self.max_evaluations - self.reserve())
        return "the remaining gain is smaller than the noise" if run.stalls >= 5 and long else ""

    def _another_run(self) -> bool:
        """Keep the end of this run and begin another one elsewhere, if that is wanted and affordable."""
        state, options = self.state, self.options
        if (
            not options.restarts
            or options.cautious is not None
            or state.budget.left - self.reserve() < 0.15 * self.max_evaluations
        ):
            return False
        ends = [*state.ends, self._this_end()]
        worths = [limits.worth(self, end.estimate) for end in ends]
        best = min(f if limits.broken(self, end.estimate) <= 0 else math.inf for f, end in zip(worths, ends))
        same = [f for f in worths if f <= best + 1e-6 * max(abs(best), state.f_scale or 0.0)]
        if not state.noise.present and math.isfinite(best) and len(same) >= AGREEING_RUNS:
            return False
        state.ends = ends
        if len(state.starts):
            z, state.starts = state.starts[0], state.starts[1:]
        else:
            z = self._elsewhere(len(ends))
        es = algorithm.init(z, options.sigma0, options.sigma_es0 or options.sigma0)
        es = es._replace(k=state.run.es.k, successes=state.run.es.successes)
        state.run = RunState(
            self.strategy.init(z), es, multipliers=state.run.multipliers, start=state.budget.evaluations
        )
        return True

    def _elsewhere(self, number: int) -> np.ndarray:
        """A point from which a run has not begun yet."""
        space, ends = self.space, self.state.ends
        z = self.streams(RESTARTS, number).random(space.n)
        finite = np.isfinite(space.z_lower) & np.isfinite(space.z_upper)
        away = ends[0].x + (2 * z - 1) * 4 * self.options.sigma0
        return space.project(np.where(finite, z, away).astype(space.dtype))

    def _this_end(self) -> End:
        run = self.state.run
        factor = getattr(run.strategy, "factor", np.zeros((0, 0)))
        return End(run.es.x, run.incumbent.estimate, factor, run.es.sigma_es, run.multipliers)

    def end(self, why: str, converged: bool = False) -> None:
        """The search is over: take up the best of the runs for the certificate."""
        state, run = self.state, self.state.run
        state.message, state.converged, state.phase = why, converged, "done"
        if run.incumbent.estimate.n == 0:
            return
        state.ends.append(self._this_end())
        state.ends.sort(key=lambda end: (limits.broken(self, end.estimate), limits.worth(self, end.estimate)))
        best = state.ends[0]
        run.es = run.es._replace(x=best.x, sigma_es=best.spread)
        run.incumbent.estimate, run.multipliers = best.estimate, best.multipliers
        if best.factor.size:
            run.strategy = run.strategy._replace(factor=best.factor)
        if not certify.next_candidate(self):
            state.phase = "certify"
