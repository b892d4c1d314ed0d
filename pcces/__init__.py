"""Optimise a noisy simulator, or train an RL policy, under limits, and get a statistical certificate that the answer keeps them."""

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pcces.support.imports import after_import as _after_import

if _TYPE_CHECKING:
    from pcces import envs as envs
    from pcces import limits as limits
    from pcces.blackbox.evaluator import Evaluator
    from pcces.blackbox.optimizer import Optimizer
    from pcces.blackbox.options import Options
    from pcces.blackbox.variables import Choice, Integer, Log
    from pcces.core.certificate import Certificate
    from pcces.minimize import minimize
    from pcces.policies import clone, train, train_seeds, tune
    from pcces.rl.folder import load

__all__ = [
    "Certificate",
    "Choice",
    "Evaluator",
    "Integer",
    "Log",
    "Optimizer",
    "Options",
    "clone",
    "envs",
    "limits",
    "load",
    "minimize",
    "train",
    "train_seeds",
    "tune",
]

# Everything comes when it is first asked for: `import pcces` itself takes no time.
_HOMES = {
    "Certificate": "pcces.core.certificate", "Evaluator": "pcces.blackbox.evaluator",
    "Choice": "pcces.blackbox.variables", "Integer": "pcces.blackbox.variables", "Log": "pcces.blackbox.variables",
    "Optimizer": "pcces.blackbox.optimizer", "Options": "pcces.blackbox.options", "load": "pcces.rl.folder",
    "minimize": "pcces.minimize", "clone": "pcces.policies", "train": "pcces.policies", "train_seeds": "pcces.policies", "tune": "pcces.policies",
}  # fmt: skip


def __getattr__(name: str) -> _Any:
    if name in ("envs", "limits"):
        return _import_module(f"pcces.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("pcces")
    if name not in _HOMES:
        raise AttributeError(f"module 'pcces' has no attribute {name!r}")
    value = getattr(_import_module(_HOMES[name]), name)
    setattr(_sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(_ModuleType):
    def __setattr__(self, name: str, value: _Any) -> None:
        """`pcces.minimize` is the function, also when the module of that name is imported."""
        super().__setattr__(name, value.minimize if name == "minimize" and isinstance(value, _ModuleType) else value)


_sys.modules[__name__].__class__ = _Package
# Whoever has imported Gymnasium, before or after this, may ask it for pcces/CartSafe-v0.
_after_import("gymnasium", lambda: _import_module("pcces.envs.gymnasium_ids").register_all())
