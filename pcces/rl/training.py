"""A training: advances runs chunk by chunk, writes their folders, and certifies what came out."""

from __future__ import annotations

import logging
import math
import shlex
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from pcces.core.estimation import Estimate
from pcces.envs.costs import check_sums
from pcces.rl import beginning, checkpoints, selection
from pcces.rl.algorithm import Algorithm
from pcces.rl.arenas import arena_and_engine
from pcces.rl.checkpoints import Checkpoint
from pcces.rl.first import First
from pcces.rl.folder import load
from pcces.rl.fresh_episodes import of_certificate
from pcces.rl.iterates import Candidates, first_iteration
from pcces.rl.outcome import Spent
from pcces.rl.problem import Problem
from pcces.rl.progress import TrainingProgress
from pcces.rl.request import Request, check_unused, complete
from pcces.rl.run import Run
from pcces.rl.seeds import certify_seed
from pcces.rl.stopping import Stopping, told
from pcces.support.interrupt import uninterrupted
from pcces.support.lock import alone_in
from pcces.support.trees import leaves

log = logging.getLogger("pcces")
CHECKPOINT_SECONDS = 20.0
REPORT = "report.html"


class Training:
    """Runs in progress."""

    def __init__(
        self,
        runs: list[Run],
        algorithm: Algorithm,
        kept: list[Checkpoint] | None = None,
        together: Path | None = None,
        stopping: Stopping | None = None,
        given: First | None = None,
    ):
        self.runs, self.together, self.stopping, self.given = runs, together, stopping or Stopping(), given
        first = runs[0]
        self.settings = settings = algorithm.from_dict(first.config["settings"])
        self.iterations = settings.iterations
        self.budget: int | None = first.config.get("steps")  # in environment steps
        outputs = 1 + len(first.problem.names)
        self.candidates = [Candidates(first.shape.size, first.task.observation_size, outputs) for _ in runs]
        self.moved = [True] * len(runs)
        self.started = time.perf_counter()
        self.spent = 0.0
        self.states: Any = None
        self.kept = 0  # iterations that the checkpoints have
        self.locks = ExitStack()  # on the folders, for as long as this lasts
        if self.finished:
            return
        self.arena, self.engine = arena_and_engine(first, algorithm, settings, [run.config["seed"] for run in runs])
        if kept:
            try:
                self._restore(kept)
            except BaseException:
                self.arena.close()
                raise
        for run in runs:
            if run.path is not None:
                run.path.mkdir(parents=True, exist_ok=True)
                if given is not None and not kept:
                    beginning.keep(run.path, given)
                run.reopen()

    @classmethod
    def of(cls, request: Request) -> Training:
        """The training that is asked for, at its beginning or where it was left."""
        runs = request.runs()
        iterations = runs[0].config["settings"]["iterations"]
        paths = [path for path in request.paths if path is not None]
        if request.resume and all(complete(path, runs[0].config) for path in paths):
            return cls([load(path) for path in paths], request.algorithm, together=request.together)
        with ExitStack() as locks:
            for path in paths:
                locks.enter_context(alone_in(path))
                if not request.resume:
                    check_unused(path)  # another process may have been there since
            kept = checkpoints.read(runs) if request.resume else None
            if kept and kept[0].done > iterations:
                raise ValueError(
                    f"the run has {kept[0].done} iterations: with iterations={kept[0].done} it ends here, with "
                    "more it goes on"
                )
            for run, checkpoint in zip(runs, kept or ()):
                assert run.path is not None
                run.metrics = checkpoints.metrics_before(checkpoint, run.path / "metrics.csv")
            given = begins_with(request, runs[0])
            training = cls(runs, request.algorithm, kept, request.together, request.stopping, given)
            training.locks = locks.pop_all()
            return training

    @property
    def finished(self) -> bool:
        """Whether every run has its certificate."""
        return all(run.certificate is not None for run in self.runs)

    @property
    def done(self) -> int:
        """Iterations behind us."""
        return self.done_of(self.runs[0])

    def run(
        self, progress: bool | None, callback: Callable[[list[Run]], Any] | None = None, report: bool = True
    ) -> None:
        """Everything from here to the certificate; of runs that are finished, the reports that are missing."""
        if self.finished:
            if report:
                self._report(again=False)
            return
        with self.locks, TrainingProgress(self, progress) as shown:
            try:
                self._search(shown, callback)
                self.checkpoint()
                for i in range(len(self.runs)):
                    shown.say(f"certifying on fresh episodes ({i + 1}/{len(self.runs)})")
                    self._certify(i)
            except KeyboardInterrupt:
                self.checkpoint()
                raise
            except Exception:
                with suppress(OSError):  # the reason may be a full disk
                    self.checkpoint()
                raise
            finally:
                self.arena.close()
            if report:
                shown.say("writing the report")
                self._report()

    def _search(self, shown: TrainingProgress, callback: Callable[[list[Run]], Any] | None) -> None:
        if self.states is None:
            self.states = self.engine.start(self.given)
        saved = -math.inf  # the first checkpoint comes with the first iterations: what compiled once is worth keeping
        while (count := self._affordable()) > 0:
            states, metrics = self.engine.advance(self.states, count)
            for run, costs in zip(self.runs, metrics["costs"]):
                check_sums(run.task, np.moveaxis(costs, -1, 0))
            with uninterrupted():  # states and metrics belong together
                self.states = None
                self._note(metrics, count)
                self.states = states
            shown.update()
            if callback is not None and told(callback, self.standing()):
                shown.say("the callback ended the training")
                return
            if why := self._over():
                shown.say(f"training ends: {why}")
                return
            if time.perf_counter() - saved > CHECKPOINT_SECONDS:
                self.checkpoint()
                saved = time.perf_counter()

    def standing(self) -> list[Run]:
        """The runs, with the policies the search stands at."""
        for run, candidates in zip(self.runs, self.candidates):
            run.x, run.normalizer = candidates.policy(len(candidates) - 1)
        return self.runs

    def _over(self) -> str | None:
        """Why the training ends here although its budget is not spent: all its runs have a reason."""
        seconds = self.spent + time.perf_counter() - self.started
        reasons = [self.stopping.reason(run.metrics, seconds) for run in self.runs]
        return reasons[0] if all(reasons) else None

    def _affordable(self) -> int:
        """How many iterations the next call may take: no more than are left, and than the budget of steps holds if they
        take as many steps as the last one did."""
        count = min(self.engine.chunk, self.iterations - self.done)
        if self.budget is None or self.done == 0:
            return count if self.budget is None else min(count, 1)
        courses = [[0.0, *run.metrics["steps"]] for run in self.runs]
        room = min((self.budget - course[-1]) / max(course[-1] - course[-2], 1.0) for course in courses)
        return min(count, int(room))

    @property
    def saved(self) -> bool:
        """Whether every run's folder has its policy and certificate."""
        return all(run.path is None or (run.path / "policy.npz").exists() for run in self.runs)

    def _report(self, again: bool = True) -> None:
        """Write the reports, those that are there again or not. The training is finished also where that cannot be done."""
        from pcces import report
        from pcces.rl.film import ordinary_film

        alone = len(self.runs) == 1
        pages = [([run], run.path, alone) for run in self.runs if run.path is not None]
        pages += [] if self.together is None else [(self.runs, self.together, True)]
        for runs, folder, filmed in pages:
            if (folder / REPORT).exists() and not again:
                continue
            try:
                report.write(runs, folder / REPORT, film=ordinary_film if filmed else None)
            except Exception as error:
                log.warning(
                    "the training is finished, but its report could not be written (%s: %s); to write it: %s",
                    type(error).__name__, error, shlex.join(["pcces", "report", str(folder)]),
                )  # fmt: skip

    def _note(self, metrics: dict[str, Any], count: int) -> None:
        """Add a chunk of iterations to every run's metrics and candidates."""
        seconds = self.spent + time.perf_counter() - self.started
        for i, run in enumerate(self.runs):
            mine = {name: _row(value, i) for name, value in metrics.items()}
            for k in range(count):
                fresh = Estimate(*(part[k] for part in mine["estimate"]))
                self.candidates[i].add(mine["x"][k], mine["mean"][k], mine["std"][k], fresh, self.moved[i])
                self.moved[i] = bool(mine.get("moved", mine["success"])[k])
                done = self.done_of(run)
                line = {"iteration": done} | flat(run.problem, mine, k)
                for name, before in self._spent_before(i).items():
                    line[name] += before
                line["seconds"] = seconds
                for name in run.metrics | line:  # another version may have noted other things
                    run.metrics.setdefault(name, [math.nan] * done).append(line.get(name, math.nan))

    def _spent_before(self, i: int) -> dict[str, float]:
        """What was played of run i until now, as its metrics call it; where an earlier version noted nothing, nan."""
        run = self.runs[i]
        names = ["steps", *(f"total_cost_{name}" for name in run.problem.cost_names)]
        if self.done_of(run):
            return {name: run.metrics.get(name, [math.nan])[-1] for name in names}
        spent = self.engine.spent_at_start
        if spent is None:  # it was interrupted before its first iteration, and goes on
            return dict.fromkeys(names, 0.0)
        return dict(zip(names, map(float, [spent.steps[i], *spent.costs[i]])))

    def done_of(self, run: Run) -> int:
        """Iterations this run has noted."""
        return len(run.metrics.get("iteration", []))

    def _certify(self, i: int) -> None:
        run, c = self.runs[i], self.runs[i].config
        seed = certify_seed(c["seed"])

        spent = []

        def play(*asked: Any) -> Any:
            outcome = self.arena.fresh(*asked)
            spent.append(Spent.on(outcome))
            check_sums(run.task, outcome.costs)
            return outcome

        candidates = self.candidates[i]
        chosen = selection.choose(
            run.task, run.shape, run.problem, play, candidates, c["certify_episodes"], seed, c["confidence"]
        )
        run.x, run.normalizer, run.certificate, outcome, _ = chosen
        run.critics = beginning.critics_of(
            self.states, i, self.settings, chosen.normalizer, 1 + len(run.problem.cost_names)
        )
        played = {
            "certification_steps": float(sum(each.steps for each in spent)),
            "certification_costs": np.sum([each.costs for each in spent], axis=0, dtype=float).tolist(),
        }
        run.final = of_certificate(run.problem, outcome) | played
        if (first := first_iteration(run.metrics, candidates, chosen.number)) is not None:
            run.final["iteration"] = first
        if run.path is not None:
            run.save_policy()

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Write what every run needs to go on from here to the same end, if there is anything yet."""
        if self.states is None:
            return
        seconds = self.spent + time.perf_counter() - self.started
        parts = leaves(self.states)
        now = [
            Checkpoint([np.asarray(part[i]) for part in parts], candidates.arrays(), self.done, self.moved[i], seconds)
            for i, candidates in enumerate(self.candidates)
        ]
        with uninterrupted():
            for run in self.runs:
                if run.path is not None:
                    run.save_metrics()
            checkpoints.write(self.runs, now)
            self.kept = self.done

    def _restore(self, kept: list[Checkpoint]) -> None:
        self.states = checkpoints.stacked(self.engine.template(), kept)
        for i, checkpoint in enumerate(kept):
            self.candidates[i].restore(checkpoint.candidates)
            self.moved[i], self.spent, self.kept = checkpoint.moved, checkpoint.seconds, checkpoint.done


def begins_with(request: Request, run: Run) -> First | None:
    """What the runs start from, if not from random policies: what was asked for, or what a folder of theirs holds."""
    if request.beginning is not None:
        return request.beginning.arrays(run.config["settings"]["discount"])
    return beginning.kept(run.path, run.shape) if request.resume and run.path is not None else None


def flat(problem: Problem, metrics: dict[str, Any], k: int) -> dict[str, float]:
    """One line of metrics.csv."""
    line = {"return": float(metrics["return"][k])}
    costs = metrics["costs"][k]
    line |= {f"cost_{name}": float(costs[j]) for j, name in enumerate(problem.cost_names)}
    over = any(float(costs[j]) > t for j, t in enumerate(problem.thresholds))
    if not problem.on_means:
        over = bool(np.any(metrics["estimate"].mean[k][1 : 1 + len(problem.cost_names)] > 0))
    line |= {"entropy": float(metrics["entropy"][k]), "length": float(metrics["length"][k])}
    if problem.cost_names:
        line["over_threshold"] = float(over)
    line |= {f"total_cost_{name}": float(metrics["spent"][k][j]) for j, name in enumerate(problem.cost_names)}
    skip = {"return", "costs", "entropy", "length", "x", "mean", "std", "estimate", "spent"}
    line |= {name: float(values[k]) for name, values in metrics.items() if name not in skip and values[k].ndim == 0}
    return line


def _row(value: Any, i: int) -> Any:
    return Estimate(*(part[i] for part in value)) if isinstance(value, Estimate) else value[i]
