"""What a policy is asked for: return and entropy to maximise, costs and entropy to keep within limits.

f = -R - mu H + mu sum_i g_i, with h_l <= E[H] <= h_u (Omega_1) and E[g_i] <= t_i (Omega_2), as one vector of
constraints c <= 0. A task without costs has Omega_1 alone; the entropy bounds may be infinite, which leaves Omega_2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from pcces.core.arrays import array_namespace
from pcces.envs.simulator import Simulator
from pcces.envs.task import Task

Array = Any


class Limit(NamedTuple):
    """A limit on something an episode comes to: on its mean, or what else the kind says (`pcces.core.limits`).

    >>> print(Limit("off_centre", True, 30.0), Limit("off_centre", True, 30.0, "probability", 0.05), sep="; ")
    off_centre <= 30; P(off_centre > 30) <= 0.05
    """

    what: str
    at_most: bool  # or at least
    value: float
    kind: str = "mean"
    share: float = 1.0  # of the episodes that may be above, or whose mean counts

    def __str__(self) -> str:
        if self.kind == "mean":
            return f"{self.what} {'<=' if self.at_most else '>='} {self.value:g}"
        if self.counted:
            return f"P({self.what} > {self.value:g}) <= {self.share:g}"
        return f"CVaR{self.share:g} of {self.what} <= {self.value:g}"

    @property
    def counted(self) -> bool:
        """Whether it limits how many episodes are above: a quantile is at most something if few enough are."""
        return self.kind in ("probability", "quantile")


@dataclass(frozen=True)
class Problem:
    """Weights and limits of one training problem."""

    cost_names: tuple[str, ...]
    thresholds: tuple[float, ...]
    entropy_bounds: tuple[float, float]
    mu: float
    discounted: bool  # whether R is the discounted return

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The constraints, in the order of c."""
        low, high = self.entropy_bounds
        costs = [Limit(name, True, threshold) for name, threshold in zip(self.cost_names, self.thresholds)]
        entropy = [Limit("entropy", True, high)] * math.isfinite(high) + [Limit("entropy", False, low)] * math.isfinite(
            low
        )
        return (*costs, *entropy)

    @property
    def names(self) -> tuple[str, ...]:
        """What the constraints are called, in the order of c."""
        return tuple(map(str, self.limits))

    def outputs(self, outcome: Any) -> Array:
        """The rows y = (f, c_1, .., c_r) of the episodes in an Outcome (its last axis): shape (B, 1 + r)."""
        xp = array_namespace(outcome.returns)
        gain = outcome.discounted if self.discounted else outcome.returns
        low, high = self.entropy_bounds
        f = -gain - self.mu * outcome.entropy
        c = []
        if self.cost_names:
            f = f + self.mu * xp.sum(outcome.costs, axis=0)
            c += [outcome.costs[i] - t for i, t in enumerate(self.thresholds)]
        if math.isfinite(high):
            c.append(outcome.entropy - high)
        if math.isfinite(low):
            c.append(low - outcome.entropy)
        return xp.stack([f, *c], axis=-1)


def problem_for(
    task: Task | Simulator,
    mu: float,
    threshold: float | tuple[float, ...] | None = None,
    entropy_bounds: tuple[float, float] | None = None,
    discounted: bool = False,
) -> Problem:
    """The task's own limits (the paper's Tables 5 and 6) unless others are given.

    >>> from pcces.envs import make
    >>> problem_for(make("CartSafe-v0"), mu=1e-4, threshold=20).names
    ('off_centre <= 20', 'entropy <= 2000', 'entropy >= 0')
    """
    costs = task.cost_names
    if threshold is None:
        thresholds = tuple(map(float, task.thresholds))
        if len(thresholds) != len(costs):
            raise ValueError(f"{task.name} has the costs {', '.join(costs)} but no thresholds: give threshold=...")
    else:
        given = threshold if isinstance(threshold, tuple | list) else (threshold,)
        thresholds = tuple(map(float, given))
        if not costs:
            raise ValueError(f"{task.name} has no costs, so there is nothing a threshold of {threshold} could limit")
        if len(thresholds) != len(costs):
            raise ValueError(
                f"{task.name} has {len(costs)} costs ({', '.join(costs)}), got {len(thresholds)} thresholds"
            )
        if not all(map(math.isfinite, thresholds)):
            raise ValueError(f"a threshold must be a finite number, got {threshold}")
    bounds = checked_bounds(task.entropy_bounds if entropy_bounds is None else entropy_bounds)
    return Problem(costs, thresholds, bounds, float(mu), discounted)


def regularised(y: Array, x: Array, l2: float) -> Array:
    """The outputs with the L2 term on their objective: rows of y belong to rows of x, or all to one x."""
    xp = array_namespace(y)
    return xp.concat([y[..., :1] + l2 * xp.sum(x**2, axis=-1, keepdims=True), y[..., 1:]], axis=-1)


def checked_bounds(bounds: Any) -> tuple[float, float]:
    """Bounds on the entropy, if they are two numbers in order.

    >>> checked_bounds(5)
    Traceback (most recent call last):
    ...
    ValueError: entropy_bounds must be two numbers, such as (0, 100), got 5
    """
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError) as error:
        raise ValueError(f"entropy_bounds must be two numbers, such as (0, 100), got {bounds!r}") from error
    if not low < high:
        raise ValueError(f"entropy bounds must be low < high, got {low:g} and {high:g}")
    return low, high


def to_json(bounds: tuple[float, float]) -> list[float | None]:
    """Bounds as JSON can hold them.

    >>> to_json((-math.inf, 2.0)), from_json([None, 2.0])
    ([None, 2.0], (-inf, 2.0))
    """
    return [bound if math.isfinite(bound) else None for bound in bounds]


def from_json(bounds: list[float | None]) -> tuple[float, float]:
    """What `to_json` gave."""
    low, high = bounds
    return -math.inf if low is None else low, math.inf if high is None else high
