"""A whole study as one HTML page that works offline: claims, verdicts, curves, numbers, animations, configurations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pcces.report import Chapter, Chart, Charts, Contents, Details, Folded, Marked, Page, Section, Table, Verdict
from pcces.studies.arm_results import ArmResult, machine, results_of
from pcces.studies.catalogue import EXPERIMENTS, HEADLINES
from pcces.studies.charts import glance_charts, outcomes, panels, panels_beside, trace_charts
from pcces.studies.claims import EXCEEDED, NOT_REACHED, REPRODUCED, Finding
from pcces.studies.experiment import Experiment
from pcces.studies.policies import films
from pcces.studies.store import Store
from pcces.studies.tables import AT_A_GLANCE, Rows, comparison_table, final_table, glance_table, machines_and_time
from pcces.studies.verdicts import answer, complete, how_much, judged, together

BANDS = "Every point is a mean over fresh episodes of the policies of a few iterations. Lines are means over seeds, bands are their 95 % bootstrap intervals."
NUMBERS = (
    "The numbers are those of the returned policies on fresh episodes: means over seeds with 95 % bootstrap intervals. IQM: the mean of the middle"
    " half of the seeds. Certified: keeps its limits with 95 % confidence, guaranteed unless it is marked. Over: the share of training iterations above the limit."
)


def make_page(store: Store, say: Callable[[str], None] = lambda text: None) -> Page:
    """The page about all results there are; `say` is told what takes long."""
    by_name = {name: results_of(experiment, store) for name, experiment in EXPERIMENTS.items()}
    sections: list[Section] = glance(by_name["safe"])
    for headline in HEADLINES:
        results = together(headline.experiments, by_name)
        finding = headline.judge(EXPERIMENTS[headline.experiments[0]], results)
        holds = finding.verdict == REPRODUCED and complete(headline, results)
        tested = finding.parts and any(result.full for result in results)
        open_ = not tested or (finding.verdict == REPRODUCED and not holds)
        title = f"{headline.claim} {answer(headline, results, finding)}"
        sections.append(Verdict(None if open_ else holds, title, points(finding)))
    dots = outcomes(together(HEADLINES[0].experiments, by_name))
    sections += [dots] if dots.rows else []
    listed = [EXPERIMENTS[name] for name, results in by_name.items() if results]
    sections.append(
        Contents([(f"{e.where}: {e.title}", e.name, marked(judged(e, by_name[e.name])[0])) for e in listed])
    )
    for name, results in by_name.items():
        sections += chapter(EXPERIMENTS[name], results) if results else []
    sections += films(store, say)
    sections += configurations(together(list(EXPERIMENTS), by_name))
    return Page(
        "The paper's experiments, run again",
        sections,
        "Diouane, Lucchi and Patil's results of PCCES, their Provably Convergent Constrained Evolution Strategy (AISTATS 2022), compared with"
        " our results",
    )


def glance(results: Sequence[ArmResult]) -> list[Section]:
    """Safe training in one table and a few curves."""
    if not results:
        return []
    return [Table("At a glance", *glance_table(results), AT_A_GLANCE), Charts("", glance_charts(results), BANDS)]


def marked(verdict: str) -> Marked | str:
    """Good news, bad news, or none."""
    return Marked(verdict, verdict != NOT_REACHED) if verdict in (REPRODUCED, EXCEEDED, NOT_REACHED) else verdict


def points(finding: Finding) -> list[str]:
    """Parts and remarks of a finding."""
    signs = {True: "✓", False: "✗"}
    return [f"{signs[part.holds]} {part.said}" for part in finding.parts] + list(finding.remarks)


def chapter(experiment: Experiment, results: Sequence[ArmResult]) -> list[Section]:
    """One experiment."""
    words, finding = judged(experiment, results)
    said = experiment.about()
    holds = {REPRODUCED: True, EXCEEDED: True, NOT_REACHED: False}.get(words)
    sections: list[Section] = [
        Chapter(experiment.title, experiment.name, said),
        Verdict(holds, words.capitalize(), points(finding), f"{how_much(experiment, results)}."),
    ]
    sections.append(Charts("Curves", panels(experiment, results), BANDS))
    sections.append(
        Table("Numbers", *_coloured(*final_table(experiment, results)), f"{NUMBERS} {machines_and_time(results)}")
    )
    named, rows = comparison_table(experiment, results)
    if rows:
        sections.append(Table("Differences, paired by seed", *_coloured(named, rows)))
    how = trace_charts(results)
    if how:
        sections.append(Folded("How the searches went: steps accepted, step sizes", [Charts("", how)]))
    return sections


def _coloured(names: list[str], rows: Rows) -> tuple[list[str], list[list[str | Marked]]]:
    """Differences and certificates that are good or bad news."""

    def cell(name: str, text: str) -> str | Marked:
        if name == "certified":
            good, _, all_ = text.partition(" of ")
            return Marked(text, good == all_.partition(" ")[0])
        return Marked(text, text == "higher") if text in ("higher", "lower") else text

    return names, [[cell(name, text) for name, text in zip(names, row)] for row in rows]


def configurations(results: Sequence[ArmResult]) -> list[Section]:
    """The exact settings and versions behind every arm."""
    if not results:
        return []
    each = []
    for result in results:
        where = {name: value for name, value in result.made_on.items() if name != "versions"}
        where |= {f"version of {name}": value for name, value in result.made_on["versions"].items()}
        where |= {f"seed {n} on": machine(run["where"]) for n, run in result.runs.items() if "where" in run}
        asked = {
            "task": result.ran.task,
            "algorithm": result.ran.algorithm,
            "preset": result.ran.preset,
            "cost limit": result.ran.threshold,
        }
        title = f"{result.asked.task}: {result.name}"
        each.append(Details(title, asked | result.settings | {"seeds": sorted(result.runs)} | where))
    return [
        Chapter("Configurations", "configurations", "Every setting, version and machine, arm by arm."),
        Folded(f"{len(each)} arms", each),
    ]


def pictures(store: Store) -> dict[str, tuple[list[Chart], int]]:
    """The charts of every experiment that has results, and how many stand beside each other."""
    by_name = {name: results_of(experiment, store) for name, experiment in EXPERIMENTS.items()}
    return {
        name: (panels(EXPERIMENTS[name], results), panels_beside(EXPERIMENTS[name], results))
        for name, results in by_name.items()
        if results
    }
