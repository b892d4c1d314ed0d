"""What some experiments measure on the policies that came out, beyond what every run leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pcces.rl.run import Run

EPISODES = 8192
SEED = 30_000_000  # far from those of training, evaluation and certificates
SAMPLES = tuple(2**i for i in range(9))  # 1 to 256: of these means there are at least 32


def variance(run: Run) -> dict[str, Any]:
    """The variance of estimates of f and of the costs that average N episodes of the run's policy, for several N.

    It is the variance between means of N episodes each, as they come, not that of one episode divided by N.
    """
    from pcces.rl.arenas import playing

    x, normalizer = run.trained()
    with playing(run) as play:
        y = np.asarray(run.problem.outputs(play(x, normalizer, EPISODES, SEED)), dtype=float)
    names = ["f", *run.problem.cost_names]
    return {"samples": list(SAMPLES)} | {name: variances(y[:, i]) for i, name in enumerate(names)}


def variances(values: np.ndarray) -> list[float]:
    """The variance of means of N values, for every N of SAMPLES.

    >>> variances(np.tile([0.0, 1.0], 4096))[1]
    0.0
    """
    return [float(np.var(values[: len(values) // n * n].reshape(-1, n).mean(1), ddof=1)) for n in SAMPLES]


MEASURES: dict[str, Callable[[Run], Any]] = {"variance": variance}
