"""The results of an experiment as charts: a panel for each task and number of samples, a line for each algorithm.

The same charts stand on the HTML page and in the pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

from pcces.report import Chart, Dot, Dots, LimitLine, Series
from pcces.studies.arm_results import ArmResult, by_task, comparisons
from pcces.studies.catalogue import EXPERIMENTS
from pcces.studies.experiment import Experiment
from pcces.studies.measures import SAMPLES
from pcces.studies.statistics import band, wins

# One colour an algorithm, on every page and picture.
COLOURS = {
    "PCCES": 0, "PCCES, paper preset": 4, "PCCES, paper-literal preset": 7, "OpenES": 1, "ASEBO": 2, "CPO": 3, "RCPO": 5, "PPO-Lagrangian": 6,
}  # fmt: skip
DRAWN = ("CartSafe-v0", "PointGoal1-v0")  # at a glance
TITLES = {"success": "accepted steps", "sigma": "step size sigma", "variance": "variance of an estimate of f"}


def panels(experiment: Experiment, results: Sequence[ArmResult]) -> list[Chart]:
    """What the experiment shows, panel by panel."""
    return [
        chart
        for panel in split_panels(results)
        for quantity in experiment.shows
        for chart in _charts_of(panel, quantity, _marks(experiment, panel) if quantity == "return" else [])
    ]


def _marks(experiment: Experiment, panel: Sequence[ArmResult]) -> list[LimitLine]:
    """What the returns of a panel are to reach, where that was reported elsewhere than in the paper."""
    if experiment.source != "mark":
        return []
    reported = [experiment.reported.get(result.asked.key) for result in panel]
    values = {numbers["return"].mean for numbers in reported if numbers}
    return [LimitLine(value, f"mark {value:g}", goal=True) for value in sorted(values)]


def glance_charts(results: Sequence[ArmResult]) -> list[Chart]:
    """Safe training at a glance: the curves of two tasks, without the arms that follow the paper to the letter."""
    shown = [result for result in results if result.asked.task in DRAWN and result.asked.preset == "default"]
    return panels(EXPERIMENTS["safe"], shown)


def panels_beside(experiment: Experiment, results: Sequence[ArmResult]) -> int:
    """The number of columns in a picture."""
    if len(experiment.shows) > 1:
        return len(experiment.shows)
    of_a_task = max(len(split_panels(on_task)) for on_task in by_task(results).values())
    return min(2, of_a_task if of_a_task > 1 else len(split_panels(results)))  # more are too small on a phone


def trace_charts(results: Sequence[ArmResult]) -> list[Chart]:
    """How the search of PCCES went: the share of steps accepted, and the step size."""
    mine = [result for result in results if result.asked.algorithm == "pcces"]
    return [
        chart
        for panel in split_panels(mine)
        for quantity in ("success", "sigma")
        for chart in _charts_of(panel, quantity)
    ]


def outcomes(results: Sequence[ArmResult]) -> Dots:
    """How often a run of PCCES ends higher than one of another algorithm, task by task."""
    rows: dict[str, list[Dot]] = {}
    for on_task in by_task(results).values():
        for comparison in comparisons(on_task):
            ours, theirs = comparison.ours, comparison.theirs
            if theirs.asked.algorithm != "pcces":
                share = wins([(ours.values("return"), theirs.values("return"))])
                label = theirs.asked.label
                rows.setdefault(theirs.place, []).append(Dot(label, *share, COLOURS[label]))
    return Dots(
        "Which ends higher",
        list(rows.items()),
        "the other ends higher",
        "PCCES ends higher",
        "The probability that a run of PCCES returns a policy of a higher return than a run of the other, a tie counting half; with 95 % bootstrap intervals.",
    )


def split_panels(results: Sequence[ArmResult]) -> list[list[ArmResult]]:
    """Arms that share a panel: of one task, or of one number of samples where the task has several."""
    panels = []
    for on_task in by_task(results).values():
        sizes = [size for size in dict.fromkeys(result.asked.population for result in on_task) if size is not None]
        if len(sizes) > 1:  # what has none stands in each
            panels += [[result for result in on_task if result.asked.population in (size, None)] for size in sizes]
        else:
            panels.append(on_task)
    return panels


def _charts_of(panel: Sequence[ArmResult], quantity: str, goals: Sequence[LimitLine] = ()) -> list[Chart]:
    """One chart, or none where no run has the quantity."""
    series = [line for result in panel for line in _series(result, panel, quantity)]
    if not series:
        return []
    first = panel[0].asked
    sizes = {result.asked.population for result in panel if result.asked.population is not None}
    samples = f", {min(sizes)} samples" if len(sizes) == 1 else ""
    title = f"{first.task}{samples}: {TITLES.get(quantity, quantity)}"
    return [
        Chart(
            title,
            series,
            [*_limits(panel, quantity), *goals],
            x_label="episodes averaged" if quantity == "variance" else "iteration",
            log=quantity in ("sigma", "variance"),
            log_x=quantity == "variance",
        )
    ]


def _series(result: ArmResult, panel: Sequence[ArmResult], quantity: str) -> list[Series]:
    name = line_name(result, panel)
    labels_differ = len({other.asked.label for other in panel}) == len(panel)
    colour = COLOURS.get(result.asked.label) if labels_differ else None  # if not, arms are told apart by their names
    if quantity == "variance":
        x: Sequence[float] = SAMPLES
        rows = [run["variance"]["f"] for run in result.runs.values()]
    else:
        column = result.cost if quantity == "cost" else quantity
        curves = [run["curve"] for run in result.runs.values() if column in run["curve"]]
        if not curves:
            return []
        length = min(len(curve["iteration"]) for curve in curves)
        x = curves[0]["iteration"][:length]
        rows = [curve[column][:length] for curve in curves]
    middle, low, high = (part.tolist() for part in band([[float("nan") if v is None else v for v in r] for r in rows]))
    several = f", mean of {len(rows)}" if len(rows) > 1 else ""
    aside = result.asked.preset != "default"  # the presets of the paper are far below on some tasks
    return [Series(name + several, x, middle, low, high, group=name, colour=colour, aside=aside)]


def line_name(result: ArmResult, panel: Sequence[ArmResult]) -> str:
    """What tells a line from the others in its panel."""
    arm = result.asked
    name = result.name.replace(f", {arm.population} samples", "")
    if len({other.asked.label for other in panel}) == 1 and len(panel) > 1:
        name = name.removeprefix(f"{arm.label}, ")
        if len({other.asked.threshold for other in panel}) > 1:
            name = f"threshold {arm.threshold:g}"
    return name


def _limits(panel: Sequence[ArmResult], quantity: str) -> list[LimitLine]:
    if quantity == "cost":
        return [
            LimitLine(value, f"limit {value:g}")
            for value in sorted({result.limit for result in panel if result.limit is not None})
        ]
    if quantity == "entropy":
        low, high = panel[0].first["entropy_bounds"]
        pairs = [(high, "at most"), (low, "at least")]
        return [LimitLine(value, f"{words} {value:g}", always=False) for value, words in pairs if value is not None]
    return []
