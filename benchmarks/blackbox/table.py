"""Prints what out/blackbox.jsonl holds as Markdown: a summary, then one table a noise level with a row a problem."""

import sys
from collections import defaultdict
from pathlib import Path

from benchmarks.blackbox.noise import LEVELS
from benchmarks.blackbox.problems import PROBLEMS
from benchmarks.harness import markdown, records


def percent(values: list[bool]) -> str:
    return f"{100 * sum(values) / len(values):.0f}"


def name(level: float) -> str:
    return f"{100 * level:g} % noise" if level else "no noise"


def false_claim(run: dict) -> bool:
    return run["claims_feasible"] and not run["feasible"]


def summary(runs: dict[tuple, list[dict]], solvers: list[str]) -> str:
    """Success in percent (in brackets: truly feasible, too), and the percentage of false claims."""
    rows = []
    for solver in solvers:
        cells, claims, count = [], [], 0
        for level in LEVELS:
            group = [r for problem in PROBLEMS for r in runs[solver, problem, level]]
            count += len(group)
            if not group:
                cells.append("-")
                claims.append("-")
                continue
            true_success = percent([r["success"] and r["feasible"] for r in group])
            cells.append(f"{percent([r['success'] for r in group])} ({true_success})")
            claims.append(percent([false_claim(r) for r in group]))
        rows.append([solver, *cells, " / ".join(claims), str(count)])
    return markdown(["solver", *map(name, LEVELS), "false claims", "runs"], rows)


def breakdown(runs: dict[tuple, list[dict]], solvers: list[str], level: float) -> str:
    """Per problem: successes (truly feasible ones) of runs; an exclamation mark with the number of false claims."""
    solvers = [s for s in solvers if any(runs[s, problem, level] for problem in PROBLEMS)]
    rows = []
    for problem in PROBLEMS.values():
        cells = []
        for solver in solvers:
            group = runs[solver, problem.name, level]
            if not group:
                cells.append("-")
                continue
            true_success = sum(r["success"] and r["feasible"] for r in group)
            false = sum(false_claim(r) for r in group)
            cell = f"{sum(r['success'] for r in group)} ({true_success}) of {len(group)}"
            cells.append(cell + (f" !{false}" if false else ""))
        rows.append([f"{problem.name} ({problem.n})", *cells])
    return markdown([name(level), *solvers], rows)


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "out/blackbox.jsonl")
    runs: dict[tuple, list[dict]] = defaultdict(list)
    for record in records(path):
        runs[record["solver"], record["problem"], record["level"]].append(record)
    found = {solver for solver, _, _ in runs}
    order = ["pcces", "prototype", "cobyqa-margin", "cobyqa", "de", "nomad", "pycma"]
    solvers = [s for s in order if s in found] + sorted(found - set(order))
    print(summary(runs, solvers))
    for level in LEVELS:
        print(f"\n{breakdown(runs, solvers, level)}")


if __name__ == "__main__":
    main()
