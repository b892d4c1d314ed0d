"""Results of experiments, made up."""

from pcces.studies import claims
from pcces.studies.arms import NAMES
from pcces.studies.catalogue import EXPERIMENTS
from pcces.studies.experiment import Experiment
from pcces.studies.store import Store

WHERE = {"device": "cpu", "cores": 2, "machine": "x", "versions": {"jax": "1.2.3"}}


def record(seed, value, cost=None, certified=True, **more):
    """What a run leaves, made up."""
    curve = {"return": [0.0, value], "entropy": [9.0, 1.0], "success": [0.0, 0.5], "sigma": [0.3, 0.1]}
    curve |= {"iteration": [0, 1], "steps": [10, 20]}
    costs = [] if cost is None else [cost]
    if costs:
        curve["cost_c"] = [cost + 1, cost]
    return {
        "seed": seed, "return": value, "costs": costs, "entropy": 1.0, "length": 5.0, "episodes": 10,
        "certified": certified, "upper_bounds": [], "thresholds": [30.0] * len(costs), "entropy_bounds": [None, None],
        "over": 0.25 if costs else None, "steps": 2e6, "seconds": 36.0, "curve": curve, **more,
    }  # fmt: skip


def experiment(*arms, judge=claims.nowhere_lower, **more):
    return Experiment("name", "A title", "Figure 2", "a claim.", arms, judge, **{"seeds": 3} | more)


def study(folder, first_seed=0, seeds=3, **returns):
    """Some seeds of PCCES and of others on CartPole-v0, with these mean returns."""
    store = Store(folder)
    arms = {(arm.algorithm, arm.preset): arm for arm in EXPERIMENTS["entropy"].arms if arm.task == "CartPole-v0"}
    for name, mean in returns.items():
        algorithm, _, preset = name.partition("_")
        arm = arms[algorithm, preset.replace("_", "-") or "default"]
        store.add(arm, [record(first_seed + i, mean + i) for i in range(seeds)], WHERE)
    return store


def about(store):
    """An experiment of all arms there are."""
    return experiment(*sorted(store.arms(), key=lambda arm: (list(NAMES).index(arm.algorithm), arm.preset)))
