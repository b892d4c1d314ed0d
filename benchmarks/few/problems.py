"""Twelve problems of engineers whose simulators take minutes: `PROBLEMS[name]`.

Each is written as a formula or a small simulation without noise, so that its optimum can be computed (`optima.py`), and
is evaluated with normal noise of 2 to 5 %. A constraint is its value over its limit less one, so its noise is a share of the
limit. Half of them (`TUNED_ON`) were looked at while pcces was made, the others were not.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.special import ndtr

Outputs = tuple[float, list[float]]


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem with its answer; gaps and noise of f are shares of |f_star|."""

    name: str
    exact: Callable[[np.ndarray], Outputs]
    bounds: list[tuple[float, float]]
    x0: np.ndarray
    noise: float
    x_star: np.ndarray
    f_star: float
    equality = ()

    @property
    def n(self) -> int:
        return len(self.x0)

    @cached_property
    def m(self) -> int:
        return len(self.exact(self.x0)[1])

    @property
    def inequality(self) -> tuple[int, ...]:
        return tuple(range(self.m))

    @cached_property
    def lower(self) -> np.ndarray:
        return np.array(self.bounds)[:, 0]

    @cached_property
    def upper(self) -> np.ndarray:
        return np.array(self.bounds)[:, 1]

    def simulate(self, x: np.ndarray, rng: np.random.Generator) -> tuple[float, np.ndarray]:
        """One noisy evaluation."""
        f, c = self.exact(np.asarray(x, dtype=float))
        noise = self.noise * rng.standard_normal(1 + len(c))
        return f + noise[0] * abs(self.f_star), np.array(c) + noise[1:]

    def gap(self, x: np.ndarray) -> float:
        return float((self.exact(np.asarray(x, dtype=float))[0] - self.f_star) / abs(self.f_star))

    def feasible(self, x: np.ndarray) -> bool:
        return bool(max(self.exact(np.asarray(x, dtype=float))[1]) <= 1e-9)


FILE = Path(__file__).with_name("optima.json")
OPTIMA: dict = json.loads(FILE.read_text()) if FILE.exists() else {}
PROBLEMS: dict[str, Problem] = {}
TUNED_ON = ("pid", "cantilever", "valleys", "queues", "suspension", "plan")


def problem(bounds: list[tuple[float, float]], x0: list[float], noise: float):
    """Register the decorated function under its name."""

    def register(exact: Callable[[np.ndarray], Outputs]) -> Callable[[np.ndarray], Outputs]:
        name = exact.__name__
        x_star, f_star = OPTIMA.get(name, (x0, 1.0))
        PROBLEMS[name] = Problem(name, exact, bounds, np.array(x0, float), noise, np.array(x_star), f_star)
        return exact

    return register


@problem([(0.1, 12.0), (0.0, 6.0), (0.0, 4.0)], [1.0, 0.2, 0.1], 0.03)
def pid(x: np.ndarray) -> Outputs:
    """Gains of a PID controller of a slow plant with a dead time: absolute error; overshoot and effort are limited."""
    kp, ki, kd = x.tolist()
    y = v = integral = 0.0
    past, error, effort, top = [0.0] * 6, 0.0, 0.0, 0.0
    before = 1.0
    for _ in range(240):
        e = 1.0 - y
        integral += 0.05 * e
        u = min(max(kp * e + ki * integral + kd * (e - before) / 0.05, -20.0), 20.0)
        before = e
        past.append(u)
        v += 0.05 * (past.pop(0) - 1.4 * v - y)
        y = min(max(y + 0.05 * v, -10.0), 10.0)
        error += 0.05 * abs(e)
        effort += 0.05 * u * u
        top = max(top, y)
    return error, [top / 1.1 - 1, effort / 16 - 1]


@problem([(300.0, 400.0), (0.2, 6.0), (0.5, 3.0)], [340.0, 3.0, 1.5], 0.02)
def reactor(x: np.ndarray) -> Outputs:
    """A -> B -> C in a stirred tank: temperature, residence time, feed; profit of B; the share of C and the heat are limited."""
    temperature, tau, feed = x.tolist()
    k1, k2 = 0.8 * math.exp(5200 * (1 / 350 - 1 / temperature)), 0.15 * math.exp(8800 * (1 / 350 - 1 / temperature))
    a = feed / (1 + k1 * tau)
    b = k1 * tau * a / (1 + k2 * tau)
    c = k2 * tau * b
    profit = 10 * b / tau - 1.2 * feed / tau - 0.012 * (temperature - 300) + 2 * b
    return -profit, [c / (a + b + c) / 0.12 - 1, k1 * a / 1.1 - 1]


