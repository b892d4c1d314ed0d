"""Settings that say what they are: a default, one line of meaning, and how often people change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, field, fields
from typing import Any, NamedTuple

FIRST, SOMETIMES, RESEARCH = USES = ("touch first", "sometimes", "research")


class Explained(NamedTuple):
    """What a person wants to know of a setting."""

    name: str
    default: str
    """as a person would type it"""
    words: str
    use: str
    """one of USES"""


def setting(default: Any, words: str, use: str = RESEARCH, text: str = "") -> Any:
    """A field of a dataclass, with one line that says what it is, and its default as a person would type it if that is not how
    it looks.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Search:
    ...     sigma0: float = setting(0.1, "initial step size", SOMETIMES)
    >>> Search().sigma0, settings_in(Search)
    (0.1, [Explained(name='sigma0', default='0.1', words='initial step size', use='sometimes')])
    """
    return field(default=default, metadata={"words": words, "use": use, "text": text})


def settings_in(kind: type) -> list[Explained]:
    """The settings of a dataclass. A class that only changes a default keeps the words of the class it inherits from.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Search:
    ...     sigma0: float = setting(0.1, "initial step size", SOMETIMES)
    >>> @dataclass
    ... class Bold(Search):
    ...     sigma0: float = 1.0
    >>> settings_in(Bold)
    [Explained(name='sigma0', default='1', words='initial step size', use='sometimes')]
    """
    explained = []
    for each in fields(kind):
        homes = (getattr(parent, "__dataclass_fields__", {}).get(each.name) for parent in kind.__mro__)
        said: Mapping[str, str] = next((home.metadata for home in homes if home is not None and home.metadata), {})
        default = each.metadata.get("text") or ("" if each.default is MISSING else shown(each.default))
        explained.append(Explained(each.name, default, said.get("words", ""), said.get("use", RESEARCH)))
    return explained


def shown(value: Any) -> str:
    """A default as --set takes it.

    >>> shown(0.0001), shown(1e3), shown("race")
    ('0.0001', '1000', 'race')
    """
    return f"{value:g}".replace("e-0", "e-") if isinstance(value, float) else str(value)


def by_use(settings: Iterable[Explained]) -> dict[str, list[Explained]]:
    """The same in groups, the most touched first; no group is empty.

    >>> list(by_use([Explained("a", "1", "", RESEARCH), Explained("b", "2", "", FIRST)]))
    ['touch first', 'research']
    """
    known = list(settings)
    groups = {use: [each for each in known if each.use == use] for use in USES}
    return {use: group for use, group in groups.items() if group}
