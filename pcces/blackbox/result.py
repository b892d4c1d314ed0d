"""The answer: a SciPy OptimizeResult with a certificate, a history, and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import OptimizeResult

from pcces.blackbox.state import Constraints, SearchState
from pcces.blackbox.trial import rule
from pcces.core.certificate import Certificate
from pcces.core.estimation import Estimate

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

CERTIFIED, UNCERTIFIED, INFEASIBLE, RUNNING = 0, 1, 2, 3


class Result(OptimizeResult):
    """x, fun, constr, success, status, message, nit, nfev, certificate, history, rule; `plot()` draws the search."""

    @property
    def running(self) -> bool:
        """Whether the search is not done yet."""
        return bool(self.status == RUNNING)

    def plot(self, path: Any = None) -> Any:
        """Draw objective, constraints, step size and sample sizes over evaluations; save it if a path is given."""
        from pcces.report.search_figure import plot_search

        return plot_search(self, path)

    def report(self, path: str | Path, optimum: float | None = None) -> Path:
        """Write the search as one HTML page that works offline: certificate, answer, curves.

        Where the least feasible value of f is known, `optimum` adds the trace of the Lyapunov function of Theorem 1
        (`pcces.core.theory`), from the estimates of f.

        >>> import tempfile
        >>> import pcces
        >>> res = pcces.minimize(lambda x: (x**2).sum(), [1.0, 1.0], max_evaluations=300, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     res.report(folder + "/search.html", optimum=0.0).name
        'search.html'
        """
        from pcces.report.search import search_page

        return search_page(self, optimum).save(path)


def make_result(search: Search) -> Result:
    """Read the answer off a search."""
    state, test = search.state, search.state.test
    z, e = state.run.es.x, state.run.incumbent.estimate
    certificate = _certificate(state, search.confidence)
    if state.phase == "done" and test.answer.samples:
        z = test.answer.x
        e = Estimate(np.float64(test.answer.samples), test.answer.mean, np.zeros_like(test.answer.mean))
    constr = _user_constraints(state.constraints, e, search.options.equality_tolerance)
    status, message = _verdict(state, e.mean, certificate)
    values: dict[str, Any] = dict(
        x=search.space.to_x(z),
        fun=float(e.mean[0]) if e.n else np.nan,
        constr=constr,
        success=status == CERTIFIED,
        status=status,
        message=message,
        nit=int(state.run.es.k),
        nfev=state.budget.evaluations,
        failures=state.budget.failures,
        certificate=certificate,
        history=search.history,
        rule=rule(search),
    )
    return Result(**values)


def _certificate(state: SearchState, confidence: float) -> Certificate:
    answer, constraints = state.test.answer, state.constraints
    bounds = (float("inf"),) * max(constraints.number, 0)
    if answer.samples:
        bounds = tuple(_by_constraint(constraints, answer.bounds).tolist())
    holds = bool(state.test.holds and np.isfinite(state.run.incumbent.estimate.mean[0]))
    return Certificate(holds, confidence, bounds, answer.samples, answer.method, tested=len(state.test.candidates))


def _by_constraint(constraints: Constraints, inequalities: np.ndarray) -> np.ndarray:
    """One value a constraint, in the order the user gave them: of an equality's two inequalities the worse."""
    values, others = np.empty(constraints.number), constraints.number - len(constraints.equal)
    values[np.delete(np.arange(constraints.number), constraints.equal)] = inequalities[:others]
    values[constraints.equal] = inequalities[others:].reshape(2, -1).max(0)
    return values


def _user_constraints(constraints: Constraints, e: Estimate, tolerance: float) -> np.ndarray:
    """The estimates in the order the user gave them; an equality's value, not its pair of inequalities."""
    if e.n == 0 or constraints.number <= 0:
        return np.zeros(0)
    values, others = _by_constraint(constraints, e.mean[1:]), constraints.number - len(constraints.equal)
    values[constraints.equal] = e.mean[1 + others : 1 + constraints.number] + tolerance
    return values


def _verdict(state: SearchState, mean: np.ndarray, certificate: Certificate) -> tuple[int, str]:
    budget, worst = state.budget, float(np.max(mean[1:], initial=0.0))
    failures = f"; {budget.failures} of {budget.evaluations} evaluations failed" if budget.failures else ""
    if state.phase != "done":
        return RUNNING, "still running"
    if certificate.holds:
        return CERTIFIED, f"{certificate}; {state.message}{failures}"
    if not np.isfinite(mean[0]):
        return INFEASIBLE, f"no point could be evaluated without failing; start elsewhere{failures}"
    if worst > 0:
        i = int(np.argmax(_by_constraint(state.constraints, mean[1:])))
        return INFEASIBLE, (
            f"no feasible point was found: constraint {i} is still violated by about {worst:.3g}; the least violating "
            f"point is returned; start closer to feasibility, widen the bounds, or give more evaluations{failures}"
        )
    hint = "give more evaluations, or a larger certify_share"
    return UNCERTIFIED, f"{certificate}; the point looks feasible but could not be certified: {hint}{failures}"
