"""The settings of PCCES on policies: what each means, and the presets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple, Self

from pcces.core.algorithm import Rule
from pcces.core.arrays import array_namespace
from pcces.rl.arguments import ARGUMENTS
from pcces.rl.meanings import MEANINGS
from pcces.rl.normalizer import Normalizer, Seen, update
from pcces.strategies import SHAPINGS
from pcces.support.settings import FIRST, SOMETIMES, setting
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
        need(not isinstance(value, int) or abs(value) < 2**31, f"{field.name} must be below 2^31, got {value!r}")
        object.__setattr__(settings, field.name, value)
    need(settings.iterations >= 1, f"iterations must be at least 1, got {settings.iterations}")
    least = int(not isinstance(settings, BatchSettings))
    need(settings.initial_tries >= least, f"initial_tries must be at least {least}, got {settings.initial_tries}")
    need(0 <= settings.freeze <= 1, f"freeze must lie in [0, 1], got {settings.freeze}")
    need(0 < settings.discount <= 1, f"discount must lie in (0, 1], got {settings.discount}")


def check_population(settings: Any) -> None:
    """Refuse what makes no sense for an algorithm that tries a population."""
    need(
        settings.population >= 4 and settings.population % 2 == 0,
        f"population must be an even number of at least 4 (directions come in mirrored pairs), got {settings.population}",
    )
    for name in ("member_episodes", "metric_episodes"):
        need(getattr(settings, name) >= 1, f"{name} must be at least 1, got {getattr(settings, name)}")


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
    bold: float = 0.0  # scale of the last layers of all but the first; 0: as of the first
    judged: int = 8  # episodes of the boldest and of the first

    @classmethod
    def of(cls, settings: Any) -> Start:
        """What the settings of any algorithm say."""
        s = settings
        bold = s.bold if isinstance(s, BatchSettings) else 0.0
        return cls(s.initial_tries, s.log_std, s.last_layer, s.normalise, bold)


def first_choice(y: Array) -> Array:
    """What policies are worth (N,) for a beginning, least first, by their outputs y = (f, c) (N, 1 + r): a limit that is
    broken by one deviation of these policies counts as much as a deviation of f.

    >>> import numpy as np
    >>> int(np.argmin(first_choice(np.array([[-100.0, 0.9], [-90.0, 0.0], [-80.0, -0.1]]))))
    1
    """
    xp = array_namespace(y)
    spread = xp.std(y, axis=0)
    units = xp.where(spread > 0, spread, xp.ones_like(spread))
    return y[:, 0] / units[0] + xp.sum(xp.clip(y[:, 1:], 0.0, None) / units[1:], axis=1)


def bolder(calm: Array, bold: Array) -> Array:
    """Whether a bold policy is worth beginning with, by the returns of both on the same episodes: where most policies see
    nothing to learn from, it is clearly better or not at all.

    >>> import numpy as np
    >>> bool(bolder(np.full(8, -200.0), np.full(8, -199.0))), bool(bolder(np.arange(8.0), np.arange(8.0) + 5))
    (True, False)
    """
    return bold.mean() > calm.mean() + CLEARLY * calm.std()


CLEARLY = 4.0  # deviations of an episode's return


@dataclass(frozen=True)
class Common:
    """What the settings of all algorithms have in common: the policy, its start and its normalisation."""

    iterations: int = setting(300, "iterations (epochs of ppo-lag, rcpo and cpo); `steps` sets them, too", FIRST)
    hidden: tuple[int, ...] = setting((10, 10), "widths of the policy's layers", FIRST)
    log_std: float = setting(0.0, "log standard deviation of a Gaussian policy's actions at the start", SOMETIMES)
    last_layer: float = setting(1.0, "scale of the last layer's weights at the start")
    initial_tries: int = setting(1, "random policies of which the best is the start x_0")
    normalise: bool = setting(True, "normalise observations by those seen so far", SOMETIMES)
    freeze: float = setting(1.0, "share of the iterations after which the normalisation no longer changes")
    mu: float = setting(0.0, "weight of the entropy, and against costs, in the objective f")
    discounted: bool = setting(False, "whether the objective is the discounted return")
    discount: float = setting(0.99, "discount of rewards and costs per step", SOMETIMES)

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
    # Without a freeze the number of iterations is left out, so that programs compiled for another one can be used.
    last = settings.freeze * settings.iterations if settings.freeze < 1 else math.inf
    return update(normalizer, seen, frozen=k + 1 > last)


@dataclass(frozen=True)
class PopulationSettings(Common):
    """The paper's own iteration, on a population of samples. The defaults are how we read the paper (docs/explanation/paper.md)."""

    mu: float = 1e-4
    population: int = setting(
        40, "lambda, the policies tried in an iteration; even, as directions come in mirrored pairs", FIRST
    )
    # Step sizes
    sigma0: float = setting(0.1, "initial step size", SOMETIMES)
    sigma_min: float = setting(0.001, "lower bound of sigma")
    sigma_max: float = setting(0.1, "upper bound of sigma")
    gamma: float = setting(1.01, "factor by which sigma grows after a success")
    shrink: float = setting(0.99, "factor by which sigma shrinks after a failure")
    kappa: float = setting(0.005, "forcing constant: a step must decrease f by kappa sigma^2 / 2")
    d_max: float = setting(1e3, "upper bound of ||d_k||, the length of a direction")
    sigma_es0: float = setting(1.0, "initial spread of the samples, as the norm of a whole direction", SOMETIMES)
    sigma_es_min: float = setting(0.01, "lower bound of this spread")
    sigma_es: str = setting("tied", "how it changes: fixed, or tied (with sigma, between sigma_es_min and sigma_es0)")
    # Guided search
    surrogate: str = setting(
        "policy-gradient", "what guides the search: policy-gradient, updates (past d_k) or none (isotropic)"
    )
    m: int = setting(20, "surrogates kept")
    warm_up: int = setting(20, "iterations that only collect surrogates")
    alpha: float = setting(0.5, "share of the samples' variance outside the guiding subspace")
    beta: float = setting(5.0, "scale of the recombination")
    shaping: str = setting("raw", "what fitness is turned into before it is weighted: raw, standardised or rank")
    # Objective and constraints
    l2: float = setting(1e-4, "weight decay")
    eps_c: float = setting(0.0, "allowance eps_c sigma_k for each constraint (Eq. 4)")
    constraint_z: float = setting(0.0, "a point is accepted on its cost + z standard errors")
    restoration: str = setting(
        "none", "what an infeasible incumbent does: merit (minimise f + rho violation) or none (wait)"
    )
    rho: float = setting(1.0, "weight of the violation where restoration is merit")
    doubt: float = setting(0.0, "standard errors of f_trial - f_k that the trial point gets the benefit of")
    # Estimation
    episodes: int = setting(1, "N_k, episodes of the trial point and of the incumbent", SOMETIMES)
    metric_episodes: int = setting(10, "fresh episodes of x_k behind an iteration's metrics, at least `episodes`")
    member_episodes: int = setting(1, "episodes that each sample is judged by", SOMETIMES)
    incumbent: str = setting("fresh", "the incumbent's estimate: fresh every iteration, or kept (the paper's Step 4)")
    common_random_numbers: bool = setting(
        False, "trial and incumbent, and mirrored pairs, play the same episodes", SOMETIMES
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_population(self)
        need(self.episodes <= self.metric_episodes, "metric_episodes must be no fewer than episodes")
        need(0 < self.shrink < 1 < self.gamma, "gamma must be above 1 and shrink between 0 and 1")
        need(0 <= self.sigma_min < self.sigma_max, "sigma_min must be at least 0 and below sigma_max")
        for name in ("kappa", "sigma0", "sigma_es0", "d_max", "beta", "episodes"):
            need(getattr(self, name) > 0, f"{name} must be positive, got {getattr(self, name)}")
        need(
            self.sigma_min <= self.sigma0 <= self.sigma_max,
            f"sigma0 must lie between sigma_min and sigma_max ({self.sigma_min:g} and {self.sigma_max:g}), got {self.sigma0}",
        )
        need(0 <= self.sigma_es_min <= self.sigma_es0, "sigma_es_min must be at least 0 and at most sigma_es0")
        need(0 <= self.alpha <= 1 and self.m >= 1, "guided search needs 0 <= alpha <= 1 and m >= 1")
        for name in ("warm_up", "l2", "eps_c", "constraint_z", "rho", "doubt"):
            need(getattr(self, name) >= 0, f"{name} must not be negative, got {getattr(self, name)}")
        choices = {
            "sigma_es": ("fixed", "tied"),
            "surrogate": ("policy-gradient", "updates", "none"),
            "shaping": tuple(SHAPINGS),
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
    def rule(self) -> Rule:
        """The constants of Algorithm 1."""
        return Rule(self.kappa, self.gamma, self.shrink, self.sigma_min, self.sigma_max, self.d_max)


USUAL_BATCH, LARGEST_BATCH = 3_000, 30_000  # environment steps
BATCHES = 600  # of a budget
LEAST_EPISODES = 10  # of a batch
MOST_TRIES, SHARE_OF_TRIES = 64, 0.02  # random policies, and the share of the budget that may go into them


@dataclass(frozen=True)
class BatchSettings(Common):
    """What can be tuned of PCCES as people get it. No setting has the units of returns, costs or observations."""

    iterations: int = setting(600, "batches that are played; `steps` sets them, too", FIRST)
    hidden: tuple[int, ...] = (64, 64)
    last_layer: float = 0.01
    initial_tries: int = setting(0, "random policies that may be x_0 in its place; 0: 64, or what the budget allows")
    bold: float = setting(2.0, "scale of the last layers' weights of these random policies")
    epoch_steps: int = setting(
        0, "environment steps per batch, rounded to whole episodes; 0: chosen by the budget", FIRST
    )
    # Algorithm 1
    sigma0: float = setting(1.0, "share of the proposed step that is tried at first", SOMETIMES)
    sigma_min: float = setting(0.05, "lower bound of sigma")
    sigma_max: float = setting(1.0, "upper bound of sigma")
    gamma: float = setting(1.1, "factor by which sigma grows after a success, and shrinks after a failure")
    kappa: float = setting(0.005, "forcing constant, in units of the spread of an episode's return")
    d_max: float = setting(1e3, "upper bound of ||d_k||; a few passes come nowhere near it")
    doubt: float = setting(1.0, "standard errors of f_trial - f_k that the trial point gets the benefit of")
    weight: float = setting(0.25, "weight of a new batch in the estimate of the incumbent")
    # What d_k is made from
    gae: float = setting(0.95, "lambda of the generalised advantage estimates", SOMETIMES)
    critic_hidden: tuple[int, ...] = setting((64, 64), "widths of the critics' layers", SOMETIMES)
    critic_rate: float = setting(3e-3, "learning rate of the critics (Adam)", SOMETIMES)
    passes: int = setting(5, "passes over a batch's steps", SOMETIMES)
    minibatches: int = setting(8, "minibatches per pass", SOMETIMES)
    rate: float = setting(2e-3, "learning rate of the policy (Adam): lower it if training is unstable", FIRST)
    clip: float = setting(0.2, "a change of an action's probability beyond 1 +- clip gains nothing")
    target_kl: float = setting(
        0.02, "the passes end when the policy has moved further than this, and the step is shortened to it", SOMETIMES
    )
    anneal: bool = setting(True, "decrease the rate linearly to zero over the iterations", SOMETIMES)
    entropy: float = setting(0.0, "weight of an entropy bonus: raise it if the policy stops exploring", SOMETIMES)
    # Limits
    price_rate: float = setting(
        0.1, "what a limit broken by one standard deviation of an episode's cost adds to its price"
    )
    price_reaction: float = setting(1.0, "how much the price follows the present distance from the limit")
    gae_ended: float = setting(0.95, "trial")
    cost_gae: float = setting(0.95, "trial")
    cost_discount: float = setting(0.99, "trial")
    price_kind: int = setting(0, "trial: 0 additive, 1 factor")
    price_clip: float = setting(2.0, "trial: of steady")
    reaction_clip: float = setting(2.0, "trial")
    first_price: float = setting(0.0, "trial")
    critic_passes: int = setting(0, "trial")
    aim: float = setting(
        1.0, "standard errors below its limit that a cost is steered to: raise it if runs are just not certified", FIRST
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        need(self.epoch_steps >= 0, f"epoch_steps must not be negative, got {self.epoch_steps}")
        need(0 <= self.gae <= 1, f"gae must lie in [0, 1], got {self.gae}")
        need(0 < self.weight <= 1, f"weight must lie in (0, 1], got {self.weight}")
        need(self.passes >= 1 and self.minibatches >= 1, "passes and minibatches must be at least 1")
        need(
            self.gamma > 1,
            f"gamma, by which sigma grows, must be greater than 1, got {self.gamma}; the discount of returns is called discount",
        )
        need(0 <= self.sigma_min <= self.sigma0 <= self.sigma_max, "sigma_min <= sigma0 <= sigma_max must hold")
        for name in ("kappa", "d_max", "rate", "clip", "target_kl", "critic_rate"):
            need(getattr(self, name) > 0, f"{name} must be positive, got {getattr(self, name)}")
        for name in ("doubt", "price_rate", "price_reaction", "aim", "entropy"):
            need(getattr(self, name) >= 0, f"{name} must not be negative, got {getattr(self, name)}")

    @property
    def rule(self) -> Rule:
        """The constants of Algorithm 1."""
        steps = {"sigma_min": self.sigma_min, "sigma_max": self.sigma_max, "d_max": self.d_max}
        return Rule.conform(self.gamma, kappa=self.kappa, **steps)

    def sized(self, task: Any, steps: float | None) -> BatchSettings:
        """With sizes that suit a budget of environment steps, where none were given.

        >>> from pcces.envs import make
        >>> sized = BatchSettings().sized(make("CartSafe-v0"), 1e6)
        >>> sized.epoch_steps, sized.initial_tries
        (3000, 64)
        """
        epoch_steps = self.epoch_steps
        if not epoch_steps:
            epoch_steps = USUAL_BATCH if steps is None else min(int(steps / BATCHES), LARGEST_BATCH)
            epoch_steps = max(epoch_steps, LEAST_EPISODES * int(task.max_steps))
        budget = self.iterations * epoch_steps if steps is None else steps
        affordable = max(1, min(MOST_TRIES, int(SHARE_OF_TRIES * budget / task.max_steps)))
        return replace(self, epoch_steps=epoch_steps, initial_tries=self.initial_tries or affordable)

    def episodes(self, task: Any) -> int:
        """The episodes a batch has if all run into the time limit; if not, others follow."""
        return max(1, round(self.epoch_steps / task.max_steps))

    def iteration_steps(self, task: Any) -> int:
        """Environment steps that an iteration takes."""
        return self.episodes(task) * int(task.max_steps)


PRESETS = {
    "default": BatchSettings(),
    "paper": PopulationSettings(),
    "paper-literal": PopulationSettings(incumbent="kept", normalise=False),  # Table 4 as it stands, and nothing else
}
CALM = {"initial_tries": 1, "last_layer": 0.3}  # a start for episodes too slow to try a thousand policies


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
            every = f"there are {', '.join(names)}"
            meant = suggestion(name, [*names, *ARGUMENTS], otherwise=every, meanings=MEANINGS)
            raise TypeError(f"unknown setting {name!r}{whose}; {meant}")
    return replace(presets[preset], **given)
