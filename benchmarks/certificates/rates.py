"""What the attacks came to, as markdown: how many certificates were given, and how many of them were false.

python benchmarks/certificates/rates.py                        # from out/certificates.jsonl
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from attack import OUT, read
from cases import GROUPS, Case, cases

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


def attacks(made: dict[str, list[Row]], group: str) -> None:
    """A row a case: certificates given, and false ones."""
    print("| attack | evaluations | runs | guaranteed | of these false | asymptotic | of these false |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for case, rows in of_group(made, group):
        cells = [case.name, str(case.budget), str(len(rows))]
        for grade in GRADES:
            wrong = false(rows, grade)
            cells += [share(given(rows, grade), len(rows)), f"{wrong} ({share(wrong, len(rows))})" if wrong else "0"]
        print("| " + " | ".join(cells) + " |")


def certified(rows: list[Row]) -> tuple[int, list[float]]:
    """How many are truly certified, and how far these are above the best objective."""
    good = [row for row in rows if row["grade"] in GRADES and row["feasible"]]
    return len(good), [row["gap"] for row in good if row["gap"] is not None]


def failures(made: dict[str, list[Row]], group: str) -> None:
    """A row a problem: what was certified, how close to the best, and false ones."""
    print("| problem | runs | certified | false | median above the best | within 12 %, of all runs |")
    print("| --- | --- | --- | --- | --- | --- |")
    totals = np.zeros(4, dtype=int)
    for case, rows in of_group(made, group):
        wrong, close = sum(false(rows, grade) for grade in GRADES), certified(rows)[1]
        any_ = sum(given(rows, grade) for grade in GRADES)
        near = sum(gap <= CLOSE for gap in close)
        totals += len(rows), any_, wrong, near
        median = f"{100 * float(np.median(close)):.2g} %" if close else ""
        print(
            f"| {case.name} | {len(rows)} | {share(any_, len(rows))} | {wrong} | {median} | {share(near, len(rows))} |"
        )
    runs, any_, wrong, near = map(int, totals)
    print(f"| all | {runs} | {share(any_, runs)} | {wrong} | | {share(near, runs)} |")


def powers(made: dict[str, list[Row]], group: str) -> None:
    """A row a kind of limit, a column a budget: true certificates, and how far above the best their answers are."""
    found: dict[str, dict[int, list[Row]]] = {}
    for case, rows in of_group(made, group):
        found.setdefault(case.name, {})[case.budget] = rows
    budgets = sorted({budget for by_budget in found.values() for budget in by_budget})
    print("| limit | grade | " + " | ".join(map(str, budgets)) + " | false of runs |")
    print("| --- | --- |" + " --- |" * (len(budgets) + 1))
    for name, by_budget in found.items():
        every = [row for rows in by_budget.values() for row in rows]
        grade = max(GRADES, key=lambda grade: given(every, grade))
        cells = [name, grade]
        for budget in budgets:
            rows = by_budget.get(budget, [])
            good, gaps = certified(rows)
            cells.append(
                f"{share(good, len(rows))}; {100 * float(np.median(gaps)):.2g} %" if gaps else "0 %" if rows else ""
            )
        wrong = sum(false(every, grade) for grade in GRADES)
        print("| " + " | ".join([*cells, f"{wrong} of {len(every)}"]) + " |")


def of_group(made: dict[str, list[Row]], group: str) -> list[tuple[Case, list[Row]]]:
    """The cases of a group that were run."""
    return [(case, made[case.key]) for case in cases() if case.group == group and case.key in made]


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    made: dict[str, list[Row]] = {}
    for row in read(parser.parse_args().out):
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
            {"failure": failures, "power": powers}.get(group, attacks)(made, group)


if __name__ == "__main__":
    main()
