"""Ask/tell: Algorithm 1 for any black box, one batch at a time; `save` and `load` at any moment."""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from pcces.blackbox import desk, missing
from pcces.blackbox.batch import Batch, Streams
from pcces.blackbox.coding import read_variables
from pcces.blackbox.earlier import as_earlier, begun_at, take_in
from pcces.blackbox.evaluations import Evaluations
from pcces.blackbox.models.archive import Archive
from pcces.blackbox.naming import rearranged
from pcces.blackbox.options import MODEL_DIMENSION, check_names, chosen_options, count, lost_assumptions, read_strategy
from pcces.blackbox.orders import Desk, Order
from pcces.blackbox.outputs import Parts, Told, as_rows, checked, chosen_rows
from pcces.blackbox.population import LAZY_NUMBERS
from pcces.blackbox.search import PHASES, Search
from pcces.blackbox.space import Space
from pcces.blackbox.state import Accepted, Budget, RunState, SearchState
from pcces.blackbox.trial import LEAST
from pcces.core import algorithm
from pcces.core.estimation import NoiseLevel
from pcces.strategies import Strategy
from pcces.strategies.cma import default_population
from pcces.support.threads import one_blas_thread

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

    from pcces.blackbox.result import Result

ACCEPTED_NUMBERS = 20_000_000  # accepted points are candidates for the certificate; keep no more numbers than this
SMALL = 1000  # dimensions up to which more than one BLAS thread only gets in the way


