"""The result: a SciPy OptimizeResult with a certificate, a history and a picture."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult

from pcces.blackbox import limits
from pcces.blackbox.around import Surroundings
from pcces.blackbox.describe import Setting
from pcces.blackbox.naming import called
from pcces.blackbox.state import Constraints, SearchState
from pcces.blackbox.trial import rule
from pcces.core.certificate import ASYMPTOTIC, Certificate

if TYPE_CHECKING:
    from pcces.blackbox.evaluations import Evaluations
    from pcces.blackbox.search import Search

CERTIFIED, UNCERTIFIED, INFEASIBLE, RUNNING, NO_PROGRESS = 0, 1, 2, 3, 4
LEAST_PROGRESS = 0.1, 1e-3  # of the spread of f over the first population, and of f at x0: less than both is none
FOR_A_GUARANTEE = (
    "state the constraint_range, limit a failure probability, or say deterministic=True if there is no noise"
)


class Result(OptimizeResult):
    """The answer, its certificate, and the course of the search.

    Attributes: x, fun, constr, success, status, message, nit, nfev, improvement, failures, violations, certificate, history,
    evaluations, setting (variables and constraints with their names), around (a model near the answer), rule.
    `plot()` draws the search, and `report()` writes a page about it.

    `status`: 0 certified (only then `success` is True), 1 not certified, 2 no feasible point found, 3 not finished,
    4 certified, but no better than x0.
    """

    @property
    def running(self) -> bool:
        """Whether the search is not done yet."""
        return bool(self.status == RUNNING)

    def plot(self, path: Any = None) -> Any:
        """Draw objective, constraints, step size and sample sizes over evaluations; save it if a path is given."""
        from pcces.report.search_figure import plot_search

        return plot_search(self, path)

    def report(self, path: str | Path, optimum: float | None = None) -> Path:
        """Write one HTML page about the search that works offline: certificate, answer, curves.

        If the smallest feasible value of f is known, pass it as `optimum`: the page then also shows the Lyapunov function of
        Theorem 1 (`pcces.core.theory`), computed from the estimates of f.

        >>> import tempfile
        >>> import pcces
        >>> res = pcces.minimize(lambda x: (x**2).sum(), [1.0, 1.0], max_evaluations=300, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     res.report(folder + "/search.html", optimum=0.0).name
        'search.html'
        """
        from pcces.report.search import search_page

        return search_page(self, optimum).save(path)


def make_result(search: Search, evaluations: Evaluations) -> Result:
    """The answer of a search."""
    state, test = search.state, search.state.test
    z, e = state.run.es.x, state.run.incumbent.estimate
    certificate = _certificate(state, search.confidence, search.options.failure_limit)
    values = limits.values(search, e)
    if state.phase == "done" and test.answer.samples:
        z, values = test.answer.x, test.answer.values
    constr = _user_constraints(state.constraints, values, search.options.equality_tolerance)
    violations = _violations(search)
    improvement = _improvement(search, z, float(values[0]))
    status, message = _verdict(search, values[0], certificate, violations, improvement)
    fields: dict[str, Any] = dict(
        x=search.space.shown(search.space.to_x(z)),
        fun=float(values[0]) if e.n else np.nan,
        constr=constr,
        success=status == CERTIFIED,
        status=status,
        message=message,
        nit=int(state.run.es.k),
        nfev=state.budget.evaluations,
        improvement=improvement,
        failures=state.budget.failures,
        violations=violations,
        certificate=certificate,
        history=search.history,
        evaluations=evaluations,
        setting=(setting := Setting.of(search)),
        around=_around(search, evaluations, setting, z),
        rule=rule(search),
    )
    return Result(**fields)


class Improvement(NamedTuple):
    """The decrease of f from x0 to the answer, and its standard error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.error:.2g}"


def _improvement(search: Search, z: np.ndarray, fun: float) -> Improvement:
    """From fresh samples of the answer, if there are any. Earlier estimates are too low: the answer was chosen because of them."""
    state, first = search.state, search.state.first
    if first.n == 0 or not math.isfinite(first.f) or not math.isfinite(fun):
        return Improvement(math.nan, math.nan)
    if np.array_equal(z, search.state.origin):
        return Improvement(0.0, 0.0)
    samples = state.test.answer.samples if state.phase == "done" else 0
    n = samples or max(float(state.run.incumbent.estimate.n), 1.0)
    noise = float(state.noise.deviation[0]) * math.sqrt(1 + 0.5 * float(limits.tails(search)[0]) ** 2)
    error = noise * math.sqrt(1 / float(first.n) + 1 / n)
    return Improvement(limits.worth(search, first) - fun, error)


def _no_progress(search: Search, improvement: Improvement) -> bool:
    """Whether x0 was feasible and the search found no better point. A search that converged may have started at the
    optimum, and the best of earlier data may be hard to improve. But under noise and without models, steps also shrink to
    nothing because trials are too noisy to be accepted."""
    state = search.state
    informed = search.archive is not None or state.noise.present is False
    if state.from_data or (informed and state.converged) or not math.isfinite(improvement.value):
        return False
    parts = LEAST_PROGRESS[0] * (state.f_scale or 0.0), LEAST_PROGRESS[1] * abs(limits.worth(search, state.first))
    least = max((2 if informed else 3) * improvement.error, min(parts))
    return improvement.value <= least and limits.broken(search, state.first) <= 0


