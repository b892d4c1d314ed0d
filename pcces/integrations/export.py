"""A policy for elsewhere, by the ending of the file's name: .onnx, .py (NumPy alone), .npz (plain arrays)."""

from __future__ import annotations

import base64
import io
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pcces.support import files as storage


class Exported(NamedTuple):
    """A policy as plain arrays: tanh layers, and what comes before and after them."""

    layers: list[tuple[np.ndarray, np.ndarray]]  # weights (inputs, outputs) and bias
    mean: np.ndarray  # of observations,
    std: np.ndarray
    clip: float  # and where they are clipped once they are normalised
    box: Box | None  # None: the outputs are the logits of a choice


class Box(NamedTuple):
    """How the outputs become actions: middle + half * (output + noise of this deviation), clipped to low and high."""

    middle: np.ndarray
    half: np.ndarray
    low: np.ndarray
    high: np.ndarray
    deviation: np.ndarray


def exported(arrays: dict[str, np.ndarray], clip: float, log_std: tuple[float, float]) -> Exported:
    """The parts of a policy in what a policy.npz holds; `clip` and `log_std` are limits that every policy has.

    >>> arrays = {"x": np.arange(4.0), "mean": np.zeros(1), "std": np.ones(1), "widths": np.array([1, 2])}
    >>> exported(arrays, 10.0, (-5.0, 2.0)).layers
    [(array([[0., 1.]]), array([2., 3.]))]
    """
    x, layers, i = arrays["x"], [], 0
    for a, b in pairwise(arrays["widths"].tolist()):
        layers.append((x[i : i + a * b].reshape(a, b), x[i + a * b : i + a * b + b]))
        i += a * b + b
    box = None
    if "low" in arrays:
        middle, half, low, high = (arrays[name] for name in ("middle", "half", "low", "high"))
        box = Box(middle, half, low, high, np.exp(np.clip(x[i:], *log_std)))
    return Exported(layers, arrays["mean"], arrays["std"], clip, box)


def write(path: str | Path, arrays: dict[str, np.ndarray], parts: Exported, about: dict[str, str]) -> Path:
    """Write the policy of these arrays; `about` says in words what it is.

    >>> write("policy.h5", {}, None, {})
    Traceback (most recent call last):
    ...
    ValueError: a policy is exported as .onnx, .py or .npz, by the ending of the file's name; got 'policy.h5'
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind == ".onnx":
        from pcces.integrations.onnx import onnx_model

        storage.write_atomically(path, onnx_model(parts, about))
    elif kind == ".py":
        storage.write_atomically(path, python_file(arrays, about).encode())
    elif kind == ".npz":
        storage.save(path, "policy", arrays, about)
    else:
        raise ValueError(
            f"a policy is exported as .onnx, .py or .npz, by the ending of the file's name; got {path.name!r}"
        )
    return path


def python_file(arrays: dict[str, np.ndarray], about: dict[str, str]) -> str:
    """The text of `standalone.py` with a policy in it."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    data = "\n".join(textwrap.wrap(base64.b64encode(buffer.getvalue()).decode(), 120))
    text = Path(__file__).with_name("standalone.py").read_text(encoding="utf-8")
    said = "\n".join(f"# {name}: {' '.join(words.split())}" for name, words in about.items())
    return text.replace('DATA = ""', f'{said}\nDATA = """\n{data}\n"""', 1)
