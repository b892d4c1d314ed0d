"""Words for people: what somebody may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def suggestion(name: str, names: Sequence[str], most: int = 1, otherwise: str | None = None) -> str:
    """What somebody may have meant who wrote `name`: the nearest of `names`, or all of them, or `otherwise`.

    >>> suggestion("sigm", ["sigma", "alpha"]), suggestion("Alfa", ["sigma", "ALPHA"])
    ("did you mean 'sigma'?", "did you mean 'ALPHA'?")
    >>> suggestion("x", ["sigma", "alpha"])
    'there are sigma, alpha'
    """
    by_lower_case = {known.lower(): known for known in names}
    near = difflib.get_close_matches(name.lower(), by_lower_case, n=most)
    if not near:
        return otherwise or f"there are {', '.join(names)}"
    return f"did you mean {' or '.join(repr(by_lower_case[match]) for match in near)}?"


def printable(text: object) -> str:
    """The text with everything that is not meant to be seen written out: what a terminal would obey, line ends included.

    Names and messages from files go through this before they are shown.

    >>> print(printable("a\\x1b[31mb\\nCERTIFIED\\u202e"))
    a\\x1b[31mb\\nCERTIFIED\\u202e
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
