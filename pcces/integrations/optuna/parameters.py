"""Optuna's distributions as variables of a search, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)

from pcces.blackbox.variables import Choice, Integer, Log, Real, Variable

CLOSE = 1e-6  # of a variable's width: the same value, on another processor


class Parameters:
    """The parameters of a search space; each as a variable, in the order of their names.

    >>> space = Parameters({"rate": FloatDistribution(1e-4, 1.0, log=True), "layers": IntDistribution(2, 10, step=4)})
    >>> space.bounds
    {'layers': Integer(low=0, high=2, log=False), 'rate': Log(low=0.0001, high=1.0)}
    >>> space.params({"layers": 1, "rate": 0.01}), space.point({"layers": 10, "rate": 0.5, "other": 3})
    ({'layers': 6, 'rate': 0.01}, {'layers': 2, 'rate': 0.5})
    """

    def __init__(self, distributions: Mapping[str, BaseDistribution]):
        self.distributions = dict(sorted(distributions.items()))

    @property
    def bounds(self) -> dict[str, Variable]:
        """The variables, as `pcces.Optimizer` takes them."""
        return {name: variable(each) for name, each in self.distributions.items()}

    def params(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A point of the search as Optuna has it."""
        return {name: _outside(each, point[name]) for name, each in self.distributions.items()}

    def point(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """A trial's parameters as a point of the search; None where one is missing or lies outside."""
        inside = {}
        for name, each in self.distributions.items():
            if name not in params:
                return None
            internal = each.to_internal_repr(params[name])
            if not each._contains(internal):
                return None
            inside[name] = _inside(each, params[name], internal)
        return inside

    def same(self, params: Mapping[str, Any], others: Mapping[str, Any]) -> bool:
        """Whether two trials were made at the same point, but for rounding."""
        return all(
            name in params and name in others and _close(each, params[name], others[name])
            for name, each in self.distributions.items()
        )

    def plain(self) -> dict[str, str]:
        """For a file: each distribution in JSON."""
        return {name: distribution_to_json(each) for name, each in self.distributions.items()}

    @classmethod
    def from_plain(cls, data: Mapping[str, str]) -> Parameters:
        """What `plain` gave."""
        return cls({name: json_to_distribution(text) for name, text in data.items()})


def variable(distribution: BaseDistribution) -> Variable:
    """What a distribution means: those with steps, and choices, are numbered."""
    if isinstance(distribution, CategoricalDistribution):
        return Choice(*range(len(distribution.choices)))
    if isinstance(distribution, IntDistribution) and distribution.step == 1:
        return Integer(distribution.low, distribution.high, log=distribution.log)
    if isinstance(distribution, IntDistribution | FloatDistribution):
        if distribution.step is not None:
            return Integer(0, round((distribution.high - distribution.low) / distribution.step))
        return (
            Log(distribution.low, distribution.high) if distribution.log else Real(distribution.low, distribution.high)
        )
    raise TypeError(f"PccesSampler knows floats, integers and categories, but not {type(distribution).__name__}")


def _outside(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(value)]
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return min(distribution.low + distribution.step * int(value), distribution.high)
    if isinstance(distribution, IntDistribution):
        return int(value) if distribution.step == 1 else distribution.low + distribution.step * int(value)
    return float(value)


def _inside(distribution: BaseDistribution, value: Any, internal: float) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return int(internal)
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        return round((value - distribution.low) / distribution.step)
    if isinstance(distribution, IntDistribution) and distribution.step != 1:
        return round((value - distribution.low) / distribution.step)
    return value


def _close(distribution: BaseDistribution, a: Any, b: Any) -> bool:
    if isinstance(distribution, FloatDistribution):
        width = max(abs(a), abs(b)) if distribution.log else distribution.high - distribution.low
        return abs(a - b) <= CLOSE * width
    return bool(distribution.to_internal_repr(a) == distribution.to_internal_repr(b))
