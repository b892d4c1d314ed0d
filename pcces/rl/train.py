"""`train` and `train_seeds`: from a task to a certified policy."""

from __future__ import annotations

import contextlib
import json
import math
import operator
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pcces.core.estimation import Estimate
from pcces.envs.simulator import CostFunction, Simulator
from pcces.envs.task import Task
from pcces.rl import algorithms, certify, checkpoints, where
from pcces.rl.candidates import Candidates
from pcces.rl.checkpoints import Checkpoint
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem, checked_bounds, from_json, problem_for, to_json
from pcces.rl.run import Run, read_certificate, read_config, read_metrics, summary
from pcces.support import files as storage
from pcces.support.interrupt import uninterrupted

if TYPE_CHECKING:
    from pcces.rl.progress import TrainingProgress

CHECKPOINT_SECONDS = 20.0
FREE = ("workers", "ray_address", "step_timeout")  # what a resumed run may have otherwise: the result is the same
CERTIFY_SEED = 10_000_000  # far from any training seed: these episodes are fresh


def train(
    task: str | Task | Simulator,
    algorithm: str = "pcces",
    preset: str = "default",
    iterations: int = 300,
    population: int | None = None,
    seed: int = 0,
    threshold: float | Sequence[float] | None = None,
    engine: str | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    **settings: Any,
) -> Run:
    """Train a policy, and return the best iterate that fresh episodes certify to keep the task's limits.

    `threshold` limits the mean cost of an episode (one number for each of the task's costs; None: the task's own).
    With `out` the run writes a folder, and `resume=True` goes on with one that is there until it has `iterations`, which may
    be more than it had before: the result is that of a run which was as long from the start.

    `task` is one of `pcces.envs.tasks()`, or whatever `gymnasium.make` knows, or a `pcces.envs.simulator.simulator(...)`.
    `engine`: "device" compiles tasks written in JAX, "local" plays episodes in worker processes, "ray" on a cluster at
    `ray_address` (or on this machine); None takes the device where it can. `workers`: how many (None: one a core, or as
    many as the cluster has CPUs); the result does not depend on it. A simulator's step may take `step_timeout` seconds
    before its worker is ended and the episode counts as failed. `cost(observation, action, info)` gives the cost(s) of a
    step where the environment itself does not, and `cost_bounds` says what it can be at least and at most, so that the
    certificate need not trust that rare large costs were seen.

    `algorithm` is "pcces" or one of the baselines it is compared with: "openes", "asebo", "ppo-lag", "rcpo", "cpo". All
    leave the same folder, metrics, report and certificate. An iteration of the last three is an epoch of `epoch_steps`
    environment steps; the others try a `population` of policies, 40 unless told otherwise.

    Further keywords are the algorithm's settings (`pcces.rl.settings.Settings`; for the baselines the class in their file
    of `pcces.baselines`), or `entropy_bounds`, `confidence`, `certify_episodes`, `progress`, `callback` and `report`.
    Baselines know no entropy bounds, so theirs are infinite unless given.

    >>> run = train("CartPole-v0", iterations=3, population=8, certify_episodes=50, initial_tries=4, warm_up=1)
    >>> run.certificate.holds, len(run.metrics["return"])
    (True, 3)
    """
    return train_seeds(
        task, [seed], algorithm, preset, iterations, population, threshold, engine, workers, [out], resume, **settings
    )[0]


def train_seeds(
    task: str | Task | Simulator,
    seeds: Sequence[int] = range(10),
    algorithm: str = "pcces",
    preset: str = "default",
    iterations: int = 300,
    population: int | None = None,
    threshold: float | Sequence[float] | None = None,
    engine: str | None = None,
    workers: int | None = None,
    out: str | Path | Sequence[str | Path | None] | None = None,
    resume: bool = False,
    confidence: float = 0.95,
    certify_episodes: int | None = None,
    entropy_bounds: tuple[float, float] | None = None,
    ray_address: str | None = None,
    step_timeout: float | None = None,
    cost: CostFunction | None = None,
    cost_bounds: tuple[float, float] | None = None,
    progress: bool | None = None,
    callback: Callable[[list[Run]], Any] | None = None,
    report: bool = True,
    **settings: Any,
) -> list[Run]:
    """`train` for several seeds at once, in one compiled program; `out` gets a folder `seed-0`, `seed-1`, .. each.

    `report=False` leaves out the HTML pages, which take seconds.

    >>> runs = train_seeds("CartPole-v0", range(2), iterations=2, population=8, certify_episodes=50, initial_tries=4)
    >>> [run.config["seed"] for run in runs]
    [0, 1]
    """
    training = prepare(
        task, seeds, algorithm, preset, iterations, population, threshold, engine, workers, out, resume, confidence,
        certify_episodes, entropy_bounds, ray_address, step_timeout, cost, cost_bounds, **settings,
    )  # fmt: skip
    training.run(progress, callback, report)
    return training.runs


