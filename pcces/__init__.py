"""Optimise a noisy objective under hard constraints, and get an answer whose feasibility is certified."""

import sys as _sys

# Whoever has imported Gymnasium may ask it for pcces/CartSafe-v0. For everyone else that would cost 0.2 s.
if "gymnasium" in _sys.modules:
    from pcces import envs as envs
