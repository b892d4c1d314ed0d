"""Which settings suit a task: the few that matter are varied, on seeds kept for that, within a budget of environment steps.

Many candidates are trained with one seed, the better half of them with another, and so on. The best is then compared with the
defaults on seeds that chose nothing, so that luck in being chosen does not count.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from pcces.envs.task import Continuous
from pcces.rl.algorithm import Algorithm
from pcces.rl.progress import duration
from pcces.rl.request import Request
from pcces.rl.run import Run
from pcces.rl.training import Training
from pcces.support.files import write_atomically
from pcces.support.jsonable import to_json
from pcces.support.streams import is_terminal, say

FILE = "tuning.json"
FIRST_SEED = 1000  # of those kept for tuning
COMPARED = 4  # seeds on which the best candidate and the defaults are compared
FEWEST = 3  # candidates, the defaults among them
SURE = 0.95
# The settings that matter, and how far from its default each is tried.
FACTORS = {"rate": 4.0, "epoch_steps": 3.0, "target_kl": 3.0, "price_rate": 4.0, "multiplier_rate": 4.0, "step_size": 4.0, "sigma": 3.0}  # fmt: skip
HORIZON = 5.0  # likewise of 1 / (1 - discount)
NOISE = (-1.5, 0.5)  # what is added to log_std
WIDTHS = ((32, 32), (64, 64), (128, 128))


class SettingsTrial(NamedTuple):
    """A training with one candidate's settings, and what fresh episodes said of its policy."""

    candidate: int
    seed: int
    certified: bool
    mean_return: float


class Tuned(NamedTuple):
    """What came of it."""

    settings: dict[str, Any]
    """of the best candidate, as far as they are not the defaults; none where it is not clearly better than them"""
    words: str
    trials: list[SettingsTrial]
    candidates: list[dict[str, Any]]


