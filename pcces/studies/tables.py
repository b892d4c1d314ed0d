"""The numbers of an experiment as rows, for every page there is, and its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pcces.rl.progress import duration
from pcces.studies.catalogue import Experiment
from pcces.studies.claims import NOT_RUN, SMALLER, Finding
from pcces.studies.measures import SAMPLES
from pcces.studies.results import Found, by_task, comparisons
from pcces.studies.statistics import interquartile_mean, mean_interval, verdict

Rows = list[list[str]]
AT_A_GLANCE = (
    "Mean return of the policies returned; how many of them are certified to keep the limit; share of training iterations whose policy"
    " (not the samples tried around it) is over the limit. An iteration of PCCES plays more steps than one of the others: the tables below"
    " say how many."
)


def in_short(found: Sequence[Found]) -> tuple[list[str], Rows]:
    """Tasks with a limit: a row for each algorithm, a column for each task."""
    tasks = by_task(found)
    rows = []
    for label in dict.fromkeys(one.asked.label for one in found):
        mine = [next((one for one in some if one.asked.label == label), None) for some in tasks.values()]
        rows.append([label, *("-" if one is None else _in_short(one) for one in mine)])
    return ["", *(f"{task} (limit {some[0].limit:g})" for task, some in tasks.items())], rows


def _in_short(one: Found) -> str:
    mean, over = np.mean(one.values("return")), np.mean(one.values("over"))
    return f"{mean:.1f}; {_certified(one)}; {100 * over:.0f}\u00a0%"


def finals(experiment: Experiment, found: Sequence[Found]) -> tuple[list[str], Rows]:
    """Columns and rows of the final numbers, grouped by task."""
    if experiment.shows == ("variance",):
        return _variances(experiment, found)
    costs = any(one.cost for one in found)
    columns = ["task", "algorithm", "return", "IQM"]
    columns += ["cost", "limit", "certified", "over"] if costs else ["entropy", "bounds", "certified"]
    columns += [f"{name} at the end of training" for name in reported(experiment)] if experiment.ends else []
    columns += ["steps a seed", "time, all seeds", *(f"{experiment.source}: {name}" for name in reported(experiment))]
    rows = []
    for task, some in by_task(found).items():
        for number, one in enumerate(some):
            row = [task if number == 0 else "", one.name + smaller(experiment, one)]
            row += [str(mean_interval(one.values("return"))), f"{interquartile_mean(one.values('return')):.4g}"]
            row += _costs(one) if costs else _entropy(one)
            row += [str(mean_interval(one.last(name))) for name in reported(experiment)] if experiment.ends else []
            row += [f"{one.steps() / 1e6:.1f} M", duration(one.seconds())]
            said = experiment.reported.get(one.asked.key, {})
            rows.append([*row, *(str(said.get(name, "-")) for name in reported(experiment))])
    return columns, rows


def _variances(experiment: Experiment, found: Sequence[Found]) -> tuple[list[str], Rows]:
    rows = []
    for one in found:
        measured = [run["variance"] for run in one.runs.values()]
        for name in (name for name in measured[0] if name != "samples"):
            medians = np.median([m[name] for m in measured], axis=0)
            rows.append([one.asked.task + smaller(experiment, one), name, *(f"{value:.3g}" for value in medians)])
    return ["task", "median variance of", *(f"N = {n}" for n in SAMPLES)], rows


def reported(experiment: Experiment) -> list[str]:
    """What the paper, or another source, gives numbers of."""
    return list(dict.fromkeys(name for said in experiment.reported.values() for name in said))


def _costs(one: Found) -> list[str]:
    if one.cost is None:
        return ["-", "-", _certified(one), "-"]
    over = [run["over"] for run in one.runs.values() if run["over"] is not None]
    return [str(one.mean_cost()), f"{one.limit:g}", _certified(one), f"{100 * np.mean(over):.0f} %" if over else "-"]


def _entropy(one: Found) -> list[str]:
    low, high = one.first["entropy_bounds"]
    bounds = "-" if low is None and high is None else f"{_number(low)} to {_number(high)}"
    return [f"{np.mean(one.values('entropy')):.4g}", bounds, _certified(one)]


def _number(value: float | None) -> str:
    return "∞" if value is None else f"{value:g}"


def _certified(one: Found) -> str:
    return f"{one.certified()} of {len(one.runs)}"


def smaller(experiment: Experiment, one: Found) -> str:
    """How an arm that did not run at full scale did run."""
    if one.full:
        return ""
    seeds = f"{len(one.runs)} of {experiment.seeds} seeds"
    if set(one.runs) != set(experiment.numbers[: len(one.runs)]):
        seeds += f" ({', '.join(map(str, one.runs))})"
    return f" ({seeds}, {one.ran.iterations} of {one.asked.iterations} iterations)"


def beside(experiment: Experiment, found: Sequence[Found]) -> tuple[list[str], Rows]:
    """Columns and rows of the paired differences in return, grouped by task; none if it is not about returns."""
    rows, before = [], ""
    for one in comparisons(found) if "return" in experiment.shows else []:
        task = one.ours.asked.task
        seeds = str(len(set(one.ours.runs) & set(one.theirs.runs)))
        words = [one.ours.name, one.theirs.name, str(one.gap), verdict(one.gap), seeds]
        rows.append(["" if task == before else task, *words])
        before = task
    return ["task", "PCCES", "beside", "difference in return", "so PCCES's is", "pairs"], rows


def judged(experiment: Experiment, found: Sequence[Found]) -> tuple[str, Finding]:
    """The verdict in words, and what is behind it."""
    finding = experiment.judge(experiment, found)
    if not found or not finding.parts:
        return NOT_RUN, finding
    if sum(one.full for one in found) < len(experiment.arms):
        return f"{SMALLER}; so far {finding.verdict}", finding
    return finding.verdict, finding


def scale(experiment: Experiment, found: Sequence[Found]) -> str:
    """How much of an experiment there is."""
    full, arms = sum(one.full for one in found), len(experiment.arms)
    if not found:
        return f"none of {arms} arms has run"
    less = len(found) - full
    seeds = "one seed" if experiment.seeds == 1 else f"{experiment.seeds} seeds"
    said = f"{full} of {arms} arms at full scale ({seeds})"
    return (
        said + (f", {less} at a smaller one" if less else "") + (f", {arms - len(found)} not run" * (len(found) < arms))
    )


def made_on(found: Sequence[Found]) -> str:
    """Machines and time."""
    seconds: dict[str, float] = {}
    for name, spent in (item for one in found for item in one.machines().items()):
        seconds[name] = seconds.get(name, 0.0) + spent
    said = "; ".join(f"{name}: {duration(spent)} of training" for name, spent in sorted(seconds.items()))
    runs = sum(len(one.runs) for one in found)
    steps = math.fsum(run["steps"] for one in found for run in one.runs.values())
    return f"{said}. {runs} runs, {steps / 1e6:,.0f} million steps; the seeds of an arm ran side by side."
