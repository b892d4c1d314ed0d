"""Run a warehouse as cheaply as possible, with a fill rate of at least 95 % that is only known through simulation.

A shop orders `quantity` items whenever its stock position falls to `reorder`. Demand is random, deliveries take a random
few days, unmet demand is lost. One evaluation simulates a few months: both the cost and the fill rate are noisy.

    python examples/inventory.py
"""

import sys
from pathlib import Path

import numpy as np

import pcces

DAYS, WARM_UP = 180, 30


def simulate(x, rng):
    """Average daily cost and the fill rate of one simulated half-year under the policy x."""
    reorder, quantity = x["reorder"], x["quantity"]
    demand = rng.poisson(rng.gamma(4.0, 5.0, DAYS))  # 20 items a day on average, in waves
    lead_time = rng.integers(3, 8, DAYS)
    arrivals = np.zeros(DAYS + 10)
    stock, on_order, cost, asked, served = reorder, 0.0, 0.0, 0.0, 0.0
    for day in range(DAYS):
        stock, on_order = stock + arrivals[day], on_order - arrivals[day]
        sold = min(stock, demand[day])
        stock -= sold
        if day >= WARM_UP:
            asked, served = asked + demand[day], served + sold
            cost += 0.10 * stock  # keeping an item for a day
        if stock + on_order <= reorder:
            arrivals[day + lead_time[day]] += quantity
            on_order += quantity
            cost += (40.0 + 0.5 * quantity) * (day >= WARM_UP)  # a truck, and handling
    return cost / (DAYS - WARM_UP), served / asked


def warehouse(x, rng):
    """What pcces sees: the cost, and a constraint that must not be positive."""
    cost, fill_rate = simulate(x, rng)
    return cost, {"missing fill rate": 0.95 - fill_rate}


def main() -> int:
    res = pcces.minimize(
        warehouse,
        x0={"reorder": 150.0, "quantity": 300.0},
        bounds={"reorder": (0, 400), "quantity": (20, 1000)},
        max_evaluations=6000,
        common_random_numbers=True,
        rng=0,
    )
    print(
        f"reorder at {res.x['reorder']:.0f} items, {res.x['quantity']:.0f} at a time: {res.fun:.2f} a day, "
        f"fill rate {100 * (0.95 - res.constr[0]):.1f} %"
    )
    print(res.message)
    picture = Path("out") / "inventory.png"
    picture.parent.mkdir(exist_ok=True)
    res.plot(picture)
    page = res.report(picture.with_suffix(".html"))
    print(f"the search is drawn in {picture}, and {page} is about it")
    truth = np.array([simulate(res.x, np.random.default_rng(seed)) for seed in range(10**6, 10**6 + 2000)]).mean(0)
    print(f"check on 2000 further half-years: {truth[0]:.2f} a day, fill rate {100 * truth[1]:.2f} %")
    return 0 if res.success else 1


if __name__ == "__main__":
    sys.exit(main())
