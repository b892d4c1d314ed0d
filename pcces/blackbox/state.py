"""What a search knows at any moment, as plain data that can be written to a file and read back to the same bits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from pcces.blackbox.options import Options
from pcces.core import algorithm
from pcces.core.estimation import Estimate
from pcces.strategies import Strategy

ACCEPTED_NUMBERS = 20_000_000  # accepted points are candidates for the certificate; keep no more numbers than this


class End(NamedTuple):
    """Where a run ended: enough to take it up again for the certificate."""

    x: np.ndarray
    estimate: Estimate
    factor: np.ndarray  # of the covariance; empty for strategies without one
    spread: np.ndarray  # sigma^ES
    multipliers: np.ndarray


@dataclass
class Memory:
    """The state of Algorithm 1 and of everything around it."""

    state: algorithm.State
    strategy: Any
    phase: str = "start"
    message: str = ""
    batches: int = 0
    evaluations: int = 0
    failures: int = 0
    constraints: int = -1  # how many c the user's evaluations have; unknown until the first tell
    equal: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))  # which of them are equalities
    noisy: bool | None = None
    noise: np.ndarray = field(default_factory=lambda: np.zeros(1))  # (1 + r,) standard deviation of one evaluation
    f_scale: float | None = None
    # the incumbent and the point on trial
    incumbent: Any = None
    incumbent_row: int = -1
    incumbent_samples: Any = None
    x_trial: Any = None
    trial: Any = None
    trial_row: int = -1
    trial_samples: Any = None
    # the proposal that led to the trial point
    kind: str = ""
    d: Any = None
    weights: Any = None
    directions: Any = None
    multipliers: np.ndarray = field(default_factory=lambda: np.zeros(0))
    wins: np.ndarray = field(
        default_factory=lambda: np.ones(4)
    )  # of the model (won, tried) and the strategy (won, tried)
    spread_floor: float = 0.0
    # runs
    stalls: int = 0
    progress_f: float = math.inf  # f at the last progress of this run
    run_start: int = 0
    ends: list[End] = field(default_factory=list)
    accepted_points: Any = None
    accepted_means: Any = None
    # certificate
    candidates: list[np.ndarray] = field(default_factory=list)
    certificate_samples: Any = None
    looks: int = 0
    answer: Any = None  # the candidate that is returned: the one that holds, or the least violating
    answer_mean: Any = None
    answer_samples: int = 0
    bounds: Any = None
    method: str = "t"
    holds: bool = False

    @classmethod
    def start(cls, z0: np.ndarray, strategy: Strategy, options: Options) -> Memory:
        """Before the first evaluation."""
        return cls(algorithm.init(z0, options.sigma0, options.sigma_es0 or options.sigma0), strategy.init(z0))

    def restart(self, z0: np.ndarray, strategy: Strategy, options: Options) -> None:
        """Begin another run elsewhere; what was learnt about noise and scale stays."""
        fresh = Memory.start(z0, strategy, options)
        self.state, self.strategy = fresh.state, fresh.strategy
        self.incumbent, self.incumbent_row = None, -1
        self.wins, self.spread_floor, self.run_start = fresh.wins, 0.0, self.evaluations
        self.stalls, self.progress_f = 0, math.inf

    def accept(self, n: int) -> None:
        """Note the incumbent as a candidate for the certificate."""
        if not np.isfinite(self.incumbent.f):
            return
        most = max(2, min(1000, ACCEPTED_NUMBERS // n))
        point, mean = self.state.x[None], np.append(self.incumbent.mean, self.incumbent.n)[None]
        if self.accepted_points is None:
            self.accepted_points, self.accepted_means = point, mean
        else:
            self.accepted_points = np.vstack([self.accepted_points[-most + 1 :], point])
            self.accepted_means = np.vstack([self.accepted_means[-most + 1 :], mean])

    def fallback(self, tried: int, margin: np.ndarray) -> np.ndarray:
        """An accepted point for the certificate: the best by f among those with enough estimated slack, more the later."""
        if self.accepted_points is None:
            return self.state.x
        f, c, n = self.accepted_means[:, 0], self.accepted_means[:, 1:-1], self.accepted_means[:, -1:]
        slack = np.max(c + (1 + tried) * margin + self.noise[1:] / np.sqrt(n), axis=1, initial=-np.inf)
        order = np.lexsort((f, np.maximum(slack, 0)))
        for i in order:
            if not any(np.array_equal(self.accepted_points[i], z) for z in self.candidates):
                return self.accepted_points[i]
        return self.state.x

    # -- as plain data ----------------------------------------------------------------------------------------------------

    def scalars(self) -> dict[str, Any]:
        """The fields that are numbers or words."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, str | int | float)}

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields that are arrays, named tuples of arrays, or lists of either."""
        flat: dict[str, np.ndarray] = {}

        def put(name: str, value: Any) -> None:
            if isinstance(value, np.ndarray | np.generic):
                flat[name] = np.asarray(value)
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    put(f"{name}.{i}", item)
            elif hasattr(value, "_fields"):
                for key in value._fields:
                    put(f"{name}.{key}", getattr(value, key))

        for f in fields(self):
            put(f.name, getattr(self, f.name))
        return flat

    def restore(self, arrays: dict[str, np.ndarray], scalars: dict[str, Any]) -> None:
        """Take over what `arrays` and `scalars` gave."""
        for name, value in scalars.items():
            setattr(self, name, value)
        tuples = {"state": algorithm.State, "strategy": type(self.strategy), "incumbent": Estimate, "trial": Estimate}

        def build(kind: Any, prefix: str) -> Any:
            return kind(*(arrays[f"{prefix}.{key}"] for key in kind._fields))

        for f in fields(self):
            name = f.name
            if name in arrays:
                setattr(self, name, arrays[name])
            elif name in tuples and any(key.startswith(f"{name}.") for key in arrays):
                setattr(self, name, build(tuples[name], name))
        count = len({key.split(".")[1] for key in arrays if key.startswith("candidates.")})
        self.candidates = [arrays[f"candidates.{i}"] for i in range(count)]
        count = len({key.split(".")[1] for key in arrays if key.startswith("ends.")})
        self.ends = [
            End(
                arrays[f"ends.{i}.x"],
                build(Estimate, f"ends.{i}.estimate"),
                *(arrays[f"ends.{i}.{key}"] for key in ("factor", "spread", "multipliers")),
            )
            for i in range(count)
        ]
