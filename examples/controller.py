"""Tune a crane's controller: bring the load to its place quickly, and hardly ever let it swing too far.

The load's weight, the rope and the wind are different each time. At most 2 % of the moves may swing by more than 0.3 radians.

    python examples/controller.py
"""

import sys
from pathlib import Path

import numpy as np

import pcces

STEPS, DT, FAR = 300, 0.05, 0.3


def move(gains, rng):
    """How far from its goal the trolley is on average in one move of 15 seconds, and the farthest that the load swings."""
    rope, damping, wind = rng.uniform(2.0, 5.0), rng.uniform(0.02, 0.1), 0.03 * rng.standard_normal(STEPS)
    place, speed, angle, spin, away, farthest, gust = -4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for step in range(STEPS):
        wanted = -gains["place"] * place - gains["speed"] * speed + gains["angle"] * angle + gains["spin"] * spin
        push = min(max(wanted, -2.0), 2.0)  # the trolley's acceleration
        gust = 0.95 * gust + wind[step]
        speed += DT * push
        place += DT * speed
        spin += DT * (-9.81 / rope * np.sin(angle) - push / rope * np.cos(angle) - damping * spin + gust)
        angle += DT * spin
        away += abs(place) / STEPS
        farthest = max(farthest, abs(angle))
    return away, farthest


def crane(gains, rng):
    away, farthest = move(gains, rng)
    return away, {"swing": farthest - FAR}


def solve(max_evaluations=1500):
    return pcces.minimize(
        crane,
        x0={"place": 0.1, "speed": 0.5, "angle": 0.0, "spin": 0.0},
        bounds={"place": pcces.Log(0.01, 3.0), "speed": pcces.Log(0.05, 5.0), "angle": (-5, 5), "spin": (-5, 5)},
        limits=["P(> 0) <= 0.02"],
        max_evaluations=max_evaluations,
        common_random_numbers=True,
        rng=0,
    )


def main() -> int:
    res = solve()
    print(", ".join(f"{name} {gain:.3g}" for name, gain in res.x.items()) + f": {res.fun:.2f} m away on average")
    print(res.message)
    Path("out").mkdir(exist_ok=True)
    res.plot(Path("out") / "controller.png")
    far = np.mean([move(res.x, np.random.default_rng(seed))[1] > FAR for seed in range(10**6, 10**6 + 3000)])
    print(f"check on 3000 further moves: {100 * far:.2f} % swing too far; the search is drawn in out/controller.png")
    return 0 if res.success else 1


if __name__ == "__main__":
    sys.exit(main())
