"""What the experiments have in common: tasks, limits and sizes; and how they are made smaller for a quick study."""

from __future__ import annotations

from dataclasses import replace

from pcces.studies.arms import Arm
from pcces.studies.experiment import Experiment

GYM = ("CartPole-v0", "CartPole-v1", "Acrobot-v1", "Pendulum-v1", "MountainCarContinuous-v0", "MountainCar-v0")
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
# The presets that follow the paper, and how a remark about them begins.
OF_THE_PAPER = {
    "paper": "With the paper's method as we read it (paper preset)",
    "paper-literal": "With the paper's Table 4 to the letter (paper-literal preset)",
}
SAFE_RIVALS = ("cpo", "rcpo", "ppo-lag")  # those that know of costs, which the paper compares with

SCALES = ("paper", "quick")
QUICK_SEEDS, QUICK_ITERATIONS, QUICK_TEST = 2, 30, 50
SLOW_ITERATIONS, SLOW_TEST = 2, 4  # of simulators, whose episodes are slow
QUICK_EPOCH = {"epoch_steps": 5_000}
TOO_SLOW = (
    "Walker2DBulletEnv-v0",
    "AntBulletEnv-v0",
    "PointButton1-v0",
    "CarGoal1-v0",
)  # left out where there are others


def scaled(experiment: Experiment, scale: str, seeds: int | None, iterations: int | None) -> Experiment:
    """The experiment at another scale: `quick` has few seeds, few iterations, one population and short tests.

    >>> from pcces.studies.catalogue import EXPERIMENTS
    >>> quick = scaled(EXPERIMENTS["entropy"], "quick", None, None)
    >>> quick.seeds, sorted({arm.population for arm in quick.arms if arm.algorithm == "openes"})
    (2, [40, 120])
    """
    if scale not in SCALES:
        raise ValueError(f"unknown scale {scale!r}; there are {', '.join(SCALES)}")
    whole, count = list(experiment.arms), experiment.seeds
    if scale == "quick":
        count = min(QUICK_SEEDS, count)
        whole = [arm for arm in whole if arm.population not in POPULATIONS[1:]]
        whole = [arm for arm in whole if arm.task not in TOO_SLOW] or whole
    arms = [quick(arm) if scale == "quick" else arm for arm in whole]
    if iterations is not None:
        arms = [replace(arm, iterations=min(iterations, of.iterations)) for arm, of in zip(arms, whole)]
    said = experiment.reported  # of the whole arms; it stands beside the smaller ones as well
    reported = {arm.key: said[of.key] for arm, of in zip(arms, whole) if of.key in said}
    return replace(
        experiment, arms=arms, seeds=count if seeds is None else min(seeds, experiment.seeds), reported=reported
    )


def quick(arm: Arm) -> Arm:
    """What stands for an arm in a quick study.

    >>> arm = quick(Arm("CartSafe-v0"))
    >>> arm.iterations, arm.certify_episodes
    (30, 50)
    """
    if arm.task in (*BULLET, *NAVIGATION):
        if arm.ours or arm.algorithm in SAFE_RIVALS:
            arm = replace(arm, settings=arm.settings | QUICK_EPOCH)
        return replace(arm, iterations=SLOW_ITERATIONS, certify_episodes=SLOW_TEST)
    return replace(arm, iterations=QUICK_ITERATIONS, certify_episodes=QUICK_TEST)
