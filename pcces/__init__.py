"""Optimise a noisy objective under hard constraints, and get an answer whose feasibility is certified."""

from pcces.certificate import Certificate
from pcces.minimize import minimize
from pcces.optimizer import Optimizer
from pcces.options import Options

__all__ = ["Certificate", "Optimizer", "Options", "minimize"]
