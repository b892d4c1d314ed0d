"""The claims of the paper, tested on the results. Every claim has parts, and each part holds or does not.

A part is true or false by the rule that its text states, and the verdict follows from the parts.
"""

from pcces.studies.claims.costs import feasible_where_others_are_not, over_its_limit
from pcces.studies.claims.estimates import entropy_within_bounds, falls_as_one_over_n, small_steps_do_not_matter
from pcces.studies.claims.finding import EXCEEDED, NOT_REACHED, NOT_RUN, REPRODUCED, SMALLER, ClaimPart, Finding, count
from pcces.studies.claims.returns import as_high_as_reported, at_the_mark, by_rival, higher_on_most, nowhere_lower

__all__ = [
    "EXCEEDED", "NOT_REACHED", "NOT_RUN", "REPRODUCED", "SMALLER", "ClaimPart", "Finding", "as_high_as_reported",
    "at_the_mark", "by_rival", "count", "entropy_within_bounds", "falls_as_one_over_n", "feasible_where_others_are_not",
    "higher_on_most", "nowhere_lower", "over_its_limit", "small_steps_do_not_matter",
]  # fmt: skip
