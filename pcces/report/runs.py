"""The report of training runs: certificate, the policy at work, curves, final numbers and configuration."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path

from pcces.core.certificate import by_grade
from pcces.report.concerns import concerns
from pcces.report.curves import charts, variants
from pcces.report.episodes import single_episodes
from pcces.report.page import Charts, Columns, Details, Marked, Page, Picture, Section, Stacked, Table, Verdict, plain
from pcces.report.protocols import Filming, ReportedRun

log = logging.getLogger("pcces")


def write(runs: Sequence[ReportedRun], path: str | Path, film: Filming | None = None) -> Path:
    """Write the report of one run or several (seeds, algorithms, tasks).

    `film` gives the animation of a run's policy (`pcces.rl.film.ordinary_film`), and is asked for that of the best one.

    >>> import tempfile
    >>> import pcces
    >>> run = pcces.train("CartPole-v0", steps=8_000, certify_episodes=50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write([run], folder + "/report.html").name
    'report.html'
    """
    return make_page(runs, film).save(path)


def make_page(runs: Sequence[ReportedRun], film: Filming | None = None, over: str = "iteration") -> Page:
    """The page `write` writes; its curves are drawn `over` this, until the reader chooses otherwise."""
    if not runs:
        raise ValueError("a report needs at least one run")
    by_task: dict[str, list[ReportedRun]] = {}
    for run in runs:
        by_task.setdefault(run.config["task"], []).append(run)
    sections: list[Section] = [_verdict(runs), *_concerns(runs)]
    for task, runs_on_task in by_task.items():
        where = f" on {task}" if len(by_task) > 1 else ""
        columns = at_work(runs_on_task, where, film) if film else []
        alone = runs_on_task[0] if len(runs_on_task) == 1 else None
        columns.append(Stacked([_numbers(alone), *took(alone)]) if alone else _table(runs_on_task, where))
        sections.append(Columns(columns))
        sections += single_episodes(alone) if alone else []
        sections.append(Charts(f"Training{where}", charts(runs_on_task, over), _about_bands(runs_on_task)))
    for name, same in variants(runs).items():
        sections.append(Details(_about(name, same, len(by_task) > 1), _configuration(same[0])))
    lengths = " or ".join(dict.fromkeys(str(run.config["settings"]["iterations"]) for run in runs))
    subtitle = f"{', '.join(variants(runs))}; {lengths} iterations; {_seeds(runs)}"
    return Page(", ".join(by_task), sections, subtitle)


def best(runs: Sequence[ReportedRun]) -> ReportedRun | None:
    """The finished, certified run with the highest return; if none is certified, the one with the highest return."""
    done = [run for run in runs if run.certificate is not None]
    return max(done, key=lambda run: (run.certificate.holds, run.final["return"]), default=None)  # type: ignore[union-attr]


def _verdict(runs: Sequence[ReportedRun]) -> Verdict:
    done = [run for run in runs if run.certificate is not None]
    if len(done) < len(runs):
        return Verdict(None, f"{len(runs) - len(done)} of {len(runs)} not finished: no certificate yet")
    certificates = [run.certificate for run in done if run.certificate is not None]
    first = certificates[0]
    if not runs[0].problem.cost_limits and all(c.holds and not c.upper_bounds for c in certificates):
        return Verdict(None, "No limits: nothing to certify", note=f"{first.samples} fresh episodes were played.")
    sure = f"{100 * first.confidence:g} % confidence"
    if len(runs) > 1:
        good = sum(c.holds for c in certificates)
        note = "" if good == len(runs) else "The table says which; a policy that is not certified may break its limits."
        grades = f" ({by_grade(certificates)})" if good else ""
        said = f"{good} of {len(runs)} runs certified{grades}, each with {sure}"
        return Verdict(good == len(runs), said, note=note, doubtful=not all(c.guaranteed for c in certificates))
    title = f"Certified with {sure} ({first.grade})" if first.holds else f"Not certified at {sure}"
    fresh = f"From {first.samples} fresh episodes ({first.method} bound), {_tested(first.tested)}."
    fresh += f" It assumes that {'; that '.join(first.assumes)}." if first.holds else ""
    fresh += f" {first.warning()}." if first.warning() else ""
    note = fresh if first.holds else f"{fresh} This policy may break its limits: train longer, or allow more."
    limits = runs[0].limits() or ["there are no limits to keep"]
    return Verdict(first.holds, title, limits, note, doubtful=not first.guaranteed)


def _concerns(runs: Sequence[ReportedRun]) -> list[Section]:
    """What else is to be known, under the verdict."""
    said: dict[str, tuple[str, list[int]]] = {}
    for run in runs:
        for words in concerns(run):
            said.setdefault(words.split(" (")[0], (words, []))[1].append(run.config["seed"])
    points = [
        words + (f" (seeds {', '.join(map(str, seeds))})" if len(runs) > 1 else "") for words, seeds in said.values()
    ]
    return [Verdict(None, "Warnings", points, warning=True)] if points else []


def _tested(count: int) -> str:
    return "the first policy tested" if count == 1 else f"the {count} policies tested share the confidence"


def at_work(runs: Sequence[ReportedRun], where: str, film: Filming) -> list[Section]:
    """The best policy of some runs, filmed; none where no run is finished."""
    run = best(runs)
    if run is None:
        return []
    try:
        made = film(run)
    except Exception as error:  # the drawing is the task's own code: a fault there must not cost the report
        log.warning("the animation%s could not be drawn (%s: %s)", where, type(error).__name__, error)
        return [Verdict(None, f"The animation{where} could not be drawn", note=f"{type(error).__name__}: {error}")]
    costs, means = (
        "".join(f", {name} {cost:.4g}" for name, cost in zip(run.problem.cost_names, values))
        for values in (made.costs, run.final["costs"])
    )
    whose = f" of seed {run.config['seed']}, the best" if len(runs) > 1 else ""
    caption = (
        f"One typical episode{whose}: return {made.total:.4g}{costs}; the mean of {run.final['episodes']} fresh ones is"
    )
    caption += f" {run.final['return']:.4g}{means}."
    if costs and run.problem.on_means:
        caption += " Limits hold for the mean; a single episode may exceed them."
    return [
        Picture(f"The policy at work{where}", made.gif, f"animation of the policy on {run.config['task']}", caption)
    ]


def _numbers(run: ReportedRun) -> Section:
    """The final numbers of one run, a line a quantity."""
    if not run.final:
        done = len(run.metrics.get("iteration", []))
        return Table("So far", ["", "value"], [["iterations", done]])
    final, problem = run.final, run.problem
    rows: list[list[str]] = [["return", _with_error(final, "return"), ""]]
    for i, name in enumerate(problem.cost_names):
        value = f"{final['costs'][i]:.4g} ± {final['costs_error'][i]:.2g}"
        limit = problem.cost_limits[i]
        rows.append([name, value, f"at most {limit.value:g}" if limit.kind == "mean" else ""])
        if limit.kind != "mean":
            rows.append([limit.quantity, f"{final['limited'][i]:.4g}", f"at most {limit.most:g}"])
    low, high = problem.entropy_bounds
    rows.append(["entropy", _with_error(final, "entropy"), f"{low:g} to {high:g}"])
    rows.append(["length", _with_error(final, "length"), f"at most {run.task.max_steps}"])
    note = f"Means over the certificate's {final['episodes']} fresh episodes, ± standard error."
    return Table("Final numbers", ["", "mean", "limit"], rows, note)


def _with_error(final: dict, name: str) -> str:
    error = final[f"{name}_error"]
    return f"{final[name]:.4g} ± {error:.2g}" if error else f"{final[name]:.4g}"


def took(run: ReportedRun) -> list[Section]:
    """What was played for a policy, and what that cost: samples and random first policies included."""
    metrics, final = run.metrics, run.final
    if not metrics.get("steps"):
        return []
    names = run.problem.cost_names
    certifying = [final.get("certification_steps"), *final.get("certification_costs", [None] * len(names))]
    training = [metrics["steps"][-1], *([math.nan, *metrics.get(f"total_cost_{name}", ())][-1] for name in names)]
    rows = [
        [name, _counted(a), _counted(b)]
        for name, a, b in zip(["steps", *names], training, certifying)
        if math.isfinite(a)  # earlier versions did not note costs
    ]
    rows.append(["seconds", f"{metrics['seconds'][-1]:.1f}", "–"])
    note = "Totals over all episodes of the training, including samples, trial points and the first random policies."
    return [Table("What it took", ["", "training", "certification"], rows, note)]


def _counted(total: float | None) -> str:
    """A total, with its thousands apart.

    >>> _counted(23697.0), _counted(0.125), _counted(None)
    ('23,697', '0.125', '–')
    """
    if total is None:
        return "–"
    return f"{total:,.0f}" if abs(total) >= 1000 else f"{total:.4g}"


def _table(runs: Sequence[ReportedRun], where: str) -> Table:
    """The final numbers of several runs, a line a run."""
    problem = runs[0].problem
    alike = all(
        run.problem.cost_limits == problem.cost_limits for run in runs
    )  # if not, the names of the rows say them
    limits = [f" (limit {limit.short})" if alike else "" for limit in problem.cost_limits]
    columns = ["run", "return", *(name + limit for name, limit in zip(problem.cost_names, limits))]
    rows: list[list[str | float | Marked | None]] = []
    for name, same in variants(runs).items():
        several = len(variants(runs)) > 1
        for run in same:
            label = f"{name}, seed {run.config['seed']}" if several else f"seed {run.config['seed']}"
            if run.certificate is None:
                rows.append([label, *[None] * (len(columns) - 1), None, "not finished"])
                continue
            numbers = [run.final["return"], *run.final["costs"], run.final["entropy"]]
            nothing = run.certificate.holds and not run.certificate.upper_bounds
            verdict = "no limits" if nothing else Marked(run.certificate.grade, run.certificate.holds)
            rows.append([label, *numbers, verdict])
        finals = [run.final for run in same if run.final]
        if len(finals) > 1:
            mean = [
                sum(values) / len(finals) for values in zip(*([f["return"], *f["costs"], f["entropy"]] for f in finals))
            ]
            rows.append([f"mean of {name}" if several else "mean", *mean, ""])
    return Table(f"Final numbers{where}", [*columns, "entropy", "certified"], rows, "Means over fresh episodes.")


def _about_bands(runs: Sequence[ReportedRun]) -> str:
    fresh = "Every point is a mean over fresh episodes of that iteration's policy."
    groups = list(variants(runs).values())
    if any(len(same) > 1 for same in groups):
        fresh += " Lines are means over the seeds, bands one standard deviation."
    marked = any(len(same) == 1 and "iteration" in same[0].final for same in groups)
    return fresh + (" A circle marks the policy that was returned." if marked else "")


def _about(name: str, runs: Sequence[ReportedRun], with_task: bool) -> str:
    task = f" on {runs[0].config['task']}" if with_task else ""
    return f"Configuration of {name}{task} ({_seeds(runs)})"


def _seeds(runs: Sequence[ReportedRun]) -> str:
    seeds = sorted({run.config["seed"] for run in runs})
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


def _configuration(run: ReportedRun) -> dict[str, str]:
    flat = {name: value for name, value in run.config.items() if name not in ("seed", "settings", "versions")}
    flat |= run.config["settings"]
    flat |= {f"version of {name}": value for name, value in run.config.get("versions", {}).items()}
    return {name: plain(value) for name, value in flat.items()}
