"""The iterates worth certifying: every policy x_k the search stood on, with all fresh episodes played there."""

from __future__ import annotations

import numpy as np

from pcces.core.estimation import Estimate, pool
from pcces.rl.normalizer import Normalizer, frozen

MOST = 100
USUAL = 8  # the weight of the usual variance beside a candidate's own, in episodes


class Candidates:
    """Policies with their normalisation and the pooled estimate of y = (f, c); the worst leave when there are too many.

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
        self.n = np.zeros(0)
        self.y = np.zeros((0, outputs))
        self.squares = np.zeros((0, outputs))

    def __len__(self) -> int:
        return len(self.x)

    def add(self, x: np.ndarray, mean: np.ndarray, std: np.ndarray, fresh: Estimate, moved: bool) -> None:
        """Note the policy an iteration started from; if the search had not moved there, its episodes join the last one's.

        While the normalisation still learns, x changes to remain the same policy.
        """
        fresh = Estimate(*(np.asarray(part, dtype=float) for part in fresh))
        if len(self) and not moved:
            self.learn(-1, fresh)
            self.x[-1], self.mean[-1], self.std[-1] = x, mean, std
            return
        for name, value in (("x", x), ("mean", mean), ("std", std), ("n", fresh.n), ("y", fresh.mean)):
            setattr(self, name, np.concatenate([getattr(self, name), np.asarray(value)[None]]))
        self.squares = np.concatenate([self.squares, fresh.squares[None]])
        if len(self) > MOST:
            worst = next(i for i in reversed(self.order(1.0)) if i != len(self) - 1)  # the newest may still move up
            self._keep([i for i in range(len(self)) if i != worst])

    def policy(self, i: int) -> tuple[np.ndarray, Normalizer]:
        """Parameters and normalisation of candidate i."""
        return self.x[i], frozen(self.mean[i], self.std[i])

    def upper(self, z: float) -> np.ndarray:
        """Estimates of y with z standard errors to spare: what is known from few episodes stands behind what is known well.

        Variances lean towards what is usual: a rare failure that did not happen in these episodes may in others.
        """
        n = np.maximum(self.n, 1)[:, None]
        usual = self.squares.sum(0) / np.maximum(self.n.sum() - len(self), 1)
        error = np.sqrt((self.squares + USUAL * usual) / (np.maximum(n - 1, 1) + USUAL) / n)
        return self.y + z * error

    def deviation(self, i: int) -> np.ndarray:
        """The standard deviations of the constraints of candidate i, over all episodes played with it; they lean towards
        what is usual, for the same reason."""
        usual = self.squares.sum(0) / max(self.n.sum() - len(self), 1)
        return np.sqrt((self.squares[i] + USUAL * usual) / (max(self.n[i] - 1, 1) + USUAL))[1:]

    def order(self, z: float) -> np.ndarray:
        """Best first: by f among those whose constraints hold, then by how much they do not."""
        upper = self.upper(z)
        over = np.maximum(np.max(upper[:, 1:], axis=1, initial=-np.inf), 0)
        return np.lexsort((upper[:, 0], over))

    def learn(self, i: int, fresh: Estimate) -> None:
        """More episodes of candidate i."""
        self.n[i], self.y[i], self.squares[i] = pool(Estimate(self.n[i], self.y[i], self.squares[i]), fresh)

    def _keep(self, rows: list[int]) -> None:
        for name in ("x", "mean", "std", "n", "y", "squares"):
            setattr(self, name, getattr(self, name)[rows])

    def arrays(self) -> dict[str, np.ndarray]:
        """As plain arrays, for a checkpoint."""
        return dict(vars(self))

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what `arrays` gave, also after a trip through a file; a ValueError if it is of other policies."""
        kinds = {name: (len(arrays["x"]), *empty.shape[1:]) for name, empty in vars(self).items() if "x" in arrays}
        if {name: array.shape for name, array in arrays.items()} != kinds or not all(
            array.dtype.kind == "f" for array in arrays.values()
        ):
            raise ValueError("the checkpoint's candidates are not those of such a run")
        vars(self).update(arrays)
