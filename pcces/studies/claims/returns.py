"""Claims about returns: beside those of other algorithms, and beside numbers that were reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pcces.studies.arm_results import ArmResult, Comparison, at_equal_steps, by_task, comparisons
from pcces.studies.claims.finding import ClaimPart, Finding, count
from pcces.studies.experiment import Experiment
from pcces.studies.protocol import OF_THE_PAPER
from pcces.studies.statistics import Interval, beside_paper, clear_at_once, mean_interval, pairs, verdict, wins

PAPER_SEEDS = 5  # of the paper's tables
LITTLE = 5  # percent that returns may differ by where a choice is said not to matter much


# -- beside those of others ----------------------------------------------------------------------------------------------


def nowhere_lower(_: Experiment, results: Sequence[ArmResult]) -> Finding:
    """PCCES's returns are nowhere clearly lower than another algorithm's with as many samples and iterations."""
    parts = [_beside(name, several) for name, several in _by_rival(comparisons(results)).items()]
    remarks = [
        f"{words} {_beside(name, several, briefly=True).said}"
        for preset, words in OF_THE_PAPER.items()
        for name, several in _by_rival(comparisons(results, preset)).items()
    ]
    beside_rivals = [comparison for comparison in comparisons(results) if _is_rival(comparison)]
    if len(beside_rivals) > 1:
        remarks.append(_at_once(beside_rivals))
    if not beside_rivals:
        return Finding(parts, remarks=remarks)
    remarks.append(
        f"Samples are the policies tried in an iteration, each with its own episodes. {steps(beside_rivals)}"
    )
    return Finding(parts, remarks=remarks, price=price(beside_rivals))


def higher_on_most(experiment: Experiment, results: Sequence[ArmResult]) -> Finding:
    """Besides, they are clearly higher than every other's on most tasks."""
    finding = nowhere_lower(experiment, results)
    by_place: dict[str, list[bool]] = {}
    for comparison in filter(_is_rival, comparisons(results)):
        by_place.setdefault(comparison.theirs.place, []).append(verdict(comparison.gap) == "higher")
    if not by_place:
        return finding
    best = [place for place, higher in by_place.items() if all(higher)]
    said = f"PCCES's returns are clearly higher than all others' on {count(len(best), len(by_place))} tasks"
    most = ClaimPart(2 * len(best) > len(by_place), said + (f": {'; '.join(best)}." if best else "."))
    return replace(finding, parts=[*finding.parts, most])


def price(several: Sequence[Comparison]) -> str:
    """How many times the steps of the others."""
    more = [comparison.ours.steps() / comparison.theirs.steps() for comparison in several]
    return " to ".join(dict.fromkeys(f"{value:.2g}" for value in (min(more), max(more))))


def steps(several: Sequence[Comparison]) -> str:
    """What PCCES's returns cost, and what they are after as many steps as the other took."""
    words = [verdict(at_equal_steps(comparison)) for comparison in several]
    return (
        f"In all PCCES played {price(several)} times the steps of the other. Compared after equally many steps: higher in"
        f" {words.count('higher')}, no clear difference in {words.count('no clear difference')}, lower in"
        f" {words.count('lower')} of {len(words)}."
    )


def lower_on_most(ours: dict[int, float], theirs: dict[int, float]) -> str:
    """On how many seeds, if on most: a mean may hide it behind one unlucky run, and be unclear because of that run."""
    both = set(ours) & set(theirs)
    lower = sum(ours[seed] < theirs[seed] for seed in both)
    return count(lower, len(both)) if 2 * lower > len(both) else ""


def _is_rival(comparison: Comparison) -> bool:
    return comparison.theirs.asked.algorithm != "pcces"


def _at_once(several: Sequence[Comparison]) -> str:
    """What remains clear when luck in so many comparisons is allowed for."""
    words = clear_at_once([pairs(comparison.ours.returns, comparison.theirs.returns) for comparison in several])
    return (
        f"Allowing for luck in all {len(words)} comparisons together (Holm's procedure on paired t tests): clearly higher in"
        f" {words.count('higher')}, lower in {words.count('lower')}."
    )


