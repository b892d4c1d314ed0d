"""Behaviour cloning: the policy under which demonstrated actions are likeliest, for a training to begin with (`init=`)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from pcces.engines.device import configure
from pcces.engines.keys import key as random_key
from pcces.rl.critics import shuffled
from pcces.rl.normalizer import Normalizer, identity, normalise, seen_in, update
from pcces.rl.policy import Policy, forward
from pcces.rl.run import Metrics, Run
from pcces.rl.settings import need

Array = Any
MINIBATCH = (16, 256)  # demonstrations at least and at most; between them so many that a pass has UPDATES of Adam
UPDATES = 16
PATIENCE = 20  # passes without a better likelihood of what was held out
LEAST = 20  # demonstrations
ROUNDING = 1e-4  # by which actions may be outside the box, in half widths


class Cloning(NamedTuple):
    """How demonstrations are learnt."""

    passes: int = 200
    rate: float = 1e-3
    least_std: float = 0.1
    held_out: float = 0.1

    def check(self) -> None:
        """An error that says what is wrong, if anything is.

        >>> Cloning(held_out=1.0).check()
        Traceback (most recent call last):
        ...
        ValueError: held_out must be a share of at least 0 and less than 1, got 1.0
        """
        whole = isinstance(self.passes, int | np.integer) and self.passes >= 1
        need(whole, f"passes must be a whole number of at least 1, got {self.passes!r}")
        for name in ("rate", "least_std"):
            value = getattr(self, name)
            need(0 < value < math.inf, f"{name} must be a positive number, got {value!r}")
        share = 0 <= self.held_out < 1
        need(share, f"held_out must be a share of at least 0 and less than 1, got {self.held_out!r}")


def cloned(run: Run, observations: Any, actions: Any, learning: Cloning) -> Run:
    """The run with the policy that the demonstrations come from, as far as a policy of its shape can tell."""
    learning.check()
    o, a = demonstrations(run.shape, observations, actions)
    configure()
    normalizer = normalization(o)
    x, metrics = likeliest(run.shape, normalise(normalizer, o.T), np.moveaxis(a, 0, -1), learning, run.config["seed"])
    config = run.config | {"algorithm": "clone"}
    return replace(run, x=x, normalizer=normalizer, metrics=metrics, config=config)


def demonstrations(policy: Policy, observations: Any, actions: Any) -> tuple[np.ndarray, np.ndarray]:
    """Observations (N, size) and actions (N,) or (N, dims) as a policy can have them, or an error that says what is wrong.

    >>> from pcces.envs.task import Discrete
    >>> demonstrations(Policy(2, Discrete(2)), np.zeros((50, 2)), np.arange(50))
    Traceback (most recent call last):
    ...
    ValueError: actions must be whole numbers from 0 to 1, got 0 to 49
    """
    o, a = numbers("observations", observations), numbers("actions", actions)
    size, outputs = policy.observation_size, policy.outputs
    if o.ndim != 2 or o.shape[1] != size:
        raise ValueError(f"observations must be of shape (N, {size}), a row for each action, got {o.shape}")
    if a.shape == (len(o), 1) and (policy.discrete or outputs == 1):
        a = a[:, 0]
    wanted = (len(o),) if policy.discrete or outputs == 1 else (len(o), outputs)
    if a.shape != wanted:
        raise ValueError(f"there are {len(o)} observations, so actions must be of shape {wanted}, got {a.shape}")
    if len(o) < LEAST:
        raise ValueError(f"at least {LEAST} demonstrations are needed, each a row of observations, got {len(o)}")
    for name, values in (("observations", o), ("actions", a)):
        if bad := int(np.sum(~np.isfinite(values.reshape(len(o), -1)).all(axis=1))):
            raise ValueError(
                f"{name} must be finite numbers, but {bad} of {len(o)} rows have nan or inf: leave them out"
            )
    return o, whole_numbers(a, outputs) if policy.discrete else in_the_box(policy, a.reshape(len(o), outputs))


def numbers(name: str, values: Any) -> np.ndarray:
    """The values as an array; an error if they are not numbers."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, a row for each step: {error}") from error


def whole_numbers(a: np.ndarray, count: int) -> np.ndarray:
    """Actions of a choice among `count`."""
    if np.any(a != a.round()) or a.min() < 0 or a.max() >= count:
        raise ValueError(f"actions must be whole numbers from 0 to {count - 1}, got {a.min():g} to {a.max():g}")
    return a.astype(np.int32)


