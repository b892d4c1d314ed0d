"""Policies: tanh networks whose parameters are one flat vector x, with a categorical or a Gaussian head.

Features come first and episodes (or time steps) last: an observation is (size, ...) and its batch follows. One set of
parameters x (n,) serves every column, or x (n, B) gives each of B columns its own: a population of policies that step
side by side. The functions run on NumPy (workers, `Run.policy`) and JAX (the device) alike and draw no random numbers:
an action is a function of the distribution and of the noise that comes in.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pcces.core.arrays import array_namespace
from pcces.envs.task import Continuous, Discrete

Array = Any

NARROW = 32  # inputs up to which a population's layer is summed term by term: 4 times as fast as small products
FEW = 8  # rows up to which sums over rows are written out
MOST_PARAMETERS = 1 << 28  # a gigabyte
LOG_STD = (-5.0, 2.0)  # limits of the Gaussian head's log standard deviation


class Layer(NamedTuple):
    """Weights (inputs, outputs) and bias (outputs,); a population's have its axis last, or first where layers are wide."""

    weights: Array
    bias: Array
    members_first: bool = False


@dataclass(frozen=True)
class Policy:
    """What the flat vector of parameters means.

    >>> Policy(4, Discrete(2), hidden=(10, 10)).size
    182
    """

    observation_size: int
    actions: Discrete | Continuous
    hidden: tuple[int, ...] = (10, 10)

    def __post_init__(self) -> None:
        if not all(isinstance(width, int) and width > 0 for width in self.hidden):
            raise ValueError(f"hidden must be positive layer widths such as (64, 64), got {self.hidden!r}")
        if self.size > MOST_PARAMETERS:
            raise ValueError(f"a policy with the layers {self.hidden} has {self.size:,} parameters; give smaller ones")

    @property
    def discrete(self) -> bool:
        """Whether the head is categorical."""
        return isinstance(self.actions, Discrete)

    @property
    def outputs(self) -> int:
        """How many numbers the last layer gives: logits, or means."""
        return self.actions.n if isinstance(self.actions, Discrete) else self.actions.size

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of every layer."""
        widths = (self.observation_size, *self.hidden, self.outputs)
        return list(pairwise(widths))

    @property
    def size(self) -> int:
        """n, the length of x: weights and biases, and the log standard deviations of a Gaussian head."""
        return sum(a * b + b for a, b in self.shapes) + (0 if self.discrete else self.outputs)

    @property
    def noise_size(self) -> int:
        """How many random numbers an action takes."""
        return 1 if self.discrete else self.outputs

    def scale(self) -> tuple[list[float], list[float]]:
        """Middle and half width of a Gaussian head's actions: a network output of +-1 means the ends of the box.

        Where it has one end, that is 1 from the middle; where it has none, the middle is 0.

        >>> Policy(1, Continuous((-3.0, 2.0, -math.inf), (1.0, math.inf, math.inf))).scale()
        ([-1.0, 3.0, 0.0], [2.0, 1.0, 1.0])
        """
        assert isinstance(self.actions, Continuous)
        pairs = [_middle_and_half(a, b) for a, b in zip(self.actions.low, self.actions.high)]
        return [middle for middle, _ in pairs], [half for _, half in pairs]

    def init(self, normals: Array, log_std: float = 0.0, last: float = 1.0) -> Array:
        """Starting parameters from standard normals (n,): weights ~ N(0, 1 / inputs), zero biases.

        `last` scales the last layer's weights: a small one starts with actions that hardly depend on the observation.
        """
        xp = array_namespace(normals)
        parts, i = [], 0
        for number, (a, b) in enumerate(self.shapes):
            factor = (last if number == len(self.shapes) - 1 else 1.0) / math.sqrt(a)
            parts += [normals[i : i + a * b] * factor, xp.zeros_like(normals[:b])]
            i += a * b + b
        if not self.discrete:
            parts.append(xp.zeros_like(normals[: self.outputs]) + log_std)
        return xp.concat(parts)

    def unpack(self, x: Array) -> tuple[list[Layer], Array]:
        """The layers and the log standard deviations (empty for a categorical head) in x (n,) or (n, B)."""
        xp = array_namespace(x)
        layers, i = [], 0
        for a, b in self.shapes:
            weights, bias = xp.reshape(x[i : i + a * b], (a, b, *x.shape[1:])), x[i + a * b : i + a * b + b]
            wide = x.ndim == 2 and a > NARROW
            layers.append(Layer(xp.permute_dims(weights, (2, 0, 1)) if wide else weights, bias, wide))
            i += a * b + b
        return layers, xp.clip(x[i:], *LOG_STD)

    def act(self, head: Array, log_std: Array, noise: Array) -> Array:
        """An action for each column: uniform noise picks a category, normal noise moves away from the mean."""
        xp = array_namespace(head)
        if self.discrete:
            p = softmax(head)
            below, action = p[0], xp.astype(p[0] < noise, xp.int32)
            for i in range(1, self.outputs - 1):
                below = below + p[i]
                action = action + xp.astype(below < noise, xp.int32)
            return action
        middle, half = (column(xp.asarray(part, dtype=head.dtype), head) for part in self.scale())
        return middle + half * (head + column(xp.exp(log_std), head) * noise)

    def mode(self, head: Array) -> Array:
        """The likeliest action."""
        xp = array_namespace(head)
        if self.discrete:
            return xp.argmax(head, axis=0)
        middle, half = (column(xp.asarray(part, dtype=head.dtype), head) for part in self.scale())
        return middle + half * head

    def inside(self, actions: Array) -> Array:
        """Actions (size, ...) as an environment takes them: those of a Gaussian head are clipped to the box.

        >>> import numpy as np
        >>> Policy(1, Continuous((-2.0, 0.0), (2.0, math.inf))).inside(np.array([-3.0, 7.0]))
        array([-2.,  7.])
        """
        if isinstance(self.actions, Discrete):
            return actions
        xp = array_namespace(actions)
        low, high = (column(xp.asarray(end, dtype=actions.dtype), actions) for end in self.actions.ends)
        return xp.minimum(xp.maximum(actions, low), high)

    def entropy(self, head: Array, log_std: Array) -> Array:
        """The entropy of the distribution over actions, per column, in closed form."""
        xp = array_namespace(head)
        if self.discrete:
            log_p = log_softmax(head)
            return -row_sum(xp.exp(log_p) * log_p)
        _, half = self.scale()
        constant = sum(math.log(width) + 0.5 * math.log(2 * math.pi * math.e) for width in half)
        return xp.zeros_like(head[0]) + xp.sum(log_std, axis=0) + constant

    def divergence(self, head: Array, log_std: Array, other_head: Array, other_log_std: Array) -> Array:
        """The KL divergence from one distribution over actions to another, per column, in closed form."""
        xp = array_namespace(head)
        if self.discrete:
            log_p = log_softmax(head)
            return row_sum(xp.exp(log_p) * (log_p - log_softmax(other_head)))
        gap = column(xp.exp(2 * log_std), head) + (head - other_head) ** 2
        change = column(other_log_std - log_std, head)
        return row_sum(change + gap / column(2 * xp.exp(2 * other_log_std), head) - 0.5)

    def log_probability(self, head: Array, log_std: Array, actions: Array) -> Array:
        """log pi(a | s) per column."""
        xp = array_namespace(head)
        if self.discrete:
            chosen = column(xp.arange(self.outputs), head) == actions[None]
            return xp.sum(xp.where(chosen, log_softmax(head), xp.zeros_like(head)), axis=0)
        _, half = self.scale()
        z = self.standardised(head, log_std, actions)
        import os
        if os.environ.get("CAPG"):
            import jax.scipy.special as js
            import jax.numpy as jnp
            middle, h2 = (column(jnp.asarray(part, dtype=head.dtype), head) for part in self.scale())
            a = (actions - middle) / h2
            std = column(jnp.exp(log_std), head)
            ls = column(log_std, head)
            inner = -0.5 * z**2 - ls - 0.5 * math.log(2 * math.pi)
            up = js.log_ndtr(jnp.where(a >= 1, (head - 1) / std, 0.0))
            dn = js.log_ndtr(jnp.where(a <= -1, (-1 - head) / std, 0.0))
            return jnp.where(a >= 1, up, jnp.where(a <= -1, dn, inner)).sum(0)
        constant = sum(math.log(width) + 0.5 * math.log(2 * math.pi) for width in half)
        return -0.5 * xp.sum(z**2, axis=0) - xp.sum(log_std, axis=0) - constant

    def standardised(self, head: Array, log_std: Array, actions: Array) -> Array:
        """The noise behind a Gaussian head's actions: how many standard deviations they are from the mean."""
        xp = array_namespace(head)
        middle, half = (column(xp.asarray(part, dtype=head.dtype), head) for part in self.scale())
        return ((actions - middle) / half - head) / column(xp.exp(log_std), head)

    def score(self, head: Array, log_std: Array, actions: Array) -> tuple[Array, Array]:
        """The slopes of log pi(a | s) in the head's outputs, and in the log standard deviations, per column."""
        xp = array_namespace(head)
        if self.discrete:
            chosen = column(xp.arange(self.outputs), head) == actions[None]
            return xp.astype(chosen, head.dtype) - softmax(head), head[:0]
        z = self.standardised(head, log_std, actions)
        inside = (log_std > LOG_STD[0]) & (log_std < LOG_STD[1])
        return z / column(xp.exp(log_std), head), xp.where(column(inside, head), z**2 - 1, xp.zeros_like(z))


