"""How far below zero the constraints have to be: what Eq. 4 allows, and the margin that the certificate will need.

Every constraint is its limit's: samples less the limit's origin (c - 0 for the mean, c - above for a probability), and the
mean has to be as far below zero as the limit's kind and the certificate's bound ask for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pcces.core.barrier import anneal
from pcces.core.bounds import student_bound
from pcces.core.certificate import LEAST, Column
from pcces.core.estimation import Estimate
from pcces.core.limits import PLAIN, Limit, Mean
from pcces.core.plans import mean_width, passing_share, spare
from pcces.core.tails import tail_mean, tail_quantile, tail_share

if TYPE_CHECKING:
    from pcces.blackbox.models.quadratic import LocalModel
    from pcces.blackbox.search import Search

Ranges = tuple[tuple[float, float], ...]
CHANCE = 0.8  # that the certificate succeeds, if the constraints keep the margin
FEW_CHANCE = 0.95  # likewise, where there are too few for many candidates
BOLD_CHANCE = 0.6  # likewise, where another candidate holds already
FIRST_LOOK = 0.2  # of the error probability that is left, for a look that need not be the last
CARE = 1.0  # standard errors added to constraint_z for tails: estimates of tails are noisy, and the point that looks best was lucky
OWN = 10  # evaluations of a point that say as much about its own noise as all others do


def broken(search: Search, e: Estimate, place: int | None = None) -> float:
    """The violation of an estimate; +inf for a failed evaluation. `place`: as for `judged`."""
    if not math.isfinite(e.mean[0]):
        return math.inf
    values, error = judged(search, e, place)
    if (
        place == 1
    ):  # the model's estimate at x_k keeps changing: giving x_k up needs more evidence than accepting a point
        error = error * (1 + hard_to_see(search))
    return max(0.0, *over(search, values, error[1:]).tolist(), 0.0)


def worth(search: Search, e: Estimate, place: int | None = None) -> float:
    """The objective, from an estimate: its mean, or what else is asked for."""
    return float(judged(search, e, place)[0][0]) if shaped(search) else float(e.f)


def judged(search: Search, e: Estimate, place: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The objective and the limited quantities (limits are kept where these are <= 0), (1 + r,), and their standard errors.

    Two-valued outcomes and tails of the noise need many evaluations. There, the model's estimate from all evaluations is
    averaged in, at the trial point (`place` 0) and at x_k (1).
    """
    noise, values = search.state.noise.deviation, e.mean
    error = noise / math.sqrt(max(float(e.n), 1.0))
    if shaped(search):
        values = values + offset(search, e)
        error = error * np.sqrt(1 + 0.5 * tails(search) ** 2)  # the deviation's own error counts
    expected, doubt = search.state.trial.expected, search.state.trial.doubt
    if place is None or not len(expected) or not math.isfinite(e.f):
        return values, error
    weight = hard_to_see(search) * error**2 / np.maximum(error**2 + doubt[place] ** 2, 1e-300)  # of the model
    return values + weight * (expected[place] - values), np.sqrt(1 - weight) * error


def clearance(search: Search, outputs: np.ndarray) -> np.ndarray:
    """The constraints of outputs (.., 1 + r), relative to what is allowed: <= 0 passes."""
    return over(search, outputs + offset(search))


def over(search: Search, values: np.ndarray, error: np.ndarray | float = 0.0) -> np.ndarray:
    """The same for limited quantities (.., 1 + r) that have standard errors."""
    z = search.options.constraint_z + CARE * np.array([by_shape(column) for column in columns(search)])
    return values[..., 1:] + margin(search) + z * error - allowance(search)


def allowance(search: Search) -> float:
    """What Eq. 4 lets a constraint exceed zero by: eps_c sigma_k, and what annealing adds."""
    options, es = search.options, search.state.run.es
    extra = 0.0 if options.anneal is None else float(anneal(options.anneal[0], np.asarray(es.k), options.anneal[1]))
    return options.eps_c * float(es.sigma) + extra


def offset(search: Search, e: Estimate | None = None) -> np.ndarray:
    """What turns the means of outputs (1 + r,) into the objective and the limited quantities, by addition: with the noise at
    the point of an estimate, or with the usual noise."""
    if not shaped(search):
        return np.zeros(len(search.state.noise.deviation))
    noise = search.state.noise.deviation if e is None else own_noise(search, e)
    return outcome_offset(search) + tails(search) * noise


def outcome_offset(search: Search) -> np.ndarray:
    """The part of `offset` that does not depend on the size of the noise: that of two-valued outcomes."""
    added = np.zeros(len(search.state.noise.deviation))
    for j, known in enumerate(columns(search), 1):
        if known.limit.kind != "mean" and not by_shape(known):
            low, high = known.values or (0.0, 0.0)
            added[j] = -low - (high - low) * known.limit.share
    return added


