"""docs/results.md, from the committed results: what the paper reports, what we got, and whether that is the same."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from pcces.experiments.arms import Arm, Record, Store
from pcces.experiments.catalogue import Experiment
from pcces.experiments.statistics import Interval, difference, interquartile_mean, mean_interval, verdict

UNSAID = ("hidden", "initial_tries", "last_layer")  # settings that all arms on a task have alike


def known(experiment: Experiment, store: Store) -> list[tuple[Arm, dict[int, Record]]]:
    """The arms that have results, of the experiment's seeds (others were for tuning)."""
    found = []
    for arm in experiment.arms:
        records = {seed: run for seed, run in store.read(arm).items() if seed < experiment.seeds}
        if records:
            found.append((arm, records))
    return found


def page(experiments: Iterable[Experiment], store: Store, pictures: Path, beside: Path) -> str:
    """The whole page as Markdown; pictures are drawn into a folder and linked relative to `beside`."""
    parts = [INTRODUCTION]
    for experiment in experiments:
        parts.append(section(experiment, store, pictures, beside))
    return "\n".join(parts)


INTRODUCTION = """# The paper's experiments, run again

Made by `pcces reproduce --page docs/results.md` from the files in `results/`, never by hand. Returns and costs are those of the policy that
a run returns, measured on fresh episodes by the same code for every algorithm. Means over seeds come with 95 % bootstrap
intervals in brackets (IQM: the mean of the middle half of the seeds); differences are paired by seed. *Certified*: the final policy keeps its
limits with 95 % confidence. *Over*: the share of training iterations whose policy cost more than allowed, on fresh episodes.
"""


def section(experiment: Experiment, store: Store, pictures: Path, beside: Path) -> str:
    """One experiment: claim, tables, comparisons, picture."""
    found = known(experiment, store)
    lines = [f"## {experiment.title}", "", f"The paper ({experiment.where}): {experiment.claim}", ""]
    missing = len(experiment.arms) - len(found)
    if not found:
        return "\n".join([*lines, "Not run yet.", ""])
    lines += table(experiment, found)
    compared = comparisons(found)
    if compared:
        lines += ["", *compared]
    picture = draw(experiment, found, pictures)
    if picture is not None:
        lines += ["", f"![{experiment.title}]({os.path.relpath(picture, beside)})"]
    places = sorted({where for arm, _ in found for where in [place(store, arm)]})
    hours = sum(run["seconds"] for _, runs in found for run in runs.values()) / 3600
    lines += ["", f"Made on: {'; '.join(places)}. {hours:.1f} hours of training, seeds side by side counted each."]
    if missing:
        lines.append(f"Not run: {missing} of {len(experiment.arms)} arms.")
    return "\n".join([*lines, ""])


def place(store: Store, arm: Arm) -> str:
    """Where an arm was run."""
    where = store.where(arm)
    return f"{where['device']}, {where['cores']} cores" if where["device"] == "cpu" else str(where["device"])


def spread(interval: Interval) -> str:
    """An interval as text.

    >>> spread(Interval(12.345, 11.0, 13.5))
    '12.3 [11.0, 13.5]'
    """
    digits = 1 if abs(interval.middle) >= 10 else 2
    return f"{interval.middle:.{digits}f} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"


