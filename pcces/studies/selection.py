"""What of the experiments is asked for: which, on which tasks, with which algorithms; refused in words where there is none."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from pcces.policies import algorithm_name
from pcces.studies.arms import Arm
from pcces.studies.catalogue import EXPERIMENTS
from pcces.studies.experiment import Experiment
from pcces.support.text import suggestion


def find(name: str) -> Experiment:
    """An experiment by name.

    >>> find("treshold")
    Traceback (most recent call last):
    ...
    ValueError: unknown experiment 'treshold'; did you mean 'threshold'?
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; {suggestion(name, list(EXPERIMENTS))}")
    return EXPERIMENTS[name]


def within_protocol(experiments: Sequence[Experiment], seeds: int | None, iterations: int | None) -> None:
    """Refuse more than any of the experiments has: the pages about them would not show it.

    >>> within_protocol([EXPERIMENTS["mu"]], seeds=10, iterations=None)
    Traceback (most recent call last):
    ...
    ValueError: the protocol has 5 seeds: --seeds can only be fewer (`pcces train` takes any number)
    """
    most = {
        "seeds": (seeds, max((e.seeds for e in experiments), default=0)),
        "iterations": (iterations, max((arm.iterations for e in experiments for arm in e.arms), default=0)),
    }
    for name, (given, has) in most.items():
        if experiments and given is not None and given > has:
            raise ValueError(
                f"the protocol has {has} {name}: --{name} can only be fewer (`pcces train` takes any number)"
            )


def only(experiments: Sequence[Experiment], tasks: list[str] | None, algorithms: list[str] | None) -> list[Experiment]:
    """The experiments with the arms that were asked for."""
    algorithms = algorithms and [_known(name) for name in algorithms]
    arms = [arm for e in experiments for arm in e.arms]
    _among(tasks, [arm.task for arm in arms])
    _among(algorithms, [arm.algorithm for arm in arms])
    kept = [replace(e, arms=[arm for arm in e.arms if _wanted(arm, tasks, algorithms)]) for e in experiments]
    if experiments and not any(e.arms for e in kept):
        raise ValueError("no arm of these experiments is on that task with that algorithm")
    return kept


def _known(name: str) -> str:
    with contextlib.suppress(ValueError):
        return algorithm_name(name)
    return name


def _among(names: list[str] | None, there: Sequence[str]) -> None:
    for name in names or []:
        if name not in there:
            raise ValueError(f"no arm of these experiments has {name!r}; there are {', '.join(dict.fromkeys(there))}")


def _wanted(arm: Arm, tasks: list[str] | None, algorithms: list[str] | None) -> bool:
    return (not tasks or arm.task in tasks) and (not algorithms or arm.algorithm in algorithms)
