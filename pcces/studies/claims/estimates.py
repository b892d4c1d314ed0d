"""Claims about the entropy and its weight, and about how sure estimates are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcces.studies.arm_results import ArmResult, by_label, by_task, count_runs
from pcces.studies.claims.finding import ClaimPart, Finding, count
from pcces.studies.experiment import Experiment
from pcces.studies.statistics import difference, mean_interval, verdict
from pcces.studies.store import Record


def small_steps_do_not_matter(_: Experiment, results: Sequence[ArmResult]) -> Finding:
    """mu 1e-4 or 2e-4 is the same, mu 0.1 is not, and on Ant mu 1e-4 beats 0."""
    by_mu = {(result.asked.task, result.settings["mu"]): result for result in results}
    tasks = list(by_task(results))
    ants = [task for task in tasks if task.startswith("Ant")]

    def differences(first: float, second: float, tasks: Sequence[str]) -> list[tuple[str, str]]:
        """Every task in a word, and in numbers."""
        both = [(by_mu.get((task, first)), by_mu.get((task, second)), task) for task in tasks]
        gaps = [(difference(a.returns, b.returns), task) for a, b, task in both if a and b and len(a.runs) > 1]
        return [(verdict(gap), f"{task} {gap}") for gap, task in gaps]

    parts = []
    for mu, words, matters in ((2e-4, "2e-4", False), (1e-1, "0.1", True)):
        if told := differences(mu, 1e-4, tasks):
            clear = [said for word, said in told if word != "no clear difference"]
            said = (
                f"returns with mu {words} that differ clearly from those with 1e-4: {len(clear)} of {len(told)} tasks"
            )
            parts.append(ClaimPart(bool(clear) == matters, said + (f": {'; '.join(clear)}." if clear else ".")))
    for word, said in differences(1e-4, 0.0, ants):
        parts.append(ClaimPart(word == "higher", f"mu 1e-4 compared with 0: {said}, {word}."))
    others = [said for _, said in differences(1e-4, 0.0, [task for task in tasks if task not in ants])]
    return Finding(parts, remarks=[f"mu 1e-4 compared with 0 on other tasks: {'; '.join(others)}."] if others else [])


def entropy_within_bounds(_: Experiment, results: Sequence[ArmResult]) -> Finding:
    """The entropy of the policies returned lies between its bounds."""
    parts = []
    for name, labelled in by_label(results).items():
        inside = [sum(map(_inside, result.runs.values())) for result in labelled]
        outside = "".join(
            f"; {result.asked.task}: {count(number, len(result.runs))}"
            for result, number in zip(labelled, inside)
            if number < len(result.runs)
        )
        total = count_runs(labelled)
        certified = count(sum(result.certified() for result in labelled), total)
        said = f"{name}: returned policies whose entropy is within its bounds: {count(sum(inside), total)}{outside} (certified: {certified})."
        parts.append(ClaimPart(not outside, said))
    return Finding(parts)


def _inside(run: Record) -> bool:
    low, high = run["entropy_bounds"]
    return (low is None or run["entropy"] >= low) and (high is None or run["entropy"] <= high)


def falls_as_one_over_n(_: Experiment, results: Sequence[ArmResult]) -> Finding:
    """The variance of an average of N episodes is that of one divided by N."""
    parts, remarks = [], []
    for result in results:
        measured = [run["variance"] for run in result.runs.values()]
        slopes = [slope(m["samples"], m["f"]) for m in measured if min(m["f"]) > 0]
        if not slopes:
            remarks.append(f"{result.asked.task}: all episodes of these policies are equal.")
            continue
        exponent = mean_interval(slopes)
        said = (
            f"{result.asked.task}: the variance of an average of N episodes falls as N to the power {exponent} (-1 is asked for);"
            f" a single episode has {float(np.median([m['f'][0] for m in measured])):.3g}, {measured[0]['samples'][-1]}"
            f" have {float(np.median([m['f'][-1] for m in measured])):.3g} (medians)."
        )
        parts.append(ClaimPart(exponent.low - 0.05 <= -1 <= exponent.high + 0.05, said))
    return Finding(parts, remarks=remarks)


def slope(samples: Sequence[float], values: Sequence[float]) -> float:
    """The slope of a straight line through the logarithms. Variances of means of many samples are less certain: there are fewer.

    >>> round(slope([1, 2, 4], [8.0, 4.0, 2.0]), 3)
    -1.0
    """
    weights = 1 / np.sqrt(np.asarray(samples, dtype=float))
    return float(np.polyfit(np.log(samples), np.log(values), 1, w=weights)[0])
