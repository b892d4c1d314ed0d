"""The certificate of a search as the sentence that `res.message` begins with."""

from __future__ import annotations

from collections.abc import Sequence

from pcces.core.certificate import Certificate
from pcces.core.limits import PLAIN, Limit

BOUNDS = {
    "betting": "betting bound",
    "binomial": "binomial bound",
    "stated": "no noise, as stated",
    "t": "Student t",
    "two values": "only two values seen",
    "repeats": "no noise seen",
    "dependent": "dependent samples",
}


def certificate_in_words(certificate: Certificate, limits: Sequence[Limit] = ()) -> str:
    """What was certified, from how many samples, and by which bound. `limits` are those of the constraints; none: means at most 0.

    >>> certificate_in_words(Certificate(True, 0.95, (-0.2, -0.1), 400, "betting"))
    'Certified: with 95 % confidence all mean constraints are <= 0; largest upper bound -0.1; 400 fresh samples; betting bound (guaranteed)'
    >>> certificate_in_words(Certificate(False, 0.95, (-0.2, 0.1), 400, "t"))
    'Not certified: the largest upper bound is 0.1, but must be <= 0; 400 fresh samples; Student t'
    """
    c = certificate
    notes = "".join(f". {note}" for note in (c.failures(), c.warning()) if note)
    if not c.upper_bounds and c.holds:
        return f"Feasible: there are no constraints but the bounds{notes}"
    if not c.holds and c.fails_too_often and c.bounds_hold:
        return f"Not certified: evaluations may fail too often{notes}"
    if not c.upper_bounds:
        return "Not certified: there was no point to test"
    largest = max(c.upper_bounds)
    bound = ", ".join(BOUNDS.get(name, name) for name in c.methods)
    source = f"{c.samples} fresh sample{'s' * (c.samples != 1)}; {bound}"
    if not c.holds:
        return (
            f"Not certified: the largest upper bound is {largest:.3g}, but must be <= {c.tolerance:g}; {source}{notes}"
        )
    plain = all(limit == PLAIN for limit in limits)
    what = f"all mean constraints are <= {c.tolerance:g}" if plain else "all limits hold"
    sure = f"with {100 * c.confidence:g} % confidence {what}"
    return f"Certified: {sure}; largest upper bound {largest:.3g}; {source} ({c.grade}){notes}"
