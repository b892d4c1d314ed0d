"""What the attacks came to, as markdown: how many certificates were given, and how many of them were false.

python -m benchmarks.certificates.rates                        # from out/certificates.jsonl
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certificates.attack import OUT
from benchmarks.certificates.cases import GROUPS, Case, cases
from benchmarks.harness import markdown, records

Row = dict[str, Any]
GRADES = ("guaranteed", "asymptotic")
CLOSE = 0.12  # of the best objective
PROMISED = 0.05


def false(rows: list[Row], grade: str) -> int:
    """How many certificates of this grade are false."""
    return sum(row["grade"] == grade and not row["feasible"] for row in rows)


def given(rows: list[Row], grade: str) -> int:
    """How many there are."""
    return sum(row["grade"] == grade for row in rows)


def share(part: int, whole: int) -> str:
    """As percents."""
    return f"{100 * part / whole:.3g} %"


def attacks(made: dict[str, list[Row]], group: str) -> str:
    """A row a case: certificates given, and false ones."""
    header = ["attack", "evaluations", "runs", "guaranteed", "of these false", "asymptotic", "of these false"]
    table = []
    for case, rows in of_group(made, group):
        cells = [case.name, str(case.budget), str(len(rows))]
        for grade in GRADES:
            wrong = false(rows, grade)
            cells += [share(given(rows, grade), len(rows)), f"{wrong} ({share(wrong, len(rows))})" if wrong else "0"]
        table.append(cells)
    return markdown(header, table)


def certified(rows: list[Row]) -> tuple[int, list[float]]:
    """How many are truly certified, and how far these are above the best objective."""
    good = [row for row in rows if row["grade"] in GRADES and row["feasible"]]
    return len(good), [row["gap"] for row in good if row["gap"] is not None]


def failures(made: dict[str, list[Row]], group: str) -> str:
    """A row a problem: what was certified, how close to the best, and false ones."""
    header = ["problem", "runs", "certified", "false", "median above the best", "within 12 %, of all runs"]
    table, totals = [], np.zeros(4, dtype=int)
    for case, rows in of_group(made, group):
        wrong, close = sum(false(rows, grade) for grade in GRADES), certified(rows)[1]
        counts = len(rows), sum(given(rows, grade) for grade in GRADES), wrong, sum(gap <= CLOSE for gap in close)
        totals += counts
        table.append(counted(case.name, counts, f"{100 * float(np.median(close)):.2g} %" if close else ""))
    return markdown(header, [*table, counted("all", tuple(totals.tolist()), "")])


def counted(name: str, counts: tuple[int, ...], median: str) -> list[str]:
    """The cells of a row."""
    runs, any_, wrong, near = counts
    return [name, str(runs), share(any_, runs), str(wrong), median, share(near, runs)]


def powers(made: dict[str, list[Row]], group: str) -> str:
    """A row a kind of limit, a column a budget: true certificates, and how far above the best their answers are."""
    found: dict[str, dict[int, list[Row]]] = {}
    for case, rows in of_group(made, group):
        found.setdefault(case.name, {})[case.budget] = rows
    budgets = sorted({budget for by_budget in found.values() for budget in by_budget})
    table = []
    for name, by_budget in found.items():
        every = [row for rows in by_budget.values() for row in rows]
        cells = [name, max(GRADES, key=lambda grade: given(every, grade))]
        for budget in budgets:
            rows = by_budget.get(budget, [])
            good, gaps = certified(rows)
            median = f"; {100 * float(np.median(gaps)):.2g} %" if gaps else ""
            cells.append(f"{share(good, len(rows))}{median}" if rows else "")
        wrong = sum(false(every, grade) for grade in GRADES)
        table.append([*cells, f"{wrong} of {len(every)}"])
    return markdown(["limit", "grade", *map(str, budgets), "false of runs"], table)


def of_group(made: dict[str, list[Row]], group: str) -> list[tuple[Case, list[Row]]]:
    """The cases of a group that were run."""
    return [(case, made[case.key]) for case in cases() if case.group == group and case.key in made]


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    made: dict[str, list[Row]] = {}
    for row in records(parser.parse_args().out):
        made.setdefault(row["case"], []).append(row)
    known = {case.key for case in cases()}
    made = {key: rows for key, rows in made.items() if key in known}
    every = [row for rows in made.values() for row in rows]
    print(f"{len(every)} runs of {len(made)} cases (of {len(known)}).")
    for grade in GRADES:
        total, wrong = given(every, grade), false(every, grade)
        worst = max(made, key=lambda key: false(made[key], grade) / len(made[key]))
        most = share(false(made[worst], grade), len(made[worst]))
        over = sum(false(rows, grade) > PROMISED * len(rows) for rows in made.values())
        print(f"- {grade}: {total} certificates, {wrong} of them false; in {over} cases in more than 5 % of the runs; "
              f"the worst case: {worst}, {most}")  # fmt: skip
    for group, title in GROUPS.items():
        if of_group(made, group):
            print(f"\n### {title}\n")
            print({"failure": failures, "power": powers}.get(group, attacks)(made, group))


if __name__ == "__main__":
    main()
