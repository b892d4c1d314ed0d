"""What the paper claims, put to the test: every claim in parts, each of which holds or does not in the results there are.

Nothing here is an opinion: a part is true or false by a rule that its words state, and the verdict follows from the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from pcces.studies.results import Comparison, Found, at_equal_steps, by_task, comparisons, feasible
from pcces.studies.statistics import (
    Interval,
    beside_paper,
    clear_at_once,
    difference,
    mean_interval,
    pairs,
    verdict,
    wins,
)

if TYPE_CHECKING:
    from pcces.studies.catalogue import Experiment

REPRODUCED, EXCEEDED, NOT_REACHED, SMALLER, NOT_RUN = (
    "reproduced", "exceeded", "not reached", "not run at full scale", "not run",
)  # fmt: skip
PAPER_SEEDS = 5  # of the paper's tables
LITTLE = 5  # percent that returns may differ by where a choice is said not to matter much
SAFE_RIVALS = ("cpo", "rcpo", "ppo-lag")  # those that know of costs, which the paper compares with


@dataclass(frozen=True)
class Part:
    """A part of a claim: whether it holds, and the numbers behind it."""

    holds: bool
    said: str


@dataclass(frozen=True)
class Finding:
    """What the results say of a claim."""

    parts: Sequence[Part] = ()
    exceeded: bool = False  # if it holds: whether the results are better than the paper's
    remarks: Sequence[str] = ()
    price: str = ""  # what PCCES's part took beside the others'

    @property
    def verdict(self) -> str:
        """In the words of the page.

        >>> Finding([Part(True, "yes"), Part(False, "no")]).verdict, Finding().verdict
        ('not reached', 'not run')
        """
        if not self.parts:
            return NOT_RUN
        if not all(part.holds for part in self.parts):
            return NOT_REACHED
        return EXCEEDED if self.exceeded else REPRODUCED


Judge = Callable[["Experiment", Sequence[Found]], Finding]


def count(number: int, of: int) -> str:
    """A share in words.

    >>> count(3, 10), count(10, 10)
    ('3 of 10', 'all 10')
    """
    return f"all {of}" if number == of else f"{number} of {of}"


# -- returns beside those of others --------------------------------------------------------------------------------------


def nowhere_lower(_: Experiment, found: Sequence[Found]) -> Finding:
    """PCCES's returns are nowhere clearly lower than another algorithm's with as many samples and iterations."""
    parts = [_beside(name, some) for name, some in _by_rival(comparisons(found)).items()]
    literal = _by_rival(comparisons(found, "paper"))
    remarks = [
        f"With the paper's own settings (paper preset) {_beside(*pair, briefly=True).said}" for pair in literal.items()
    ]
    some = [one for one in comparisons(found) if _rival(one)]
    if len(some) > 1:
        remarks.append(_at_once(some))
    if some:
        remarks.append(f"Samples are the policies tried in an iteration, each with its own episodes. {_steps(some)}")
    return Finding(parts, remarks=remarks, price=_price(some) if some else "")


def higher_on_most(experiment: Experiment, found: Sequence[Found]) -> Finding:
    """Besides, they are clearly higher than every other's on most tasks."""
    finding = nowhere_lower(experiment, found)
    by_arm: dict[str, list[bool]] = {}
    for one in filter(_rival, comparisons(found)):
        by_arm.setdefault(place(one.ours), []).append(verdict(one.gap) == "higher")
    if not by_arm:
        return finding
    best = [task for task, higher in by_arm.items() if all(higher)]
    said = f"PCCES's returns are clearly higher than all others' on {count(len(best), len(by_arm))} tasks"
    most = Part(2 * len(best) > len(by_arm), said + (f": {'; '.join(best)}." if best else "."))
    return replace(finding, parts=[*finding.parts, most])


def _rival(one: Comparison) -> bool:
    return one.theirs.asked.algorithm != "pcces"


def _price(some: Sequence[Comparison]) -> str:
    """How many times the steps of the others."""
    more = [one.ours.steps() / one.theirs.steps() for one in some]
    return " to ".join(dict.fromkeys(f"{value:.2g}" for value in (min(more), max(more))))


def _steps(some: Sequence[Comparison]) -> str:
    """What PCCES's returns cost, and what they are after as many steps as the other took."""
    words = [verdict(at_equal_steps(one)) for one in some]
    return (
        f"In all PCCES played {_price(some)} times the steps of the other. Compared after equally many steps: higher in"
        f" {words.count('higher')}, no clear difference in {words.count('no clear difference')}, lower in"
        f" {words.count('lower')} of {len(words)}."
    )


