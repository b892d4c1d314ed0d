"""What the results say of a claim: parts that hold or do not, and the verdict that follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

REPRODUCED, EXCEEDED, NOT_REACHED, SMALLER, NOT_RUN = (
    "reproduced", "exceeded", "not reached", "not run at full scale", "not run",
)  # fmt: skip


@dataclass(frozen=True)
class ClaimPart:
    """A part of a claim: whether it holds, and the numbers behind it."""

    holds: bool
    said: str


@dataclass(frozen=True)
class Finding:
    """What the results say of a claim."""

    parts: Sequence[ClaimPart] = ()
    exceeded: bool = False  # if it holds: whether the results are better than the paper's
    remarks: Sequence[str] = ()
    price: str = ""  # what PCCES's part took beside the others'

    @property
    def verdict(self) -> str:
        """In the words of the page.

        >>> Finding([ClaimPart(True, "yes"), ClaimPart(False, "no")]).verdict, Finding().verdict
        ('not reached', 'not run')
        """
        if not self.parts:
            return NOT_RUN
        if not all(part.holds for part in self.parts):
            return NOT_REACHED
        return EXCEEDED if self.exceeded else REPRODUCED


def count(number: int, of: int) -> str:
    """A share in words.

    >>> count(3, 10), count(10, 10)
    ('3 of 10', 'all 10')
    """
    return f"all {of}" if number == of else f"{number} of {of}"
