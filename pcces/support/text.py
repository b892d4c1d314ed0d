"""Words for people: what somebody may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence


def suggestion(
    name: str,
    names: Sequence[str],
    most: int = 1,
    otherwise: str | None = None,
    meanings: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """What somebody may have meant who wrote `name`: the nearest of `names` (`nearest`), or all of them, or `otherwise`.

    >>> suggestion("sigm", ["sigma", "alpha"]), suggestion("Alfa", ["sigma", "ALPHA"])
    ("did you mean 'sigma'?", "did you mean 'ALPHA'?")
    >>> suggestion("x", ["sigma", "alpha"])
    'there are sigma, alpha'
    """
    near = nearest(name, names, most, meanings)
    if not near:
        return otherwise or f"there are {', '.join(names)}"
    return f"did you mean {' or '.join(map(repr, near))}?"


def nearest(
    name: str, names: Sequence[str], most: int = 1, meanings: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """At most so many of `names`: those that mean the same by a table of `meanings`, or else are spelt most like it.

    >>> nearest("LR", ["rate", "l2"], meanings={"lr": ("rate", "speed")}), nearest("--work-ers", ["workers"])
    (['rate'], ['workers'])
    """
    by_word = {_word(known): known for known in names}
    same = {_word(other): map(_word, meant) for other, meant in (meanings or {}).items()}.get(_word(name), ())
    meant = [by_word[word] for word in same if word in by_word]
    if meant:
        return meant[:most]
    near = [by_word[match] for match in difflib.get_close_matches(_word(name), by_word, n=most + 3)]
    return sorted(near, key=lambda known: -difflib.SequenceMatcher(None, name.lower(), known.lower()).ratio())[:most]


def _word(name: str) -> str:
    """Its letters and digits."""
    return "".join(filter(str.isalnum, name.lower()))


def printable(text: object) -> str:
    """The text with everything that is not meant to be seen written out: what a terminal would obey, line ends included.

    Names and messages from files go through this before they are shown.

    >>> print(printable("a\\x1b[31mb\\nCERTIFIED\\u202e"))
    a\\x1b[31mb\\nCERTIFIED\\u202e
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def short(text: object, most: int = 80) -> str:
    """The text, printable, and cut off where it is longer than anybody reads.

    >>> short("a" * 100, most=10), short("a\\n")
    ('aaaaaaa...', 'a\\\\n')
    """
    whole = printable(str(text)[: most + 1])
    return whole if len(whole) <= most else f"{whole[: most - 3]}..."
