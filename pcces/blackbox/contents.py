"""What the file of a search must hold, wherever it comes from: it may be damaged, or a stranger's.

The shape of an array is in sizes that the arrays of one search share: a letter stands for the same size everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pcces.blackbox.options import CMA_DIMENSION
from pcces.core.certificate import BOUNDS
from pcces.core.estimation import FARTHEST
from pcces.support.schema import ANY_NUMBER, FLAG, NAMES, NUMBER, SHARE, TEXT, Kind, check, several, whole
from pcces.support.text import short

if TYPE_CHECKING:
    from pcces.blackbox.space import Space

Arrays = Mapping[str, np.ndarray]
MANY = 2**53  # evaluations: a float counts so far
PHASES = ("start", "propose", "sample", "trial", "certify", "done")
SQUARE = ("cma", "model", "gp")  # strategies that have n^2 numbers

DATA = {"arguments": NAMES, "seed": whole(0, 2**63 - 1), "memory": NAMES, "constraint_names": several(TEXT)}
ARGUMENTS = {
    "max_evaluations": whole(1, MANY), "options": NAMES, "linear": several(Kind("a list", lambda v: isinstance(v, list))),
    "confidence": SHARE, "common_random_numbers": FLAG, "equalities": several(whole(-MANY, MANY)), "strategy": TEXT, "preset": TEXT,
}  # fmt: skip
PART = Kind("between 0 and 1", lambda v: NUMBER.fits(v) and 0 <= v <= 1)
_row, _count, _at_least_zero = whole(-1), whole(0, MANY), Kind("at least 0", lambda v: NUMBER.fits(v) and v >= 0)
EARLIER = "exact"  # a bound's name in files of an earlier version
_BOUNDS = Kind(
    "names of bounds", lambda v: isinstance(v, str) and all(name in (*BOUNDS, EARLIER) for name in v.split(", "))
)
MEMORY = {
    "phase": Kind(f"one of {', '.join(PHASES)}", lambda v: v in PHASES), "message": TEXT, "converged": FLAG, "batches": _count,
    "evaluations": _count, "failures": _count, "repeated": _count, "from_data": FLAG, "given": _count, "missed": _count,
    "test_failed": _count, "answer_failed": _count, "failure_rate": PART, "constraints": _row, "noisy": FLAG,
    "jump": _at_least_zero, "surprise": FLAG, "boolean": FLAG, "over": _count, "run_start": _count, "incumbent_row": _row,
    "trial_row": _row, "few": FLAG, "fitted": _count, "bent": _count, "spread_floor": _at_least_zero, "stalls": _count,
    "progress_f": ANY_NUMBER, "kind": TEXT, "looks": _count, "holds": FLAG, "kept": FLAG, "answer_samples": _count, "method": _BOUNDS,
    "answer_broken": ANY_NUMBER, "spent": PART,
    "f_scale": Kind("a positive number", lambda v: NUMBER.fits(v) and v > 0),
}  # fmt: skip

# The kinds of numbers (NumPy's letters) and the shapes of arrays. n: coordinates, s: of the point as the user has it, w:
# outputs of an evaluation, r: inequalities; capital letters: whatever there are. "." has no axis; "0" is empty.
_ESTIMATE = {"n": ("f", "."), "mean": ("f", "w|1"), "squares": ("f", "w|1")}
_ESTIMATES = {
    f"{name}.{part}": kind
    for name in ("first", "incumbent", "trial", "ends.i.estimate")
    for part, kind in _ESTIMATE.items()
}
ARRAYS: dict[str, tuple[str, str]] = _ESTIMATES | {
    "x0": ("f", "s|J s"), "origin": ("f", "n|0"), "starts": ("f", "K n|0 0|0"), "equal": ("i", "E"), "noise": ("f", "w"), "jump": ("f", "w|."), "residuals": ("f", "R w|0 0"),
    "low": ("f", "r"), "high": ("f", "r"), "worst": ("f", "r"), "between": ("b", "r"), "state.x": ("f", "n"), "state.sigma": ("f", "."),
    "state.sigma_es": ("f", "."), "state.k": ("i", "."), "state.successes": ("i", "."), "theta": ("f", "w t|0 0"), "bends": ("f", "w 2|0 0"),
    "multipliers": ("f", "r"), "wins": ("f", "4"), "x_trial": ("f", "n|0"), "trial_samples": ("f", "T w|0 0"),
    "incumbent_samples": ("f", "I w|0 0"), "expected": ("f", "2 w|0 0"), "doubt": ("f", "2 w|0 0"), "d": ("f", "n|0"),
    "weights": ("f", "P"), "directions": ("f", "P n"), "certificate_samples": ("f", "S w|0 0"), "answer": ("f", "n|0"),
    "answer_mean": ("f", "w|0"), "bounds": ("f", "r|0"), "answer_values": ("f", "w|0"), "levels": ("f", "r|0"),
    "memory": ("f", "r|0"), "accepted_points": ("f", "A n"), "accepted_means": ("f", "A v"), "ends.i.x": ("f", "n"),
    "ends.i.factor": ("f", "n n|0 0|0"), "ends.i.spread": ("f", "."), "ends.i.multipliers": ("f", "r"),
    "candidates.i": ("f", "n"), "history_evaluations": ("i", "H"), "history_fun": ("f", "H"), "history_sigma": ("f", "H"),
    "history_sigma_es": ("f", "H"), "history_samples_trial": ("i", "H"), "history_samples_incumbent": ("i", "H"),
    "history_success": ("b", "H"), "history_feasible": ("b", "H"), "history_kind": ("U", "H"),
    "history_constr": ("f", "H r|H 0"), "history_excess": ("f", "H m|H r|H 0"), "evaluations_x": ("f", "V s|V 0"), "evaluations_f": ("f", "V"),
    "evaluations_c": ("f", "V m|0 0"), "evaluations_seed": ("i", "V"), "evaluations_seconds": ("f", "V"),
    "evaluations_why": ("U", "V"), "evaluations_dropped": ("fi", "2|1|."), "archive_points": ("f", "B n|0 0"),
    "archive_outputs": ("f", "B w|0 0"), "archive_counts": ("f", "B"), "archive_within": ("f", "w|0"),
    "archive_freedom": ("f", "."), "archive_failed": ("f", "F n|0 0"),
    "parts_told": ("b", "D"), "parts_f": ("f", "D"), "parts_boolean": ("b", "."), "parts_c": ("bf", "D m|D C"),
    "earlier_points": ("f", "X s"), "earlier_f": ("f", "X"), "earlier_c": ("f", "X Y"), "desk_seed": ("i", "O"), "desk_why": ("U", "O"),
    "desk_run": ("i", "O"), "desk_pair": ("i", "O"), "desk_number": ("i", "O"), "desk_row": ("i", "O"), "desk_told": ("b", "O"),
    "desk_outputs": ("f", "O w|O 0|0 0"), "desk_numbers": ("i", "3"), "desk_z": ("f", "O n"),
}  # fmt: skip
TOGETHER = [
    {"low", "high", "between"}, {"archive_points", "archive_outputs", "archive_counts"}, {"accepted_points", "accepted_means"},
    *({f"{name}.{part}" for part in _ESTIMATE} for name in ("first", "incumbent", "trial")),
    {name for name in ARRAYS if name.startswith("history_")} - {"history_excess"}, {name for name in ARRAYS if name.startswith("evaluations_")},
    {name for name in ARRAYS if name.startswith("state.")}, {name for name in ARRAYS if name.startswith("desk_")} - {"desk_z"},
    {"parts_told", "parts_f", "parts_boolean"}, {"earlier_points", "earlier_f"},
]  # fmt: skip
DERIVED = 1e120  # from what is no farther from zero than FARTHEST
LIMITS = {"theta": 300.0, "evaluations_dropped": MANY, "state.k": MANY, "state.successes": MANY, "state.sigma": 1e50,
          "evaluations_f": FARTHEST, "evaluations_c": FARTHEST, "x0": FARTHEST}  # fmt: skip
INSIDE = {
    "state.x",
    "x_trial",
    "answer",
    "accepted_points",
    "ends.i.x",
    "candidates.i",
    "archive_points",
    "archive_failed",
    "starts",
    "desk_z",
}
FINITE = {
    "x0", "noise", "residuals", "state.x", "state.sigma", "state.sigma_es", "theta", "multipliers", "wins", "x_trial", "d",
    "weights", "directions", "accepted_points", "ends.i.x", "ends.i.factor", "ends.i.spread", "ends.i.multipliers",
    "candidates.i", "answer", "archive_points", "archive_outputs", "archive_counts", "archive_within", "archive_freedom",
    "archive_failed", "evaluations_x", "first.n", "incumbent.n", "trial.n", "ends.i.estimate.n", "expected", "doubt",
    "accepted_means", "evaluations_dropped", "origin", "starts", "desk_z", "earlier_points",
}  # fmt: skip
POSITIVE = {"state.sigma", "state.sigma_es", "wins", "archive_counts", "ends.i.spread"}
NEAREST, SIZES = 1e-100, ("sigma", "sigma_es", "spread")  # to zero: steps so small that their squares are not 0
NOT_NEGATIVE = {
    "noise", "state.k", "evaluations_dropped", "archive_within", "archive_freedom", "first.n", "incumbent.n", "trial.n", "ends.i.estimate.n",
    "first.squares", "incumbent.squares", "trial.squares", "ends.i.estimate.squares",
}  # fmt: skip


def check_header(data: Mapping[str, Any], arrays: Arrays) -> None:
    """Raise a ValueError for a header that is none of a search, or an x0 that is none."""
    check(data, DATA, needed={"arguments", "seed", "memory"})
    check(data["arguments"], ARGUMENTS, "arguments", {"max_evaluations", "options", "linear", "confidence"})
    check(data["memory"], MEMORY, "memory", {"phase", "evaluations", "constraints"})
    for parts in data["arguments"]["linear"]:
        if len(parts) != 3 or not np.isfinite(np.asarray(parts[0], dtype=float)).all():
            raise ValueError("arguments.linear must hold matrices of finite numbers, each between two limits")
    x0 = arrays.get("x0")
    if x0 is None or x0.ndim not in (1, 2) or not x0.size:
        raise ValueError("it has no x0")


def check_dimension(data: Mapping[str, Any], arrays: Arrays, n: int) -> None:
    """Raise a ValueError where a search would take more memory than its file: n^2 numbers for the n of a small file."""
    square = arrays.get("strategy.covariance", np.zeros(0))
    if n > CMA_DIMENSION and data["arguments"].get("strategy") in SQUARE and square.shape != (n, n):
        raise ValueError(f"it lacks the covariance of {n} variables")


def check_arrays(arrays: Arrays, memory: Mapping[str, Any], space: Space, strategy: Arrays) -> None:
    """Raise a ValueError for arrays of other types or shapes than a search of these variables has, or that do not go
    together. `strategy`: what the strategy's own arrays look like."""
    noise = arrays.get("noise", np.zeros((0, 0)))
    m, w = max(memory["constraints"], 0), noise.size
    equal = arrays.get("equal", np.zeros(0, dtype=int))
    if noise.ndim != 1 or w != 1 + m + equal.size or len(set(equal.tolist())) < equal.size:
        raise ValueError(f"it has {w} outputs for {m} constraints, {equal.size} of them equalities")
    if equal.size and not (equal.dtype.kind == "i" and equal.min() >= 0 and equal.max() < m):
        raise ValueError(f"its equalities are not among its {m} constraints")
    n, slack = space.n, 1e-3 if space.dtype == np.float32 else 1e-6
    sizes = {"n": n, "s": space.size, "w": w, "r": w - 1, "v": w + 1, "m": m, "t": n + 2}
    for name, array in arrays.items():
        same = strategy.get(name)
        if same is not None and (array.shape != same.shape or array.dtype.kind != same.dtype.kind):
            raise ValueError(f"{name} is of another strategy")
        general = generalised(name)
        if general not in ARRAYS:
            if same is not None and not (np.abs(array) <= LIMITS["state.sigma"]).all():
                raise ValueError(f"{name} holds nan, inf or numbers larger than make sense")
            if name in ("strategy.factor", "strategy.covariance") and not array.any(axis=-1).all():
                raise ValueError(f"{name} has a row of zeros: a direction that is never searched")
            continue
        kinds, shapes = ARRAYS[general]
        if array.dtype.kind not in kinds or not any(_fits(array.shape, shape, sizes) for shape in shapes.split("|")):
            raise ValueError(f"{name} holds {array.dtype} in the shape {array.shape}")
        _check_values(name, general, array)
        outside = (
            general in INSIDE
            and array.size
            and ((array < space.z_lower - slack) | (array > space.z_upper + slack)).any()
        )
        if outside:
            raise ValueError(f"{name} holds points outside the bounds")
    for group in TOGETHER:
        if 0 < len(arrays.keys() & group) < len(group):
            raise ValueError(f"it lacks {', '.join(sorted(group - arrays.keys()))}")
    _check_together(arrays, memory, sizes.get("B", 0))


