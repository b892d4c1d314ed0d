"""The iterates worth certifying: policies the search stood on, with all fresh episodes played there.

What an iteration saw of its policy is little. But policies of neighbouring iterations are near each other, so what was seen
of them tells as well: `smoothed` puts it together.
"""

from __future__ import annotations

import numpy as np

from pcces.core.estimation import Estimate, pool
from pcces.rl.normalizer import Normalizer, frozen

MOST = 100
SPARE = 50  # so many more may come before the worst leave together
USUAL = 8  # the weight of the usual variance relative to a candidate's own, in episodes
BLOCK = 40  # iterations from which it is read how fast policies change:
DOUBT = 1.0  # of twice the logarithm of a likelihood
SPEEDS = 4.0 ** np.arange(-5, 4)  # so fast, in variances of what an iteration saw


class Candidates:
    """Policies with their normalisation and the pooled estimate of y = (f, c); the worst leave when there are too many.

    The course holds the estimates of all policies, also of those that left: `at` says where in it a candidate is.

    >>> candidates = Candidates(x_size=1, observation_size=1, outputs=2)
    >>> e = Estimate(np.float32(4), np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    >>> for moved in (True, False):  # the search stood there for two iterations
    ...     candidates.add(np.zeros(1), np.zeros(1), np.ones(1), e, moved)
    >>> len(candidates), float(candidates.n[0])
    (1, 8.0)
    """

    def __init__(self, x_size: int, observation_size: int, outputs: int):
        self.x = np.zeros((0, x_size), np.float32)
        self.mean = np.zeros((0, observation_size), np.float32)
        self.std = np.zeros((0, observation_size), np.float32)
        self.at = np.zeros(0)
        self.course_n = np.zeros(0)
        self.course_y = np.zeros((0, outputs))
        self.course_squares = np.zeros((0, outputs))

    def __len__(self) -> int:
        return len(self.x)

    @property
    def n(self) -> np.ndarray:
        """Episodes played with each candidate."""
        return self.course_n[self._rows]

    @property
    def y(self) -> np.ndarray:
        """Their means."""
        return self.course_y[self._rows]

    @property
    def squares(self) -> np.ndarray:
        """Their summed squared deviations."""
        return self.course_squares[self._rows]

    @property
    def _rows(self) -> np.ndarray:
        return self.at.astype(int)

    def add(self, x: np.ndarray, mean: np.ndarray, std: np.ndarray, fresh: Estimate, moved: bool) -> None:
        """Note the policy an iteration started from; if the search had not moved there, its episodes join the last one's.

        While the normalisation still learns, x changes to remain the same policy.
        """
        fresh = Estimate(*(np.asarray(part, dtype=float) for part in fresh))
        if len(self) and not moved:
            self.learn(-1, fresh)
            self.x[-1], self.mean[-1], self.std[-1] = x, mean, std
            return
        new = {"x": x, "mean": mean, "std": std, "at": len(self.course_n)}
        new |= {"course_n": fresh.n, "course_y": fresh.mean, "course_squares": fresh.squares}
        for name, value in new.items():
            setattr(self, name, np.concatenate([getattr(self, name), np.asarray(value, dtype=float)[None]]))
        for name in ("x", "mean", "std"):
            setattr(self, name, getattr(self, name).astype(np.float32))
        if len(self) > MOST + SPARE:
            order = self.order(1.0)
            best = order[order != len(self) - 1][: MOST - 1]
            kept = [*sorted(best), len(self) - 1]  # the newest may still move up
            for name in ("x", "mean", "std", "at"):
                setattr(self, name, getattr(self, name)[kept])

    def policy(self, i: int) -> tuple[np.ndarray, Normalizer]:
        """Parameters and normalisation of candidate i."""
        return self.x[i], frozen(self.mean[i], self.std[i])

    def upper(self, z: float) -> np.ndarray:
        """Estimates of y with z standard errors to spare: what is known from few episodes stands behind what is known well."""
        mean, error = self.smoothed()
        return mean + z * error

    @property
    def _usual(self) -> np.ndarray:
        """The usual variance of an episode, per output."""
        good = np.isfinite(self.course_squares).all(axis=1) & np.isfinite(self.course_y).all(axis=1)
        n = self.course_n[good]
        return np.asarray(self.course_squares[good].sum(0) / max(n.sum() - len(n), 1))

    def deviation(self, i: int) -> np.ndarray:
        """The standard deviations of the constraints of candidate i, over all episodes played with it; they lean towards
        what is usual: a rare failure that did not happen in these episodes may in others."""
        return np.sqrt((self.squares[i] + USUAL * self._usual) / (max(self.n[i] - 1, 1) + USUAL))[1:]

    def smoothed(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard errors of y for every candidate, from the episodes of its neighbours, too: as much as policies
        change little from one to the next."""
        n = np.maximum(self.course_n, 1)[:, None]
        variance = (self.course_squares + USUAL * self._usual) / (np.maximum(n - 1, 1) + USUAL) / n
        mean, error = smooth(self.course_y, variance)
        return mean[self._rows], error[self._rows]

    def order(self, z: float) -> np.ndarray:
        """Best first: by f among those whose constraints hold, then by how much they do not."""
        upper = self.upper(z)
        over = np.maximum(np.max(upper[:, 1:], axis=1, initial=-np.inf), 0)
        return np.lexsort((upper[:, 0], over))

    def learn(self, i: int, fresh: Estimate) -> None:
        """More episodes of candidate i."""
        j = int(self.at[i])
        known = Estimate(self.course_n[j], self.course_y[j], self.course_squares[j])
        self.course_n[j], self.course_y[j], self.course_squares[j] = pool(known, fresh)

    def arrays(self) -> dict[str, np.ndarray]:
        """As plain arrays, for a checkpoint."""
        return dict(vars(self))

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what `arrays` gave, also after a trip through a file; a ValueError if it is of other policies."""
        if "course_n" not in arrays and {"n", "y", "squares"} <= set(arrays):  # of a version without a course
            count = len(arrays["n"])
            arrays = {name: value for name, value in arrays.items() if name not in ("n", "y", "squares")} | {
                "at": np.arange(count, dtype=float),
                **{f"course_{name}": arrays[name] for name in ("n", "y", "squares")},
            }
        rows = {
            name: len(arrays["course_n" if name.startswith("course") else "x"])
            for name in vars(self)
            if {"x", "course_n"} <= set(arrays)
        }
        kinds = {name: (rows[name], *empty.shape[1:]) for name, empty in vars(self).items() if name in rows}
        if (
            {name: array.shape for name, array in arrays.items()} != kinds
            or not all(array.dtype.kind == "f" for array in arrays.values())
            or not np.isin(arrays["at"], np.arange(len(arrays["course_n"]))).all()
        ):
            raise ValueError("the checkpoint's candidates are not those of such a run")
        vars(self).update(arrays)


def first_iteration(metrics: dict[str, list[float]], candidates: Candidates, i: int) -> int | None:
    """The first iteration that candidate i was seen in, by a run's metrics; None where these are of another version.

    A policy is new where the iteration before it moved.

    >>> candidates = Candidates(1, 1, 1)
    >>> for moved in (True, False, True):
    ...     candidates.add(np.zeros(1), np.zeros(1), np.ones(1), Estimate(1.0, np.zeros(1), np.zeros(1)), moved)
    >>> [first_iteration({"success": [0.0, 1.0, 0.0]}, candidates, i) for i in range(len(candidates))]
    [0, 2]
    """
    moved = metrics.get("moved") or metrics.get("success") or []
    new = np.flatnonzero(np.nan_to_num([1.0, *moved[:-1]]))
    return int(new[int(candidates.at[i])]) if moved and len(new) == len(candidates.course_n) else None


def smooth(y: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard errors of what drifts from row to row and was seen with noise of these variances (T, m): those of
    a random walk whose speed is read from the rows around (the smoother of Rauch, Tung and Striebel 1965).

    Rows that are not finite, of policies that failed, keep what they are and tell nothing of others.

    >>> y = np.array([[0.9], [1.1], [1.0], [1.0]])
    >>> mean, error = smooth(y, np.full((4, 1), 1.0))  # all of it may be noise
    >>> mean.ravel().round(2), error.ravel().round(1)
    (array([0.99, 1.01, 1.  , 1.  ]), array([0.6, 0.6, 0.6, 0.6]))
    """
    mean, error = np.array(y, dtype=float), np.sqrt(variance)
    good = np.isfinite(y).all(axis=1)
    if good.sum() < 3:
        return mean, error
    z, v = y[good], np.maximum(variance[good], 1e-300)
    speed = speeds(z, v)
    ahead, filtered, p_ahead, p = z.copy(), z.copy(), v.copy(), v.copy()  # means, and their variances
    for t in range(1, len(z)):
        ahead[t], p_ahead[t] = filtered[t - 1], p[t - 1] + speed[t]
        gain = p_ahead[t] / (p_ahead[t] + v[t])
        filtered[t], p[t] = ahead[t] + gain * (z[t] - ahead[t]), gain * v[t]
    for t in range(len(z) - 2, -1, -1):
        back = p[t] / p_ahead[t + 1]
        filtered[t] += back * (filtered[t + 1] - ahead[t + 1])
        p[t] += back**2 * (p[t + 1] - p_ahead[t + 1])
    mean[good], error[good] = filtered, np.sqrt(np.maximum(p, 0.0))
    return mean, error


def speeds(z: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The variance of a step of the walk behind z (T, m), seen with variances v: the fastest that is hardly less likely than
    the likeliest, block by block."""
    speed = np.empty_like(z)
    for block in np.array_split(np.arange(len(z)), max(1, round(len(z) / BLOCK))):
        tried = np.multiply.outer(SPEEDS, v[block].mean(0))  # (speeds, m)
        m, p = np.broadcast_to(z[block[0]], tried.shape), np.broadcast_to(v[block[0]], tried.shape)
        unlikely = np.zeros_like(tried)
        for t in block[1:]:
            total = p + tried + v[t]
            unlikely += (z[t] - m) ** 2 / total + np.log(total)
            gain = (p + tried) / total
            m, p = m + gain * (z[t] - m), gain * v[t]
        plausible = unlikely <= unlikely.min(0) + DOUBT
        speed[block] = np.where(plausible, tried, 0.0).max(0)
    return speed
