"""A run and its folder: what was asked for, how it went, and the policy that came out. No pickle: a stranger's run is safe to open.

config.json       task, algorithm, preset, settings, versions
metrics.csv       one line per iteration
checkpoint.npz    everything needed to go on
policy.npz        the policy returned, its normalisation and shape
init.npz          the policy it began with, where that was another run's
certificate.json  the certificate, and the fresh episodes behind it
report.html       curves, certificate, animation
"""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pcces.core.certificate import Certificate
from pcces.envs.costs import episode_range
from pcces.rl.arenas import elsewhere, playing
from pcces.rl.certify import certify, ranges
from pcces.rl.first import KeptCritics
from pcces.rl.normalizer import CLIP, Normalizer, normalise
from pcces.rl.policy import LOG_STD, Policy, as_arrays, forward
from pcces.rl.problem import Problem
from pcces.rl.seeds import checked_seed
from pcces.rl.spread import spread
from pcces.support import files as storage
from pcces.support.text import printable

if TYPE_CHECKING:
    from pcces.envs.simulator import Simulator
    from pcces.envs.task import Task
    from pcces.integrations.export import Exported

Metrics = dict[str, list[float]]
NOTHING_TO_CERTIFY = "NO LIMITS: nothing to certify"
LOOSE = 10.0  # times what any episode cost: bounds of it that are worth a word


