"""The numbers of an experiment as rows, for every page there is."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pcces.rl.progress import duration
from pcces.studies.arm_results import ArmResult, by_task, comparisons, count_runs
from pcces.studies.experiment import Experiment
from pcces.studies.measures import SAMPLES
from pcces.studies.statistics import interquartile_mean, mean_interval, verdict

Rows = list[list[str]]
AT_A_GLANCE = (
    "Each cell has the mean return of the returned policies; the number of them that are certified to keep the limit; and the share of"
    " training iterations whose policy (not the samples around it) exceeds the limit. Certificates are guaranteed for any costs in the"
    " range of a step, unless they are marked. The tables below give the environment steps of each run."
)


def glance_table(results: Sequence[ArmResult]) -> tuple[list[str], Rows]:
    """Tasks with a limit: a row for each algorithm, a column for each task."""
    tasks = by_task(results)
    rows = []
    for label in dict.fromkeys(result.asked.label for result in results):
        cells = [next((_glance_cell(r) for r in on_task if r.asked.label == label), "-") for on_task in tasks.values()]
        rows.append([label, *cells])
    return ["", *(f"{task} (limit {on_task[0].limit:g})" for task, on_task in tasks.items())], rows


def _glance_cell(result: ArmResult) -> str:
    mean, over = np.mean(result.values("return")), np.mean(result.values("over"))
    return f"{mean:.1f}; {_certified(result)}; {100 * over:.0f}\u00a0%"


def final_table(experiment: Experiment, results: Sequence[ArmResult]) -> tuple[list[str], Rows]:
    """Columns and rows of the final numbers, grouped by task."""
    if experiment.shows == ("variance",):
        return _variance_table(experiment, results)
    costs = any(result.cost for result in results)
    columns = ["task", "algorithm", "return", "IQM"]
    columns += ["cost", "limit", "certified", "over"] if costs else ["entropy", "bounds", "certified"]
    columns += [f"{name} at the end of training" for name in reported(experiment)] if experiment.ends else []
    columns += ["steps per seed", "time, all seeds", *(f"{experiment.source}: {name}" for name in reported(experiment))]
    rows = []
    for task, on_task in by_task(results).items():
        for number, result in enumerate(on_task):
            row = [task if number == 0 else "", result.name + smaller(experiment, result)]
            row += [str(mean_interval(result.values("return"))), f"{interquartile_mean(result.values('return')):.4g}"]
            row += _costs(result) if costs else _entropy(result)
            row += [str(mean_interval(result.last(name))) for name in reported(experiment)] if experiment.ends else []
            row += [f"{result.steps() / 1e6:.1f} M", duration(result.seconds())]
            said = experiment.reported.get(result.asked.key, {})
            rows.append([*row, *(str(said.get(name, "-")) for name in reported(experiment))])
    return columns, rows


def _variance_table(experiment: Experiment, results: Sequence[ArmResult]) -> tuple[list[str], Rows]:
    rows = []
    for result in results:
        measured = [run["variance"] for run in result.runs.values()]
        for name in (name for name in measured[0] if name != "samples"):
            medians = np.median([m[name] for m in measured], axis=0)
            rows.append([result.asked.task + smaller(experiment, result), name, *(f"{value:.3g}" for value in medians)])
    return ["task", "median variance of", *(f"N = {n}" for n in SAMPLES)], rows


def reported(experiment: Experiment) -> list[str]:
    """What the paper, or another source, gives numbers of."""
    return list(dict.fromkeys(name for said in experiment.reported.values() for name in said))


def _costs(result: ArmResult) -> list[str]:
    if result.cost is None:
        return ["-", "-", _certified(result), "-"]
    over = [run["over"] for run in result.runs.values() if run["over"] is not None]
    return [
        str(result.mean_cost()),
        f"{result.limit:g}",
        _certified(result),
        f"{100 * np.mean(over):.0f} %" if over else "-",
    ]


def _entropy(result: ArmResult) -> list[str]:
    low, high = result.first["entropy_bounds"]
    bounds = "-" if low is None and high is None else f"{_number(low)} to {_number(high)}"
    return [f"{np.mean(result.values('entropy')):.4g}", bounds, _certified(result)]


def _number(value: float | None) -> str:
    return "∞" if value is None else f"{value:g}"


def _certified(result: ArmResult) -> str:
    asymptotic = f" ({result.asymptotic()} asymptotic)" if result.asymptotic() else ""
    return f"{result.certified()} of {len(result.runs)}{asymptotic}"


def smaller(experiment: Experiment, result: ArmResult) -> str:
    """How an arm that did not run at full scale did run."""
    if result.full:
        return ""
    seeds = f"{len(result.runs)} of {experiment.seeds} seeds"
    if set(result.runs) != set(experiment.numbers[: len(result.runs)]):
        seeds += f" ({', '.join(map(str, result.runs))})"
    return f" ({seeds}, {result.ran.iterations} of {result.asked.iterations} iterations)"


def comparison_table(experiment: Experiment, results: Sequence[ArmResult]) -> tuple[list[str], Rows]:
    """Columns and rows of the paired differences in return, grouped by task; none if it is not about returns."""
    rows, before = [], ""
    for comparison in comparisons(results) if "return" in experiment.shows else []:
        task = comparison.ours.asked.task
        seeds = str(len(set(comparison.ours.runs) & set(comparison.theirs.runs)))
        words = [comparison.ours.name, comparison.theirs.name, str(comparison.gap), verdict(comparison.gap), seeds]
        rows.append(["" if task == before else task, *words])
        before = task
    return ["task", "PCCES", "compared with", "difference in return", "PCCES is", "pairs"], rows


def machines_and_time(results: Sequence[ArmResult]) -> str:
    """Machines and time."""
    seconds: dict[str, float] = {}
    for result in results:
        for name, spent in result.machines().items():
            seconds[name] = seconds.get(name, 0.0) + spent
    said = "; ".join(f"{name}: {duration(spent)} of training" for name, spent in sorted(seconds.items()))
    runs = count_runs(results)
    steps = math.fsum(run["steps"] for result in results for run in result.runs.values())
    return f"{said}. {runs} runs, {steps / 1e6:,.0f} million steps; the seeds of an arm ran side by side."
