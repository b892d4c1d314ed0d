"""What a limit is on: `Mean`, `Probability`, `Quantile` or `CVaR`; one vocabulary for `minimize`, `train` and the command line.

>>> import numpy as np, pcces
>>> rng = np.random.default_rng(0)
>>> res = pcces.minimize(
...     lambda x: ((x[0] - 2) ** 2, x[0] + 0.1 * rng.standard_normal()), [0.0], bounds=[(-2, 2)],
...     max_evaluations=2000, rng=0, limits=[pcces.limits.Probability(above=1.0, at_most=0.05)],
... )
>>> res.certificate.grade, bool(0.7 < res.x[0] <= 1 - 0.164)
('guaranteed', True)
"""

from pcces.core.limits import CVaR, Limit, Mean, Probability, Quantile

__all__ = ["CVaR", "Limit", "Mean", "Probability", "Quantile"]
