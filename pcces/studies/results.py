"""What is known of an experiment: its arms with the results there are, at the full scale or a smaller one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pcces.rl.settings import NOISY
from pcces.studies.arms import Arm, Record, Store
from pcces.studies.statistics import Interval, difference, mean_interval

if TYPE_CHECKING:
    from pcces.studies.catalogue import Experiment

# Settings that are not part of a name: how large nets are, how they start, how much is played.
UNSAID = (
    "hidden", "initial_tries", "last_layer", "episodes", "metric_episodes", "member_episodes", "stride_episodes",
    "epoch_steps",
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """An arm, and the runs there are of it: of the arm as `asked` for, or with fewer iterations as it `ran`."""

    asked: Arm
    ran: Arm
    runs: dict[int, Record]
    where: dict[str, Any]  # what they were made with, but for those that say otherwise
    settings: dict[str, Any]  # all of the algorithm's
    full: bool  # whether all seeds ran, as long as asked for

    @property
    def name(self) -> str:
        """What it is called within its task."""
        return named(self.asked)

    @property
    def ours(self) -> bool:
        """Whether it is PCCES as we tuned it."""
        return self.asked.algorithm == "pcces" and self.asked.preset == "default"

    def values(self, name: str) -> list[float]:
        """A number of every run."""
        return [number(run[name]) for run in self.runs.values()]

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
        """Of the policies returned."""
        return mean_interval([number(run["costs"][0]) for run in self.runs.values()])

    def last_costs(self) -> list[float]:
        """The first cost at the end of training: a mean over the last iterations."""
        return self.last("cost")

    def last(self, name: str) -> list[float]:
        """The return, or the first cost, at the end of training: a mean over the last iterations."""
        column = self.cost if name == "cost" else name
        assert column is not None
        return [number(run["curve"][column][-1]) for run in self.runs.values()]

    def keeps(self) -> int:
        """Of how many runs the policy returned costs no more than it may, on fresh episodes."""
        return sum(map(feasible, self.runs.values()))

    def certified(self) -> int:
        """Of how many runs the policy returned is certified."""
        return sum(run["certified"] for run in self.runs.values())

    def seconds(self) -> float:
        """How long the training took. Seeds that ran side by side were stopped by one clock, so theirs are equal."""
        return math.fsum({run["seconds"] for run in self.runs.values()})

    def machines(self) -> dict[str, float]:
        """How long the training took on each machine."""
        clocks = {(machine(run.get("where", self.where)), run["seconds"]) for run in self.runs.values()}
        names = dict.fromkeys(name for name, _ in sorted(clocks))
        return {name: math.fsum(seconds for other, seconds in clocks if other == name) for name in names}

    def steps(self) -> float:
        """Of the task, a seed."""
        return math.fsum(self.values("steps")) / len(self.runs)


def machine(where: dict[str, Any]) -> str:
    """What something ran on, in words.

    >>> machine({"device": "cpu", "machine": "x86_64", "cores": 2})
    'CPU (x86_64), 2 cores'
    """
    cores = f"{where['cores']} core{'s' * (where['cores'] != 1)}"
    return f"CPU ({where['machine']}), {cores}" if where["device"] == "cpu" else f"{where['device']}, {cores}"


def number(value: float | None) -> float:
    """What JSON could not hold was none."""
    return math.nan if value is None else float(value)


def feasible(run: Record) -> bool:
    """Whether the policy that a run returned costs no more than it may, on fresh episodes."""
    return all(number(cost) <= limit for cost, limit in zip(run["costs"], run["thresholds"]))


def known(experiment: Experiment, store: Store) -> list[Found]:
    """The arms that have results, of the experiment's seeds (others were for tuning)."""
    from pcces.studies.catalogue import quick

    found = []
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
            found.append(Found(arm, ran, runs, store.where(ran), store.settings(ran), full))
    return found


def by_task(found: Iterable[Found]) -> dict[str, list[Found]]:
    """In the order of the arms."""
    tasks: dict[str, list[Found]] = {}
    for one in found:
        tasks.setdefault(one.asked.task, []).append(one)
    return tasks


def named(arm: Arm) -> str:
    """An arm within its task.

    >>> named(Arm("Acrobot-v1", population=80, settings={"mu": 0.1})), named(Arm("CartSafe-v0", settings=NOISY))
    ('PCCES, 80 samples, mu 0.1', 'PCCES, noisy preset')
    """
    shown = {name: value for name, value in arm.settings.items() if name not in UNSAID}
    tell = {name: value for name, value in NOISY.items() if name not in UNSAID}  # at any scale
    preset = ""
    if tell.items() <= shown.items():
        preset, shown = ", noisy preset", {name: value for name, value in shown.items() if name not in tell}
    population = f", {arm.population} samples" if arm.population else ""
    return arm.label + preset + population + "".join(f", {name} {value:g}" for name, value in shown.items())


@dataclass(frozen=True)
class Comparison:
    """One arm beside another on the same task with as many samples and iterations, paired by seed."""

    ours: Found
    theirs: Found
    gap: Interval  # of returns


def comparisons(found: Sequence[Found], preset: str = "default") -> list[Comparison]:
    """PCCES with a preset beside everything else that ran under the same conditions."""
    made = []
    for ours in found:
        if ours.asked.algorithm != "pcces" or ours.asked.preset != preset:
            continue
        for theirs in found:
            other = (theirs.asked.algorithm, theirs.asked.preset) != ("pcces", preset)
            if other and alike(ours, theirs) and len(set(ours.runs) & set(theirs.runs)) > 1:
                made.append(Comparison(ours, theirs, difference(ours.returns, theirs.returns)))
    return made


def at_equal_steps(one: Comparison) -> Interval:
    """The same difference where the one that played fewer steps of the task ended: of the policies that each had then."""
    ours, theirs = one.ours.runs, one.theirs.runs
    ends = {seed: min(ours[seed]["steps"], theirs[seed]["steps"]) for seed in set(ours) & set(theirs)}
    return difference(*({seed: _after(runs[seed], end) for seed, end in ends.items()} for runs in (ours, theirs)))


def _after(run: Record, steps: float) -> float:
    """The return of a run's policy when it had played so many steps."""
    curve = run["curve"]
    passed = [i for i, played in enumerate(curve["steps"]) if played <= steps * (1 + 1e-9)]
    return number(curve["return"][passed[-1] if passed else 0])


def alike(one: Found, other: Found) -> bool:
    """Whether two arms ran under the same conditions; what has no population goes with any."""
    a, b = one.ran, other.ran
    sampled = a.population == b.population or None in (a.population, b.population)
    return sampled and (a.task, a.threshold, a.iterations) == (b.task, b.threshold, b.iterations)