def prepare(
    task: str | Task | Simulator,
    seeds: Sequence[int],
    algorithm: str = "pcces",
    preset: str = "default",
    iterations: int = 300,
    population: int | None = None,
    threshold: float | Sequence[float] | None = None,
    engine: str | None = None,
    workers: int | None = None,
    out: str | Path | Sequence[str | Path | None] | None = None,
    resume: bool = False,
    confidence: float = 0.95,
    certify_episodes: int | None = None,
    entropy_bounds: tuple[float, float] | None = None,
    ray_address: str | None = None,
    step_timeout: float | None = None,
    cost: CostFunction | None = None,
    cost_bounds: tuple[float, float] | None = None,
    **settings: Any,
) -> Training:
    """Check everything that can be checked before any work, and make the runs of `train_seeds`, ready to go.

    >>> prepare("CartPole-v0", [0], population=7)
    Traceback (most recent call last):
    ...
    ValueError: population must be an even number of at least 4 (directions come in mirrored pairs), got 7
    """
    found = algorithms.find(algorithm)
    made, engine = where.find(task, engine, cost, cost_bounds)
    asked_of_it = where.checked(engine, workers, ray_address, step_timeout)
    if certify_episodes is None:
        certify_episodes = where.CERTIFY_EPISODES[engine]
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    certify_episodes = _whole("certify_episodes", certify_episodes)
    if certify_episodes < 2:
        raise ValueError(f"a certificate needs at least 2 episodes, got certify_episodes={certify_episodes}")
    seeds = [_whole("a seed", s) for s in seeds]
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ValueError(f"seeds must be different numbers, none negative, got {seeds}")
    if population is not None:
        settings["population"] = population
    if entropy_bounds is not None:
        entropy_bounds = checked_bounds(entropy_bounds)
    if preset == "default" and found.slow:
        slow = where.first_settings(made, engine, entropy_bounds or made.entropy_bounds, found.slow)
        if "sigma_es_min" in slow and "sigma_es0" in settings:
            slow["sigma_es_min"] = min(slow["sigma_es_min"], settings["sigma_es0"])
        settings = slow | settings
    chosen = found.settings(preset, iterations=iterations, **settings)
    if entropy_bounds is None and not found.limits_entropy:
        entropy_bounds = (-math.inf, math.inf)
    limits = tuple(threshold) if isinstance(threshold, Sequence) else threshold
    problem = problem_for(made, chosen.mu, limits, entropy_bounds, chosen.discounted)
    shape = Policy(made.observation_size, made.actions, tuple(chosen.hidden))
    together = Path(out) if isinstance(out, str | Path) else None
    if isinstance(out, Sequence) and not isinstance(out, str):
        paths = [None if path is None else Path(path) for path in out]
    else:
        paths = [None if together is None else together / f"seed-{s}" for s in seeds]
    if resume and any(path is None for path in paths):
        raise ValueError("resume needs out: the folder of the run to go on with")
    runs = []
    for number, path in zip(seeds, paths):
        config = {
            "task": task if isinstance(task, str) and ":" in task else made.name,
            "algorithm": algorithm,
            "preset": preset,
            "seed": number,
            "engine": engine,
            **asked_of_it,
            "simulator": made.to_dict() if isinstance(made, Simulator) else None,
            "thresholds": list(problem.thresholds),
            "entropy_bounds": to_json(problem.entropy_bounds),
            "confidence": confidence,
            "certify_episodes": certify_episodes,
            "settings": chosen.to_dict(),
        }
        _check_folder(path, config, resume)
        runs.append(Run(config | {"versions": versions()}, made, shape, problem, path=path))
    if resume and all(_complete(path, chosen.iterations) for path in paths if path is not None):
        return Training([load(path) for path in paths if path is not None], together=together)
    kept = checkpoints.read(runs) if resume else None
    if kept and kept[0].done > chosen.iterations:
        raise ValueError(
            f"the run has {kept[0].done} iterations already: with iterations={kept[0].done} it ends here, with more it goes on"
        )
    for run, checkpoint in zip(runs, kept or ()):
        assert run.path is not None
        run.metrics = checkpoints.metrics_before(checkpoint, run.path / "metrics.csv")
    return Training(runs, kept, together)


