"""Staff a call centre: as few agents as possible in each shift, and at most one day in twenty on which many wait too long.

One evaluation simulates one day. The limit is a failure probability, so its certificate is guaranteed: it counts days.

    python examples/staffing.py
"""

import sys
from pathlib import Path

import numpy as np

import pcces

SHIFTS = ("morning", "noon", "afternoon", "evening")
CALLS = {"morning": 2.0, "noon": 3.2, "afternoon": 2.4, "evening": 1.2}  # a minute, on a usual day
LENGTH, PATIENCE = 240, 2.0  # minutes of a shift; a customer who waits longer than this has waited too long
LATE = 0.1  # a bad day: more than this share of the customers waited too long


def day(staff, rng):
    """The share of a day's customers who waited too long."""
    usual, free, late, calls = rng.gamma(50, 1 / 50), np.zeros(0), 0, 0
    for number, shift in enumerate(SHIFTS):
        begin = number * LENGTH
        free = np.sort(np.maximum(np.resize(free, staff[shift]) if free.size else np.zeros(staff[shift]), begin))
        arrivals = begin + np.sort(rng.uniform(0, LENGTH, rng.poisson(CALLS[shift] * usual * LENGTH)))
        durations = rng.gamma(2.0, 2.0, len(arrivals))  # 4 minutes on average
        for arrival, duration in zip(arrivals, durations):
            agent = free.argmin()
            start = max(arrival, free[agent])
            free[agent] = start + duration
            late += start - arrival > PATIENCE
        calls += len(arrivals)
    return late / max(calls, 1)


def centre(staff, rng):
    """What pcces sees: the agents' hours, and the share of late customers less what is allowed on a good day."""
    return 4.0 * sum(staff.values()), {"late": day(staff, rng) - LATE}


def solve(max_evaluations=1000):
    return pcces.minimize(
        centre,
        x0=dict.fromkeys(SHIFTS, 16),
        bounds={shift: pcces.Integer(2, 24) for shift in SHIFTS},
        limits=["P(> 0) <= 0.05"],
        max_evaluations=max_evaluations,
        common_random_numbers=True,
        rng=0,
    )


def main() -> int:
    res = solve()
    print(", ".join(f"{agents} in the {shift}" for shift, agents in res.x.items()) + f": {res.fun:.0f} hours a day")
    print(res.message)
    Path("out").mkdir(exist_ok=True)
    res.plot(Path("out") / "staffing.png")
    bad = np.mean([day(res.x, np.random.default_rng(seed)) > LATE for seed in range(10**6, 10**6 + 2000)])
    print(f"check on 2000 further days: {100 * bad:.1f} % of them are bad; the search is drawn in out/staffing.png")
    return 0 if res.success else 1


if __name__ == "__main__":
    sys.exit(main())