def as_arrays(policy: Policy, x: Array, mean: Array, std: Array) -> dict[str, np.ndarray]:
    """A policy and its normalisation as arrays from which it can be made again without knowing more.

    >>> sorted(as_arrays(Policy(4, Discrete(2)), np.zeros(182), np.zeros(4), np.ones(4)))
    ['mean', 'std', 'widths', 'x']
    """
    arrays = {"x": x, "mean": mean, "std": std}
    arrays["widths"] = np.array([policy.observation_size, *policy.hidden, policy.outputs])
    if isinstance(policy.actions, Continuous):
        arrays["low"], arrays["high"] = policy.actions.ends
        arrays["middle"], arrays["half"] = (np.array(part, np.float32) for part in policy.scale())
    return {name: np.asarray(values) for name, values in arrays.items()}


def _middle_and_half(low: float, high: float) -> tuple[float, float]:
    if math.isfinite(high - low):
        return (low + high) / 2, (high - low) / 2
    if math.isfinite(low):
        return low + 1.0, 1.0
    return (high - 1.0, 1.0) if math.isfinite(high) else (0.0, 1.0)


def forward(layers: list[Layer], observations: Array) -> Array:
    """The head's outputs for normalised observations (size, ...).

    >>> import numpy as np
    >>> forward([Layer(np.eye(2), np.zeros(2)), Layer(np.ones((2, 1)), np.zeros(1))], np.array([0.0, 1.0])).round(3)
    array([0.762])
    """
    xp = array_namespace(observations)
    h = observations
    for layer in layers[:-1]:
        h = xp.tanh(affine(layer, h))
    return affine(layers[-1], h)