def generalised(name: str) -> str:
    """The name that stands in `ARRAYS` for the arrays of a list.

    >>> generalised("ends.3.x"), generalised("x0")
    ('ends.i.x', 'x0')
    """
    return re.sub(r"\.\d+(?=\.|$)", ".i", name)


def _fits(shape: tuple[int, ...], wanted: str, sizes: dict[str, int]) -> bool:
    """Whether an array has this shape; a size that was not known is from then on."""
    letters = [] if wanted == "." else wanted.split()
    if len(letters) != len(shape):
        return False
    known = [int(letter) if letter.isdigit() else sizes.get(letter, there) for letter, there in zip(letters, shape)]
    if known != list(shape):
        return False
    sizes.update((letter, size) for letter, size in zip(letters, shape) if letter.isalpha())
    return True


def _check_values(name: str, general: str, array: np.ndarray) -> None:
    squares = general.endswith("squares") or general == "archive_within"
    counts = general in (
        "archive_counts",
        *(f"{whose}.n" for whose in ("first", "incumbent", "trial", "ends.i.estimate")),
    )
    most = DERIVED**1.75 if squares else MANY if counts else LIMITS.get(general, DERIVED)
    if array.dtype.kind in "fi" and (np.isfinite(array) & (np.abs(array.astype(float)) > most)).any():
        raise ValueError(f"{name} holds numbers larger than make sense")
    if general in FINITE and not np.isfinite(array).all():
        raise ValueError(f"{name} holds nan or inf")
    if general in POSITIVE and not (array > (NEAREST if general.endswith(SIZES) else 0)).all():
        raise ValueError(f"{name} holds what is not positive, or smaller than makes sense")
    if general in NOT_NEGATIVE and (array < 0).any():
        raise ValueError(f"{name} holds what is negative")


