"""The algorithms PCCES is compared with, one file each to be read beside its paper.

    run = pcces.train("CartSafe-v0", algorithm="ppo-lag")

What evolution strategies share is in `population`, what the others share in `on_policy`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pcces.baselines import asebo, cpo, on_policy, openes, population, ppo_lagrangian, rcpo
from pcces.baselines.on_policy import OnPolicy
from pcces.baselines.population import Evolution
from pcces.rl.algorithm import Algorithm
from pcces.rl.settings import CALM


def _evolution(name: str, evolution: Evolution, defaults: Any) -> Algorithm:
    return Algorithm(name, {"default": defaults}, partial(population.program, evolution), evolution.search, slow=CALM)


def _on_policy(name: str, method: OnPolicy, defaults: Any) -> Algorithm:
    program = partial(on_policy.program, method)
    return Algorithm(name, {"default": defaults}, program, lambda settings: None, only_means=True)


BASELINES = {
    algorithm.name: algorithm
    for algorithm in (
        _evolution("openes", openes.EVOLUTION, openes.OpenESSettings()),
        _evolution("asebo", asebo.EVOLUTION, asebo.ASEBOSettings()),
        _on_policy("ppo-lag", ppo_lagrangian.METHOD, ppo_lagrangian.PPOLagrangianSettings()),
        _on_policy("rcpo", rcpo.METHOD, rcpo.RCPOSettings()),
        _on_policy("cpo", cpo.METHOD, cpo.CPOSettings()),
    )
}
