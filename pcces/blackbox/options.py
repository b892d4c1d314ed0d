"""The options of `minimize` and `Optimizer`: their meaning, their defaults, and the two presets."""

from __future__ import annotations

import difflib
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from pcces.strategies import SHAPINGS


@dataclass(frozen=True)
class Options:
    """Everything that can be tuned. Lengths (sigma0, ..) are in units of the variables' scale: the width of the bounds,
    or max(1, |x0|) where there are none.

    >>> Options(gamma=2.0).shrink_factor
    0.5
    """

    # Algorithm 1
    population: int | None = None  # lambda; None: by dimension. Even, since directions come in mirrored pairs
    sigma0: float = 0.15  # initial step size
    sigma_es0: float | None = None  # initial spread of the samples; None: sigma0
    sigma_es: str = (
        "adapted"  # tied: sigma^ES follows sigma (the paper); fixed; adapted: wider where noise drowns the signal
    )
    kappa: float = 1e-4  # forcing constant, in units of the spread of f over the first population
    gamma: float = 1.3  # growth of sigma after a success
    shrink: float | None = None  # factor after a failure; None: 1 / gamma, as the theory wants
    sigma_min: float = 0.0  # a floor on sigma gives up sigma_k -> 0
    sigma_max: float = 0.5
    d_max: float = 1e3  # ||d_k|| <= d_max
    shaping: str = "standardised"  # of the fitness: raw, standardised, rank
    # Constraints
    eps_c: float = 0.0  # Eq. 4's allowance eps_c sigma_k
    equality_tolerance: float = 1e-4  # an equality h = 0 means |h| <= max(tolerance, eps_c sigma_k)
    constraint_z: float = (
        -1.0
    )  # accept on c + z standard errors: positive is cautious, negative leaves it to the certificate
    restoration: str = "violation"  # what an infeasible incumbent minimises: violation, or merit (f + rho violation)
    rho: float = 1.0
    anneal: tuple[float, int] | None = None  # (extra allowance at the start, iterations until it is gone)
    # Estimation
    noisy: bool | None = None  # None: found out by evaluating x0 twice
    samples: int | str = (
        "race"  # N_k: a number, "race" (until the decision is clear), "accuracy" (the bound of section 3.3)
    )
    samples_max: int = 64  # cap on N_k for race and accuracy
    incumbent: str = (
        "pooled"  # its estimate: fresh every iteration, pooled with the old one, or kept (a trap: docs/paper.md)
    )
    eps_f: float = 0.25  # of the accuracy rule, in units of kappa (the theory wants eps_f < kappa / 4)
    eps_v: float = 1.0  # likewise
    p: float = 0.9  # probability of accurate estimates
    # Certificate
    certify_share: float = 0.3  # of the budget, kept for fresh samples
    constraint_range: tuple[tuple[float, float], ...] | None = (
        None  # (low, high) of each c, wherever it is evaluated: gives a finite-sample bound
    )
    # Stopping
    max_iterations: int | None = None
    sigma_stop: float = 1e-9  # a run has converged when sigma falls below this
    restarts: bool = True  # spend what is left of the budget on runs from elsewhere

    def __post_init__(self) -> None:
        def need(good: bool, what: str) -> None:
            if not good:
                raise ValueError(what)

        def positive(*names: str) -> None:
            for name in names:
                value = getattr(self, name)
                need(
                    value is None or (value > 0 and math.isfinite(value)),
                    f"{name} must be a positive number, got {value}",
                )

        positive("sigma0", "sigma_es0", "kappa", "d_max", "rho", "eps_f", "eps_v", "max_iterations", "samples_max")
        need(self.sigma_max > 0, f"sigma_max must be positive, got {self.sigma_max}")
        need(
            self.population is None or (self.population >= 4 and self.population % 2 == 0),
            f"population must be an even number of at least 4 (directions come in mirrored pairs), got {self.population}",
        )
        need(self.gamma > 1, f"gamma must be greater than 1, got {self.gamma}")
        need(self.shrink is None or 0 < self.shrink < 1, f"shrink must lie between 0 and 1, got {self.shrink}")
        need(0 <= self.sigma_min < self.sigma_max, "sigma_min must be at least 0 and below sigma_max")
        need(self.eps_c >= 0, f"eps_c must not be negative, got {self.eps_c}")
        need(self.equality_tolerance >= 0, f"equality_tolerance must not be negative, got {self.equality_tolerance}")
        need(0.5 < self.p < 1, f"p must lie in (1/2, 1), got {self.p}")
        need(0 < self.certify_share < 1, f"certify_share must lie between 0 and 1, got {self.certify_share}")
        need(
            self.constraint_range is None or _are_ranges(self.constraint_range),
            f"constraint_range must have a pair of finite numbers, low < high, for each c, got {self.constraint_range}",
        )
        choices = {
            "sigma_es": ("adapted", "tied", "fixed"),
            "shaping": tuple(SHAPINGS),
            "restoration": ("violation", "merit"),
            "incumbent": ("pooled", "fresh", "kept"),
        }
        for name, allowed in choices.items():
            need(
                getattr(self, name) in allowed,
                f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}",
            )
        good_samples = self.samples in ("race", "accuracy") if isinstance(self.samples, str) else self.samples >= 1
        need(good_samples, f"samples must be a positive integer, 'race' or 'accuracy', got {self.samples!r}")

    @property
    def shrink_factor(self) -> float:
        """What sigma is multiplied by after a failure."""
        return 1 / self.gamma if self.shrink is None else self.shrink

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def _are_ranges(given: Any) -> bool:
    try:
        return all(-math.inf < low < high < math.inf for low, high in given)
    except (TypeError, ValueError):
        return False


# The paper's Table 4, read literally: a stale incumbent, single evaluations, a floor under sigma.
PAPER = {
    "population": 40,
    "sigma0": 0.1,
    "sigma_es0": 1.0,
    "sigma_es": "tied",
    "kappa": 0.005,
    "gamma": 1.01,
    "shrink": 0.99,
    "sigma_min": 0.001,
    "sigma_max": 0.1,
    "shaping": "raw",
    "constraint_z": 0.0,
    "samples": 1,
    "incumbent": "kept",
    "restarts": False,
}
PRESETS: dict[str, dict[str, Any]] = {"default": {}, "paper": PAPER}


def make_options(preset: str = "default", **given: Any) -> Options:
    """Options from a preset and what the user gave; unknown names raise an error that offers the nearest.

    >>> make_options(kapa=0.1)
    Traceback (most recent call last):
    ...
    TypeError: unknown option 'kapa'; did you mean 'kappa'?
    """
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; there are {', '.join(PRESETS)}")
    names = [field.name for field in fields(Options)]
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"
            raise TypeError(f"unknown option {name!r}{hint}")
    return Options(**{**PRESETS[preset], **given})
