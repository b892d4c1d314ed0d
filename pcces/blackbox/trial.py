"""The phase of Step 4: evaluate the trial point, and the incumbent again, until it is clear which is better; then decide."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import limits
from pcces.blackbox.batch import Batch
from pcces.blackbox.history import Iteration
from pcces.blackbox.state import Accepted, Measured
from pcces.core import algorithm
from pcces.core.barrier import comparable
from pcces.core.estimation import MANY, estimate, pool, required_samples

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

LEAST = 2  # evaluations a trial point gets at once in a race
ACCEPT = 16  # fewer than these never accept
SURE = 1.0  # standard errors a difference must clear
CHECK = 25
CERTAIN = 3  # paired differences that are all the same leave no doubt


def rule(search: Search) -> algorithm.Rule:
    """The constants of Algorithm 1, kappa in units of f."""
    return search.rule._replace(kappa=search.options.kappa * (search.state.f_scale or 1.0))


def ask(search: Search) -> Batch:
    """The trial point and the incumbent, as often as it takes."""
    state, number = search.state, search.state.budget.batches
    for_trial, for_incumbent = wanted(search)
    room = max(state.budget.left - search.reserve(), 1)
    if for_trial + for_incumbent > room:  # keep pairs whole, the trial first
        for_trial = min(for_trial, max(1, room // 2 if for_incumbent else room))
        for_incumbent = min(for_incumbent, room - for_trial)
    both = search.space.to_x(np.stack([state.trial.x, state.run.es.x]))
    points = np.repeat(both, [for_trial, for_incumbent], axis=0)
    if search.common_random_numbers:
        seeds = search.streams.seeds(number, max(for_trial, for_incumbent))
        seeds = np.concatenate([seeds[:for_trial], seeds[:for_incumbent]])
    else:
        seeds = search.streams.seeds(number, len(points))
    return Batch(points, seeds, number, "trial", for_trial)


def wanted(search: Search) -> tuple[int, int]:
    """How many more evaluations of trial point and incumbent: N_k of the trial point first; while the race is open, as
    many again, of the one that is known less well. Where both are to be compared on an equal footing, of both."""
    options, most = search.options, search.options.samples_max
    noisy = search.state.noise.present is not False
    made, known = int(search.state.trial.point.estimate.n), int(search.state.run.incumbent.estimate.n)
    alike = options.incumbent == "fresh" or (search.common_random_numbers and noisy)
    if made == 0:
        n_k = _first_look(search)
        renewed = alike or (options.incumbent == "pooled" and isinstance(options.samples, int))
        return n_k, n_k if renewed and noisy else int(_check_is_due(search))
    more = min(made, most - made)
    if alike:
        return more, more
    if options.incumbent == "kept" or (made <= known and more > 0):
        return more, 0
    return 0, min(known, max(most - known, 1))


def next_wanted(search: Search, trial: int, incumbent: int) -> str:
    """What a free worker is to evaluate while so many evaluations of the trial point and of x_k are under way: `trial` or
    `incumbent`, also in advance of what the race may ask for; or nothing."""
    state, options, most = search.state, search.options, search.options.samples_max
    for_trial, for_incumbent = wanted(search)
    if trial < for_trial or incumbent < for_incumbent:
        return "trial" if trial < for_trial else "incumbent"
    if not (state.noise.present and options.samples == "race" and options.incumbent == "pooled"):
        return ""
    made = int(state.trial.point.estimate.n) + trial
    known = int(state.run.incumbent.estimate.n) + incumbent
    if made < most and made <= known:
        return "trial"
    return "incumbent" if known < most else ""


def _check_is_due(search: Search) -> bool:
    """Whether x_k is evaluated again although there seems to be no noise: one evaluation in so many is for that."""
    if search.options.deterministic or search.state.noise.present is not False:
        return False
    return int(search.state.run.es.k) % max(1, round(CHECK / (search.population + 1))) == 0


def _first_look(search: Search) -> int:
    """N_k: as given, or what the accuracy rule asks for, or enough to begin a race."""
    options, noise = search.options, search.state.noise
    if isinstance(options.samples, int):
        return options.samples
    if options.samples == "accuracy" and noise.present:
        unit = options.kappa * (search.state.f_scale or 1.0)
        variance, sigma = float(noise.deviation[0]) ** 2, float(search.state.run.es.sigma)
        n_k = required_samples(variance, sigma, options.eps_f * unit, options.eps_v * unit, options.p)
        return min(n_k, options.samples_max)
    return 1 if noise.present is False else LEAST


def tell(search: Search, batch: Batch, outputs: np.ndarray) -> bool:
    """Take in the results. Returns whether the trial was decided."""
    state, options, trial, incumbent = search.state, search.options, search.state.trial, search.state.run.incumbent
    fresh, again = outputs[: batch.at_trial], outputs[batch.at_trial :]
    if len(fresh):
        trial.point.estimate = pool(trial.point.estimate, estimate(fresh))
        trial.samples = np.vstack([trial.samples, fresh]) if len(trial.samples) else fresh
    if len(again):
        anew = (options.incumbent == "fresh" or search.common_random_numbers) and not len(trial.incumbent_samples)
        incumbent.estimate = estimate(again) if anew else pool(incumbent.estimate, estimate(again))
        trial.incumbent_samples = np.vstack([trial.incumbent_samples, again]) if len(trial.incumbent_samples) else again
    if trial.point.estimate.n == 0:  # all are missing
        return False
    if search.archive is not None:
        trial.point.row = search.archive.record(trial.point.row, trial.x, fresh)
        incumbent.row = search.archive.record(incumbent.row, state.run.es.x, again)
    if not state.noise.present:
        search.notice(trial.point.estimate, fresh)
        search.notice(incumbent.estimate, again)
    else:
        state.noise = state.noise.saw(again)
    if options.samples == "race" and state.noise.present is not False and _race_is_open(search):
        return False
    _decide(search)
    return True


def _race_is_open(search: Search) -> bool:
    """Whether more evaluations could change the decision, and can be afforded."""
    state, options = search.state, search.options
    trial, incumbent, noise = state.trial.point.estimate, state.run.incumbent.estimate, state.noise.deviation
    measured = math.isfinite(trial.f) and math.isfinite(incumbent.f) and any(wanted(search))
    if not measured or min(trial.n, incumbent.n) >= options.samples_max or state.budget.left - search.reserve() < 2:
        return False
    clearance, clearance_error = np.zeros(0), np.zeros(0)
    difference = limits.worth(search, trial, 0) - limits.worth(search, incumbent, 1)
    error, certain = _difference_error(search)
    broken = limits.broken(search, incumbent, 1)
    if broken > 0:  # on the way back
        certain, less_broken = False, limits.broken(search, trial, 0) - broken
        its_error = float(np.max(noise[1:], initial=0.0)) * math.sqrt(1 / trial.n + 1 / incumbent.n)
        if options.restoration == "merit":
            difference, error = difference + options.rho * less_broken, math.hypot(error, options.rho * its_error)
        else:
            difference, error = less_broken, its_error
    else:
        values, errors = limits.judged(search, trial, 0)
        clearance_error = errors[1:]
        clearance = limits.over(search, values, clearance_error)
    decrease = 0.5 * rule(search).kappa * float(state.run.es.sigma) ** 2
    return undecided(difference + decrease, error, clearance, clearance_error, int(trial.n), certain)


def undecided(
    difference: float, error: float, clearance: np.ndarray, clearance_error: np.ndarray, samples: int, certain: bool
) -> bool:
    """Whether more evaluations could change the decision on a trial point that has so many.

    `difference` is f~_trial - f_k + kappa/2 sigma^2 with its standard error, `clearance` the constraints relative to what
    is allowed (<= 0 passes) with theirs.

    >>> undecided(-1.0, 0.1, np.array([-1.0]), np.array([0.1]), 16, False)
    False
    >>> undecided(-0.05, 0.1, np.array([-1.0]), np.array([0.1]), 16, False)
    True

    A difference that is `certain` (common random numbers can make it so) needs no more, if the constraints do not.

    >>> undecided(-0.05, 0.0, np.array([-1.0]), np.array([0.1]), 4, True)
    False
    """
    surely_not = difference > SURE * error or bool(np.any(clearance > SURE * clearance_error))
    if surely_not or not math.isfinite(difference):
        return False
    surely = difference < -SURE * error and bool(np.all(clearance <= 0))
    enough = samples >= ACCEPT or (certain and bool(np.all(clearance <= -SURE * clearance_error)))
    return not (surely and enough)


def _difference_error(search: Search) -> tuple[float, bool]:
    """The standard error of f~_trial - f_k, paired where both saw the same random numbers, and whether it is surely
    zero."""
    trial, incumbent = search.state.trial, search.state.run.incumbent
    k = min(len(trial.samples), len(trial.incumbent_samples))
    if search.common_random_numbers and k and search.options.objective.kind == "mean":
        values = trial.samples[:k, 0]
        pairs = values - trial.incumbent_samples[:k, 0]
        if k >= CERTAIN and np.ptp(pairs) <= 1e-12 * np.abs(values).max():
            return 0.0, True  # all the noise is shared: the difference is known
        if k >= 4:
            return float(np.std(pairs, ddof=1)) / math.sqrt(k), False
    places = limits.judged(search, trial.point.estimate, 0), limits.judged(search, incumbent.estimate, 1)
    return math.hypot(*(float(error[0]) for _, error in places)), False


def _decide(search: Search) -> None:
    """Step 4: accept the trial point or not. Step 5: adapt strategy and spread."""
    state, options, run, trial = search.state, search.options, search.state.run, search.state.trial
    es, new, old, constants = run.es, trial.point.estimate, run.incumbent.estimate, rule(search)
    broken_new, broken_old = limits.broken(search, new, 0), limits.broken(search, old, 1)
    search.notice(new, trial.samples, 0.1 if new.n >= MANY else 0.0)
    search.note_shape(trial.samples)
    gain, worthwhile = _gain(search)
    rho = options.rho if options.restoration == "merit" else None
    f_new, f_old = comparable(
        np.float64(limits.worth(search, new, 0)), np.float64(broken_new),
        np.float64(limits.worth(search, old, 1)), np.float64(broken_old), rho,
    )  # fmt: skip
    run.es, accepted = algorithm.decide(es, trial.x, f_new, f_old, constants)
    success = bool(accepted)
    if not success and not math.isfinite(old.f):  # the start failed: what works is farther away, not nearer
        wider = np.minimum(es.sigma * constants.gamma, constants.sigma_max)
        run.es = run.es._replace(sigma=wider.astype(es.sigma.dtype))
    if options.sigma_es != "fixed":  # tied to sigma as in the paper, or tied but no narrower than noise allows
        floor = run.spread_floor if options.sigma_es == "adapted" and state.noise.present else 0.0
        ratio = (options.sigma_es0 or options.sigma0) / options.sigma0
        run.es = algorithm.update_sigma_es(run.es, ratio * float(run.es.sigma), floor)
    step = (run.es.x - es.x) / es.sigma
    run.strategy = search.strategy.update(run.strategy, trial.directions, trial.weights, step, trial.d)

    if not state.noise.present:  # under noise a stall is counted when sigma is lifted, without it every iteration
        run.stalls += 1
    if broken_old > 0 or (success and gain > worthwhile):
        run.stalls, run.progress_f = 0, limits.worth(search, *((new, 0) if success else (old, 1)))
    record = run.wins[:2] if trial.kind == "model" else run.wins[2:]
    record[:] = 0.9 * record + np.array([float(success), 1.0])
    if success:
        run.incumbent = Measured(new, trial.point.row)
        if math.isfinite(new.f):
            state.accepted.append(Accepted(run.es.x, new.mean, float(new.n)))
    kept = run.incumbent.estimate
    feasible = (broken_new if success else broken_old) <= 0
    row = Iteration(
        state.budget.evaluations, float(kept.mean[0]), float(run.es.sigma), float(run.es.sigma_es),
        int(new.n), int(kept.n), success, feasible, trial.kind, kept.mean[1:], limits.excess(search),
    )  # fmt: skip
    search.history.rows.append(row)


def _gain(search: Search) -> tuple[float, float]:
    """What the trial point would gain if it were accepted, and how much would be progress: more than noise can explain
    or, without noise, more since the last progress than an iteration is worth."""
    state, run = search.state, search.state.run
    f = limits.worth(search, state.trial.point.estimate, 0)
    if state.noise.present:
        least = 2 * float(state.noise.deviation[0]) / math.sqrt(search.options.samples_max)
        return limits.worth(search, run.incumbent.estimate, 1) - f, least
    return run.progress_f - f, 1e-5 * max(abs(f), state.f_scale or 0.0)