class Violations(NamedTuple):
    """How many evaluations of the search exceeded a limit, and by how much."""

    evaluations: int  # with a value above its limit; equalities do not count
    share: float  # of those that did not fail
    worst: tuple[float, ...]  # the largest excess of each constraint; 0 if there was none
    names: tuple[str, ...] = ()  # of the constraints

    def __str__(self) -> str:
        if not self.evaluations:
            return "no evaluation was above a limit"
        i = int(np.argmax(self.worst))
        return (
            f"{self.evaluations} evaluations ({100 * self.share:.3g} %) were above a limit, by at most "
            f"{self.worst[i]:.3g} ({called(i, self.names)})"
        )


def _violations(search: Search) -> Violations:
    state, constraints = search.state, search.state.constraints
    good = state.budget.evaluations - state.budget.failures - state.budget.repeated
    worst = np.maximum(state.seen.worst, 0.0) if constraints.number > 0 else np.zeros(0)
    if constraints.number > 0:
        worst = constraints.by_user(worst)
        worst[constraints.equal] = 0.0
    return Violations(state.seen.over, state.seen.over / max(good, 1), tuple(worst.tolist()), constraints.names)


def _certificate(state: SearchState, confidence: float, failure_limit: float | None) -> Certificate:
    answer, constraints = state.test.answer, state.constraints
    bounds = (float("inf"),) * max(constraints.number, 0)
    if answer.samples:
        bounds = tuple(constraints.by_user(answer.bounds).tolist())
    holds = bool(state.test.holds and np.isfinite(state.run.incumbent.estimate.mean[0]))
    method = answer.methods if constraints.number > 0 else "none"
    tested = len(state.test.candidates)
    certificate = Certificate(
        holds, confidence, bounds, answer.samples, method, tested,
        failed=answer.failed, failure_rate=answer.failure_rate, failure_limit=failure_limit,
    )  # fmt: skip
    return replace(certificate, for_a_guarantee=FOR_A_GUARANTEE) if certificate.grade == ASYMPTOTIC else certificate


def _user_constraints(constraints: Constraints, values: np.ndarray, tolerance: float) -> np.ndarray:
    """The constraints in the user's order; for an equality its value, not its pair of inequalities."""
    if constraints.number <= 0 or len(values) < 2:
        return np.zeros(0)
    by_constraint, others = constraints.by_user(values[1:]), constraints.number - len(constraints.equal)
    by_constraint[constraints.equal] = values[1 + others : 1 + constraints.number] + tolerance
    return by_constraint


def _around(search: Search, evaluations: Evaluations, setting: Setting, z: np.ndarray) -> Surroundings:
    """What a model near the answer needs, and no more, so that results can be pickled."""
    state, known = search.state, search.state.constraints
    shift, margins = np.zeros(1 + max(known.number, 0)), np.zeros(max(known.number, 0))
    if known.number > 0 and state.noise.deviation.size > 1:
        samples = state.test.answer.samples if state.phase == "done" else search.reserve()
        needed = limits.margin_for(search, samples) if search.needs_samples else 0.0 * limits.margin(search)
        shift = np.append(limits.offset(search)[0], known.by_user(limits.offset(search)[1:]))
        margins = known.by_user(needed)
        margins[known.equal] = shift[1:][known.equal] = 0.0
    return Surroundings(setting, evaluations, z, state.theta if search.few else np.zeros((0, 0)), shift, margins)


def _verdict(
    search: Search, fun: float, certificate: Certificate, violations: Violations, improvement: Improvement
) -> tuple[int, str]:
    state, budget, answer = search.state, search.state.budget, search.state.test.answer
    made = budget.evaluations - budget.repeated
    failures = f"; {budget.failures} of {made} evaluations failed" if budget.failures else ""
    if budget.repeated:
        failures = f"; evaluations made again because their worker died: {budget.repeated}{failures}"
    failures = f"; {violations}{failures}" if violations.evaluations else failures
    if search.options.deterministic and state.noise.present:
        failures = f"; evaluations were stated to have no noise, but differ at the same point{failures}"
    words = certificate.sentence(search.options.limits or ())
    if state.phase != "done":
        return RUNNING, "still running"
    if certificate.holds and _no_progress(search, improvement):
        gained = (
            f"f is only {improvement} lower than at x0"
            if improvement.value > 0
            else "no better point than x0 was found"
        )
        return NO_PROGRESS, (
            f"no progress: {gained}; give more evaluations, start elsewhere, or reduce the noise of f compared with the possible "
            f"gain. {words}. The search ended: {state.message}{failures}"
        )
    if certificate.holds:
        return CERTIFIED, f"{words}. The search ended: {state.message}{failures}"
    if not np.isfinite(fun):
        return INFEASIBLE, f"no point could be evaluated without failing; start elsewhere{failures}"
    if state.constraints.number > 0 and (answer.samples == 0 or answer.broken > 0):
        known = state.constraints
        excess = known.by_user(answer.excess(limits.each(search))) if answer.samples else limits.excess(search)
        i = int(np.argmax(excess))
        if excess[i] > 0:
            return INFEASIBLE, (
                f"no feasible point was found: {called(i, known.names)} is still violated by about {excess[i]:.3g}; the point with "
                "the least violation is returned; start closer to feasibility, widen the bounds, or give more evaluations"
                f"{failures}"
            )
    hint = "give more evaluations, or a larger certify_share"
    if "dependent" in certificate.method:
        hint = (
            "evaluations seem to depend on each other (lasting noise or a drift): make them independent, or give more"
        )
    if certificate.fails_too_often and certificate.bounds_hold:
        hint += ", or allow more failures"
    if budget.failures and not search.options.missing:
        hint += "; if evaluations fail at random, and not because of their point, say failures='missing'"
    if "repeats" in certificate.method:
        hint = "say deterministic=True if there is no noise, or give the constraint_range"
    return UNCERTIFIED, f"{words}; the point looks feasible but could not be certified: {hint}{failures}"
