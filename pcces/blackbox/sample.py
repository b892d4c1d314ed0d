"""The phase of Steps 1 to 3: sample around x_k, rank the samples, and propose a trial point."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pcces import strategies
from pcces.blackbox import caution, discrete, limits, population
from pcces.blackbox.batch import TURNS, Batch
from pcces.blackbox.models.archive import Archive
from pcces.blackbox.models.quadratic import LocalModel, local_model
from pcces.blackbox.population import LazyPoints, Normals, population_normals
from pcces.blackbox.state import Trial
from pcces.core import algorithm
from pcces.core.barrier import feasible_first, violation

if TYPE_CHECKING:
    from pcces.blackbox.search import Search

WIDE = 0.03  # steps longer than this may cross from one valley to another
WIDER = 1.15  # sigma^ES under noise, where the model still fits
WIDEST = 0.3  # and no wider


def ask(search: Search) -> Batch:
    """Step 1: mirrored directions from the strategy, and the points they lead to."""
    run, strategy, space, number = search.state.run, search.strategy, search.space, search.state.budget.batches
    half = search.population // 2
    normals = population_normals(search.streams, int(run.es.k), half, search.normals, space.dtype)
    seeds = search.streams.seeds(number, search.population)
    if search.common_random_numbers:  # mirrored pairs share their seeds
        seeds = np.concatenate([seeds[:half]] * 2)
    large = search.population * space.n > population.LAZY_NUMBERS
    if strategy.lazy and space.variables is None and (large or not space.confined):
        lazy = LazyPoints(normals, strategy, run.strategy, run.es, space)
        return Batch(lazy if large else np.asarray(lazy), seeds, number, "sample", directions=lazy)
    points = _mirrored(search, normals)
    directions = (points - run.es.x) / run.es.sigma_es  # what is left of them
    points = discrete.neighbours(search, points)
    return Batch(space.to_x(points), seeds, number, "sample", directions=directions)


def _mirrored(search: Search, normals: Normals) -> np.ndarray:
    """The points z around x_k that normals lead to, and their mirror images."""
    run, rows = search.state.run, normals.rows(0, normals.shape[0])
    directions = algorithm.mirrored(search.strategy.directions(run.strategy, rows))
    points = search.space.inside(algorithm.sample_points(run.es.x, run.es.sigma_es, directions))
    return caution.drawn_in(search, points)


def pair(search: Search) -> tuple[np.ndarray, np.ndarray]:
    """Two points z (2, n) of a population that grows as workers become free, mirror images, and their seeds."""
    number = search.state.budget.batches
    normals = population_normals(search.streams, number, 1, search.normals, search.space.dtype)
    seeds = search.streams.seeds(number, 2)
    if search.common_random_numbers:
        seeds = seeds[[0, 0]]
    return discrete.neighbours(search, _mirrored(search, normals)), seeds


def tell(search: Search, batch: Batch, outputs: np.ndarray) -> bool:
    """Steps 2 and 3: the barrier ranks the samples; the strategy combines them into d_k, or the model finds a better one."""
    state, options, run = search.state, search.options, search.state.run
    es, noisy, directions = run.es, state.noise.present, batch.directions
    assert directions is not None
    held = None if isinstance(directions, LazyPoints) else directions
    local, turn = None, False
    points = None
    if held is not None:
        points = search.space.to_z(np.asarray(batch.points)) if search.space.rounds else es.x + es.sigma_es * held
    if search.archive is not None and points is not None:
        local, turn, outputs = _modelled(search, search.archive, points, outputs)
    restoring = limits.broken(search, run.incumbent.estimate, 1) > 0
    f, broken = outputs[:, 0], violation(limits.clearance(search, outputs))
    if state.f_scale is None:
        finite = f[np.isfinite(f)]
        state.f_scale = (float(np.std(finite)) if finite.size > 1 else 0.0) or 1.0
    by_merit = restoring and options.restoration == "merit"  # as Step 4 will compare
    fitness = f + options.rho * broken if by_merit else feasible_first(f, broken)
    usable = np.isfinite(fitness)
    if usable.any():  # a failed sample must not shift the others
        fitness[usable] = strategies.SHAPINGS[options.shaping](fitness[usable])
        if options.missing:
            fitness[~usable] = np.median(fitness[usable])
    if options.shaping == "standardised" and search.common_random_numbers and noisy:
        spread = float(strategies.pair_spread(fitness))  # the noise that pairs share says nothing about the slope
        fitness = fitness / spread if spread > 0 else fitness
    weights = search.strategy.weights(fitness)

    kind, step = search.strategy.name, None
    d = (
        directions.combine(weights)
        if isinstance(directions, LazyPoints)
        else weights.astype(directions.dtype) @ directions
    )
    if local is not None and turn and held is not None:
        sigma, size = float(es.sigma), math.sqrt(search.space.n)
        radius = min(size * sigma / local.length, 3 * size)
        backoff = limits.margin(search) + (0.3 if noisy else 1.0) * local.model.error[1:] - limits.allowance(search)
        # While steps are wide, it is looked for from the best samples, too.
        best = es.sigma_es * held[np.lexsort((f, broken))[:2]] if sigma > WIDE else None
        step = discrete.settled(search, limits.asked(search, local), radius, backoff, best)
    if step is not None:
        kind, d, run.multipliers = "model", step.x / float(es.sigma), step.multipliers
    x_trial = search.space.project(algorithm.trial_point(es, d, search.rule))
    x_trial = caution.drawn_in(search, x_trial[None])[0]
    neighbour = discrete.better(search, points, f, broken)
    if neighbour is not None:
        kind, x_trial = "neighbour", neighbour
        d = (x_trial - es.x) / es.sigma
    state.trial = Trial(x_trial, kind, d, weights, held)
    if local is not None and noisy and limits.hard_to_see(search).any():
        local = limits.asked(search, local)
        offsets = np.stack([x_trial - es.x, np.zeros_like(x_trial)])
        farther = 1 + (local.to_u(offsets) ** 2).mean(1)
        doubt = local.model.error * np.sqrt(1 + 0.5 * limits.tails(search) ** 2)
        state.trial.expected, state.trial.doubt = local.predict(offsets), farther[:, None] * doubt
    return True


def _modelled(
    search: Search, archive: Archive, points: np.ndarray, outputs: np.ndarray
) -> tuple[LocalModel | None, bool, np.ndarray]:
    """The local model, whether it is its turn to propose d_k, and the outputs; under noise what it makes of them."""
    run, es, noise = search.state.run, search.state.run.es, search.state.noise
    archive.add(points, outputs)
    by_model, by_strategy = run.wins[0] / run.wins[1], run.wins[2] / run.wins[3]
    chance = max(0.2, by_model / (by_model + by_strategy))  # it proposes more often the more often that succeeds
    turn = search.streams(TURNS, search.state.budget.batches).random() < chance
    if not turn and not noise.present:
        return None, False, outputs
    spread = float(es.sigma_es)
    local = local_model(archive, es.x, run.strategy.factor, spread, noise.deviation, with_noise=limits.shaped(search))
    if local is None or not noise.present:
        return local, turn, outputs
    fits = local.explains(points - es.x, outputs, noise.deviation)
    if fits is not None and search.options.sigma_es == "adapted":  # sample as widely as the model still fits
        factor = WIDER if fits else 1 / WIDER
        run.spread_floor = min(max(float(es.sigma_es), run.spread_floor) * factor, WIDEST)
    smooth = limits.asked(search, local).predict(points - es.x)
    if limits.shaped(search):
        smooth -= limits.offset(search)  # which will be added, as to single evaluations
    smooth[~np.isfinite(outputs[:, 0])] = np.inf
    return local, turn, smooth
