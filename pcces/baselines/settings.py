"""What the settings of all baselines have in common."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from pcces.rl.normalizer import Normalizer, Seen, update
from pcces.rl.settings import check_common

Array = Any


@dataclass(frozen=True)
class Common:
    """The policy, its start and its normalisation, as PCCES has them (`pcces.rl.settings`)."""

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
