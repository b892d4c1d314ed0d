"""Twenty constrained problems of dimension 2 to 20 whose optima are known: `PROBLEMS[name]`.

Each comes as `evaluate(x) -> (f, c)`, where c <= 0 is feasible (c == 0 for the indices in `equality`). Every constraint
is divided by its natural magnitude (the limit it is compared with, or the size of its largest terms near the optimum),
so that one noise level means the same for all of them. Bounds are finite everywhere. Sources are in README.md; optima
were polished here, and tests/test_benchmark_problems.py searches for better ones.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Evaluation = tuple[float, np.ndarray]


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem with its answer. Noise and tolerance are shares of `f_scale`: |f_star|, or what the problem says."""

    name: str
    evaluate: Callable[[np.ndarray], Evaluation]
    lower: np.ndarray
    upper: np.ndarray
    x0: np.ndarray
    x_star: np.ndarray
    f_star: float
    f_scale: float
    m: int
    equality: tuple[int, ...] = ()

    @property
    def n(self) -> int:
        return len(self.x0)

    @property
    def inequality(self) -> tuple[int, ...]:
        return tuple(i for i in range(self.m) if i not in self.equality)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return list(zip(self.lower.tolist(), self.upper.tolist()))

    def violation(self, c: np.ndarray) -> float:
        """The largest of the inequalities c_i and of the equalities |c_i|; judges compare it with a tolerance."""
        c = np.array(c, dtype=float)
        c[list(self.equality)] = np.abs(c[list(self.equality)])
        return float(c.max())


PROBLEMS: dict[str, Problem] = {}


def problem(*, lower, upper, x0, x_star, f_star, f_scale=None, equality=()):
    """Register the decorated evaluate function under its name."""

    def register(evaluate: Callable[[np.ndarray], Evaluation]) -> Callable[[np.ndarray], Evaluation]:
        start = np.array(x0, dtype=float)
        PROBLEMS[evaluate.__name__] = Problem(
            name=evaluate.__name__,
            evaluate=evaluate,
            lower=np.broadcast_to(np.asarray(lower, dtype=float), start.shape).copy(),
            upper=np.broadcast_to(np.asarray(upper, dtype=float), start.shape).copy(),
            x0=start,
            x_star=np.array(x_star, dtype=float),
            f_star=f_star,
            f_scale=abs(f_star) if f_scale is None else f_scale,
            m=len(evaluate(start)[1]),
            equality=equality,
        )
        return evaluate

    return register


# --- Hock and Schittkowski --------------------------------------------------------------------------------------------


@problem(lower=-5, upper=5, x0=[0, 0, 0, 0], x_star=[0, 1, 2, -1], f_star=-44.0)
def hs43(x):
    """Rosen and Suzuki's convex problem: two of three balls active."""
    a, b, c, d = x.tolist()
    f = a * a + b * b + 2 * c * c + d * d - 5 * a - 5 * b - 21 * c + 7 * d
    return f, np.array(
        [
            (a * a + b * b + c * c + d * d + a - b + c - d) / 8 - 1,
            (a * a + 2 * b * b + c * c + 2 * d * d - a - d) / 10 - 1,
            (2 * a * a + b * b + c * c + 2 * a - b - d) / 5 - 1,
        ]
    )


@problem(
    lower=1,
    upper=5,
    x0=[1, 5, 5, 1],
    x_star=[1.0, 4.74299963745228, 3.82114998393943, 1.37940829320664],
    f_star=17.0140172891563,
    equality=(1,),
)
def hs71(x):
    """The one with an equality, which the start violates."""
    a, b, c, d = x.tolist()
    return a * d * (a + b + c) + c, np.array([1 - a * b * c * d / 25, (a * a + b * b + c * c + d * d) / 40 - 1])


@problem(
    lower=[1, 1, 1, 1, 0.1, 0.1],
    upper=[20, 20, 20, 20, 2, 2],
    x0=[7, 7, 12, 12, 0.6, 0.55],
    x_star=[
        5.33266633622404, 4.65674405922038, 10.4329919402341, 12.0823063306281, 0.752607437359456,
        0.878650873915553,
    ],
    f_star=135.075962829152,
)  # fmt: skip
def hs93(x):
    """Transformer design. The book's start is within 1.5 % of the optimum, so this one is further off."""
    a, b, c, d, e, g = x.tolist()
    core, winding = a * d * (a + b + c), b * c * (a + 1.57 * b + d)
    f = 0.0204 * core + 0.0187 * winding + 0.0607 * core * e * e + 0.0437 * winding * g * g
    return f, np.array([1 - a * b * c * d * e * g / 2070, 0.00062 * core * e * e + 0.00058 * winding * g * g - 1])


