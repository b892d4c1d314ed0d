"""The constants of the convergence proof: which ones fit together, how many samples they cost, what they promise.

Theorem 1 (with the corrections listed in docs/explanation/paper.md): estimates that are p-probabilistically eps_f-accurate with
eps_f < kappa / 4 and meet the eps_v-variance condition make Phi_k = nu f(X_k) + (1 - nu) Sigma_k^2 decrease by at least
alpha Sigma_k^2 in expectation, if

    nu / (1 - nu)  >=  8 (gamma^2 - 1) / kappa                               (Lemma 2)
    p / sqrt(1 - p)  >=  4 nu eps_v / ((1 - nu) (1 - gamma^-2))              (Theorem 1)

and then alpha = (1 - nu) p (1 - gamma^-2) / 2. Hence sum Sigma_k^2 < inf and Sigma_k -> 0 (Corollary 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pcces.core.estimation import required_samples

ROUNDING = 1e-9  # kappa is small, so nu is close to 1, and 1 - nu has few digits left


@dataclass(frozen=True)
class Constants:
    """A choice of the theorem's constants; `fits` says whether they satisfy it.

    >>> c = Constants.for_rule(kappa=1.0, gamma=1.1, p=0.99)
    >>> c.fits(), c.samples(variance=1e-4, sigma=0.1) > 1
    (True, True)
    """

    p: float
    nu: float
    kappa: float
    gamma: float
    eps_f: float
    eps_v: float

    @classmethod
    def for_rule(cls, kappa: float, gamma: float, p: float = 0.9) -> Constants:
        """The most lenient constants that fit a given kappa, gamma and p: the smallest nu, the largest eps_f and eps_v."""
        if kappa <= 0 or gamma <= 1 or not 0.5 < p < 1:
            raise ValueError(f"needs kappa > 0, gamma > 1 and 1/2 < p < 1, got kappa={kappa}, gamma={gamma}, p={p}")
        ratio = 8 * (gamma**2 - 1) / kappa
        nu = ratio / (1 + ratio)
        eps_v = (1 - nu) * (1 - gamma**-2) / (4 * nu) * p / math.sqrt(1 - p)
        return cls(p, nu, kappa, gamma, 0.249 * kappa, eps_v)

    def broken(self) -> list[str]:
        """The conditions that do not hold, in words; empty if all do.

        >>> Constants(0.4, 0.5, 1.0, 1.1, 0.1, 1.0).broken()[0]
        'p = 0.4 must lie in (1/2, 1]'
        """
        lines = []
        if not 0.5 < self.p <= 1:
            lines.append(f"p = {self.p:g} must lie in (1/2, 1]")
        if not 0 < self.eps_f < self.kappa / 4:
            lines.append(f"eps_f = {self.eps_f:g} must lie in (0, kappa / 4 = {self.kappa / 4:g})")
        least = 8 * (self.gamma**2 - 1) / self.kappa
        if self.nu / (1 - self.nu) < least * (1 - ROUNDING):
            lines.append(
                f"nu / (1 - nu) = {self.nu / (1 - self.nu):g} must be at least 8 (gamma^2 - 1) / kappa = {least:g}"
            )
        if self.p < 1:
            need = 4 * self.nu * self.eps_v / ((1 - self.nu) * (1 - self.gamma**-2))
            if self.p / math.sqrt(1 - self.p) < need * (1 - ROUNDING):
                lines.append(f"p / sqrt(1 - p) = {self.p / math.sqrt(1 - self.p):g} must be at least {need:g}")
        return lines

    def fits(self) -> bool:
        """Whether Theorem 1 applies."""
        return not self.broken()

    @property
    def alpha(self) -> float:
        """The promised expected decrease of Phi per Sigma_k^2."""
        return 0.5 * (1 - self.nu) * self.p * (1 - self.gamma**-2)

    def samples(self, variance: float, sigma: float) -> int:
        """The N_k these constants ask for at step size sigma."""
        return required_samples(variance, sigma, self.eps_f, self.eps_v, min(self.p, 1 - 1e-12))

    def lyapunov(self, f: np.ndarray, sigma: np.ndarray) -> np.ndarray:
        """The trace of Phi_k along a run whose true f is known.

        >>> Constants(0.9, 0.5, 1.0, 1.1, 0.1, 1.0).lyapunov(np.array([2.0]), np.array([1.0]))
        array([1.5])
        """
        return self.nu * np.asarray(f) + (1 - self.nu) * np.asarray(sigma) ** 2
