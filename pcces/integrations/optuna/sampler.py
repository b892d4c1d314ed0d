"""The sampler: where Optuna's trial-by-trial asking meets the search's."""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.search_space import intersection_search_space
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from pcces.blackbox.optimizer import Optimizer
from pcces.core.limits import as_limit, to_dict
from pcces.integrations.optuna import log
from pcces.integrations.optuna.parameters import Parameters
from pcces.integrations.optuna.replica import Replica, replayed

if TYPE_CHECKING:
    from optuna import Study

_log = logging.getLogger("pcces")


class PccesSampler(BaseSampler):
    """Propose trials as `pcces.Optimizer` does, and repeat the best of them until its limits are certified.

    `max_evaluations` is the number of trials, including the repeats that certify the answer. Then the study is stopped.
    `constraints_func` returns the constraints of a trial, as for Optuna's own samplers: values <= 0 are feasible. Without it, the
    constraints of `trial.set_constraint` count (Optuna 5). The same `seed` gives the same trials. `independent_sampler` proposes
    parameters that not all trials have, and the first trial; by default at random. Other options are those of
    `pcces.Optimizer`: confidence, limits, deterministic, constraint_range, ...

    A trial that fails or is pruned is a failed evaluation. Trials of other samplers are used as earlier data, and the search starts
    at the best of them. The study stores the state of the sampler, so other processes can continue it.

    >>> import optuna
    >>> from pcces.integrations.optuna import certified
    >>> optuna.logging.set_verbosity(optuna.logging.ERROR)
    >>> def objective(trial):
    ...     x, y = trial.suggest_float("x", -2, 2), trial.suggest_float("y", -2, 2)
    ...     trial.set_user_attr("c", (x + y - 1,))
    ...     return (x - 1) ** 2 + (y - 1) ** 2
    >>> sampler = PccesSampler(max_evaluations=40, constraints_func=lambda trial: trial.user_attrs["c"], seed=0)
    >>> study = optuna.create_study(sampler=sampler)
    >>> study.optimize(objective, n_trials=100)
    >>> best = certified(study)
    >>> best.holds, round(best.params["x"], 1), len(study.trials)
    (True, 0.5, 41)
    """

    def __init__(
        self,
        *,
        max_evaluations: int,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
        **options: Any,
    ):
        Optimizer([0.0], max_evaluations=max_evaluations, **options)  # says what is wrong with them
        self.arguments = plain({"max_evaluations": int(max_evaluations)} | options)
        self.constraints_func, self.seed = constraints_func, seed
        self.independent = independent_sampler or RandomSampler(seed=seed)
        self._lock = threading.RLock()
        self._replica: Replica | None = None
        self._place: tuple[int, int] | None = None  # the study's, that it is of

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_replica": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_lock": threading.RLock()}

    def reseed_rng(self) -> None:
        """As Optuna asks for where it makes copies; the search itself draws nothing."""
        self.independent.reseed_rng()

    # -- proposing ---------------------------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that all completed trials have, with the same distributions."""
        self._check(study)
        shared = intersection_search_space(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
        return {name: each for name, each in shared.items() if not each.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The search's next point; when it is over, its answer."""
        if not search_space or trial.system_attrs.get("fixed_params"):
            return {}
        with self._lock:
            replica = self._up_to_date(study, Parameters(search_space))
            key = replica.next()
            if key is None:
                return replica.answer()
            entry = log.LogEntry(log.next_number(replica.entries), trial.number, log.ASKED, key)
            log.write(study, trial, replica.header.search, entry)
            params = replica.params(key)
            replica.take(entry, params)
            return params

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A parameter that is not in all trials."""
        return self.independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Let the independent sampler prepare."""
        self.independent.before_trial(study, trial)

    # -- learning ----------------------------------------------------------------------------------------------------------

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Note what came of a trial; stop the study when the search is over."""
        with self._lock:
            f, c = self._outcome(study, trial, state, values)
            header = log.read_header(study)
            if header is not None:
                replica = self._current(study, header)
                asked = trial.system_attrs.get(log.ASKED)
                if asked is not None and asked[0] == header.search:
                    _check_alike(trial, f, c, replica.entries)
                    entry = log.LogEntry(log.next_number(replica.entries), trial.number, log.TOLD, (f, c))
                    log.write(study, trial, header.search, entry)
                    replica.take(entry, trial.params)
                if replica.optimizer.stop():
                    _stop(study, replica)
        self.independent.after_trial(study, trial, state, values)

    def _outcome(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> tuple[float | None, log.Constraints]:
        """What a trial gave, as a search that minimises takes it; f is None where it failed or was pruned. What the function
        of constraints says is noted as Optuna's own samplers do."""
        if self.constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            given = [float(c) for c in np.ravel(self.constraints_func(trial))]
            if not all(map(math.isfinite, given)):
                return None, None
            trial.system_attrs[log.CONSTRAINTS] = given
            study._storage.set_trial_system_attr(trial._trial_id, log.CONSTRAINTS, given)
        good = state == TrialState.COMPLETE and values is not None and math.isfinite(values[0])
        return (sign(study) * float(values[0]) if good and values is not None else None), log.constraints_of(trial)

    # -- the search --------------------------------------------------------------------------------------------------------

    def _check(self, study: Study) -> None:
        if len(study.directions) > 1:
            raise ValueError("PccesSampler minimises or maximises one value: use constraints for other values")

    def _up_to_date(self, study: Study, parameters: Parameters) -> Replica:
        """The search in this space, with all that is known."""
        header = log.read_header(study)
        if header is None or not header.asks_for(parameters.plain(), self.arguments, self.seed):
            header = self._begun(study, parameters, 0 if header is None else header.search + 1)
        return self._current(study, header)

    def _current(self, study: Study, header: log.Header) -> Replica:
        """The search of a header: the one that is at hand, as far as the log goes on from there, or rebuilt."""
        trials, place = study.get_trials(deepcopy=False), (id(study._storage), study._study_id)
        known = self._replica
        if known is None or self._place != place or known.header != header or not known.catch_up(trials):
            self._replica, self._place = replayed(header, trials), place
        assert self._replica is not None
        return self._replica

    def _begun(self, study: Study, parameters: Parameters, search: int) -> log.Header:
        """A search that begins now, at the best of the trials so far."""
        finished = [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()]
        usable = [t for t in finished if t.state == TrialState.COMPLETE and parameters.point(t.params) is not None]

        def rank(trial: FrozenTrial) -> tuple[float, float]:
            c = log.constraints_of(trial)
            values = list(c.values()) if isinstance(c, dict) else c or []
            return max([0.0, *values]), sign(study) * float(trial.values[0])

        start = min(usable, key=rank).params
        seed = int(np.random.SeedSequence().generate_state(1)[0]) if self.seed is None else self.seed
        names = parameters.distributions
        header = log.Header(
            search, seed, parameters.plain(), self.arguments, {name: start[name] for name in names},
            [trial.number for trial in finished],
        )  # fmt: skip
        log.write_header(study, header)
        return log.read_header(study) or header


def sign(study: Study) -> float:
    """-1 where the study maximises."""
    return -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0


def plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """An optimizer's arguments as JSON has them; a TypeError for those that come from the study.

    >>> plain({"max_evaluations": 30, "limits": ["P(> 0) <= 0.05"]})
    {'max_evaluations': 30, 'limits': [{'kind': 'probability', 'above': 0.0, 'at_most': 0.05}]}
    """
    for name in ("x0", "bounds", "rng", "linear", "scale", "integrality"):
        if name in arguments:
            raise TypeError(
                f"{name} comes from the study: leave it out" if name != "rng" else "use seed instead of rng"
            )
    given = dict(arguments)
    if given.get("limits") is not None:
        several = isinstance(given["limits"], Sequence) and not isinstance(given["limits"], str)
        given["limits"] = [to_dict(as_limit(each)) for each in (given["limits"] if several else [given["limits"]])]
    if "objective" in given:
        given["objective"] = to_dict(as_limit(given["objective"]))
    if not isinstance(given.get("strategy", ""), str):
        raise TypeError("a strategy must be given by name, because the study keeps it")
    return dict(json.loads(json.dumps(given, default=lambda value: value.tolist())))


def _check_alike(trial: FrozenTrial, f: float | None, c: log.Constraints, entries: Sequence[log.LogEntry]) -> None:
    """A ValueError where a trial has other constraints than those before it."""
    if f is None:
        return
    before = [entry.data[1] for entry in entries if entry.kind == log.TOLD and entry.data[0] is not None]
    if before and _kind(before[0]) != _kind(c):
        raise ValueError(
            f"trial {trial.number} has {_kind(c)}, but those before it had {_kind(before[0])}: give the same ones to all trials"
        )


def _kind(c: log.Constraints) -> str:
    if not c:
        return "no constraints"
    return f"{len(c)} constraint{'s' * (len(c) != 1)}" + (f" called {', '.join(c)}" if isinstance(c, dict) else "")


def _stop(study: Study, replica: Replica) -> None:
    """End the study's loop, if it is in one."""
    try:
        study.stop()
    except RuntimeError:  # trials are asked for by hand
        return
    _log.info("the search has ended, and stops the study (%s)", replica.optimizer.stop())