@problem([(0.0, 60.0)] * 4, [40.0, 40.0, 40.0, 40.0], 0.03)
def inventory(x: np.ndarray) -> Outputs:
    """Stock of four products with normal demand: holding and shortage cost; unmet demand and the shelves are limited."""
    mean, deviation = np.array([20.0, 30.0, 12.0, 25.0]), np.array([5.0, 10.0, 6.0, 4.0])
    z = (x - mean) / deviation
    short = deviation * (np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) - z * (1 - ndtr(z)))
    cost = np.array([1.0, 0.6, 2.0, 0.8]) @ (x - mean + short) + np.array([4.0, 3.0, 7.0, 2.5]) @ short
    return float(cost), [short.sum() / mean.sum() / 0.04 - 1, (np.array([1.0, 1.5, 0.5, 1.2]) @ x) / 120 - 1]


@problem([(0.5, 4.0)] * 5, [3.0, 3.0, 3.0, 3.0, 3.0], 0.02)
def cantilever(x: np.ndarray) -> Outputs:
    """Heights of a beam's five parts: weight; the tip's deflection and the largest stress are limited."""
    ends = np.arange(5, 0, -1.0)
    deflection = float((((ends**3) - (ends - 1) ** 3) / x**3).sum())
    stress = ends / x**2
    worst = float(np.log(np.exp(8 * stress).sum()) / 8)
    return float(x.sum()) + 0.5, [deflection / 9 - 1, worst / 0.95 - 1]


@problem([(-3.0, 3.0), (-3.0, 3.0)], [2.0, -2.0], 0.03)
def valleys(x: np.ndarray) -> Outputs:
    """Two variables, several valleys, and a limit that cuts them."""
    a, b = x.tolist()
    f = 3 + math.sin(2.2 * a) * math.cos(1.7 * b) - 0.5 * math.cos(a - 0.6) + 0.06 * (a * a + b * b)
    return f, [(1.4 + math.sin(1.5 * a + 0.4) * math.sin(1.2 * b + 1.0) + 0.2 * (a + b)) / 1.5 - 1]


@problem([(0.0, 1.0)] * 6, [0.5, 0.5, 0.5, 0.5, 0.5, 0.5], 0.03)
def hartmann(x: np.ndarray) -> Outputs:
    """Hartmann's function of six variables with a limit on their sum of squares."""
    a = np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    )
    p = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    f = -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-(a * (x - p) ** 2).sum(1)))
    return f, [float(x @ x) / 0.75 - 1]


@problem([(1.0, 12.0)] * 4, [8.0, 8.0, 8.0, 8.0], 0.04)
def queues(x: np.ndarray) -> Outputs:
    """Capacity of four stations in a row: wages; the time in the system and the busiest station are limited."""
    load = np.array([2.0, 3.5, 1.5, 2.8])
    room = np.logaddexp(0, 6 * (x - load - 0.2)) / 6 + 0.2  # queues that would grow for ever count as very long ones
    time = float((1 / room).sum() + 0.15 * (load / x).sum())
    return float(np.array([3.0, 2.0, 4.0, 2.5]) @ x + 0.08 * (x * x).sum()), [
        time / 2.2 - 1,
        float((load / x).max()) / 0.78 - 1,
    ]


@problem([(0.05, 1.0), (0.05, 1.0), (0.1, 1.0)], [0.5, 0.5, 0.5], 0.03)
def suspension(x: np.ndarray) -> Outputs:
    """A car's spring, damper and tyre on a rough road: discomfort; travel and the wheel's load are limited."""
    spring, damper, tyre = 60e3 * x[0], 6e3 * x[1], 400e3 * x[2]
    w = 2 * math.pi * np.geomspace(0.3, 20, 60)
    s, road = 1j * w, 1 / w
    body, wheel = 300.0, 40.0
    link = spring + damper * s
    ratio = link / (body * s**2 + link)  # body over wheel
    over = tyre / (wheel * s**2 + tyre + link * (1 - ratio))  # wheel over road
    density = np.gradient(w)

    def size(transfer: np.ndarray) -> float:
        return math.sqrt(float((np.abs(transfer * road) ** 2 * density).sum()))

    acceleration = size(s**2 * ratio * over / (1 + (w / 80) ** 2))
    return acceleration / 10, [size((1 - ratio) * over) / 0.5 - 1, size((1 - over) * tyre) / 4e4 - 1]


