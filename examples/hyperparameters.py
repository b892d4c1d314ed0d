"""Choose a model's hyper-parameters: the smallest validation error, at a mean latency of at most 1 millisecond.

The model is a ridge regression on random features. Each evaluation trains it on another half of the data, so errors are noisy,
and so is the latency, as on a shared server.

    python examples/hyperparameters.py
"""

import sys
from pathlib import Path

import numpy as np

import pcces

ACTIVATIONS = {"relu": lambda z: np.maximum(z, 0), "tanh": np.tanh, "cos": np.cos}
COST = {"relu": 1.0, "tanh": 2.5, "cos": 3.0}  # of an activation, beside a multiplication


def data(count=600):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (count, 5))
    return X, np.sin(4 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 - X[:, 3] * X[:, 4] + 0.1 * rng.standard_normal(count)


X, Y = data()


def fitted(choice, rng):
    """Validation error of a model trained on half of the data, and how long a prediction takes, in milliseconds."""
    order = rng.permutation(len(X))
    train, test = order[::2], order[1::2]
    W = np.random.default_rng(1).standard_normal((X.shape[1] + 1, choice["features"])) * choice["scale"]
    Z = ACTIVATIONS[choice["activation"]](np.column_stack([X, np.ones(len(X))]) @ W)
    A = Z[train].T @ Z[train] + choice["ridge"] * len(train) * np.eye(Z.shape[1])
    w = np.linalg.solve(A, Z[train].T @ Y[train])
    error = np.sqrt(np.mean((Z[test] @ w - Y[test]) ** 2))
    work = choice["features"] * (X.shape[1] + 2 + COST[choice["activation"]])
    return error, 0.2 + work / 2000 * rng.gamma(20, 1 / 20)


def served(choice, rng):
    error, latency = fitted(choice, rng)
    return error, {"latency": latency - 1.0}


def solve(max_evaluations=400):
    return pcces.minimize(
        served,
        x0={"features": 40, "ridge": 1e-3, "scale": 1.0, "activation": "relu"},
        bounds={
            "features": pcces.Integer(10, 400),
            "ridge": pcces.Log(1e-7, 1.0),
            "scale": pcces.Log(0.1, 5.0),
            "activation": pcces.Choice("relu", "tanh", "cos"),
        },
        max_evaluations=max_evaluations,
        common_random_numbers=True,
        rng=0,
    )


def main() -> int:
    res = solve()
    print(", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in res.x.items()))
    print(f"error {res.fun:.4f}, which is {res.improvement} lower than at the start")
    print(res.message)
    Path("out").mkdir(exist_ok=True)
    res.plot(Path("out") / "hyperparameters.png")
    checks = np.array([fitted(res.x, np.random.default_rng(seed)) for seed in range(10**6, 10**6 + 300)]).mean(0)
    print(f"check: error {checks[0]:.4f}, latency {checks[1]:.3f} ms; the search is drawn in out/hyperparameters.png")
    return 0 if res.success else 1


if __name__ == "__main__":
    sys.exit(main())
