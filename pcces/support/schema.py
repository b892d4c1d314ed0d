"""Plain data from files, held against what it should be: a stranger's file, or a damaged one, may hold anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pcces.support.text import printable, short

LARGEST = 1e300  # a number above it overflows in sums
LONGEST = 10_000  # letters of a name
DEEPEST = 50  # lists within lists


class Kind(NamedTuple):
    """What a value must be, in words, and whether it is."""

    words: str
    fits: Callable[[Any], bool]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def whole(least: int, most: int = 2**63) -> Kind:
    """A whole number from `least` to `most`."""
    return Kind(
        f"a whole number of at least {least}",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most,
    )


def optional(kind: Kind) -> Kind:
    """That, or nothing."""
    return Kind(f"{kind.words}, or null", lambda value: value is None or kind.fits(value))


def several(kind: Kind, count: int | None = None) -> Kind:
    """A list of them, of so many if `count` says so."""
    return Kind(
        f"a list{'' if count is None else f' of {count}'}, each {kind.words}",
        lambda value: (
            isinstance(value, list | tuple) and count in (None, len(value)) and all(kind.fits(item) for item in value)
        ),
    )


NUMBER = Kind("a finite number", _number)
ANY_NUMBER = Kind("a number", lambda value: isinstance(value, float) or _number(value))
SHARE = Kind("a number between 0 and 1", lambda value: _number(value) and 0 < value < 1)
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
TEXT = Kind("text", lambda value: isinstance(value, str) and len(value) <= LONGEST)
NAMES = Kind("names with values", lambda value: isinstance(value, dict))


def check(data: Any, kinds: Mapping[str, Kind], what: str = "", needed: set[str] | None = None) -> None:
    """Raise a ValueError that says what is missing or wrong. Names that are not `needed` may be missing (None: all are).

    >>> check({"seed": -1}, {"seed": whole(0)})
    Traceback (most recent call last):
    ...
    ValueError: seed must be a whole number of at least 0, got -1
    """
    inside = f"{what}." if what else ""
    if not isinstance(data, dict):
        raise ValueError(f"{what or 'it'} must be names with values, got {short(repr(data))}")  # noqa: TRY004 (wrong content)
    if missing := (set(kinds) if needed is None else needed) - set(data):
        raise ValueError(f"it lacks {', '.join(sorted(inside + name for name in missing))}")
    for name, kind in kinds.items():
        if name in data and not kind.fits(data[name]):
            raise ValueError(f"{inside}{name} must be {kind.words}, got {short(repr(data[name]))}")


def cleaned(data: Any, depth: int = 0) -> Any:
    """The same data, whose texts hold nothing that a terminal would obey; a ValueError where lists hold lists without end.

    >>> cleaned({"task": ["a\\x1b[2J", 1]})
    {'task': ['a\\\\x1b[2J', 1]}
    """
    if depth > DEEPEST:
        raise ValueError(f"it has lists within lists, more than {DEEPEST} deep")
    if isinstance(data, dict):
        return {printable(name): cleaned(value, depth + 1) for name, value in data.items()}
    if isinstance(data, list):
        return [cleaned(value, depth + 1) for value in data]
    return printable(data) if isinstance(data, str) else data