class Optimizer:
    """Minimise f(x) subject to c(x) <= 0 by ask and tell, from noisy values.

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
        initial_data: Any = None,
        **options: Any,
    ):
        """Many parameters: those of `minimize` that do not concern the evaluation, and `pcces.Options`."""
        check_names(options, OWN)
        equalities = tuple(int(i) for i in equalities)
        linear = [linear] if isinstance(linear, scipy.optimize.LinearConstraint) else list(linear)
        self.earlier, begun = None, x0
        if initial_data is not None:
            bounds = read_variables(bounds, None, integrality) or bounds
            self.earlier, begun = begun_at(initial_data, x0, bounds)
        self.space = space = Space(begun, bounds, linear, scale, integrality)
        max_evaluations = 2000 * space.n if max_evaluations is None else count(max_evaluations)
        _check_numbers(max_evaluations, len(space.starts), confidence)
        chosen, later = chosen_options(strategy, preset, options, space.n, max_evaluations, bool(equalities))
        self.options = chosen
        self.lost_assumptions = lost_assumptions(chosen)  # of the convergence theorem, in words
        distribution, uses_models = read_strategy(strategy, preset, space.n)
        if chosen.cautious is not None:
            _check_caution(space, uses_models, f"strategy {strategy!r}, preset {preset!r}")
        population, normals = chosen.population or default_population(space.n), distribution.normals(space.n)
        es = algorithm.init(space.z0, chosen.sigma0, chosen.sigma_es0 or chosen.sigma0)
        accepted = deque[Accepted](maxlen=max(2, min(1000, ACCEPTED_NUMBERS // space.n)))
        state = SearchState(
            Budget(max_evaluations), RunState(distribution.init(space.z0), es), accepted,
            noise=NoiseLevel(False if chosen.deterministic else None, np.zeros(1)), few=later is not chosen,
            origin=space.z0, from_data=begun is not x0, starts=space.z_starts[1:],
        )  # fmt: skip
        self.search = Search(
            space=space, options=chosen, rule=chosen.rule, strategy=distribution, normals=normals, population=population,
            max_evaluations=max_evaluations, confidence=float(confidence),
            common_random_numbers=bool(common_random_numbers), archive=Archive() if uses_models else None,
            streams=Streams(int(np.random.default_rng(rng).integers(2**63))), state=state, later=later,
            equalities=equalities,
        )  # fmt: skip
        self.state, self.history = state, self.search.history
        self.evaluations = Evaluations([f"x{i}" for i in range(space.size)], space.variables)
        self.search.evaluations = self.evaluations
        self._asked: Batch | None = None
        self.parts: Parts | None = None  # of it, that were told
        name = strategy if isinstance(strategy, str) else None
        if self.earlier is not None:
            take_in(self.search, self.earlier)
        self.given = {"strategy": name, "preset": preset, "scale": scale, "linear": linear, "options": options}

    # -- the loop ------------------------------------------------------------------------------------------------------

    def stop(self) -> str:
        """Why the search has ended, or an empty string (false) while it runs."""
        return self.state.message if self.state.phase == "done" else ""

    def finish(self) -> None:
        """End the search now. The rest of the budget is used for the certificate."""
        if self.state.phase not in ("certify", "done"):
            self._asked, self.parts = None, None
            with one_blas_thread():
                if self.state.desk is None:
                    self.search.end("stopped by the caller")
                else:
                    desk.end(self.search, "stopped by the caller")

    def ask(self, count: int | None = None) -> Batch:
        """All points that can be evaluated in parallel now. With `count`: that many points for free workers, at any time.

        `ask(count)` may return fewer points, or none, if the search has to wait for points that were not told yet.

        >>> opt = Optimizer([1.0, 1.0], max_evaluations=60, rng=0)
        >>> first, second = opt.ask(3), opt.ask(1)
        >>> opt.tell(second, [2.0])
        >>> opt.tell(first, 1.5, rows=2)
        >>> len(opt.ask(2)), [batch.rows.tolist() for batch in opt.pending]
        (2, [[0, 1], [0, 1]])
        """
        return self._shown(self._ask()) if count is None else self._ask_for(count)

    def _shown(self, batch: Batch) -> Batch:
        if self.space.variables is None:
            return batch
        shown = self.space.shown(np.asarray(batch.points))
        return Batch(shown, batch.seeds, batch.number, batch.phase, batch.at_trial, batch.directions, batch.rows)

    def _ask(self) -> Batch:
        if self.state.phase == "done":
            raise RuntimeError(f"the search is over ({self.state.message}); read .result")
        if self.state.desk is not None:
            raise RuntimeError("ask(count) was used before: give the number of points now too")
        if self._asked is None:
            self._asked = PHASES[self.state.phase].ask(self.search)
        return self._asked

    def _ask_for(self, count: int) -> Batch:
        if self.state.phase == "done":
            raise RuntimeError(f"the search is over ({self.state.message}); read .result")
        if count < 1:
            raise ValueError(f"ask(count) needs a count of at least 1, got {count}")
        if self.state.desk is None:
            if self._asked is not None:
                raise RuntimeError("first tell the batch that was asked for: ask() and ask(count) do not mix")
            if self.search.population * self.space.n > LAZY_NUMBERS:
                raise ValueError(
                    f"ask(count) keeps whole populations in memory: {self.search.population} points with {self.space.n} numbers are too "
                    "many; use ask()"
                )
            self.state.desk = Desk()
        with self._threads():
            orders = desk.ask(self.search, int(count))
        return self._batch_of(orders)

    def _batch_of(self, orders: list[Order]) -> Batch:
        """Orders of one batch."""
        z = np.array([order.z for order in orders], dtype=self.space.dtype).reshape(-1, self.space.n)
        seeds = np.array([order.seed for order in orders], dtype=np.int64)
        number = orders[0].number if orders else self.state.budget.batches
        rows = np.array([order.row for order in orders], dtype=int)
        return self._shown(Batch(self.space.to_x(z), seeds, number, self.state.phase, rows=rows))

    def _threads(self) -> AbstractContextManager[None]:
        return one_blas_thread() if self.space.n <= SMALL else nullcontext()

    @property
    def pending(self) -> list[Batch]:
        """The batches, or parts of batches, that were asked for but not told yet."""
        if self.state.desk is None:
            if self._asked is None and self.parts is None:
                return []
            untold = np.ones(len(self._ask()), dtype=bool) if self.parts is None else ~self.parts.told
            return [self._shown(self._ask()).part(np.flatnonzero(untold))]
        batches: dict[int, list[Order]] = {}
        for order in self.state.desk:
            if order.out:
                batches.setdefault(order.number, []).append(order)
        return [self._batch_of(orders) for _, orders in sorted(batches.items())]

    def tell(
        self, batch: Batch, f: Any, c: Any = None, rows: int | Sequence[int] | None = None, repeated: int = 0
    ) -> None:
        """Report f (k,) and c (k, m) for the points of a batch, or for some `rows` of it. nan, inf or a number beyond 1e100 marks a
        failed evaluation.

        Parts of a batch of `ask()` may be told in any order. The search continues when the batch is complete, and does not
        depend on the order. Results for `ask(count)` count at once. `c` may be a dictionary with a name and k values for each
        constraint. `repeated` is the number of evaluations that were repeated because a worker died (`Evaluator.repeated`). They
        count too.
        """
        budget = self.state.budget
        budget.left -= repeated
        budget.evaluations += repeated
        budget.repeated += repeated
        if isinstance(c, Mapping):
            names = tuple(map(str, c))
            self.name_constraints(names)
            c = np.array(list(c.values()), dtype=float)[rearranged(names, self.state.constraints.given_names)].T
        if rows is not None and np.ndim(rows) == 0:
            f, c = np.reshape(f, 1), None if c is None else np.reshape(c, (1, -1))
        chosen = chosen_rows(batch.rows, rows, len(batch))
        if self.state.desk is not None:
            self._tell_orders(batch, np.arange(len(batch)) if chosen is None else chosen, f, c)
            return
        asked = self._ask()
        if batch.number != asked.number:
            raise ValueError(f"batch {batch.number} was told, but batch {asked.number} was the last one asked for")
        k = len(asked)
        if chosen is None and self.parts is None:
            told = checked(self.search, f, c, k)
        else:
            chosen = np.arange(k) if chosen is None else chosen
            parts = self.parts or Parts(np.zeros(k, dtype=bool), np.zeros(k))
            parts.take(chosen, checked(self.search, f, c, len(chosen)))
            self.parts = parts
            if not parts.complete:
                return
            told = parts.whole
        self._take_in(asked, told)

    def add(self, points: Any, f: Any, c: Any = None) -> None:
        """Report evaluations of your own points: f (k,) and c (k, m). Models learn from them. They do not count towards the budget,
        and the certificate does not use them.

        >>> opt = Optimizer([1.0, 1.0], max_evaluations=60, rng=0)
        >>> opt.add([[0.0, 0.5], [0.5, 0.0]], [0.25, 0.25])
        >>> len(opt.search.archive.points), opt.evaluations_left
        (2, 60)
        """
        if self.state.phase == "done":
            raise RuntimeError(f"the search is over ({self.state.message}); read .result")
        if self.state.desk is None and (self._asked is not None or self.parts is not None):
            raise RuntimeError("first tell the batch that was asked for; the next batch will use these evaluations")
        take_in(self.search, as_earlier(points, f, c, self.space.variables))

    def name_constraints(self, names: Sequence[str]) -> None:
        """Give names to the constraints, in their order, for messages, pictures and reports."""
        constraints = self.state.constraints
        if names and constraints.given_names and sorted(names) != sorted(constraints.given_names):
            raise ValueError(
                f"constraints are called {', '.join(names)} now, but were {', '.join(constraints.given_names)} before"
            )
        constraints.given_names = constraints.given_names or tuple(names)

    def _take_in(self, asked: Batch, told: Told) -> None:
        """All of a batch was told: the phase decides."""
        outputs = as_rows(self.search, told)
        budget, k, at_trial = self.state.budget, len(outputs), asked.at_trial
        budget.left -= k
        budget.batches += 1
        self._asked, self.parts = None, None
        why = ["trial"] * at_trial + ["incumbent"] * (k - at_trial) if asked.phase == "trial" else [asked.phase] * k
        self._count(asked.points, asked.seeds, why, told, outputs)
        asked, outputs = missing.without(self.search, asked, outputs)
        self.search.note_first(asked, outputs)
        with self._threads():
            if PHASES[asked.phase].tell(self.search, asked, outputs):
                self.search.next_phase()

    def _tell_orders(self, batch: Batch, rows: np.ndarray, f: Any, c: Any) -> None:
        """Evaluations that were asked for with ask(count)."""
        if self.state.phase == "done":
            raise RuntimeError(f"the search is over ({self.state.message}); read .result")
        assert self.state.desk is not None
        orders = [order for row in rows if (order := self.state.desk.find(batch.number, int(row))) is not None]
        if len(orders) < len(rows):
            raise ValueError(f"batch {batch.number} has rows that were already told or never asked for")
        told = checked(self.search, f, c, len(orders))
        outputs = as_rows(self.search, told)
        for order, row in zip(orders, outputs):
            order.outputs = row
        points = self.space.to_x(np.stack([order.z for order in orders]))
        seeds = np.array([order.seed for order in orders], dtype=np.int64)
        self._count(points, seeds, [order.why for order in orders], told, outputs)
        with self._threads():
            desk.tell(self.search)

    def _count(self, points: Any, seeds: np.ndarray, why: list[str], told: Told, outputs: np.ndarray) -> None:
        """Evaluations were made: they go into the table, and their values are seen."""
        budget, constraints = self.state.budget, self.state.constraints
        good = np.isfinite(outputs[:, 0])
        budget.evaluations += len(outputs)
        budget.failures += int((~good).sum())
        self.evaluations.add(points, seeds, why, told.f, None if told.c is None else told.c.astype(float))
        fresh = np.array([each == "certify" for each in why])
        if constraints.number > 0:
            self.state.seen.take(outputs[good, 1:], constraints.number - len(constraints.equal), fresh[good])

    def spare(self, phase: str, running: int) -> float:
        """How many evaluations may be made again if workers die, while so many are running. The certificate needs all of its
        samples."""
        return math.inf if phase == "certify" else max(0, self.state.budget.left - running - LEAST - 2)

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


def _check_numbers(max_evaluations: Any, starts: int, confidence: float) -> None:
    if not isinstance(max_evaluations, int) or max_evaluations < 1:
        raise ValueError(f"max_evaluations must be a whole number of at least 1, got {max_evaluations!r}")
    if starts > 1 + max_evaluations // 4:
        raise ValueError(f"x0 has {starts} starting points: too many for {max_evaluations} evaluations")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must lie in [0.5, 1), got {confidence}")


def _check_caution(space: Space, uses_models: bool, chosen: str) -> None:
    """A ValueError where the option `cautious` cannot work."""
    if space.rounds:
        raise ValueError("cautious needs continuous variables: leave out cautious, or integers and choices")
    if not uses_models:
        raise ValueError(
            f"cautious needs a model: strategy 'model', or the default with at most {MODEL_DIMENSION} "
            f"variables; got {chosen} and {space.n} variables"
        )


OWN = [name for name in inspect.signature(Optimizer).parameters if name != "options"]