@problem([(0.0, 4.0)] * 6, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0.03)
def battery(x: np.ndarray) -> Outputs:
    """Charging currents in six phases: what is missing in the end; the temperature and the wear are limited."""
    charge, heat, hottest, wear = 0.05, 0.0, 0.0, 0.0
    for current in x.tolist():
        for _ in range(5):
            resistance = 0.6 + 0.8 * (charge - 0.5) ** 2
            heat += 0.05 * (resistance * current**2 - 0.9 * heat)
            charge += 0.02 * current * (1 - 0.45 * charge**4)
            hottest = max(hottest, heat) if current >= 0 else hottest
            wear += 0.01 * math.exp(0.55 * current + 2.2 * max(charge - 0.55, 0) * current * 0.5)
    return 1.5 - charge, [hottest / 2.1 - 1, wear / 1.0 - 1]


@problem([(0.0, 5.0), (0.0, 5.0)], [2.5, 4.0], 0.03)
def islands(x: np.ndarray) -> Outputs:
    """Three islands that keep the limit, of different worth."""
    a, b = x.tolist()
    centres = ((1.0, 1.2, 0.75), (4.0, 1.0, 0.55), (2.5, 4.0, 0.95))
    nearest = min(math.hypot(a - u, b - v) / r for u, v, r in centres)
    f = 4 + 0.25 * (b - 0.5) ** 2 + 0.9 * math.cos(1.6 * a + 0.4) - 0.2 * a
    return f, [1.5 * math.tanh(nearest - 1)]


@problem([(0.1, 3.0)] * 8, [1.2] * 8, 0.02)
def pumps(x: np.ndarray) -> Outputs:
    """Eight pumps that feed a network: energy; flow, pressure and noise are limited."""
    size = np.array([1.0, 1.4, 0.8, 1.1, 0.9, 1.6, 1.2, 0.7])
    flow = size * x / (1 + 0.15 * x * size)
    pressure = (
        0.6 * math.sqrt(float((x[:4] ** 2).sum()))
        + 0.5 * math.sqrt(float((x[4:] ** 2).sum()))
        + 0.08 * float(x[0] * x[5])
    )
    loud = float((x**3 * size).sum())
    energy = float((size * x**2).sum() + 0.3 * x.sum() + 0.4 * (x[1] - x[2]) ** 2 + 0.4 * (x[5] - x[6]) ** 2)
    return energy, [1 - flow.sum() / 6.5, 1 - pressure / 2.0, loud / 9.5 - 1]


@problem([(0.0, 10.0)] * 10, [2.0] * 10, 0.02)
def plan(x: np.ndarray) -> Outputs:
    """Production of ten goods that share machines, staff and storage: profit with falling prices and set-up costs."""
    price = np.array([9.0, 7.0, 11.0, 6.0, 8.0, 10.0, 5.0, 12.0, 7.5, 9.5])
    fall = np.array([0.5, 0.3, 0.9, 0.35, 0.45, 0.6, 0.25, 1.1, 0.4, 0.7])
    machines = np.array([1.0, 0.6, 1.4, 0.5, 0.9, 1.2, 0.3, 1.6, 0.8, 1.1]) @ x
    staff = np.array([0.4, 0.9, 0.5, 0.7, 0.6, 0.3, 0.8, 0.9, 0.5, 0.6]) @ x + 0.02 * float(x @ x)
    storage = float(np.sqrt(1 + x * x).sum()) - 10
    profit = float(price @ x - fall @ (x * x) - 0.15 * x[:9] @ x[1:] - 1.5 * (1 - np.exp(-3 * x)).sum())
    return -profit, [machines / 22 - 1, staff / 17 - 1, storage / 19 - 1]
