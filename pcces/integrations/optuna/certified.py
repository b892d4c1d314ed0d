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
    """Parameters whose limits are certified by trials that repeat them; or, where it does not hold, what is missing.

    It is true where it holds: `if best: deploy(best.params)`.
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
    """The study's best trial of which repeats certify that limits are kept, or what is missing for that.

    Only trials that `PccesSampler` proposed count: the answer is chosen first, and then tested on trials that had no part in the
    choice. A trial that is the best of many because it was lucky is none.

    >>> import optuna
    >>> print(certified(optuna.create_study()))
    nothing is certified: no trial was proposed by PccesSampler, ...
    """
    header = log.read_header(study)
    if header is None:
        return CertifiedTrial(
            False,
            "nothing is certified: no trial was proposed by PccesSampler, so none was repeated after it had been chosen; set "
            "study.sampler = PccesSampler(max_evaluations=...) and run so many trials more",
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
    doing = (
        "repeats of the best trial are being made"
        if tested
        else f"of which {optimizer.search.reserve()} are for repeats of the best"
    )
    return f"the search has made {made} of its evaluations; run up to {left} trials more, {doing}"
