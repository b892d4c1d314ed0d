"""Every experiment of the paper as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pcces.studies import claims
from pcces.studies.arms import Arm
from pcces.studies.experiment import Experiment, Headline, Reported
from pcces.studies.protocol import BULLET, GYM, NAVIGATION, OF_THE_PAPER, POPULATIONS, SAFE, SAFE_RIVALS, THRESHOLDS

WIDE = {"hidden": (64, 64)}
FIRST_SEED = 10  # seeds 0 to 9 were seen while the defaults were found, and 1000 and up are for tuning
ES_RIVALS = ("openes", "asebo")
# How many episodes a sample is judged by: 5, and on PyBullet's tasks, where they are slow, 1.
AS_MANY, AS_FEW = {"member_episodes": 5}, {"hidden": (64, 64), "member_episodes": 1}
# On the mountain car, the others start from the best of 64: a policy that never saw the flag learns to stand still.
SEES_THE_FLAG = {"initial_tries": 64, "last_layer": 2.0}


def all_presets(task: str) -> list[Arm]:
    """PCCES as people get it, and as the paper has it."""
    return [Arm(task), *(Arm(task, preset=preset, population=POPULATIONS[0]) for preset in OF_THE_PAPER)]


def _populations(tasks: Sequence[str], populations: Sequence[int]) -> list[Arm]:
    return [
        arm
        for task in tasks
        for arm in (
            Arm(task),
            *(Arm(task, preset=preset, population=n) for n in populations for preset in OF_THE_PAPER),
            *(Arm(task, rival, population=n, settings=AS_MANY) for n in populations for rival in ES_RIVALS),
        )
    ]


def _bullet(task: str, algorithm: str = "pcces") -> Arm:
    if algorithm == "pcces":
        return Arm(task, iterations=1000)
    return Arm(task, algorithm, population=120, iterations=1000, settings=AS_FEW)


def _entropy() -> Experiment:
    large = [_bullet(task, algorithm) for task in BULLET for algorithm in ("pcces", *ES_RIVALS)]
    return Experiment(
        "entropy",
        "Return under entropy constraints, beside OpenES and ASEBO",
        "Figure 1",
        "PCCES always finds a better or equivalent solution, and reaches better returns on a majority of tasks.",
        _populations(GYM, POPULATIONS[:1]) + large,
        claims.higher_on_most,
        keeps=True,
    )


def _samples() -> Experiment:
    return Experiment(
        "samples",
        "The same with 40, 80 and 240 samples an iteration",
        "Figures 3 to 6",
        "With every number of samples, PCCES finds a better or equivalent solution than OpenES.",
        _populations(GYM, POPULATIONS),
        claims.nowhere_lower,
        note="The paper shows PCCES and OpenES on four of these tasks; ASEBO, CartPole-v1 and MountainCar-v0 are ours.",
    )


def _entropy_bounds() -> Experiment:
    small = [arm for task in GYM for arm in all_presets(task)]
    return Experiment(
        "entropy-bounds",
        "Entropy during training, and its bounds",
        "Figure 9",
        "PCCES consistently returns a solution that satisfies the entropy constraints.",
        small + [_bullet(task) for task in BULLET],
        claims.entropy_within_bounds,
        shows=("entropy",),
        note="The runs are those of Figure 1.",
    )


def _safe() -> Experiment:
    small = [
        replace(arm, threshold=threshold)
        for task, threshold in SAFE.items()
        for arm in (
            Arm(task),
            *(Arm(task, preset=preset) for preset in OF_THE_PAPER),
            *(Arm(task, algorithm, settings=_of_rival(task)) for algorithm in SAFE_RIVALS),
            *(Arm(task, algorithm, settings=AS_MANY) for algorithm in ES_RIVALS),
        )
    ]
    large = [
        Arm(task, algorithm, iterations=500, threshold=threshold)
        for task, threshold in NAVIGATION.items()
        for algorithm in ("pcces", *SAFE_RIVALS)
    ]
    return Experiment(
        "safe",
        "Return under cost constraints, beside CPO, RCPO and PPO-Lagrangian",
        "Figure 2",
        "PCCES consistently returns a feasible policy; the others are not below the threshold during the entire training, nor always at its end.",
        small + large,
        claims.feasible_where_others_are_not,
        shows=("return", "cost"),
        keeps=True,
        note=(
            "Every algorithm plays 30 000 steps an iteration, but for OpenES and ASEBO. Only PCCES is held to the paper's limits on the entropy as well."
        ),
    )


def _variance() -> Experiment:
    return Experiment(
        "variance",
        "Variance of estimates against the number of samples",
        "Figures 7 and 8",
        "The assumptions on the accuracy of estimates are met on these tasks: averaging more samples makes them as accurate as needed.",
        [Arm(task, threshold=threshold) for task, threshold in SAFE.items()],
        claims.falls_as_one_over_n,
        shows=("variance",),
        measures=("variance",),
        note="Measured on the policies that PCCES returns with its default settings: the variance between means of N episodes, of the objective f.",
    )


def _threshold() -> Experiment:
    paper = {
        ("MountainCarContinuousSafe-v0", 5.0): ((94.9, 0.4), (2.9, 1.1)),
        ("MountainCarContinuousSafe-v0", 15.0): ((95.1, 0.46), (3.8, 1.2)),
        ("MountainCarContinuousSafe-v0", 20.0): ((94.6, 0.4), (3.1, 2.09)),
        ("CartSafe-v0", 15.0): ((227.1, 17.9), (7.8, 6.43)),
        ("CartSafe-v0", 20.0): ((213.3, 10.3), (7.1, 7.2)),
        ("CartSafe-v0", 35.0): ((229.7, 18.5), (14.1, 13.8)),
    }
    arms = [
        replace(arm, threshold=limit)
        for task, limits in THRESHOLDS.items()
        for limit in limits
        for arm in (Arm(task), *(Arm(task, preset=preset) for preset in OF_THE_PAPER))
    ]
    return Experiment(
        "threshold",
        "Sensitivity to the threshold",
        "Appendix, table of thresholds (5 seeds)",
        "The algorithm is not very sensitive to the choice of threshold.",
        arms,
        claims.as_high_as_reported,
        shows=("return", "cost"),
        reported={arm.key: _both(*paper[arm.task, arm.threshold or 0.0]) for arm in arms},
    )


def _both(returns: tuple[float, float], costs: tuple[float, float]) -> dict[str, Reported]:
    return {"return": Reported(*returns), "cost": Reported(*costs)}


def _marks() -> Experiment:
    ars = {
        "CartPole-v1": 500.0,
        "Acrobot-v1": -82.9,
        "MountainCar-v0": -122.0,
        "MountainCarContinuous-v0": 96.7,
        "Pendulum-v1": -212.5,
    }
    marks = [(Arm("CartPole-v0", iterations=100), 200.0)]
    marks += [(Arm(task), mark) for task, mark in ars.items()]
    return Experiment(
        "marks",
        "Marks from elsewhere",
        "Not in the paper",
        "CartPole-v0 is solved within 100 iterations; the other tasks reach what ARS does, the random search nearest to these algorithms.",
        [arm for arm, _ in marks],
        claims.at_the_mark,
        reported={arm.key: {"return": Reported(mark)} for arm, mark in marks},
        note="The marks of ARS are those of RL Baselines3 Zoo's benchmark, with its own policies and numbers of steps.",
        source="mark",
    )


def _walkers() -> Experiment:
    ppo = {"HopperBulletEnv-v0": 2575.0, "Walker2DBulletEnv-v0": 2110.0, "AntBulletEnv-v0": 2866.0}
    marks = [(Arm(task, iterations=334), mark) for task, mark in ppo.items()]
    return Experiment(
        "walkers",
        "PyBullet's walkers after 10 million steps",
        "Not in the paper",
        "10 million steps take Hopper, Walker2D and Ant to what PPO reaches in a million steps or two.",
        [arm for arm, _ in marks],
        claims.at_the_mark,
        seeds=1,
        reported={arm.key: {"return": Reported(mark)} for arm, mark in marks},
        note="The marks are those of RL Baselines3 Zoo's benchmark.",
        source="mark",
    )


def _of_rival(task: str) -> dict[str, Any]:
    return SEES_THE_FLAG if "Mountain" in task else {}


def _cpo() -> Experiment:
    paper = {
        ("clip", 0.05): ((18.6, 2.6), (70.4, 4.2)),
        ("clip", 0.1): ((19.7, 0.8), (76.1, 5.3)),
        ("clip", 0.2): ((21.4, 1.2), (61.3, 13.1)),
        ("step", 1e-4): ((15.36, 3.1), (75.2, 7.1)),
        ("step", 1e-5): ((17.2, 0.1), (83.2, 6.8)),
        ("step", 3e-5): ((19.2, 1.9), (68.6, 4.1)),
    }

    def arm(knob: str, value: float) -> Arm:
        # Ratios within 1 +- clip are a divergence E[(ratio - 1)^2] / 2 of at most clip^2 / 2.
        setting = {"delta": round(value**2 / 2, 10)} if knob == "clip" else {"critic_rate": value}
        return Arm("PointButton1-v0", "cpo", iterations=300, threshold=25.0, settings=WIDE | setting)

    return Experiment(
        "cpo",
        "CPO with other settings on PointButton1",
        "Appendix, table of CPO (5 seeds)",
        "CPO fails to satisfy the constraint, whatever its clip ratio and step size.",
        [arm(*at) for at in paper],
        claims.over_its_limit,
        seeds=5,
        ends=True,
        shows=("return", "cost"),
        reported={arm(*at).key: _both(*numbers) for at, numbers in paper.items()},
        note=(
            "CPO has neither a clip ratio nor a step size for its policy. The clip ratios 0.05, 0.1 and 0.2 are read as trust regions of"
            " as large a divergence (delta = clip^2 / 2), the step size as that of its critics (critic_rate)."
        ),
    )


def _mu() -> Experiment:
    given: tuple[dict[str, Any], ...] = ({}, {"mu": 1e-4}, {"mu": 2e-4}, {"mu": 1e-1})  # {}: 0, and the run of Figure 1
    on_device = [Arm(task, settings=some) for task in GYM for some in given]
    ant = [Arm("AntBulletEnv-v0", iterations=1000, settings=some) for some in given[:2]]
    return Experiment(
        "mu",
        "Sensitivity to mu, the weight of the entropy",
        "Appendix, section on mu, and Figure 10",
        "Small changes of mu have no significant effect, large ones a substantial one; mu > 0 beats mu = 0 on Ant.",
        on_device + ant,
        claims.small_steps_do_not_matter,
        seeds=5,
    )


EXPERIMENTS: dict[str, Experiment] = {
    e.name: replace(e, first_seed=FIRST_SEED)
    for e in (
        _entropy(),
        _safe(),
        _samples(),
        _variance(),
        _entropy_bounds(),
        _threshold(),
        _cpo(),
        _mu(),
        _marks(),
        _walkers(),
    )
}


HEADLINES = (
    Headline(
        "PCCES finds equal or better returns than OpenES and ASEBO with as many samples.",
        ("entropy", "samples"),
        claims.nowhere_lower,
    ),
    Headline(
        "PCCES returns feasible policies where CPO, RCPO and PPO-Lagrangian do not always, at equal or better return.",
        ("safe",),
        claims.feasible_where_others_are_not,
    ),
)