def _by_rival(several: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    rivals: dict[str, list[Comparison]] = {}
    for comparison in filter(_is_rival, several):
        rivals.setdefault(comparison.theirs.asked.label, []).append(comparison)
    return rivals


def _beside(name: str, several: Sequence[Comparison], briefly: bool = False) -> ClaimPart:
    words = [verdict(comparison.gap) for comparison in several]
    lower = [f"{c.theirs.place} ({c.gap})" for c, word in zip(several, words) if word == "lower"]
    mostly = [
        f"{c.theirs.place} ({seeds})"
        for c, word in zip(several, words)
        if word != "lower" and (seeds := lower_on_most(c.ours.returns, c.theirs.returns))
    ]
    won = wins([(c.ours.values("return"), c.theirs.values("return")) for c in several])
    said = (
        f"beside {name}, of {len(several)} comparison{'s' * (len(several) != 1)}: higher in {words.count('higher')}, no clear difference in"
        f" {words.count('no clear difference')}, lower in {len(lower)}"
        + (f": {'; '.join(lower)}" if lower and not briefly else "")
        + (f". Lower on most seeds, though not clearly: {'; '.join(mostly)}" if mostly and not briefly else "")
        + f". A run of PCCES ends higher with probability {won}."
    )
    return ClaimPart(not lower, said)


# -- beside numbers that were reported -----------------------------------------------------------------------------------


def as_high_as_reported(experiment: Experiment, results: Sequence[ArmResult]) -> Finding:
    """Returns are not below the paper's, costs below their limits, and the limit's choice matters little."""
    parts, higher = [], 0
    by_default = [result for result in results if result.asked.preset not in OF_THE_PAPER]
    for result in by_default:
        part, gap = _beside_reported(experiment, result)
        higher += verdict(gap) == "higher"
        parts.append(part)
    for task, on_task in by_task(by_default).items():
        means = [float(np.mean(result.values("return"))) for result in on_task]
        theirs = [experiment.reported[result.asked.key]["return"].mean for result in on_task]
        ours, papers = (100 * (max(m) - min(m)) / abs(np.mean(m)) for m in (means, theirs))
        said = f"{task}: mean returns differ by {ours:.1f} % between the thresholds, the paper's by {papers:.1f} % ({LITTLE} % is little)."
        parts.append(ClaimPart(bool(ours <= LITTLE), said))
    remarks = [
        f"{words} {_beside_reported(experiment, result)[0].said}"
        for preset, words in OF_THE_PAPER.items()
        for result in results
        if result.asked.preset == preset
    ]
    return Finding(parts, exceeded=higher > 0, remarks=remarks)


def _beside_reported(experiment: Experiment, result: ArmResult) -> tuple[ClaimPart, Interval]:
    paper = experiment.reported[result.asked.key]["return"]
    gap = beside_paper(result.values("return"), paper.mean, paper.deviation, PAPER_SEEDS)
    said = (
        f"{result.asked.task} at {result.limit:g}: return {mean_interval(result.values('return'))}, paper {paper}: difference"
        f" {gap}, {verdict(gap)}. Policies that cost no more than allowed: {count(result.keeps(), len(result.runs))}."
    )
    return ClaimPart(verdict(gap) != "lower" and result.keeps() == len(result.runs), said), gap


def at_the_mark(experiment: Experiment, results: Sequence[ArmResult]) -> Finding:
    """Mean returns reach their marks, to four digits."""
    parts = []
    for result in results:
        mark, returns = experiment.reported[result.asked.key]["return"].mean, result.values("return")
        said = f"{result.place}: return {mean_interval(returns)}, the lowest of {len(returns)} runs {min(returns):.4g}; the mark is {mark:g}."
        parts.append(ClaimPart(float(f"{np.mean(returns):.4g}") >= mark, said))
    return Finding(parts)
