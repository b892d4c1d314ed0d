"""The options of `minimize` and `Optimizer`: their meaning, their defaults, the two presets, and what they give up."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from numbers import Real
from typing import Any

from pcces import strategies
from pcces.blackbox.habits import ELSEWHERE
from pcces.core.algorithm import Rule
from pcces.core.estimation import FARTHEST
from pcces.core.limits import PLAIN, CVaR, Limit, Mean, Quantile, as_limit, to_dict
from pcces.strategies import SHAPINGS, Strategy
from pcces.support.settings import FIRST, SOMETIMES, setting
from pcces.support.text import suggestion

MODEL_DIMENSION = 40  # up to here regression models help Psi_k: a quadratic has 861 coefficients
CMA_DIMENSION = 200  # up to here an n x n covariance is cheap
NAMED: dict[str, Callable[[], Strategy]] = {
    "cma": strategies.cma, "guided": strategies.guided, "gaussian": strategies.gaussian, "asebo": strategies.asebo
}  # fmt: skip


PLAIN_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {  # of options: what they must be, and whether they are
    "float": ("a number", lambda v: _is_number(v)),
    "bool": ("True or False", lambda v: isinstance(v, int) and v in (0, 1)),
    "tuple[float, int]": (
        "a pair, how much more is allowed at the start and the iterations until it is gone",
        lambda v: isinstance(v, tuple | list) and len(v) == 2 and 0 <= v[0] < math.inf and v[1] > 0,
    ),
}
COUNTS = ("population", "max_iterations", "samples_max")


def _is_number(value: Any) -> bool:
    """Whether it is a number; it may be infinite, but not beyond what a search can hold."""
    size: Any = abs(value) if isinstance(value, Real) else math.nan
    return bool(size <= FARTHEST or size == math.inf)


def plain_number(value: Any) -> Any:
    """A number of an array library as Python has it; anything else as it is."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def count(value: Any) -> Any:
    """A whole number as Python has it, also where somebody gives a float; anything else as it is.

    >>> import numpy as np
    >>> count(1e4), count(np.int64(5)), count(2.5), count("race")
    (10000, 5, 2.5, 'race')
    """
    value = plain_number(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


class TheoryWarning(UserWarning):
    """The chosen options break an assumption of the convergence theorem."""


@dataclass(frozen=True)
class Options:
    """All options of a search. Lengths (sigma0, ..) are in units of the scale of the variables: the width of the bounds,
    or max(1, |x0|) without bounds.

    >>> Options(gamma=2.0).rule.shrink
    0.5
    """

    # Algorithm 1
    population: int | None = setting(
        None,
        "points per iteration; even, because directions come in mirrored pairs; None: by dimension",
        SOMETIMES,
    )
    sigma0: float = setting(0.15, "initial step size: larger to look further, smaller to stay near x0", SOMETIMES)
    sigma_es0: float | None = setting(None, "initial spread of the samples; None: sigma0")
    sigma_es: str = setting(
        "adapted",
        "how this spread changes: tied to sigma (the paper), fixed, or adapted (tied, but wider where noise demands it)",
    )
    kappa: float = setting(1e-4, "forcing constant, in units of the spread of f over the first population")
    gamma: float = setting(1.3, "factor by which sigma grows after a success")
    shrink: float | None = setting(
        None, "factor by which sigma shrinks after a failure; None: 1 / gamma, as the theory requires"
    )
    sigma_min: float = setting(
        0.0, "lower bound of sigma; above 0 the theorem no longer applies, because sigma cannot go to 0"
    )
    sigma_max: float = setting(0.5, "upper bound of sigma")
    d_max: float = setting(1e3, "upper bound of ||d_k||, the length of a direction")
    shaping: str = setting(
        "standardised", "transformation of the fitness before it is weighted: raw, standardised or rank"
    )
    # What is asked for (pcces.limits)
    objective: Limit = setting(
        PLAIN, "what is minimised of f: its mean, a Quantile or a CVaR of pcces.limits", SOMETIMES, "Mean()"
    )
    limits: tuple[Limit, ...] | None = setting(
        None, "limits on the constraints, one for each c (pcces.limits); None: each mean is at most 0", FIRST
    )
    cautious: float | None = setting(
        None, "evaluate only where the models predict, with this probability, that the limits hold", SOMETIMES
    )
    # Constraints
    eps_c: float = setting(0.0, "allowance eps_c sigma_k for each constraint during the search (Eq. 4)")
    equality_tolerance: float = setting(1e-4, "an equality h = 0 means |h| <= max(tolerance, eps_c sigma_k)", SOMETIMES)
    constraint_z: float = setting(
        -1.0, "a point is accepted on c + z standard errors: above 0 is cautious, below 0 leaves it to the certificate"
    )
    restoration: str = setting(
        "violation", "the objective while the incumbent is infeasible: violation, or merit (f + rho violation)"
    )
    rho: float = setting(1.0, "weight of the violation where restoration is merit")
    anneal: tuple[float, int] | None = setting(None, "(extra allowance at the start, iterations until it is gone)")
    # Estimation
    deterministic: bool = setting(
        False, "state that evaluations have no noise; otherwise noise is detected when it shows", FIRST
    )
    samples: int | str = setting(
        "race", "evaluations of each point N_k: a number, race (until the decision is clear) or accuracy (section 3.3's bound)",
        SOMETIMES,
    )  # fmt: skip
    samples_max: int = setting(64, "upper bound of N_k for race and accuracy", SOMETIMES)
    incumbent: str = setting(
        "pooled", "the incumbent's estimate: always fresh, pooled with the old one, or kept (the paper's Step 4)"
    )
    eps_f: float = setting(
        0.25, "accuracy of f for samples=accuracy, in units of kappa (the theory requires eps_f < kappa / 4)"
    )
    eps_v: float = setting(1.0, "accuracy of the violation, in the same units")
    p: float = setting(0.9, "probability that estimates have this accuracy")
    failures: str | float = setting(
        "infeasible",
        "meaning of a failed evaluation: infeasible (its point is), missing (it says nothing about its point), or the share of missing "
        "values that the certificate allows, such as 0.1",
        SOMETIMES,
    )
    # Certificate
    certify_share: float = setting(
        0.3, "share of the budget that is reserved for the fresh samples of the certificate", SOMETIMES
    )
    constraint_range: tuple[tuple[float, float], ...] | None = setting(
        None, "(low, high) of each c, if you know them: the certificate is then guaranteed, not asymptotic", FIRST
    )
    # Stopping
    max_iterations: int | None = setting(None, "upper bound of the iterations", SOMETIMES)
    sigma_stop: float = setting(1e-9, "a run has converged when sigma falls below this", SOMETIMES)
    restarts: bool = setting(True, "use the rest of the budget for runs from other points", SOMETIMES)

    def __post_init__(self) -> None:
        def need(good: bool, what: str) -> None:
            if not good:
                raise ValueError(what)

        for field in fields(self):
            value, kind = getattr(self, field.name), field.type.removesuffix(" | None")
            if value is not None and kind in PLAIN_KINDS:
                words, good = PLAIN_KINDS[kind]
                need(good(value), f"{field.name} must be {words}, got {value!r}")
        for name in COUNTS:
            value = getattr(self, name)
            need(value is None or isinstance(value, int), f"{name} must be a whole number, got {value!r}")
        for name in ("sigma0", "sigma_es0", "kappa", "d_max", "rho", "eps_f", "eps_v", "max_iterations", "samples_max"):
            value = getattr(self, name)
            need(value is None or 0 < value < math.inf, f"{name} must be a positive number, got {value}")
        need(self.sigma_max > 0, f"sigma_max must be positive, got {self.sigma_max}")
        need(
            self.population is None or self.population >= 1,
            f"population must be a positive number, got {self.population}",
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
        need(self.cautious is None or 0.5 <= self.cautious < 1, f"cautious must lie in [0.5, 1), got {self.cautious}")
        need(
            isinstance(self.objective, Mean | Quantile | CVaR) and self.objective.at_most == 0,
            f"objective must be Mean(), Quantile(q) or CVaR(alpha) of pcces.limits, got {self.objective!r}",
        )
        choices = {
            "sigma_es": ("adapted", "tied", "fixed"),
            "shaping": tuple(SHAPINGS),
            "restoration": ("violation", "merit"),
            "incumbent": ("pooled", "fresh", "kept"),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            need(value in allowed, f"{name} must be one of {', '.join(allowed)}, got {value!r}")
        share = isinstance(self.failures, int | float) and 0 < self.failures < 1
        need(
            share or self.failures in ("infeasible", "missing"),
            "failures must be 'infeasible', 'missing', or the share of missing values that is allowed, between 0 and 1; got "
            f"{self.failures!r}",
        )
        samples = self.samples
        good_samples = samples in ("race", "accuracy") or (isinstance(samples, int) and samples >= 1)
        need(good_samples, f"samples must be a positive integer, 'race' or 'accuracy', got {samples!r}")

    @property
    def missing(self) -> bool:
        """Whether a failed evaluation says nothing of its point."""
        return self.failures != "infeasible"

    @property
    def failure_limit(self) -> float | None:
        """The share of evaluations of the answer that may fail, if that is limited."""
        return None if isinstance(self.failures, str) else float(self.failures)

    @property
    def rule(self) -> Rule:
        """The constants of Algorithm 1, kappa in units of the spread of f."""
        shrink = 1 / self.gamma if self.shrink is None else self.shrink
        return Rule(self.kappa, self.gamma, shrink, self.sigma_min, self.sigma_max, self.d_max)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        limits = None if self.limits is None else [to_dict(limit) for limit in self.limits]
        return asdict(self) | {"limits": limits, "objective": to_dict(self.objective)}


def _are_ranges(given: Any) -> bool:
    try:
        return all(-FARTHEST <= low < high <= FARTHEST for low, high in given)
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


def check_names(given: Iterable[str], own: Iterable[str] = ()) -> None:
    """Raise a TypeError for a name that is no option, and none of a function's own parameters; it offers the nearest, or
    what another library's name means here.

    >>> check_names(["worker"], own=["workers"])
    Traceback (most recent call last):
    ...
    TypeError: unknown option 'worker'; did you mean 'workers'?
    """
    names = [*own, *(field.name for field in fields(Options))]
    for name in given:
        if name == "noisy":
            raise TypeError(
                "the option noisy no longer exists: noise is detected when it shows; say deterministic=True if there is none"
            )
        if name not in names:
            meant = ELSEWHERE.get(name)
            near = f"did you mean {meant!r}?" if meant in names else suggestion(name, names)
            raise TypeError(f"unknown option {name!r}; {near}")


def make_options(preset: str = "default", **given: Any) -> Options:
    """Options from a preset and what the user gave; unknown names raise an error that offers the nearest.

    Limits may be given as numbers (the most that the mean may be) or in words, too (`pcces.limits.parse`).

    >>> make_options(kapa=0.1)
    Traceback (most recent call last):
    ...
    TypeError: unknown option 'kapa'; did you mean 'kappa'?
    """
    if preset not in PRESETS:
        raise ValueError(f"unknown preset {preset!r}; there are {', '.join(PRESETS)}")
    check_names(given)
    plain = {name: plain_number(value) for name, value in given.items()}
    plain |= {name: count(plain[name]) for name in (*COUNTS, "samples") if name in plain}
    if plain.get("limits") is not None:
        several = isinstance(plain["limits"], Sequence) and not isinstance(plain["limits"], str)
        plain["limits"] = tuple(map(as_limit, plain["limits"] if several else [plain["limits"]]))
    if "objective" in plain:
        plain["objective"] = as_limit(plain["objective"])
    return Options(**{**PRESETS[preset], **plain})


def chosen_options(
    strategy: str | Strategy, preset: str, given: dict[str, Any], n: int, max_evaluations: int, equalities: bool
) -> tuple[Options, Options]:
    """The options to begin with, and those from where Gaussian processes have handed over: the same where there are none."""
    chosen = make_options(preset, **given)
    few = for_few(strategy, given, chosen, n, max_evaluations, equalities) if preset == "default" else None
    if few is None and chosen.population is not None and (chosen.population < 4 or chosen.population % 2):
        raise ValueError(
            "population must be an even number of at least 4 (directions come in mirrored pairs; strategy 'gp' takes any), "
            f"got {chosen.population}"
        )
    return few or chosen, chosen


FEW = 500  # evaluations in all: up to here Gaussian processes say where to evaluate
FEW_DIMENSION = 20  # and up to so many variables
SHRINK = 30.0  # sigma_k gets so many times smaller if no iteration succeeds
# What a search by Gaussian processes takes into account: with another option given, the default is another search.
HONOURED = {
    "population", "sigma0", "sigma_max", "sigma_min", "gamma", "shrink", "kappa", "d_max", "eps_c", "anneal", "objective", "limits",
    "deterministic", "certify_share", "constraint_range", "max_iterations", "sigma_stop", "restarts", "equality_tolerance", "failures",
}  # fmt: skip


def for_few(
    strategy: str | Strategy, given: Iterable[str], chosen: Options, n: int, max_evaluations: int, equalities: bool
) -> Options | None:
    """The options of a search by Gaussian processes, where that is the one: few evaluations are to be made, or it was asked
    for by name. `given` are the names of those that the user gave.

    >>> for_few("auto", ["samples"], Options(samples=10), n=3, max_evaluations=100, equalities=False) is None
    True
    """
    if strategy not in ("gp", "auto", "default"):
        return None
    others = [f"{name}=" for name in given if name not in HONOURED]
    asked = (chosen.objective, *(chosen.limits or ()))
    others += ["limits that are not on means"] * any(limit.kind != "mean" for limit in asked)
    others += ["equalities"] * equalities
    if strategy == "gp" and others:
        raise ValueError(f"strategy 'gp' cannot be combined with {', '.join(others)}: leave out one of them")
    if strategy != "gp" and (others or n > FEW_DIMENSION or max_evaluations > FEW):
        return None
    iterations = max(5.0, (1 - chosen.certify_share) * max_evaluations - 2 * n)
    gamma = min(1.3, math.exp(math.log(SHRINK) / iterations))
    own: dict[str, Any] = {"sigma0": 0.5, "sigma_max": 1.0, "population": 1, "gamma": gamma}
    return replace(chosen, **{name: value for name, value in own.items() if name not in given})


def read_strategy(strategy: str | Strategy, preset: str, n: int) -> tuple[Strategy, bool]:
    """The strategy that is meant for n variables, and whether regression models help it."""
    if isinstance(strategy, Strategy):
        return strategy, False
    if strategy in ("default", "auto"):
        if preset == "paper" or n > CMA_DIMENSION:
            return strategies.guided(), False
        return strategies.cma(), n <= MODEL_DIMENSION
    if strategy in ("model", "gp"):
        return strategies.cma(), True
    if strategy not in NAMED:
        raise ValueError(
            f"unknown strategy {strategy!r}; there are default, model, {', '.join(NAMED)}, or a Strategy object"
        )
    return NAMED[strategy](), False


def lost_assumptions(options: Options) -> list[str]:
    """What the options give up of the theorem, in words."""
    lost = []
    if options.sigma_min > 0:
        lost.append(f"sigma_min = {options.sigma_min:g}: sigma_k then cannot go to zero (Corollary 1)")
    if options.shrink is not None and not math.isclose(options.shrink * options.gamma, 1.0):
        lost.append(f"shrink = {options.shrink:g} is not 1 / gamma = {1 / options.gamma:g} (Step 4)")
    if options.incumbent == "kept":
        lost.append("incumbent = 'kept': the estimate of x_k is not renewed and keeps its error (Assumption 3)")
    if isinstance(options.samples, int) and not options.deterministic:
        lost.append(
            f"samples = {options.samples}: a fixed N_k cannot follow sigma_k^-4, the accuracy is lost as sigma_k -> 0 (Assumption 3)"
        )
    if options.samples == "accuracy" and options.eps_f > 0.25:
        lost.append(f"eps_f = {options.eps_f:g} kappa is not below kappa / 4 (Assumption 3)")
    return lost