def affine(layer: Layer, h: Array) -> Array:
    """One layer before its activation; for a population, h is (inputs, B) or (inputs, T, B)."""
    weights, bias, members_first = layer
    if weights.ndim == 3:
        return product(weights, h, members_first) + column(bias, h)
    return weights.T @ h + column(bias, h)


def back(layer: Layer, delta: Array) -> Array:
    """Slopes in a layer's outputs (outputs, ...) carried back to its inputs."""
    weights, _, members_first = layer
    if weights.ndim == 3:
        order = (0, 2, 1) if members_first else (1, 0, 2)
        return product(array_namespace(delta).permute_dims(weights, order), delta, members_first)
    return weights @ delta


def product(weights: Array, h: Array, members_first: bool = False) -> Array:
    """Each member's weights (inputs, outputs, B) times its column of h."""
    xp = array_namespace(h)
    if members_first:
        steps = h if h.ndim == 3 else h[:, None]
        out = xp.permute_dims(xp.matmul(xp.permute_dims(steps, (2, 1, 0)), weights), (2, 1, 0))
        return out if h.ndim == 3 else out[:, 0]
    total = column(weights[0], h) * h[0]
    for k in range(1, weights.shape[0]):
        total = total + column(weights[k], h) * h[k]
    return total


def column(values: Array, like: Array) -> Array:
    """`values` (a,) or (a, B) shaped so that it broadcasts against `like` (a, ...) or (a, ..., B)."""
    return values if values.ndim == like.ndim else values[:, *([None] * (like.ndim - values.ndim)), ...]


def row_sum(rows: Array) -> Array:
    """The sum along the first axis: row by row where there are few, which a compiler fuses with what comes before."""
    xp = array_namespace(rows)
    return (
        reduce(operator.add, (rows[i] for i in range(rows.shape[0]))) if rows.shape[0] <= FEW else xp.sum(rows, axis=0)
    )


def row_max(rows: Array) -> Array:
    """The maximum along the first axis, in the same way."""
    xp = array_namespace(rows)
    return reduce(xp.maximum, (rows[i] for i in range(rows.shape[0]))) if rows.shape[0] <= FEW else xp.max(rows, axis=0)


def log_softmax(head: Array) -> Array:
    """Log probabilities along the first axis."""
    xp = array_namespace(head)
    shifted = head - row_max(head)
    return shifted - xp.log(row_sum(xp.exp(shifted)))


def softmax(head: Array) -> Array:
    """Probabilities along the first axis."""
    xp = array_namespace(head)
    return xp.exp(log_softmax(head))
