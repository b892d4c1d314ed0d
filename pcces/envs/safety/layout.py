"""Where things start: rejection sampling with keepouts, number for number as the original draws it.

The original consumes one legacy Mersenne stream in a fixed order. Keeping to that order costs nothing and makes a seed
mean the same world here and there: the same layout, and the same later goals when they are reached at the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TRIES = 100  # candidates for one object before the layout is given up
LAYOUTS = 10_000  # layouts before the scene is called impossible
GOAL_TRIES = 10_000  # candidates for a new goal before the episode ends


@dataclass(frozen=True)
class Placement:
    """Objects that are placed one after the other under one keepout."""

    name: str
    count: int
    keepout: float


class LegacyStream:
    """Uniform numbers of one environment, in the order the original would draw them.

    >>> stream = LegacyStream(0)
    >>> stream.take(3).round(3).tolist()
    [0.549, 0.715, 0.603]
    """

    def __init__(self, seed: int | None = None) -> None:
        if seed is not None and seed < 0:
            raise ValueError(f"a seed must not be negative; got {seed}")
        if seed is None or seed < 2**32:
            self._rng = np.random.RandomState(seed)
        else:  # the legacy generator takes longer seeds 32 bits at a time
            self._rng = np.random.RandomState([seed >> bits & 0xFFFFFFFF for bits in range(0, seed.bit_length(), 32)])
        self._ahead = np.empty(0)  # numbers drawn in advance,
        self._at = 0  # of which this many are consumed
        self._mark = self._rng.get_state(legacy=False)  # a state to go back to,
        self._drawn = 0  # and how many numbers were drawn since

    def peek(self, n: int) -> NDArray[np.float64]:
        """Return the next ``n`` numbers without consuming them."""
        if self._at + n > len(self._ahead):
            self._ahead = np.concatenate([self._ahead[self._at :], self._draw(max(n, 1024))])
            self._at = 0
        return self._ahead[self._at : self._at + n]

    def skip(self, n: int) -> None:
        """Consume ``n`` numbers."""
        self.peek(n)
        self._at += n

    def take(self, n: int) -> NDArray[np.float64]:
        """Return the next ``n`` numbers and consume them."""
        numbers = self.peek(n)
        self._at += n
        return numbers

    def index(self, n: int) -> int:
        """Draw an integer below ``n``. It takes other bits than a number, so numbers drawn in advance are put back.

        >>> LegacyStream(0).index(4)
        0
        """
        self._rng.set_state(self._mark)
        self._rng.random_sample(self._drawn - (len(self._ahead) - self._at))
        self._ahead, self._at = np.empty(0), 0
        chosen = int(self._rng.choice(n))
        self._mark, self._drawn = self._rng.get_state(legacy=False), 0
        return chosen

    def _draw(self, n: int) -> NDArray[np.float64]:
        if len(self._ahead) == self._at:
            self._mark, self._drawn = self._rng.get_state(legacy=False), 0
        self._drawn += n
        return self._rng.random_sample(n)


def sample_layout(groups: Sequence[Placement], extent: float, stream: LegacyStream) -> NDArray[np.float64]:
    """Place every object in the square of half-width ``extent``; rows in the order of the groups.

    Each object gets up to 100 uniform candidates in the square shrunk by its own keepout. The first that stays the sum
    of both keepouts away from all objects before it is taken; if none does, the whole layout starts anew.

    >>> groups = [Placement("agent", 1, 0.4), Placement("hazards", 2, 0.18)]
    >>> sample_layout(groups, 1.5, LegacyStream(0)).round(2).tolist()
    [[0.11, 0.47], [-0.16, 1.03], [1.22, -0.31]]
    """
    for group in groups:
        if group.keepout >= extent:
            raise ValueError(
                f"{group.name}: a keepout of {group.keepout} m leaves no room in a square of half-width {extent} m"
            )
    rules = _rules(groups, extent)
    for _ in range(LAYOUTS):
        xs: list[float] = []
        ys: list[float] = []
        if all(rule.place(rule, xs, ys, stream) for rule in rules):
            return np.array([xs, ys]).T
    counts = ", ".join(f"{g.count} {g.name}" for g in groups)
    raise ValueError(f"no room for {counts} in a square of half-width {extent} m: take fewer, or a larger extent")


class _Rule(NamedTuple):
    """What a group's candidates have to satisfy, worked out once for all layouts."""

    number: int
    low: float
    width: float
    limits: list[float]  # squared distance to keep from each object placed before the group
    among: float  # and from each other
    place: Callable[[_Rule, list[float], list[float], LegacyStream], bool]


