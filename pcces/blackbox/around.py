"""The surroundings of an answer: a model of objective and constraints there, which limits bind, and what looser ones would gain.

The model is a Gaussian process of each output, fitted to evaluations near the answer and to some farther away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy

from pcces.blackbox.describe import Setting
from pcces.blackbox.evaluations import Evaluations
from pcces.blackbox.models.gaussian_process import Data, Posterior, fit

MOST = 250  # points that the model knows
LARGEST = 40  # coordinates that it can have
FEWEST = 4  # points
FINE = 3e-3  # of the largest distance: nearer points than this are all alike
HEAVY = 8.0  # times as much as outputs usually change: what changes more says little about the surroundings
DRAWS = 200  # of the slopes, for the errors of the multipliers
CLEARLY = 2.0  # standard errors
LEAST = 0.02  # of the slope of f: what balances less of it does not bind
FLAT = 1e-3  # of the range of f: a slope that changes less of it within REACH is none
REACH, FAR = 0.03, 0.1  # of a variable's width: so much beyond its margin a limit hardly binds, and does not
ACTIVE = 1e-3  # of a variable's width: a bound that is as near as this holds it
DOTS = 60  # evaluations beside a slice
STEPS = 61  # places along a slice


class Multiplier(NamedTuple):
    """The multiplier of a limit: if the limit is one unit looser, the smallest f decreases by `value` (for small changes)."""

    name: str
    value: float
    error: float  # standard error
    kind: str  # constraint, bound (of a variable) or linear (constraint)
    binds: bool  # clearly more than nothing, or an equality
    near: bool = True  # whether the answer is near the limit, beyond the certificate's margin


class Evaluated(NamedTuple):
    """Points as numbers, a row each, with the means of their evaluations: f and the constraints, less their limits' origins."""

    x: np.ndarray  # (k, variables)
    means: np.ndarray  # (k, 1 + m)
    counts: np.ndarray  # (k,) evaluations of each
    within: np.ndarray  # (1 + m,) squared deviations of repeated evaluations from their means, summed
    freedom: float  # how many degrees of freedom these have

    @property
    def noise(self) -> np.ndarray:
        """The standard deviations of repeated evaluations; 0 where there are none."""
        return np.sqrt(self.within / max(self.freedom, 1.0))


class Slice(NamedTuple):
    """The model along one variable, through the answer. Rows of values and errors are places; columns f and the constraints,
    these less their limits. Of limits that are not on means, too: at most 0 keeps them."""

    variable: int
    places: np.ndarray  # (k,) the variable's values, as numbers
    values: np.ndarray  # (k, 1 + m)
    errors: np.ndarray  # (k, 1 + m) standard errors
    near: np.ndarray  # (q,) evaluations near the slice: the variable's values
    near_values: np.ndarray  # (q, 1 + m) and theirs, moved into the slice by the model