def _at_once(some: Sequence[Comparison]) -> str:
    """What remains clear when luck in so many comparisons is allowed for."""
    words = clear_at_once([pairs(one.ours.returns, one.theirs.returns) for one in some])
    return (
        f"Allowing for luck in all {len(words)} comparisons together (Holm's procedure on paired t tests): clearly higher in"
        f" {words.count('higher')}, lower in {words.count('lower')}."
    )


def _by_rival(some: Sequence[Comparison]) -> dict[str, list[Comparison]]:
    found: dict[str, list[Comparison]] = {}
    for one in some:
        if _rival(one):
            found.setdefault(one.theirs.asked.label, []).append(one)
    return found


def _beside(name: str, some: Sequence[Comparison], briefly: bool = False) -> Part:
    words = [verdict(one.gap) for one in some]
    lower = [f"{place(one.ours)} ({one.gap})" for one, word in zip(some, words) if word == "lower"]
    mostly = [
        f"{place(one.ours)} ({seeds})"
        for one, word in zip(some, words)
        if word != "lower" and (seeds := _lower_on_most(one.ours.returns, one.theirs.returns))
    ]
    won = wins([(one.ours.values("return"), one.theirs.values("return")) for one in some])
    said = (
        f"beside {name}, of {len(some)} comparison{'s' * (len(some) != 1)}: higher in {words.count('higher')}, no clear difference in"
        f" {words.count('no clear difference')}, lower in {len(lower)}"
        + (f": {'; '.join(lower)}" if lower and not briefly else "")
        + (f". Lower on most seeds, though not clearly: {'; '.join(mostly)}" if mostly and not briefly else "")
        + f". A run of PCCES ends higher with probability {won}."
    )
    return Part(not lower, said)


def _lower_on_most(ours: dict[int, float], theirs: dict[int, float]) -> str:
    """On how many seeds, if on most: a mean may hide it behind one unlucky run, and be unclear because of that run."""
    both = set(ours) & set(theirs)
    lower = sum(ours[seed] < theirs[seed] for seed in both)
    return count(lower, len(both)) if 2 * lower > len(both) else ""


def place(one: Found) -> str:
    """Where an arm ran, in a word or two."""
    return one.asked.task + (f", {one.asked.population} samples" if one.asked.population else "")


# -- costs ---------------------------------------------------------------------------------------------------------------


def feasible_where_others_are_not(_: Experiment, found: Sequence[Found]) -> Finding:
    """PCCES's policies keep their limits, the others' not always, and its returns are not lower."""
    ours = [one for one in found if one.ours]
    others = [one for one in found if one.asked.algorithm in SAFE_RIVALS]
    if not ours or not others:
        return Finding()
    parts = [_feasible(ours), _not_always(others), _at_no_lower_return(ours, others)]
    literal = [one for one in found if one.asked.preset == "paper"]
    remarks = [f"With the paper's own settings (paper preset) {_feasible(literal).said}"] if literal else []
    returned = ", ".join(
        f"{name} {sum(o.certified() for o in some)} of {_runs(some)}"
        for name, some in _labelled([one for one in found if one.asked.algorithm != "pcces"]).items()
    )
    remarks.append(
        "Here every algorithm returns the best of its iterates that fresh episodes certify, not its last one. Certified"
        f" policies, that way: {returned}."
    )
    remarks.append(f"Runs of PCCES that end training above the limit: {count(_over(ours), _runs(ours))}.")
    some = [one for one in comparisons(found) if one.theirs.asked.algorithm in SAFE_RIVALS]
    return Finding(
        parts,
        remarks=[*remarks, _on_the_way(some), _steps(some)] if some else remarks,
        price=_price(some) if some else "",
    )


def _on_the_way(some: Sequence[Comparison]) -> str:
    """How often the policies that a search stands at are over the limit, beside the others'."""
    shares = [[dict(zip(of.runs, of.values("over"))) for of in (one.ours, one.theirs)] for one in some]
    words = [verdict(difference(*both)) for both in shares]
    return (
        f"Of the policies that the search stands at, iteration by iteration, the share over the limit is lower than the other's in"
        f" {words.count('lower')}, not clearly different in {words.count('no clear difference')}, higher in {words.count('higher')} of"
        f" {len(words)} comparisons."
    )


def _labelled(found: Sequence[Found]) -> dict[str, list[Found]]:
    named: dict[str, list[Found]] = {}
    for one in found:
        named.setdefault(one.asked.label, []).append(one)
    return named


def _feasible(ours: Sequence[Found]) -> Part:
    total = _runs(ours)
    kept, certified = sum(one.keeps() for one in ours), sum(one.certified() for one in ours)
    where = "".join(
        f"; {one.asked.task}: {count(one.keeps(), len(one.runs))}" for one in ours if one.keeps() < len(one.runs)
    )
    said = f"policies returned by PCCES that cost no more than allowed: {count(kept, total)}{where} (certified: {count(certified, total)})."
    return Part(kept == total, said)


