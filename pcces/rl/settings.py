"""The settings of PCCES on policies: what each means, and the presets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple, Self

from pcces.core.algorithm import Rule
from pcces.rl.normalizer import Normalizer, Seen, update
from pcces.strategies import SHAPINGS
from pcces.support.text import suggestion

Array = Any

# By the type of a setting: what its value must be, in words, and whether it is.
KINDS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    "int": ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    "float": ("a finite number", lambda v: isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v)),
    "bool": ("True or False", lambda v: isinstance(v, bool)),
    "str": ("text", lambda v: isinstance(v, str)),
    "tuple[int, ...]": (
        "whole numbers of at least 1, such as (32, 32)",
        lambda v: isinstance(v, tuple) and all(isinstance(width, int) and width >= 1 for width in v),
    ),
}


def need(good: bool, what: str) -> None:
    """Refuse a setting, in words."""
    if not good:
        raise ValueError(what)


def check_common(settings: Any) -> None:
    """Refuse values of another kind than their settings, and what makes no sense for any algorithm."""
    for field in fields(settings):
        value = plain(getattr(settings, field.name))
        wanted, fits = KINDS[field.type]
        need(fits(value), f"{field.name} must be {wanted}, got {value!r}")
        object.__setattr__(settings, field.name, value)
    need(settings.iterations >= 1, f"iterations must be at least 1, got {settings.iterations}")
    need(settings.initial_tries >= 1, f"initial_tries must be at least 1, got {settings.initial_tries}")
    need(0 <= settings.freeze <= 1, f"freeze must lie in [0, 1], got {settings.freeze}")
    need(0 < settings.discount <= 1, f"discount must lie in (0, 1], got {settings.discount}")


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers of array libraries as Python's, but lists as tuples.

    >>> import numpy as np
    >>> plain(np.int64(8)), plain([np.int64(4), 3])
    (8, (4, 3))
    """
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    return value.item() if getattr(value, "ndim", None) == 0 else value


class Start(NamedTuple):
    """How x_0 is chosen: what an arena needs to know of an algorithm's settings."""

    tries: int
    log_std: float
    last_layer: float
    normalise: bool
    rho: float
    l2: float

    @classmethod
    def of(cls, settings: Any) -> Start:
        """What the settings of any algorithm say; a cost over its limit and a unit of weight count as PCCES has them."""
        s, weighed = settings, settings if isinstance(settings, Settings) else Settings
        return cls(s.initial_tries, s.log_std, s.last_layer, s.normalise, weighed.rho, weighed.l2)


