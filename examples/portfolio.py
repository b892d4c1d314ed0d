"""A portfolio with a limit on its CVaR: the highest mean return, with a mean loss of at most 15 % in the worst tenth of the years.

Returns have heavy tails and fall together in a crisis. One evaluation is one simulated year. The mean return is known; the tail is
not, and is what the certificate is about.

    python examples/portfolio.py
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import LinearConstraint

import pcces

ASSETS = ("bonds", "gold", "Europe", "America", "start-ups")
MEAN = np.array([0.15, 0.25, 0.6, 0.75, 1.4])  # percent a month
RISK = np.array([0.8, 3.5, 4.0, 4.2, 9.0])
CRISIS = np.array([0.2, 1.0, -8.0, -7.0, -18.0])  # percent, in one month of thirty
EXPECTED = 12 * (MEAN + CRISIS / 30)


def year(rng):
    """The assets' returns in a year, in percent."""
    market, own = rng.standard_t(5, (12, 1)), rng.standard_normal((12, 5))
    months = MEAN + RISK * (0.6 * np.array([0, 0.1, 1, 1, 1]) * market + 0.8 * own)
    return (months + (rng.random((12, 1)) < 1 / 30) * CRISIS).sum(0)


def portfolio(shares, rng):
    return -shares @ EXPECTED, -shares @ year(rng)  # what is minimised, and the loss that is limited


def solve(max_evaluations=5000):
    return pcces.minimize(
        portfolio,
        x0=[0.6, 0.1, 0.1, 0.1, 0.1],
        bounds=[(0, 1)] * 5,
        constraints=LinearConstraint(np.ones(5), ub=1.0),  # what is not invested stays as cash
        limits=[pcces.limits.CVaR(0.1, at_most=15.0)],
        max_evaluations=max_evaluations,
        common_random_numbers=True,
        rng=0,
    )


def main() -> int:
    res = solve()
    print(", ".join(f"{100 * share:.0f} % {asset}" for share, asset in zip(res.x, ASSETS)))
    print(res.message)
    Path("out").mkdir(exist_ok=True)
    res.plot(Path("out") / "portfolio.png")
    rng = np.random.default_rng(10**6)
    losses = np.array([-(res.x @ year(rng)) for _ in range(50_000)])
    tail = pcces.limits.CVaR(0.1).estimate(losses)
    print(f"check on 50 000 further years: {-losses.mean():.2f} % a year, CVaR {tail:.2f} %; see out/portfolio.png")
    return 0 if res.success else 1


if __name__ == "__main__":
    sys.exit(main())