@problem(
    lower=[8, 43, 3] + 4 * [0, 0, 0],
    upper=[21, 57, 16] + 4 * [90, 120, 60],
    x0=[20, 55, 15] + 4 * [20, 60, 20],
    x_star=[8, 49, 3, 1, 56, 0, 1, 63, 6, 3, 70, 12, 5, 77, 18],
    f_star=664.82045,
)
def hs118(x):
    """Five periods of three sources: a demand in each, and limits on the change to the next. x0 meets one exactly."""
    y = x.reshape(5, 3)
    f = float((y @ [2.3, 1.7, 2.2]).sum() + ((y * y) @ [1e-4, 1e-4, 1.5e-4]).sum())
    change, width = np.diff(y, axis=0) + 7, np.array([13.0, 14.0, 13.0])
    demand = np.array([60.0, 50.0, 70.0, 85.0, 100.0])
    return f, np.concatenate([1 - y.sum(axis=1) / demand, (-change / width).ravel(), (change / width - 1).ravel()])


# --- the G suite ------------------------------------------------------------------------------------------------------


@problem(
    lower=0,
    upper=9 * [1] + 3 * [100] + [1],
    x0=9 * [0.5] + 3 * [1] + [0.5],
    x_star=9 * [1] + 3 * [3] + [1],
    f_star=-15.0,
)
def g01(x):
    """A quadratic whose optimum is one vertex of many."""
    f = 5 * x[:4].sum() - 5 * x[:4] @ x[:4] - x[4:].sum()
    a, b, c, d, e, g, h, i, j, p, q, r, _ = x.tolist()
    return float(f), np.array(
        [
            (2 * a + 2 * b + p + q) / 10 - 1,
            (2 * a + 2 * c + p + r) / 10 - 1,
            (2 * b + 2 * c + q + r) / 10 - 1,
            p / 8 - a,
            q / 8 - b,
            r / 8 - c,
            (p - 2 * d - e) / 3,
            (q - 2 * g - h) / 3,
            (r - 2 * i - j) / 3,
        ]
    )


@problem(
    lower=[78, 33, 27, 27, 27],
    upper=[102, 45, 45, 45, 45],
    x0=[90, 39, 35, 32, 32],
    x_star=[78.0, 33.0, 29.9952560256816, 45.0, 36.7758129057882],
    f_star=-30665.5386717833,
    f_scale=1e4,
)
def g04(x):
    """Himmelblau's problem. f carries a constant of -40792, so |f_star| says little: what varies is of order 1e4."""
    a, b, c, d, e = x.tolist()
    f = 5.3578547 * c * c + 0.8356891 * a * e + 37.293239 * a - 40792.141
    u = 85.334407 + 0.0056858 * b * e + 0.0006262 * a * d - 0.0022053 * c * e
    v = 80.51249 + 0.0071317 * b * e + 0.0029955 * a * b + 0.0021813 * c * c
    w = 9.300961 + 0.0047026 * c * e + 0.0012547 * a * c + 0.0019085 * c * d
    return f, np.array([u / 92 - 1, -u / 92, v / 110 - 1, 1 - v / 90, w / 25 - 1, 1 - w / 20])


@problem(lower=[13, 0], upper=[100, 100], x0=[20.1, 5.84], x_star=[14.095, 0.842960789215457], f_star=-6961.81387558016)
def g06(x):
    """A cubic in the thin crescent between two circles, started outside it."""
    a, b = x.tolist()
    return (a - 10) ** 3 + (b - 20) ** 3, np.array(
        [1 - ((a - 5) ** 2 + (b - 5) ** 2) / 100, ((a - 6) ** 2 + (b - 5) ** 2) / 82.81 - 1]
    )


