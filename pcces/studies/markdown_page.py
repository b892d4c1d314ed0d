"""docs/results/experiments.md, from the results: what the paper reports, what we got, and whether that is the same."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from pcces.report import draw, draw_dots
from pcces.studies.arm_results import ArmResult, results_of
from pcces.studies.catalogue import EXPERIMENTS, HEADLINES
from pcces.studies.charts import glance_charts, outcomes, panels, panels_beside
from pcces.studies.claims import Finding
from pcces.studies.experiment import Experiment
from pcces.studies.store import Store
from pcces.studies.tables import AT_A_GLANCE, Rows, comparison_table, final_table, glance_table, machines_and_time
from pcces.studies.verdicts import answer, how_much, judged, together

ALT = "return and cost during training, with 95 % bands over seeds"
INTRODUCTION = """# The paper's experiments, run again

The paper: Diouane, Lucchi and Patil, *A Globally Convergent Evolutionary Strategy for Stochastic Constrained Optimization with Applications to Reinforcement
Learning*, AISTATS 2022. PCCES is its algorithm, the Provably Convergent Constrained Evolution Strategy, as implemented in this library.

`pcces reproduce --page` writes this page from the result files.

- **Returns and costs** are those of the policy that a run returns, measured on fresh episodes by the same code for every algorithm. *Certified*: this policy keeps
  its limits with 95 % confidence. Certificates are guaranteed for any costs in the range of a step, unless they are marked. *Over*: the share of training iterations whose policy exceeded the limit on fresh episodes. *Samples*: policies tried per iteration.
- **Intervals** in brackets are 95 % bootstrap intervals of the mean over seeds, with a correction for few seeds (Student's t). Bands in the pictures are computed in the same way. IQM is the mean of
  the middle half of the seeds. Differences are paired by seed. *Higher* and *lower* mean that the interval does not contain zero. Each comparison is judged by itself: of forty differences that
  are zero, about one will look *lower*. A second count corrects for the number of comparisons (Holm's method).
- **Verdicts** are computed: *reproduced*, *exceeded* (better than the paper's), *not reached*, *not run at full scale*. A mark is reached if the mean over seeds reaches it to four digits.
- **Steps** of OpenES and ASEBO do not include the 8 episodes of each of 1024 random policies from which they pick their first one (on PyBullet's tasks there are none). **Times** are
  for all seeds of an arm (an algorithm on a task with its settings), run side by side.
"""
ABOUT = "about.md"  # in the folder of results: what is to be said of these


def make_page(store: Store, pictures: Path, home: Path) -> str:
    """The whole page as Markdown; pictures are drawn into a folder and linked relative to the page's `home`."""
    by_name = {name: results_of(experiment, store) for name, experiment in EXPERIMENTS.items()}
    about = store.folder / ABOUT
    parts = [
        INTRODUCTION,
        about.read_text(encoding="utf-8") if about.exists() else "",
        glance(by_name["safe"], pictures, home),
        headlines(by_name, pictures, home),
        summary(by_name),
    ]
    for name, results in by_name.items():
        parts.append(section(EXPERIMENTS[name], results, pictures, home))
    return "\n".join(filter(None, parts))


def glance(results: Sequence[ArmResult], pictures: Path, home: Path) -> str:
    """Safe training in one table and one picture; the README has them, too."""
    if not results:
        return ""
    lines = ["## At a glance", "", AT_A_GLANCE, "", *at_a_glance(results), ""]
    if charts := glance_charts(results):
        picture = draw(charts, pictures / "glance.png", columns=2)
        lines += [f"![{ALT}]({os.path.relpath(picture, home)})", ""]
    return "\n".join(lines)


def at_a_glance(results: Sequence[ArmResult]) -> list[str]:
    """The table of it, as Markdown."""
    names, rows = glance_table(results)
    return table(names, [[f"**{name}**" if name == "PCCES" else name, *cells] for name, *cells in rows])


def headlines(by_name: dict[str, list[ArmResult]], pictures: Path, home: Path) -> str:
    """The paper's claims as a whole, tested; and the first of them, which is about many comparisons, drawn."""
    lines = ["## The two claims", ""]
    for number, headline in enumerate(HEADLINES, 1):
        results = together(headline.experiments, by_name)
        finding = headline.judge(EXPERIMENTS[headline.experiments[0]], results)
        lines += [f"{number}. {headline.claim} **{answer(headline, results, finding)}**", ""]
        lines += [f"    {line}" for line in said(finding)] + [""]
    dots = outcomes(together(HEADLINES[0].experiments, by_name))
    if dots.rows:
        picture = draw_dots(dots, pictures / "outcomes.png")
        lines += [f"{dots.title}: {dots.note}", "", f"![{dots.title}]({os.path.relpath(picture, home)})", ""]
    return "\n".join(lines)


def said(finding: Finding) -> list[str]:
    """Parts and remarks as a list."""
    signs = {True: "holds", False: "**does not hold**"}
    return [f"- {signs[part.holds]}: {part.said}" for part in finding.parts] + [f"- {line}" for line in finding.remarks]


def summary(by_name: dict[str, list[ArmResult]]) -> str:
    """Every figure and table in a line."""
    rows = []
    for name, results in by_name.items():
        experiment = EXPERIMENTS[name]
        title = f"[{experiment.title}](#{anchor(experiment.title)})"
        rows.append([experiment.where, title, how_much(experiment, results), judged(experiment, results)[0]])
    return "\n".join(["## Figures and tables", "", *table(["paper", "what", "scale", "verdict"], rows), ""])


def anchor(title: str) -> str:
    """The address of a heading, as GitHub makes it.

    >>> anchor("Entropy during training, and its bounds")
    'entropy-during-training-and-its-bounds'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def section(experiment: Experiment, results: Sequence[ArmResult], pictures: Path, home: Path) -> str:
    """One experiment: claim, verdict, picture, numbers, comparisons."""
    words, finding = judged(experiment, results)
    lines = [
        f"## {experiment.title}",
        "",
        experiment.about(),
        "",
    ]
    lines += [f"Verdict: **{words}**. {how_much(experiment, results)}.", "", *said(finding), ""]
    if not results:
        return "\n".join([*lines, f"    pcces reproduce {experiment.name} --scale paper", ""])
    picture = draw(
        panels(experiment, results),
        pictures / f"{experiment.name}.png",
        columns=panels_beside(experiment, results),
    )
    lines += [f"![{experiment.title}]({os.path.relpath(picture, home)})", ""]
    lines += [*table(*final_table(experiment, results)), ""]
    compared, rows = comparison_table(experiment, results)
    lines += [*table(compared, rows), ""] if rows else []
    return "\n".join([*lines, machines_and_time(results), ""])


def table(names: Sequence[str], rows: Rows) -> list[str]:
    """As Markdown."""
    lines = [list(names), ["---"] * len(names), *rows]
    return ["| " + " | ".join(row) + " |" for row in lines]
