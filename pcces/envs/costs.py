"""What steps cost: where environments say it, what it can be, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

CostFunction = Callable[[np.ndarray, Any, dict[str, Any]], Any]  # observation after the step, action, info -> cost(s)
Bounds = tuple[float, float]

KEYS = ("constraint_costs", "cost", "costs")  # of a step's info, where its cost may be; the first that is there counts
PLACES = 'info["constraint_costs"], info["cost"], info["costs"] and the third value of a six-tuple'
NONE = "none"  # in place of bounds: that there are none any more


class CostError(ValueError):
    """The costs of steps contradict what was stated about them. No other policy would change that."""


class UnlimitedCostError(CostError):
    """A step had a cost, and nobody has said how much of it is allowed."""


class CostBoundsError(CostError):
    """A step cost less than the least, or more than the most, that it was said to cost."""

    option = "cost_bounds"


class EpisodeCostBoundsError(CostBoundsError):
    """An episode did."""

    option = "episode_cost_bounds"


def find_cost(third: Any, info: Mapping[str, Any]) -> Any:
    """A step's cost from the places environments put it, or None: a six-tuple's third value, or in `info` one of KEYS.

    >>> find_cost(None, {"constraint_costs": [1.0, 0.0]}), find_cost(None, {"cost": 2.0}), find_cost(3.0, {})
    ([1.0, 0.0], 2.0, 3.0)
    >>> find_cost(None, {"costs": {"heat": 1.0}}), find_cost(None, {"speed": 3.0})
    ({'heat': 1.0}, None)
    """
    if third is not None:
        return third
    for key in KEYS:
        if (cost := info.get(key)) is not None:
            return cost
    return None


def is_cost(value: Any) -> bool:
    """Whether a value found under the name of a cost is one or more numbers, and not text.

    >>> is_cost(0.0), is_cost({"heat": 1}), is_cost("cheap"), is_cost([]), is_cost(None)
    (True, True, False, False, False)
    """
    try:
        return value is not None and as_numbers(value, None).size > 0
    except (TypeError, ValueError):
        return False


def names_of(name: str, costs: Any, given: Sequence[str] | None = None) -> tuple[str, ...]:
    """What the costs of a step are called: as was said, or as they are by the names they come with.

    >>> names_of("Mill-v0", 0.5), names_of("Mill-v0", [0, 1]), names_of("Mill-v0", {"heat": 0, "wear": 1})
    (('cost',), ('cost0', 'cost1'), ('heat', 'wear'))
    """
    count = 0 if costs is None else np.size(as_numbers(costs, None))
    own = tuple(map(str, costs)) if isinstance(costs, Mapping) else tuple(f"cost{i}" for i in range(count))
    names = tuple(given or (("cost",) if own == ("cost0",) else own))
    if len(names) != count:
        raise ValueError(f"{name} has {count} costs, but {len(names)} cost_names were given: {', '.join(names)}")
    return names


def as_numbers(costs: Any, names: Sequence[str] | None) -> np.ndarray:
    """A step's costs as an array: those that come by name in the order of these `names`, 0 where one is missing.

    >>> as_numbers({"wear": 2.0}, ("heat", "wear"))
    array([0., 2.])
    """
    if isinstance(costs, Mapping):
        if names is not None and (unknown := [key for key in costs if key not in names]):
            raise CostError(f"a step has the cost {unknown[0]!r}, but its costs were {', '.join(names)} before")
        costs = list(costs.values()) if names is None else [costs.get(key, 0.0) for key in names]
    return np.asarray(costs, dtype=float).reshape(-1)


def checked(bounds: Any, what: str = "step") -> Bounds | None:
    """The least and the most that a step (or an episode) can cost, if they are given.

    >>> checked((1, 0))
    Traceback (most recent call last):
    ...
    ValueError: cost_bounds are the least and the most that a step can cost, two finite numbers low < high; got (1, 0)
    """
    if bounds is None or bounds == NONE:
        return None
    option = "cost_bounds" if what == "step" else f"{what}_cost_bounds"
    try:
        low, high = map(float, bounds)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not -math.inf < low < high < math.inf:
        raise ValueError(
            f"{option} are the least and the most that {'an' if what[0] in 'aeiou' else 'a'} {what} can cost, two finite "
            f"numbers low < high; got {bounds}"
        )
    return low, high


def episode_range(task: Any) -> Bounds | None:
    """The least and the most an episode can cost, as far as the task says what it or a step of it can.

    >>> from types import SimpleNamespace as Given
    >>> episode_range(Given(max_steps=100, cost_bounds=(0.0, 1.0), episode_cost_bounds=None))
    (0.0, 100.0)
    >>> episode_range(Given(max_steps=100, cost_bounds=(-1.0, 1.0), episode_cost_bounds=(0.0, 5.0)))
    (0.0, 5.0)
    """
    whole: Bounds | None = getattr(task, "episode_cost_bounds", None)
    if task.cost_bounds is None:
        return whole
    low, high = task.cost_bounds  # of a step; an episode has at least one
    least, most = (task.max_steps * low if low < 0 else low), (task.max_steps * high if high > 0 else high)
    return (least, most) if whole is None else (max(least, whole[0]), min(most, whole[1]))


def check_steps(task: Any, costs: np.ndarray, seed: int) -> None:
    """Raise a CostBoundsError if steps, or all of them together, cost less or more than they are said to.

    `costs` (r, T) are those of the episode of this seed.
    """
    if costs.size == 0:
        return
    if task.cost_bounds is not None:
        low, high = task.cost_bounds
        slack = _slack(low, high)
        for i, t in np.argwhere((costs < low - slack) | (costs > high + slack))[:1]:
            raise CostBoundsError(
                f"step {t + 1} of {task.name} cost {costs[i, t]:g} ({task.cost_names[i]}, in the episode of seed {seed}), but "
                f"a step is said to cost {low:g} to {high:g}: give other cost_bounds (--cost-bounds LOW,HIGH), or none "
                "(--cost-bounds none)"
            )
    check_sums(task, costs.sum(axis=1, keepdims=True), f" (in the episode of seed {seed})")


def check_sums(task: Any, costs: np.ndarray, which: str = "") -> None:
    """Raise a CostBoundsError if episodes cost what the task says they, or their steps, cannot.

    `costs` has a row for each of the task's costs, of one or several episodes. A compiled task is known by its sums only.
    """
    limits = episode_range(task)
    if limits is None:
        return
    low, high = min(limits[0], 0.0), max(limits[1], 0.0)
    slack = 1e-4 * max(1.0, abs(low), abs(high))  # for sums of 32-bit numbers
    for name, row in zip(task.cost_names, costs):
        sums = np.asarray(row, dtype=float)
        if not (np.any(sums < low - slack) or np.any(sums > high + slack)):
            continue
        worst = float(sums.flat[np.nanargmax(np.abs(sums))])
        if getattr(task, "episode_cost_bounds", None) is not None:
            raise EpisodeCostBoundsError(
                f"an episode of {task.name} cost {worst:g} in all ({name}){which}, but an episode is said to cost "
                f"{limits[0]:g} to {limits[1]:g}: its episode_cost_bounds are wrong"
            )
        raise CostBoundsError(
            f"an episode of {task.name} cost {worst:g} in all ({name}){which}, but {task.max_steps} steps that cost "
            f"{task.cost_bounds[0]:g} to {task.cost_bounds[1]:g} each cannot: its cost_bounds are wrong"
        )


def _slack(low: float, high: float) -> float:
    return 1e-6 * max(1.0, abs(low), abs(high))  # for rounding to 32 bits


def unlimited(name: str, cost: Any, step: int, seed: int) -> UnlimitedCostError:
    """The error that says that a cost was seen for which there is no limit, where, and what to do."""
    return UnlimitedCostError(
        f"step {step} of {name} has a cost, {cost!r}, which no earlier one had (in the episode of seed {seed}; looked at "
        f"{PLACES}), and no limit was given: train again with threshold=... (--threshold), the most an episode may cost on "
        "average; 1e9 limits nothing, and shows the cost. Or say what counts as cost: cost=... (--cost MODULE:FUNCTION)"
    )
