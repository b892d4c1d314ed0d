"""What OpenES and ASEBO share: a population of policies is played beside the policy the iteration starts from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcces.baselines import start
from pcces.baselines.settings import Common
from pcces.core.arrays import array_namespace
from pcces.engines.device import Program, configure, gathered, my_share, summed
from pcces.envs.task import Task
from pcces.rl.crew import Crew
from pcces.rl.episodes import Episode, member_normals
from pcces.rl.normalizer import Normalizer, Seen
from pcces.rl.on_device import described, observed
from pcces.rl.on_workers import episode_seeds, members
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.rollout import rollout
from pcces.rl.settings import need
from pcces.strategies import Strategy, mirrored

Array = Any


@dataclass(frozen=True)
class PopulationSettings(Common):
    """What an evolution strategy's population is, and how it is judged. It starts where PCCES starts."""

    last_layer: float = 2.0  # scale of the last layer's weights at the start
    initial_tries: int = 1024  # random policies of which the best is x_0
    population: int = 40  # lambda, even: directions come in mirrored pairs
    sigma: float = 1.0  # sigma^ES, the spread of the samples
    sigma_of: str = "direction"  # what sigma is: the norm of a whole direction, or the deviation of each coordinate
    l2: float = 1e-4  # weight decay
    member_episodes: int = 2  # episodes a sample is judged by
    metric_episodes: int = 32  # fresh episodes of x_k behind an iteration's metrics; the search does not use them
    common_random_numbers: bool = True  # mirrored pairs play the same episodes
    penalty: float = 1.0  # weight of the costs over their limits in a sample's fitness; 0: blind to costs

    def __post_init__(self) -> None:
        super().__post_init__()
        need(
            self.population >= 4 and self.population % 2 == 0,
            f"population must be an even number of at least 4 (directions come in mirrored pairs), got {self.population}",
        )
        need(self.sigma > 0, f"sigma must be positive, got {self.sigma}")
        need(self.l2 >= 0 and self.penalty >= 0, "l2 and penalty must not be negative")
        need(
            self.sigma_of in ("direction", "coordinate"),
            f"sigma_of must be direction or coordinate, got {self.sigma_of!r}",
        )
        need(
            self.member_episodes >= 1 and self.metric_episodes >= 1,
            "member_episodes and metric_episodes must be positive",
        )

    def deviation(self, n: int) -> float:
        """The standard deviation of each coordinate of an isotropic sample.

        >>> PopulationSettings(sigma=1.0).deviation(100), PopulationSettings(sigma_of="coordinate").deviation(100)
        (0.1, 1.0)
        """
        return self.sigma / math.sqrt(n) if self.sigma_of == "direction" else self.sigma

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


def fitness(problem: Problem, settings: PopulationSettings, y: Array) -> Array:
    """What to minimise: -return, and the penalty for mean costs over their limits, from outputs y (lambda, episodes, 1 + r)."""
    xp = array_namespace(y)
    y = xp.mean(y, axis=1)
    over = xp.clip(y[:, 1 : 1 + len(problem.cost_names)], 0.0, None)
    return y[:, 0] + settings.penalty * xp.sum(over, axis=1)


# -- on the device -----------------------------------------------------------------------------------------------------


def program(
    evolution: Evolution, task: Task, policy: Policy, problem: Problem, settings: PopulationSettings
) -> Program:
    """An evolution strategy on this task."""
    begin = jax.jit(partial(evolution.begin, settings))
    return Program(
        lambda key: begin(*start.first(task, policy, problem, settings, key)),
        partial(step, evolution, task, policy, problem, settings),
        settings.shares,
        lambda key: begin(*start.blank(policy)),
    )


