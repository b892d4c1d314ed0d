"""The search: Algorithm 1 for a black box, phase by phase, on a memory that is plain data.

    start -> sample -> trial (until the race is decided) -> sample -> ... -> certify

Each phase has an `_ask_` (which points, from the memory alone, so that asking again gives the same batch) and a `_tell_`
(what the outcomes change).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from pcces import strategies
from pcces.blackbox.batch import Batch, LazyPoints, Streams, combine, population_normals, too_large
from pcces.blackbox.history import History
from pcces.blackbox.models.archive import Archive
from pcces.blackbox.models.quadratic import LocalModel, coefficients, local_model, minimise
from pcces.blackbox.options import Options
from pcces.blackbox.space import Space
from pcces.blackbox.state import End, Memory
from pcces.core import algorithm
from pcces.core.barrier import anneal, comparable, feasible_first, violation
from pcces.core.certificate import expected_width, spend
from pcces.core.estimation import Estimate, Race, blend_noise, estimate, pool, required_samples
from pcces.strategies import Strategy
from pcces.strategies.cma import default_population
from pcces.support.threads import one_blas_thread

MODEL_DIMENSION = 40  # up to here regression models help Psi_k: a quadratic has 861 coefficients
SMALL = 1000  # up to here more than one BLAS thread only gets in the way
STALL = 40  # iterations without progress that end a noise-free run
CERTAIN = 3  # paired differences that are all the same leave no doubt
AGREEING_RUNS = 5  # noise-free runs that end at the best value seen and so end the search
WIDE = 0.03  # steps longer than this may cross from one valley to another
CMA_DIMENSION = 200  # up to here an n x n covariance is cheap


class Search:
    """Everything between the first evaluation and the certificate."""

    def __init__(
        self,
        space: Space,
        options: Options,
        strategy: str | Strategy,
        preset: str,
        max_evaluations: int,
        confidence: float,
        equalities: Sequence[int],
        common_random_numbers: bool,
        seed: int,
    ):
        self.space, self.options, self.streams = space, options, Streams(seed)
        self.max_evaluations, self.confidence = max_evaluations, confidence
        self.equalities, self.common_random_numbers = tuple(equalities), common_random_numbers
        self.strategy, self.uses_models = read_strategy(strategy, preset, space.n)
        self.population = options.population or default_population(space.n)
        self.race = Race(most=options.samples_max)
        self.archive = Archive(space.n) if self.uses_models else None
        self.history = History()
        self.memory = Memory.start(space.project(space.to_z(space.x0)), self.strategy, options)
        self.memory.noisy = options.noisy
        self._directions: Any = None
        self._margin: tuple[Any, np.ndarray] | None = None

    def ask(self) -> tuple[Any, ...]:
        """Points, seeds and, on trial, how many of the points repeat the trial point."""
        return getattr(self, f"_ask_{self.memory.phase}")()

    def tell(self, batch: Batch, outputs: np.ndarray) -> None:
        """Take in the outcomes of the batch that was asked for."""
        with one_blas_thread() if self.space.n <= SMALL else nullcontext():
            getattr(self, f"_tell_{batch.phase}")(batch, outputs)
        self._directions = None

    def learn_constraints(self, m: int) -> None:
        """The first evaluation that did not fail tells how many constraints there are."""
        if any(not -m <= i < m for i in self.equalities):
            raise ValueError(f"equalities {self.equalities} name constraints beyond the {m} given")
        memory = self.memory
        memory.constraints, memory.equal = m, np.array([i % m for i in self.equalities], dtype=int)
        width = 1 + m + len(self.equalities)
        memory.noise, memory.multipliers = np.zeros(width), np.zeros(width - 1)
        if memory.incumbent is not None:  # it failed, or this would have been known
            memory.incumbent = Estimate(memory.incumbent.n, np.full(width, np.inf), np.zeros(width))

    @property
    def evaluations_left(self) -> int:
        """How many evaluations the budget still holds."""
        return self.max_evaluations - self.memory.evaluations

    def _seeds(self, k: int, counter: int) -> np.ndarray:
        return self.streams(1, counter).integers(2**63, size=k)

    def repeat(self, z: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """k times the same point, as far as the budget goes, each with a seed of its own."""
        k = max(1, min(k, self.evaluations_left))
        return np.repeat(self.space.to_x(z)[None], k, axis=0), self._seeds(k, self.memory.batches)

    # -- start: what is x0 worth, and is there noise? ------------------------------------------------------------------

    def _ask_start(self) -> tuple[np.ndarray, np.ndarray]:
        known = 0 if self.memory.incumbent is None else int(self.memory.incumbent.n)
        fixed = self.options.samples if isinstance(self.options.samples, int) else 0
        wanted = max(2, fixed) if known == 0 else 18
        if self.options.noisy is False:
            wanted = max(1, fixed)
        return self.repeat(self.memory.state.x, wanted)

    def _tell_start(self, batch: Batch, outputs: np.ndarray) -> None:
        m = self.memory
        new = estimate(outputs)
        m.incumbent = new if m.incumbent is None else pool(m.incumbent, new)
        m.incumbent_row = self._remember(m.incumbent_row, m.state.x, outputs)
        self.learn_noise(m.incumbent)
        if m.noisy and m.incumbent.n < 20 and isinstance(self.options.samples, str) and self.evaluations_left > 40:
            return  # a few more to see how much noise
        self._begin_iteration()

    def learn_noise(self, e: Estimate, weight: float = 1.0) -> None:
        """Take in what repeated evaluations of a point show."""
        m = self.memory
        if e.n < 2 or not np.all(np.isfinite(e.mean)):
            return
        if m.noisy is None:
            m.noisy, weight = bool(np.any(e.squares > 0)), 1.0
        if m.noisy:
            first_seen = (m.noise == 0) & (e.squares > 0)
            m.noise = np.where(first_seen, np.sqrt(e.variance), blend_noise(m.noise, e, weight))

    def _remember(self, row: int, z: np.ndarray, outputs: np.ndarray) -> int:
        """Put the evaluations of one point into the archive."""
        if self.archive is None or not np.all(np.isfinite(outputs)) or len(outputs) == 0:
            return row
        first = 0
        if row < 0:
            row, first = int(self.archive.add(z[None], outputs[:1])[0]), 1
        if len(outputs) > first:
            self.archive.merge(row, outputs[first:].mean(0), len(outputs) - first)
        return row

    # -- sample: Steps 1 to 3 ------------------------------------------------------------------------------------------

    def _begin_iteration(self) -> None:
        m, o = self.memory, self.options
        if self.evaluations_left <= self.reserve() + self.population + self.race.least + 2:
            self.end(f"the budget of {self.max_evaluations} evaluations is spent")
        elif o.max_iterations is not None and int(m.state.k) >= o.max_iterations:
            self.end(f"{o.max_iterations} iterations are done")
        else:
            why = self._converged()
            if not why:
                m.phase = "sample"
            elif not self._start_again():
                self.end(f"converged: {why}")

    def _converged(self) -> str:
        """Why this run has nothing more to gain, or an empty string."""
        m, o = self.memory, self.options
        if m.state.sigma < o.sigma_stop:
            return f"the step size fell below {o.sigma_stop:g}"
        if not self.uses_models:
            return ""
        if not m.noisy:
            return f"{STALL} iterations without progress" if m.stalls >= STALL else ""
        if m.state.sigma < 0.2 * max(float(m.state.sigma_es), 1e-6):
            # Noise drowns what steps this small could gain, while the models have seen more since: look up again.
            m.state = m.state._replace(sigma=np.asarray(1.5 * max(float(m.state.sigma_es), 1e-4)))
            m.stalls += 1
        search = self.max_evaluations - self.reserve()
        stalled = m.stalls >= 5 and m.evaluations - m.run_start > 0.25 * search
        return "noise hides what is left to gain" if stalled else ""

    def _start_again(self) -> bool:
        """Keep the end of this run and start another one elsewhere, if that is wanted and affordable."""
        m = self.memory
        if not self.options.restarts or self.evaluations_left - self.reserve() < 0.15 * self.max_evaluations:
            return False
        ends = [*m.ends, self._this_end()]
        best = min(float(end.estimate.f) if self.broken(end.estimate) <= 0 else math.inf for end in ends)
        same = [end for end in ends if end.estimate.f <= best + 1e-6 * max(abs(best), m.f_scale or 0.0)]
        if not m.noisy and math.isfinite(best) and len(same) >= AGREEING_RUNS:
            return False
        m.ends = ends
        z = self.streams(3, len(m.ends)).random(self.space.n)
        finite = np.isfinite(self.space.z_lower) & np.isfinite(self.space.z_upper)
        away = m.ends[0].x + (2 * z - 1) * 4 * self.options.sigma0
        z = self.space.project(np.where(finite, z, away).astype(self.space.dtype))
        k, successes = m.state.k, m.state.successes
        m.restart(z, self.strategy, self.options)
        m.state = m.state._replace(k=k, successes=successes)
        m.phase = "start"
        return True

    def _this_end(self) -> End:
        m = self.memory
        assert m.incumbent is not None and m.multipliers is not None
        return End(
            m.state.x, m.incumbent, getattr(m.strategy, "factor", np.zeros((0, 0))), m.state.sigma_es, m.multipliers
        )

    def _ask_sample(self) -> tuple[Any, np.ndarray]:
        m, half = self.memory, self.population // 2
        width = self.strategy.normals(self.space.n)
        z = population_normals(self.streams, int(m.state.k), half, width, self.space.dtype)
        seeds = self._seeds(self.population, m.batches)
        if self.common_random_numbers:  # mirrored pairs share their seeds
            seeds = np.concatenate([seeds[:half]] * 2)
        large = too_large(self.population, self.space.n)
        if self.strategy.lazy and (large or not self.space.confined):
            self._directions = LazyPoints(z, self.strategy, m.strategy, m.state, self.space)
            return self._directions if large else np.asarray(self._directions), seeds
        directions = strategies.mirrored(self.strategy.directions(m.strategy, z.rows(0, half)))
        points = self.space.project(algorithm.sample_points(m.state.x, m.state.sigma_es, directions))
        self._directions = (points - m.state.x) / m.state.sigma_es
        return self.space.to_x(points), seeds

    def _tell_sample(self, batch: Batch, outputs: np.ndarray) -> None:
        m, o = self.memory, self.options
        D = self._directions
        local, measured = None, outputs
        if self.archive is not None:
            points = m.state.x + m.state.sigma_es * D
            self.archive.add(points, outputs)
            models_turn = self._models_turn()
            if models_turn or m.noisy:
                local = local_model(self.archive, m.state.x, m.strategy.factor, float(m.state.sigma_es), m.noise)
            if local is not None and m.noisy:  # let the model take the noise out of the ranking
                failed = ~np.isfinite(outputs[:, 0])
                outputs = local.model(local.to_u(points - m.state.x))
                outputs[failed] = np.inf
        f, broken = outputs[:, 0], violation(outputs[:, 1:] + self.margin(), self._allowance())
        if m.f_scale is None:
            finite = f[np.isfinite(f)]
            spread_f = float(np.std(finite)) if finite.size > 1 else 0.0
            m.f_scale = spread_f if spread_f > 0 else 1.0
        by_merit = o.restoration == "merit" and self.broken(m.incumbent) > 0  # as Step 4 will compare
        fitness = f + o.rho * broken if by_merit else feasible_first(f, broken)
        usable = np.isfinite(fitness)
        if usable.any():  # a failed sample must not shift the others
            fitness[usable] = strategies.SHAPINGS[o.shaping](fitness[usable])
        if o.shaping == "standardised" and self.common_random_numbers and m.noisy:
            spread = float(strategies.pair_spread(fitness))  # the noise that pairs share says nothing about the slope
            fitness = fitness / spread if spread > 0 else fitness
        m.weights = self.strategy.weights(fitness)
        m.d = combine(m.weights, D)
        m.kind = self.strategy.name
        if local is not None:
            if models_turn:
                self._propose_by_model(local, D, broken, f)
            self._adapt_spread(local, points, measured)
        m.x_trial = self.space.project(algorithm.trial_point(m.state, m.d, self.rule()))
        m.trial, m.trial_row = None, -1
        m.trial_samples = m.incumbent_samples = None
        m.directions = D if isinstance(D, np.ndarray) else None
        m.phase = "trial"

    def _models_turn(self) -> bool:
        """Whether the model proposes d_k, more often the more often that succeeds."""
        m = self.memory
        by_model, by_strategy = m.wins[0] / m.wins[1], m.wins[2] / m.wins[3]
        return bool(self.streams(4, m.batches).random() < max(0.2, by_model / (by_model + by_strategy)))

    def _propose_by_model(self, local: LocalModel, D: np.ndarray, broken: np.ndarray, f: np.ndarray) -> None:
        """Replace d_k by the model's step; while steps are wide, look for it from the best samples, too."""
        m = self.memory
        n, sigma = self.space.n, float(m.state.sigma)
        radius = min(math.sqrt(n) * sigma / local.length, 3 * math.sqrt(n))
        starts = [np.zeros(n)]
        if sigma > WIDE:
            starts += list(local.to_u(m.state.sigma_es * D[np.lexsort((f, broken))[:2]]))
        backoff = self.margin() + (0.3 if m.noisy else 1.0) * local.model.error[1:] - self._allowance()
        step = self.model_step(local, m.state.x, starts, radius, backoff)
        if step is not None:
            m.d, m.kind = step / sigma, "model"

    def model_step(
        self, local: LocalModel, x: np.ndarray, starts: list[np.ndarray], radius: float, backoff: np.ndarray
    ) -> np.ndarray | None:
        """The model's best step from x, in the coordinates of z."""
        G, h = self.space.half_spaces
        to_z = self.memory.strategy.factor * local.length
        answer = minimise(local.model, starts, radius, backoff, G @ to_z, h - G @ x, self.memory.multipliers)
        if answer is None:
            return None
        self.memory.multipliers = answer[1]
        return to_z @ answer[0]

    def _adapt_spread(self, local: LocalModel, points: np.ndarray, outputs: np.ndarray) -> None:
        """Under noise, sample as widely as the model still fits: widen while it predicts this population to within the noise."""
        m = self.memory
        good = np.isfinite(outputs[:, 0])
        if not m.noisy or self.options.sigma_es != "adapted" or local.model.points < 1.5 * coefficients(self.space.n):
            return
        matters = np.concatenate([[True], local.model.value[1:] + 2 * local.model.spread[1:] > 0]) & (m.noise > 0)
        if not good.any() or not matters.any():
            return
        miss = (outputs[good] - local.model(local.to_u(points[good] - m.state.x)))[:, matters] / m.noise[matters]
        k, q = len(miss), int(matters.sum())
        usual = 2 * float(
            scipy.special.gammaincinv(k / 2, 0.8 ** (1 / q))
        )  # exceeded by a perfect model in one population out of five
        factor = 1.15 if np.max((miss**2).sum(0)) < usual else 1 / 1.15
        m.spread_floor = min(max(float(m.state.sigma_es), m.spread_floor) * factor, 0.3)

    # -- trial: the estimates of Step 3, the decision of Step 4 -----------------------------------------------------------

    def _wanted(self) -> tuple[int, int]:
        """How many more evaluations of trial point and incumbent to ask for."""
        m, o = self.memory, self.options
        done = 0 if m.trial is None else int(m.trial.n)
        if isinstance(o.samples, int):
            n_k = o.samples
        elif o.samples == "accuracy" and m.noisy:
            unit = o.kappa * (m.f_scale or 1.0)
            n_k = required_samples(float(m.noise[0]) ** 2, float(m.state.sigma), o.eps_f * unit, o.eps_v * unit, o.p)
            n_k = min(n_k, o.samples_max)
        elif m.noisy is False:
            n_k = 1
        else:
            n_k = self.race.least
        paired = self.common_random_numbers and m.noisy is not False
        renew = o.incumbent == "fresh" or paired
        if done == 0:
            top_up = n_k if renew or (o.incumbent == "pooled" and not isinstance(o.samples, str)) else 0
            return n_k, 0 if m.noisy is False or (o.incumbent == "kept" and not paired) else top_up
        more = min(done, self.race.most - done)  # double, up to the cap
        if paired or o.incumbent == "fresh":
            return more, more
        if o.incumbent == "kept" or (done <= m.incumbent.n and more > 0):
            return more, 0
        return 0, int(min(m.incumbent.n, max(self.race.most - m.incumbent.n, 1)))

    def _ask_trial(self) -> tuple[np.ndarray, np.ndarray, int]:
        m = self.memory
        for_trial, for_incumbent = self._wanted()
        room = max(self.evaluations_left - self.reserve(), 1)
        if for_trial + for_incumbent > room:  # keep pairs whole, the trial first
            for_trial = min(for_trial, max(1, room // 2 if for_incumbent else room))
            for_incumbent = min(for_incumbent, room - for_trial)
        points = np.repeat(self.space.to_x(np.stack([m.x_trial, m.state.x])), [for_trial, for_incumbent], axis=0)
        if self.common_random_numbers:
            seeds = self._seeds(max(for_trial, for_incumbent), m.batches)
            return points, np.concatenate([seeds[:for_trial], seeds[:for_incumbent]]), for_trial
        return points, self._seeds(len(points), m.batches), for_trial

    def _tell_trial(self, batch: Batch, outputs: np.ndarray) -> None:
        m, o = self.memory, self.options
        at_trial = batch.at_trial
        fresh, again = outputs[:at_trial], outputs[at_trial:]
        if at_trial:
            m.trial = estimate(fresh) if m.trial is None else pool(m.trial, estimate(fresh))
            m.trial_row = self._remember(m.trial_row, m.x_trial, fresh)
            m.trial_samples = fresh if m.trial_samples is None else np.vstack([m.trial_samples, fresh])
        if len(again):
            replace = (o.incumbent == "fresh" or self.common_random_numbers) and m.incumbent_samples is None
            m.incumbent = estimate(again) if replace else pool(m.incumbent, estimate(again))
            m.incumbent_row = self._remember(m.incumbent_row, m.state.x, again)
            m.incumbent_samples = again if m.incumbent_samples is None else np.vstack([m.incumbent_samples, again])
        if m.noisy is None:
            self.learn_noise(m.trial)
        if o.samples == "race" and m.noisy is not False and self._race_is_open():
            return
        self._decide()

    def _race_is_open(self) -> bool:
        m = self.memory
        measured = math.isfinite(m.trial.f) and math.isfinite(m.incumbent.f)
        if self.evaluations_left - self.reserve() < 2 or not measured or not any(self._wanted()):
            return False
        restoring = self.broken(m.incumbent) > 0
        decrease = 0.5 * self.rule().kappa * float(m.state.sigma) ** 2
        difference, clearance = float(m.trial.f - m.incumbent.f), np.zeros(0)
        error, certain = self._difference_error()
        samples = (int(m.trial.n), int(m.incumbent.n))
        if restoring:
            less_broken = self.broken(m.trial) - self.broken(m.incumbent)
            its_error = float(np.max(m.noise[1:], initial=0.0)) * math.sqrt(1 / m.trial.n + 1 / m.incumbent.n)
            certain = False
            if self.options.restoration == "merit":
                rho = self.options.rho
                difference, error = difference + rho * less_broken, math.hypot(error, rho * its_error)
            else:
                difference, error = less_broken, its_error
        else:
            clearance = self._clearance(m.trial)
        clearance_error = m.noise[1:] / math.sqrt(m.trial.n) if clearance.size else clearance
        return self.race.undecided(difference + decrease, error, clearance, clearance_error, samples, certain)

    def _difference_error(self) -> tuple[float, bool]:
        """The standard error of f~_trial - f_k, paired where both saw the same random numbers, and whether it is surely
        zero."""
        m = self.memory
        if self.common_random_numbers and m.trial_samples is not None and m.incumbent_samples is not None:
            k = min(len(m.trial_samples), len(m.incumbent_samples))
            pairs = m.trial_samples[:k, 0] - m.incumbent_samples[:k, 0]
            if k >= CERTAIN and np.ptp(pairs) <= 1e-12 * np.abs(m.trial_samples[:k, 0]).max():
                return 0.0, True  # all the noise is shared: the difference is known
            if k >= 4:
                return float(np.std(pairs, ddof=1)) / math.sqrt(k), False
        return float(m.noise[0]) * math.sqrt(1 / m.trial.n + 1 / m.incumbent.n), False

    def _decide(self) -> None:
        m, o, rule = self.memory, self.options, self.rule()
        before, sigma = m.state.x, m.state.sigma
        broken_trial, broken_incumbent = self.broken(m.trial), self.broken(m.incumbent)
        trial, incumbent = comparable(
            np.float64(m.trial.f),
            np.float64(broken_trial),
            np.float64(m.incumbent.f),
            np.float64(broken_incumbent),
            rho=o.rho if o.restoration == "merit" else None,
        )
        m.state, success = algorithm.decide(m.state, m.x_trial, trial, incumbent, rule)
        if not success and not math.isfinite(m.incumbent.f):  # the start failed: what works is farther away, not nearer
            m.state = m.state._replace(sigma=np.minimum(sigma * rule.gamma, rule.sigma_max).astype(sigma.dtype))
        self.learn_noise(m.trial, 0.1 if m.trial.n >= 8 else 0.0)
        self._count_stalls(broken_incumbent, bool(success))
        if success:
            m.incumbent, m.incumbent_row = m.trial, m.trial_row
            m.accept(self.space.n)
        record = m.wins[:2] if m.kind == "model" else m.wins[2:]
        record[:] = 0.9 * record + np.array([float(success), 1.0])
        step = (m.state.x - before) / sigma
        m.strategy = self.strategy.update(m.strategy, m.directions, m.weights, step, m.d)
        self._update_sigma_es()
        self.history.add(
            evaluations=m.evaluations,
            fun=float(m.incumbent.f),
            constr=m.incumbent.c,
            sigma=float(m.state.sigma),
            sigma_es=float(m.state.sigma_es),
            samples_trial=int(m.trial.n),
            samples_incumbent=int(m.incumbent.n),
            success=bool(success),
            feasible=(broken_trial if success else broken_incumbent) <= 0,
            kind=m.kind,
        )
        m.trial_samples = m.incumbent_samples = m.directions = None
        self._begin_iteration()

    def _count_stalls(self, broken_incumbent: float, success: bool) -> None:
        """Progress is a gain that noise cannot explain or, without noise, a gain since the last progress that is worth
        an iteration. Under noise a stall is counted when sigma is lifted, without it every iteration."""
        m = self.memory
        if m.noisy:
            gain = float(m.incumbent.f - m.trial.f) if success else 0.0
            least = 2 * float(m.noise[0]) / math.sqrt(self.race.most)
        else:
            best = float(m.trial.f if success else m.incumbent.f)
            gain, least = m.progress_f - best, 1e-5 * max(abs(best), m.f_scale or 0.0)
            m.stalls += 1
        if broken_incumbent > 0 or (success and gain > least):
            m.stalls, m.progress_f = 0, float(m.trial.f if success else m.incumbent.f)

    def _update_sigma_es(self) -> None:
        """Step 5 for sigma^ES: tied to sigma as in the paper, fixed, or tied but no narrower than noise allows."""
        m, o = self.memory, self.options
        if o.sigma_es == "fixed":
            return
        ratio = (o.sigma_es0 or o.sigma0) / o.sigma0
        spread = ratio * float(m.state.sigma)
        if o.sigma_es == "adapted" and m.noisy:
            spread = max(spread, m.spread_floor)
        m.state = m.state._replace(sigma_es=np.asarray(spread, dtype=m.state.x.dtype))

    # -- constraints -----------------------------------------------------------------------------------------------------

    def rule(self) -> algorithm.Rule:
        """The constants of Algorithm 1, kappa in units of f."""
        o = self.options
        unit = self.memory.f_scale or 1.0
        return algorithm.Rule(o.kappa * unit, o.gamma, o.shrink_factor, o.sigma_min, o.sigma_max, o.d_max)

    def _allowance(self) -> float:
        """What Eq. 4 lets a constraint exceed zero by: eps_c sigma_k, and what annealing adds."""
        o, state = self.options, self.memory.state
        extra = 0.0 if o.anneal is None else float(anneal(o.anneal[0], np.asarray(state.k), o.anneal[1]))
        return o.eps_c * float(state.sigma) + extra

    def margin(self) -> np.ndarray:
        """How far below zero a constraint must be for the certificate to have a good chance."""
        m = self.memory
        if not m.noisy:
            return np.zeros(len(m.noise) - 1)
        key = (self.reserve(), m.looks, m.noise.tobytes())
        if self._margin is None or self._margin[0] != key:
            self._margin = key, self.margin_for(self.reserve())
        return self._margin[1]

    @cached_property
    def ranges(self) -> list[tuple[float, float]] | None:
        """The range of each inequality, if they were given: an equality's both ways, with its tolerance."""
        given, m, tolerance = self.options.constraint_range, self.memory, self.options.equality_tolerance
        if given is None:
            return None
        return (
            [tuple(given[i]) for i in range(len(given)) if i not in m.equal]
            + [(given[i][0] - tolerance, given[i][1] - tolerance) for i in m.equal]
            + [(-given[i][1] - tolerance, -given[i][0] - tolerance) for i in m.equal]
        )

    def margin_for(self, samples: int, error: np.ndarray | float = 0.0) -> np.ndarray:
        """How far below zero to aim so that this many samples certify all constraints in four of five cases, when the
        point aimed at is known with a standard error of `error`."""
        m = self.memory
        r, deviation = max(len(m.noise) - 1, 1), m.noise[1:] / math.sqrt(max(samples, 2))
        bound = expected_width(m.noise[1:], samples, spend(self.confidence, m.looks + 2), self.ranges)
        return bound + scipy.special.ndtri(0.8 ** (1 / r)) * np.sqrt(deviation**2 + np.square(error))

    def _clearance(self, e: Estimate) -> np.ndarray:
        """The constraints of an estimate relative to what is allowed: <= 0 passes."""
        m = self.memory
        error = m.noise[1:] / math.sqrt(max(float(e.n), 1.0))
        return e.c + self.margin() + self.options.constraint_z * error - self._allowance()

    def broken(self, e: Estimate) -> float:
        """By how much an estimate violates what is allowed; +inf for a failed evaluation."""
        return max(0.0, *self._clearance(e).tolist(), 0.0) if math.isfinite(e.f) else math.inf

    def reserve(self) -> int:
        """The evaluations kept for the certificate."""
        m = self.memory
        if m.constraints <= 0:
            return 0
        if m.noisy is False:  # repeats at the answer, in case there is noise after all
            return max(2, min(10, self.max_evaluations // 40))
        return int(self.options.certify_share * self.max_evaluations)

    def end(self, why: str) -> None:
        """The search is over: take up the best of the runs for the certificate."""
        m = self.memory
        m.message = why
        if m.incumbent is None:
            m.phase = "done"
            return
        m.ends.append(self._this_end())
        m.ends.sort(key=lambda end: (self.broken(end.estimate), float(end.estimate.f)))
        best = m.ends[0]
        m.state = m.state._replace(x=best.x, sigma_es=best.spread)
        m.incumbent, m.multipliers = best.estimate, best.multipliers
        if best.factor.size:
            m.strategy = m.strategy._replace(factor=best.factor)
        m.phase = "certify"


def read_strategy(strategy: str | Strategy, preset: str, n: int) -> tuple[Strategy, bool]:
    """The strategy object, and whether regression models help it."""
    if isinstance(strategy, Strategy):
        return strategy, False
    makers: dict[str, Callable[[], Strategy]] = {
        "cma": strategies.cma,
        "guided": strategies.guided,
        "gaussian": strategies.gaussian,
        "asebo": strategies.asebo,
    }
    if strategy == "default":
        if preset == "paper" or n > CMA_DIMENSION:
            return strategies.guided(), False
        return strategies.cma(), n <= MODEL_DIMENSION
    if strategy == "model":
        return strategies.cma(), True
    if strategy not in makers:
        raise ValueError(
            f"unknown strategy {strategy!r}; there are default, model, {', '.join(makers)}, or a Strategy object"
        )
    return makers[strategy](), False