def _whole(name: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError as error:
        raise ValueError(f"{name} must be a whole number, got {value!r}") from error


def _complete(path: Path, iterations: int) -> bool:
    """Whether a run has its policy, and was as long as it should be."""
    return (path / "policy.npz").exists() and read_config(path)["settings"]["iterations"] >= iterations


def _check_folder(path: Path | None, config: dict[str, Any], resume: bool) -> None:
    """That a new run has a folder to itself, and one that goes on is what is asked for, however long."""
    if path is None:
        return
    if not resume:
        if path.exists() and any(path.iterdir()):
            raise FileExistsError(
                f"{path} exists already: give another folder, delete it, or go on with it (--resume, resume=True)"
            )
        return
    if not (path / "config.json").exists():
        raise FileNotFoundError(f"there is no run to go on with in {path}")
    before = read_config(path)
    as_json = json.loads(json.dumps(config))
    as_json["settings"]["iterations"] = before["settings"]["iterations"]
    check_same(path, before, as_json)


def check_same(path: Path, before: dict[str, Any], asked: dict[str, Any]) -> None:
    """That nothing is asked for which a run that is to go on has otherwise; it may go on with other workers."""
    for name, value in asked.items():
        if name in FREE or (name == "engine" and "device" not in (before.get("engine", "device"), value)):
            continue
        if before.get(name) != value:
            was, now = before.get(name), value
            if isinstance(was, dict) and isinstance(now, dict):
                key = next(key for key in was | now if was.get(key) != now.get(key))
                name, was, now = f"{name}.{key}", was.get(key), now.get(key)
            raise ValueError(
                f"the run in {path} has {name} = {was!r}, but {now!r} is asked for: it cannot go on as that"
            )


def versions() -> dict[str, str]:
    """What a run was made with."""
    found = {"python": platform.python_version()}
    for name in ("pcces", "numpy", "jax", "gymnasium", "mujoco", "pybullet"):
        with contextlib.suppress(PackageNotFoundError):  # the last ones are extras
            found[name] = version(name)
    return found


class Training:
    """Runs in progress: advances them chunk by chunk, writes their folders, certifies what came out."""

    def __init__(self, runs: list[Run], found: list[Checkpoint] | None = None, together: Path | None = None):
        self.runs, self.together = runs, together
        first = runs[0]
        self.settings = algorithms.find(first.config["algorithm"]).from_dict(first.config["settings"])
        self.iterations = self.settings.iterations
        outputs = 1 + len(first.problem.names)
        self.candidates = [Candidates(first.shape.size, first.task.observation_size, outputs) for _ in runs]
        self.moved = [True] * len(runs)
        self.started = time.perf_counter()
        self.spent = 0.0
        self.states: Any = None
        if self.finished:
            return
        self.opening = "compiling" if first.config["engine"] == "device" else "starting workers"
        self.engine = where.make_engine(first, [run.config["seed"] for run in runs], self.settings)
        if found:
            try:
                self._restore(found)
            except BaseException:
                where.close(self.engine)
                raise
        for run in runs:
            if run.path is not None:
                run.path.mkdir(parents=True, exist_ok=True)
                run.reopen()

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
        """Everything from here to the certificate."""
        from pcces.rl.progress import TrainingProgress

        if self.finished:
            return
        with TrainingProgress(self, progress) as shown:
            try:
                self._search(shown, callback)
                self.checkpoint()
                for i in range(len(self.runs)):
                    shown.say(f"certifying on fresh episodes ({i + 1}/{len(self.runs)})")
                    self._certify(i)
            except KeyboardInterrupt:
                if self.states is not None:
                    self.checkpoint()
                raise
            finally:
                where.close(self.engine)
            if report:
                shown.say("writing the report")
                self._report()

    def _search(self, shown: TrainingProgress, callback: Callable[[list[Run]], Any] | None) -> None:
        if self.states is None:
            self.states = self.engine.start()
        saved = -math.inf  # the first checkpoint comes with the first iterations: what compiled once is worth keeping
        while self.done < self.iterations:
            count = min(self.engine.chunk, self.iterations - self.done)
            states, metrics = self.engine.advance(self.states, count)
            with uninterrupted():  # states and metrics belong together
                self.states = states
                self._note(metrics, count)
            shown.update()
            if callback is not None:
                callback(self.runs)
            if time.perf_counter() - saved > CHECKPOINT_SECONDS:
                self.checkpoint()
                saved = time.perf_counter()

    def _report(self) -> None:
        from pcces import report

        alone = len(self.runs) == 1
        for run in self.runs:
            if run.path is not None:
                report.write([run], run.path / "report.html", film=alone)
        if self.together is not None:
            report.write(self.runs, self.together / "report.html")

    def _note(self, metrics: dict[str, Any], count: int) -> None:
        """Add a chunk of iterations to every run's metrics and candidates."""
        seconds = self.spent + time.perf_counter() - self.started
        for i, run in enumerate(self.runs):
            mine = {name: _row(value, i) for name, value in metrics.items()}
            for k in range(count):
                fresh = Estimate(*(part[k] for part in mine["estimate"]))
                self.candidates[i].add(mine["x"][k], mine["mean"][k], mine["std"][k], fresh, self.moved[i])
                self.moved[i] = bool(mine["success"][k])
                done = self.done_of(run)
                line = {"iteration": done} | flat(run.problem, mine, k)
                before = run.metrics.get("steps", [0.0])
                line["steps"] += before[-1] if before else 0.0
                line["seconds"] = seconds
                for name in run.metrics | line:  # another version may have noted other things
                    run.metrics.setdefault(name, [math.nan] * done).append(line.get(name, math.nan))

    def done_of(self, run: Run) -> int:
        """Iterations this run has noted."""
        return len(run.metrics.get("iteration", []))

    def _certify(self, i: int) -> None:
        run, c = self.runs[i], self.runs[i].config
        seed = CERTIFY_SEED + 1000 * c["seed"]
        x, normalizer, certificate, outcome = certify.choose(
            run.task, run.shape, run.problem, self.engine.play, self.candidates[i], c["certify_episodes"], seed,
            c["confidence"],
        )  # fmt: skip
        run.x, run.normalizer, run.certificate = x, normalizer, certificate
        run.final = summary(run.problem, outcome)
        if run.path is not None:
            run.save_policy()

    # -- checkpoints ---------------------------------------------------------------------------------------------------

    def checkpoint(self) -> None:
        """Write what every run needs to go on from here to the same end."""
        seconds = self.spent + time.perf_counter() - self.started
        leaves = checkpoints.leaves(self.states)
        found = [
            Checkpoint([np.asarray(leaf[i]) for leaf in leaves], candidates.arrays(), self.done, self.moved[i], seconds)
            for i, candidates in enumerate(self.candidates)
        ]
        with uninterrupted():
            for run in self.runs:
                if run.path is not None:
                    run.save_metrics()
            checkpoints.write(self.runs, found)

    def _restore(self, found: list[Checkpoint]) -> None:
        self.states = checkpoints.stacked(self.engine.template(), found)
        for i, checkpoint in enumerate(found):
            self.candidates[i].restore(checkpoint.candidates)
            self.moved[i], self.spent = checkpoint.moved, checkpoint.seconds


def flat(problem: Problem, metrics: dict[str, Any], k: int) -> dict[str, float]:
    """One line of metrics.csv."""
    line = {"return": float(metrics["return"][k])}
    costs = metrics["costs"][k]
    line |= {f"cost_{name}": float(costs[j]) for j, name in enumerate(problem.cost_names)}
    over = any(float(costs[j]) > t for j, t in enumerate(problem.thresholds))
    line |= {"entropy": float(metrics["entropy"][k]), "length": float(metrics["length"][k])}
    if problem.cost_names:
        line["over_threshold"] = float(over)
    skip = {"return", "costs", "entropy", "length", "x", "mean", "std", "estimate"}
    line |= {name: float(values[k]) for name, values in metrics.items() if name not in skip and values[k].ndim == 0}
    return line


def _row(value: Any, i: int) -> Any:
    return Estimate(*(part[i] for part in value)) if isinstance(value, Estimate) else value[i]


def load(path: str | Path, cost: CostFunction | None = None) -> Run:
    """A run from its folder; a task of your own has to be registered first (`pcces.envs.register_task`).

    A cost function that the run was given has to be given again to evaluate it; for all else it is not needed.
    """
    path = Path(path)
    config = read_config(path)
    task: Task | Simulator
    if config.get("simulator"):
        task = where.remembered(config["task"], config["simulator"], cost)
    else:
        task = where.known(config["task"])
    settings = config["settings"]
    problem = problem_for(
        task,
        settings["mu"],
        tuple(config["thresholds"]) or None,
        from_json(config["entropy_bounds"]),
        settings["discounted"],
    )
    shape = Policy(task.observation_size, task.actions, tuple(settings["hidden"]))
    run = Run(config, task, shape, problem, path=path)
    if (path / "metrics.csv").exists():
        run.metrics = read_metrics(path / "metrics.csv")
    if (path / "policy.npz").exists():
        arrays, data = storage.load(path / "policy.npz", "policy")
        if data["task"] != config["task"]:
            raise ValueError(f"the policy in {path} is of {data['task']}, but its config says {config['task']}")
        run.x, run.normalizer = arrays["x"], certify.normalizer_of(arrays["mean"], arrays["std"])
        run.certificate, run.final = read_certificate(path / "certificate.json", problem)
    return run
