"""What is asked of a training, checked before any work, and the runs that come of it."""

from __future__ import annotations

import contextlib
import json
import math
import operator
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pcces.core.limits import to_dict
from pcces.envs.costs import Bounds, CostFunction
from pcces.envs.lookup import resolve
from pcces.envs.simulator import Simulator, plain_args
from pcces.envs.task import Continuous, Task
from pcces.rl.algorithm import Algorithm
from pcces.rl.beginning import Beginning
from pcces.rl.folder import read_config
from pcces.rl.policy import Policy
from pcces.rl.problem import check_reachable, checked_bounds, problem_for
from pcces.rl.run import Run
from pcces.rl.seeds import checked_seed
from pcces.rl.settings import BatchSettings
from pcces.rl.stopping import Stopping
from pcces.support.jsonable import jsonable
from pcces.support.lock import NAME as LOCK
from pcces.support.lock import check_free

CERTIFY_EPISODES = {"device": 1000, "local": 200, "ray": 200}
FREE = ("workers", "ray_address", "step_timeout")  # what a resumed run may have otherwise: the result is the same
GAUSSIAN = 0.5 * math.log(2 * math.pi * math.e)  # the entropy of a standard normal


@dataclass(frozen=True)
class Request:
    """The arguments of `pcces.train` and `pcces.train_seeds`, by their names there."""

    task: Any
    seeds: Sequence[int]
    algorithm: Algorithm
    preset: str = "default"
    iterations: int | None = None
    steps: float | None = None
    population: int | None = None
    threshold: float | Sequence[float] | None = None
    limits: Any = None
    engine: str | None = None
    workers: int | None = None
    out: str | Path | Sequence[str | Path | None] | None = None
    resume: bool = False
    confidence: float = 0.95
    certify_episodes: int | None = None
    entropy_bounds: tuple[float, float] | None = None
    ray_address: str | None = None
    step_timeout: float | None = None
    cost: CostFunction | None = None
    max_time: float | None = None
    target: float | None = None
    patience: float | None = None
    cost_bounds: Bounds | str | None = None
    episode_cost_bounds: Bounds | str | None = None
    env_args: dict[str, Any] | None = None
    max_steps: int | None = None
    init: Any = None
    """a finished run, or the folder of one"""
    settings: dict[str, Any] = field(default_factory=dict)
    """of the algorithm"""

    @classmethod
    def of(cls, task: Any, seeds: Sequence[int], algorithm: Algorithm, asked: dict[str, Any]) -> Request:
        """A request from keywords: those that are no fields are settings of the algorithm."""
        own = {f.name for f in fields(cls)} - {"settings"}
        settings = {name: value for name, value in asked.items() if name not in own}
        return cls(task, seeds, algorithm, settings=settings, **{n: v for n, v in asked.items() if n in own})

    @cached_property
    def beginning(self) -> Beginning | None:
        """The policy to begin with, if one is given."""
        return None if self.init is None else Beginning.of(self.init)

    @property
    def stopping(self) -> Stopping:
        """What ends the training early."""
        return Stopping(self.max_time, self.target, self.patience)

    @property
    def together(self) -> Path | None:
        """The folder of all runs, where each has a folder in it."""
        return Path(self.out) if isinstance(self.out, str | Path) else None

    @property
    def paths(self) -> list[Path | None]:
        """The folder of each run."""
        if isinstance(self.out, Sequence) and not isinstance(self.out, str):
            return [None if path is None else Path(path) for path in self.out]
        return [None if self.together is None else self.together / f"seed-{s}" for s in self.seeds]

    def runs(self) -> list[Run]:
        """The runs, ready to go; or an error that says what cannot be done."""
        _ = self.stopping  # checked before any work
        limited = self.threshold is not None or self.limits is not None
        task, engine = resolve(
            self.task, self.engine, self.cost, self.cost_bounds, self.episode_cost_bounds, limited, self.env_args,
            self.max_steps,
        )  # fmt: skip
        asked_of_it = checked_engine(engine, self.workers, self.ray_address, self.step_timeout)
        episodes = CERTIFY_EPISODES[engine] if self.certify_episodes is None else self.certify_episodes
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {self.confidence}")
        if (episodes := whole("certify_episodes", episodes)) < 2:
            raise ValueError(f"a certificate needs at least 2 episodes, got certify_episodes={episodes}")
        seeds = [checked_seed(s) for s in self.seeds]
        if not seeds or len(set(seeds)) < len(seeds):
            raise ValueError(f"seeds must be different numbers, at least one, got {seeds}")
        bounds = None if self.entropy_bounds is None else checked_bounds(self.entropy_bounds)
        settings = self._settings(task, engine, bounds)
        if bounds is None and not self.algorithm.limits_entropy:
            bounds = (-math.inf, math.inf)
        thresholds = tuple(self.threshold) if isinstance(self.threshold, Sequence) else self.threshold
        problem = problem_for(task, settings.mu, thresholds, bounds, settings.discounted, self.limits)
        if not self.resume:
            check_reachable(task, problem)
        if not problem.on_means and self.algorithm.only_means:
            raise ValueError(
                f"{self.algorithm.name} only knows limits on means: give a threshold, or another algorithm"
            )
        shape = Policy(task.observation_size, task.actions, tuple(settings.hidden))
        if self.beginning is not None:
            self.beginning.check(shape)
        if self.resume and any(path is None for path in self.paths):
            raise ValueError("resume needs out: the folder of the run to continue")
        runs = []
        for seed, path in zip(seeds, self.paths):
            config = {
                "task": self._name(task),
                "algorithm": self.algorithm.name,
                "preset": self.preset,
                "seed": seed,
                "engine": engine,
                **asked_of_it,
                "simulator": task.to_dict() if isinstance(task, Simulator) else None,
                "env_args": None if isinstance(task, Simulator) else plain_args(task.name, self.env_args),
                "max_steps": None if isinstance(task, Simulator) or self.max_steps is None else task.max_steps,
                "thresholds": list(problem.thresholds),
                "limits": None if problem.asked is None else dict(zip(problem.cost_names, map(to_dict, problem.asked))),
                "entropy_bounds": jsonable(problem.entropy_bounds),
                "confidence": self.confidence,
                "certify_episodes": episodes,
                "steps": None if self.steps is None else int(self.steps),
                "init": self._begins_with(path),
                "settings": settings.to_dict(),
            }
            self._check_folder(path, config)
            runs.append(Run(config | {"versions": versions()}, task, shape, problem, path=path))
        return runs

    def _name(self, task: Task | Simulator) -> str:
        """What a run's task is called, with the module that it comes from, if that was said."""
        if not isinstance(self.task, str) or ":" not in self.task or ":" in task.name:
            return task.name
        return f"{self.task.partition(':')[0]}:{task.name}"

    def _begins_with(self, path: Path | None) -> dict[str, str] | None:
        """Which policy a run begins with, for its config.json. One that goes on has a copy of it in its folder."""
        asked = None if self.beginning is None else self.beginning.to_dict()
        if self.resume and path is not None and (path / "config.json").exists():
            before: dict[str, str] | None = read_config(path).get("init")
            if before and (asked is None or asked["policy"] == before.get("policy")):
                return before
        return asked

    def _settings(self, task: Task | Simulator, engine: str, entropy_bounds: tuple[float, float] | None) -> Any:
        given = dict(self.settings)
        if self.steps is not None and not 1 <= self.steps < 2**53:
            raise ValueError(f"steps must be a number of environment steps, such as 1e6, got {self.steps!r}")
        if self.steps is not None and self.iterations is not None:
            raise ValueError("give iterations or steps (of the environment), not both: each says how long to train")
        if self.iterations is not None:
            given["iterations"] = self.iterations
        if self.population is not None:
            given["population"] = self.population
        if self.beginning is not None:
            given = {"hidden": self.beginning.shape.hidden} | given
        if self.preset == "default" and self.algorithm.slow is not None:
            given = slow_settings(task, engine, entropy_bounds or task.entropy_bounds, self.algorithm.slow) | given
        settings = self.algorithm.settings(self.preset, **given)
        if isinstance(settings, BatchSettings):
            settings = settings.sized(task, self.steps)
        return settings if self.steps is None else replace(settings, iterations=affordable(settings, task, self.steps))

    def _check_folder(self, path: Path | None, config: dict[str, Any]) -> None:
        """Check that a new run has a folder of its own, and that a resumed one matches the request, except for its length.

        What a step can cost may turn out to be more than was thought: the search does not depend on it, the certificate does.
        """
        if path is None:
            return
        check_free(path)
        if not self.resume:
            check_unused(path)
            return
        if not (path / "config.json").exists():
            raise FileNotFoundError(f"there is no run to continue in {path}")
        before = read_config(path)
        if before["algorithm"] == self.algorithm.name:
            check_current(path, before, self.algorithm)
        as_json = json.loads(json.dumps(config))
        as_json["settings"]["iterations"], as_json["steps"] = before["settings"]["iterations"], before.get("steps")
        was, now = before.get("simulator") or {}, as_json["simulator"] or {}
        for name in ("cost_bounds", "episode_cost_bounds"):
            if getattr(self, name) is not None and not complete(path, config):
                now[name] = was.get(name)
        check_same(path, before, as_json)


