"""docs/results.md, from the results: what the paper reports, what we got, and whether that is the same."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from pcces.report import draw, draw_dots
from pcces.studies.arms import Store
from pcces.studies.catalogue import EXPERIMENTS, HEADLINES, Experiment, Headline
from pcces.studies.claims import REPRODUCED, Finding
from pcces.studies.curves import columns, drawn, outcomes, panels
from pcces.studies.results import Found, known
from pcces.studies.tables import AT_A_GLANCE, Rows, beside, finals, in_short, judged, made_on, scale

ALT = "return and cost during training, with 95 % bands over seeds"
INTRODUCTION = """# The paper's experiments, run again

The paper: Diouane, Lucchi and Patil, *A Globally Convergent Evolutionary Strategy for Stochastic Constrained Optimization with Applications to Reinforcement
Learning*, AISTATS 2022. PCCES is its algorithm, the Provably Convergent Constrained Evolution Strategy, as this library has it.

Made by `pcces reproduce --page` from the result files, never by hand.

- **Returns and costs** are those of the policy that a run returns, measured on fresh episodes by the same code for every algorithm. *Certified*: that policy keeps
  its limits with 95 % confidence. *Over*: the share of training iterations whose policy cost more than allowed, on fresh episodes. *Samples*: policies tried in an iteration.
- **Intervals**, in brackets, are 95 % bootstrap intervals of the mean over seeds, made wider as Student's t is where seeds are few; bands in the pictures likewise. IQM is the mean of
  the middle half of the seeds. Differences are paired by seed, and *higher* or *lower* is said only of an interval without zero. Each stands for itself: of forty differences that
  are none, about one will look *lower*; what is clear of all together is said, too.
- **Verdicts** are computed: *reproduced*, *exceeded* (better than the paper's), *not reached*, *not run at full scale*. A mark is reached if the mean over seeds is, to four digits.
- **Steps** leave out the 8 episodes of each of 1024 random policies (256 with the preset noisy, none on PyBullet's) from which an evolution strategy picks its first one. **Times**
  are those of all seeds of an arm (an algorithm on a task with its settings), side by side.
"""
ABOUT = "about.md"  # in the folder of results: what is to be said of these


def page(store: Store, pictures: Path, beside_: Path) -> str:
    """The whole page as Markdown; pictures are drawn into a folder and linked relative to `beside_`."""
    results = {name: known(experiment, store) for name, experiment in EXPERIMENTS.items()}
    about = store.folder / ABOUT
    parts = [
        INTRODUCTION,
        about.read_text(encoding="utf-8") if about.exists() else "",
        glance(results["safe"], pictures, beside_),
        headlines(results, pictures, beside_),
        summary(results),
    ]
    for name, found in results.items():
        parts.append(section(EXPERIMENTS[name], found, pictures, beside_))
    return "\n".join(filter(None, parts))


def glance(found: Sequence[Found], pictures: Path, beside_: Path) -> str:
    """Safe training in one table and one picture; the README has them, too."""
    if not found:
        return ""
    lines = ["## At a glance", "", AT_A_GLANCE, "", *at_a_glance(found), ""]
    if charts := drawn(found):
        picture = draw(charts, pictures / "glance.png", columns=2)
        lines += [f"![{ALT}]({os.path.relpath(picture, beside_)})", ""]
    return "\n".join(lines)


def at_a_glance(found: Sequence[Found]) -> list[str]:
    """The table of it, as Markdown."""
    columns, rows = in_short(found)
    return table(columns, [[f"**{name}**" if name == "PCCES" else name, *cells] for name, *cells in rows])


def headlines(results: dict[str, list[Found]], pictures: Path, beside_: Path) -> str:
    """The paper's claims as a whole, tested; and the first of them, which is about many comparisons, drawn."""
    lines = ["## The two claims", ""]
    for number, headline in enumerate(HEADLINES, 1):
        found = together(headline.experiments, results)
        finding = headline.judge(EXPERIMENTS[headline.experiments[0]], found)
        lines += [f"{number}. {headline.claim} **{answer(headline, found, finding)}**", ""]
        lines += [f"   {line}" for line in said(finding)] + [""]
    dots = outcomes(together(HEADLINES[0].experiments, results))
    if dots.rows:
        picture = draw_dots(dots, pictures / "outcomes.png")
        lines += [f"{dots.title}: {dots.note}", "", f"![{dots.title}]({os.path.relpath(picture, beside_)})", ""]
    return "\n".join(lines)


def answer(headline: Headline, found: Sequence[Found], finding: Finding) -> str:
    """Whether a claim holds, in a sentence."""
    if not finding.parts:
        return "Not tested yet."
    if not any(one.full for one in found):
        return "Not tested at full scale."
    so_far = "" if complete(headline, found) else ", in what has run so far"
    price = f", with {finding.price} times the steps of the others" if finding.price not in ("", "1") else ""
    return f"This holds{so_far}{price}." if finding.verdict == REPRODUCED else f"This does not hold{so_far}."


def complete(headline: Headline, found: Sequence[Found]) -> bool:
    """Whether all that a claim is tested on ran at full scale."""
    arms = {arm.key for name in headline.experiments for arm in EXPERIMENTS[name].arms}
    return sum(one.full for one in found) == len(arms)


def together(names: Sequence[str], results: dict[str, list[Found]]) -> list[Found]:
    """The results of several experiments; an arm that they share counts once."""
    return list({one.asked.key: one for name in names for one in results[name]}.values())


def said(finding: Finding) -> list[str]:
    """Parts and remarks as a list."""
    signs = {True: "holds", False: "**does not hold**"}
    return [f"- {signs[part.holds]}: {part.said}" for part in finding.parts] + [f"- {line}" for line in finding.remarks]


def summary(results: dict[str, list[Found]]) -> str:
    """Every figure and table in a line."""
    rows = []
    for name, found in results.items():
        experiment = EXPERIMENTS[name]
        title = f"[{experiment.title}](#{anchor(experiment.title)})"
        rows.append([experiment.where, title, scale(experiment, found), judged(experiment, found)[0]])
    return "\n".join(["## Figures and tables", "", *table(["paper", "what", "scale", "verdict"], rows), ""])


def anchor(title: str) -> str:
    """The address of a heading, as GitHub makes it.

    >>> anchor("Entropy during training, and its bounds")
    'entropy-during-training-and-its-bounds'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def section(experiment: Experiment, found: Sequence[Found], pictures: Path, beside_: Path) -> str:
    """One experiment: claim, verdict, picture, numbers, comparisons."""
    words, finding = judged(experiment, found)
    lines = [
        f"## {experiment.title}",
        "",
        experiment.about(),
        "",
    ]
    lines += [f"Verdict: **{words}**. {scale(experiment, found)}.", "", *said(finding), ""]
    if not found:
        return "\n".join([*lines, f"    pcces reproduce {experiment.name} --scale paper", ""])
    picture = draw(panels(experiment, found), pictures / f"{experiment.name}.png", columns=columns(experiment, found))
    lines += [f"![{experiment.title}]({os.path.relpath(picture, beside_)})", ""]
    lines += [*table(*finals(experiment, found)), ""]
    compared, rows = beside(experiment, found)
    lines += [*table(compared, rows), ""] if rows else []
    return "\n".join([*lines, made_on(found), ""])


def table(columns: Sequence[str], rows: Rows) -> list[str]:
    """As Markdown."""
    lines = [list(columns), ["---"] * len(columns), *rows]
    return ["| " + " | ".join(row) + " |" for row in lines]
