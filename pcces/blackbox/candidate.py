"""What to certify where evaluations are few, by the Gaussian processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from pcces.blackbox import limits
from pcces.blackbox.acquire import allowed, everywhere, posterior
from pcces.blackbox.batch import CLOUD

if TYPE_CHECKING:
    from pcces.blackbox.models.gaussian_process import Posterior
    from pcces.blackbox.search import Search

DOUBT = 1.0  # standard errors of f by which a candidate may be worse than expected: where nothing is known, anything is promised


def best(search: Search, samples: int) -> np.ndarray | None:
    """What to certify on so many fresh samples: the least f, as far as it is known, of the points that will be certified with the
    wanted chance, all limits together; or what comes nearest to that."""
    if search.state.theta.size == 0:
        return None
    hope = Hope(search, samples)
    model, space, x = posterior(search), search.space, search.state.run.es.x
    rng = search.streams(CLOUD, search.state.budget.batches + 2**33)
    low, high = everywhere(search)
    clouds = [model.data.points, x[None]]
    for reach in (0.01, 0.03, 0.1, 0.3):
        clouds.append(x + reach * model.sides * rng.standard_normal((200, space.n)))
    cloud = allowed(search, np.clip(np.vstack(clouds), low, high))
    mean, error = model(cloud)
    lacking = np.maximum(-hope(mean, error), 0.0)
    succeeding: Posterior | None = search.posterior[2]
    if succeeding is not None:
        lacking = lacking + np.where(succeeding(cloud)[0][:, 0] < 0.5, np.ptp(lacking) + 1.0, 0.0)
    z = cloud[np.lexsort((mean[:, 0] + DOUBT * error[:, 0], lacking))[0]]
    if space.linear or space.rounds or succeeding is not None:
        return space.project(z)
    unit = max(float(np.ptp(mean[:, 0])), 1e-300)

    def f(at: np.ndarray) -> tuple[float, np.ndarray]:
        m, e, d, de = model.slopes(at)
        return float(m[0] + DOUBT * e[0]) / unit, (d[0] + DOUBT * de[0]) / unit

    box = 0.5 * model.sides
    kept: Any = {
        "type": "ineq", "fun": lambda at: hope(*model.slopes(at)[:2]), "jac": lambda at: hope.slope(*model.slopes(at))
    }  # fmt: skip
    end = scipy.optimize.minimize(
        f, z, jac=True, method="SLSQP", bounds=list(zip(np.maximum(z - box, low), np.minimum(z + box, high))),
        constraints=kept, options={"maxiter": 30},
    )  # fmt: skip
    if not np.all(np.isfinite(end.x)):
        return space.project(z)
    at = space.project(end.x)
    m, e = model(np.stack([z, at]))
    lack = np.maximum(-hope(m, e), 0.0)
    worth = m[:, 0] + DOUBT * e[:, 0]
    better = (lack[1] > 1e-6 and lack[1] < lack[0]) or (lack[1] <= 1e-6 + lack[0] and worth[1] < worth[0])
    return at if better else space.project(z)


def better(search: Search, z: np.ndarray, than: np.ndarray) -> bool:
    """Whether f is lower there, as far as it is known."""
    mean, error = posterior(search)(np.stack([z, than]))
    worth = mean[:, 0] + DOUBT * error[:, 0]
    return bool(worth[0] < worth[1])


class Hope:
    """The chance that so many fresh samples certify a point, all limits together, as a normal quantile: how far it is above
    the one that is wanted. A limit with room to spare takes nothing of it from the others."""

    def __init__(self, search: Search, samples: int):
        self.needed, deviation = limits.widths(search, samples)
        self.of_samples = deviation**2 / max(samples, 2)
        self.wanted = limits.chance(search)

    def _each(self, mean: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        spread = np.sqrt(self.of_samples + error[..., 1:] ** 2) + 1e-300
        return -(mean[..., 1:] + self.needed) / spread, spread

    def __call__(self, mean: np.ndarray, error: np.ndarray) -> np.ndarray:
        """Of means and standard deviations (.., 1 + r)."""
        u, _ = self._each(mean, error)
        return np.asarray(_quantile(scipy.special.log_ndtr(u).sum(-1)) - scipy.special.ndtri(self.wanted))

    def slope(self, mean: np.ndarray, error: np.ndarray, d_mean: np.ndarray, d_error: np.ndarray) -> np.ndarray:
        """Its gradient at a point (n,), by those (1 + r, n) of mean and error."""
        u, spread = self._each(mean, error)
        each = scipy.special.log_ndtr(u)
        all_kept = each.sum()
        weight = np.exp(0.5 * (_quantile(all_kept) ** 2 - u * u) - each + all_kept)
        d_spread = (error[1:] / spread)[:, None] * d_error[1:]
        return np.asarray(-((weight / spread)[:, None] * (d_mean[1:] + u[:, None] * d_spread)).sum(0))


def _quantile(log_p: np.ndarray) -> np.ndarray:
    """The normal quantile of a probability that is given by its logarithm; at most about 8."""
    return np.asarray(scipy.special.ndtri_exp(np.minimum(log_p, -1e-15)))