@dataclass(repr=False)
class Run:
    """A training run: its configuration, its metrics, its policy and its certificate."""

    config: dict[str, Any]
    task: Task | Simulator
    shape: Policy
    problem: Problem
    metrics: Metrics = field(default_factory=dict)
    x: np.ndarray | None = None
    normalizer: Normalizer | None = None
    certificate: Certificate | None = None
    critics: KeptCritics | None = None  # for a training that begins with this policy
    final: dict[str, Any] = field(default_factory=dict)  # means over the certificate's episodes
    path: Path | None = None

    def __repr__(self) -> str:
        """A short summary: task, algorithm, length and result."""
        what = "{algorithm} on {task}, seed {seed}".format(**self.config)
        done = len(self.metrics.get("iteration", ()))  # none are known of a policy that was kept without its metrics
        return f"<{what}{f', {done} iterations' if done else ''}; {self.words()}>"

    def policy(self, observation: Any, rng: np.random.Generator | None = None) -> Any:
        """An action in the units of the environment, within its bounds. Without a generator it is the likeliest action.

        A batch of observations (rows) gives a batch of actions: an array of integers, or rows.
        """
        x, normalizer = self.trained()
        return acting(self.shape, x, normalizer, observation, rng)

    def export(self, path: str | Path) -> Path:
        """Write the policy for use without pcces. The suffix decides the format: `.onnx`, `.py` or `.npz`.

        `.onnx` needs the extra `export`. `.py` is a module that only needs NumPy, with the same `policy(observation, rng)`.
        `.npz` contains plain arrays, like policy.npz of a run.
        """
        from pcces.integrations.export import write

        about = {"task": self.config["task"], "certificate": self.words()}
        return write(path, self._arrays(), self._exported(), about)

    def to_torch(self) -> Any:
        """The policy as a `torch.nn.Module` (extra `torch`). A call returns the likeliest actions; `draw` draws actions."""
        from pcces.integrations.torch import torch_module

        return torch_module(self._exported())

    def _exported(self) -> Exported:
        from pcces.integrations.export import exported

        return exported(self._arrays(), CLIP, LOG_STD)

    def _arrays(self) -> dict[str, np.ndarray]:
        x, normalizer = self.trained()
        return as_arrays(self.shape, x, normalizer.mean, normalizer.std)

    def evaluate(
        self,
        episodes: int = 100,
        seed: int = 1_000_000,
        greedy: bool = False,
        engine: str | None = None,
        progress: bool | None = None,
    ) -> dict[str, Any]:
        """Means and standard errors over fresh episodes: return, each cost, entropy, length.

        `engine` says where they run, by default where the policy was trained. "local" uses the simulator behind a task in JAX.
        `progress=None` shows the progress on a terminal.
        """
        x, normalizer = self.trained()
        episodes, seed = checked_episodes(episodes), checked_seed(seed)
        with playing(elsewhere(self, engine), progress) as play:
            return summary(self.problem, play(x, normalizer, episodes, seed, greedy))

    def certify(
        self,
        episodes: int | None = None,
        seed: int = 2_000_000,
        confidence: float = 0.95,
        engine: str | None = None,
        progress: bool | None = None,
        greedy: bool = False,
    ) -> Certificate:
        """Certify the policy again on fresh episodes, by default as many as for the certificate of the run.

        `engine` and `progress` are those of `evaluate`. With `greedy` it takes the likeliest actions, like `policy` without a
        generator. The certificate of the run is about drawn actions."""
        return cast(Certificate, self.certified(episodes, seed, confidence, engine, progress, greedy).certificate)

    def certified(
        self,
        episodes: int | None = None,
        seed: int = 2_000_000,
        confidence: float = 0.95,
        engine: str | None = None,
        progress: bool | None = None,
        greedy: bool = False,
    ) -> Run:
        """The same run with a new certificate from other fresh episodes."""
        x, normalizer = self.trained()
        usual = self.config["certify_episodes"] if self.certificate is None else self.certificate.samples
        fresh = checked_episodes(usual if episodes is None else episodes)
        seed = checked_seed(seed)
        there = elsewhere(self, engine)
        with playing(there, progress) as play:
            outcome = play(x, normalizer, fresh, seed, greedy)
        certificate = certify(self.problem, outcome, ranges(there.task, self.shape, self.problem, x), confidence)
        final = summary(self.problem, outcome) | spread(self.problem, outcome)
        kept = {name: self.final[name] for name in ("iteration",) if name in self.final}  # of the policy's origin
        return replace(self, certificate=certificate, final=final | kept)

    def plot(self, path: str | Path, over: str = "iteration") -> Path:
        """Draw the curves of the training as a picture (.png, .pdf or .svg) over "iteration", "steps" or "time"."""
        from pcces.report import charts, draw

        return draw(charts([self], over), path, self.config["task"])

    def report(self, path: str | Path, over: str = "iteration") -> Path:
        """Write a page about the run: certificate, curves, animation, costs of single episodes."""
        from pcces.report import make_page
        from pcces.rl.film import ordinary_film

        return make_page([self], ordinary_film, over).save(path)

    def trained(self) -> tuple[np.ndarray, Normalizer]:
        """The parameters and the normalisation of the policy. If the run is not finished, an error says how to continue."""
        if self.x is None or self.normalizer is None:
            where = f"; continue with: {self.again()}" if self.path else ""
            raise ValueError(f"this run is not finished, so it has no policy yet{where}")
        return self.x, self.normalizer

    def again(self) -> str:
        """The command that continues this run."""
        given = (self.config.get("simulator") or {}).get("given") and ":" not in self.config["task"]
        if given:  # an object, which the command line cannot have
            return f"pcces.train(..., out={str(self.path)!r}, resume=True), with the same task"
        words = ["pcces", "train", self.config["task"], "--out", str(self.path), "--resume"]
        if (self.config.get("simulator") or {}).get("cost_function"):
            words += ["--cost", "MODULE:FUNCTION"]
        return printable(shlex.join(words))

    def keeps_limits(self) -> bool:
        """Whether the means over the certificate's episodes keep all limits. A certificate says more."""
        (low, high), entropy = self.problem.entropy_bounds, self.final["entropy"]
        found = self.final.get("limited", self.final["costs"])
        return low <= entropy <= high and all(c <= limit.most for c, limit in zip(found, self.problem.cost_limits))

    # -- files ---------------------------------------------------------------------------------------------------------

    def reopen(self) -> None:
        """Write config.json into the run's folder, which from now on is that of a run that is not finished."""
        assert self.path is not None
        for name in ("policy.npz", "certificate.json"):
            (self.path / name).unlink(missing_ok=True)
        self._write("config.json", json.dumps(self.config, indent=1).encode())

    def save_metrics(self) -> None:
        """Write metrics.csv."""
        buffer = io.StringIO()
        writer = csv.writer(buffer)
        writer.writerow(self.metrics)
        writer.writerows(zip(*self.metrics.values()))
        self._write("metrics.csv", buffer.getvalue().encode())

    def save_policy(self) -> None:
        """Write policy.npz and certificate.json."""
        arrays = self._arrays() | ({} if self.critics is None else self.critics.named())
        assert self.certificate is not None and self.path is not None
        said = {
            "certificate": self.certificate.to_dict(),
            "limits": [limit._asdict() for limit in self.problem.limits],
            "words": self.words(),
            "fresh_episodes": self.final,
        }
        self._write("certificate.json", json.dumps(said, indent=1).encode())
        storage.save(self.path / "policy.npz", "policy", arrays, {"task": self.config["task"]})  # last: now it is done

    def _write(self, name: str, data: bytes) -> None:
        assert self.path is not None
        storage.write_atomically(self.path / name, data)

    def limits(self) -> list[str]:
        """The bound of the certificate on each limit."""
        if self.certificate is None:
            return []
        said = []
        for limit, bound in zip(self.problem.limits, self.certificate.upper_bounds):
            value, words = (limit.most + bound, "at most") if limit.at_most else (limit.value - bound, "at least")
            said.append(f"{limit.quantity} {words} {value:.4g} (limit {limit.most:g})")
        return said

    def words(self) -> str:
        """The certificate as a sentence."""
        if self.certificate is None:
            return "not finished: no certificate yet" if self.x is None else "no certificate yet"
        c, final = self.certificate, self.final
        parts = [f"{name} {final['costs'][i]:.3g}" for i, name in enumerate(self.problem.cost_names)]
        if not self.problem.on_means:
            others = [limit for limit in zip(self.problem.cost_limits, final["limited"]) if limit[0].kind != "mean"]
            parts += [f"{limit.quantity} {value:.3g}" for limit, value in others]
        who = "policy it began with" if self.config.get("init") else "first policies"
        first = f" (the {who} had {self.metrics['return'][0]:.4g})" if self.metrics.get("return") else ""
        means = f"return {final['return']:.4g}{first}" + "".join(f", {part}" for part in parts)
        limits = "; ".join(self.limits())
        sure = f"{100 * c.confidence:g} % confidence, {c.samples} fresh episodes, {c.method} bound"
        if c.holds and not self.problem.limits:
            return f"{NOTHING_TO_CERTIFY}. Mean over {c.samples} fresh episodes: {means}."
        if c.holds:
            warning = f" {c.warning()}." if c.warning() else ""
            said = f"CERTIFIED: {limits} ({c.grade}, {sure})."
            return f"{said} Mean over these episodes: {means}.{warning}"
        if failed := final.get("failed_episodes"):
            return f"NOT CERTIFIED: {failed} of {c.samples} fresh episodes failed. Mean over the others: {means}."
        said = f"NOT CERTIFIED: these episodes only show {limits} ({sure}). Mean over these episodes: {means}."
        return said + self._loose()

    def _loose(self) -> str:
        """What helps where a policy keeps its limits, but the certificate reckons with episodes that cost far more than any did."""
        known = episode_range(self.task)
        seen = [row[-1] for row in self.final.get("quantiles", {}).get("costs", ())]
        kept = all(mean <= limit.value for mean, limit in zip(self.final["costs"], self.problem.cost_limits))
        if known is None or not seen or not kept or not self.problem.on_means or known[1] < LOOSE * max(seen):
            return ""
        return (
            f" By its bounds an episode may cost {known[1]:g}, but none of these cost more than {max(seen):g}: if none ever "
            "can, say so (episode_cost_bounds), and the certificate needs far fewer episodes."
        )


