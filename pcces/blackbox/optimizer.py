"""Ask/tell: Algorithm 1 for any black box, one batch at a time; `save` and `load` at any moment."""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from pcces.blackbox.batch import Batch, Streams
from pcces.blackbox.evaluations import Evaluations, within_reach
from pcces.blackbox.models.archive import Archive
from pcces.blackbox.naming import rearranged
from pcces.blackbox.options import MODEL_DIMENSION, check_names, chosen_options, count, lost_assumptions, read_strategy
from pcces.blackbox.search import PHASES, Search
from pcces.blackbox.space import Space
from pcces.blackbox.state import Accepted, Budget, Constraints, RunState, SearchState
from pcces.blackbox.trial import LEAST
from pcces.core import algorithm
from pcces.core.estimation import Estimate, NoiseLevel, estimate, pool
from pcces.core.limits import Mean
from pcces.strategies import Strategy
from pcces.strategies.cma import default_population
from pcces.support.threads import one_blas_thread

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

    from pcces.blackbox.result import Result

ACCEPTED_NUMBERS = 20_000_000  # accepted points are candidates for the certificate; keep no more numbers than this
SMALL = 1000  # dimensions up to which more than one BLAS thread only gets in the way


class Optimizer:
    """Minimise f(x) subject to c(x) <= 0 by asking for points and being told their noisy values.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> opt = Optimizer([0.0, 0.0], bounds=[(-2, 2), (-2, 2)], max_evaluations=2000, rng=0)
    >>> while not opt.stop():
    ...     batch = opt.ask()
    ...     x = batch.points
    ...     f = ((x - 1) ** 2).sum(1) + 0.01 * rng.standard_normal(len(x))
    ...     c = x.sum(1) - 1 + 0.01 * rng.standard_normal(len(x))
    ...     opt.tell(batch, f, c)
    >>> opt.result.success, bool(np.allclose(opt.result.x, 0.5, atol=0.05))
    (True, True)
    """

    def __init__(
        self,
        x0: Any = None,
        *,
        bounds: Any = None,
        linear: LinearConstraint | Sequence[LinearConstraint] = (),
        equalities: Sequence[int] = (),
        strategy: str | Strategy = "default",
        preset: str = "default",
        max_evaluations: int | None = None,
        confidence: float = 0.95,
        common_random_numbers: bool = False,
        rng: int | np.random.Generator | None = None,
        scale: Any = None,
        integrality: Any = None,
        **options: Any,
    ):
        """Many parameters: those of `minimize` that are not about how to evaluate, and `pcces.Options`."""
        check_names(options, OWN)
        self.equalities = tuple(int(i) for i in equalities)
        linear = [linear] if isinstance(linear, scipy.optimize.LinearConstraint) else list(linear)
        self.space = space = Space(x0, bounds, linear, scale, integrality)
        max_evaluations = 2000 * space.n if max_evaluations is None else count(max_evaluations)
        if not isinstance(max_evaluations, int) or max_evaluations < 1:
            raise ValueError(f"max_evaluations must be a whole number of at least 1, got {max_evaluations!r}")
        if not 0.5 <= confidence < 1:
            raise ValueError(f"confidence must lie in [0.5, 1), got {confidence}")
        chosen, later = chosen_options(strategy, preset, options, space.n, max_evaluations, bool(self.equalities))
        self.options = chosen
        self.lost_assumptions = lost_assumptions(chosen)  # of the convergence theorem, in words
        rule = chosen.rule
        distribution, uses_models = read_strategy(strategy, preset, space.n)
        if chosen.cautious is not None and space.rounds:
            raise ValueError("cautious needs variables that can change a little: leave it out, or integers and choices")
        if chosen.cautious is not None and not uses_models:
            raise ValueError(
                f"cautious needs models to tell what is safe: strategy 'model', or the default with at most {MODEL_DIMENSION} "
                f"variables; got strategy {strategy!r}, preset {preset!r} and {space.n} variables"
            )
        population, normals = chosen.population or default_population(space.n), distribution.normals(space.n)
        own, es = (
            distribution.init(space.z0),
            algorithm.init(space.z0, chosen.sigma0, chosen.sigma_es0 or chosen.sigma0),
        )
        accepted = deque[Accepted](maxlen=max(2, min(1000, ACCEPTED_NUMBERS // space.n)))
        state = SearchState(
            Budget(max_evaluations), RunState(own, es), accepted,
            noise=NoiseLevel(False if chosen.deterministic else None, np.zeros(1)), few=later is not chosen,
        )  # fmt: skip
        self.search = Search(
            space=space, options=chosen, rule=rule, strategy=distribution, normals=normals, population=population,
            max_evaluations=max_evaluations, confidence=float(confidence),
            common_random_numbers=bool(common_random_numbers), archive=Archive() if uses_models else None,
            streams=Streams(int(np.random.default_rng(rng).integers(2**63))), state=state, later=later,
        )  # fmt: skip
        self.state, self.history = state, self.search.history
        self.evaluations = Evaluations([f"x{i}" for i in range(space.size)], space.variables)
        self.search.evaluations = self.evaluations
        self._asked: Batch | None = None
        name = strategy if isinstance(strategy, str) else None
        self.given = {"strategy": name, "preset": preset, "scale": scale, "linear": linear, "options": options}

    # -- the loop ------------------------------------------------------------------------------------------------------

    def stop(self) -> str:
        """Why the search is over, or an empty string (false) while it is not."""
        return self.state.message if self.state.phase == "done" else ""

    def finish(self) -> None:
        """End the search here; what is left of the budget goes into the certificate."""
        if self.state.phase not in ("certify", "done"):
            self._asked = None
            with one_blas_thread():
                self.search.end("stopped by the caller")

    def ask(self) -> Batch:
        """All that can be evaluated in parallel now: samples, or repeats of trial point and incumbent alike."""
        batch = self._ask()
        if self.space.variables is None:
            return batch
        shown = self.space.shown(np.asarray(batch.points))
        return Batch(shown, batch.seeds, batch.number, batch.phase, batch.at_trial, batch.directions)

    def _ask(self) -> Batch:
        if self.state.phase == "done":
            raise RuntimeError(f"the search is over ({self.state.message}); read .result")
        if self._asked is None:
            self._asked = PHASES[self.state.phase].ask(self.search)
        return self._asked

    def tell(self, batch: Batch, f: Any, c: Any = None, repeated: int = 0) -> None:
        """Report f (k,) and c (k, m) for the points of the batch just asked for; nan, inf or a number
        beyond 1e100 marks a failed evaluation. `c` may be a dictionary: a name and k values a constraint.

        `repeated`: how many of them were made again, because a worker died (`Evaluator.repeated`): they count, too.
        """
        asked = self._ask()
        if isinstance(c, Mapping):
            names = tuple(map(str, c))
            self.name_constraints(names)
            c = np.array(list(c.values()), dtype=float)[rearranged(names, self.state.constraints.given_names)].T
        if batch.number != asked.number:
            raise ValueError(f"told batch {batch.number}, but batch {asked.number} is the one that was asked for last")
        outputs = self._outputs(f, c, len(asked.seeds))
        budget = self.state.budget
        budget.left -= len(outputs) + repeated
        budget.evaluations += len(outputs) + repeated
        budget.repeated += repeated
        budget.failures += int((~np.isfinite(outputs[:, 0])).sum())
        budget.batches += 1
        self._asked = None
        self._note(asked, f, c, outputs)
        constraints, seen = self.state.constraints, self.state.seen
        good = outputs[np.isfinite(outputs[:, 0]), 1:]
        if constraints.number > 0:
            seen.take(good, constraints.number - len(constraints.equal), asked.phase)
        with one_blas_thread() if self.space.n <= SMALL else nullcontext():
            if PHASES[asked.phase].tell(self.search, asked, outputs):
                self.search.next_phase()

    def name_constraints(self, names: Sequence[str]) -> None:
        """Say what the constraints are called, in their order: in messages, pictures and reports."""
        constraints = self.state.constraints
        if names and constraints.given_names and sorted(names) != sorted(constraints.given_names):
            raise ValueError(
                f"constraints are called {', '.join(names)} now, but were {', '.join(constraints.given_names)} before"
            )
        constraints.given_names = constraints.given_names or tuple(names)

    def _note(self, batch: Batch, f: Any, c: Any, outputs: np.ndarray) -> None:
        """Keep the evaluations for the table, and what they say of x_0."""
        k, at_trial = len(outputs), batch.at_trial
        why = ["trial"] * at_trial + ["incumbent"] * (k - at_trial) if batch.phase == "trial" else [batch.phase] * k
        c = None if c is None else np.asarray(c, dtype=float).reshape(k, -1)
        self.evaluations.add(batch.points, batch.seeds, why, np.asarray(f, dtype=float), c)
        repeats = {"start": outputs, "trial": outputs[at_trial:]}.get(batch.phase, outputs[:0])
        if len(repeats) and np.array_equal(self.state.run.es.x, self.space.z0):
            self.state.first = pool(self.state.first, estimate(repeats))

    def _outputs(self, f: Any, c: Any, k: int) -> np.ndarray:
        """(f, inequalities, equalities both ways) as rows; failed evaluations are rows of +inf."""
        f = within_reach(np.asarray(f, dtype=float))
        if f.shape != (k,):
            raise ValueError(f"f must have shape ({k},), one value a point, got {f.shape}")
        m, equal = self.state.constraints.number, self.state.constraints.equal
        c_given = c is not None or bool(np.any(np.isfinite(f)))
        c = np.full((k, max(m, 0)), np.nan if m > 0 and not np.any(np.isfinite(f)) else 0.0) if c is None else c
        boolean = np.asarray(c).dtype == bool
        c = within_reach(np.asarray(c, dtype=float))
        c = c[:, None] if c.ndim == 1 and len(c) == k else c
        if c.ndim != 2 or len(c) != k:
            raise ValueError(f"c must have shape ({k}, number of constraints), got {c.shape}")
        if m >= 0 and c.shape[1] != m:
            raise ValueError(f"c has {c.shape[1]} constraints now but had {m} before")
        if m >= 0 or c_given:
            self._check_range(f, c)
        if m < 0 and c_given:
            equal = self._learn_constraints(c.shape[1], boolean)
        self.state.seen.boolean &= boolean or bool(np.isin(c[np.isfinite(f)], (0.0, 1.0)).all())
        if self.options.limits is not None and c_given:
            c = c - [limit.origin for limit in self.options.limits]
        columns = [f[:, None], c]
        if len(equal):
            h, tolerance = c[:, equal], self.options.equality_tolerance
            columns = [f[:, None], np.delete(c, equal, axis=1), h - tolerance, -h - tolerance]
        rows = np.concatenate(columns, axis=1)
        rows[~np.isfinite(rows).all(axis=1)] = np.inf
        return rows

    def _check_range(self, f: np.ndarray, c: np.ndarray) -> None:
        """Every c must lie in the range that was stated for it; failed evaluations have none."""
        given = self.options.constraint_range
        if given is None:
            return
        if len(given) != c.shape[1]:
            raise ValueError(f"constraint_range has {len(given)} pairs for {c.shape[1]} constraints")
        low, high = np.array(given, dtype=float).reshape(-1, 2).T
        slack = 1e-9 * (high - low)
        failed = ~(np.isfinite(f) & np.isfinite(c).all(axis=1))
        outside = np.argwhere(((c < low - slack) | (c > high + slack)) & ~failed[:, None])
        if len(outside):
            i, j = outside[0]
            raise ValueError(
                f"constraint {j} was {c[i, j]:.9g}, outside its constraint_range ({low[j]:g}, {high[j]:g}): "
                "give a range that holds at every point, or leave constraint_range out"
            )

    def _learn_constraints(self, m: int, boolean: bool) -> np.ndarray:
        """The first evaluation that did not fail tells how many constraints there are, and so which are equalities."""
        limits = self.options.limits
        if limits is not None and len(limits) != m:
            raise ValueError(f"limits has {len(limits)} limits for {m} constraints: give one for each, in their order")
        if any(not -m <= i < m for i in self.equalities):
            raise ValueError(f"equalities {self.equalities} name constraints beyond the {m} given")
        equal = np.array([i % m for i in self.equalities], dtype=int)
        if limits is not None and any(limits[i] != Mean() for i in equal):
            raise ValueError("an equality is one of means: leave its limit Mean()")
        state, width = self.state, 1 + m + len(equal)
        state.constraints = Constraints(m, equal, state.constraints.given_names)
        state.noise = state.noise._replace(deviation=np.zeros(width), jump=np.zeros(width))
        state.seen.begin(width - 1)
        state.seen.boolean = boolean
        state.run.multipliers = np.zeros(width - 1)
        start = state.run.incumbent
        if start.estimate.n > 0:  # it failed, or this would have been known
            start.estimate = Estimate(start.estimate.n, np.full(width, np.inf), np.zeros(width))
        return equal

    def spare(self, batch: Batch) -> float:
        """How many evaluations of a batch may be made again if workers die. The certificate needs all of its samples."""
        if batch.phase == "certify":
            return math.inf
        return max(0, self.state.budget.left - len(batch) - LEAST - 2)

    @property
    def evaluations_left(self) -> int:
        """How many evaluations the budget still holds."""
        return max(0, self.state.budget.left)  # workers that die may take more than there is

    # -- the answer --------------------------------------------------------------------------------------------------------

    @property
    def result(self) -> Result:
        """The answer so far; after the end, with the certificate's verdict."""
        from pcces.blackbox.result import make_result

        return make_result(self.search, self.evaluations)

    # -- files -------------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write everything the search knows; at any moment, batches asked for and not told included."""
        from pcces.blackbox import storage  # with json, zipfile and secrets behind it

        storage.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Optimizer:
        """Continue where `save` left off, to the same bits.

        >>> import tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "search.npz")
        >>> Optimizer([1.0, 2.0], rng=3).save(path)
        >>> Optimizer.load(path).ask().points
        array([[1., 2.],
               [1., 2.]])
        """
        from pcces.blackbox import storage

        return storage.load(cls, path)


OWN = [name for name in inspect.signature(Optimizer).parameters if name != "options"]