def _not_always(others: Sequence[Found]) -> Part:
    """The paper looks at the end of training."""
    said, some_fail = [], True
    for name, some in _labelled(others).items():
        some_fail = some_fail and _over(some) > 0
        said.append(f"{name} {count(_over(some), _runs(some))}")
    return Part(some_fail, f"runs of the others that end training above the limit: {', '.join(said)}.")


def _over(some: Sequence[Found]) -> int:
    """How many runs cost more than they may in their last iterations."""
    return sum(cost > (one.limit or 0.0) for one in some for cost in one.last_costs())


def _runs(some: Sequence[Found]) -> int:
    return sum(len(one.runs) for one in some)


def _at_no_lower_return(ours: Sequence[Found], others: Sequence[Found]) -> Part:
    """Beside the runs of the others that keep their limits: breaking them is no achievement."""
    lower, mostly, compared = [], [], 0
    for mine in ours:
        for theirs in others:
            if theirs.asked.task != mine.asked.task or theirs.ran.iterations != mine.ran.iterations:
                continue
            returns = {seed: theirs.returns[seed] for seed, run in theirs.runs.items() if feasible(run)}
            if len(set(returns) & set(mine.runs)) < 2:
                continue
            compared += 1
            gap, name = difference(mine.returns, returns), f"{theirs.asked.label} on {mine.asked.task}"
            if verdict(gap) == "lower":
                lower.append(f"{name} ({gap})")
            elif seeds := _lower_on_most(mine.returns, returns):
                mostly.append(f"{name} ({seeds})")
    names = ", ".join(dict.fromkeys(one.asked.label for one in others))
    said = f"returns clearly lower than those of feasible policies of {names}, in {compared} comparisons: {len(lower)}"
    said += f": {'; '.join(lower)}." if lower else "."
    return Part(not lower, said + (f" Lower on most seeds, though not clearly: {'; '.join(mostly)}." if mostly else ""))


def over_its_limit(experiment: Experiment, found: Sequence[Found]) -> Finding:
    """CPO ends training above its limit, whatever its settings; if it never does, it is better here than in the paper."""
    parts, kept = [], 0
    for one in found:
        cost, limit = mean_interval(one.last_costs()), one.limit or 0.0
        paper = experiment.reported[one.asked.key]["cost"]
        side = {"higher": "above", "lower": "below"}.get(verdict(Interval(*(v - limit for v in cost))), "about at")
        said = f"{one.name}: cost {cost} at the end of training, {side} the limit of {limit:g} (paper {paper})."
        parts.append(Part(side == "above", said))
        kept += side == "below"
    if parts and kept == len(parts):
        remark = "Our CPO keeps its limit where the paper's did not: *exceeded* is about CPO, not about PCCES."
        return Finding([Part(True, part.said) for part in parts], exceeded=True, remarks=[remark])
    return Finding(parts)


# -- numbers of the paper ------------------------------------------------------------------------------------------------


def as_high_as_reported(experiment: Experiment, found: Sequence[Found]) -> Finding:
    """Returns are not below the paper's, costs below their limits, and the limit's choice matters little."""
    parts, higher = [], 0
    for one in found:
        paper = experiment.reported[one.asked.key]["return"]
        gap = beside_paper(one.values("return"), paper.mean, paper.deviation, PAPER_SEEDS)
        higher += verdict(gap) == "higher"
        said = (
            f"{one.asked.task} at {one.limit:g}: return {mean_interval(one.values('return'))}, paper {paper}: difference"
            f" {gap}, {verdict(gap)}. Policies that cost no more than allowed: {count(one.keeps(), len(one.runs))}."
        )
        parts.append(Part(verdict(gap) != "lower" and one.keeps() == len(one.runs), said))
    for task, some in by_task(found).items():
        means = [float(np.mean(one.values("return"))) for one in some]
        theirs = [experiment.reported[one.asked.key]["return"].mean for one in some]
        ours, paper_s = (100 * (max(m) - min(m)) / abs(np.mean(m)) for m in (means, theirs))
        said = f"{task}: mean returns differ by {ours:.1f} % between the thresholds, the paper's by {paper_s:.1f} % ({LITTLE} % is little)."
        parts.append(Part(bool(ours <= LITTLE), said))
    return Finding(parts, exceeded=higher > 0)


