"""The best trial that could be certified."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pcces.core.certificate import Certificate
from pcces.integrations.optuna import log
from pcces.integrations.optuna.replica import Replica, replayed
from pcces.integrations.optuna.sampler import sign

if TYPE_CHECKING:
    from optuna import Study

    from pcces.blackbox.result import Result


@dataclass(frozen=True)
class CertifiedTrial:
    """The certified parameters, or a message about what is missing.

    It is true if the certificate holds: `if best: deploy(best.params)`.
    """

    holds: bool
    message: str
    params: dict[str, Any] = field(default_factory=dict)
    value: float | None = None  # what the study minimises or maximises, estimated from the repeats
    certificate: Certificate | None = None  # None until the search is over
    trials: tuple[int, ...] = ()  # the numbers of the repeats
    result: Result | None = field(default=None, repr=False)  # of the search, with `plot` and `report`

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return self.message


def certified(study: Study) -> CertifiedTrial:
    """The best trial of a study whose limits were certified by repeats, or a message about what is missing.

    Only trials that `PccesSampler` proposed count. The answer is chosen first, and then tested on trials that had no part in the
    choice. So a lucky trial is not enough.

    >>> import optuna
    >>> print(certified(optuna.create_study()))
    nothing is certified: PccesSampler proposed no trial, ...
    """
    header = log.read_header(study)
    if header is None:
        return CertifiedTrial(
            False,
            "nothing is certified: PccesSampler proposed no trial, so no trial was repeated; set "
            "study.sampler = PccesSampler(max_evaluations=...) and run as many more trials",
        )
    replica = replayed(header, study.get_trials(deepcopy=False))
    result = replica.optimizer.result
    params = {**_fixed(study), **replica.answer()}
    value = sign(study) * result.fun
    if result.running:
        return CertifiedTrial(False, f"nothing is certified yet: {_missing(replica)}", params, value, result=result)
    trials = tuple(
        trial for trial, key in replica.keys.items() if replica.parameters.same(replica.params(key), params) and key in replica.hands.told
        and (replica.hands.phases[key] == "certify" or not result.certificate.samples)
    )  # fmt: skip
    return CertifiedTrial(
        result.certificate.holds, result.message, params, value, result.certificate, trials, result
    )  # fmt: skip


def _fixed(study: Study) -> dict[str, Any]:
    """Parameters that have one value only."""
    for trial in study.get_trials(deepcopy=False):
        if log.ASKED in trial.system_attrs and trial.state.is_finished():
            return {name: trial.params[name] for name, each in trial.distributions.items() if each.single()}
    return {}


def _missing(replica: Replica) -> str:
    """How far the search is."""
    optimizer = replica.optimizer
    made, left = len(replica.hands.told), replica.header.arguments["max_evaluations"] - len(replica.hands.told)
    tested = optimizer.state.phase == "certify"
    doing = "which repeat the best trial" if tested else f"of which {optimizer.search.reserve()} repeat the best one"
    return f"the search has made {made} of its evaluations; run up to {left} more trials, {doing}"
