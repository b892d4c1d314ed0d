"""A policy trained by pcces, which needs NumPy and nothing else.

policy(observation) is the likeliest action, policy(observation, rng) one that is drawn with a numpy.random.Generator;
observations are (size,), or (N, size) for a batch.
"""

import base64
import io
from itertools import pairwise
from typing import Any

import numpy as np

DATA = ""  # the arrays of a run's policy.npz, in base64
P = dict(np.load(io.BytesIO(base64.b64decode(DATA)), allow_pickle=False)) if DATA else {}


def head(observation: Any) -> np.ndarray:
    """What the network says of observations (size,) or (N, size): its outputs are the first axis."""
    o = np.asarray(observation, dtype=np.float32).T
    if o.ndim not in (1, 2) or len(o) != len(P["mean"]):
        raise ValueError(
            f"observations must be of shape ({len(P['mean'])},), or (N, {len(P['mean'])}), not {o.T.shape}"
        )
    one = (1,) * (o.ndim - 1)
    h, i = np.clip((o - P["mean"].reshape(-1, *one)) / P["std"].reshape(-1, *one), -10, 10), 0
    for a, b in pairwise(P["widths"].tolist()):
        h = np.tanh(h) if i else h
        weights, bias = P["x"][i : i + a * b].reshape(a, b), P["x"][i + a * b : i + a * b + b]
        h, i = weights.T @ h + bias.reshape(-1, *one), i + a * b + b
    return np.asarray(h)


def distribution(observation: Any) -> tuple[np.ndarray, ...]:
    """What an action is drawn from: (logits,) of the choices, or (mean, std) of the numbers, which are then clipped."""
    h = head(observation).T
    if "low" not in P:
        return (h,)
    deviation = np.exp(np.clip(P["x"][-len(P["low"]) :], -5, 2))
    return P["middle"] + P["half"] * h, np.broadcast_to(P["half"] * deviation, h.shape)


def policy(observation: Any, rng: np.random.Generator | None = None) -> Any:
    """An action for the environment, or one for each observation of a batch."""
    h = head(observation)
    batch, one = h.shape[1:], (1,) * (h.ndim - 1)
    if "low" in P:
        low, high, middle, half = (P[name].reshape(-1, *one) for name in ("low", "high", "middle", "half"))
        if rng is not None:
            deviation = np.exp(np.clip(P["x"][-len(low) :], -5, 2)).reshape(-1, *one)
            h = h + deviation * rng.standard_normal((*batch, len(low)), dtype=np.float32).T
        return np.minimum(np.maximum(middle + half * h, low), high).T
    if rng is None:
        choice = np.argmax(h, axis=0)
    else:
        h = h - h.max(axis=0)
        p = np.exp(h - np.log(np.exp(h).sum(axis=0)))
        choice = (np.cumsum(p[:-1], axis=0) < rng.random(batch, dtype=np.float32)).sum(axis=0)
    return choice if batch else int(choice)
