"""Small convex quadratic programs through non-negative least squares (Lawson & Hanson 1974, chapter 23)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy


class Solution(NamedTuple):
    """The minimiser, and the multipliers of the rows of G."""

    x: np.ndarray
    multipliers: np.ndarray


def least_distance(E: np.ndarray, e: np.ndarray, tolerance: float = 1e-6) -> Solution | None:
    """The shortest v with E v >= e (unit rows), or None if there is none.

    >>> least_distance(np.array([[1.0, 0.0]]), np.array([2.0])).x
    array([2., 0.])
    """
    scale = e.max(initial=0.0)  # the farthest half-space: makes |v| about 1
    if scale <= 0:
        return Solution(np.zeros(E.shape[1]), np.zeros(len(e)))
    columns = np.vstack([E.T, e / scale])
    target = np.zeros(len(columns))
    target[-1] = 1
    try:
        w, _ = scipy.optimize.nnls(columns, target)
    except RuntimeError:  # NNLS ran out of iterations: as good as no answer
        return None
    residual = columns @ w - target
    miss = -residual[-1]
    if miss < 1e-10:
        return None
    v = residual[:-1] / miss
    if (E @ v - columns[-1]).min() < -tolerance:
        return None
    return Solution(v * scale, w * (scale / miss))


def quadratic_program(H: np.ndarray, g: np.ndarray, G: np.ndarray, h: np.ndarray) -> Solution | None:
    """min 1/2 x'Hx + g'x subject to G x <= h, with H positive definite; None if the rows contradict each other.

    >>> quadratic_program(np.eye(2), np.array([-2.0, 0.0]), np.array([[1.0, 0.0]]), np.array([1.0])).x
    array([1., 0.])
    """
    # By LAPACK without the checks, which cost more than small solves do.
    W, _ = scipy.linalg.lapack.dtrtrs(np.linalg.cholesky(H), np.eye(len(g)), lower=1, trans=1)
    return whitened_program(W, g, G, h)


def whitened_program(W: np.ndarray, g: np.ndarray, G: np.ndarray, h: np.ndarray) -> Solution | None:
    """`quadratic_program` for H = (W W')^-1: in the coordinates W^-1 x it asks for a shortest vector."""
    shift = g @ W
    E = -(G @ W)
    length = np.sqrt((E * E).sum(1))
    usable = length > 1e-300
    if not usable.all():
        if np.any(h[~usable] < 0):
            return None
        length = np.where(usable, length, 1.0)
    answer = least_distance(E / length[:, None], (E @ shift - h) / length)
    if answer is None:
        return None
    return Solution(W @ (answer.x - shift), answer.multipliers / length)


def project_polyhedron(x: np.ndarray, G: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The point of {z: G z <= h} nearest to x.

    >>> project_polyhedron(np.array([2.0, 2.0]), np.array([[1.0, 1.0]]), np.array([2.0]))
    array([1., 1.])
    """
    if np.all(G @ x <= h):
        return x
    answer = quadratic_program(np.eye(len(x)), -x, G, h)
    if answer is None:
        raise ValueError("the linear constraints and bounds contradict each other: no point satisfies them all")
    return answer.x
