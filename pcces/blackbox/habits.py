"""The names that SciPy's users know, as ours."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

SAME = {"tol": "sigma_stop", "maxiter": "max_iterations", "maxfev": "max_evaluations", "disp": "progress"}
DERIVATIVES = ("jac", "hess", "hessp")  # SciPy hands them to every method


def translated(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `minimize` by our names: those in its `options` and its `more` beside the others, without derivatives.

    >>> defaults = {"maxfev": None, "max_evaluations": None}
    >>> translated({"x0": [0.0], "maxfev": 100, "more": {"jac": None}, "options": {"disp": True}} | {"tol": None}, defaults)
    {'x0': [0.0], 'max_evaluations': 100, 'progress': True}
    """
    plain = {name: value for name, value in given.items() if name not in ("more", "options")}
    found: dict[str, Any] = {}
    for name, value in [*plain.items(), *given["more"].items(), *(given["options"] or {}).items()]:
        own = SAME.get(name, name)
        if name in DERIVATIVES:
            if value is not None and value is not False:
                warnings.warn(f"minimize does not use derivatives ({name})", RuntimeWarning, stacklevel=3)
        elif own not in found or found[own] is defaults.get(own):
            if own == name or value is not None:
                found[own] = value
        elif value is not defaults.get(name):
            same = " and ".join(sorted({own, *(theirs for theirs, ours in SAME.items() if ours == own)}))
            raise TypeError(f"{same} was given twice: {found[own]!r} and {value!r}")
    return found