def _check_together(arrays: Arrays, memory: Mapping[str, Any], archived: int) -> None:
    """That what a phase goes on from is there."""
    w, phase = arrays["noise"].size, memory["phase"]
    if max(memory.get("incumbent_row", -1), memory.get("trial_row", -1)) >= archived:
        raise ValueError("it names evaluations that are not in its archive")
    for name in ("incumbent", "trial"):
        if f"{name}.n" in arrays and arrays[f"{name}.n"] > 0 and arrays[f"{name}.mean"].size != w:
            raise ValueError(f"the estimate {name} has other outputs than the evaluations")
    measured = {f"incumbent.{part}" for part in _ESTIMATE} <= arrays.keys() and arrays["incumbent.n"] > 0
    if phase in ("sample", "trial", "certify") and not measured:
        raise ValueError(f"it lacks the estimate of the incumbent, which the phase {phase} goes on from")
    if phase == "done" and not memory.get("message"):
        raise ValueError("it is done, and does not say why")
    told = memory["evaluations"] - memory.get("repeated", 0)
    if memory.get("failures", 0) > told or memory.get("over", 0) > (told if w > 1 else 0):
        raise ValueError(f"of {told} evaluations, more failed or were over a limit")
    answered = [
        name for name in ("answer", "answer_mean", "answer_values", "bounds") if name in arrays and arrays[name].size
    ]
    if answered and not memory.get("answer_samples"):
        raise ValueError(f"it has {answered[0]}, and no samples of an answer")
    if w > 1 and "multipliers" not in arrays:
        raise ValueError("it lacks the multipliers of its constraints")
    if arrays.get("archive_freedom", np.zeros(())) > 0 and not arrays.get("archive_within", np.zeros(0)).size:
        raise ValueError("it lacks archive_within, the noise in its archive")
    needs = {"trial": ("x_trial", "d", "weights"), "certify": ("candidates.0",)}.get(phase, ())
    needs += ("answer", "answer_values", "bounds") if memory.get("answer_samples") else ()
    for name in needs:
        if name not in arrays or (arrays[name].size == 0 and not (name == "bounds" and w == 1)):
            raise ValueError(f"it lacks {name}, which the phase {phase} goes on from")
    bends = arrays.get("bends", np.zeros((0, 2)))
    if bends.size and not (np.isfinite(bends[:, 0]) & (bends[:, 1] > 0)).all():
        raise ValueError("bends holds origins that are not finite, or units that are not positive")
    if memory.get("few") and memory.get("f_scale") and archived and not arrays.get("theta", np.zeros(0)).size:
        raise ValueError("it lacks theta, the parameters of its Gaussian processes")


def words(error: Exception) -> str:
    """What is wrong with a file, in a line."""
    return short(error if isinstance(error, ValueError) else f"{type(error).__name__}: {error}", 200)
