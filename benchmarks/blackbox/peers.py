"""What other tools make of the same oracle: each solver is a function (oracle, problem, seed) -> Answer.

All of them search the unit box (bounds scaled to 0 and 1), restart when they stop early with budget left, and report
what they themselves would report: their answer, and whether it is feasible by the values they have seen. Where a tool
has no equality constraints, |h| <= 1e-3 (the judge's tolerance) is given as two inequalities.
"""

import math
import warnings
from collections.abc import Callable

import numpy as np
from scipy.optimize import Bounds, NonlinearConstraint, differential_evolution, minimize

from benchmarks.blackbox.noise import EQUALITY_TOLERANCE, FEASIBILITY_TOLERANCE, Oracle
from benchmarks.blackbox.problems import Problem
from benchmarks.harness import Answer, BudgetExhaustedError

AVERAGED = 20  # evaluations behind each value COBYQA gets under noise


class Simulator:
    """The oracle on the unit box, as a careful user would wrap it: memoised joint values, a failure as nan.

    Points past the budget fail, too. With `average`, a value is the mean of that many evaluations, its constraints
    raised by `standard_errors` of it.
    """

    def __init__(self, oracle: Oracle, average: int = 1, standard_errors: float = 0.0):
        self.oracle, self.problem = oracle, oracle.problem
        self.average, self.standard_errors = average, standard_errors
        self.memo: dict[bytes, tuple[float, np.ndarray]] = {}
        self.z0 = (self.problem.x0 - self.problem.lower) / (self.problem.upper - self.problem.lower)
        self.worst = (-math.inf, np.ones(self.problem.m))

    @property
    def left(self) -> int:
        return self.oracle.left // self.average

    def x(self, z: np.ndarray) -> np.ndarray:
        p = self.problem
        return np.clip(p.lower + np.clip(z, 0, 1) * (p.upper - p.lower), p.lower, p.upper)

    def values(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        z = np.clip(np.asarray(z, dtype=float), 0, 1)
        key = z.tobytes()
        if key not in self.memo:
            self.memo[key] = self._simulate(self.x(z))
        return self.memo[key]

    def finite(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """As `values`, but a failure looks as bad as the worst seen: for tools whose models a nan or inf would ruin."""
        f, c = self.values(z)
        return (f, c) if math.isfinite(f) else (max(self.worst[0], -1e300), self.worst[1])

    def inequalities(self, c: np.ndarray) -> np.ndarray:
        p = self.problem
        h = c[list(p.equality)]
        return np.concatenate([c[list(p.inequality)], h - EQUALITY_TOLERANCE, -h - EQUALITY_TOLERANCE])

    def rank(self, z: np.ndarray) -> tuple[float, float]:
        """By the values seen: (0, f) for a feasible point, (violation, f) for others. Smaller is better."""
        f, c = self.values(z)
        if not math.isfinite(f):
            return math.inf, math.inf
        violation = float(self.inequalities(c).max())
        return (0.0 if violation <= FEASIBILITY_TOLERANCE else violation), f

    def answer(self, z: np.ndarray) -> Answer:
        return Answer(self.x(z), self.rank(z)[0] == 0.0)

    def _simulate(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        samples_f, samples_c = [], []
        try:
            for _ in range(self.average):
                f, c = self.oracle(x)
                samples_f.append(f)
                samples_c.append(c)
            f, c = float(np.mean(samples_f)), np.mean(samples_c, axis=0)
        except (ArithmeticError, BudgetExhaustedError):
            f, c = math.nan, np.full(self.problem.m, math.nan)
        if not (math.isfinite(f) and np.all(np.isfinite(c))):
            return math.nan, np.full(self.problem.m, math.nan)
        if self.standard_errors:
            margin = self.standard_errors * np.std(samples_c, axis=0, ddof=1) / math.sqrt(self.average)
            margin[list(self.problem.equality)] = 0.0  # an equality has no safe side
            c = c + margin
        self.worst = (max(self.worst[0], f), np.maximum(self.worst[1], c))
        return f, c


def pycma(oracle: Oracle, problem: Problem, seed: int) -> Answer:
    """CMA-ES with pycma's augmented Lagrangian; the best feasible sample. Restarts with a doubled population.

    Samples that fail are drawn again, as pycma does with nan.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no matplotlib here
        import cma
    simulator = Simulator(oracle)
    best, fallback = None, simulator.z0
    population = 4 + int(3 * math.log(problem.n))
    for restart in range(100):
        fitness = cma.ConstrainedFitnessAL(
            lambda z: simulator.values(z)[0],
            lambda z: simulator.inequalities(simulator.values(z)[1]).tolist(),
            archives=False,
        )
        options = {
            "bounds": [0, 1],
            "seed": 1 + seed + 1000 * restart,
            "popsize": population,
            "tolstagnation": 0,
            "verbose": -9,
            "maxfevals": oracle.left,
        }
        es = cma.CMAEvolutionStrategy(simulator.z0 if restart == 0 else fallback, 0.2, options)
        while not es.stop() and oracle.left > 0:
            batch = []
            for _ in range(10 * es.popsize):
                z = es.ask(1)[0]
                if math.isfinite(simulator.values(z)[0]):
                    batch.append(z)
                if len(batch) == es.popsize or oracle.left == 0:
                    break
            if len(batch) < es.popsize:
                break
            es.tell(batch, [fitness(z) for z in batch])
            fitness.update(es)
            simulator.memo.clear()
        feasible = fitness.best_feas
        if feasible.x is not None and (best is None or feasible.f < best[1]):
            best = np.array(feasible.x), feasible.f
        fallback = np.clip(es.result.xfavorite, 0, 1)
        if oracle.left < 2 * population:
            break
        population *= 2
    if best is None:
        return Answer(simulator.x(fallback), False)
    return Answer(simulator.x(best[0]), True)


# NOMAD's quadratic models cost 10 to 50 ms an evaluation: they lead the first run, until the mesh or these many
# evaluations per variable are spent; later runs poll and search without them.
NOMAD_MODELLED = 150
NOMAD_CHEAP = ["QUAD_MODEL_SEARCH no", "EVAL_QUEUE_SORT DIR_LAST_SUCCESS", "DIRECTION_TYPE ORTHO 2N"]


def nomad(oracle: Oracle, problem: Problem, seed: int) -> Answer:
    """NOMAD's mesh adaptive direct search with the progressive barrier, restarted at or near its best.

    It has no setting for noise. An evaluation that fails is reported as failed. Without noise, three restarts in a row
    that bring nothing end the search: the mesh has converged, and each costs minutes in the larger dimensions.
    """
    import PyNomad

    simulator = Simulator(oracle)

    def blackbox(point) -> int:
        z = np.array([point.get_coord(i) for i in range(problem.n)])
        f, c = simulator.values(z)
        if not math.isfinite(f):
            return 0
        point.setBBO(" ".join(f"{v:.17g}" for v in (f, *simulator.inequalities(c))).encode())
        return 1

    outputs = problem.m + len(problem.equality)
    rng = np.random.default_rng([seed, 2])
    start, best, idle, restart = simulator.z0, None, 0, 0
    while oracle.left >= 2 * problem.n and (oracle.level > 0 or idle < 3):
        modelled = restart == 0
        result = PyNomad.optimize(
            blackbox,
            start.tolist(),
            problem.n * [0.0],
            problem.n * [1.0],
            [
                f"BB_OUTPUT_TYPE OBJ {' '.join(outputs * ['PB'])}",
                f"MAX_BB_EVAL {min(oracle.left, NOMAD_MODELLED * problem.n) if modelled else oracle.left}",
                f"SEED {1 + seed + 1000 * restart}",
                "DISPLAY_DEGREE 0",
                *([] if modelled else NOMAD_CHEAP),
            ],
        )
        previous = best
        for z in (result.get("x_best_feas") or []) + (result.get("x_best_infeas") or []):
            if best is None or simulator.rank(np.array(z)) < simulator.rank(best):
                best = np.array(z)
        idle = idle + 1 if best is previous and not modelled else 0
        start = simulator.z0 if best is None else best
        if idle:
            start = np.clip(start + 0.1 * rng.standard_normal(problem.n), 0, 1)
        restart += 1
    return Answer(problem.x0, False) if best is None else simulator.answer(best)


def averaged_cobyqa(simulator: Simulator, problem: Problem, seed: int) -> Answer:
    """Restarts by turns near the best and anywhere; without noise, ten in a row that bring nothing end the search."""
    rng = np.random.default_rng([seed, 1])
    inequality, equality = list(problem.inequality), list(problem.equality)
    constraints = [NonlinearConstraint(lambda z: simulator.finite(z)[1][inequality], -np.inf, 0)]
    if equality:
        constraints.append(NonlinearConstraint(lambda z: simulator.finite(z)[1][equality], 0, 0))
    level = simulator.oracle.level
    start, best, idle, restart = simulator.z0, None, 0, 0
    while simulator.left >= 2 * problem.n + 2 and (level > 0 or idle < 10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = minimize(
                lambda z: simulator.finite(z)[0],
                start,
                method="COBYQA",
                bounds=Bounds(np.zeros(problem.n), np.ones(problem.n)),
                constraints=constraints,
                options={
                    "maxfev": simulator.left,
                    "initial_tr_radius": 0.1,
                    "final_tr_radius": max(1e-6, 0.1 * level),  # smaller steps would only see noise
                },
            )
        z = np.clip(result.x, 0, 1)
        violation, f = (math.inf, math.inf) if best is None else simulator.rank(best)
        idle = 0 if simulator.rank(z) < (violation, f - 1e-6 * abs(f)) else idle + 1
        if simulator.rank(z) <= (violation, f):
            best = z
        restart += 1
        anywhere = restart % 2 == 0
        start = rng.random(problem.n) if anywhere else np.clip(best + 0.1 * rng.standard_normal(problem.n), 0, 1)
    return simulator.answer(best)


def cobyqa(oracle: Oracle, problem: Problem, seed: int) -> Answer:
    """SciPy's COBYQA: on single evaluations without noise, on averages of 20 with it."""
    return averaged_cobyqa(Simulator(oracle, average=AVERAGED if oracle.level > 0 else 1), problem, seed)


def cobyqa_margin(oracle: Oracle, problem: Problem, seed: int) -> Answer:
    """COBYQA on averages of 20, each constraint raised by two standard errors of its average. Only under noise."""
    return averaged_cobyqa(Simulator(oracle, average=AVERAGED, standard_errors=2.0), problem, seed)


def differential(oracle: Oracle, problem: Problem, seed: int) -> Answer:
    """SciPy's differential evolution with nonlinear constraints; x0 is in the first population.

    Settings are the best of six tried on these problems. Without noise, SLSQP polishes with a fifth of the budget.
    It evaluates the constraints of its answer once more before it reports, so the claim rests on a fresh sample.
    """
    simulator = Simulator(oracle)

    def constraint(z):
        return simulator.inequalities(simulator.finite(z)[1])

    def polish(fun, x0, **keywords):
        steps = max(1, oracle.left // (2 * (problem.n + 1)))
        result = minimize(fun, x0, method="SLSQP", options={"maxiter": steps, "ftol": 1e-10}, **keywords)
        result.x = np.clip(result.x, 0, 1)
        result.success = bool(
            constraint(result.x).max() <= FEASIBILITY_TOLERANCE
        )  # it may well stop at the last digits
        return result

    best, restart = None, 0
    members = max(8, math.ceil(20 / problem.n))  # per variable
    population = members * problem.n
    while oracle.left > 2 * population:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = differential_evolution(
                lambda z: simulator.finite(z)[0],
                [(0, 1)] * problem.n,
                constraints=NonlinearConstraint(constraint, -np.inf, 0),
                popsize=members,
                recombination=0.9,
                maxiter=int((1 if oracle.level else 0.8) * (oracle.left - 1)) // population - 1,
                tol=1e-8,
                atol=0,
                polish=False if oracle.level else polish,
                x0=simulator.z0 if restart == 0 else None,
                rng=np.random.default_rng([seed, restart]),
            )
        restart += 1
        if best is None or simulator.rank(result.x) < simulator.rank(best):
            best = np.clip(result.x, 0, 1)
    simulator.memo.clear()
    return simulator.answer(best)


PEERS: dict[str, Callable[[Oracle, Problem, int], Answer]] = {
    "pycma": pycma,
    "nomad": nomad,
    "cobyqa": cobyqa,
    "cobyqa-margin": cobyqa_margin,
    "de": differential,
}