def step(
    evolution: Evolution,
    task: Task,
    policy: Policy,
    problem: Problem,
    settings: PopulationSettings,
    state: Any,
    key: Array,
) -> tuple[Any, dict[str, Any]]:
    """One iteration."""
    z_key, play_key = jax.random.split(jax.random.fold_in(key, state.k))
    strategy, n = evolution.search(settings)(), state.x.size
    z = jax.random.normal(z_key, (settings.population // 2, strategy.normals(n)))
    directions = mirrored(strategy.directions(evolution.basis(state), z))
    used = evolution.used(settings, state)
    points = state.x + evolution.scale(settings, n) * directions
    played = play(task, policy, problem, settings, state.x, state.normalizer, points, used, play_key)
    after, own = evolution.conclude(policy, settings, state, directions, used, played.f, played.seen)
    return after, played.metrics | own


class Played(NamedTuple):
    """What a population's episodes say."""

    f: Array  # (lambda,) what to minimise
    seen: Seen  # for the normalisation
    metrics: dict[str, Any]


def play(
    task: Task,
    policy: Policy,
    problem: Problem,
    settings: PopulationSettings,
    x: Array,
    normalizer: Normalizer,
    points: Array,
    used: Array,
    key: Array,
) -> Played:
    """Judge every row of `points`, and x on fresh episodes for the metrics. Rows that are not `used` (lambda,) leave no trace."""
    member_key, own_key = jax.random.split(key)
    lam, repeats, looks = settings.population, settings.member_episodes, settings.metric_episodes
    paired = settings.common_random_numbers
    member_keys = jax.random.split(member_key, (lam // 2 if paired else lam) * repeats)
    member_keys = jnp.concatenate([member_keys, member_keys]) if paired else member_keys
    keys = jax.random.split(own_key, looks)

    mine = my_share(jnp.repeat(points, repeats, axis=0).T)
    mask = my_share(jnp.repeat(used, repeats))
    episodes = mine.shape[1]
    columns = jnp.concatenate([mine, my_share(jnp.broadcast_to(x[:, None], (x.size, looks)))], axis=1)
    run = partial(rollout, task, policy, normalizer=normalizer, discount=settings.discount)
    both, trajectory = run(columns, keys=jnp.concatenate([my_share(member_keys), my_share(keys)]), record=True)
    members = gathered(jax.tree.map(lambda a: a[..., :episodes], both))
    own = gathered(jax.tree.map(lambda a: a[..., episodes:], both))
    assert trajectory is not None
    trajectory = jax.tree.map(
        lambda a: jnp.where(mask, a[..., :episodes], jnp.zeros_like(a[..., :episodes])), trajectory
    )

    samples = problem.outputs(own)
    steps = (members.length * jnp.repeat(used, repeats)).sum() + own.length.sum()
    return Played(
        fitness(problem, settings, problem.outputs(members).reshape(lam, repeats, -1)),
        Seen(*summed(observed(trajectory, normalizer.mean))),
        described(x, normalizer, own, samples, steps),
    )


# -- on workers --------------------------------------------------------------------------------------------------------


class PopulationDriver:
    """An evolution strategy whose episodes are played by workers."""

    def __init__(self, evolution: Evolution, crew: Crew, problem: Problem, settings: PopulationSettings):
        configure()
        self.evolution, self.crew, self.problem, self.settings = evolution, crew, problem, settings
        self.strategy = evolution.search(settings)()
        self._begin = jax.jit(partial(evolution.begin, settings))
        self._conclude = jax.jit(partial(evolution.conclude, crew.policy, settings))

    def blank(self, x: np.ndarray, normalizer: Normalizer) -> Any:
        """Any state around x."""
        return jax.tree.map(np.asarray, self._begin(x, normalizer))

    def first(self, seed: int) -> Any:
        """The state before the first iteration."""
        return self.blank(*self.crew.first(start.as_pcces(self.settings), seed))

    def step(self, seed: int, state: Any) -> tuple[Any, dict[str, Any]]:
        """One iteration."""
        s, k, x, crew = self.settings, int(state.k), state.x, self.crew
        half, basis = s.population // 2, self.evolution.basis(state)
        width = self.strategy.normals(x.size)
        z = np.stack([member_normals(seed, k, row, width) for row in range(half)])
        directions = mirrored(self.strategy.directions(basis, z))
        used = np.asarray(self.evolution.used(s, state))
        rng = episode_seeds(seed, k)
        seeds = rng.integers(2**31, size=(half, s.member_episodes))
        mirror_seeds = seeds if s.common_random_numbers else rng.integers(2**31, size=seeds.shape)
        own_seeds = rng.integers(2**31, size=s.metric_episodes)

        crew.share_population(x, state.normalizer, seed, k, self.evolution.scale(s, x.size), without_archive(basis))
        pairs = int(used.sum()) // 2  # the first ones, and their mirror images
        sampled, mine = crew.play_groups(
            [
                (members(seeds[:pairs], mirror_seeds[:pairs]), "observations"),
                ([Episode(-1, 1, int(e)) for e in own_seeds], None),
            ]
        )
        f = np.zeros(s.population, np.float32)
        f[used] = finite(fitness(self.problem, s, crew.outputs(sampled).reshape(2 * pairs, s.member_episodes, -1)))
        after, own = jax.tree.map(np.asarray, self._conclude(state, directions, used, f, crew.seen(sampled.lesson)))
        metrics = crew.described(x, state.normalizer, mine, crew.outputs(mine), [sampled, mine])
        return after, metrics | own


def without_archive(basis: Any) -> Any:
    """What workers need of a search distribution's state: not the gradients its basis came from."""
    return basis._replace(archive=basis.archive[:0]) if "archive" in basis._fields else basis


def finite(f: np.ndarray) -> np.ndarray:
    """f with the worst value there is for samples whose episodes failed.

    >>> finite(np.array([1.0, np.inf, 3.0]))
    array([1., 3., 3.])
    """
    good = np.isfinite(f)
    return np.where(good, f, f[good].max() if good.any() else np.zeros_like(f[0]))
