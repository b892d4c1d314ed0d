"""Training that begins with the policy of another run (`init=`): a warm start, another threshold, fine-tuning."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pcces.envs.task import Continuous
from pcces.rl.first import First, KeptCritics
from pcces.rl.folder import critics_in, load
from pcces.rl.normalizer import Normalizer, carry_over, counted
from pcces.rl.policy import Policy
from pcces.rl.run import Run
from pcces.support import files as storage

NAME = "init.npz"
ALIKE = 1e-5  # by which the ends of two boxes may differ: some simulators have them in 32 bits


@dataclass(frozen=True)
class Beginning:
    """The policy of a finished run, as another training begins with it."""

    whose: str
    shape: Policy
    first: First
    discount: float | None

    @classmethod
    def of(cls, init: Any) -> Beginning:
        """From a run, or from the folder of one.

        >>> Beginning.of(3)
        Traceback (most recent call last):
        ...
        TypeError: init must be a finished run or the folder of one, got 3
        """
        if isinstance(init, str | Path):
            path = Path(init)
            if inside := sorted(file.parent.name for file in path.glob("seed-*/config.json")):
                raise ValueError(f"{path} has several seeds: init takes one of them, such as {path / inside[0]}")
            init = load(path)
        if not isinstance(init, Run):
            raise TypeError(f"init must be a finished run or the folder of one, got {init!r}")
        x, normalizer = init.trained()
        settings = init.config["settings"]
        if not float(normalizer.count) and settings.get("normalise", True):
            normalizer = counted(normalizer, [0.0, *init.metrics.get("steps", ())][-1])
        normalizer = Normalizer(*(np.asarray(part, np.float32) for part in normalizer))
        whose = str(init.path) if init.path else "{algorithm} on {task}, seed {seed}".format(**init.config)
        first = First(np.asarray(x, np.float32), normalizer, init.critics)
        return cls(whose, init.shape, first, settings.get("discount"))

    def check(self, shape: Policy) -> None:
        """Check that policies of this shape can begin with it. The error says what differs."""
        mine = self.shape
        for what, there, here in (
            ("observations", mine.observation_size, shape.observation_size),
            ("actions", mine.actions, shape.actions),
            ("hidden layers", mine.hidden, shape.hidden),
        ):
            if not alike(there, here):
                advice = ": leave hidden out" if what == "hidden layers" else ""
                raise ValueError(f"init ({self.whose}) has the {what} {there}, but this training has {here}{advice}")

    def to_dict(self) -> dict[str, str]:
        """For a run's config.json: whose policy it is, and which."""
        parts = (self.first.x, self.first.normalizer.mean, self.first.normalizer.std)
        digest = hashlib.sha256(b"".join(np.asarray(part, np.float32).tobytes() for part in parts))
        return {"from": self.whose, "policy": digest.hexdigest()[:16]}

    def arrays(self, discount: float) -> First:
        """What an algorithm with this discount starts from: critics of another one would say something else."""
        return self.first if discount == self.discount else self.first._replace(critics=None)


def alike(there: Any, here: Any) -> bool:
    """Whether sizes or action spaces are the same.

    >>> alike(Continuous(-0.4, 0.4), Continuous(-0.4, 0.4000000059604645)), alike(2, 3)
    (True, False)
    """
    if isinstance(there, Continuous) and isinstance(here, Continuous) and there.size == here.size:
        return all(np.allclose(a, b, rtol=ALIKE, atol=ALIKE) for a, b in zip(there.ends, here.ends))
    return bool(there == here)


def keep(path: Path, first: First) -> None:
    """Write what a run begins with into its folder, so that it can go on without the other run."""
    arrays = {"x": first.x, **first.normalizer._asdict()}
    if first.critics is not None:
        arrays |= first.critics.named()
    storage.save(path / NAME, "beginning", {name: np.asarray(values) for name, values in arrays.items()}, {})


def kept(path: Path, shape: Policy) -> First | None:
    """What `keep` wrote for policies of this shape, if there is anything."""
    file = path / NAME
    if not file.exists():
        return None
    arrays, _ = storage.load(file, "beginning")
    sizes = {"x": (shape.size,), "count": ()} | dict.fromkeys(
        ("average", "spread", "mean", "std"), (shape.observation_size,)
    )
    for name, size in sizes.items():
        array = arrays.get(name)
        if array is None or array.shape != size or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"{file} is damaged: {name} must be finite numbers of the shape {size}")
    normalizer = Normalizer(*(arrays[name] for name in Normalizer._fields))
    return First(arrays["x"], normalizer, critics_in(arrays, file))


def critics_of(state: Any, i: int, settings: Any, policy_sees: Normalizer, signals: int) -> KeptCritics | None:
    """The critics of run i in the states at the end of a training, under the normalisation of the policy that is returned.

    `signals`: the reward and the costs.
    """
    critics = getattr(state, "critics", None)
    if critics is None:
        return None
    from pcces.rl.critics import network  # with JAX behind it, which such an algorithm has anyway

    net = network(policy_sees.mean.shape[0], signals, settings)
    had = Normalizer(*(np.asarray(part[i]) for part in state.normalizer))
    weights = np.stack([carry_over(net, np.asarray(row), had, policy_sees) for row in critics.weights[i]])
    return KeptCritics(weights.astype(np.float32), np.asarray(critics.mean[i]), np.asarray(critics.std[i]))
