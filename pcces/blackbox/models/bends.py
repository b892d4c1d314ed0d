"""Outputs as Gaussian processes are to see them: high values, which matter little, drawn in.

Where a process has one length for a variable everywhere, a steep wall far from the answer spoils what it says near it. So an
output may be bent: as it is below a knee, growing as a logarithm above. Which knee is best is what makes the bent output most
probable (as in Snelson, Rasmussen and Ghahramani 2004).
"""

from __future__ import annotations

import numpy as np

HEAVY = 6.0  # times its usual size: what is farther away than this makes an output one with heavy tails
KNEES = 0.5, 0.25  # shares of the values below a knee
CLEAR = 6.0  # times the noise's standard deviation, that a knee is at least away
NONE = 0.0, np.inf  # a bend that does nothing


def knees(y: np.ndarray, objective: bool, noise: float) -> list[tuple[float, float]]:
    """The bends (origin, unit) to choose from, beside none: the origin is an objective's least value, a constraint's zero.

    >>> knees(np.array([0.0, 1.0, 2.0, 3.0, 50.0]), objective=True, noise=0.01)
    [(0.0, 2.0), (0.0, 1.0)]
    """
    origin = float(y.min()) if objective else 0.0
    units = [max(float(np.quantile(np.abs(y - origin), share)), CLEAR * noise) for share in KNEES]
    return [(origin, unit) for unit in units if 0 < unit < float(y.max()) - origin]


def bent(y: np.ndarray, objective: bool, bend: tuple[float, float]) -> np.ndarray:
    """An output as it is up to a unit above the origin, and growing as a logarithm from there. Without a bend only heavy tails
    are tamed.

    >>> bent(np.array([0.0, 1.0, 2.0, 20.0]), True, (0.0, 2.0)).round(2)
    array([0.  , 1.  , 2.  , 6.61])
    """
    origin, unit = bend
    if not np.isfinite(unit):
        return tamed(y, objective)
    far = (y - origin) / unit
    return np.where(far > 1, origin + unit * (1 + np.log(np.maximum(far, 1.0))), y)


def log_slopes(y: np.ndarray, objective: bool, bend: tuple[float, float]) -> float:
    """The logarithm of the product of the slopes of what `bent` does to these values: by so much a density is higher after."""
    origin, unit = bend
    far = (y - origin) / unit
    if not np.isfinite(unit):
        _, _, far = _tails(y, objective)
        far = far if far.max(initial=0.0) > HEAVY else np.zeros(1)
    return -float(np.log(np.maximum(far, 1.0)).sum())


def tamed(y: np.ndarray, objective: bool) -> np.ndarray:
    """An output without heavy tails: as it is where it matters (low values of an objective, a constraint near zero), and
    growing as a logarithm far from there.

    >>> tamed(np.array([-1.0, 0.0, 1.0, 2.0, 1e9]), objective=True).round(1)
    array([-1. ,  0. ,  1. ,  2. , 43.1])
    """
    origin, unit, far = _tails(y, objective)
    if far.max(initial=0.0) <= HEAVY:
        return y
    side = 1.0 if objective else np.sign(y)
    return np.where(far > 1, origin + side * unit * (1 + np.log(np.maximum(far, 1.0))), y)


def _tails(y: np.ndarray, objective: bool) -> tuple[float, float, np.ndarray]:
    """The middle of an output, its usual size, and how many times that its values are away."""
    if not objective:
        unit = 2 * float(np.median(np.abs(y))) or _least(np.abs(y))
        return 0.0, unit, np.abs(y) / unit
    middle = float(np.median(y))
    unit = max(middle - float(y.min()), float(np.quantile(y, 0.75)) - middle) or _least(y - middle)
    return middle, unit, (y - middle) / unit


def _least(distances: np.ndarray) -> float:
    return float(np.min(distances[distances > 0], initial=np.inf)) if np.any(distances > 0) else 1.0