def affordable(settings: Any, task: Task | Simulator, steps: float) -> int:
    """How many iterations a budget of environment steps allows: an upper bound if their length is not known in advance.

    >>> from pcces.envs import make
    >>> affordable(BatchSettings(epoch_steps=30_000), make("CartSafe-v0"), 9e6)
    300
    """
    each = settings.iteration_steps(task)
    if steps < each:
        raise ValueError(f"steps={steps:.0f} is less than one iteration, which takes {each} steps; give more")
    return int(steps // each)


def slow_settings(
    task: Task | Simulator, engine: str, entropy_bounds: tuple[float, float], slow: dict[str, Any]
) -> dict[str, Any]:
    """The defaults for slow episodes: the algorithm's settings `slow`, and a start that keeps the entropy bounds to the end.

    A Gaussian head starts with the noise in the middle of what the entropy bounds allow an episode of full length, if
    they do not allow its usual noise. Early episodes are short and keep the bounds with any noise, but one coordinate
    among thousands moves too slowly to get the noise down by the time they are long.

    >>> from pcces.envs import make
    >>> slow_settings(make("Pendulum-v1"), "local", (0.0, 200.0), {"last_layer": 0.3})
    {'last_layer': 0.3, 'log_std': -0.9189}
    >>> slow_settings(make("Pendulum-v1"), "device", (0.0, 200.0), {"last_layer": 0.3})
    {}
    """
    if engine == "device" and not (isinstance(task, Task) and task.costly):
        return {}
    calm = dict(slow)
    low, high = entropy_bounds
    if isinstance(task.actions, Continuous) and math.isfinite(high) and math.isfinite(low):
        numbers = task.max_steps * task.actions.size
        if not low <= GAUSSIAN * numbers <= high:
            calm["log_std"] = round((low + high) / 2 / numbers - GAUSSIAN, 4)
    return calm


def checked_engine(
    engine: str, workers: int | None, ray_address: str | None, step_timeout: float | None
) -> dict[str, Any]:
    """The request for the engine as plain data, if it makes sense.

    >>> checked_engine("local", 2, None, 10.0)
    {'workers': 2, 'ray_address': None, 'step_timeout': 10.0}
    """
    if engine == "device":
        if workers is not None:
            raise ValueError(f"the device engine uses all cores: leave out workers={workers}")
        if step_timeout is not None:
            raise ValueError("step_timeout is only for engine='local' and 'ray'")
    if ray_address is not None and engine != "ray":
        raise ValueError("ray_address needs engine='ray'")
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, got {workers}")
    if step_timeout is not None and not step_timeout > 0:
        raise ValueError(f"step_timeout must be a positive number of seconds, got {step_timeout}")
    return {"workers": workers, "ray_address": ray_address, "step_timeout": step_timeout}


def whole(name: str, value: Any) -> int:
    """A whole number, of whatever library."""
    try:
        return operator.index(value)
    except TypeError as error:
        raise ValueError(f"{name} must be a whole number, got {value!r}") from error


def complete(path: Path, config: dict[str, Any]) -> bool:
    """Whether the run in a folder has its policy, and was as long as is asked for."""
    if not (path / "policy.npz").exists():
        return False
    before = read_config(path)
    if config.get("steps") and before.get("steps"):
        return bool(before["steps"] >= config["steps"])
    return bool(before["settings"]["iterations"] >= config["settings"]["iterations"])


def check_unused(path: Path) -> None:
    """Check that a new run has a folder of its own."""
    if path.exists() and any(file.name != LOCK for file in path.iterdir()):
        raise FileExistsError(
            f"{path} exists already: give another folder, delete it, or continue it (--resume, resume=True)"
        )


def check_current(path: Path, before: dict[str, Any], algorithm: Algorithm) -> None:
    """Check that a run to resume has a preset and settings of this version."""
    preset = before["preset"]
    gone = [f"preset {preset}"]
    if preset in algorithm.presets:
        gone = sorted({setting.name for setting in fields(algorithm.presets[preset])} ^ set(before["settings"]))
    if gone:
        raise ValueError(
            f"the run in {path} is of another version of pcces, which differs in {', '.join(gone)}: it can be evaluated, "
            "certified and shown, but not go on; train again in another folder"
        )


def check_same(path: Path, before: dict[str, Any], asked: dict[str, Any]) -> None:
    """Check that the request does not contradict the run to resume. The workers may differ."""
    for name, value in asked.items():
        if name in FREE or (name == "engine" and "device" not in (before.get("engine", "device"), value)):
            continue
        was, now = before.get(name), value
        if isinstance(was, dict) and isinstance(now, dict):  # what an earlier version did not note is None
            key = next((key for key in was | now if was.get(key) != now.get(key)), None)
            name, was, now = f"{name}.{key}", was.get(key), now.get(key)
        if was != now:
            raise ValueError(
                f"the run in {path} has {name} = {was!r}, but {now!r} is asked for: it cannot continue as that"
            )


def versions() -> dict[str, str]:
    """What a run was made with."""
    installed = {"python": platform.python_version()}
    for name in ("pcces", "numpy", "jax", "gymnasium", "mujoco", "pybullet"):
        with contextlib.suppress(PackageNotFoundError):  # the last ones are extras
            installed[name] = version(name)
    return installed