def table(experiment: Experiment, found: Sequence[tuple[Arm, dict[int, Record]]]) -> list[str]:
    """A line for each arm."""
    costs = any(run["costs"] for _, runs in found for run in runs.values())
    head = ["task", "algorithm", "return", "IQM"]
    head += ["cost (limit)", "certified", "over"] if costs else ["certified"]
    head += ["steps a seed", "paper"] if experiment.reported else ["steps a seed"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for arm, runs in found:
        records = list(runs.values())
        returns = [r["return"] for r in records]
        row = [arm.task, named(arm), spread(mean_interval(returns)), f"{interquartile_mean(returns):.4g}"]
        certified = f"{sum(r['certified'] for r in records)} of {len(records)}"
        if costs:
            over = [r["over"] for r in records if r["over"] is not None]
            limit = f" ({records[0]['thresholds'][0]:g})" if records[0]["thresholds"] else ""
            mean = spread(mean_interval([r["costs"][0] for r in records])) if records[0]["costs"] else "-"
            row += [mean + limit, certified, f"{100 * np.mean(over):.0f} %" if over else "-"]
        else:
            row.append(certified)
        row.append(f"{np.mean([r['steps'] for r in records]) / 1e6:.1f} M")
        if experiment.reported:
            said = experiment.reported.get(arm.key, {})
            row.append("; ".join(f"{name} {r.mean:g} ± {r.deviation:g}" for name, r in said.items()) or "-")
        lines.append("| " + " | ".join(row) + " |")
    return lines


def named(arm: Arm) -> str:
    """An arm within its task.

    >>> named(Arm("Acrobot-v1", population=80, settings={"mu": 0.1}))
    'PCCES, 80 samples, mu 0.1'
    """
    population = f", {arm.population} samples" if arm.population else ""
    shown = {name: value for name, value in arm.settings.items() if name not in UNSAID}
    return arm.label + population + "".join(f", {name} {value:g}" for name, value in shown.items())


def comparisons(found: Sequence[tuple[Arm, dict[int, Record]]]) -> list[str]:
    """PCCES as it is by default against everything else on the same task with the same samples."""
    lines = []
    for ours, our_runs in found:
        if ours.algorithm != "pcces" or ours.preset != "default" or ours.settings.get("mu"):
            continue
        for theirs, their_runs in found:
            same = (ours.task, ours.population, ours.threshold) == (theirs.task, theirs.population, theirs.threshold)
            if not same or theirs.key == ours.key or len(set(our_runs) & set(their_runs)) < 2:
                continue
            gap = difference(*({s: r["return"] for s, r in runs.items()} for runs in (our_runs, their_runs)))
            lines.append(f"| {ours.task} | {named(ours)} | {named(theirs)} | {spread(gap)} | {verdict(gap)} |")
    if not lines:
        return []
    return [
        "| task | PCCES | beside | difference in return | so PCCES's is |",
        "| --- | --- | --- | --- | --- |",
        *lines,
    ]


def draw(experiment: Experiment, found: Sequence[tuple[Arm, dict[int, Record]]], folder: Path) -> Path | None:
    """Curves of return (and cost) against iterations, a panel a task."""
    from matplotlib.figure import Figure

    tasks = [task for task in experiment.tasks() if any(arm.task == task for arm, _ in found)]
    rows = 2 if any(run["costs"] for _, runs in found for run in runs.values()) else 1
    figure = Figure(figsize=(4 * len(tasks), 3 * rows), layout="constrained")
    axes = figure.subplots(rows, len(tasks), squeeze=False)
    for column, task in enumerate(tasks):
        for number, (arm, runs) in enumerate((a, r) for a, r in found if a.task == task):
            colour = f"C{number % 10}"
            _band(axes[0][column], runs, "return", named(arm), colour)
            if rows == 2:
                cost = next((n for n in next(iter(runs.values()))["curve"] if n.startswith("cost_")), None)
                if cost is not None:
                    _band(axes[1][column], runs, cost, named(arm), colour)
                    axes[1][column].axhline(next(iter(runs.values()))["thresholds"][0], color="0.3", lw=1, ls="--")
        axes[0][column].set_title(task, fontsize=9)
        axes[0][column].set_ylabel("return" if column == 0 else "")
        axes[-1][column].set_xlabel("iteration")
        if rows == 2 and column == 0:
            axes[1][0].set_ylabel("cost")
        axes[0][column].legend(fontsize=6, frameon=False)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{experiment.name}.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return path


def _band(axis: object, runs: dict[int, Record], name: str, label: str, colour: str) -> None:
    curves = [run["curve"] for run in runs.values() if name in run["curve"]]
    length = min(len(curve[name]) for curve in curves)
    values = np.array([curve[name][:length] for curve in curves], dtype=float)
    x = curves[0]["iteration"][:length]
    middle, spread_ = values.mean(axis=0), values.std(axis=0)
    axis.plot(x, middle, color=colour, lw=1.2, label=label)  # type: ignore[attr-defined]
    axis.fill_between(x, middle - spread_, middle + spread_, color=colour, alpha=0.15, lw=0)  # type: ignore[attr-defined]
