"""The names that people know from elsewhere, as ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

SAME = {"tol": "sigma_stop", "maxiter": "max_iterations", "maxfev": "max_evaluations", "disp": "progress"}
DERIVATIVES = ("jac", "hess", "hessp")  # SciPy hands them to every method
# What other libraries call it: no other name here is near.
ELSEWHERE = {
    "seed": "rng", "random_state": "rng", "random_seed": "rng", "n_jobs": "workers", "parallel": "workers",
    "verbose": "progress", "budget": "max_evaluations", "n_trials": "max_evaluations", "n_calls": "max_evaluations",
    "n_iter": "max_evaluations", "maxfun": "max_evaluations", "max_nfev": "max_evaluations",
    "maxevals": "max_evaluations", "popsize": "population", "crn": "common_random_numbers", "alpha": "confidence",
    "level": "confidence", "method": "strategy", "algorithm": "strategy", "x": "x0", "start": "x0",
    "integer": "integrality", "eq": "equalities", "file": "checkpoint", "noise": "deterministic",
}  # fmt: skip


def translated(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `minimize` under our names, including those in its `options` and its `more`, without derivatives.

    >>> defaults = {"maxfev": None, "max_evaluations": None}
    >>> translated({"x0": [0.0], "maxfev": 100, "more": {"jac": None}, "options": {"disp": True}} | {"tol": None}, defaults)
    {'x0': [0.0], 'max_evaluations': 100, 'progress': True}
    """
    plain = {name: value for name, value in given.items() if name not in ("more", "options")}
    by_own_name: dict[str, Any] = {}
    for name, value in [*plain.items(), *given["more"].items(), *(given["options"] or {}).items()]:
        own = SAME.get(name, name)
        if name in DERIVATIVES:
            if value is not None and value is not False:
                warnings.warn(f"minimize does not use derivatives ({name})", RuntimeWarning, stacklevel=3)
            if name == "jac" and value is True:
                by_own_name["fun"] = WithoutGradient(by_own_name["fun"])
        elif own not in by_own_name or by_own_name[own] is defaults.get(own):
            if own == name or value is not None:
                by_own_name[own] = value
        elif value is not defaults.get(name):
            same = " and ".join(sorted({own, *(theirs for theirs, ours in SAME.items() if ours == own)}))
            raise TypeError(f"{same} was given twice: {by_own_name[own]!r} and {value!r}")
    return by_own_name


class WithoutGradient:
    """SciPy's fun with `jac=True`, which returns (f, gradient): f alone.

    >>> WithoutGradient(lambda x: (x**2, 2 * x))(3)
    9
    """

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun

    def __call__(self, *given: Any) -> Any:
        """The function's value."""
        value = self.fun(*given)
        return value[0] if isinstance(value, tuple | list) else value
