"""What came of an arm: the runs there are, at the full scale or a smaller one, and arms compared with each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pcces.core.certificate import ASYMPTOTIC
from pcces.studies.arms import Arm
from pcces.studies.experiment import Experiment
from pcces.studies.protocol import quick
from pcces.studies.statistics import Interval, difference, mean_interval
from pcces.studies.store import Record, Store


@dataclass(frozen=True)
class ArmResult:
    """An arm, and the runs there are of it: of the arm as `asked` for, or with fewer iterations as it `ran`."""

    asked: Arm
    ran: Arm
    runs: dict[int, Record]
    made_on: dict[str, Any]  # which machine and versions, but for runs that say otherwise
    settings: dict[str, Any]  # all of the algorithm's
    full: bool  # whether all seeds ran, as long as asked for

    @property
    def name(self) -> str:
        """What it is called within its task."""
        return self.asked.name

    @property
    def place(self) -> str:
        """Where it ran, in a word or two."""
        return self.asked.task + (f", {self.asked.population} samples" if self.asked.population else "")

    @property
    def ours(self) -> bool:
        """Whether it is PCCES as people get it."""
        return self.asked.ours

    def values(self, name: str) -> list[float]:
        """A number of every run."""
        return [or_nan(run[name]) for run in self.runs.values()]

    @property
    def returns(self) -> dict[int, float]:
        """By seed."""
        return dict(zip(self.runs, self.values("return")))

    @property
    def cost(self) -> str | None:
        """The name of the first cost's curve, if there are costs."""
        return next((name for name in self.first["curve"] if name.startswith("cost_")), None)

    @property
    def first(self) -> Record:
        """Any of the runs."""
        return next(iter(self.runs.values()))

    @property
    def limit(self) -> float | None:
        """What the first cost may be."""
        return self.first["thresholds"][0] if self.first["thresholds"] else None

    def mean_cost(self) -> Interval:
        """The mean cost of the returned policies."""
        return mean_interval([or_nan(run["costs"][0]) for run in self.runs.values()])

    def last_costs(self) -> list[float]:
        """The first cost at the end of training: a mean over the last iterations."""
        return self.last("cost")

    def last(self, name: str) -> list[float]:
        """The return, or the first cost, at the end of training: a mean over the last iterations."""
        column = self.cost if name == "cost" else name
        assert column is not None
        return [or_nan(run["curve"][column][-1]) for run in self.runs.values()]

    def keeps(self) -> int:
        """The number of runs whose returned policy keeps its limits on fresh episodes."""
        return sum(map(feasible, self.runs.values()))

    def certified(self) -> int:
        """The number of runs whose returned policy is certified."""
        return sum(run["certified"] for run in self.runs.values())

    def asymptotic(self) -> int:
        """The number of certified runs that are not guaranteed; results from before grades are all guaranteed."""
        return sum(run.get("grade") == ASYMPTOTIC for run in self.runs.values())

    def seconds(self) -> float:
        """How long the training took. Seeds that ran side by side were stopped by one clock, so theirs are equal."""
        return math.fsum({run["seconds"] for run in self.runs.values()})

    def machines(self) -> dict[str, float]:
        """How long the training took on each machine."""
        clocks = {(machine(run.get("where", self.made_on)), run["seconds"]) for run in self.runs.values()}
        names = dict.fromkeys(name for name, _ in sorted(clocks))
        return {name: math.fsum(seconds for other, seconds in clocks if other == name) for name in names}

    def steps(self) -> float:
        """Environment steps per seed."""
        return math.fsum(self.values("steps")) / len(self.runs)


def machine(made_on: dict[str, Any]) -> str:
    """What something ran on, in words.

    >>> machine({"device": "cpu", "machine": "x86_64", "cores": 2})
    'CPU (x86_64), 2 cores'
    """
    cores = f"{made_on['cores']} core{'s' * (made_on['cores'] != 1)}"
    return f"CPU ({made_on['machine']}), {cores}" if made_on["device"] == "cpu" else f"{made_on['device']}, {cores}"


