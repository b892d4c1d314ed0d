"""The answer: a SciPy OptimizeResult with a certificate, a history, and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import OptimizeResult

from pcces.core.certificate import Certificate
from pcces.core.estimation import Estimate

if TYPE_CHECKING:
    from pcces.blackbox.optimizer import Optimizer

CERTIFIED, UNCERTIFIED, INFEASIBLE, RUNNING = 0, 1, 2, 3


class Result(OptimizeResult):
    """x, fun, constr, success, status, message, nit, nfev, certificate, history, rule; `plot()` draws the search."""

    @property
    def running(self) -> bool:
        """Whether the search is not done yet."""
        return bool(self.status == RUNNING)

    def plot(self, path: Any = None) -> Any:
        """Draw objective, constraints, step size and sample sizes over evaluations; save it if a path is given."""
        from pcces.blackbox.plot import plot_search

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


def make_result(optimizer: Optimizer) -> Result:
    """Read the answer off an optimizer."""
    m = optimizer.memory
    z, best = m.state.x, m.incumbent
    done = m.phase == "done"
    if done and m.answer is not None:
        z, best = m.answer, Estimate(np.float64(m.answer_samples), m.answer_mean, np.zeros_like(m.answer_mean))
    certificate = _certificate(optimizer)
    success = bool(done and certificate.holds)
    status, message = _verdict(optimizer, best, certificate, success)
    values: dict[str, Any] = dict(
        x=optimizer.space.to_x(z),
        fun=float(best.f) if best is not None else np.nan,
        constr=_user_constraints(optimizer, best),
        success=success,
        status=status,
        message=message,
        nit=int(m.state.k),
        nfev=m.evaluations,
        failures=m.failures,
        certificate=certificate,
        history=optimizer.history,
        rule=optimizer.search.rule(),
    )
    return Result(**values)


def _certificate(optimizer: Optimizer) -> Certificate:
    m = optimizer.memory
    bounds = () if m.bounds is None else tuple(_by_constraint(optimizer, m.bounds).tolist())
    if m.bounds is None and m.constraints > 0:
        bounds = (float("inf"),) * m.constraints
    return Certificate(
        holds=bool(m.holds and m.incumbent is not None and np.isfinite(m.incumbent.f)),
        confidence=optimizer.search.confidence,
        upper_bounds=bounds,
        samples=m.answer_samples,
        method=m.method,
        tested=len(m.candidates),
    )


def _by_constraint(optimizer: Optimizer, expanded: np.ndarray) -> np.ndarray:
    """One value a constraint, in the order the user gave them: of an equality's two inequalities the worse."""
    m = optimizer.memory
    equal = list(m.equal)
    others = [i for i in range(m.constraints) if i not in equal]
    values = np.empty(m.constraints)
    values[others] = expanded[: len(others)]
    values[equal] = expanded[len(others) :].reshape(2, -1).max(0)
    return values


def _user_constraints(optimizer: Optimizer, best: Estimate | None) -> np.ndarray:
    """The estimates in the order the user gave them; an equality's value, not its pair of inequalities."""
    m = optimizer.memory
    if best is None or m.constraints <= 0:
        return np.zeros(0)
    equal = list(m.equal)
    others = [i for i in range(m.constraints) if i not in equal]
    values = np.empty(m.constraints)
    values[others] = best.c[: len(others)]
    values[equal] = best.c[len(others) : len(others) + len(equal)] + optimizer.options.equality_tolerance
    return values


def _verdict(optimizer: Optimizer, best: Estimate | None, certificate: Certificate, success: bool) -> tuple[int, str]:
    m = optimizer.memory
    failures = f"; {m.failures} of {m.evaluations} evaluations failed" if m.failures else ""
    if m.phase != "done":
        return RUNNING, "still running"
    if success:
        return CERTIFIED, f"{certificate}; {m.message}{failures}"
    if best is None or not np.isfinite(best.f):
        return INFEASIBLE, f"no point could be evaluated without failing; start elsewhere{failures}"
    if best.c.size and best.c.max() > 0:
        worst = int(np.argmax(_by_constraint(optimizer, best.c)))
        hint = "the least violating point is returned; start closer to feasibility, widen the bounds, or give more evaluations"
        return (
            INFEASIBLE,
            f"no feasible point was found: constraint {worst} is still violated by about {best.c.max():.3g}; {hint}{failures}",
        )
    hint = "give more evaluations, or a larger certify_share"
    return UNCERTIFIED, f"{certificate}; the point looks feasible but could not be certified: {hint}{failures}"