@problem(
    lower=-10,
    upper=10,
    x0=[2, 3, 5, 5, 1, 2, 7, 3, 6, 10],
    x_star=[
        2.17199637125783, 2.36368297369151, 8.77392573847606, 5.09598448794901, 0.990654764962902,
        1.43057397893671, 1.32164420816625, 9.82872580788998, 8.28009167010474, 8.37592666392202,
    ],
    f_star=24.3062090681799,
)  # fmt: skip
def g07(x):
    """Wong's convex problem (HS 113): six of eight constraints active."""
    a, b, c, d, e, g, h, i, j, k = x.tolist()
    f = a * a + b * b + a * b - 14 * a - 16 * b + (c - 10) ** 2 + 4 * (d - 5) ** 2 + (e - 3) ** 2 + 2 * (g - 1) ** 2
    f += 5 * h * h + 7 * (i - 11) ** 2 + 2 * (j - 10) ** 2 + (k - 7) ** 2 + 45
    return f, np.array(
        [
            (4 * a + 5 * b - 3 * h + 9 * i) / 105 - 1,
            (10 * a - 8 * b - 17 * h + 2 * i) / 20,
            (-8 * a + 2 * b + 5 * j - 2 * k) / 12 - 1,
            (3 * (a - 2) ** 2 + 4 * (b - 3) ** 2 + 2 * c * c - 7 * d) / 120 - 1,
            (5 * a * a + 8 * b + (c - 6) ** 2 - 2 * d) / 40 - 1,
            (0.5 * (a - 8) ** 2 + 2 * (b - 4) ** 2 + 3 * e * e - g) / 30 - 1,
            (a * a + 2 * (b - 2) ** 2 - 2 * a * b + 14 * e - 6 * g) / 15,
            (-3 * a + 6 * b + 12 * (j - 8) ** 2 - 7 * k) / 60,
        ]
    )


@problem(lower=0.1, upper=10, x0=[2.5, 5.5], x_star=[1.22797135361532, 4.24537336611739], f_star=-0.0958250414180358)
def g08(x):
    """Many local minima, no constraint active at the best; started outside. f divides by x1, so bounds start at 0.1."""
    a, b = x.tolist()
    f = -(math.sin(2 * math.pi * a) ** 3) * math.sin(2 * math.pi * b) / (a**3 * (a + b))
    return f, np.array([a * a - b + 1, 1 - a + (b - 4) ** 2])


@problem(
    lower=-10,
    upper=10,
    x0=[0, 0, 0, 0, 0, 0, 1],
    x_star=[
        2.33049935811977, 1.95137237056065, -0.477541363075632, 4.36572624055597, -0.624486955407182,
        1.03813103004576, 1.59422669521514,
    ],
    f_star=680.630057374402,
)  # fmt: skip
def g09(x):
    """HS 100. The book's start is within 5 % of the optimum, so this one is near the origin."""
    a, b, c, d, e, g, h = x.tolist()
    f = (a - 10) ** 2 + 5 * (b - 12) ** 2 + c**4 + 3 * (d - 11) ** 2 + 10 * e**6 + 7 * g * g + h**4
    f += -4 * g * h - 10 * g - 8 * h
    return f, np.array(
        [
            (2 * a * a + 3 * b**4 + c + 4 * d * d + 5 * e) / 127 - 1,
            (7 * a + 3 * b + 10 * c * c + d - e) / 282 - 1,
            (23 * a + b * b + 6 * g * g - 8 * h) / 196 - 1,
            (4 * a * a + b * b - 3 * a * b + 2 * c * c + 5 * g - 11 * h) / 20,
        ]
    )


@problem(
    lower=[100, 1000, 1000, 10, 10, 10, 10, 10],
    upper=[10000, 10000, 10000, 1000, 1000, 1000, 1000, 1000],
    x0=[5000, 5000, 5000, 200, 350, 150, 225, 425],
    x_star=[
        579.306689977796, 1359.97065548486, 5109.97067506601, 182.017700044855, 295.60117299736,
        217.982299955145, 286.416527047495, 395.60117299736,
    ],
    f_star=7049.24802052867,
)  # fmt: skip
def g10(x):
    """Three heat exchangers in a row (HS 106), all six constraints active; started outside."""
    a, b, c, d, e, g, h, i = x.tolist()
    return a + b + c, np.array(
        [
            0.0025 * (d + g) - 1,
            0.0025 * (e + h - d) - 1,
            0.01 * (i - e) - 1,
            (833.33252 * d + 100 * a - a * g) / 83333.333 - 1,
            (1250 * e + b * d - b * h - 1250 * d) / 4e5,
            (c * e - 2500 * e - c * i) / 1.25e6 + 1,
        ]
    )


# --- engineering designs ----------------------------------------------------------------------------------------------


@problem(lower=0.01, upper=1, x0=[0.95, 0.7], x_star=[0.788675136184507, 0.408248285967529], f_star=263.895843376468)
def three_bar_truss(x):
    """Least volume of a symmetric truss under stress limits. Bounds start at 0.01, as stress divides by area."""
    a, b = x.tolist()
    load, stress, length, r = 2.0, 2.0, 100.0, math.sqrt(2)
    det = r * a * a + 2 * a * b
    return (2 * r * a + b) * length, np.array(
        [(r * a + b) / det * load / stress - 1, b / det * load / stress - 1, load / (r * b + a) / stress - 1]
    )


