"""Plain data that JSON can hold. JSON has no infinity and no nan: they are written as null."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def jsonable(data: Any) -> Any:
    """The same data as JSON can hold it: arrays and tuples as lists, numbers of array libraries as Python's, paths as text.

    >>> import numpy as np
    >>> jsonable({"a": (np.float32(1), math.inf), "b": Path("x"), "c": np.arange(2)})
    {'a': [1.0, None], 'b': 'x', 'c': [0, 1]}
    """
    if isinstance(data, dict):
        return {name: jsonable(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [jsonable(value) for value in data]
    if hasattr(data, "tolist"):
        return jsonable(data.tolist())
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return str(data) if isinstance(data, Path) else data


def interval(ends: Sequence[float | None]) -> tuple[float, float]:
    """A low and a high end, where None stands for one that is open: people write that, and `jsonable` does.

    >>> jsonable((-math.inf, 2.0)), interval([None, 2.0])
    ([None, 2.0], (-inf, 2.0))
    """
    low, high = ends
    return -math.inf if low is None else low, math.inf if high is None else high


def to_json(data: Any, indent: int | None = 1) -> str:
    """`jsonable` data as text, without spaces where `indent` is None.

    >>> to_json({"limit": math.inf}, indent=None)
    '{"limit":null}'
    """
    separators = None if indent else (",", ":")
    return json.dumps(jsonable(data), indent=indent, separators=separators, allow_nan=False)