def at_the_mark(experiment: Experiment, found: Sequence[Found]) -> Finding:
    """Mean returns reach their marks, to four digits."""
    parts = []
    for one in found:
        mark, returns = experiment.reported[one.asked.key]["return"].mean, one.values("return")
        said = f"{place(one)}: return {mean_interval(returns)}, the lowest of {len(returns)} runs {min(returns):.4g}; the mark is {mark:g}."
        parts.append(Part(float(f"{np.mean(returns):.4g}") >= mark, said))
    return Finding(parts)


# -- entropy and estimates -----------------------------------------------------------------------------------------------


def small_steps_do_not_matter(_: Experiment, found: Sequence[Found]) -> Finding:
    """mu 1e-4 or 2e-4 is the same, mu 0.1 is not, and on Ant mu 1e-4 beats 0."""
    at = {(one.asked.task, one.settings["mu"]): one for one in found}
    tasks = list(by_task(found))

    def gaps(first: float, second: float, tasks: Sequence[str]) -> list[tuple[str, str]]:
        pairs = [(at.get((task, first)), at.get((task, second)), task) for task in tasks]
        both = [(difference(a.returns, b.returns), task) for a, b, task in pairs if a and b and len(a.runs) > 1]
        return [(verdict(gap), f"{task} {gap}") for gap, task in both]

    parts = []
    small, large = gaps(2e-4, 1e-4, tasks), gaps(1e-1, 1e-4, tasks)
    if small:
        clear = [said for word, said in small if word != "no clear difference"]
        said = f"returns with mu 2e-4 that differ clearly from those with 1e-4: {len(clear)} of {len(small)} tasks"
        parts.append(Part(not clear, said + (f": {'; '.join(clear)}." if clear else ".")))
    if large:
        clear = [said for word, said in large if word != "no clear difference"]
        said = f"returns with mu 0.1 that differ clearly from those with 1e-4: {len(clear)} of {len(large)} tasks"
        parts.append(Part(bool(clear), said + (f": {'; '.join(clear)}." if clear else ".")))
    for word, said in gaps(1e-4, 0.0, [task for task in tasks if task.startswith("Ant")]):
        parts.append(Part(word == "higher", f"mu 1e-4 beside 0: {said}, {word}."))
    others = [said for _, said in gaps(1e-4, 0.0, [task for task in tasks if not task.startswith("Ant")])]
    return Finding(parts, remarks=[f"mu 1e-4 beside 0 elsewhere: {'; '.join(others)}."] if others else [])


def entropy_within_bounds(_: Experiment, found: Sequence[Found]) -> Finding:
    """The entropy of the policies returned lies between its bounds."""
    parts = []
    for name, some in _labelled(found).items():
        inside = {one.asked.task: sum(map(_inside, one.runs.values())) for one in some}
        total = _runs(some)
        outside = "".join(
            f"; {one.asked.task}: {count(inside[one.asked.task], len(one.runs))}"
            for one in some
            if inside[one.asked.task] < len(one.runs)
        )
        certified = count(sum(one.certified() for one in some), total)
        said = f"{name}: policies returned whose entropy is within its bounds: {count(sum(inside.values()), total)}{outside} (certified: {certified})."
        parts.append(Part(not outside, said))
    return Finding(parts)


def _inside(run: dict) -> bool:
    low, high = run["entropy_bounds"]
    return (low is None or run["entropy"] >= low) and (high is None or run["entropy"] <= high)


def falls_as_one_over_n(_: Experiment, found: Sequence[Found]) -> Finding:
    """The variance of an average of N episodes is that of one divided by N."""
    parts, remarks = [], []
    for one in found:
        measured = [run["variance"] for run in one.runs.values()]
        slopes = [slope(m["samples"], m["f"]) for m in measured if min(m["f"]) > 0]
        if not slopes:
            remarks.append(f"{one.asked.task}: the episodes of these policies do not differ at all.")
            continue
        exponent = mean_interval(slopes)
        said = (
            f"{one.asked.task}: the variance of an average of N episodes falls as N to the power {exponent} (-1 is asked for);"
            f" a single episode has {float(np.median([m['f'][0] for m in measured])):.3g}, {measured[0]['samples'][-1]}"
            f" have {float(np.median([m['f'][-1] for m in measured])):.3g} (medians)."
        )
        parts.append(Part(exponent.low - 0.05 <= -1 <= exponent.high + 0.05, said))
    return Finding(parts, remarks=remarks)


def slope(samples: Sequence[float], values: Sequence[float]) -> float:
    """Of a straight line through the logarithms; means of more samples are fewer, so their variance is less sure.

    >>> round(slope([1, 2, 4], [8.0, 4.0, 2.0]), 3)
    -1.0
    """
    weights = 1 / np.sqrt(np.asarray(samples, dtype=float))
    return float(np.polyfit(np.log(samples), np.log(values), 1, w=weights)[0])
