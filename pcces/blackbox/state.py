"""What a search knows at any moment, in groups, as plain data that can be written to a file and read back to the same bits."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from pcces.blackbox.naming import distinct
from pcces.blackbox.orders import Desk
from pcces.core import algorithm
from pcces.core.estimation import Estimate, NoiseLevel
from pcces.core.limits import Limit
from pcces.support.trees import named_leaves, rebuilt

NOTHING = Estimate(np.float64(0), np.full(1, np.inf), np.zeros(1))  # an estimate from no evaluation
_none = partial(np.zeros, 0)
_no_rows = partial(np.zeros, (0, 0))


@dataclass(eq=False)
class Budget:
    """Evaluations, in batches: so many are left and so many are made, of which some failed, and some told nothing, for they
    were made again."""

    left: int
    evaluations: int = 0
    failures: int = 0
    repeated: int = 0
    batches: int = 0


@dataclass(eq=False)
class Constraints:
    """What the first evaluation that did not fail told about them."""

    number: int = -1  # how many the user's evaluations have; -1: not known yet
    equal: np.ndarray = field(default_factory=partial(np.zeros, 0, dtype=int))  # which of them are equalities
    given_names: tuple[str, ...] = ()  # what they are called, if anything

    @property
    def names(self) -> tuple[str, ...]:
        """What each is called: c0, c1, .. where it has no name."""
        fits = len(self.given_names) == self.number
        return distinct(self.given_names if fits else [""] * max(self.number, 0))

    def by_user(self, inequalities: np.ndarray) -> np.ndarray:
        """One value a constraint, in the order the user gave them: of an equality's two inequalities the worse."""
        if self.number <= 0 or not len(inequalities):
            return np.zeros(0)
        values, others = np.empty(self.number), self.number - len(self.equal)
        values[np.delete(np.arange(self.number), self.equal)] = inequalities[:others]
        values[self.equal] = inequalities[others:].reshape(2, -1).max(0)
        return values


@dataclass(eq=False)
class SeenValues:
    """The values of the constraints so far (r,), less their limits' origins."""

    low: np.ndarray = field(default_factory=_none)
    high: np.ndarray = field(default_factory=_none)
    between: np.ndarray = field(
        default_factory=partial(np.zeros, 0, dtype=bool)
    )  # whether there were others than these
    boolean: bool = False  # they are true or false
    over: int = 0  # evaluations with a constraint over its limit; equalities do not count
    worst: np.ndarray = field(
        default_factory=_none
    )  # the highest of all evaluations, those of the certificate included

    def begin(self, r: int, known: bool = True) -> None:
        """Nothing was seen yet; or it is not known what was."""
        self.low, self.high, self.between = np.full(r, np.inf), np.full(r, -np.inf), np.full(r, not known)
        self.worst = np.full(r, -np.inf)

    def take(self, c: np.ndarray, inequalities: int, fresh: np.ndarray) -> None:
        """Take in the constraints (k, r) of evaluations that did not fail. What fresh samples show must not decide by which
        bound they are judged."""
        self.over += int(np.any(c[:, :inequalities] > 0, axis=1).sum())
        if not c.size:
            return
        self.worst = np.maximum(self.worst, c.max(0))
        c = c[~fresh]
        if not c.size:
            return
        low, high = np.minimum(self.low, c.min(0)), np.maximum(self.high, c.max(0))
        outside = (self.low > low) & (self.low < high) | (self.high > low) & (self.high < high)
        self.between = self.between | outside | np.any((c > low) & (c < high), axis=0)
        self.low, self.high = low, high


@dataclass(eq=False)
class Measured:
    """What evaluations of one point showed."""

    estimate: Estimate = NOTHING
    row: int = -1  # in the archive


@dataclass(eq=False)
class RunState:
    """What begins anew with every run, from wherever it starts."""

    strategy: Any  # a tuple of arrays, each strategy's own
    es: algorithm.State
    incumbent: Measured = field(default_factory=Measured)
    multipliers: np.ndarray = field(default_factory=_none)  # of the constraints, as the models see them
    # of the model (won, tried) and of the strategy (won, tried), older iterations counting less
    wins: np.ndarray = field(default_factory=partial(np.ones, 4))
    spread_floor: float = 0.0  # sigma^ES is no less under noise
    stalls: int = 0
    progress_f: float = math.inf  # f at the last progress
    start: int = 0  # evaluations made before it


@dataclass(eq=False)
class Trial:
    """The point on trial, and the proposal that led to it."""

    x: np.ndarray = field(default_factory=_none)
    kind: str = ""  # who proposed it: the strategy's name, or model
    d: np.ndarray = field(default_factory=_none)
    weights: np.ndarray = field(default_factory=_none)
    directions: np.ndarray | None = None  # None where they are too many to be held
    point: Measured = field(default_factory=Measured)
    samples: np.ndarray = field(default_factory=_no_rows)  # (k, 1 + r)
    incumbent_samples: np.ndarray = field(default_factory=_no_rows)  # those of x_k in this iteration
    # What the model expects there and at x_k, and its errors, (2, 1 + r), where that counts beside evaluations.
    expected: np.ndarray = field(default_factory=_no_rows)
    doubt: np.ndarray = field(default_factory=_no_rows)


