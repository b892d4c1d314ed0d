"""What constraints are called: by the keys of the dictionary that fun returns, or by the functions that were given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any


def names_of(function: Callable[..., Any], values: int) -> list[str]:
    """The names of the values of a constraint function, made from its own name. Empty texts if it has none.

    >>> def heat(x): ...
    >>> names_of(heat, 1), names_of(heat, 2), names_of(lambda x: x, 1)
    (['heat'], ['heat[0]', 'heat[1]'], [''])
    """
    labels = getattr(function, "labels", None)
    if labels is not None:
        return list(labels)
    name = name_of(function)
    return [name] * values if values == 1 or not name else [f"{name}[{i}]" for i in range(values)]


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function, or an empty text.

    >>> from functools import partial
    >>> name_of(partial(max, 3)), name_of(lambda: 1)
    ('max', '')
    """
    name = getattr(getattr(function, "func", function), "__name__", "")
    return "" if name == "<lambda>" else str(name)


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """A different name for each constraint: c0, c1, .. for those without a name; equal names get a number appended.

    >>> distinct(["heat", "", "load", "load"])
    ('heat', 'c1', 'load 2', 'load 3')
    """
    filled = [name or f"c{j}" for j, name in enumerate(names)]
    times = Counter(filled)
    return tuple(f"{name} {j}" if times[name] > 1 else name for j, name in enumerate(filled))


def rearranged(names: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The position of each requested name. If several names are equal, each request takes the next of them.

    >>> rearranged(["b", "", "a", ""], ["a", "b", "", ""])
    [2, 0, 1, 3]
    """
    by_name = sorted(range(len(names)), key=lambda i: names[i])
    places = sorted(range(len(wanted)), key=lambda i: wanted[i])
    return [by_name[rank] for _, rank in sorted(zip(places, range(len(places))))]


def called(j: int, names: Sequence[str]) -> str:
    """A constraint in a sentence.

    >>> called(0, ["heat"]), called(1, ["c0", "c1"]), called(0, [])
    ('constraint 0 (heat)', 'constraint 1', 'constraint 0')
    """
    named = j < len(names) and names[j] != f"c{j}"
    return f"constraint {j} ({names[j]})" if named else f"constraint {j}"
