"""A chemical reactor: the cheapest way to make a product of which at least 90 % is pure, with simulations that fail at random.

The solver does not converge in about one simulation of twelve, wherever it is. Such a run says nothing of its point: it is a
missing value. The certificate says how often they occur.

    python examples/reactor.py
"""

import sys
from pathlib import Path

import numpy as np

import pcces

FUELS = {"gas": 1.0, "steam": 0.8}


def simulate(x, rng):
    """Cost of a kilogram and the purity of the product, in one simulation."""
    heat = x["temperature"] * (1.0 if x["heating"] == "gas" else 0.96) + 3 * rng.standard_normal()
    rate, decay = 2e6 * np.exp(-6000 / (heat + 273)), 4e10 * np.exp(-11500 / (heat + 273))
    stay = 10 / x["flow"] * (1 + 0.02 * rng.standard_normal())  # minutes, spread over the stages in a row
    reactant, product = 1.0, 0.0
    for _ in range(x["stages"]):
        step = stay / x["stages"]
        reactant, before = reactant / (1 + rate * step), reactant
        product = (product + before - reactant) / (1 + decay * step)
    made = max(product * x["flow"], 1e-3)
    cost = (
        FUELS[x["heating"]] * 0.004 * (x["temperature"] - 20) * x["flow"] + 0.08 * x["stages"] + 0.3 * x["flow"] + 0.3
    ) / made
    return cost, product / (product + reactant + (1 - product - reactant) * 0.5)


def reactor(x, rng):
    if rng.random() < 0.08:
        raise RuntimeError("the solver did not converge")
    cost, purity = simulate(x, rng)
    return cost, {"impure": 0.9 - purity}


def solve(max_evaluations=600):
    return pcces.minimize(
        reactor,
        x0={"temperature": 100.0, "flow": 0.3, "stages": 3, "heating": "gas"},
        bounds={
            "temperature": (60, 200),
            "flow": pcces.Log(0.05, 5),
            "stages": pcces.Integer(1, 6),
            "heating": pcces.Choice("gas", "steam"),
        },
        failures="missing",
        max_evaluations=max_evaluations,
        common_random_numbers=True,
        rng=0,
    )


def main() -> int:
    res = solve()
    print(
        ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in res.x.items()),
        f"cost {res.fun:.3f}",
    )
    print(res.message)
    Path("out").mkdir(exist_ok=True)
    res.plot(Path("out") / "reactor.png")
    cost, purity = np.mean(
        [simulate(res.x, np.random.default_rng(seed)) for seed in range(10**6, 10**6 + 2000)], axis=0
    )
    print(f"check on 2000 further runs: cost {cost:.3f}, purity {100 * purity:.2f} %; see out/reactor.png")
    return 0 if res.success else 1


if __name__ == "__main__":
    sys.exit(main())