@problem(
    lower=[0.05, 0.25, 2],
    upper=[2, 1.3, 15],
    x0=[0.08, 0.8, 8],
    x_star=[0.0516890611297521, 0.356717740929864, 11.2889656853402],
    f_star=0.0126652327883195,
)
def tension_spring(x):
    """Least weight of a spring: deflection, shear, frequency. A wire as thick as the coil divides by zero."""
    d, coil, turns = x.tolist()
    return (turns + 2) * coil * d * d, np.array(
        [
            1 - coil**3 * turns / (71785 * d**4),
            (4 * coil * coil - d * coil) / (12566 * (coil * d**3 - d**4)) + 1 / (5108 * d * d) - 1,
            1 - 140.45 * d / (coil * coil * turns),
            (coil + d) / 1.5 - 1,
        ]
    )


@problem(
    lower=[0.1, 0.1, 0.1, 0.1],
    upper=[2, 10, 10, 2],
    x0=[0.4, 6, 9, 0.5],
    x_star=[0.205729639786079, 3.470488665628, 9.03662391035763, 0.205729639786079],
    f_star=1.72485230859736,
)
def welded_beam(x):
    """Cheapest weld and beam under limits on shear, bending, buckling and deflection."""
    h, length, t, b = x.tolist()
    load, arm, E, G = 6000.0, 14.0, 30e6, 12e6
    f = 1.10471 * h * h * length + 0.04811 * t * b * (arm + length)
    primary = load / (math.sqrt(2) * h * length)
    radius = math.hypot(length / 2, (h + t) / 2)
    polar = 2 * math.sqrt(2) * h * length * (length * length / 12 + ((h + t) / 2) ** 2)
    secondary = load * (arm + length / 2) * radius / polar
    shear = math.sqrt(primary**2 + primary * secondary * length / radius + secondary**2)
    bending = 6 * load * arm / (b * t * t)
    deflection = 4 * load * arm**3 / (E * b * t**3)
    buckling = 4.013 * E * t * b**3 / (6 * arm * arm) * (1 - t / (2 * arm) * math.sqrt(E / (4 * G)))
    return f, np.array(
        [
            shear / 13600 - 1,
            bending / 30000 - 1,
            h / b - 1,
            (0.10471 * h * h + 0.04811 * t * b * (arm + length)) / 5 - 1,
            1 - h / 0.125,
            deflection / 0.25 - 1,
            1 - buckling / load,
        ]
    )


@problem(
    lower=[0.0625, 0.0625, 10, 10],
    upper=[6.1875, 6.1875, 200, 200],
    x0=[1.5, 1, 55, 150],
    x_star=[0.778168641375105, 0.384649162627902, 40.3196187240987, 200.0],
    f_star=5885.33277361645,
)
def pressure_vessel(x):
    """Cheapest vessel of a given volume (shell, head, radius, length), all continuous."""
    shell, head, r, length = x.tolist()
    f = 0.6224 * shell * r * length + 1.7781 * head * r * r + 3.1661 * shell**2 * length + 19.84 * shell**2 * r
    volume = math.pi * r * r * length + 4 / 3 * math.pi * r**3
    return f, np.array([0.0193 * r / shell - 1, 0.00954 * r / head - 1, 1 - volume / 1296000, length / 240 - 1])


@problem(
    lower=[2.6, 0.7, 17, 7.3, 7.3, 2.9, 5.0],
    upper=[3.6, 0.8, 28, 8.3, 8.3, 3.9, 5.5],
    x0=[3.1, 0.75, 22, 7.8, 7.8, 3.4, 5.25],
    x_star=[3.5, 0.7, 17.0, 7.3, 7.71531991147824, 3.35021466609645, 5.28665446498022],
    f_star=2994.47106614682,
)
def speed_reducer(x):
    """Golinski's gear box, teeth continuous; started outside, in the middle of the box."""
    a, b, z, p, q, d, e = x.tolist()
    f = 0.7854 * a * b * b * (3.3333 * z * z + 14.9334 * z - 43.0934) - 1.508 * a * (d * d + e * e)
    f += 7.4777 * (d**3 + e**3) + 0.7854 * (p * d * d + q * e * e)
    return f, np.array(
        [
            27 / (a * b * b * z) - 1,
            397.5 / (a * b * b * z * z) - 1,
            1.93 * p**3 / (b * z * d**4) - 1,
            1.93 * q**3 / (b * z * e**4) - 1,
            math.sqrt((745 * p / (b * z)) ** 2 + 16.9e6) / (110 * d**3) - 1,
            math.sqrt((745 * q / (b * z)) ** 2 + 157.5e6) / (85 * e**3) - 1,
            b * z / 40 - 1,
            5 * b / a - 1,
            a / (12 * b) - 1,
            (1.5 * d + 1.9) / p - 1,
            (1.1 * e + 1.9) / q - 1,
        ]
    )


