"""The results in brief: verdicts, one table at equal iterations, one at equal steps, and the protocol."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pcces.studies.arm_results import (
    ArmResult,
    Comparison,
    at_equal_steps,
    by_label,
    comparisons,
    count_runs,
    results_of,
)
from pcces.studies.catalogue import EXPERIMENTS, HEADLINES
from pcces.studies.claims import by_rival
from pcces.studies.claims.returns import price
from pcces.studies.markdown_page import ABOUT, table
from pcces.studies.statistics import Interval, verdict, wins
from pcces.studies.store import Store
from pcces.studies.tables import Rows
from pcces.studies.verdicts import answer, judged, together

INTRODUCTION = """# Results in brief

We ran the experiments of the paper again (Diouane, Lucchi and Patil, AISTATS 2022), with PCCES and our implementations of the other algorithms.
This page is a summary; [the whole page]({page}) has all figures and tables. `pcces reproduce --page` writes both from the result files.
"""
ITERATIONS = """## At equal iterations

The paper compares algorithms after equally many iterations. Each row is one other algorithm, on all its tasks and population sizes. *Higher* and *lower* count the comparisons whose 95 % interval
of the difference in return, paired by seed, does not contain zero. *Steps* are the environment steps of PCCES divided by those of the other algorithm.
"""
STEPS = """## At equal environment steps

This comparison is fairer if environment steps are expensive. It is made where the shorter of the two runs ended.
"""
SAFETY = """## Keeping limits

These are the runs on tasks with a cost limit. *Certified*: the returned policy keeps its limit with 95 % confidence. *Over in training*: the share of iterations whose policy exceeded the limit.
"""
PROTOCOL = """## Protocol

- Every run returns the best of its policies that fresh episodes certify. The same code measures all algorithms, on fresh episodes.
- Each comparison is judged by itself. Of forty differences that are zero, about one will look lower. The whole page also corrects for the number of comparisons (Holm's method).
- A verdict is computed from the results: *reproduced*, *exceeded* (better than in the paper), *not reached*, or *not run at full scale*.
"""


def make_brief_page(store: Store, page: str) -> str:
    """The page as Markdown; `page` is the link to the whole one."""
    by_name = {name: results_of(experiment, store) for name, experiment in EXPERIMENTS.items()}
    claimed = together(list(dict.fromkeys(name for headline in HEADLINES for name in headline.experiments)), by_name)
    found = by_rival(comparisons(claimed))
    about = store.folder / ABOUT
    parts = [
        INTRODUCTION.format(page=page),
        about.read_text(encoding="utf-8") if about.exists() else "",
        verdicts(by_name),
    ]
    if found:
        parts += [ITERATIONS, as_table(*at_equal_iterations(found)), STEPS, as_table(*after_equal_steps(found))]
    if by_name["safe"]:
        parts += [SAFETY, as_table(*limits_kept(by_name["safe"]))]
    return "\n".join(filter(None, [*parts, PROTOCOL]))


def verdicts(by_name: dict[str, list[ArmResult]]) -> str:
    """The paper's two claims, and its figures and tables by verdict."""
    lines = ["## Verdicts", ""]
    for headline in HEADLINES:
        results = together(headline.experiments, by_name)
        finding = headline.judge(EXPERIMENTS[headline.experiments[0]], results)
        lines += [f"- The paper: {headline.claim} **{answer(headline, results, finding)}**"]
    titles: dict[str, list[str]] = {}
    for name, results in by_name.items():
        titles.setdefault(judged(EXPERIMENTS[name], results)[0], []).append(EXPERIMENTS[name].title)
    rows = [[words, str(len(some)), "; ".join(some)] for words, some in titles.items()]
    return "\n".join([*lines, "", *table(["verdict", "", "figures and tables"], rows), ""])


def at_equal_iterations(found: dict[str, list[Comparison]]) -> tuple[list[str], Rows]:
    """Columns, and a row for each other algorithm."""
    rows = []
    for name, pairs in found.items():
        chance = wins([(pair.ours.values("return"), pair.theirs.values("return")) for pair in pairs])
        rows.append([name, *counted([pair.gap for pair in pairs]), str(chance), price(pairs)])
    return ["PCCES compared with", *COUNTED, "PCCES ends higher with probability", "steps"], rows


def after_equal_steps(found: dict[str, list[Comparison]]) -> tuple[list[str], Rows]:
    """Columns, and a row for each other algorithm."""
    rows = [[name, *counted([at_equal_steps(pair) for pair in pairs])] for name, pairs in found.items()]
    return ["PCCES compared with", *COUNTED], rows


COUNTED = ("comparisons", "higher", "no clear difference", "lower")


def counted(gaps: Sequence[Interval]) -> list[str]:
    """How many differences there are, and how many of each kind.

    >>> counted([Interval(1.0, 0.5, 1.5), Interval(0.0, -1.0, 1.0)])
    ['2', '1', '1', '0']
    """
    words = [verdict(gap) for gap in gaps]
    return [str(len(words)), *(str(words.count(name)) for name in COUNTED[1:])]


def limits_kept(results: Sequence[ArmResult]) -> tuple[list[str], Rows]:
    """Columns, and a row for each algorithm on all tasks with a limit."""
    rows = []
    for name, several in by_label(results).items():
        over = np.mean([value for result in several for value in result.values("over")])
        certified = sum(result.certified() for result in several)
        rows.append([name, str(len(several)), f"{certified} of {count_runs(several)}", f"{100 * over:.0f} %"])
    return ["algorithm", "tasks", "certified", "over in training"], rows


def as_table(columns: Sequence[str], rows: Rows) -> str:
    """As Markdown."""
    return "\n".join([*table(columns, rows), ""])
