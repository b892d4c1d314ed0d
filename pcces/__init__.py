"""Optimise a noisy objective under hard constraints, and get an answer whose feasibility is certified."""

import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pcces.blackbox.evaluator import Evaluator
from pcces.blackbox.optimizer import Optimizer
from pcces.blackbox.options import Options
from pcces.core.certificate import Certificate
from pcces.minimize import minimize

if _TYPE_CHECKING:
    from pcces import envs as envs
    from pcces.policies import train, train_seeds
    from pcces.rl.folder import load

__all__ = ["Certificate", "Evaluator", "Optimizer", "Options", "envs", "load", "minimize", "train", "train_seeds"]

# Whoever has imported Gymnasium may ask it for pcces/CartSafe-v0. For everyone else that would cost 0.2 s.
if "gymnasium" in _sys.modules:
    _importlib.import_module("pcces.envs")


def __getattr__(name: str) -> _Any:
    """Policies and tasks come when first asked for: `import pcces` stays instant."""
    if name == "envs":
        return _importlib.import_module("pcces.envs")
    if name in ("train", "train_seeds"):
        return getattr(_importlib.import_module("pcces.policies"), name)
    if name == "load":
        return _importlib.import_module("pcces.rl.folder").load
    raise AttributeError(f"module 'pcces' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
