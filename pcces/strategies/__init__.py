"""Search distributions with their recombinations: one file each."""

from pcces.core.algorithm import mirrored
from pcces.strategies.asebo import asebo
from pcces.strategies.base import Strategy
from pcces.strategies.cma import cma
from pcces.strategies.gaussian import gaussian
from pcces.strategies.guided import guided
from pcces.strategies.shaping import SHAPINGS, pair_spread

__all__ = ["SHAPINGS", "Strategy", "asebo", "cma", "gaussian", "guided", "mirrored", "pair_spread"]
