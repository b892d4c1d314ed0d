"""The algorithms PCCES is compared with, one file each to be read beside its paper, as programs of the device engine.

    from pcces.baselines import ALGORITHMS
    settings_class, program = ALGORITHMS["ppo-lag"]

`program(task, policy, problem, settings)` is run by `pcces.engines.device.DeviceEngine`, as PCCES is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pcces.baselines import asebo, cpo, openes, ppo_lagrangian, rcpo
from pcces.baselines.settings import Common


class Algorithm(NamedTuple):
    """Settings and the program they make."""

    settings: type[Common]
    program: Callable[..., Any]


ALGORITHMS: dict[str, Algorithm] = {
    "openes": Algorithm(openes.OpenESSettings, openes.program),
    "asebo": Algorithm(asebo.ASEBOSettings, asebo.program),
    "ppo-lag": Algorithm(ppo_lagrangian.PPOLagrangianSettings, ppo_lagrangian.program),
    "rcpo": Algorithm(rcpo.RCPOSettings, rcpo.program),
    "cpo": Algorithm(cpo.CPOSettings, cpo.program),
}
