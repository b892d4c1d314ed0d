"""How far above the mean the upper bounds lie, beside those of others, as markdown; some minutes.

    python -m benchmarks.certificates.widths --confseq .venv-confseq      # a folder with confseq, or none

Bounds that are wrong with probability 0.05 at most, on values between 0 and 1; widths are means over many samples, in units of
the range. The upper end of confseq's `betting_ci` with twice the error has the same error as ours.
"""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

from pcces.core.bounds import betting_bound, binomial_bound, student_bound
from pcces.core.certificate import Column, judge
from pcces.core.limits import CVaR

ERROR = 0.05
SIZES = (30, 100, 300, 1000)
Draw = Callable[[np.random.Generator, int], np.ndarray]
KINDS: dict[str, tuple[Draw, float]] = {
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "uniform on a tenth of the range": (lambda rng, n: 0.45 + 0.1 * rng.random(n), 0.5),
    "beta (0.2, 2): skewed upwards": (lambda rng, n: rng.beta(0.2, 2.0, n), 0.2 / 2.2),
    "beta (2, 0.2): skewed downwards": (lambda rng, n: rng.beta(2.0, 0.2, n), 2.0 / 2.2),
    "0 or 1, P = 0.5": (lambda rng, n: (rng.random(n) < 0.5).astype(float), 0.5),
    "0 or 1, P = 0.05": (lambda rng, n: (rng.random(n) < 0.05).astype(float), 0.05),
    "0 or 1, P = 0.01": (lambda rng, n: (rng.random(n) < 0.01).astype(float), 0.01),
}


def hoeffding(x: np.ndarray) -> float:
    """Hoeffding's bound (1963)."""
    return float(x.mean()) + math.sqrt(math.log(1 / ERROR) / (2 * len(x)))


def bernstein(x: np.ndarray) -> float:
    """The empirical Bernstein bound of Maurer and Pontil (2009)."""
    n, log = len(x), math.log(2 / ERROR)
    return float(x.mean()) + math.sqrt(2 * float(x.var(ddof=1)) * log / n) + 7 * log / (3 * (n - 1))


def clopper_pearson(x: np.ndarray) -> float:
    """By SciPy."""
    test = stats.binomtest(int(x.sum()), len(x), alternative="less")
    return float(test.proportion_ci(1 - ERROR, method="exact").high)


def means(bounds: dict[str, Callable[[np.ndarray], float]], draw: Draw, truth: float, n: int, times: int) -> list[str]:
    """The mean width of each, and how often it was wrong."""
    rng, cells = np.random.default_rng(n), []
    samples = [draw(rng, n) for _ in range(times)]
    for bound in bounds.values():
        found = np.array([min(bound(x), 1.0) for x in samples])
        cells.append(f"{np.mean(found - truth):.4f}")
    return cells


def table(
    title: str, bounds_of: Callable[[str], dict[str, Callable[[np.ndarray], float]]], kinds: list[str], times: int
) -> None:
    """A row for each kind of values and number of samples."""
    names = list(bounds_of(kinds[0]))
    print(f"| {title} | samples | " + " | ".join(names) + " |")
    print("| --- | --- |" + " --- |" * len(names))
    for kind in kinds:
        draw, truth = KINDS[kind]
        for n in SIZES:
            print(f"| {kind} | {n} | " + " | ".join(means(bounds_of(kind), draw, truth, n, times)) + " |", flush=True)


def tails(times: int) -> None:
    """Of the mean of the worst tenth: ours, and Thomas and Learned-Miller's (2019); medians, because few samples may say nothing."""
    print("| CVaR of 0.1 of uniform values | samples | pcces | Thomas and Learned-Miller |\n| --- | --- | --- | --- |")
    truth, limit = 0.95, CVaR(0.1)
    for n in SIZES:
        rng, ours, theirs = np.random.default_rng(n), [], []
        for _ in range(times):
            x = np.sort(rng.random(n))
            order = rng.permutation(n)  # bets are one after the other
            column = Column(limit, range=(-truth, 1 - truth), level=0.9 - truth)
            ours.append(float(judge((x[order] - truth)[:, None], [column], ERROR).bounds[0]))
            band = np.maximum(np.arange(n + 1) / n - math.sqrt(math.log(1 / ERROR) / (2 * n)) - (1 - limit.alpha), 0.0)
            theirs.append(1 - float((np.diff(np.append(x, 1.0)) * band[1:]).sum()) / limit.alpha - truth)
        print(f"| | {n} | {np.median(ours):.4f} | {np.median(theirs):.4f} |", flush=True)


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--confseq", type=Path, help="the folder it was installed into")
    parser.add_argument("--times", type=int, default=200, help="samples of each size")
    arguments = parser.parse_args()
    theirs: dict[str, Callable[[np.ndarray], float]] = {}
    if arguments.confseq is not None:
        sys.path.append(str(arguments.confseq))
        vars(np)["float_"] = np.float64  # confseq 0.0.11 is of a time before NumPy 2
        from confseq.betting import betting_ci

        theirs = {"confseq's bets": lambda x: float(betting_ci(x, alpha=2 * ERROR)[1])}

    def bounds_of(kind: str) -> dict[str, Callable[[np.ndarray], float]]:
        at = np.array([KINDS[kind][1]])
        ours = {"pcces": lambda x: float(betting_bound(x[:, None], ERROR, np.zeros(1), np.ones(1), at=at)[0])}
        if kind.startswith("0 or 1"):
            counts = {
                "pcces": lambda x: binomial_bound(float(x.sum()), len(x), ERROR),
                "Clopper-Pearson": clopper_pearson,
            }
            return {**counts, "pcces's bets": ours["pcces"], **theirs, "Hoeffding": hoeffding}
        student = {"Student (no guarantee)": lambda x: student_bound(x, ERROR)}
        return {**ours, **theirs, "Hoeffding": hoeffding, "empirical Bernstein": bernstein, **student}

    counted = [kind for kind in KINDS if kind.startswith("0 or 1")]
    table("values", bounds_of, [kind for kind in KINDS if kind not in counted], arguments.times)
    print()
    table("outcomes", bounds_of, counted, arguments.times)
    print()
    tails(arguments.times)


if __name__ == "__main__":
    main()
