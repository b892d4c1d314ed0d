"""Whether a claim holds, in words, and how much of it was tested."""

from __future__ import annotations

from collections.abc import Sequence

from pcces.studies.arm_results import ArmResult
from pcces.studies.catalogue import EXPERIMENTS
from pcces.studies.claims import NOT_RUN, REPRODUCED, SMALLER, Finding
from pcces.studies.experiment import Experiment, Headline


def judged(experiment: Experiment, results: Sequence[ArmResult]) -> tuple[str, Finding]:
    """The verdict in words, and what is behind it."""
    finding = experiment.judge(experiment, results)
    if not results or not finding.parts:
        return NOT_RUN, finding
    if sum(result.full for result in results) < len(experiment.arms):
        return f"{SMALLER}; so far {finding.verdict}", finding
    return finding.verdict, finding


def how_much(experiment: Experiment, results: Sequence[ArmResult]) -> str:
    """How much of an experiment there is."""
    full, arms = sum(result.full for result in results), len(experiment.arms)
    if not results:
        return f"none of {arms} arms has run"
    less = len(results) - full
    seeds = "one seed" if experiment.seeds == 1 else f"{experiment.seeds} seeds"
    said = f"{full} of {arms} arms at full scale ({seeds})"
    said += f", {less} at a smaller one" if less else ""
    return said + (f", {arms - len(results)} not run" if len(results) < arms else "")


def answer(headline: Headline, results: Sequence[ArmResult], finding: Finding) -> str:
    """Whether a claim holds, in a sentence."""
    if not finding.parts:
        return "Not tested yet."
    if not any(result.full for result in results):
        return "Not tested at full scale."
    so_far = "" if complete(headline, results) else ", in what has run so far"
    price = f", with {finding.price} times the steps of the others" if finding.price not in ("", "1") else ""
    return f"This holds{so_far}{price}." if finding.verdict == REPRODUCED else f"This does not hold{so_far}."


def complete(headline: Headline, results: Sequence[ArmResult]) -> bool:
    """Whether all that a claim is tested on ran at full scale."""
    arms = {arm.key for name in headline.experiments for arm in EXPERIMENTS[name].arms}
    return sum(result.full for result in results) == len(arms)


def together(names: Sequence[str], by_name: dict[str, list[ArmResult]]) -> list[ArmResult]:
    """The results of several experiments; an arm that they share counts once."""
    return list({result.asked.key: result for name in names for result in by_name[name]}.values())
