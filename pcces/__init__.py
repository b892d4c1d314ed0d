"""Optimise a noisy objective under hard constraints, and get an answer whose feasibility is certified."""

import sys as _sys

from pcces.certificate import Certificate
from pcces.minimize import minimize
from pcces.optimizer import Optimizer
from pcces.options import Options

__all__ = ["Certificate", "Optimizer", "Options", "minimize"]

# Whoever has imported Gymnasium may ask it for pcces/CartSafe-v0. For everyone else that would cost 0.2 s.
if "gymnasium" in _sys.modules:
    from pcces import envs as envs