def or_nan(value: float | None) -> float:
    """What JSON could not hold was none."""
    return math.nan if value is None else float(value)


def feasible(run: Record) -> bool:
    """Whether the policy that a run returned costs no more than it may, on fresh episodes."""
    return all(or_nan(cost) <= limit for cost, limit in zip(run["costs"], run["thresholds"]))


def results_of(experiment: Experiment, store: Store) -> list[ArmResult]:
    """The arms that have results, of the experiment's seeds (others were for tuning)."""
    results = []
    for arm in experiment.arms:
        ran = store.nearest(arm, experiment.numbers)
        if ran is None:  # a quick study's may differ in more than its length
            ran = store.nearest(replace(quick(arm), iterations=arm.iterations), experiment.numbers)
        if ran is None:
            continue
        runs = {seed: run for seed, run in store.read(ran).items() if seed in experiment.numbers}
        runs = {seed: run for seed, run in runs.items() if set(experiment.measures) <= set(run)}
        if runs:
            full = ran == arm and len(runs) == experiment.seeds
            results.append(ArmResult(arm, ran, runs, store.made_on(ran), store.settings(ran), full))
    return results


def by_task(results: Iterable[ArmResult]) -> dict[str, list[ArmResult]]:
    """In the order of the arms."""
    tasks: dict[str, list[ArmResult]] = {}
    for result in results:
        tasks.setdefault(result.asked.task, []).append(result)
    return tasks


def by_label(results: Iterable[ArmResult]) -> dict[str, list[ArmResult]]:
    """By algorithm and preset."""
    labels: dict[str, list[ArmResult]] = {}
    for result in results:
        labels.setdefault(result.asked.label, []).append(result)
    return labels


def count_runs(results: Iterable[ArmResult]) -> int:
    """The number of runs of all these arms."""
    return sum(len(result.runs) for result in results)


@dataclass(frozen=True)
class Comparison:
    """One arm beside another on the same task with as many samples and iterations, paired by seed."""

    ours: ArmResult
    theirs: ArmResult
    gap: Interval  # of returns


def comparisons(results: Sequence[ArmResult], preset: str = "default") -> list[Comparison]:
    """PCCES with a preset beside everything else that ran under the same conditions."""
    made = []
    for ours in results:
        if ours.asked.algorithm != "pcces" or ours.asked.preset != preset:
            continue
        for theirs in results:
            other = (theirs.asked.algorithm, theirs.asked.preset) != ("pcces", preset)
            if other and same_conditions(ours.ran, theirs.ran) and len(set(ours.runs) & set(theirs.runs)) > 1:
                made.append(Comparison(ours, theirs, difference(ours.returns, theirs.returns)))
    return made


def at_equal_steps(comparison: Comparison) -> Interval:
    """The same difference where the one that played fewer steps of the task ended: of the policies that each had then."""
    ours, theirs = comparison.ours.runs, comparison.theirs.runs
    ends = {seed: min(ours[seed]["steps"], theirs[seed]["steps"]) for seed in set(ours) & set(theirs)}
    return difference(*({seed: _after(runs[seed], end) for seed, end in ends.items()} for runs in (ours, theirs)))


def _after(run: Record, steps: float) -> float:
    """The return of a run's policy when it had played so many steps."""
    curve = run["curve"]
    passed = [i for i, played in enumerate(curve["steps"]) if played <= steps * (1 + 1e-9)]
    return or_nan(curve["return"][passed[-1] if passed else 0])


def same_conditions(a: Arm, b: Arm) -> bool:
    """Whether two arms are run under the same conditions; what has no population goes with any."""
    sampled = a.population == b.population or None in (a.population, b.population)
    return sampled and (a.task, a.threshold, a.iterations) == (b.task, b.threshold, b.iterations)
