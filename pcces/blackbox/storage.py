"""A search as a file: what it was asked for and all it knows; and whether a file is of the problem at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from pcces.blackbox.batch import Streams
from pcces.blackbox.coding import Variables
from pcces.blackbox.contents import check_arrays, check_dimension, check_header, words
from pcces.blackbox.earlier import Earlier, same
from pcces.blackbox.models.archive import Archive
from pcces.blackbox.outputs import Parts
from pcces.core.limits import to_dict
from pcces.support import files
from pcces.support.jsonable import jsonable
from pcces.support.trees import named_leaves

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint

    from pcces.blackbox.optimizer import Optimizer

KIND = "pcces search"
ARCHIVED = ("points", "outputs", "counts", "within", "freedom", "failed")


def save(optimizer: Optimizer, path: str | Path) -> None:
    """Write everything the search knows."""
    search = optimizer.search
    arrays, scalars = optimizer.state.plain()
    starts = optimizer.space.starts
    arrays |= {
        "x0": starts if len(starts) > 1 else starts[0],
        **optimizer.history.arrays(),
        **optimizer.evaluations.arrays(),
    }
    if search.archive is not None:
        arrays |= {f"archive_{name}": getattr(search.archive, name) for name in ARCHIVED}
    names = list(optimizer.state.constraints.given_names)
    data = {
        "arguments": arguments(optimizer),
        "seed": search.streams.seed,
        "memory": scalars,
        "constraint_names": names,
    }
    for more in (optimizer.parts, optimizer.earlier):
        if more is not None:
            arrays |= more.arrays()
    files.save(path, KIND, arrays, data)


def load(kind: type[Optimizer], path: str | Path) -> Optimizer:
    """The search in a file that `save` wrote; a ValueError if the file is damaged, or makes no sense."""
    arrays, data = files.load(path, KIND)
    try:
        return _restored(kind, arrays, data)
    except Exception as error:  # a stranger's file can be wrong in more ways than anybody has thought of
        raise ValueError(f"{path} is not the file of a search, or it is damaged ({words(error)})") from error


def _restored(kind: type[Optimizer], arrays: dict[str, np.ndarray], data: dict[str, Any]) -> Optimizer:
    """The search that a file tells of."""
    check_header(data, arrays)
    given = dict(data["arguments"])
    options = dict(given.pop("options"))
    if options.get("constraint_range"):
        options["constraint_range"] = tuple(tuple(pair) for pair in options["constraint_range"])
    if options.get("anneal"):
        options["anneal"] = tuple(options["anneal"])
    if options.pop("noisy", None) is False:  # of an earlier version
        options["deterministic"] = True
    given["linear"] = [scipy.optimize.LinearConstraint(*parts) for parts in given["linear"]]
    x0, n = arrays["x0"], arrays["x0"].shape[-1]
    if isinstance(given["bounds"], dict):
        given["bounds"] = variables = Variables.from_data(given["bounds"])
        x0, n = variables.shown(x0) if x0.ndim == 1 else variables.all_shown(x0), variables.at[-1].stop
    check_dimension(data, arrays, n)
    optimizer = kind(x0, **given, **options)
    strategy = {name: np.asarray(leaf) for name, leaf in named_leaves(optimizer.state.run.strategy, "strategy").items()}
    check_arrays(arrays, data["memory"], optimizer.space, strategy)
    for name in ("constraint_range", "limits"):
        stated = getattr(optimizer.options, name)
        if stated is not None and data["memory"]["constraints"] not in (-1, len(stated)):
            raise ValueError(f"it has {len(stated)} {name} for {data['memory']['constraints']} constraints")
    named, points = optimizer.space.variables, arrays.get("evaluations_x", np.zeros((0, 0)))
    if named is not None and points.size and not named.allowed(points):
        raise ValueError("its table of evaluations has points outside the bounds")
    if data["memory"].get("few") and optimizer.search.archive is None:
        raise ValueError(f"it says that evaluations are few, where the strategy {given['strategy']} has no models")
    optimizer.search.streams = Streams(data["seed"])
    optimizer.state.restore(arrays, data["memory"])
    optimizer.state.constraints.given_names = tuple(map(str, data.get("constraint_names", ())))
    if not optimizer.state.few:
        optimizer.search.hand_over()
    optimizer.history.restore(arrays)
    optimizer.evaluations.restore(arrays)
    optimizer.parts, optimizer.earlier = Parts.restored(arrays), Earlier.restored(arrays)
    if optimizer.search.archive is not None and "archive_points" in arrays:
        known = {name: arrays[f"archive_{name}"] for name in ARCHIVED if f"archive_{name}" in arrays}
        freedom = float(known.pop("freedom", np.zeros(())))
        optimizer.search.archive = Archive(**known, freedom=freedom)
    return optimizer


def arguments(optimizer: Optimizer) -> dict[str, Any]:
    """What the optimizer was asked for, as plain data."""
    if optimizer.given["strategy"] is None:
        raise ValueError("a search can only be saved if its strategy is given by name")
    search, space, scale = optimizer.search, optimizer.space, optimizer.given["scale"]
    bounds: Any
    if space.variables is not None:
        bounds = space.variables.plain_data()
    else:
        pairs = np.column_stack([space.lower, space.upper]).tolist()
        bounds = jsonable(pairs) if space.bounded else None
    options = dict(optimizer.given["options"])
    if optimizer.options.limits is not None:
        options["limits"] = [to_dict(limit) for limit in optimizer.options.limits]
    if "objective" in options:
        options["objective"] = to_dict(optimizer.options.objective)
    return optimizer.given | {
        "options": options,
        "bounds": bounds,
        "linear": [_plain_linear(constraint) for constraint in optimizer.given["linear"]],
        "scale": None if scale is None else np.broadcast_to(np.asarray(scale, dtype=float), space.n).tolist(),
        "equalities": optimizer.search.equalities,
        "max_evaluations": search.max_evaluations,
        "confidence": search.confidence,
        "common_random_numbers": search.common_random_numbers,
    }


def _plain_linear(constraint: LinearConstraint) -> list[Any]:
    A = constraint.A.toarray() if hasattr(constraint.A, "toarray") else constraint.A
    A = np.atleast_2d(np.asarray(A, dtype=float))
    return [A.tolist(), *(np.broadcast_to(side, len(A)).tolist() for side in (constraint.lb, constraint.ub))]


def resumed(optimizer: Optimizer, path: str | Path, seeded: bool) -> Optimizer:
    """The search in the file, if there is one, or else `optimizer`, which has not begun. A ValueError if the file is of
    another problem; `seeded` says whether the seed belongs to it."""
    files.check_writable(path)
    wanted = arguments(optimizer)
    if not Path(path).exists():
        return optimizer
    found = type(optimizer).load(path)
    differing = _differences(wanted, arguments(found))
    if not np.array_equal(optimizer.space.starts, found.space.starts):
        differing.insert(0, "x0")
    if not same(optimizer.earlier, found.earlier):
        differing.append("initial_data")
    if seeded and optimizer.search.streams.seed != found.search.streams.seed:
        differing.append("rng")
    if differing:
        raise ValueError(
            f"the checkpoint {path} is of another problem: it differs in {', '.join(differing)}; give what it was begun "
            "with, or another file"
        )
    return found


def _differences(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """The names of what differs, options by their own names."""

    def flat(data: dict[str, Any]) -> dict[str, Any]:
        data = json.loads(json.dumps(data, default=lambda value: value.tolist()))  # as a file has it
        return {name: value for name, value in data.items() if name != "options"} | data["options"]

    left, right = flat(wanted), flat(found)
    return [name for name in {**left, **right} if left.get(name) != right.get(name)]
