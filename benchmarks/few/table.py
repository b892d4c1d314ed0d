"""Prints what out/few.jsonl holds as Markdown: a row a solver, a column a budget; then a row a problem."""

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.few.problems import PROBLEMS, TUNED_ON
from benchmarks.few.run import BUDGETS, OUT
from benchmarks.harness import markdown, records

NEAR = 0.05
ORDER = ["pcces", "botorch-qlognei", "botorch-scbo", "optuna-gp", "optuna-tpe", "pycma", "cobyqa"]
Runs = dict[tuple[str, str, int], list[dict]]  # by solver, problem and budget


def near(run: dict) -> bool:
    """Truly feasible, and within 5 % of the optimum."""
    return run["feasible"] and run["gap"] <= NEAR


def cell(runs: list[dict]) -> str:
    """claimed / truly feasible / falsely claimed / near, in percent; median gap of the feasible; median seconds."""
    if not runs:
        return "-"
    counts = [
        [run["claims_feasible"] for run in runs],
        [run["feasible"] for run in runs],
        [run["claims_feasible"] and not run["feasible"] for run in runs],
        [near(run) for run in runs],
    ]
    claimed, feasible, false, close = (f"{100 * np.mean(each):.0f}" for each in counts)
    gaps = [run["gap"] for run in runs if run["feasible"]]
    gap = f"{100 * np.median(gaps):.1f} %" if gaps else "-"
    return f"{claimed} / {feasible} / {false} / **{close}**; {gap}; {np.median([run['seconds'] for run in runs]):.2g} s"


def summary(runs: Runs, solvers: list[str], problems: list[str]) -> str:
    """A row a solver, a column a budget."""
    rows = [
        [solver, *[cell([run for name in problems for run in runs[solver, name, budget]]) for budget in BUDGETS]]
        for solver in solvers
    ]
    return markdown(["", *map(str, BUDGETS)], rows)


def breakdown(runs: Runs, solvers: list[str], budget: int) -> str:
    """By problem, how many runs of how many are feasible and near the optimum."""
    rows = []
    for problem in PROBLEMS.values():
        groups = [runs[solver, problem.name, budget] for solver in solvers]
        cells = [f"{sum(map(near, group))} of {len(group)}" if group else "-" for group in groups]
        rows.append([f"{problem.name} ({problem.n})", *cells])
    return markdown([f"{budget} evaluations", *solvers], rows)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    runs: Runs = defaultdict(list)
    for record in records(path):
        runs[record["solver"], record["problem"], record["budget"]].append(record)
    found = {solver for solver, _, _ in runs}
    solvers = [solver for solver in ORDER if solver in found]
    print(summary(runs, solvers, list(PROBLEMS)))
    print(f"\nThe {len(PROBLEMS) - len(TUNED_ON)} problems that pcces was not tuned on:\n")
    print(summary(runs, solvers, [name for name in PROBLEMS if name not in TUNED_ON]))
    for budget in BUDGETS:
        print(f"\n{breakdown(runs, solvers, budget)}")


if __name__ == "__main__":
    main()
