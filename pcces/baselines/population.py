"""What OpenES and ASEBO share: they play a population of policies, and the policy that the iteration starts from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pcces.core.arrays import array_namespace
from pcces.engines.arena import Around, Group, Program
from pcces.rl.first import First, first_of
from pcces.rl.lesson import Learning
from pcces.rl.normalizer import Normalizer, nothing_seen
from pcces.rl.outcome import Spent
from pcces.rl.problem import Problem
from pcces.rl.settings import Common, check_population, need
from pcces.strategies import Strategy, mirrored
from pcces.support.settings import FIRST, SOMETIMES, setting

Array = Any


@dataclass(frozen=True)
class EvolutionSettings(Common):
    """What an evolution strategy's population is, and how it is judged. It starts where PCCES starts."""

    last_layer: float = 2.0
    initial_tries: int = 1024
    population: int = setting(
        40, "lambda, the policies tried in an iteration; even, as directions come in mirrored pairs", FIRST
    )
    sigma: float = setting(1.0, "sigma^ES, the spread of the samples", SOMETIMES)
    sigma_of: str = setting(
        "direction",
        "meaning of sigma: direction (norm of a whole direction) or coordinate (standard deviation of each)",
    )
    l2: float = setting(1e-4, "weight decay")
    member_episodes: int = setting(2, "episodes per sample", SOMETIMES)
    metric_episodes: int = setting(
        32, "fresh episodes of x_k for the metrics of an iteration; the search does not use them"
    )
    common_random_numbers: bool = setting(True, "mirrored pairs play the same episodes", SOMETIMES)
    penalty: float = setting(
        1.0, "weight of the costs above their limits in the fitness of a sample; 0: ignore costs", SOMETIMES
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_population(self)
        need(self.sigma > 0, f"sigma must be positive, got {self.sigma}")
        need(self.l2 >= 0 and self.penalty >= 0, "l2 and penalty must not be negative")
        need(
            self.sigma_of in ("direction", "coordinate"),
            f"sigma_of must be direction or coordinate, got {self.sigma_of!r}",
        )

    def deviation(self, n: int) -> float:
        """The standard deviation of each coordinate of an isotropic sample.

        >>> EvolutionSettings(sigma=1.0).deviation(100), EvolutionSettings(sigma_of="coordinate").deviation(100)
        (0.1, 1.0)
        """
        return self.sigma / math.sqrt(n) if self.sigma_of == "direction" else self.sigma

    def iteration_steps(self, task: Any) -> int:
        """Environment steps that an iteration takes at least: an episode has one or more."""
        return self.population * self.member_episodes + self.metric_episodes

    @property
    def shares(self) -> int:
        """How many devices may share an iteration."""
        return math.gcd(self.population * self.member_episodes, self.metric_episodes)


class Evolution(NamedTuple):
    """An evolution strategy as pure functions, the same on the device and on workers. Its states have k, x, normalizer."""

    begin: Callable[[Any, Array, Normalizer], Any]
    """settings, x, normalisation -> state"""
    search: Callable[[Any], Callable[[], Strategy]]
    """settings -> what makes the search distribution"""
    basis: Callable[[Any], Any]
    """state -> the search distribution's state"""
    scale: Callable[[Any, int], float]
    """settings, n -> the length of a step x + scale * direction"""
    used: Callable[[Any, Any], Array]
    """settings, state -> which samples count (lambda,)"""
    conclude: Callable[..., tuple[Any, dict[str, Array]]]
    """policy, settings, state, directions, used, f, seen -> state, metrics"""


def fitness(problem: Problem, settings: EvolutionSettings, y: Array) -> Array:
    """What to minimise: -return, and the penalty for mean costs over their limits, from outputs y (lambda, episodes, 1 + r).

    Each is in units of the samples' mean difference from their mean, so that it does not matter in what it is measured.
    """
    xp = array_namespace(y)
    y = xp.mean(y, axis=1)[:, : 1 + len(problem.cost_names)]
    good = xp.isfinite(y)
    count = xp.clip(xp.sum(good, axis=0), 1, None)
    mean = xp.sum(xp.where(good, y, 0.0), axis=0) / count
    units = xp.sum(xp.where(good, xp.abs(y - mean), 0.0), axis=0) / count
    units = xp.where(units > 0, units, 1.0)
    return y[:, 0] / units[0] + settings.penalty * xp.sum(xp.clip(y[:, 1:], 0.0, None) / units[1:], axis=1)


def program(evolution: Evolution, arena: Any, settings: EvolutionSettings) -> Program:
    """An evolution strategy in this arena."""
    begin = arena.compiled(partial(evolution.begin, settings), everywhere=True)
    conclude = arena.compiled(partial(evolution.conclude, arena.policy, settings), everywhere=True)

    def init(key: Any, given: First | None = None) -> tuple[Any, Any]:
        x, normalizer, spent = first_of(arena, settings, key, given)
        return begin(x, normalizer), spent

    return Program(
        init=init,
        step=partial(step, evolution, arena, settings, conclude),
        shares=settings.shares,
        blank=lambda key: begin(*arena.blank()),
    )


def step(
    evolution: Evolution, arena: Any, settings: EvolutionSettings, conclude: Callable[..., Any], state: Any, key: Any
) -> tuple[Any, dict[str, Any]]:
    """One iteration: play and judge a population, and play fresh episodes of x for the metrics."""
    s, x, xp = settings, state.x, array_namespace(state.x)
    z_key, play_key = arena.keys(key, state.k, 2)
    member_key, own_key = arena.split(play_key, 2)
    strategy, scale = evolution.search(s)(), evolution.scale(s, x.size)
    basis = evolution.basis(state)
    directions = mirrored(strategy.directions(basis, arena.normals(z_key, s.population // 2, strategy.normals(x.size))))
    used = evolution.used(s, state)
    paired = s.common_random_numbers
    seeds = arena.seeds(member_key, s.population * s.member_episodes // (2 if paired else 1))
    seeds = xp.concat([seeds, seeds]) if paired else seeds
    sampled = Group(x + scale * directions, seeds, Around(x, scale, basis, z_key), learn=True, used=used)
    own = Group(x[None], arena.seeds(own_key, s.metric_episodes))
    (members, mine), lesson = arena.play([sampled, own], state.normalizer, Learning(False, x[:0]))
    y = xp.reshape(arena.outputs(members), (s.population, s.member_episodes, -1))
    f = finite(fitness(arena.problem, s, xp.where(used[:, None, None], y, xp.inf)))
    seen = nothing_seen(state.normalizer) if lesson is None else lesson.seen
    after, own_metrics = conclude(state, directions, used, f, seen)
    described = arena.described(x, state.normalizer, mine, arena.outputs(mine), Spent.on(members, mine))
    return after, described | own_metrics


def finite(f: Array) -> Array:
    """f with the worst value there is for samples whose episodes failed.

    >>> import numpy as np
    >>> finite(np.array([1.0, np.inf, 3.0]))
    array([1., 3., 3.])
    """
    xp = array_namespace(f)
    good = xp.isfinite(f)
    worst = xp.max(xp.where(good, f, -xp.inf))
    return xp.where(good, f, xp.where(xp.isfinite(worst), worst, 0.0))