class Tuning:
    """A search for settings in progress; with a folder it can be stopped and gone on with."""

    def __init__(
        self,
        task: Any,
        algorithm: Algorithm,
        asked: dict[str, Any],
        steps: float,
        budget: float | None,
        out: str | Path | None,
        seed: int,
    ):
        self.task, self.algorithm, self.asked, self.steps = task, algorithm, asked | {"steps": steps}, steps
        for name in ("out", "resume", "iterations", "seed", "seeds"):
            if name in asked:
                raise TypeError(f"a search for settings has no {name}: it makes many trainings of `steps` steps each")
        self.count = candidates_within(steps, 30 * steps if budget is None else budget)
        self.first = seed
        (run,) = self._request({}, [seed]).runs()  # what cannot be done is said before any work
        self.limited = bool(run.problem.limits)
        self.candidates = drawn(run, algorithm, set(asked), self.count, seed)
        self.trials: list[SettingsTrial] = []
        self.path = None if out is None else Path(out) / FILE
        self.about = {
            "task": run.config["task"], "algorithm": algorithm.name, "steps": steps, "candidates": self.candidates,
            "thresholds": run.config["thresholds"], "limits": run.config["limits"], "seed": seed,
        }  # fmt: skip
        if self.path is not None and self.path.exists():
            self.trials = trials_in(self.path, self.about)
        self.wanted = bool(is_terminal())
        self.began, self.done_before = time.perf_counter(), len(self.trials)

    @property
    def trainings(self) -> int:
        """How many there will be."""
        return sum(halves(self.count)) + 2 * COMPARED

    def run(self, progress: bool | None = None) -> Tuned:
        """Everything; what a folder holds is not done again."""
        self.wanted = self.wanted if progress is None else progress
        alive = list(range(self.count))
        for number, size in enumerate(halves(self.count)):
            alive = self._best(alive, self.first + number)[:size]
            self._train(alive, [self.first + number])
        fresh = [self.first + len(halves(self.count)) + i for i in range(COMPARED)]
        best = next(candidate for candidate in self._best(alive, fresh[0]) if candidate != 0)
        self._train([0, best], fresh)
        return self._concluded(best, fresh)

    def _best(self, candidates: Sequence[int], before: int) -> list[int]:
        """Candidates, the best first, by their trials with seeds before this one: policies that are certified count first."""

        def merit(candidate: int) -> tuple[float, float]:
            own = [trial for trial in self.trials if trial.candidate == candidate and trial.seed < before]
            certified, returns = [t.certified for t in own], [t.mean_return for t in own]
            return np.mean(certified).item(), np.mean(returns).item()

        return list(candidates) if before == self.first else sorted(candidates, key=merit, reverse=True)

    def _train(self, candidates: Sequence[int], seeds: Sequence[int]) -> None:
        for candidate in candidates:
            known = {trial.seed for trial in self.trials if trial.candidate == candidate}
            if missing := [seed for seed in seeds if seed not in known]:
                training = Training.of(self._request(self.candidates[candidate], missing))
                training.run(False, None, report=False)
                for run in training.runs:
                    holds = run.certificate is not None and bool(run.certificate.holds)
                    self.trials.append(SettingsTrial(candidate, run.config["seed"], holds, run.final["return"]))
                    self._say(self.trials[-1])
                self._save()

    def _request(self, settings: dict[str, Any], seeds: Sequence[int]) -> Request:
        return Request.of(self.task, seeds, self.algorithm, self.asked | settings)

    def _say(self, trial: SettingsTrial) -> None:
        if not self.wanted:
            return
        done = len(self.trials)
        left = (time.perf_counter() - self.began) / (done - self.done_before) * (self.trainings - done)
        held = "" if not self.limited else ", certified" if trial.certified else ", not certified"
        say(
            f"training {done}/{self.trainings}: {in_short(self.candidates[trial.candidate])}: return "
            f"{trial.mean_return:.4g}{held}{f'; {duration(left)} left' if left else ''}"
        )

    def _concluded(self, best: int, fresh: Sequence[int]) -> Tuned:
        ours, usual = ([t for t in self.trials if t.candidate == c and t.seed in fresh] for c in (best, 0))
        at = {trial.seed: trial.mean_return for trial in usual}
        gains = np.array([trial.mean_return - at[trial.seed] for trial in ours])
        gain, error = gains.mean().item(), gains.std(ddof=1).item() / math.sqrt(len(gains))
        certified = [sum(trial.certified for trial in some) for some in (ours, usual)]
        clear = gain > scipy.stats.t.ppf(SURE, len(gains) - 1) * error
        better = certified[0] > certified[1] or (certified[0] == certified[1] and clear)
        said = [
            f"{in_short(self.candidates[c])}: return {np.mean([t.mean_return for t in some]):.4g}"
            + (f", {sum(t.certified for t in some)} of {len(some)} certified" if self.limited else "")
            for c, some in ((best, ours), (0, usual))
        ]
        verdict = f"the return is higher by {gain:.3g} (standard error {error:.2g})"
        if better and not clear:
            verdict = "more of its policies are certified"
        if not better:
            verdict = "no clear difference: keep the defaults"
        words = "\n".join([f"on {len(fresh)} fresh seeds:", *(f"  {line}" for line in said), verdict])
        tuned = Tuned(self.candidates[best] if better else {}, words, self.trials, self.candidates)
        self._save(tuned)
        return tuned

    def _save(self, tuned: Tuned | None = None) -> None:
        if self.path is not None:
            data: dict[str, Any] = {"about": self.about, "trials": [trial._asdict() for trial in self.trials]}
            if tuned is not None:
                data["found"] = {"settings": tuned.settings, "words": tuned.words}
            write_atomically(self.path, to_json(data).encode())


def halves(count: int) -> list[int]:
    """How many candidates are trained with the first seed, the second, and so on.

    >>> halves(12), halves(3)
    ([12, 6, 3], [3])
    """
    sizes = [count]
    while sizes[-1] > FEWEST:
        sizes.append(math.ceil(sizes[-1] / 2))
    return sizes


