"""A whole study as one HTML page that works offline: claims, verdicts, curves, numbers, animations, configurations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pcces.report import (
    Chapter,
    Chart,
    Charts,
    Contents,
    Details,
    Folded,
    Marked,
    Page,
    Section,
    Table,
    Verdict,
)
from pcces.studies.arms import Store
from pcces.studies.catalogue import EXPERIMENTS, HEADLINES, Experiment
from pcces.studies.claims import EXCEEDED, NOT_REACHED, REPRODUCED, Finding
from pcces.studies.curves import columns, drawn, outcomes, panels, traces
from pcces.studies.page import answer, complete, together
from pcces.studies.policies import films
from pcces.studies.results import Found, known, machine
from pcces.studies.tables import AT_A_GLANCE, Rows, beside, finals, in_short, judged, made_on, scale

BANDS = "Every point is a mean over fresh episodes of the policies of a few iterations; lines are means over seeds, bands their 95 % bootstrap intervals."
NUMBERS = (
    "Of the policy that a run returns, on fresh episodes; means over seeds with 95 % bootstrap intervals. IQM: the mean of the middle half of"
    " the seeds. Certified: keeps its limits with 95 % confidence. Over: the share of training iterations above the limit."
)


def study_page(store: Store, say: Callable[[str], None] = lambda text: None) -> Page:
    """The page about all results there are; `say` is told what takes long."""
    results = {name: known(experiment, store) for name, experiment in EXPERIMENTS.items()}
    sections: list[Section] = glance(results["safe"])
    for headline in HEADLINES:
        found = together(headline.experiments, results)
        finding = headline.judge(EXPERIMENTS[headline.experiments[0]], found)
        holds = finding.verdict == REPRODUCED and complete(headline, found)
        tested = finding.parts and any(one.full for one in found)
        open_ = not tested or (finding.verdict == REPRODUCED and not holds)
        title = f"{headline.claim} {answer(headline, found, finding)}"
        sections.append(Verdict(None if open_ else holds, title, points(finding)))
    dots = outcomes(together(HEADLINES[0].experiments, results))
    sections += [dots] if dots.rows else []
    listed = [EXPERIMENTS[name] for name, found in results.items() if found]
    sections.append(
        Contents([(f"{e.where}: {e.title}", e.name, marked(judged(e, results[e.name])[0])) for e in listed])
    )
    for name, found in results.items():
        sections += chapter(EXPERIMENTS[name], found) if found else []
    sections += films(store, say)
    sections += configurations(together(list(EXPERIMENTS), results))
    return Page(
        "The paper's experiments, run again",
        sections,
        "What Diouane, Lucchi and Patil report of PCCES, their Provably Convergent Constrained Evolution Strategy (AISTATS 2022), what came out"
        " here, and whether that is the same",
    )


def glance(found: Sequence[Found]) -> list[Section]:
    """Safe training in one table and a few curves."""
    if not found:
        return []
    return [Table("At a glance", *in_short(found), AT_A_GLANCE), Charts("", drawn(found), BANDS)]


def marked(verdict: str) -> Marked | str:
    """Good news, bad news, or none."""
    return Marked(verdict, verdict != NOT_REACHED) if verdict in (REPRODUCED, EXCEEDED, NOT_REACHED) else verdict


def points(finding: Finding) -> list[str]:
    """Parts and remarks of a finding."""
    signs = {True: "✓", False: "✗"}
    return [f"{signs[part.holds]} {part.said}" for part in finding.parts] + list(finding.remarks)


def chapter(experiment: Experiment, found: Sequence[Found]) -> list[Section]:
    """One experiment."""
    words, finding = judged(experiment, found)
    said = experiment.about()
    holds = {REPRODUCED: True, EXCEEDED: True, NOT_REACHED: False}.get(words)
    sections: list[Section] = [
        Chapter(experiment.title, experiment.name, said),
        Verdict(holds, words.capitalize(), points(finding), f"{scale(experiment, found)}."),
    ]
    sections.append(Charts("Curves", panels(experiment, found), BANDS))
    sections.append(Table("Numbers", *_coloured(*finals(experiment, found)), f"{NUMBERS} {made_on(found)}"))
    named, rows = beside(experiment, found)
    if rows:
        sections.append(Table("Differences, paired by seed", *_coloured(named, rows)))
    how = traces(found)
    if how:
        sections.append(Folded("How the searches went: steps accepted, step sizes", [Charts("", how)]))
    return sections


def _coloured(names: list[str], rows: Rows) -> tuple[list[str], list[list[str | Marked]]]:
    """Differences and certificates that are good or bad news."""

    def cell(name: str, text: str) -> str | Marked:
        if name == "certified":
            good, _, all_ = text.partition(" of ")
            return Marked(text, good == all_)
        return Marked(text, text == "higher") if text in ("higher", "lower") else text

    return names, [[cell(name, text) for name, text in zip(names, row)] for row in rows]


def configurations(found: Sequence[Found]) -> list[Section]:
    """The exact settings and versions behind every arm."""
    if not found:
        return []
    each = []
    for one in found:
        where = {name: value for name, value in one.where.items() if name != "versions"}
        where |= {f"version of {name}": value for name, value in one.where["versions"].items()}
        where |= {f"seed {n} on": machine(run["where"]) for n, run in one.runs.items() if "where" in run}
        asked = {
            "task": one.ran.task,
            "algorithm": one.ran.algorithm,
            "preset": one.ran.preset,
            "cost limit": one.ran.threshold,
        }
        title = f"{one.asked.task}: {one.name}"
        each.append(Details(title, asked | one.settings | {"seeds": sorted(one.runs)} | where))
    return [
        Chapter("Configurations", "configurations", "Every setting, version and machine, arm by arm."),
        Folded(f"{len(each)} arms", each),
    ]


def pictures(store: Store) -> dict[str, tuple[list[Chart], int]]:
    """The charts of every experiment that has results, and how many stand beside each other."""
    found = {name: known(experiment, store) for name, experiment in EXPERIMENTS.items()}
    return {
        name: (panels(EXPERIMENTS[name], some), columns(EXPERIMENTS[name], some))
        for name, some in found.items()
        if some
    }
