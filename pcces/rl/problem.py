"""What a policy is asked for: return and entropy to maximise, costs and entropy to keep within limits.

f = -R - mu H + (mu + cost_weight) sum_i g_i, with h_l <= E[H] <= h_u (Omega_1) and E[g_i] <= t_i (Omega_2), as one vector of
constraints c <= 0. A task without costs has Omega_1 alone; the entropy bounds may be infinite, which leaves Omega_2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pcces.core.arrays import array_namespace
from pcces.core.limits import Limit as CoreLimit
from pcces.core.limits import Mean, as_limit, named
from pcces.envs.costs import PLACES, episode_range
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

    @classmethod
    def on(cls, what: str, limit: CoreLimit) -> Limit:
        """A limit on a cost.

        >>> from pcces.core.limits import CVaR
        >>> print(Limit.on("off_centre", CVaR(0.1, at_most=50)), Limit.on("off_centre", Mean(25)), sep="; ")
        CVaR0.1 of off_centre <= 50; off_centre <= 25
        """
        return cls(what, True, limit.origin, limit.kind, limit.share)

    def __str__(self) -> str:
        if self.kind == "mean":
            return f"{self.what} {'<=' if self.at_most else '>='} {self.value:g}"
        return f"{self.quantity} <= {self.share if self.counted else self.value:g}"

    @property
    def quantity(self) -> str:
        """What is limited, in words."""
        if self.kind == "mean":
            return self.what
        return f"P({self.what} > {self.value:g})" if self.counted else f"CVaR{self.share:g} of {self.what}"

    @property
    def most(self) -> float:
        """What it may be at most (or has to be at least)."""
        return self.share if self.counted else self.value

    @property
    def short(self) -> str:
        """The limit without the name of what it is on.

        >>> Limit("off_centre", True, 30.0).short, Limit("off_centre", True, 30.0, "probability", 0.05).short
        ('30', 'P(> 30) <= 0.05')
        """
        if self.kind == "mean":
            return f"{self.value:g}"
        return str(self).replace(f"{self.what} > ", "> ").replace(f" of {self.what}", "")

    @property
    def counted(self) -> bool:
        """Whether it limits how many episodes are above: a quantile is at most something if few enough are."""
        return self.kind in ("probability", "quantile")

    def samples(self, values: Array, level: Array | float | None = None) -> Array:
        """What each episode says of it: the limit is kept where their mean is at most 0.

        Of a CVaR they say too much, unless `level` is the quantile beyond which the worst share lies (Rockafellar &
        Uryasev 2000); without one, that of these episodes is taken.

        >>> cost = np.array([0.0, 10.0, 40.0])
        >>> Limit("c", True, 30.0, "probability", 0.25).samples(cost), Limit("c", True, 35.0, "cvar", 0.5).samples(cost, 10.0)
        (array([-0.25, -0.25,  0.75]), array([-25., -25.,  35.]))
        """
        if not self.at_most:
            return self.value - values
        if self.kind == "mean":
            return values - self.value
        xp = array_namespace(values)
        if self.counted:
            return xp.where(values > self.value, 1 - self.share, -self.share)
        level = self.level(values) if level is None else level
        return level - self.value + xp.clip(values - level, 0.0, None) / self.share

    def level(self, values: Array) -> Array:
        """Beyond what the worst share of a CVaR lies, as far as these episodes did not fail."""
        return array_namespace(values).nanquantile(values, 1 - self.share)

    def estimate(self, values: Array) -> float:
        """What is limited, as these episodes have it."""
        return float(np.mean(self.samples(values))) + self.most if self.kind != "mean" else float(np.mean(values))


@dataclass(frozen=True)
class Problem:
    """Weights and limits of one training problem."""

    cost_names: tuple[str, ...]
    thresholds: tuple[float, ...]  # on the mean of each cost, unless `asked` has another limit
    entropy_bounds: tuple[float, float]
    mu: float
    discounted: bool  # whether R is the discounted return
    asked: tuple[CoreLimit, ...] | None = None  # a limit on each cost; None: on the means of all
    cost_weight: float = 0.0  # weight of the costs in f, beside mu

    @property
    def cost_limits(self) -> tuple[Limit, ...]:
        """The limit on each cost."""
        on = map(Mean, self.thresholds) if self.asked is None else self.asked
        return tuple(Limit.on(name, limit) for name, limit in zip(self.cost_names, on))

    @property
    def on_means(self) -> bool:
        """Whether all limits are on means."""
        return self.asked is None

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The constraints, in the order of c."""
        low, high = self.entropy_bounds
        entropy = [Limit("entropy", True, high)] * math.isfinite(high) + [Limit("entropy", False, low)] * math.isfinite(
            low
        )
        return (*self.cost_limits, *entropy)

    @property
    def names(self) -> tuple[str, ...]:
        """What the constraints are called, in the order of c."""
        return tuple(map(str, self.limits))

    def outputs(self, outcome: Any, levels: Sequence[float] | None = None) -> Array:
        """The rows y = (f, c_1, .., c_r) of the episodes in an Outcome (its last axis): shape (B, 1 + r).

        `levels`: for each cost, beyond what the worst share of a CVaR is taken to lie.
        """
        xp = array_namespace(outcome.returns)
        gain = outcome.discounted if self.discounted else outcome.returns
        low, high = self.entropy_bounds
        f = -gain - self.mu * outcome.entropy
        c = []
        if self.cost_names:
            f = f + (self.mu + self.cost_weight) * xp.sum(outcome.costs, axis=0)
            beyond: Sequence[float | None] = levels or [None] * len(self.cost_names)
            c += [limit.samples(outcome.costs[i], beyond[i]) for i, limit in enumerate(self.cost_limits)]
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
    limits: Any = None,
    cost_weight: float = 0.0,
) -> Problem:
    """The task's own limits (the paper's Tables 5 and 6) unless others are given: a threshold on the mean of each cost, or
    `limits` by the costs' names (`named_limits`).

    >>> from pcces.envs import make
    >>> problem_for(make("CartSafe-v0"), mu=1e-4, threshold=20).names
    ('off_centre <= 20', 'entropy <= 2000', 'entropy >= 0')
    >>> problem_for(make("CartSafe-v0"), mu=1e-4, limits="off_centre: P(> 30) <= 0.05").names[0]
    'P(off_centre > 30) <= 0.05'
    """
    costs = task.cost_names
    asked = None if limits is None else asked_limits(task, limits, threshold)
    if asked is not None:
        threshold = tuple(limit.origin for limit in asked)
        asked = None if all(isinstance(limit, Mean) for limit in asked) else asked
    if threshold is None:
        thresholds = tuple(map(float, task.thresholds))
        if len(thresholds) != len(costs):
            raise ValueError(
                f"{task.name} has the costs {', '.join(costs)} but no thresholds: give threshold=... (--threshold), the most "
                "an episode may cost on average, for each"
            )
    else:
        given = threshold if isinstance(threshold, tuple | list) else (threshold,)
        thresholds = tuple(map(float, given))
        if not costs:
            raise ValueError(_no_costs(task, f"there is nothing a threshold of {threshold} could limit"))
        if len(thresholds) != len(costs):
            raise ValueError(
                f"{task.name} has {len(costs)} costs ({', '.join(costs)}), got {len(thresholds)} thresholds"
            )
        if not all(map(math.isfinite, thresholds)):
            raise ValueError(f"a threshold must be a finite number, got {threshold}")
    bounds = checked_bounds(task.entropy_bounds if entropy_bounds is None else entropy_bounds)
    return Problem(costs, thresholds, bounds, float(mu), discounted, asked, float(cost_weight))