class End(NamedTuple):
    """The end of a run, with what the certificate needs of it."""

    x: np.ndarray
    estimate: Estimate
    factor: np.ndarray  # of the covariance; empty for strategies without one
    spread: np.ndarray  # sigma^ES
    multipliers: np.ndarray


class Accepted(NamedTuple):
    """An incumbent of the past, a candidate for the certificate."""

    x: np.ndarray
    mean: np.ndarray
    n: float


@dataclass(eq=False)
class Answer:
    """The candidate that is returned: the one that holds, or the least violating."""

    x: np.ndarray = field(default_factory=_none)
    mean: np.ndarray = field(default_factory=_none)
    samples: int = 0  # 0: there is no answer yet
    bounds: np.ndarray = field(default_factory=_none)
    methods: str = "t"  # of the bounds, joined by commas
    values: np.ndarray = field(default_factory=_none)  # what is minimised, and what is limited
    broken: float = math.inf  # by how much a limit is exceeded
    failed: int = 0  # evaluations of it that are missing
    failure_rate: float | None = None  # of them, at most

    def excess(self, limits: list[Limit]) -> np.ndarray:
        """What is limited less its limit, as the samples have it."""
        return self.values[1:] - [limit.at_most for limit in limits]


@dataclass(eq=False)
class Test:
    """The candidates for the answer, and what fresh samples of the latest showed."""

    candidates: list[np.ndarray] = field(default_factory=list)
    samples: np.ndarray = field(default_factory=_no_rows)
    failed: int = 0  # evaluations of it that are missing
    levels: np.ndarray = field(default_factory=_none)  # of CVaRs, chosen before the samples
    memory: np.ndarray = field(default_factory=_none)  # how dependent samples were, of any candidate
    looks: int = 0
    spent: float = 0.0  # of the error probability
    answer: Answer = field(default_factory=Answer)
    holds: bool = False
    kept: bool = False  # the answer holds, and what is tested now is a bolder one


@dataclass(eq=False)
class SearchState:
    """The state of Algorithm 1 and of everything around it."""

    budget: Budget
    run: RunState
    accepted: deque[Accepted]
    phase: str = "start"
    message: str = ""
    converged: bool = False  # the search ended because there was nothing more to gain
    constraints: Constraints = field(default_factory=Constraints)
    seen: SeenValues = field(default_factory=SeenValues)
    noise: NoiseLevel = field(default_factory=lambda: NoiseLevel(None, np.zeros(1)))
    surprise: bool = False  # noise showed where there had been none: how much is measured next
    residuals: np.ndarray = field(
        default_factory=_no_rows
    )  # (k, 1 + r) in standard deviations, where their shape matters
    origin: np.ndarray = field(default_factory=_none)  # x_0: of several starting points the best
    from_data: bool = False  # x_0 is the best of earlier data
    starts: np.ndarray = field(default_factory=_no_rows)  # the others, from which no run has begun
    missed: int = 0  # evaluations of a new point that failed, one after the other, where failures are missing values
    given: int = 0  # points that were known besides, before any was proposed: other starting points, earlier data
    first: Estimate = NOTHING  # of x_0
    f_scale: float | None = None  # the unit of kappa: the spread of f over the first population
    few: bool = False  # Gaussian processes propose
    theta: np.ndarray = field(default_factory=_no_rows)  # parameters of the Gaussian processes (1 + r, n + 2)
    fitted: int = 0  # evaluations they were found from
    bends: np.ndarray = field(default_factory=_no_rows)  # (1 + r, 2) from where on outputs are bent for them
    bent: int = 0  # points these were chosen from
    trial: Trial = field(default_factory=Trial)
    ends: list[End] = field(default_factory=list)
    test: Test = field(default_factory=Test)
    desk: Desk | None = None  # of a search that is asked for a few evaluations at a time

    def plain(self) -> tuple[dict[str, np.ndarray], dict[str, str | int | float]]:
        """Its arrays and its scalars, by the names they have in files."""
        arrays: dict[str, np.ndarray] = {}
        scalars: dict[str, str | int | float] = {}
        for name, path in IN_FILES.items():
            value = reduce(getattr, path.split("."), self)
            if isinstance(value, str | int | float):
                scalars[name] = value
            elif value is not None:
                arrays |= {leaf_name: np.asarray(leaf) for leaf_name, leaf in named_leaves(value, name).items()}
        if self.desk is not None:
            arrays |= self.desk.arrays()
        if self.accepted:
            arrays["accepted_points"] = np.stack([each.x for each in self.accepted])
            arrays["accepted_means"] = np.stack([np.append(each.mean, each.n) for each in self.accepted])
        return arrays, scalars

    def restore(self, arrays: dict[str, np.ndarray], scalars: dict[str, Any]) -> None:
        """Take over what `plain` gave. What was not known yet is not in files."""
        self.few = False  # as in files of earlier versions
        for name, path in IN_FILES.items():
            if name in scalars:
                _put(self, path, scalars[name])
            elif name in LISTS:
                count = len({key.split(".")[1] for key in arrays if key.startswith(name + ".")})
                _put(self, path, [_taken(LISTS[name], f"{name}.{i}", arrays) for i in range(count)])
            else:
                template = reduce(getattr, path.split("."), self)
                if all(leaf_name in arrays for leaf_name in named_leaves(template, name)):
                    _put(self, path, _taken(template, name, arrays))
        for x, mean in zip(arrays.get("accepted_points", ()), arrays.get("accepted_means", ())):
            self.accepted.append(Accepted(x, mean[:-1], mean[-1]))
        self.desk = Desk.restored(arrays)
        self.budget.left -= self.budget.evaluations + sum(order.out for order in self.desk or ())
        if self.constraints.number >= 0 and len(self.seen.low) != len(self.noise.deviation) - 1:  # an earlier version's
            self.seen.begin(len(self.noise.deviation) - 1, known=False)
        if "worst" not in arrays:
            self.seen.worst = self.seen.high
        if "spent" not in scalars:
            self.test.spent = 1 - 0.5**self.test.looks
        answer = self.test.answer
        if answer.samples and not len(answer.values):
            answer.values, answer.broken = answer.mean, float(np.max(answer.mean[1:], initial=0.0))
            answer.methods = {"exact": "repeats"}.get(answer.methods, answer.methods)