@dataclass(eq=False)
class Surroundings:
    """What the evaluations say of the surroundings of the answer.

    >>> import pcces
    >>> res = pcces.minimize(lambda x: (x[0] + x[1], 1 - x[0] * x[1]), [2.0, 2.0], bounds=[(0, 9)] * 2, maxfev=300, rng=0)
    >>> [(each.name, round(each.value, 2)) for each in res.around.multipliers]
    [('c0', 1.0)]
    """

    setting: Setting
    evaluations: Evaluations
    z: np.ndarray  # the answer, in the search's coordinates
    theta: np.ndarray  # parameters of the search's own processes, (1 + m, n + 2), to start from; none where it had none
    shift: np.ndarray  # (1 + m,) what has to be added to means for what is minimised and what has to be at most 0
    margins: np.ndarray  # (m,) how far below zero the certificate needs the constraints

    def __repr__(self) -> str:
        return "the model near the answer: multipliers, slices()"

    @cached_property
    def known(self) -> bool:
        """Whether there is a model: for up to 40 variables, from a few points at least."""
        return len(self.z) <= LARGEST and len(self.points.x) >= FEWEST

    # -- the model -------------------------------------------------------------------------------------------------------

    @cached_property
    def points(self) -> Evaluated:
        """All points whose evaluation did not fail; none if points are too long to keep."""
        table, m = self.evaluations, len(self.setting.constraints)
        if not len(table) or table.points.shape[1] != self.setting.space.size:
            return Evaluated(
                np.zeros((0, self.setting.space.size)), np.zeros((0, 1 + m)), np.zeros(0), np.zeros(1 + m), 0.0
            )
        constraints = [table[f"c{j}"] - limit.origin for j, limit in enumerate(self.setting.limits)]
        outputs = np.column_stack([table["f"], *constraints])
        good = np.isfinite(outputs).all(1)
        x, rows = np.unique(table.points[good], axis=0, return_inverse=True)
        rows, outputs = rows.ravel(), outputs[good]
        counts = np.bincount(rows, minlength=len(x)).astype(float)
        sums = np.zeros((len(x), 1 + m))
        np.add.at(sums, rows, outputs)
        means = sums / np.maximum(counts, 1)[:, None]
        within = ((outputs - means[rows]) ** 2).sum(0)
        return Evaluated(x, means, counts, within, float(len(outputs) - len(x)))

    def _chosen(self, points: np.ndarray) -> np.ndarray:
        """Which points go into the model, the nearest first: near the answer and farther away alike."""
        away = np.abs(points - self.z)
        widths = np.quantile(away, 0.9, axis=0)
        distance = np.linalg.norm(away / np.where(widths > 1e-12, widths, 1.0), axis=1)
        order = np.argsort(distance, kind="stable")
        if len(points) <= MOST:
            return order
        octave = np.log2(np.maximum(distance[order], FINE * distance.max()))
        rank = np.zeros(len(order))
        for each in np.unique(np.floor(octave)):  # from each octave as many
            inside = np.flatnonzero(np.floor(octave) == each)
            rank[inside] = np.argsort(np.argsort((np.arange(len(inside)) * 0.618) % 1.0))
        rank[0] = -1  # the answer
        return order[np.sort(np.argsort(rank, kind="stable")[:MOST])]

    @cached_property
    def _data(self) -> Data:
        x, means, counts, within, freedom = self.points
        points = np.asarray(self.setting.space.to_z(x), dtype=float)
        rows = self._chosen(points)
        change = np.abs(means[rows] - means[rows[0]])
        usual = np.quantile(change[len(rows) // 2 :], 0.8, axis=0)  # in the outer half
        usable = np.all(change <= HEAVY * np.maximum(usual, 1e-300), axis=1)
        rows = rows[usable] if usable.sum() >= FEWEST else rows
        return Data(points[rows], means[rows], counts[rows], within, freedom)

    @cached_property
    def model(self) -> Posterior:
        """The processes."""
        data, r = self._data, self._data.outputs.shape[1]
        starts = list(self.theta) if self.theta.shape == (r, len(self.z) + 2) else [None] * r
        return Posterior(data, np.array([fit(data, j, start)[0] for j, start in enumerate(starts)]))

    @cached_property
    def values(self) -> tuple[np.ndarray, np.ndarray]:
        """f and the constraints less their limits at the answer, as the model sees them, and the standard errors (1 + m,)."""
        mean, error = self.model(self.z[None])
        return mean[0] + self.shift, error[0]

    # -- what limits cost -------------------------------------------------------------------------------------------------

    @cached_property
    def multipliers(self) -> list[Multiplier]:
        """Multipliers of the limits nearby, constraints first: units of f per unit of c (or of x, for its bounds)."""
        return self._lagrangian[0] if self.known else []

    @cached_property
    def unexplained(self) -> float:
        """The part of the slope of f at the answer that no limit explains, and the errors of the slopes do not: 0 to 1. Much of it
        says that f could still be lower."""
        return self._lagrangian[1] if self.known else math.nan

    @cached_property
    def _lagrangian(self) -> tuple[list[Multiplier], float]:
        """Multipliers that are not negative, with the slope of the Lagrangian as near to zero as can be. By complementary
        slackness those of limits that are farther away than the certificate's margin have to pay for it."""
        free = ~self.setting.space.discrete
        if not free.any():
            return [], math.nan
        slopes, covariances = self.model.gradients(self.z)
        slopes, covariances = slopes[:, free], covariances[:, free][:, :, free]
        sides = self._sides()
        rows = np.array([side.row for side in sides]).reshape(len(sides), len(self.z))[:, free]
        solved, rest = self._solved(slopes, rows)
        rng = np.random.default_rng(0)
        factors = [_factor(each) for each in covariances]
        draws = [
            self._solved(np.array([s + L @ rng.standard_normal(len(s)) for s, L in zip(slopes, factors)]), rows)[0]
            for _ in range(DRAWS)
        ]
        errors = np.sqrt(((np.array(draws) - solved) ** 2).mean(0))
        m, setting, steepness = len(slopes) - 1, self.setting, float(np.linalg.norm(slopes[0]))
        size = np.linalg.norm(np.vstack([slopes[1:], rows]), axis=1)
        away, multipliers = self._away(size[:m]), []
        for j, (value, error) in enumerate(zip(solved.tolist(), errors.tolist())):
            side = Side(setting.constraints[j], "constraint", 1.0, rows[:0]) if j < m else sides[j - m]
            clear = value > CLEARLY * error and value * size[j] > LEAST * steepness and (j >= m or away[j] <= REACH)
            binds = j in setting.equal or bool(clear)
            near = j >= m or bool(away[j] <= FAR)
            multipliers.append(Multiplier(side.name, value / side.unit, error / side.unit, side.kind, binds, near))
        weights = np.concatenate([[1.0], solved[:m]]) ** 2
        noise = float(weights @ np.trace(covariances, axis1=1, axis2=2))
        left = math.sqrt(max(float(rest @ rest) - 2 * noise, 0.0))
        level = left * REACH <= FLAT * float(np.ptp(self._data.outputs[:, 0]))
        return multipliers, 0.0 if level else min(left / steepness, 1.0)

    def _solved(self, slopes: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The multipliers of constraints and rows, and the slope of the Lagrangian that is left."""
        equal, m = list(self.setting.equal), len(slopes) - 1
        sizes = np.linalg.norm(slopes[1:], axis=1)
        away = self._away(sizes)
        near = (away <= FAR)[:, None] * slopes[1:]
        columns = np.vstack([near, -near[equal], rows])  # the multiplier of an equality has any sign
        if not len(columns):
            return np.zeros(0), slopes[0]
        price = np.diag(np.append(away / REACH * sizes, np.zeros(len(equal) + len(rows))))
        multipliers, _ = scipy.optimize.nnls(np.vstack([columns.T, price]), np.append(-slopes[0], np.zeros(len(price))))
        multipliers[:m][away > FAR] = 0.0
        rest = slopes[0] + columns.T @ multipliers
        multipliers[equal] -= multipliers[m : m + len(equal)]
        return np.delete(multipliers, np.s_[m : m + len(equal)]), rest

    def _away(self, sizes: np.ndarray) -> np.ndarray:
        """How far the constraints are from where the certificate needs them, given the sizes of their slopes: as a part of the
        variables' widths."""
        slack = np.maximum(-self.values[0][1:] - self.margins, 0.0)
        slack[list(self.setting.equal)] = 0.0
        return slack / np.maximum(sizes, 1e-150)  # finite, however far

    def _sides(self) -> list[Side]:
        """The bounds and linear constraints that hold the answer."""
        space, z, sides = self.setting.space, self.z, []
        x = space.to_x(z)
        for i in np.flatnonzero(~space.discrete):
            v = self._variable_at[i]
            variable = self.setting.variables[v]
            unit = float(space.scale[i]) * (float(x[v]) if variable.log else 1.0)
            for side, end, sign in (("upper", space.z_upper[i], 1.0), ("lower", space.z_lower[i], -1.0)):
                if abs(end - z[i]) <= ACTIVE:
                    name = f"{variable.name}: {side} bound {variable.text(variable.high if sign > 0 else variable.low)}"
                    sides.append(Side(name, "bound", unit, sign * np.eye(len(z))[i]))
        for k, (row, limit) in enumerate(zip(space.G, space.h)):
            if limit - row @ z <= ACTIVE * np.linalg.norm(row):
                sides.append(Side(f"linear constraint {k}", "linear", 1.0, row))
        return sides

    @cached_property
    def _variable_at(self) -> list[int]:
        """The variable of each coordinate."""
        variables = self.setting.space.variables
        if variables is None:
            return list(range(len(self.z)))
        return [v for v, at in enumerate(variables.at) for _ in range(at.start, at.stop)]

    # -- slices ------------------------------------------------------------------------------------------------------------

    def slices(self) -> list[Slice]:
        """The model along each variable, those first along which f and the limits that are near change most."""
        if not self.known:
            return []
        slices = [self._slice(v) for v in range(self.setting.space.size)]
        values, _ = self.values
        close = np.append(True, values[1:] > -np.maximum(3 * self.margins, 0.1 * np.abs(values[1:]).max(initial=0.0)))
        spread = np.array([np.ptp(each.values, axis=0) for each in slices])
        spread = (spread / np.maximum(spread.max(0), 1e-300))[:, close].max(1)
        return [slices[i] for i in np.argsort(-spread, kind="stable")]

    def _slice(self, v: int) -> Slice:
        space, data = self.setting.space, self._data
        where = [i for i, other in enumerate(self._variable_at) if other == v]
        numbers = self._places(v, where[0])
        x = np.repeat(space.to_x(self.z)[None], len(numbers), axis=0)
        x[:, v] = numbers
        mean, error = self.model(np.asarray(space.to_z(x), dtype=float))
        others = np.delete(np.arange(len(self.z)), where)
        lengths = np.exp(self.model.theta[:, : len(self.z)].mean(0))
        beside = np.linalg.norm(((data.points - self.z) / lengths)[:, others], axis=1)
        own = space.to_x(data.points)[:, v]
        inside = np.flatnonzero((own >= numbers.min()) & (own <= numbers.max()))
        near = inside[np.argsort(beside[inside], kind="stable")[:DOTS]]
        on_slice = np.repeat(self.z[None], len(near), axis=0)
        on_slice[:, where] = data.points[near][:, where]
        moved = (
            data.outputs[near] - self.model(data.points[near])[0] + self.model(on_slice)[0]
            if len(near)
            else data.outputs[:0]
        )
        return Slice(v, numbers, mean + self.shift, error, own[near], moved + self.shift)

    def _places(self, v: int, i: int) -> np.ndarray:
        """Values of a variable from the region where most points of the model lie, and that of the answer."""
        space, variable = self.setting.space, self.setting.variables[v]
        if variable.options:
            return np.arange(len(variable.options), dtype=float)
        away = self._data.points[:, i] - self.z[i]
        reach = max(1.2 * float(np.quantile(np.abs(away), 0.9)), 1e-9)
        low, high = (np.clip(self.z[i] + side * reach, space.z_lower[i], space.z_upper[i]) for side in (-1, 1))
        z = np.repeat(self.z[None], STEPS, axis=0)
        z[:, i] = np.linspace(low, high, STEPS)
        numbers = np.append(space.to_x(z)[:, v], space.to_x(self.z[None])[:, v])
        if not variable.whole:
            return np.unique(numbers)
        beside = np.clip(numbers[-1] + np.arange(-2, 3), variable.low, variable.high)
        return np.unique(np.append(numbers, beside))


class Side(NamedTuple):
    """A half-space that holds the answer: f by its multiplier is by a unit of z, or of A x."""

    name: str
    kind: str
    unit: float
    row: np.ndarray


def _factor(covariance: np.ndarray) -> np.ndarray:
    """L with L L' the covariance, whose smallest eigenvalues may have been lost to rounding.

    >>> _factor(np.array([[4.0, 0.0], [0.0, 0.0]])) @ _factor(np.array([[4.0, 0.0], [0.0, 0.0]])).T
    array([[4., 0.],
           [0., 0.]])
    """
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))