def _rules(groups: Sequence[Placement], extent: float) -> list[_Rule]:
    rules: list[_Rule] = []
    keepouts: list[float] = []
    for group in groups:
        keepout = group.keepout
        width = 2 * (extent - keepout)
        limits = [(keepout + other) ** 2 for other in keepouts]
        # Discs that would cover the square twice: most candidates fail, so a window of them is tested at a time.
        place = _place_crowded if math.pi * sum(limits) > 2 * width**2 else _place
        rules.append(_Rule(group.count, keepout - extent, width, limits, 4 * keepout**2, place))
        keepouts += [keepout] * group.count
    return rules


def _place(rule: _Rule, xs: list[float], ys: list[float], stream: LegacyStream) -> bool:
    count, low, width, limits, among, _ = rule
    limits = limits.copy()
    tries = placed = 0
    while placed < count:
        window = stream.peek(4 * (count - placed)).tolist()
        used = 0
        for u, v in zip(window[::2], window[1::2]):
            x, y = low + width * u, low + width * v
            used, tries = used + 2, tries + 1
            for px, py, limit in zip(xs, ys, limits):
                dx, dy = x - px, y - py
                if dx * dx + dy * dy < limit:
                    break
            else:
                xs.append(x)
                ys.append(y)
                limits.append(among)
                tries, placed = 0, placed + 1
                if placed == count:
                    break
            if tries == TRIES:
                stream.skip(used)
                return False
        stream.skip(used)
    return True


def _place_crowded(rule: _Rule, xs: list[float], ys: list[float], stream: LegacyStream) -> bool:
    """Do what ``_place`` does, with all candidates of a window held against the objects already there at once."""
    count, low, width, limits, among, _ = rule
    px, py, limit = np.array([xs, ys, limits])[:, :, None]
    before = len(xs)
    first = 0  # the candidate, counted from the window's start, at which the present object's tries began
    window = 2 * TRIES
    while True:
        candidates = low + width * stream.peek(2 * window)
        dx = candidates[0::2] - px
        dy = candidates[1::2] - py
        dx *= dx
        dy *= dy
        dx += dy
        for j in (dx >= limit).all(axis=0).nonzero()[0].tolist():
            if j - first >= TRIES:
                break
            x, y = candidates[2 * j : 2 * j + 2].tolist()
            for a, b in zip(xs[before:], ys[before:]):
                if (x - a) * (x - a) + (y - b) * (y - b) < among:
                    break
            else:
                xs.append(x)
                ys.append(y)
                first = j + 1
                if len(xs) == before + count:
                    stream.skip(2 * first)
                    return True
        if window - first >= TRIES:
            stream.skip(2 * (first + TRIES))
            return False
        stream.skip(2 * window)
        first -= window


def sample_goal(
    keepout: float, extent: float, others: NDArray[np.float64], keepouts: NDArray[np.float64], stream: LegacyStream
) -> NDArray[np.float64] | None:
    """Draw a goal that keeps clear of the ``others`` (n, 2), or ``None`` when 10 000 candidates all fail.

    >>> sample_goal(0.3, 1.5, np.zeros((1, 2)), np.array([0.4]), LegacyStream(0)).round(3).tolist()
    [-0.15, 0.94]
    """
    limit = (keepouts + keepout) ** 2
    for tried in range(0, GOAL_TRIES, TRIES):
        count = min(TRIES, GOAL_TRIES - tried)
        candidates = keepout - extent + 2 * (extent - keepout) * stream.peek(2 * count).reshape(-1, 2)
        offsets = candidates[:, None] - others
        free = (np.square(offsets).sum(axis=-1) >= limit).all(axis=-1)
        first = int(free.argmax())
        if free[first]:
            stream.skip(2 * (first + 1))
            return candidates[first].copy()
        stream.skip(2 * count)
    return None
