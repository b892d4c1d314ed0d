"""What a training chose by itself, and why: the line that it begins with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pcces.rl.settings import BATCHES, LEAST_EPISODES

if TYPE_CHECKING:
    from pcces.rl.run import Run


def chosen(run: Run, settings: Any) -> str:
    """How long a training is and in what portions, what it starts from, which limits it keeps, and where it is played.

    >>> from pcces.policies import prepare
    >>> training = prepare("CartSafe-v0", [0], steps=1e6)
    >>> print(training.chosen)
    pcces: 333 iterations of 3000 steps (10 episodes); starts with the best of 64 random policies; limits: off_centre <= 30, \
entropy <= 2000, entropy >= 0 (as the task says); on the device (a task in JAX)
    """
    return f"{run.config['algorithm']}: " + "; ".join(_choices(run, settings))


def _choices(run: Run, settings: Any) -> Iterator[str]:
    config, task = run.config, run.task
    if hasattr(settings, "epoch_steps"):
        each = settings.iteration_steps(task)
        least = each == LEAST_EPISODES * task.max_steps
        budget = bool(config["steps"]) and settings.epoch_steps == int(config["steps"] / BATCHES)
        why = f" (a {BATCHES}th of all)" if budget else f" ({LEAST_EPISODES} episodes)" if least else ""
        yield f"{settings.iterations} iterations of {each} steps{why}"
    else:
        yield f"{settings.iterations} iterations of {settings.population} policies"
    if settings.initial_tries > 1:
        yield f"starts with the best of {settings.initial_tries} random policies"
    if limits := run.problem.names:
        own = not run.problem.asked and config["thresholds"] and tuple(config["thresholds"]) == tuple(task.thresholds)
        yield f"limits: {', '.join(limits)}{' (as the task says)' if own else ''}"
    yield {
        "device": "on the device (a task in JAX)",
        "local": f"by {config['workers'] or 'one'} worker{'s' if (config['workers'] or 1) > 1 else ''}{'' if config['workers'] else ' a core'}",
        "ray": "on a Ray cluster",
    }[config["engine"]]