def in_the_box(policy: Policy, a: np.ndarray) -> np.ndarray:
    """Actions (N, dims) of a Gaussian head; what is outside by rounding alone is put inside."""
    inside = np.asarray(policy.inside(a.T)).T
    far = np.abs(a - inside) > ROUNDING * np.asarray(policy.scale()[1])
    if far.any():
        i, j = np.argwhere(far)[0]
        low, high = (ends[j] for ends in policy.actions.ends)  # type: ignore[union-attr]
        raise ValueError(
            f"{int(far.any(axis=1).sum())} of {len(a)} actions are outside the space, such as {a[i, j]:g}, which must be from"
            f" {low:g} to {high:g}: give them in the units of the environment, and clipped if it clips them"
        )
    return inside


def normalization(observations: np.ndarray) -> Normalizer:
    """What these observations (N, size) say of the normalisation.

    >>> normalization(np.array([[1.0], [3.0]])).std
    array([1.], dtype=float32)
    """
    mean = observations.mean(0)
    about = identity(mean)._replace(mean=mean)  # so that sums are of what varies
    learnt = update(about, seen_in(observations.T, np.ones(len(observations)), mean), np.bool_(False))
    return Normalizer(*(np.asarray(part, np.float32) for part in learnt))


def likeliest(policy: Policy, o: np.ndarray, a: np.ndarray, learning: Cloning, seed: int) -> tuple[np.ndarray, Metrics]:
    """Parameters under which actions (.., N) are likely, given normalised observations (size, N), and the course of that.

    Adam goes over all but those held out, and of all passes the one is taken under which these are likeliest.
    """
    count = a.shape[-1]
    apart = math.ceil(learning.held_out * count)
    order = np.random.default_rng(seed).permutation(count)
    columns = jnp.asarray(o[:, order], jnp.float32), jnp.asarray(a[..., order])
    test, train = (tuple(part[..., cut] for part in columns) for cut in (np.s_[:apart], np.s_[apart:]))
    likelihood, one_pass = learner(policy, learning, count - apart)

    draw, source = jax.random.split(random_key(seed))
    x = policy.init(jax.random.normal(draw, (policy.size,)), last=0.01)
    adam = optax.adam(learning.rate).init(x)
    best, course = (-math.inf, x, 0), []
    for number in range(learning.passes):
        x, adam = one_pass(x, adam, train, jax.random.fold_in(source, number))
        course.append([float(likelihood(x, *part)) if part[0].size else math.nan for part in (train, test)])
        good = course[-1][1 if apart else 0]
        if not math.isfinite(good):
            raise ValueError(f"the likelihood of these actions became {good}: a rate of {learning.rate:g} is too large")
        if good > best[0]:
            best = good, x, number
        if number - best[2] >= PATIENCE:
            break
    means, tested = map(list, zip(*course))
    metrics = {"iteration": [float(k) for k in range(len(course))], "log_likelihood": means, "held_out": tested}
    return np.array(floored(policy, math.log(learning.least_std), best[1])), metrics


def floored(policy: Policy, least: float, x: Array) -> Array:
    """Parameters whose log standard deviations are at least this."""
    return x if policy.discrete else x.at[-policy.outputs :].set(jnp.maximum(x[-policy.outputs :], least))


def learner(policy: Policy, learning: Cloning, count: int) -> tuple[Any, Any]:
    """The mean log likelihood of columns, and a pass over `count` of them in random minibatches."""
    size = min(max(count // UPDATES, MINIBATCH[0]), MINIBATCH[1], count)
    least = math.log(learning.least_std)

    def likelihood(x: Array, observations: Array, actions: Array) -> Array:
        layers, log_std = policy.unpack(floored(policy, least, x))
        return policy.log_probability(forward(layers, observations), log_std, actions).mean()

    def step(columns: tuple, carry: tuple, rows: Array) -> tuple:
        x, adam = carry
        slope = jax.grad(likelihood)(x, *(part[..., rows] for part in columns))
        updates, adam = optax.adam(learning.rate).update(-slope, adam)
        return (x + updates, adam), None

    def one_pass(x: Array, adam: Any, columns: tuple, key: Array) -> tuple:
        rows = shuffled(key, count)[: count // size * size].reshape(-1, size)
        return jax.lax.scan(partial(step, columns), (x, adam), rows)[0]

    return jax.jit(likelihood), jax.jit(one_pass)
