"""What OpenES and ASEBO share: a population of policies is played beside the policy the iteration starts from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pcces.baselines.settings import Common, need
from pcces.engines.device import gathered, my_share, summed
from pcces.envs.task import Task
from pcces.rl.iteration import Seen
from pcces.rl.normalizer import Normalizer
from pcces.rl.on_device import described, observed
from pcces.rl.policy import Policy
from pcces.rl.problem import Problem
from pcces.rl.rollout import rollout

Array = Any


@dataclass(frozen=True)
class PopulationSettings(Common):
    """What an evolution strategy's population is, and how it is judged."""

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


class Played(NamedTuple):
    """What a population's episodes say."""

    f: Array  # (lambda,) what to minimise: -return, and the penalty for costs over their limits
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

    y = problem.outputs(members).reshape(lam, repeats, -1).mean(1)
    over = jnp.clip(y[:, 1 : 1 + len(problem.cost_names)], 0)
    samples = problem.outputs(own)
    steps = (members.length * jnp.repeat(used, repeats)).sum() + own.length.sum()
    return Played(
        y[:, 0] + settings.penalty * over.sum(1),
        Seen(*summed(observed(trajectory))),
        described(x, normalizer, own, samples, steps),
    )
