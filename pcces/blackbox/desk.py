"""Asynchronous ask and tell: points for as many workers as are free, at any time, and results in any order.

The phases stay what they are; what changes is when they are asked and told. Samples and proposals are handed out one by one, and
a phase goes on as soon as enough of them have come back. Free workers are never refused while there is something to learn: the
trial point gets the evaluations that the race would ask for next, a population grows, Gaussian processes propose as if what is
out had given what they expect, and the candidate for the certificate gets the fresh samples that the next look will count. The
certificate does not depend on which evaluations were quick: a look takes those that were asked for first, when all of them have
come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pcces.blackbox import acquire, certify, missing, sample, trial
from pcces.blackbox.batch import Batch
from pcces.blackbox.orders import Desk, Order
from pcces.blackbox.search import PHASES
from pcces.core.estimation import estimate, pool

if TYPE_CHECKING:
    from pcces.blackbox.search import Search


def ask(search: Search, count: int) -> list[Order]:
    """Up to `count` evaluations: fewer if the search has to wait for others."""
    budget, handed = search.state.budget, list[Order]()
    budget.batches += 1
    number = budget.batches
    while len(handed) < count and (order := _next(search)) is not None:
        order.number, order.row = number, len(handed)
        budget.left -= 1
        handed.append(order)
    return handed


def tell(search: Search) -> None:
    """Go on as far as what was told allows."""
    search.state.budget.batches += 1
    while search.state.phase != "done" and _goes_on(search):
        _clear(search)
    _clear(search)
    if search.state.budget.left <= search.reserve() and not any(order.out for order in _desk(search)):
        _next(search)  # this ends the search if no evaluation will be asked for any more


def _desk(search: Search) -> Desk:
    assert search.state.desk is not None
    return search.state.desk


def _next(search: Search) -> Order | None:
    """The next evaluation to make, if there is one."""
    state, desk = search.state, _desk(search)
    if state.phase == "done":
        return None
    if _grouped(search) and not desk.group:
        _form_group(search)
    for order in desk.group:
        if order.number < 0:
            return order
    if state.phase == "certify":
        told = [order for order in [*desk.group, *_of(search, "certify")] if order.told]
        more = search.needs_samples and state.budget.left > 0
        more = more and (not told or certify.promising(search, _samples(search, told)))
        return _order(search, "certify", state.test.candidates[-1]) if more else None
    if state.budget.left <= search.reserve():
        if any(order.out for order in desk) and (state.phase == "start" or not search.reserve()):
            return None
        end(search, f"its share of the {search.max_evaluations} evaluations is used")
        return _next(search)
    if state.phase == "trial" and not _grouped(search):
        asked = _of(search, "trial"), _of(search, "incumbent")
        why = trial.next_wanted(search, len(asked[0]), len(asked[1]))
        if why:
            return _order(search, why, state.trial.x if why == "trial" else state.run.es.x)
    for order in desk.others:
        if order.number < 0:
            return order
    return _proposal(search) if search.few else _pair(search)


def _grouped(search: Search) -> bool:
    """Whether the phase needs a fixed set of evaluations, rather than a sufficient number of any."""
    phase = search.state.phase
    return phase in ("start", "certify") or (phase == "trial" and search.common_random_numbers)


def _form_group(search: Search) -> None:
    """Take the batch that the phase asks for. Evaluations handed out in advance are its first part."""
    state, desk = search.state, _desk(search)
    known = _of(search, "certify")
    state.budget.batches += 1
    state.budget.left += len(known)
    batch = PHASES[state.phase].ask(search)
    state.budget.left -= len(known)
    desk.at_trial = batch.at_trial
    for i, seed in enumerate(batch.seeds):
        if i < len(known):
            desk.others.remove(known[i])
            desk.group.append(known[i])
            continue
        why, z = state.phase, state.run.es.x if not batch.several_starts else batch.directions[i]
        if why == "trial":
            why, z = ("trial", state.trial.x) if i < batch.at_trial else ("incumbent", z)
        elif why == "certify":
            z = state.test.candidates[-1]
        desk.group.append(Order(z, int(seed), why, state.run.start))


def _order(search: Search, why: str, z: np.ndarray) -> Order:
    state = search.state
    state.budget.batches += 1
    order = Order(z, int(search.streams.seeds(state.budget.batches, 1)[0]), why, state.run.start)
    _desk(search).others.append(order)
    return order


def _pair(search: Search) -> Order:
    """A sample; its mirror image is the next one."""
    state = search.state
    state.budget.batches += 1
    points, seeds = sample.pair(search)
    number, run = state.budget.batches, state.run.start
    pair = [Order(z, int(seed), "sample", run, number) for z, seed in zip(points, seeds)]
    _desk(search).others += pair
    return pair[0]


def _proposal(search: Search) -> Order:
    """A point that fills the space; later the most promising point, given the ones under evaluation."""
    desk = _desk(search)
    if search.state.f_scale is None:
        z = acquire.design(search, 1, desk.proposed)[0]
    else:
        pending = np.array([order.z for order in desk if order.out]).reshape(-1, search.space.n)
        z = acquire.next_points(search, 1, pending, desk.proposed)[0]
    desk.proposed += 1
    return _order(search, "propose", z)


def _of(search: Search, why: str) -> list[Order]:
    """The orders, outside a group, that are of use for this."""
    return [order for order in _desk(search).others if order.why == why and _useful(search, order)]


def _useful(search: Search, order: Order) -> bool:
    """Whether the phases still wait for it."""
    state, same_run = search.state, order.run == search.state.run.start
    if order.why == "sample":
        return same_run and not search.few and state.phase in ("start", "sample", "trial")
    if order.why == "propose":
        return search.few and state.phase in ("start", "propose")
    if order.why == "certify":
        return state.phase == "certify" and np.array_equal(state.test.candidates[-1], order.z)
    point = state.trial.x if order.why == "trial" else state.run.es.x
    return same_run and state.phase == "trial" and np.array_equal(point, order.z)


def _goes_on(search: Search) -> bool:
    """Let the phase decide, if enough was told; whether it was."""
    state, desk = search.state, _desk(search)
    if _grouped(search) and not desk.group:
        _form_group(search)  # it may be there already
    if state.phase == "certify" and _hopeless(search):
        return True
    orders = _enough(search)
    if not orders:
        return False
    used = set(map(id, orders))
    desk.others, desk.group = [order for order in desk.others if id(order) not in used], []
    z, es, phase = np.stack([order.z for order in orders]), state.run.es, state.phase
    directions = {"propose": z, "sample": (z - es.x) / es.sigma_es}.get(phase)
    if phase == "start" and (z != z[0]).any():
        directions = z
    seeds = np.array([order.seed for order in orders])
    batch = Batch(search.space.to_x(z), seeds, state.budget.batches, phase, desk.at_trial, directions)
    batch, outputs = missing.without(search, batch, _outputs(search, orders))
    search.note_first(batch, outputs)
    advance, tested = len(_of(search, "certify")), len(state.test.candidates)
    state.budget.left += advance  # which a next look would count
    over = PHASES[phase].tell(search, batch, outputs)
    state.budget.left -= advance
    if phase == "certify" and len(state.test.candidates) > tested and state.budget.left < certify.LEAST:
        state.test.candidates.pop()  # it is too late for another one
        over = True
    if over:
        search.next_phase()
    return True


def _enough(search: Search) -> list[Order]:
    """What the phase decides on; nothing while it cannot."""
    state, desk = search.state, _desk(search)
    if _grouped(search):
        return desk.group if all(order.told for order in desk.group) else []
    told = {
        why: [order for order in _of(search, why) if order.told] for why in ("sample", "propose", "trial", "incumbent")
    }
    if state.phase == "propose":
        return told["propose"]
    if state.phase == "trial":
        desk.at_trial = len(told["trial"])
        wanted, again = trial.wanted(search)
        there = len(told["trial"]) >= wanted and len(told["incumbent"]) >= again
        return told["trial"] + told["incumbent"] if there else []
    pairs: dict[int, list[Order]] = {}
    for order in told["sample"]:
        pairs.setdefault(order.pair, []).append(order)
    both = [pair for pair in pairs.values() if len(pair) == 2]
    return [pair[side] for side in (0, 1) for pair in both] if 2 * len(both) >= search.population else []


def _samples(search: Search, orders: list[Order]) -> np.ndarray:
    """All samples of the candidate that have come back: those of earlier looks, and these."""
    earlier, these = search.state.test.samples, _outputs(search, orders)
    these = these[missing.kept(search, these)]
    return np.vstack([earlier, these]) if len(earlier) else these


def _hopeless(search: Search) -> bool:
    """Give the candidate up early, where the samples asked for first make it improbable that it will ever hold. Those that
    came back first may be the quick ones."""
    state, desk = search.state, _desk(search)
    asked = [*desk.group, *_of(search, "certify")]
    k = next((i for i, order in enumerate(asked) if not order.told), len(asked))
    if k == len(desk.group):  # for a look
        return False
    samples = _samples(search, asked[:k]) if k else None
    if samples is None or certify.promising(search, samples, certify.LUCKY):
        return False
    used = set(map(id, asked[:k]))
    begun = [order for order in desk if id(order) not in used and (order.number >= 0 or order.why != "certify")]
    desk.others, desk.group = begun, []
    state.test.samples = samples
    if certify.next_candidate(search):
        search.next_phase()
    return True


def _outputs(search: Search, orders: list[Order]) -> np.ndarray:
    """The results of these evaluations. If all evaluations so far have failed, not even the number of outputs is known."""
    width = len(search.state.noise.deviation)
    failed = np.full(width, np.inf)
    return np.stack([order.outputs if len(order.outputs) == width else failed for order in orders])


def _clear(search: Search) -> None:
    """Remove the results that no phase waits for any more. Models and the estimate of x_k still use them."""
    state, desk = search.state, _desk(search)
    if desk.group and not _grouped(search):
        desk.others, desk.group = [*desk.group, *desk.others], []
    gone = [order for order in desk.others if not order.out and not _useful(search, order)]
    if not gone:
        return
    ids = set(map(id, gone))
    desk.others = [order for order in desk.others if id(order) not in ids]
    late = [order for order in gone if order.told and (order.why != "certify" or search.few)]
    if not late:
        return
    outputs, point = _outputs(search, late), state.run.incumbent
    known = missing.kept(search, outputs)
    late, outputs = [order for order, good in zip(late, known) if good], outputs[known]
    for order, row in zip(late, outputs):
        repeat = order.why in ("trial", "incumbent") and np.array_equal(order.z, state.run.es.x)
        if repeat and search.options.incumbent == "pooled" and state.phase in ("start", "sample", "trial"):
            point.estimate = pool(point.estimate, estimate(row[None]))
    if late and search.archive is not None:
        search.archive.place(np.stack([order.z for order in late]), outputs)


def end(search: Search, why: str) -> None:
    """End the search: the models learn from all results, and the remaining budget is for fresh samples."""
    state = search.state
    phase, state.phase = state.phase, "end"  # in this phase nothing is waited for
    _clear(search)
    state.phase = phase
    search.end(why)
    _clear(search)
