"""A sampler for Optuna, for people whose study is already there: `PccesSampler`, and `certified` for its best trial.

Needs the extra `optuna`. A front door of its own: it stands on `pcces.Optimizer`.
"""

from __future__ import annotations

try:
    import optuna as _optuna  # noqa: F401
except ImportError as error:
    raise ImportError("the sampler for Optuna needs the extra optuna: pip install 'pcces[optuna]'") from error

from pcces.integrations.optuna.certified import CertifiedTrial, certified
from pcces.integrations.optuna.sampler import PccesSampler

__all__ = ["CertifiedTrial", "PccesSampler", "certified"]
