"""Ask/tell: Algorithm 1 for any black box, one batch at a time; `save` and `load` at any moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from pcces.blackbox.batch import Batch, Streams
from pcces.blackbox.certify import Certification
from pcces.blackbox.options import Options, make_options
from pcces.blackbox.search import Search
from pcces.blackbox.space import Space
from pcces.strategies import Strategy
from pcces.support import files as storage

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint, OptimizeResult


class Optimizer:
    """Minimise f(x) subject to c(x) <= 0 by asking for points and being told their noisy values.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> opt = Optimizer([0.0, 0.0], bounds=[(-2, 2), (-2, 2)], max_evaluations=2000, rng=0)
    >>> while not opt.stop():
    ...     batch = opt.ask()
    ...     x = batch.points
    ...     f = ((x - 1) ** 2).sum(1) + 0.01 * rng.standard_normal(len(x))
    ...     c = x.sum(1) - 1 + 0.01 * rng.standard_normal(len(x))
    ...     opt.tell(batch, f, c)
    >>> opt.result.success, bool(np.allclose(opt.result.x, 0.5, atol=0.05))
    (True, True)
    """

    def __init__(
        self,
        x0: Any,
        *,
        bounds: Any = None,
        linear: LinearConstraint | Sequence[LinearConstraint] = (),
        equalities: Sequence[int] = (),
        strategy: str | Strategy = "default",
        preset: str = "default",
        max_evaluations: int | None = None,
        confidence: float = 0.95,
        common_random_numbers: bool = False,
        rng: int | np.random.Generator | None = None,
        scale: Any = None,
        **options: Any,
    ):
        self.options: Options = make_options(preset, **options)
        linear = [linear] if isinstance(linear, scipy.optimize.LinearConstraint) else list(linear)
        self.space = Space(x0, bounds, linear, scale)
        n = self.space.n
        if max_evaluations is None:
            max_evaluations = 2000 * n
        if max_evaluations < 1:
            raise ValueError(f"max_evaluations must be at least 1, got {max_evaluations}")
        if not 0.5 <= confidence < 1:
            raise ValueError(f"confidence must lie in [0.5, 1), got {confidence}")
        self.search = Search(
            self.space,
            self.options,
            strategy,
            preset,
            int(max_evaluations),
            float(confidence),
            [int(i) for i in equalities],
            bool(common_random_numbers),
            seed=int(np.random.default_rng(rng).integers(2**63)),
        )
        self.certification = Certification(self.search)
        self.memory, self.history = self.search.memory, self.search.history
        self._asked: Batch | None = None
        self._arguments = {  # what `load` needs to build this object again
            "bounds": _plain_bounds(self.space) if self.space.bounded else None,
            "linear": [_plain_linear(constraint) for constraint in linear],
            "equalities": [int(i) for i in equalities],
            "strategy": strategy if isinstance(strategy, str) else None,
            "preset": preset,
            "max_evaluations": int(max_evaluations),
            "confidence": float(confidence),
            "common_random_numbers": bool(common_random_numbers),
            "scale": None if scale is None else np.broadcast_to(np.asarray(scale, dtype=float), n).tolist(),
            "options": options,
        }

    # -- the loop ------------------------------------------------------------------------------------------------------

    def stop(self) -> str:
        """Why the search is over, or an empty string (false) while it is not."""
        return self.memory.message if self.memory.phase == "done" else ""

    def finish(self) -> None:
        """End the search here; what is left of the budget goes into the certificate."""
        if self.memory.phase not in ("certify", "done"):
            self._asked = None
            self.search.end("stopped by the caller")
            self._enter_certification()

    def ask(self) -> Batch:
        """All that can be evaluated in parallel now: samples, or repeats of trial point and incumbent alike."""
        if self.memory.phase == "done":
            raise RuntimeError(f"the search is over ({self.memory.message}); read .result")
        if self._asked is None:
            part = self.certification if self.memory.phase == "certify" else self.search
            points, seeds, *at_trial = part.ask()
            self._asked = Batch(points, seeds, self.memory.batches, self.memory.phase, *at_trial)
        return self._asked

    def tell(self, batch: Batch, f: Any, c: Any = None) -> None:
        """Report f (k,) and c (k, m) for the points of the batch just asked for; nan or inf marks a failed evaluation."""
        asked = self.ask()
        if batch.number != asked.number:
            raise ValueError(f"told batch {batch.number}, but batch {asked.number} is the one that was asked for last")
        outputs = self._outputs(f, c, len(asked.seeds))
        self.memory.evaluations += len(outputs)
        self.memory.failures += int((~np.isfinite(outputs[:, 0])).sum())
        self.memory.batches += 1
        self._asked = None
        if asked.phase == "certify":
            self.certification.tell(asked, outputs)
        else:
            self.search.tell(asked, outputs)
            self._enter_certification()

    def _enter_certification(self) -> None:
        if self.memory.phase == "certify" and not self.memory.candidates:
            self.certification.next_candidate()

    def _outputs(self, f: Any, c: Any, k: int) -> np.ndarray:
        """(f, inequalities, equalities both ways) as rows; failed evaluations are rows of +inf."""
        f = np.asarray(f, dtype=float)
        if f.shape != (k,):
            raise ValueError(f"f must have shape ({k},), one value a point, got {f.shape}")
        m = self.memory.constraints
        c_given = c is not None or bool(np.any(np.isfinite(f)))
        c = np.full((k, max(m, 0)), np.nan if m > 0 and not np.any(np.isfinite(f)) else 0.0) if c is None else c
        c = np.asarray(c, dtype=float)
        c = c[:, None] if c.ndim == 1 and len(c) == k else c
        if c.ndim != 2 or len(c) != k:
            raise ValueError(f"c must have shape ({k}, number of constraints), got {c.shape}")
        if m >= 0 and c.shape[1] != m:
            raise ValueError(f"c has {c.shape[1]} constraints now but had {m} before")
        if m >= 0 or c_given:
            self._check_range(f, c)
        if m < 0 and c_given:
            self.search.learn_constraints(c.shape[1])
        columns = [f[:, None], c]
        if len(self.memory.equal):
            h, tolerance = c[:, self.memory.equal], self.options.equality_tolerance
            columns = [f[:, None], np.delete(c, self.memory.equal, axis=1), h - tolerance, -h - tolerance]
        rows = np.concatenate(columns, axis=1)
        rows[~np.isfinite(rows).all(axis=1)] = np.inf
        return rows

    def _check_range(self, f: np.ndarray, c: np.ndarray) -> None:
        """Every c must lie in the range that was stated for it; failed evaluations have none."""
        given = self.options.constraint_range
        if given is None:
            return
        if len(given) != c.shape[1]:
            raise ValueError(f"constraint_range has {len(given)} pairs for {c.shape[1]} constraints")
        low, high = np.array(given, dtype=float).reshape(-1, 2).T
        slack = 1e-9 * (high - low)
        failed = ~(np.isfinite(f) & np.isfinite(c).all(axis=1))
        outside = np.argwhere(((c < low - slack) | (c > high + slack)) & ~failed[:, None])
        if len(outside):
            i, j = outside[0]
            raise ValueError(
                f"constraint {j} was {c[i, j]:.9g}, outside its constraint_range ({low[j]:g}, {high[j]:g}): "
                "give a range that holds at every point, or leave constraint_range out"
            )

    @property
    def evaluations_left(self) -> int:
        """How many evaluations the budget still holds."""
        return self.search.evaluations_left

    # -- the answer --------------------------------------------------------------------------------------------------------

    @property
    def result(self) -> OptimizeResult:
        """The answer so far; after the end, with the certificate's verdict."""
        from pcces.blackbox.result import make_result

        return make_result(self)

    # -- files -------------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write everything the search knows; at any moment, batches asked for and not told included."""
        if self._arguments["strategy"] is None:
            raise ValueError("only strategies given by name can be saved")
        arrays = {"x0": self.space.x0, **self.memory.arrays(), **self.history.arrays()}
        if self.search.archive is not None:
            arrays.update(
                archive_points=self.search.archive.points,
                archive_outputs=self.search.archive.outputs,
                archive_counts=self.search.archive.counts,
            )
        data = {"arguments": self._arguments, "seed": self.search.streams.seed, "memory": self.memory.scalars()}
        storage.save(path, "pcces search", arrays, data)

    @classmethod
    def load(cls, path: str | Path) -> Optimizer:
        """Continue where `save` left off, to the same bits.

        >>> import tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "search.npz")
        >>> Optimizer([1.0, 2.0], rng=3).save(path)
        >>> Optimizer.load(path).ask().points
        array([[1., 2.],
               [1., 2.]])
        """
        arrays, data = storage.load(path, "pcces search")
        arguments = dict(data["arguments"])
        options = arguments.pop("options")
        if options.get("constraint_range"):
            options["constraint_range"] = tuple(tuple(pair) for pair in options["constraint_range"])
        arguments["linear"] = [scipy.optimize.LinearConstraint(*parts) for parts in arguments["linear"]]
        optimizer = cls(arrays["x0"], **arguments, **options)
        optimizer.search.streams = Streams(data["seed"])
        optimizer.memory.restore(arrays, data["memory"])
        optimizer.history.restore(arrays)
        if optimizer.search.archive is not None and "archive_points" in arrays:
            optimizer.search.archive.restore(
                *(arrays[f"archive_{name}"].copy() for name in ("points", "outputs", "counts"))
            )
        return optimizer


def _plain_bounds(space: Space) -> list[list[float | None]]:
    return [[None if math.isinf(v) else float(v) for v in pair] for pair in zip(space.lower, space.upper)]


def _plain_linear(constraint: LinearConstraint) -> list[Any]:
    A = constraint.A.toarray() if hasattr(constraint.A, "toarray") else constraint.A
    A = np.atleast_2d(np.asarray(A, dtype=float))
    return [A.tolist(), *(np.broadcast_to(side, len(A)).tolist() for side in (constraint.lb, constraint.ub))]