def _taken(template: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    return rebuilt(template, [arrays[leaf_name] for leaf_name in named_leaves(template, name)])


def _put(group: Any, path: str, value: Any) -> Any:
    """The group with another value at the end of the path: itself, or a new one if it is a tuple."""
    name, _, rest = path.partition(".")
    if rest:
        value = _put(getattr(group, name), rest, value)
    if isinstance(group, tuple):
        return group._replace(**{name: value})  # type: ignore[attr-defined]
    setattr(group, name, value)
    return group


# Under which name in files what stands where in a SearchState.
IN_FILES = {
    "phase": "phase", "message": "message", "converged": "converged", "f_scale": "f_scale", "ends": "ends",
    "batches": "budget.batches", "evaluations": "budget.evaluations", "failures": "budget.failures",
    "repeated": "budget.repeated",
    "constraints": "constraints.number", "equal": "constraints.equal",
    "noisy": "noise.present", "noise": "noise.deviation", "jump": "noise.jump", "surprise": "surprise",
    "residuals": "residuals", "low": "seen.low", "high": "seen.high", "between": "seen.between",
    "boolean": "seen.boolean", "over": "seen.over", "worst": "seen.worst",
    "state": "run.es", "strategy": "run.strategy", "run_start": "run.start",
    "origin": "origin", "from_data": "from_data", "starts": "starts", "given": "given", "missed": "missed", "first": "first", "incumbent": "run.incumbent.estimate", "incumbent_row": "run.incumbent.row",
    "few": "few", "theta": "theta", "fitted": "fitted", "bends": "bends", "bent": "bent", "multipliers": "run.multipliers", "wins": "run.wins", "spread_floor": "run.spread_floor",
    "stalls": "run.stalls", "progress_f": "run.progress_f",
    "x_trial": "trial.x", "trial": "trial.point.estimate", "trial_row": "trial.point.row",
    "trial_samples": "trial.samples", "incumbent_samples": "trial.incumbent_samples",
    "expected": "trial.expected", "doubt": "trial.doubt", "kind": "trial.kind", "d": "trial.d", "weights": "trial.weights", "directions": "trial.directions",
    "candidates": "test.candidates", "certificate_samples": "test.samples", "looks": "test.looks", "holds": "test.holds", "kept": "test.kept",
    "answer": "test.answer.x", "answer_mean": "test.answer.mean", "answer_samples": "test.answer.samples",
    "bounds": "test.answer.bounds", "method": "test.answer.methods", "answer_values": "test.answer.values",
    "answer_broken": "test.answer.broken", "test_failed": "test.failed",
    "answer_failed": "test.answer.failed", "failure_rate": "test.answer.failure_rate", "levels": "test.levels", "memory": "test.memory", "spent": "test.spent",
}  # fmt: skip
_zero = np.zeros(0)
LISTS: dict[str, Any] = {"ends": End(_zero, NOTHING, _zero, _zero, _zero), "candidates": _zero}  # what is in a list
