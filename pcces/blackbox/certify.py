"""The phase after the search: which points are put to the test, and when the test is over."""

from __future__ import annotations

import math

import numpy as np

from pcces.blackbox.batch import Batch
from pcces.blackbox.models.quadratic import local_model
from pcces.blackbox.search import Search
from pcces.core.certificate import expected_width, plausible_deviation, spend, upper_bounds
from pcces.core.estimation import estimate
from pcces.support.threads import one_blas_thread


class Certification:
    """Tests candidates on fresh samples, one after the other, until one holds or nothing is left."""

    def __init__(self, search: Search):
        self.search = search

    def next_candidate(self) -> None:
        """Put the next point to the test, or give up."""
        m = self.search.memory
        if m.constraints <= 0:
            self._conclude(holds=True)
            return
        if self.search.evaluations_left < (1 if m.noisy is False else 4) or len(m.candidates) >= 8:
            self._conclude(holds=False)
            return
        tried = len(m.candidates)
        z = m.state.x if tried == 0 else None
        if m.noisy is not False and self.search.uses_models:
            failed = tried > 0 and not np.all(np.isfinite(m.certificate_samples))
            with one_blas_thread():
                z = z if failed else self._corrected()
        if z is None or any(np.array_equal(z, other) for other in m.candidates):
            z = m.fallback(tried, self.search.margin())
        m.candidates.append(z)
        m.certificate_samples = None

    def _corrected(self) -> np.ndarray | None:
        """The next candidate by the models' slopes: the best point near the last one tested, from what its fresh samples
        measured there (near the incumbent, from all that is known, for the first)."""
        m = self.search.memory
        assert self.search.archive is not None
        first = not m.candidates
        x = m.state.x if first else m.candidates[-1]
        local = local_model(
            self.search.archive, x, m.strategy.factor, float(m.state.sigma_es), m.noise, everything=True
        )
        if local is None:
            return None
        measured = m.incumbent if first else estimate(m.certificate_samples)
        if not np.all(np.isfinite(measured.mean)):
            return None
        error = m.noise / np.sqrt(measured.n)
        trust = 1.0 if not first else local.model.error**2 / (local.model.error**2 + error**2 + 1e-300)
        value = local.model.value + trust * (measured.mean - local.model.value)
        error = np.sqrt(trust) * error
        anchored = local._replace(model=local.model._replace(value=value))
        backoff = self.search.margin_for(self.search.evaluations_left, error[1:])
        spread = math.sqrt(self.search.space.n) * float(m.state.sigma_es) / local.length
        for reach in (0.03, 0.1, 0.3, 1.0):  # no farther than it takes: slopes are only good near by
            step = self.search.model_step(anchored, x, [np.zeros(self.search.space.n)], reach * spread, backoff)
            if step is None:
                return None
            predicted = anchored.model(anchored.to_u(step[None]))[0, 1:]
            if np.all(predicted + 0.9 * backoff <= 0):
                break
        return self.search.space.project(x + step)

    def ask(self) -> tuple[np.ndarray, np.ndarray]:
        """Fresh evaluations of the candidate."""
        m = self.search.memory
        have = 0 if m.certificate_samples is None else len(m.certificate_samples)
        left = self.search.evaluations_left
        if m.noisy is False:
            wanted = max(self.search.reserve(), 2)
        else:
            wanted = max(left // 3, 4) if have == 0 else left  # a first look, then all or nothing
        return self.search.repeat(m.candidates[-1], wanted)

    def tell(self, batch: Batch, outputs: np.ndarray) -> None:
        """Does it hold now, will it, or is it the next one's turn?"""
        m = self.search.memory
        samples = outputs if m.certificate_samples is None else np.vstack([m.certificate_samples, outputs])
        m.certificate_samples = samples
        if not np.all(np.isfinite(samples)):
            self.next_candidate()
            return
        if m.noisy is False and self._noise_after_all(samples):
            m.noisy, m.noise = True, samples.std(0)
        if m.noisy is False:
            self._note(samples, samples[:, 1:].max(0), "exact")
            self._conclude(bool(np.all(m.bounds <= 0)))
            return
        m.looks += 1
        error = spend(self.search.confidence, m.looks)
        bounds, method = upper_bounds(samples[:, 1:], error, self.search.ranges, m.noise[1:])
        self._note(samples, bounds, method)
        self.search.learn_noise(estimate(outputs), 0.1 if len(outputs) >= 8 else 0.0)
        if np.all(bounds <= 0):
            self._conclude(holds=True)
        elif self.search.evaluations_left < 4 or not self._promising(samples[:, 1:]):
            self.next_candidate()

    def _noise_after_all(self, samples: np.ndarray) -> bool:
        """Whether a function that looked deterministic at the start is not so here."""
        m = self.search.memory
        expected = m.incumbent.mean if len(m.candidates) == 1 else samples[0]
        return bool(np.any(samples != expected))

    def _note(self, samples: np.ndarray, bounds: np.ndarray, method: str) -> None:
        """Keep the least violating candidate: the answer, unless one holds."""
        m = self.search.memory
        mean = samples.mean(0)
        broken = float(np.max(mean[1:], initial=0.0))
        latest = np.array_equal(m.answer, m.candidates[-1]) if m.answer is not None else True
        if latest or np.all(bounds <= 0) or broken < float(np.max(m.answer_mean[1:], initial=0.0)):
            m.answer, m.answer_mean, m.answer_samples = m.candidates[-1], mean, len(samples)
            m.bounds, m.method = bounds, method

    def _promising(self, samples: np.ndarray) -> bool:
        """Whether this candidate would probably hold if all that is left were spent on it."""
        have, left = len(samples), self.search.evaluations_left
        deviation = plausible_deviation(samples, self.search.memory.noise[1:])
        error = spend(self.search.confidence, self.search.memory.looks + 1)
        bound_then = samples.mean(0) + expected_width(deviation, have + left, error, self.search.ranges)
        mean_may_move = deviation * math.sqrt(left / (have * (have + left)))
        return bool(np.all(bound_then + 0.5 * mean_may_move <= 0))

    def _conclude(self, holds: bool) -> None:
        m = self.search.memory
        m.holds, m.phase = holds, "done"
