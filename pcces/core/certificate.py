"""The final word on feasibility, from fresh samples.

A certificate says: with the given confidence, over everything that was tested on the way, the returned point keeps every limit.
Each limit is tested at the whole error probability. That is enough: the claim is only false if some limit is broken, and then
that limit's own bound has to be wrong, however the others came out (an intersection-union test, Berger 1982). The upper
bounds hold with this confidence each by itself, not all at once.

Its grade says what it rests on:

- *guaranteed*: a finite-sample bound that needs only what the user stated (a range, 0/1 outcomes, or that there is no noise),
  and samples that do not depend on each other;
- *asymptotic*: it may be fooled, by noise that did not show. It says by what, and what to state for a guarantee;
- *not certified*.

docs/explanation/certificates.md says more, with the rates at which attacks succeeded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from pcces.core import bounds as upper
from pcces.core.limits import PLAIN, CVaR, Limit, Mean

GUARANTEED, ASYMPTOTIC, NOT_CERTIFIED = "guaranteed", "asymptotic", "not certified"
FORMAL = ("none", "stated", "betting", "binomial")  # methods that need only what was stated
LEAST = 8  # samples for a bound that trusts that their mean is close to normal
EFFECTIVE = 15  # and samples that depend on each other must be worth so many
UNENDING = 8  # dependence without an end in sight goes on for this part of the samples, at least
ASSUMED = {
    "none": "there is nothing to keep but the bounds",
    "stated": "evaluations have no noise, as was stated",
    "betting": "every value lies in the range that was stated",
    "binomial": "an outcome is over the limit or not",
    "two values": "outcomes have no other values than the two that were seen",
    "t": "the mean of so many samples is close to normal",
    "repeats": "noise that equal repeats did not show is not there",
    "dependent": "samples depend on each other no longer than these show",
}
BOUNDS = {
    "none": "no bound",
    "stated": "no noise, as stated",
    "betting": "betting bound",
    "binomial": "binomial bound",
    "two values": "only two values seen",
    "t": "Student t",
    "repeats": "no noise seen",
    "dependent": "dependent samples",
}
MISSING = "limits are those of evaluations that do not fail, and a failure says nothing about its point, as was stated"
ALIKE = "samples are independent of each other, and alike over time"


@dataclass(frozen=True)
class Certificate:
    """Whether the answer keeps its limits, with what confidence, under which assumptions, and what could deceive it.

    >>> c = Certificate(True, 0.95, (-0.2, -0.1), 400, "t")
    >>> c.grade, c.assumes
    ('asymptotic', ('the mean of so many samples is close to normal', 'samples are independent of each other, and alike over time'))
    """

    holds: bool
    confidence: float
    upper_bounds: tuple[
        float, ...
    ]  # upper confidence bounds, each by itself, of what is limited less its limit: at most 0 passes
    samples: int  # fresh evaluations of the returned point
    method: str  # how the bounds were found, by the names in ASSUMED; several are joined by commas
    tested: int = 1  # candidates that were put to the test, this one included
    tolerance: float = 0.0
    for_a_guarantee: str = ""  # what the user could state, where it is not guaranteed
    # Where failed evaluations are missing values, of which nothing else is claimed:
    failed: int = 0  # fresh evaluations that failed; `samples` does not count them
    failure_rate: float | None = (
        None  # upper confidence bound on how often they do, joint with the claim; None: a failure breaks the limits
    )
    failure_limit: float | None = None  # the largest failure rate allowed

    @property
    def guaranteed(self) -> bool:
        """Whether it holds, and rests only on what the user stated."""
        return self.grade == GUARANTEED

    @property
    def methods(self) -> list[str]:
        """The names in `method`."""
        return self.method.split(", ")

    @property
    def grade(self) -> str:
        """`guaranteed`, `asymptotic` or `not certified`."""
        if not self.holds:
            return NOT_CERTIFIED
        return GUARANTEED if all(name in FORMAL for name in self.methods) else ASYMPTOTIC

    @property
    def assumes(self) -> tuple[str, ...]:
        """What it rests on, in words."""
        named = [ASSUMED.get(name, name) for name in self.methods]
        named += [MISSING] * (self.failure_rate is not None)
        return (*named, *[ALIKE] * (not set(self.methods) <= {"none", "stated"} or self.failure_rate is not None))

    @property
    def could_be_fooled_by(self) -> tuple[str, ...]:
        """What would make it false, in words; nothing that the user did not rule out, if it is guaranteed."""
        n = self.samples
        by = {
            "t": f"rare large values: what happens less than once in {max(n // 3, 1)} times may be missing in these samples",
            "repeats": f"noise that did not show: none was seen, but {n} equal repeats exclude only what happens in more than "
            f"{100 * self.excluded:.2g} % of the evaluations",
            "two values": "a third value that was never seen",
            "dependent": "samples that depend on each other for longer than these show",
        }
        return tuple(by[name] for name in self.methods if name in by)

    @property
    def excluded(self) -> float:
        """How often something must happen at least to have shown in these samples with this confidence: about 3 / n for 95 %.

        >>> round(Certificate(True, 0.95, (-1.0,), 300, "repeats").excluded, 4)
        0.0099
        """
        return 1 - (1 - self.confidence) ** (1 / max(self.samples, 1))

    @property
    def bounds_hold(self) -> bool:
        """Whether the samples keep the limits, however often evaluations fail."""
        return all(bound <= self.tolerance for bound in self.upper_bounds)

    @property
    def fails_too_often(self) -> bool:
        """Whether more evaluations may fail than was allowed."""
        rate, most = self.failure_rate, self.failure_limit
        return rate is not None and most is not None and rate > most

    def failures(self) -> str:
        """What is known about failures that count as missing values, in words. Empty where a failure breaks the limits.

        >>> Certificate(True, 0.95, (-0.2,), 85, "t", failed=5, failure_rate=0.134).failures()
        '5 of 90 fresh evaluations failed: at most 13 % do, and limits are those of the others'
        """
        if self.failure_rate is None:
            return ""
        allowed = f", {100 * self.failure_limit:g} % are allowed" if self.failure_limit is not None else ""
        others = ", and limits are those of the others" if self.upper_bounds else ""
        made = self.samples + self.failed
        return f"{self.failed} of {made} fresh evaluations failed: at most {100 * self.failure_rate:.2g} % do{allowed}{others}"

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, limits: Sequence[Limit] | None = None) -> str:
        """What was certified, from how many samples, and by which bound. `limits` are those of the constraints, if known; an
        empty sequence means that all means are to be at most 0.

        >>> Certificate(True, 0.95, (-0.2, -0.1), 400, "betting").sentence(limits=())
        'Certified: with 95 % confidence all mean constraints are <= 0; largest upper bound -0.1; 400 fresh samples; betting bound (guaranteed)'
        """
        notes = "".join(f". {note}" for note in (self.failures(), self.warning()) if note)
        if not self.upper_bounds and self.holds:
            return f"Feasible: there are no constraints but the bounds{notes}"
        if not self.holds and self.fails_too_often and self.bounds_hold:
            return f"Not certified: evaluations may fail too often{notes}"
        if not self.upper_bounds:
            return "Not certified: there was no point to test"
        largest = f"{max(self.upper_bounds):.3g}"
        bound = ", ".join(BOUNDS[name] for name in self.methods)
        source = f"{self.samples} fresh sample{'s' * (self.samples != 1)}; {bound}"
        if not self.holds:
            return f"Not certified: the largest upper bound is {largest}, but must be <= {self.tolerance:g}; {source}{notes}"
        plain = limits is not None and all(limit == PLAIN for limit in limits)
        what = f"all mean constraints are <= {self.tolerance:g}" if plain else "all limits hold"
        sure = f"with {100 * self.confidence:g} % confidence {what}"
        return f"Certified: {sure}; largest upper bound {largest}; {source} ({self.grade}){notes}"

    def warning(self) -> str:
        """What could deceive the certificate, and how to get a guarantee. Empty for a guaranteed one."""
        if self.grade != ASYMPTOTIC:
            return ""
        wish = f"; for a guarantee {self.for_a_guarantee}" if self.for_a_guarantee else ""
        return f"It could be fooled by {'; by '.join(self.could_be_fooled_by)}{wish}"

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Certificate:
        """A certificate from what `to_dict` gave, also by way of JSON, or what an earlier version wrote. The grade is derived
        again, and data with another one are refused."""
        given = {field.name: data[field.name] for field in fields(cls) if field.name in data}
        given["upper_bounds"] = tuple(given["upper_bounds"])
        if given["method"] == "exact":  # of a time before grades
            given["method"] = "repeats" if given["upper_bounds"] else "none"
        if unknown := set(given["method"].split(", ")) - set(ASSUMED):
            raise ValueError(f"there is no method {', '.join(sorted(unknown))} of certificates")
        certificate = cls(**given)
        if data.get("grade", certificate.grade) != certificate.grade:
            raise ValueError(f"it calls itself {data['grade']!r}, but is {certificate.grade}")
        return certificate

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        said = {"grade": self.grade, "assumes": self.assumes, "could_be_fooled_by": self.could_be_fooled_by}
        return asdict(self) | said


def by_grade(certificates: Sequence[Certificate]) -> str:
    """How many hold, by what they rest on.

    >>> bets, student = (Certificate(True, 0.95, (-1.0,), 100, method) for method in ("betting", "t"))
    >>> by_grade([bets, bets]), by_grade([bets, student]), by_grade([])
    ('all guaranteed', '1 guaranteed, 1 asymptotic', '')
    """
    grades = [certificate.grade for certificate in certificates if certificate.holds]
    counts = {grade: grades.count(grade) for grade in (GUARANTEED, ASYMPTOTIC) if grade in grades}
    if len(counts) == 1 and len(grades) > 1:
        return f"all {grades[0]}"
    return ", ".join(f"{count} {grade}" for grade, count in counts.items())


def joined(methods: Sequence[str]) -> str:
    """The methods of several bounds as one.

    >>> joined(["t", "betting", "t"]), joined([])
    ('t, betting', 'none')
    """
    return ", ".join(dict.fromkeys(methods)) or "none"


@dataclass(frozen=True)
class Column:
    """What is known about a limited quantity before its fresh samples: what the user stated and what the search saw.

    All numbers are of samples less the origin of the limit (`limit.origin`).
    """

    limit: Limit = PLAIN
    range: tuple[float, float] | None = None  # stated by the user: it never leaves this range
    values: tuple[float, float] | None = None  # the only two it ever took
    stated: bool = False  # the user stated that it takes no other values
    deterministic: bool = False  # stated: no noise
    deviation: float = 0.0  # standard deviation seen
    jump: float = 0.0  # the most that a sample was seen above what is usual at the same point
    constant: bool = False  # it was the same number everywhere
    level: float | None = None  # near its quantile, for a CVaR
    memory: float = 1.0  # how dependent earlier samples were (`bounds.dependence`)

    @property
    def formal(self) -> bool:
        """Whether its bound is one for finite samples, so that fewer than a great many say little."""
        return not self.deterministic and (self.range is not None or self.stated or self.limit.kind in COUNTED)

    def rows(self, x: np.ndarray, level: float | None = None) -> tuple[np.ndarray, Column]:
        """For a CVaR: samples whose mean is an upper bound on it for any `level`, and what is known about them (Rockafellar &
        Uryasev 2000). The best level is near the quantile. For any other limit: the samples themselves."""
        limit = self.limit
        if not isinstance(limit, CVaR):
            return x, self
        if level is None:  # the first samples say which level is best, the others count
            first = max(len(x) // 5, 1)
            level, x = float(np.quantile(x[:first], 1 - limit.share)), x[first:]
        range_ = self.range
        if range_ is not None:
            level = min(max(level, range_[0]), range_[1] - 1e-9 * (range_[1] - range_[0]))
            range_ = level, level + (range_[1] - level) / limit.share
        jump = self.jump / limit.share
        known = replace(self, limit=Mean(), range=range_, values=None, deviation=0.0, jump=jump, level=None)
        return level + np.maximum(x - level, 0.0) / limit.share, known


COUNTED = ("probability", "quantile")


class Judgement(NamedTuple):
    """What fresh samples say."""

    bounds: np.ndarray  # (r,), of what is limited less its limit: at most 0 passes
    methods: tuple[str, ...]  # of each
    memory: np.ndarray  # (r,) how dependent these samples were, or those before

    @property
    def holds(self) -> bool:
        """Whether every limit is kept."""
        return bool(np.all(self.bounds <= 0))


def judge(samples: np.ndarray, columns: Sequence[Column], error: float) -> Judgement:
    """Upper bounds on what is limited, each wrong with probability `error`, from fresh samples (n, r) less the origins. That all
    are at most zero although some limit is broken is no likelier: that limit's bound is wrong then.

    >>> x = np.random.default_rng(0).normal(-1.0, 1.0, (100, 1))
    >>> judge(x, [Column()], 0.05).methods, judge(x, [Column(range=(-9, 9))], 0.05).methods
    (('t',), ('betting',))
    """
    alarm = upper.ALARM / max(len(columns), 1)
    bounds, methods = np.full(len(columns), math.inf), [""] * len(columns)
    memory = np.ones(len(columns))
    betting: list[tuple[int, np.ndarray, tuple[float, float]]] = []
    for j, column in enumerate(columns):
        x = samples[:, j]
        if column.deterministic:
            bounds[j], methods[j] = _plain(x, column), "stated"
            continue
        ratio = max(upper.dependence(x, alarm), column.memory)
        memory[j] = min(ratio, max(len(x) / UNENDING, column.memory))
        effective = None if ratio == 1 else len(x) / ratio
        if column.limit.kind in COUNTED:
            bounds[j], methods[j] = _counted(x, column, error, effective)
            continue
        y, known = column.rows(x, column.level)
        range_ = None if at_the_ends(known) else known.range
        if range_ is not None:
            betting.append((j, y, range_))
        if range_ is not None and effective is None:
            bounds[j], methods[j] = -math.inf, "betting"
        else:
            bounds[j], methods[j] = _mean(y, known, error, effective)
    for size in {len(y) for _, y, _ in betting}:
        js, ys, ranges = zip(*(part for part in betting if len(part[1]) == size))
        low, high = np.array(ranges, dtype=float).T
        bound = upper.betting_bound(np.column_stack(ys), error, low, high, at=np.zeros(len(js)))
        bounds[list(js)] = np.maximum(bounds[list(js)], bound)  # dependence makes no bound tighter
    return Judgement(bounds, tuple(methods), memory)


def _plain(x: np.ndarray, column: Column) -> float:
    """The limited quantity itself, where there is no noise."""
    if column.limit.kind == "probability":
        return float(np.max(x) > 0) - column.limit.share
    return float(np.max(x))


def _counted(x: np.ndarray, column: Column, error: float, effective: float | None) -> tuple[float, str]:
    """The bound of a probability or a quantile, from the number of samples above."""
    limit = column.limit
    n = len(x) if effective is None else effective
    method = "binomial" if effective is None else "dependent"
    if n < EFFECTIVE and effective is not None:
        return math.inf, method
    if limit.kind == "quantile":
        return upper.quantile_bound(x, 1 - limit.share, error, n), method
    above = float(np.mean(x > 0)) * n
    return upper.binomial_bound(above, n, error) - limit.share, method


def _mean(y: np.ndarray, known: Column, error: float, effective: float | None) -> tuple[float, str]:
    """The bound of a mean without a stated range."""
    n = len(y) if effective is None else min(effective, len(y))
    seen = np.unique(y)
    formal = effective is None and (known.stated or at_the_ends(known))
    if effective is not None and n < EFFECTIVE:
        return math.inf, "dependent"
    if formal or known.values is not None or len(seen) == 2 < len(y):
        low, high = _two(seen, known)
        above = float(np.mean(y > low)) * n
        name = "dependent" if effective is not None else "binomial" if formal else "two values"
        return low + (high - low) * upper.binomial_bound(above, n, error), name
    if len(seen) == 1:
        size = max(known.jump, float(known.constant))
        repeated = float(seen[0]) + size * upper.binomial_bound(0, n, error)
        return max(
            repeated, upper.student_bound(y, error, known.deviation) if known.deviation > 0 else -math.inf
        ), "repeats"
    if n < LEAST:
        return math.inf, "t"
    bound = upper.student_bound(y, error, known.deviation, n)
    guard = upper.jump_bound(y, error, known.jump)
    return max(bound, guard), "t" if effective is None else "dependent"


def _two(seen: np.ndarray, known: Column) -> tuple[float, float]:
    """The two values of a two-valued outcome; otherwise a pair that encloses all values seen."""
    if known.stated and known.values is not None:
        return known.values
    if known.range is not None:
        return known.range
    low, high = (seen[0], seen[-1]) if known.values is None else known.values
    low, high = min(float(low), float(seen[0])), max(float(high), float(seen[-1]))
    return low, max(high, low + known.jump)


def at_the_ends(known: Column) -> bool:
    """Whether the search only ever saw the two ends of the range."""
    if known.range is None or known.values is None:
        return False
    low, high = known.range
    return max(abs(known.values[0] - low), abs(known.values[1] - high)) <= 1e-9 * (high - low)
