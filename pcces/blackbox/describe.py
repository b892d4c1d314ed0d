"""What a search was asked for, as data and words: for pictures and reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pcces.blackbox.variables import Choice, Integer, Variable
from pcces.core.limits import PLAIN, Limit

if TYPE_CHECKING:
    from pcces.blackbox.search import Search
    from pcces.blackbox.space import Space


class DescribedVariable(NamedTuple):
    """A variable: its name, its bounds (infinite where there are none; of a choice 0 and the number of the last option), whether
    it is searched on a logarithmic scale, and the options of a choice."""

    name: str
    low: float
    high: float
    log: bool = False
    whole: bool = False
    options: tuple[str, ...] = ()

    def text(self, number: float) -> str:
        """A value as people write it.

        >>> DescribedVariable("fuel", 0, 1, options=("gas", "steam")).text(1.0), DescribedVariable("x", 0, 1).text(1 / 3)
        ('steam', '0.33333')
        """
        return self.options[int(number)] if self.options else f"{number:.5g}"

    def place(self, numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
        """The place of numbers between the bounds, or without bounds between the smallest and the largest of some others:
        0 to 1.

        >>> DescribedVariable("x", 1, 100, log=True).place(np.array([10.0]), np.zeros(0))
        array([0.5])
        """
        ends = np.append(others[np.isfinite(others)], np.ravel(numbers))
        low = self.low if math.isfinite(self.low) else float(ends.min())
        high = self.high if math.isfinite(self.high) else float(ends.max())
        if self.log:
            low, high, numbers = math.log(low), math.log(high), np.log(numbers)
        return (numbers - low) / (high - low) if high > low else np.full(np.shape(numbers), 0.5)


@dataclass(eq=False)
class Setting:
    """The variables of a search and its constraints: their names and what is asked of each."""

    space: Space
    constraints: tuple[str, ...]  # names; c0, c1, .. where there are none
    limits: tuple[Limit, ...] = ()  # of each constraint; of an equality its mean is to be 0
    equal: tuple[int, ...] = ()  # which constraints are equalities
    objective: Limit = PLAIN  # of what fun gives: its mean, a quantile or a CVaR is minimised
    tolerance: float = 0.0  # of equalities

    @classmethod
    def of(cls, search: Search) -> Setting:
        """The setting of a search, as far as it is known."""
        known, options = search.state.constraints, search.options
        limits = (options.limits or (PLAIN,) * known.number) if known.number > 0 else ()
        return cls(
            search.space,
            known.names,
            limits,
            tuple(known.equal.tolist()),
            options.objective,
            options.equality_tolerance,
        )

    @property
    def words(self) -> list[str]:
        """What is asked of each constraint.

        >>> Setting(None, ("heat", "c1"), (PLAIN, PLAIN), (1,)).words
        ['<= 0', '= 0']
        """
        words = ["<= 0" if limit == PLAIN else str(limit) for limit in self.limits]
        return ["= 0" if j in self.equal else each for j, each in enumerate(words)]

    @property
    def labels(self) -> list[str]:
        """Names and limits together.

        >>> from pcces.core.limits import Probability
        >>> Setting(None, ("heat", "c1"), (PLAIN, Probability(30, 0.05))).labels
        ['heat <= 0', 'c1: P(> 30) <= 0.05']
        """
        words = self.words
        plain = [name + (" " if said in ("<= 0", "= 0") else ": ") for name, said in zip(self.constraints, words)]
        return [before + said for before, said in zip(plain, words)]

    @cached_property
    def variables(self) -> list[DescribedVariable]:
        """The variables, in their order."""
        space = self.space
        if space.variables is not None:
            return [described(name, kind) for name, kind in zip(space.variables.labels, space.variables.kinds)]
        ends = zip(space.lower.tolist(), space.upper.tolist())
        return [DescribedVariable(f"x{i}", low, high) for i, (low, high) in enumerate(ends)]

    @property
    def x0(self) -> np.ndarray:
        """The starting point as numbers; several points are rows."""
        return np.asarray(self.space.starts if len(self.space.starts) > 1 else self.space.x0, dtype=float)

    def __repr__(self) -> str:
        n, m = self.space.size, len(self.constraints)
        names = f": {', '.join(self.labels[:8])}{', ..' * (m > 8)}" if m else ""
        return f"{n} variable{'s' * (n != 1)}, {m} constraint{'s' * (m != 1)}{names}"


def described(name: str, kind: Variable) -> DescribedVariable:
    """A variable from its kind.

    >>> described("n", Integer(1, 9))
    DescribedVariable(name='n', low=1.0, high=9.0, log=False, whole=True, options=())
    """
    if isinstance(kind, Choice):
        options = tuple(map(str, kind.options))
        return DescribedVariable(name, 0.0, len(options) - 1.0, whole=True, options=options)
    return DescribedVariable(name, float(kind.low), float(kind.high), kind.scaled, isinstance(kind, Integer))