# --- ill-conditioned, and crashing ------------------------------------------------------------------------------------


def _axes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of the discrete sine transform as rows, and the curvature along each: condition 1e6."""
    i = np.arange(1, n + 1)
    rotation = math.sqrt(2 / (n + 1)) * np.sin(math.pi * np.outer(i, i) / (n + 1))
    return rotation, 10 ** (6 * (i - 1) / (n - 1))


def _ellipsoid(x: np.ndarray, rotation: np.ndarray, curvature: np.ndarray) -> Evaluation:
    """Centred at 1; a plane and a ball, both active, cut off the centre."""
    n = len(x)
    z = rotation @ (x - 1)
    weights = np.arange(n, 0, -1) / (0.54 * n * (n + 1) / 2)
    return float(curvature @ (z * z)), np.array([weights @ x - 1, x @ x / (0.335 * n) - 1])


_AXES = {10: _axes(10), 20: _axes(20)}


@problem(
    lower=-3,
    upper=3,
    x0=5 * [-0.4, 0.4],
    x_star=[
        0.785865245318834, 0.601980059367421, 0.468364919822303, 0.391809575646084, 0.369605097289188,
        0.394966700542789, 0.460730967533175, 0.560673714108643, 0.688967311081115, 0.838596903333934,
    ],
    f_star=2.28692657734564,
)  # fmt: skip
def ellipsoid10(x):
    return _ellipsoid(x, *_AXES[10])


@problem(
    lower=-3,
    upper=3,
    x0=10 * [-0.4, 0.4],
    x_star=[
        0.846329497613671, 0.70996780828846, 0.601166083682491, 0.521667145955556, 0.467821419122972,
        0.434197993670554, 0.41569863149403, 0.408315312707535, 0.409191608914717, 0.416446908401257,
        0.428978933425702, 0.446322562303514, 0.468584388330273, 0.496449861659044, 0.53124450100684,
        0.574998983869316, 0.630393497593436, 0.700323255850791, 0.786716752261493, 0.888527165105028,
    ],
    f_star=4.5471597408764,
)  # fmt: skip
def ellipsoid20(x):
    return _ellipsoid(x, *_AXES[20])


@problem(
    lower=-2,
    upper=2,
    x0=10 * [-0.5],
    x_star=[
        0.958332194021473, 0.923442681319814, 0.858629921608886, 0.745304125708438, 0.562743949825974,
        0.325699857044517, 0.113142577156579, 0.0227134527879862, 0.00715135738708896, 5.07793553965414e-05,
    ],
    f_star=3.51080706248727,
)  # fmt: skip
def rosenbrock10(x):
    """The curved valley, its floor cut off by a ball and a plane (both active) before it reaches 1."""
    f = 100 * ((x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x[:-1]) ** 2).sum()
    return float(f), np.array([x @ x / 3.5 - 1, x[::2].sum() / 2.5 - 1])


@problem(
    lower=0,
    upper=2,
    x0=5 * [0.4],
    x_star=[1.264160258855, 0.63283115759753, 1.24328694123859, 0.929860820664909, 0.929860821643975],
    f_star=7.84921922009179,
)
def crashing(x):
    """The simulator fails a little beyond either constraint (both active), and in a pocket on the way to the optimum.

    Beyond the first it raises, beyond the second it gives nan; in the pocket it raises, and no constraint tells of it.
    """
    total, product = float(x.sum()), float(x[0] * x[1])
    if total > 5.1 or math.dist(x, (1.0, 0.6, 1.0, 0.8, 0.8)) < 0.25:
        raise ArithmeticError("the simulation did not converge")
    margin = 0.85 - product
    f = float(np.array([30, 10, 3, 1, 1]) @ (x - 1.4) ** 2) + 4 * (math.sqrt(margin) if margin >= 0 else math.nan)
    return f, np.array([total / 5 - 1, product / 0.8 - 1])
