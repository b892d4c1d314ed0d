"""The end of a training on the command line: certificates as text, advice, and the exit code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import typer

from pcces.cli.common import described, print_table, show
from pcces.cli.ending import NOT_CERTIFIED, tell
from pcces.core.certificate import by_grade
from pcces.report.concerns import concerns
from pcces.rl.run import NOTHING_TO_CERTIFY, Run
from pcces.support.streams import say
from pcces.support.text import printable


def conclude(runs: Sequence[Run], folder: Path, as_json: bool) -> None:
    """The certificates in words, and the exit code that goes with them."""
    report = folder / "report.html" if (folder / "report.html").exists() else None
    limited = bool(runs[0].problem.limits)
    good = [run.certificate for run in runs if run.certificate is not None and run.certificate.holds]
    if as_json:
        counts = {"certified": len(good), "guaranteed": sum(certificate.guaranteed for certificate in good)}
        counts = counts if limited else dict.fromkeys(counts, 0)
        show({"folder": folder, "report": report, **counts, "runs": [described(run) for run in runs]})
    else:
        if len(runs) == 1:
            tell(runs[0].words())
        else:
            print_seeds(runs)
            grades = f" ({by_grade(good)})" if good else ""
            sure = f"certified with {100 * runs[0].config['confidence']:g} % confidence{grades}"
            tell(f"{len(good)} of {len(runs)} {sure}" if limited else NOTHING_TO_CERTIFY)
        tell(f"report: {printable(report)}" if report else f"folder: {printable(folder)}")
    for said in advice(runs):
        say(said)
    if len(good) < len(runs):
        raise typer.Exit(NOT_CERTIFIED)


def advice(runs: Sequence[Run]) -> list[str]:
    """Advice about the certificates."""
    said = []
    for run in runs:
        seed = f"seed {run.config['seed']}: " if len(runs) > 1 else ""
        said += [f"{seed}{words}" for words in concerns(run)]
    bad = [run for run in runs if run.certificate is not None and not run.certificate.holds]
    whose = "" if len(runs) == 1 else f" of seeds {', '.join(str(run.config['seed']) for run in bad)}"
    if any(run.final.get("failed_episodes") for run in bad):
        said.append(
            f"not certified: fresh episodes of the policy{whose} failed; the log names the error and the seeds that"
            " reproduce it (docs/how-to/simulator.md). If failures become rarer (failed_episodes in metrics.csv), train longer (--iterations)"
        )
    elif bad:
        said.append(
            f"not certified: the policy{whose} may break its limits; train longer (--iterations) or allow more (--threshold)"
        )
    if len(runs) > 1:  # the words on a single run have it
        said += dict.fromkeys(w for run in runs if run.certificate is not None and (w := run.certificate.warning()))
    if any(run.certificate is not None and "t" in run.certificate.methods and run.problem.cost_names for run in runs):
        said.append(
            "a t bound assumes that these episodes show how much costs vary; if rare costs may be much larger, give the range of"
            " a step's cost (--cost-bounds 0,1; for a task of your own its cost_bounds), and the certificate is guaranteed"
        )
    return said


def print_seeds(runs: Sequence[Run]) -> None:
    """Return, costs and certificate of every seed, and the means."""
    problem = runs[0].problem
    limits = [f"{limit.what} (limit {limit.short})" for limit in problem.cost_limits]
    rows = []
    for run in runs:
        assert run.certificate is not None
        costs = [f"{cost:.3g}" for cost in run.final["costs"]]
        verdict = (run.certificate.grade if problem.limits else "no limits") if run.certificate.holds else "NO"
        rows.append([run.config["seed"], f"{run.final['return']:.4g}", *costs, verdict])
    means = [math.fsum(values) / len(runs) for values in zip(*([r.final["return"], *r.final["costs"]] for r in runs))]
    rows.append(["mean", f"{means[0]:.4g}", *(f"{value:.3g}" for value in means[1:]), ""])
    print_table(["seed", "return", *limits, "certified"], rows)