def acting(
    shape: Policy, x: np.ndarray, normalizer: Normalizer, observation: Any, rng: np.random.Generator | None
) -> Any:
    """The action of the policy x on an observation (size,), or on each of a batch (N, size); drawn, if there is a generator.

    >>> from pcces.envs.task import Discrete
    >>> from pcces.rl.normalizer import identity
    >>> shape = Policy(2, Discrete(3), ())
    >>> acting(shape, np.eye(9)[1], identity(np.zeros(2)), [[1.0, 0.0], [-1.0, 0.0]], None)
    array([1, 0])
    """
    o = np.asarray(observation, dtype=np.float32)
    size = shape.observation_size
    if o.ndim not in (1, 2) or o.shape[-1] != size:
        raise ValueError(
            f"the policy expects observations of shape ({size},), or (N, {size}) for a batch of them, got {o.shape}"
        )
    layers, log_std = shape.unpack(x)
    head = forward(layers, normalise(normalizer, o.T))
    batch = o.shape[:-1]
    if rng is None:
        action = shape.mode(head)
    elif shape.discrete:
        action = shape.act(head, log_std, rng.random(batch, dtype=np.float32))
    else:
        action = shape.act(head, log_std, rng.standard_normal((*batch, shape.outputs), dtype=np.float32).T)
    action = np.asarray(shape.inside(action).T)
    if not shape.discrete:
        return action.astype(np.float32, copy=False)
    return action.astype(np.int64) if batch else int(action)


def checked_episodes(episodes: Any) -> int:
    """How many episodes are to be played, if that is at least one.

    >>> checked_episodes(0)
    Traceback (most recent call last):
    ...
    ValueError: episodes must be a whole number of at least 1, got 0
    """
    if not isinstance(episodes, int | np.integer) or episodes < 1:
        raise ValueError(f"episodes must be a whole number of at least 1, got {episodes!r}")
    return int(episodes)


def summary(problem: Problem, outcome: Any) -> dict[str, Any]:
    """Means and standard errors of an Outcome's episodes, as plain data; those that failed are counted apart."""
    good = np.isfinite(np.asarray(outcome.returns))

    def mean_and_error(values: np.ndarray) -> tuple[float, float]:
        n, values = int(good.sum()), values[good]
        if n == 0:
            return math.nan, math.nan
        return float(values.mean()), float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan

    numbers: dict[str, Any] = {"episodes": len(good)}
    if not good.all():
        numbers["failed_episodes"] = int((~good).sum())
    for name, values in (("return", outcome.returns), ("entropy", outcome.entropy), ("length", outcome.length)):
        numbers[name], numbers[f"{name}_error"] = mean_and_error(np.asarray(values, dtype=float))
    pairs = [mean_and_error(np.asarray(row, dtype=float)) for row in outcome.costs]
    numbers["costs"], numbers["costs_error"] = [a for a, _ in pairs], [b for _, b in pairs]
    numbers["cost_names"], numbers["thresholds"] = list(problem.cost_names), list(problem.thresholds)
    if not problem.on_means:
        of_good = (np.asarray(row, dtype=float)[good] for row in outcome.costs)
        found = zip(problem.cost_limits, of_good)
        numbers["limited"] = [limit.estimate(row) if row.size else math.nan for limit, row in found]
        numbers["limits"] = [str(limit) for limit in problem.cost_limits]
    return numbers
