"""The results of an experiment as charts: a panel for each task and number of samples, a line for each algorithm.

The same charts stand on the HTML page and in the pictures.
"""

from __future__ import annotations

from collections.abc import Sequence

from pcces.report import Chart, Dot, Dots, Limit, Series
from pcces.studies.catalogue import EXPERIMENTS, Experiment
from pcces.studies.claims import place
from pcces.studies.measures import SAMPLES
from pcces.studies.results import Found, by_task, comparisons
from pcces.studies.statistics import band, wins

# One colour an algorithm, on every page and picture.
COLOURS = {
    "PCCES": 0, "PCCES, paper preset": 5, "OpenES": 1, "ASEBO": 2, "CPO": 3, "RCPO": 4, "PPO-Lagrangian": 6,
}  # fmt: skip
DRAWN = ("CartSafe-v0", "PointGoal1-v0")  # at a glance
TITLES = {"success": "accepted steps", "sigma": "step size sigma", "variance": "variance of an estimate of f"}


def panels(experiment: Experiment, found: Sequence[Found]) -> list[Chart]:
    """What the experiment shows, panel by panel."""
    return [
        chart
        for panel in split(found)
        for quantity in experiment.shows
        for chart in _chart(panel, quantity, _marks(experiment, panel) if quantity == "return" else [])
    ]


def _marks(experiment: Experiment, panel: Sequence[Found]) -> list[Limit]:
    """What the returns of a panel are to reach, where that was reported elsewhere than in the paper."""
    if experiment.source != "mark":
        return []
    values = {
        experiment.reported[arm.key]["return"].mean for one in panel if (arm := one.asked).key in experiment.reported
    }
    return [Limit(value, f"mark {value:g}", goal=True) for value in sorted(values)]


def drawn(found: Sequence[Found]) -> list[Chart]:
    """Safe training at a glance: the curves of two tasks, without the arms that follow the paper to the letter."""
    shown = [one for one in found if one.asked.task in DRAWN and one.asked.preset == "default"]
    return panels(EXPERIMENTS["safe"], shown)


def columns(experiment: Experiment, found: Sequence[Found]) -> int:
    """How many panels stand beside each other in a picture."""
    if len(experiment.shows) > 1:
        return len(experiment.shows)
    a_task = max(len(split(some)) for some in by_task(found).values())
    return a_task if a_task > 1 else min(3, len(split(found)))


def traces(found: Sequence[Found]) -> list[Chart]:
    """How the search of PCCES went: the share of steps accepted, and the step size."""
    mine = [one for one in found if one.asked.algorithm == "pcces"]
    return [chart for panel in split(mine) for quantity in ("success", "sigma") for chart in _chart(panel, quantity)]


def outcomes(found: Sequence[Found]) -> Dots:
    """How often a run of PCCES ends higher than one of another algorithm, task by task."""
    rows: dict[str, list[Dot]] = {}
    for some in by_task(found).values():
        for one in comparisons(some):
            other = one.theirs.asked
            if other.algorithm != "pcces":
                share = wins([(one.ours.values("return"), one.theirs.values("return"))])
                rows.setdefault(place(one.ours), []).append(Dot(other.label, *share, COLOURS[other.label]))
    return Dots(
        "Which ends higher",
        list(rows.items()),
        "the other ends higher",
        "PCCES ends higher",
        "The probability that a run of PCCES returns a policy of a higher return than a run of the other, a tie counting half; with 95 % bootstrap intervals.",
    )


def split(found: Sequence[Found]) -> list[list[Found]]:
    """Arms that share a panel: of one task, or of one number of samples where the task has several."""
    panels = []
    for some in by_task(found).values():
        sizes = list(dict.fromkeys(one.asked.population for one in some))
        if len(set(sizes) - {None}) > 1:
            panels += [[one for one in some if one.asked.population == size] for size in sizes]
        else:
            panels.append(some)
    return panels


def _chart(panel: Sequence[Found], quantity: str, goals: Sequence[Limit] = ()) -> list[Chart]:
    """One chart, or none where no run has the quantity."""
    series = [line for one in panel for line in _series(one, panel, quantity)]
    if not series:
        return []
    first = panel[0].asked
    sizes = {one.asked.population for one in panel}
    samples = f", {first.population} samples" if sizes == {first.population} != {None} else ""
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


def _series(one: Found, panel: Sequence[Found], quantity: str) -> list[Series]:
    name = line_name(one, panel)
    one_a_label = len({other.asked.label for other in panel}) == len(panel)
    colour = (
        COLOURS.get(one.asked.label) if one_a_label else None
    )  # arms of one algorithm are told apart by their names
    if quantity == "variance":
        x: Sequence[float] = SAMPLES
        rows = [run["variance"]["f"] for run in one.runs.values()]
    else:
        column = one.cost if quantity == "cost" else quantity
        curves = [run["curve"] for run in one.runs.values() if column in run["curve"]]
        if not curves:
            return []
        length = min(len(curve["iteration"]) for curve in curves)
        x = curves[0]["iteration"][:length]
        rows = [curve[column][:length] for curve in curves]
    middle, low, high = (part.tolist() for part in band([[float("nan") if v is None else v for v in r] for r in rows]))
    several = f", mean of {len(rows)}" if len(rows) > 1 else ""
    return [Series(name + several, x, middle, low, high, group=name, colour=colour)]


def line_name(one: Found, panel: Sequence[Found]) -> str:
    """What tells a line from the others in its panel."""
    arm = one.asked
    name = one.name.replace(f", {arm.population} samples", "").replace(", noisy preset", "")
    if len({other.asked.label for other in panel}) == 1 and len(panel) > 1:
        name = name.removeprefix(f"{arm.label}, ")
        if len({other.asked.threshold for other in panel}) > 1:
            name = f"threshold {arm.threshold:g}"
    return name


def _limits(panel: Sequence[Found], quantity: str) -> list[Limit]:
    if quantity == "cost":
        return [
            Limit(value, f"limit {value:g}") for value in sorted({one.limit for one in panel if one.limit is not None})
        ]
    if quantity == "entropy":
        low, high = panel[0].first["entropy_bounds"]
        pairs = [(high, "at most"), (low, "at least")]
        return [Limit(value, f"{words} {value:g}", always=False) for value, words in pairs if value is not None]
    return []
