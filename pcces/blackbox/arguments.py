"""The arguments of `pcces.minimize` that are not in `pcces.Options`, each explained in one line."""

from __future__ import annotations

from pcces.support.settings import FIRST, RESEARCH, SOMETIMES, Explained

# Their defaults stand in `pcces.minimize` and `pcces.Optimizer`.
ARGUMENTS = {
    name: Explained(name, "", words, use)
    for use, group in {
        FIRST: {
            "fun": "fun(x) returns f, or (f, c) with c <= 0 where the constraints hold; values may be noisy",
            "x0": "where the search starts, or several such points; None: in the middle of the bounds",
            "constraints": "callables c(x) <= 0, or SciPy's",
            "bounds": "pairs, SciPy's, pcces.Integer, Log and Choice, or a dictionary that names the variables",
            "max_evaluations": "maximum number of calls of fun, including those of the certificate; None: 2000 per variable",
            "confidence": "confidence of the certificate",
            "workers": "processes that evaluate (-1: one per core), a map-like callable, or an executor",
            "rng": "a seed or a generator: the same seed gives the same search",
        },
        SOMETIMES: {
            "strategy": "default, model, gp, cma, guided, gaussian, asebo, or a Strategy: where the search looks",
            "equalities": "which c of (f, c) must be 0, instead of at most 0",
            "common_random_numbers": "call fun(x, rng), so that compared points can share their random numbers",
            "engine": "local (processes) or ray (a cluster)",
            "asynchronous": "keep all workers busy if the durations of evaluations differ",
            "timeout": "seconds after which an evaluation on a worker has failed",
            "vectorized": "fun gets all points of a batch at once, (k, n)",
            "callback": "callback(result) after each iteration; True ends the search",
            "progress": "show the progress on standard error; None: on a terminal",
            "checkpoint": "file that the search is saved to and resumed from",
            "initial_data": "earlier evaluations: (points, f), (points, f, c) or a table; models learn from them",
            "args": "further arguments of fun, after x",
            "integrality": "which variables are integers, as in scipy.optimize.milp",
            "scale": "typical size of a change in each variable; None: the width of its bounds, or max(1, |x0|)",
        },
        RESEARCH: {
            "ray_address": "the Ray cluster; None: one on this machine",
            "preset": "the options to start from: default or paper",
            "linear": "scipy.optimize.LinearConstraint, kept by projection (`constraints` takes them too)",
            "tol": "SciPy's name of sigma_stop",
            "maxiter": "SciPy's name of max_iterations",
            "maxfev": "SciPy's name of max_evaluations",
            "options": "further arguments in a dictionary, as in SciPy",
        },
    }.items()
    for name, words in group.items()
}
