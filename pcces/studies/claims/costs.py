"""Claims about costs and their limits."""

from __future__ import annotations

from collections.abc import Sequence

from pcces.studies.arm_results import ArmResult, Comparison, by_label, comparisons, count_runs, feasible
from pcces.studies.claims.finding import ClaimPart, Finding, count
from pcces.studies.claims.returns import lower_on_most, price, steps
from pcces.studies.experiment import Experiment
from pcces.studies.protocol import OF_THE_PAPER, SAFE_RIVALS
from pcces.studies.statistics import Interval, difference, mean_interval, verdict


def feasible_where_others_are_not(_: Experiment, results: Sequence[ArmResult]) -> Finding:
    """PCCES's policies keep their limits, the others' not always, and its returns are not lower."""
    ours = [result for result in results if result.ours]
    others = [result for result in results if result.asked.algorithm in SAFE_RIVALS]
    if not ours or not others:
        return Finding()
    parts = [_feasible(ours), _not_always(others), _at_no_lower_return(ours, others)]
    of_the_paper = {p: [result for result in results if result.asked.preset == p] for p in OF_THE_PAPER}
    remarks = [f"{OF_THE_PAPER[p]} {_feasible(those).said}" for p, those in of_the_paper.items() if those]
    not_ours = by_label([result for result in results if result.asked.algorithm != "pcces"])
    certified = ", ".join(
        f"{name} {sum(result.certified() for result in labelled)} of {count_runs(labelled)}"
        for name, labelled in not_ours.items()
    )
    remarks.append(
        "Here every algorithm returns the best of its iterates that fresh episodes certify, not its last one. Certified"
        f" policies, that way: {certified}."
    )
    remarks.append(f"Runs of PCCES that end training above the limit: {count(_runs_over(ours), count_runs(ours))}.")
    beside = [c for c in comparisons(results) if c.theirs.asked.algorithm in SAFE_RIVALS]
    if not beside:
        return Finding(parts, remarks=remarks)
    return Finding(parts, remarks=[*remarks, _on_the_way(beside), steps(beside)], price=price(beside))


def _on_the_way(several: Sequence[Comparison]) -> str:
    """How often the policy of an iteration exceeds the limit, compared with the other algorithms."""
    shares = [[dict(zip(arm.runs, arm.values("over"))) for arm in (c.ours, c.theirs)] for c in several]
    words = [verdict(difference(*both)) for both in shares]
    return (
        f"The share of iterations whose policy exceeds the limit is lower than that of the other algorithm in"
        f" {words.count('lower')}, not clearly different in {words.count('no clear difference')}, and higher in {words.count('higher')} of"
        f" {len(words)} comparisons."
    )


def _feasible(ours: Sequence[ArmResult]) -> ClaimPart:
    total = count_runs(ours)
    kept, certified = sum(result.keeps() for result in ours), sum(result.certified() for result in ours)
    where = "".join(
        f"; {result.asked.task}: {count(result.keeps(), len(result.runs))}"
        for result in ours
        if result.keeps() < len(result.runs)
    )
    said = f"returned policies of PCCES that keep their limit: {count(kept, total)}{where} (certified: {count(certified, total)})."
    return ClaimPart(kept == total, said)


def _not_always(others: Sequence[ArmResult]) -> ClaimPart:
    """The paper looks at the end of training."""
    over = {name: (_runs_over(labelled), count_runs(labelled)) for name, labelled in by_label(others).items()}
    said = ", ".join(f"{name} {count(*numbers)}" for name, numbers in over.items())
    all_fail = all(number > 0 for number, _ in over.values())
    return ClaimPart(all_fail, f"runs of the other algorithms that end training above the limit: {said}.")


def _runs_over(results: Sequence[ArmResult]) -> int:
    """How many runs cost more than they may in their last iterations."""
    return sum(cost > (result.limit or 0.0) for result in results for cost in result.last_costs())


def _at_no_lower_return(ours: Sequence[ArmResult], others: Sequence[ArmResult]) -> ClaimPart:
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
            elif seeds := lower_on_most(mine.returns, returns):
                mostly.append(f"{name} ({seeds})")
    names = ", ".join(dict.fromkeys(result.asked.label for result in others))
    said = f"returns clearly lower than those of feasible policies of {names}, in {compared} comparisons: {len(lower)}"
    said += f": {'; '.join(lower)}." if lower else "."
    return ClaimPart(
        not lower, said + (f" Lower on most seeds, but not clearly: {'; '.join(mostly)}." if mostly else "")
    )


def over_its_limit(experiment: Experiment, results: Sequence[ArmResult]) -> Finding:
    """CPO ends training above its limit, whatever its settings; if it never does, it is better here than in the paper."""
    parts, kept = [], 0
    for result in results:
        cost, limit = mean_interval(result.last_costs()), result.limit or 0.0
        paper = experiment.reported[result.asked.key]["cost"]
        side = {"higher": "above", "lower": "below"}.get(verdict(Interval(*(v - limit for v in cost))), "about at")
        said = f"{result.name}: cost {cost} at the end of training, {side} the limit of {limit:g} (paper {paper})."
        parts.append(ClaimPart(side == "above", said))
        kept += side == "below"
    if parts and kept == len(parts):
        remark = "Our CPO keeps its limit where the paper's did not: *exceeded* is about CPO, not about PCCES."
        return Finding([ClaimPart(True, part.said) for part in parts], exceeded=True, remarks=[remark])
    return Finding(parts)