def _no_costs(task: Task | Simulator, so: str) -> str:
    said = f"{task.name} has no costs, so {so}"
    if not isinstance(task, Simulator):
        return said
    return (
        f"{said}: none showed in episodes of random actions, in {PLACES}. If it is rare, report 0 on the other steps; if it is "
        "elsewhere, give a function that says it: cost=... (--cost MODULE:FUNCTION)"
    )


def check_reachable(task: Task | Simulator, problem: Problem) -> None:
    """Refuse a limit below what an episode costs at least: a sign that is wrong, and a training for nothing.

    >>> from pcces.envs import make
    >>> task = make("CartSafe-v0")
    >>> check_reachable(task, problem_for(task, 0.0, -5))
    Traceback (most recent call last):
    ...
    ValueError: no policy keeps off_centre <= -5: an episode of CartSafe-v0 costs at least 0
    """
    if tuple(task.thresholds) == problem.thresholds:  # the task's own
        return
    known = episode_range(task)
    for limit in problem.cost_limits:
        if known is None and limit.value < 0:
            raise ValueError(
                f"{limit} asks for an episode that costs less than nothing. Is the sign wrong? If a step of {task.name} can "
                "cost less than 0, say what it can cost: cost_bounds=(LOW, HIGH), --cost-bounds LOW,HIGH"
            )
        if known is not None and limit.value < known[0]:
            raise ValueError(f"no policy keeps {limit}: an episode of {task.name} costs at least {known[0]:g}")


def asked_limits(task: Task | Simulator, limits: Any, threshold: Any) -> tuple[CoreLimit, ...]:
    """A limit on each of the task's costs; those that are not named keep the task's own."""
    by_name = named_limits(limits)
    if threshold is not None:
        raise ValueError("give either limits or threshold: a threshold limits the mean, as 'mean <= 25' does")
    if unknown := [name for name in by_name if name not in task.cost_names]:
        if not task.cost_names:
            raise ValueError(_no_costs(task, f"there is no {unknown[0]!r} to limit"))
        raise ValueError(f"{task.name} has no cost called {unknown[0]!r}; its costs are {', '.join(task.cost_names)}")
    own = dict(zip(task.cost_names, map(Mean, task.thresholds)))
    if missing := [name for name in task.cost_names if name not in own | by_name]:
        raise ValueError(f"{task.name} has no threshold for {', '.join(missing)}: give a limit on each")
    return tuple((own | by_name)[name] for name in task.cost_names)


def named_limits(given: Any) -> dict[str, CoreLimit]:
    """Limits by the names of what they are on: from a dict, or from texts 'NAME: LIMIT'.

    >>> named_limits({"off_centre": 25}), named_limits(["off_centre: P(> 30) <= 0.05"])
    ({'off_centre': Mean(at_most=25.0)}, {'off_centre': Probability(above=30.0, at_most=0.05)})
    """
    if isinstance(given, Mapping):
        return {str(name): as_limit(limit) for name, limit in given.items()}
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise ValueError(
            "limits go by the names of costs, such as {'off_centre': Probability(above=30, at_most=0.05)}, "
            f"got {given!r}"
        )
    pairs = [named(text) for text in texts]
    if repeated := [name for i, (name, _) in enumerate(pairs) if name in dict(pairs[:i])]:
        raise ValueError(f"there are two limits on {repeated[0]}: a cost has one")
    return dict(pairs)


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
