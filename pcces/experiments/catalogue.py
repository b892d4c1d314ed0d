"""Every experiment of the paper as data: which arms, how many seeds, and what the paper reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pcces.experiments.arms import Arm

GYM = ("CartPole-v0", "Acrobot-v1", "Pendulum-v1", "MountainCarContinuous-v0", "MountainCar-v0")
BULLET = (
    "InvertedPendulumBulletEnv-v0",
    "InvertedDoublePendulumBulletEnv-v0",
    "HopperBulletEnv-v0",
    "Walker2DBulletEnv-v0",
    "AntBulletEnv-v0",
)
SAFE = {"CartSafe-v0": 30.0, "MountainCarContinuousSafe-v0": 10.0}
NAVIGATION = {"PointGoal1-v0": 25.0, "PointButton1-v0": 25.0, "CarGoal1-v0": 25.0}
THRESHOLDS = {"CartSafe-v0": (15.0, 20.0, 35.0), "MountainCarContinuousSafe-v0": (5.0, 15.0, 20.0)}
POPULATIONS = (40, 80, 240)
LARGE = {"hidden": (64, 64)}
SAFE_RIVALS = ("cpo", "rcpo", "ppo-lag")
# On the mountain car, the others start from the best of 64: a policy that never saw the flag learns to stand still.
SEES_THE_FLAG = {"initial_tries": 64, "last_layer": 2.0}


@dataclass(frozen=True)
class Reported:
    """A number of the paper: mean and standard deviation over seeds."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper."""

    name: str
    title: str
    where: str  # in the paper
    claim: str  # what the paper says it shows
    arms: Sequence[Arm]
    seeds: int = 10
    reported: dict[str, dict[str, Reported]] = field(default_factory=dict)  # by the arm's key: return, cost

    def tasks(self) -> list[str]:
        """In the order of the arms."""
        return list(dict.fromkeys(arm.task for arm in self.arms))


SCALES = ("paper", "quick")
QUICK_SEEDS, QUICK_ITERATIONS, QUICK_EPISODES = 2, 30, 5  # a simulator's iterations are slow


def scaled(experiment: Experiment, scale: str, seeds: int | None, iterations: int | None) -> Experiment:
    """The experiment at another scale: `quick` has few seeds, few iterations and one population.

    >>> quick = scaled(EXPERIMENTS["entropy"], "quick", None, None)
    >>> quick.seeds, {arm.population for arm in quick.arms}
    (2, {40, 120})
    """
    if scale not in SCALES:
        raise ValueError(f"unknown scale {scale!r}; there are {', '.join(SCALES)}")
    arms, count = list(experiment.arms), experiment.seeds
    if scale == "quick":
        count = min(QUICK_SEEDS, count)
        arms = [
            replace(arm, iterations=QUICK_EPISODES if arm.task in (*BULLET, *NAVIGATION) else QUICK_ITERATIONS)
            for arm in arms
            if arm.population in (None, POPULATIONS[0], 120)
        ]
    if iterations is not None:
        arms = [replace(arm, iterations=iterations) for arm in arms]
    return replace(experiment, arms=arms, seeds=count if seeds is None else seeds)


def both_presets(task: str, **given: Any) -> list[Arm]:
    """PCCES as we tuned it, and as the paper's Table 4 reads."""
    return [Arm(task, preset=preset, **given) for preset in ("default", "paper")]


def _entropy() -> Experiment:
    small = [
        arm
        for task in GYM
        for population in POPULATIONS
        for arm in (
            *both_presets(task, population=population),
            *(Arm(task, algorithm, population=population) for algorithm in ("openes", "asebo")),
        )
    ]
    large = [
        Arm(task, algorithm, population=120, iterations=1000, settings=LARGE)
        for task in BULLET
        for algorithm in ("pcces", "openes", "asebo")
    ]
    return Experiment(
        "entropy",
        "Return under entropy constraints, beside OpenES and ASEBO",
        "Figure 1, and the appendix's curves at 40, 80 and 240 samples",
        "PCCES consistently achieves higher returns than OpenES and ASEBO.",
        small + large,
    )


def _safe() -> Experiment:
    small = [
        arm
        for task, threshold in SAFE.items()
        for arm in (
            *both_presets(task, threshold=threshold),
            *(
                Arm(task, algorithm, threshold=threshold, settings=SEES_THE_FLAG if "Mountain" in task else {})
                for algorithm in SAFE_RIVALS
            ),
        )
    ]
    large = [
        Arm(task, algorithm, iterations=500, threshold=threshold, settings=LARGE)
        for task, threshold in NAVIGATION.items()
        for algorithm in ("pcces", *SAFE_RIVALS)
    ]
    return Experiment(
        "safe",
        "Return under cost constraints, beside CPO, RCPO and PPO-Lagrangian",
        "Figure 2",
        "PCCES consistently returns a feasible policy; the others are over the threshold during training, and at its end.",
        small + large,
    )


def _threshold() -> Experiment:
    arms = [Arm(task, threshold=limit) for task, limits in THRESHOLDS.items() for limit in limits]
    paper = {
        ("MountainCarContinuousSafe-v0", 5.0): ((94.9, 0.4), (2.9, 1.1)),
        ("MountainCarContinuousSafe-v0", 15.0): ((95.1, 0.46), (3.8, 1.2)),
        ("MountainCarContinuousSafe-v0", 20.0): ((94.6, 0.4), (3.1, 2.09)),
        ("CartSafe-v0", 15.0): ((227.1, 17.9), (7.8, 6.43)),
        ("CartSafe-v0", 20.0): ((213.3, 10.3), (7.1, 7.2)),
        ("CartSafe-v0", 35.0): ((229.7, 18.5), (14.1, 13.8)),
    }
    reported = {
        arm.key: {"return": Reported(*paper[at][0]), "cost": Reported(*paper[at][1])}
        for arm in arms
        if (at := (arm.task, arm.threshold or 0.0)) in paper
    }
    return Experiment(
        "threshold",
        "Sensitivity to the threshold",
        "Appendix, table of thresholds (5 seeds)",
        "The algorithm is not very sensitive to the choice of threshold.",
        arms,
        reported=reported,
    )


def _mu() -> Experiment:
    on_device = [Arm(task, population=40, settings={"mu": mu}) for task in GYM for mu in (0.0, 1e-4, 2e-4, 1e-1)]
    ant = [Arm("AntBulletEnv-v0", population=120, iterations=1000, settings=LARGE | {"mu": mu}) for mu in (0.0, 1e-4)]
    return Experiment(
        "mu",
        "Sensitivity to mu, the weight of the entropy",
        "Appendix, section on mu",
        "Small changes of mu have no significant effect, large ones a substantial one; mu > 0 beats mu = 0 on Ant.",
        on_device + ant,
        seeds=5,
    )


EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in (_entropy(), _safe(), _threshold(), _mu())}
