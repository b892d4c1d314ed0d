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
from pcces.rl.algorithms import Algorithm
from pcces.rl.settings import CALM


def _evolution(name: str, evolution: Evolution, defaults: Any) -> Algorithm:
    program, driver = partial(population.program, evolution), partial(population.PopulationDriver, evolution)
    return Algorithm(name, {"default": defaults}, program, evolution.search, driver, slow=CALM)


def _on_policy(name: str, method: OnPolicy, defaults: Any) -> Algorithm:
    program, driver = partial(on_policy.program, method), partial(on_policy.OnPolicyDriver, method)
    return Algorithm(name, {"default": defaults}, program, lambda settings: None, driver)


ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        _evolution("openes", openes.EVOLUTION, openes.OpenESSettings()),
        _evolution("asebo", asebo.EVOLUTION, asebo.ASEBOSettings()),
        _on_policy("ppo-lag", ppo_lagrangian.METHOD, ppo_lagrangian.PPOLagrangianSettings()),
        _on_policy("rcpo", rcpo.METHOD, rcpo.RCPOSettings()),
        _on_policy("cpo", cpo.METHOD, cpo.CPOSettings()),
    )
}