@dataclass(frozen=True)
class Common:
    """What the settings of all algorithms have in common: the policy, its start and its normalisation."""

    iterations: int = 300
    hidden: tuple[int, ...] = (10, 10)  # widths of the policy's layers
    log_std: float = 0.0  # a Gaussian head's log standard deviation at the start
    last_layer: float = 1.0  # scale of the last layer's weights at the start
    initial_tries: int = 1  # random policies of which the best is x_0
    normalise: bool = True  # observations
    freeze: float = 1.0  # the share of the iterations after which the normalisation no longer changes
    mu: float = 0.0  # weight of entropy (and against costs) in the objective f that candidates are ranked by
    discounted: bool = False  # whether that objective is the discounted return
    discount: float = 0.99

    def __post_init__(self) -> None:
        check_common(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """What `to_dict` gave, also after a trip through JSON."""
        tuples: dict[str, Any] = {name: tuple(value) for name, value in data.items() if isinstance(value, list)}
        return cls(**{**data, **tuples})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


def normalised(settings: Common, normalizer: Normalizer, seen: Seen, k: Array) -> Normalizer:
    """The normalisation after iteration k has seen so much."""
    if not settings.normalise:
        return normalizer
    return update(normalizer, seen, frozen=k + 1 > settings.freeze * settings.iterations)


@dataclass(frozen=True)
class Settings:
    """Everything that can be tuned. The defaults are the best we know; `PAPER` is how we read the paper."""

    population: int = 40  # lambda, even: directions come in mirrored pairs
    iterations: int = 300
    hidden: tuple[int, ...] = (10, 10)  # widths of the policy's layers
    log_std: float = 0.0  # a Gaussian head's log standard deviation at the start
    last_layer: float = 2.0  # scale of the last layer's weights at the start
    initial_tries: int = 1024  # random policies of which the best is x_0
    # Step sizes
    sigma0: float = 1.0
    sigma_min: float = 0.0
    sigma_max: float = 2.0
    growth: float = 1.05
    shrink: float = 1 / 1.05
    kappa: float = 0.005
    d_max: float = 1e3
    sigma_es0: float = 1.0  # spread of the samples, as the norm of a whole direction
    sigma_es_min: float = 0.01
    sigma_es: str = "tied"  # fixed, or tied: it grows and shrinks with sigma, between sigma_es_min and sigma_es0
    # Guided search
    surrogate: str = "policy-gradient"  # policy-gradient, updates (past directions d_k), or none (isotropic)
    m: int = 20  # surrogates kept
    warm_up: int = 1  # iterations that only collect surrogates
    alpha: float = 0.5  # share of the samples' variance outside the guiding subspace
    beta: float = 20.0  # scale of the recombination
    shaping: str = "rank"
    # mean: d_k is the samples' weighted mean; adam: that with momentum, coordinates alike; none: the natural gradient's step alone
    recombination: str = "adam"
    momentum: float = 0.9  # what remains of the mean direction, and
    momentum_squares: float = 0.99  # of its squares, an iteration later
    kl: float = 0.01  # how far a step along the natural policy gradient in d_k moves the policy (KL); 0: none
    kl_measured: bool = False  # whether that is measured in states seen, or what the Fisher information's factors say
    memory: float = 0.0  # in that step a gradient counts exp(-sigma_k / memory) of the next one; 0: only the newest
    stride_episodes: int = 0  # by which lengths of that step are compared; 0: always its whole length
    discount: float = 0.99  # of the surrogate's returns, and of the objective's where `discounted`
    # Objective and constraints
    mu: float = 1e-4
    l2: float = 1e-4
    discounted: bool = False  # whether the objective is the discounted return
    eps_c: float = 0.0
    constraint_z: float = 2.0  # accept on cost + z standard errors
    restoration: str = "merit"  # merit: an infeasible incumbent minimises f + rho violation; none: it waits for luck
    rho: float = 1.0  # also what a unit of each constraint is priced at to begin with, where samples are compared
    price_growth: float = 1.05  # of the price, when a step is refused that breaks the constraint,
    price_shrink: float = 0.98  # and when the trial point keeps it
    doubt: float = 0.5  # standard errors of f_trial - f_k that the trial point gets the benefit of
    # Estimation
    episodes: int = 32  # N_k, of the trial point and of the incumbent
    metric_episodes: int = 32  # fresh episodes of x_k behind an iteration's metrics, at least `episodes`
    member_episodes: int = 4  # episodes a sample is judged by
    incumbent: str = "fresh"  # fresh: estimated anew every iteration; kept: as the paper's Step 4 reads
    common_random_numbers: bool = True  # trial and incumbent, and mirrored pairs, play the same episodes
    normalise: bool = True  # observations
    freeze: float = 1.0  # the share of the iterations after which the normalisation no longer changes

    def __post_init__(self) -> None:
        check_common(self)
        need(
            self.population >= 4 and self.population % 2 == 0,
            f"population must be an even number of at least 4 (directions come in mirrored pairs), got {self.population}",
        )
        need(
            1 <= self.episodes <= self.metric_episodes and self.member_episodes >= 1,
            "episodes and member_episodes must be at least 1, and metric_episodes no fewer than episodes",
        )
        need(0 < self.shrink < 1 < self.growth, "growth must be above 1 and shrink between 0 and 1")
        need(0 <= self.sigma_min < self.sigma_max, "sigma_min must be at least 0 and below sigma_max")
        for name in ("kappa", "sigma0", "sigma_es0", "d_max", "beta"):
            need(getattr(self, name) > 0, f"{name} must be positive, got {getattr(self, name)}")
        need(
            self.sigma_min <= self.sigma0 <= self.sigma_max,
            f"sigma0 must lie between sigma_min and sigma_max ({self.sigma_min:g} and {self.sigma_max:g}), got {self.sigma0}",
        )
        need(0 <= self.sigma_es_min <= self.sigma_es0, "sigma_es_min must be at least 0 and at most sigma_es0")
        need(0 <= self.alpha <= 1 and self.m >= 1, "guided search needs 0 <= alpha <= 1 and m >= 1")
        need(0 < self.price_shrink <= 1 <= self.price_growth, "price_growth must be at least 1, price_shrink in (0, 1]")
        for name in ("warm_up", "kl", "memory", "stride_episodes", "l2", "eps_c", "constraint_z", "rho", "doubt"):
            need(getattr(self, name) >= 0, f"{name} must not be negative, got {getattr(self, name)}")
        for name in ("momentum", "momentum_squares"):
            need(0 <= getattr(self, name) < 1, f"{name} must be at least 0 and below 1, got {getattr(self, name)}")
        need(
            self.kl > 0 or not (self.memory or self.kl_measured),
            "memory and kl_measured are of the step along the natural gradient, which kl=0 leaves out",
        )
        need(
            self.memory == 0 or self.surrogate == "policy-gradient",
            f"memory is of policy gradients, which surrogate={self.surrogate} does not keep",
        )
        need(self.recombination != "none" or self.kl > 0, "recombination=none leaves no direction without kl")
        choices = {
            "sigma_es": ("fixed", "tied"),
            "surrogate": ("policy-gradient", "updates", "none"),
            "shaping": tuple(SHAPINGS),
            "recombination": ("mean", "adam", "none"),
            "restoration": ("merit", "none"),
            "incumbent": ("fresh", "kept"),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            need(value in allowed, f"{name} must be one of {', '.join(allowed)}, got {value!r}")

    def iteration_steps(self, task: Any) -> int:
        """Environment steps that an iteration takes at least: an episode has one or more."""
        return self.population * self.member_episodes + self.metric_episodes + self.episodes

    @property
    def lesson(self) -> str:
        """What is to be learnt from the episodes of an iteration, beside their outcome (pcces.rl.lesson)."""
        if self.kl > 0:
            return "measured" if self.kl_measured else "natural"
        return "gradient" if self.surrogate == "policy-gradient" else "observations"

    @property
    def rule(self) -> Rule:
        """The constants of Algorithm 1."""
        return Rule(self.kappa, self.growth, self.shrink, self.sigma_min, self.sigma_max, self.d_max)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Settings:
        """What `to_dict` gave, also after a trip through JSON."""
        return cls(**{**data, "hidden": tuple(data["hidden"])})

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class BatchSettings(Common):
    """Everything that can be tuned. No setting has the units of returns, costs or observations."""

    hidden: tuple[int, ...] = (64, 64)  # widths of the policy's layers
    last_layer: float = 0.01  # scale of the last layer's weights at the start
    epoch_steps: int = 30_000  # environment steps a batch, rounded to whole episodes of the longest kind
    # Algorithm 1
    sigma0: float = 1.0  # the share of the step the passes propose that is tried
    sigma_min: float = 0.05
    sigma_max: float = 1.0
    gamma: float = 1.1  # growth of sigma after a success, and 1 / gamma after a failure
    kappa: float = 0.005  # forcing constant, in units of the spread of an episode's return
    doubt: float = 1.0  # standard errors of f_trial - f_k that the trial point gets the benefit of
    weight: float = 0.25  # of a new batch in the estimate of the incumbent
    # What d_k is made from
    gae: float = 0.95  # lambda of the generalised advantages
    critic_hidden: tuple[int, ...] = (64, 64)
    critic_rate: float = 1e-3  # Adam's
    passes: int = 10  # over a batch's steps
    minibatches: int = 8  # a pass
    rate: float = 6e-4  # Adam's, of the policy
    clip: float = 0.2  # beyond 1 +- clip a change of probability gains nothing
    target_kl: float = 0.02  # the passes end when the policy has moved further than this
    anneal: bool = True  # the rate falls linearly to zero over the iterations
    entropy: float = 0.0  # weight of an entropy bonus
    # Limits
    price_rate: float = 0.1  # what a limit that is broken by one deviation of an episode's cost adds to its price
    price_reaction: float = 1.0  # and how far the price is from there meanwhile
    aim: float = 1.0  # standard errors below its limit that a cost is steered to
    l2: float = 0.0
    rho: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.epoch_steps >= 1, f"epoch_steps must be positive, got {self.epoch_steps}")
        need(0 <= self.gae <= 1, f"gae must lie in [0, 1], got {self.gae}")
        need(0 < self.weight <= 1, f"weight must lie in (0, 1], got {self.weight}")
        need(self.passes >= 1 and self.minibatches >= 1, "passes and minibatches must be at least 1")
        need(self.gamma > 1, f"gamma must be greater than 1, got {self.gamma}")
        need(0 <= self.sigma_min <= self.sigma0 <= self.sigma_max, "sigma_min <= sigma0 <= sigma_max must hold")
        for name in ("kappa", "rate", "clip", "target_kl", "critic_rate"):
            need(getattr(self, name) > 0, f"{name} must be positive, got {getattr(self, name)}")
        for name in ("doubt", "price_rate", "price_reaction", "aim", "l2", "entropy"):
            need(getattr(self, name) >= 0, f"{name} must not be negative, got {getattr(self, name)}")

    @property
    def rule(self) -> Rule:
        """The constants of Algorithm 1."""
        return Rule.conform(self.gamma, kappa=self.kappa, sigma_min=self.sigma_min, sigma_max=self.sigma_max)

    def episodes(self, task: Any) -> int:
        """The episodes a batch has if all run into the time limit; if not, others follow."""
        return max(1, round(self.epoch_steps / task.max_steps))

    def iteration_steps(self, task: Any) -> int:
        """Environment steps that an iteration takes."""
        return self.episodes(task) * int(task.max_steps)


# Table 4 as it stands, and nothing else (docs/paper.md).
PAPER_LITERAL = Settings(
    sigma0=0.1,
    sigma_min=0.001,
    sigma_max=0.1,
    growth=1.01,
    shrink=0.99,
    beta=5.0,
    recombination="mean",
    kl=0.0,
    warm_up=20,
    initial_tries=1,
    last_layer=1.0,
    member_episodes=1,
    shaping="raw",
    constraint_z=0.0,
    restoration="none",
    doubt=0.0,
    episodes=1,
    metric_episodes=10,
    incumbent="kept",
    common_random_numbers=False,
    normalise=False,
)
# What the paper leaves open, read so that its numbers come out (docs/paper.md, "The preset `paper`").
PAPER = replace(PAPER_LITERAL, normalise=True, incumbent="fresh")
# Where episodes differ by more than samples do, these say little, and the natural gradient's step is better alone: then
# nets may be wide, samples keep close together, and estimates take many episodes. Near the end gradients are noise one by
# one, so they are remembered (docs/findings.md). It wants a GPU.
NOISY: dict[str, Any] = {
    "hidden": (64, 64), "recombination": "none", "sigma_es0": 0.1, "initial_tries": 256,
    "episodes": 512, "metric_episodes": 512, "member_episodes": 2, "kl_measured": True, "memory": 1.0,
}  # fmt: skip
PRESETS = {
    "default": Settings(),
    "batches": BatchSettings(),
    "paper": PAPER,
    "paper-literal": PAPER_LITERAL,
    "noisy": Settings(population=256, **NOISY),
}
CALM = {"initial_tries": 1, "last_layer": 0.3}  # a start for episodes too slow to try a thousand policies
# What the defaults become on slow episodes, where nets are wider and little is seen of a sample (docs/findings.md).
SLOW = CALM | {"member_episodes": 1, "stride_episodes": 8, "sigma_max": 8.0, "sigma_es_min": 0.3}


def pick(presets: dict[str, Any], preset: str, given: dict[str, Any], whose: str = "") -> Any:
    """One of some presets, with changes; `whose` (" of openes") says in an error whose settings these are.

    >>> pick(PRESETS, "default", {"sigma": 0.1})
    Traceback (most recent call last):
    ...
    TypeError: unknown setting 'sigma'; did you mean 'sigma0'?
    """
    if preset not in presets:
        raise ValueError(f"unknown preset {preset!r}{whose}; there are {', '.join(presets)}")
    names = [field.name for field in fields(presets[preset])]
    for name in given:
        if name not in names:
            raise TypeError(f"unknown setting {name!r}{whose}; {suggestion(name, names)}")
    return replace(presets[preset], **given)