def asked(search: Search, local: LocalModel) -> LocalModel:
    """The model of the objective and the limited quantities, instead of means."""
    return local.raised(outcome_offset(search), tails(search)) if shaped(search) else local


def tails(search: Search) -> np.ndarray:
    """How far the requested quantity (a mean, a quantile, a CVaR) lies above the mean, in standard deviations, (1 + r,)."""
    asked = [search.options.objective, *(known.limit if by_shape(known) else PLAIN for known in columns(search))]
    return np.array([_tail(limit, noise_shape(search, j)) for j, limit in enumerate(asked)])


def margin(search: Search) -> np.ndarray:
    """How far below zero a constraint must be for the certificate to have a good chance."""
    if not search.needs_samples:
        return np.zeros(len(search.state.noise.deviation) - 1)
    return margin_for(search, search.reserve())


def margin_for(search: Search, samples: int, error: np.ndarray | float = 0.0) -> np.ndarray:
    """How far below zero to aim so that this many samples certify all constraints in four of five cases, when the
    point aimed at is known with a standard error of `error`."""
    needed, deviation = widths(search, samples)
    return needed + luck(search) * np.sqrt(deviation**2 / max(samples, 2) + np.square(error))


def widths(search: Search, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """How far below zero the constraints have to be so that half of all certificates on this many samples hold, and the
    standard deviations of a sample there."""
    known = columns(search)
    first = error_of_look(search, False) if samples >= 2 * LEAST and not len(search.state.test.samples) else 0.0
    left = error_of_look(search, True) - first or 1 - search.confidence  # nothing is left when all is over
    look, n = left / claims(search), max(samples, 2)
    each = CHANCE ** (1 / max(len(known), 1))
    pairs = [_width(search, j, column, n, look, each) for j, column in enumerate(known)]
    needed, deviation = np.array(pairs).reshape(-1, 2).T
    return needed, deviation


def luck(search: Search) -> float:
    """How many standard errors lie between the median certificate and four of five, for all constraints together."""
    return float(spare(np.ones(max(len(columns(search)), 1)), chance(search))[0])


def chance(search: Search) -> float:
    """That the certificate is to succeed with, if the constraints keep the margin."""
    return BOLD_CHANCE if search.state.test.kept else FEW_CHANCE if search.few else CHANCE


def _width(search: Search, j: int, known: Column, n: int, error: float, chance: float) -> tuple[float, float]:
    """How far below zero constraint j has to be so that half of all certificates hold, and the standard deviation of a sample
    there."""
    limit, shape = known.limit, noise_shape(search, 1 + j)
    if isinstance(limit, Mean):
        return mean_width(known, n, error)
    if not by_shape(known):
        low, high = known.values or (0.0, 1.0)
        share = passing_share(limit.share, n, error, 0.5)
        return (high - low) * (limit.share - share), (high - low) * math.sqrt(share * (1 - share))
    if limit.kind != "cvar":
        share = passing_share(limit.share, n, error, chance) or 0.2 * limit.share
        return (tail_quantile(shape, share) - tail_quantile(shape, limit.share)) * known.deviation, 0.0
    above = tail_mean(shape, limit.share) * known.deviation
    level = tail_quantile(shape, limit.share) * known.deviation
    rows, tail = known.rows(shape * known.deviation - above, level - above)
    if len(rows) < LEAST:
        return mean_width(replace(tail, deviation=known.deviation / math.sqrt(limit.share)), n, error)[
            0
        ], known.deviation
    deviation = float(rows.std())
    skewed = 0.0 if tail.range else student_bound(rows, error, effective=n) - float(rows.mean())
    return max(skewed, mean_width(replace(tail, deviation=deviation), n, error)[0]), deviation


def shaped(search: Search) -> bool:
    """Whether the shape of the noise matters: some quantity is not a mean."""
    return any(limit.kind != "mean" for limit in (search.options.objective, *(search.options.limits or ())))


def noise_shape(search: Search, output: int) -> np.ndarray:
    """How evaluations lie around their means, in standard deviations."""
    residuals = search.state.residuals
    return residuals[:, output] if len(residuals) else np.zeros(0)


def hard_to_see(search: Search) -> np.ndarray:
    """The outputs (1 + r,) that need many evaluations: tails of noise, and outcomes with two values."""
    told = [by_shape(column) or column.values is not None for column in columns(search)]
    return np.array([search.options.objective.kind != "mean", *told], dtype=float)


def error_of_look(search: Search, last: bool) -> float:
    """The error probability that the next look at fresh samples may use: all that is left if there can be no other."""
    left = (1 - search.confidence) * (1 - search.state.test.spent)
    return left if last else FIRST_LOOK * left


def claims(search: Search) -> int:
    """How many claims share the error probability: that all limits hold is one, and where failures are missing values, how
    often evaluations fail is another."""
    return 1 + (search.options.missing and len(columns(search)) > 0)


def by_shape(known: Column) -> bool:
    """Whether what is limited depends on the shape of the noise: all but means, and outcomes that have two values."""
    return known.limit.kind != "mean" and (known.values is None or known.limit.kind == "cvar")


def _tail(limit: Limit, shape: np.ndarray) -> float:
    """How many standard deviations above the mean a limited quantity is, for noise of this shape."""
    if limit.kind == "mean":
        return 0.0
    return tail_mean(shape, limit.share) if limit.kind == "cvar" else tail_quantile(shape, limit.share)


def own_noise(search: Search, e: Estimate) -> np.ndarray:
    """The standard deviations of evaluations of a point: those known, and what its own evaluations say."""
    known = search.state.noise.deviation
    if e.n < 2 or not math.isfinite(e.f):
        return known
    return np.sqrt((OWN * known**2 + e.squares) / (OWN + float(e.n) - 1))


def each(search: Search) -> list[Limit]:
    """The limit of each inequality, in the order of the outputs: an equality is two."""
    constraints = search.state.constraints
    given = search.options.limits or (PLAIN,) * max(constraints.number, 0)
    others = [limit for i, limit in enumerate(given) if i not in constraints.equal]
    return others + [PLAIN] * (2 * len(constraints.equal))


def columns(search: Search) -> list[Column]:
    """What is known of each inequality: what was stated, and what was seen until this batch."""
    state, made_of = search.state, search.columns[0]
    if made_of is None or made_of[0] is not state.noise or made_of[1] != state.budget.batches:
        search.columns = (state.noise, state.budget.batches), _columns(search)
    return search.columns[1]


def _columns(search: Search) -> list[Column]:
    state, options = search.state, search.options
    noise, seen, given = state.noise, state.seen, ranges(search)
    jumps = np.broadcast_to(np.asarray(noise.jump), noise.deviation.shape)
    known = []
    for j, limit in enumerate(each(search)):
        two = not seen.between[j] and seen.low[j] < seen.high[j]
        low, high = (-limit.origin, 1 - limit.origin) if seen.boolean else (float(seen.low[j]), float(seen.high[j]))
        known.append(
            Column(
                limit, given[j] if given is not None else None, (low, high) if two or seen.boolean else None,
                stated=seen.boolean, deterministic=options.deterministic and not noise.present,
                deviation=float(noise.deviation[1 + j]), jump=float(jumps[1 + j]),
                constant=bool(seen.low[j] == seen.high[j]) and not seen.between[j],
            )
        )  # fmt: skip
    return known


def ranges(search: Search) -> Ranges | None:
    """The range of each inequality minus the origin of its limit, where ranges are given. An equality gives two, with its
    tolerance."""
    given, equal = search.options.constraint_range, search.state.constraints.equal
    if given is None:
        return None
    tolerance = search.options.equality_tolerance
    others = [pair for i, pair in enumerate(given) if i not in equal]
    return (
        *[(low - limit.origin, high - limit.origin) for (low, high), limit in zip(others, each(search))],
        *[(given[i][0] - tolerance, given[i][1] - tolerance) for i in equal],
        *[(-given[i][1] - tolerance, -given[i][0] - tolerance) for i in equal],
    )


def levels(search: Search) -> np.ndarray:
    """The quantiles above which samples count as the worst share, if limits on a CVaR are just kept."""
    chosen = np.zeros(len(columns(search)))
    for j, column in enumerate(columns(search)):
        if column.limit.kind == "cvar":
            shape, share = noise_shape(search, 1 + j), column.limit.share
            chosen[j] = (tail_quantile(shape, share) - tail_mean(shape, share)) * column.deviation
    return chosen


def values(search: Search, e: Estimate) -> np.ndarray:
    """What is minimised and what is limited, from an estimate and the shape of the noise."""
    plain = np.array(e.mean, dtype=float)
    if e.n == 0 or len(plain) == 1 or not math.isfinite(plain[0]):
        return plain
    plain[0] = worth(search, e)
    noise = own_noise(search, e)
    for j, limit in enumerate(each(search), 1):
        if limit.kind == "probability":
            two = columns(search)[j - 1].values
            if two is not None:
                plain[j] = min(max((plain[j] - two[0]) / (two[1] - two[0]), 0.0), 1.0)
            elif noise[j] > 0:
                plain[j] = tail_share(noise_shape(search, j), -plain[j] / noise[j])
            else:
                plain[j] = float(plain[j] > 0)
        else:
            plain[j] += _tail(limit, noise_shape(search, j)) * noise[j] + limit.at_most
    return plain


def excess(search: Search) -> np.ndarray:
    """What is limited at x_k, less its limit; one value per constraint."""
    mean = values(search, search.state.run.incumbent.estimate)[1:]
    return search.state.constraints.by_user(mean - [limit.at_most for limit in each(search)] if len(mean) else mean)