def candidates_within(steps: float, budget: float) -> int:
    """How many candidates a budget of environment steps allows, with trainings of so many `steps`.

    >>> candidates_within(1e6, 30e6)
    12
    """
    if not (math.isfinite(budget) and math.isfinite(steps) and steps >= 1):
        raise ValueError(f"steps and budget must be numbers of environment steps, got {steps!r} and {budget!r}")
    count = FEWEST
    least = sum(halves(count)) + 2 * COMPARED
    if budget < least * steps:
        raise ValueError(
            f"a search takes at least {least} trainings: with {steps:.4g} steps each the budget must be at least "
            f"{least * steps:.4g}, got {budget:.4g}"
        )
    while (sum(halves(count + 1)) + 2 * COMPARED) * steps <= budget:
        count += 1
    return count


def drawn(run: Run, algorithm: Algorithm, fixed: set[str], count: int, seed: int) -> list[dict[str, Any]]:
    """Settings to try, spread evenly over the ranges; the first are the defaults."""
    ways = varied(run, algorithm, fixed)
    if not ways:
        raise ValueError("all settings that could be varied are fixed: leave out some of them")
    points = scipy.stats.qmc.LatinHypercube(len(ways), rng=seed).random(count - 1)
    settings = algorithm.from_dict(run.config["settings"])
    made = ({name: way(u) for (name, way), u in zip(ways.items(), point.tolist())} for point in points)
    return [{}, *({name: value for name, value in each.items() if value != getattr(settings, name)} for each in made)]


def varied(run: Run, algorithm: Algorithm, fixed: set[str]) -> dict[str, Callable[[float], Any]]:
    """The settings that are varied for this run, each with what makes its value from a number in [0, 1]."""
    settings = algorithm.from_dict(run.config["settings"])
    names = {field.name for field in fields(settings)} - fixed
    if not run.problem.cost_names:
        names -= {"price_rate", "multiplier_rate"}

    def times(value: float, factor: float) -> Callable[[float], Any]:
        return lambda u: type(value)(float(f"{value * factor ** (2 * u - 1):.2g}"))

    ways: dict[str, Callable[[float], Any]] = {
        name: times(getattr(settings, name), factor) for name, factor in FACTORS.items() if name in names
    }
    if "discount" in names:
        far = times(1 - settings.discount, HORIZON)
        ways["discount"] = lambda u: round(1 - far(u), 6)
    if "log_std" in names and isinstance(run.task.actions, Continuous):
        ways["log_std"] = lambda u: round(settings.log_std + NOISE[0] + u * (NOISE[1] - NOISE[0]), 2)
    if "hidden" in names:
        ways["hidden"] = lambda u: WIDTHS[min(int(u * len(WIDTHS)), len(WIDTHS) - 1)]
    return ways


def trials_in(path: Path, about: dict[str, Any]) -> list[SettingsTrial]:
    """The trainings that are done, if the file is of this search."""
    try:
        data = json.loads(path.read_text())
        before, trials = data["about"], [SettingsTrial(**trial) for trial in data["trials"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a search for settings: {error}") from error
    now = json.loads(to_json(about))
    if changed := [name for name in now if before.get(name) != now[name]]:
        raise ValueError(f"{path} is a search with other {', '.join(changed)}: give another folder, or delete it")
    return trials


def in_short(settings: dict[str, Any]) -> str:
    """Settings as a person reads them.

    >>> in_short({"rate": 0.001, "hidden": (32, 32)}), in_short({})
    ('rate 0.001, hidden 32,32', 'defaults')
    """
    return ", ".join(f"{name} {as_text(value)}" for name, value in settings.items()) or "defaults"


def as_text(value: Any) -> str:
    """A setting's value as --set takes it."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
