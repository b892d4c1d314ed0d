"""What other tools make of the same oracle: each is as its documentation has it, and reports what it would report.

A solver in `ANYTIME` yields its answer at each of several budgets of one run; the others plan for one.
"""

import math
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.blackbox.peers import Simulator, averaged_cobyqa, pycma
from benchmarks.few.oracle import Oracle
from benchmarks.few.problems import Problem
from benchmarks.harness import Answer

SURE = 0.95  # the posterior probability of feasibility with which BoTorch's answers are claimed


class Told:
    """Evaluated points on the unit box, with their outputs (f, c), as BoTorch wants them."""

    def __init__(self, oracle: Oracle, seed: int):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        warnings.simplefilter("ignore")  # of linear algebra that is repeated with more jitter
        self.oracle, self.box = oracle, Simulator(oracle)
        self.n = oracle.problem.n
        self.Z, self.Y = torch.zeros(0, self.n).double(), torch.zeros(0, 1 + oracle.problem.m).double()
        self.sobol = torch.quasirandom.SobolEngine(self.n, scramble=True, seed=seed)

    def evaluate(self, z) -> None:
        import torch

        f, c = self.oracle(self.box.x(np.asarray(z)))
        self.Z = torch.cat([self.Z, torch.as_tensor(z).double().reshape(1, -1)])
        self.Y = torch.cat([self.Y, torch.tensor([[f, *c]]).double()])

    def first_point(self):
        """x0, and then what fills the space; None when there are 2 n + 2 of them."""
        made = len(self.Z)
        return self.box.z0 if made == 0 else self.sobol.draw(1)[0].double() if made < 2 * self.n + 2 else None

    def model(self, rows=slice(None)):
        """A process with its own noise for each output."""
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from botorch.models.transforms import Standardize
        from gpytorch.mlls import ExactMarginalLogLikelihood

        models = []
        for j in range(self.Y.shape[1]):
            one = SingleTaskGP(self.Z[rows], self.Y[rows, j : j + 1], outcome_transform=Standardize(1))
            try:
                fit_gpytorch_mll(ExactMarginalLogLikelihood(one.likelihood, one))
            except Exception:  # as it begins, then
                one.eval()
            models.append(one)
        return ModelListGP(*models)

    def posterior(self, model, Z) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations (k, 1 + m)."""
        import torch

        with torch.no_grad():
            posterior = model.posterior(Z)
        return posterior.mean.numpy(), posterior.variance.clamp_min(1e-18).sqrt().numpy()

    def answer(self, model) -> Answer:
        """The evaluated point with the best posterior mean of those that are feasible with a posterior probability of
        `SURE`; if there is none, the likeliest to be."""
        from scipy.special import log_ndtr

        mean, error = self.posterior(model, self.Z)
        likely = log_ndtr(-mean[:, 1:] / error[:, 1:]).sum(1)
        sure = likely >= math.log(SURE)
        i = np.argmin(np.where(sure, mean[:, 0], np.inf)) if sure.any() else np.argmax(likely)
        return Answer(self.box.x(self.Z[i].numpy()), bool(sure.any()))


def qlognei(oracle: Oracle, problem: Problem, seed: int, budgets: list[int]) -> Iterator[Answer]:
    """BoTorch: the noisy expected improvement (its logarithm, by Monte Carlo) under constraints."""
    import torch
    from botorch.acquisition import qLogNoisyExpectedImprovement
    from botorch.acquisition.objective import GenericMCObjective
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler

    told = Told(oracle, seed)
    unit = torch.stack([torch.zeros(problem.n), torch.ones(problem.n)]).double()
    objective = GenericMCObjective(lambda Y, X=None: -Y[..., 0])
    constraints = [lambda Y, j=j: Y[..., 1 + j] for j in range(problem.m)]
    for budget in budgets:
        while oracle.evaluations < budget:
            z = told.first_point()
            if z is None:
                model = told.model()
                acquisition = qLogNoisyExpectedImprovement(
                    model, told.Z, SobolQMCNormalSampler(torch.Size([128]), seed=seed), objective,
                    constraints=constraints, prune_baseline=True,
                )  # fmt: skip
                z, _ = optimize_acqf(acquisition, unit, q=1, num_restarts=5, raw_samples=256, options={"maxiter": 100})
                z = z[0].detach()
            told.evaluate(z)
        yield told.answer(told.model())


def scbo(oracle: Oracle, problem: Problem, seed: int, budgets: list[int]) -> Iterator[Answer]:
    """SCBO (Eriksson and Poloczek 2021) with BoTorch: Thompson samples in a trust region that doubles after three
    successes in a row and halves after max(4, n) failures, one point at a time."""
    import torch
    from gpytorch.settings import max_cholesky_size

    told, n = Told(oracle, seed), problem.n
    length, successes, failures, begin, best = 0.8, 0, 0, 0, None
    for budget in budgets:
        while oracle.evaluations < budget:
            fresh = len(told.Z) - begin
            if fresh < 2 * n + 2:
                told.evaluate(told.first_point() if begin == 0 else told.sobol.draw(1)[0].double())
                continue
            model = told.model(slice(begin, None))
            mean, _ = told.posterior(model, told.Z[begin:])
            broken = np.maximum(mean[:, 1:], 0).sum(1)
            centre = int(np.lexsort((mean[:, 0], broken))[0])
            if best is not None:  # was the latest point a success?
                better = centre == fresh - 1
                successes, failures = (successes + 1, 0) if better else (0, failures + 1)
                if successes == 3:
                    length, successes = min(2 * length, 1.6), 0
                elif failures == max(4, n):
                    length, failures = length / 2, 0
            best = centre
            if length < 0.5**7:
                length, successes, failures, begin, best = 0.8, 0, 0, len(told.Z), None
                continue
            z = told.Z[begin + centre]
            low, high = (z - length / 2).clamp(0, 1), (z + length / 2).clamp(0, 1)
            cloud = low + (high - low) * told.sobol.draw(2000).double()
            moved = torch.rand(cloud.shape) <= min(20 / n, 1.0)
            cloud = torch.where(moved, cloud, z)
            with torch.no_grad(), max_cholesky_size(math.inf):
                drawn = [one.posterior(cloud).rsample()[0, :, 0] for one in model.models]
            broken = torch.stack(drawn[1:]).clamp_min(0).sum(0)
            chosen = torch.where(broken > 0, 1e9 + broken, drawn[0]).argmin()
            told.evaluate(cloud[chosen])
        yield told.answer(told.model())


def optuna_solver(sampler_of: Callable) -> Callable[[Oracle, Problem, int, list[int]], Iterator[Answer]]:
    """A sampler of Optuna; the best trial that kept the constraints, as `study.best_trial` has it."""

    def solve(oracle: Oracle, problem: Problem, seed: int, budgets: list[int]) -> Iterator[Answer]:
        import optuna

        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = sampler_of(optuna, seed, lambda trial: trial.user_attrs["c"])
        study, names = optuna.create_study(sampler=sampler), [f"x{i}" for i in range(problem.n)]
        study.enqueue_trial(dict(zip(names, problem.x0.tolist())))
        seen = []
        for budget in budgets:
            while oracle.evaluations < budget:
                trial = study.ask()
                x = np.array([trial.suggest_float(name, *pair) for name, pair in zip(names, problem.bounds)])
                f, c = oracle(x)
                trial.set_user_attr("c", c.tolist())
                study.tell(trial, float(f))
                seen.append((max(0.0, float(c.max())), float(f), x))
            broken, _, x = min(seen, key=lambda row: row[:2])
            yield Answer(x, broken == 0)

    return solve


def _tpe(optuna, seed: int, constraints):
    return optuna.samplers.TPESampler(seed=seed, constraints_func=constraints)


def _gp(optuna, seed: int, constraints):
    import torch

    torch.set_num_threads(1)
    return optuna.samplers.GPSampler(seed=seed, constraints_func=constraints)


def cobyqa(oracle: Oracle, problem: Problem, seed: int) -> Answer:
    """SciPy's COBYQA on averages, of so many evaluations that there are about 10 (n + 1) of them."""
    return averaged_cobyqa(Simulator(oracle, max(1, oracle.budget // (10 * (problem.n + 1)))), problem, seed)


ANYTIME: dict[str, Callable[[Oracle, Problem, int, list[int]], Iterator[Answer]]] = {
    "botorch-qlognei": qlognei,
    "botorch-scbo": scbo,
    "optuna-tpe": optuna_solver(_tpe),
    "optuna-gp": optuna_solver(_gp),
}
PLANNED: dict[str, Callable[[Oracle, Problem, int], Answer]] = {"pycma": pycma, "cobyqa": cobyqa}
