"""Algorithm 1 of the paper: propose a trial point, decide on it, adapt the step size.

Pure functions over an explicit state, on any array library: NumPy for black boxes, JAX inside a compiled iteration.
They draw no random numbers and evaluate nothing. One iteration reads

    directions d_k^i  from the strategy           Step 1   y^i = sample_points(x_k, sigma_k^ES, d^i)
    fitness           from the barrier            Step 2
    d_k               from the strategy's Psi_k   Step 3   x^trial = trial_point(x_k, sigma_k, d_k)
    estimates         from the estimation         Step 4   decide(...)
    sigma_k^ES        and the strategy's update   Step 5   update_sigma_es(...)
"""

from __future__ import annotations

from typing import NamedTuple

from pcces.core.arrays import Array, array_namespace


class Rule(NamedTuple):
    """The constants of Algorithm 1 (line 1), and the paper's Table 4 where it departs from the theory.

    The theory wants `shrink = 1 / gamma` and no floor on sigma: `Rule.conform(gamma)` gives that.

    >>> Rule.conform(gamma=2.0).shrink
    0.5
    """

    kappa: float = 1e-3  # forcing function: a success must decrease the barrier estimate by kappa / 2 sigma^2
    gamma: float = 1.3  # sigma is multiplied by it after a success
    shrink: float = 1 / 1.3  # and by this after a failure; 1 / gamma in the theory
    sigma_min: float = 0.0
    sigma_max: float = float("inf")
    d_max: float = float("inf")  # ||d_k|| <= d_max

    @classmethod
    def conform(cls, gamma: float, **constants: float) -> Rule:
        """The rule the convergence theorem analyses: one gamma both ways and no floor."""
        return cls(gamma=gamma, shrink=1 / gamma, **constants)


class State(NamedTuple):
    """What iteration k starts from."""

    x: Array  # x_k, the incumbent
    sigma: Array  # sigma_k, the step size
    sigma_es: Array  # sigma_k^ES, the spread of the samples
    k: Array  # iteration
    successes: Array  # successful iterations so far


def init(x0: Array, sigma0: float, sigma_es0: float) -> State:
    """The state before the first iteration (line 1)."""
    xp = array_namespace(x0)
    scalar = xp.asarray(sigma0, dtype=x0.dtype)
    return State(x0, scalar, xp.asarray(sigma_es0, dtype=x0.dtype), xp.asarray(0), xp.asarray(0))


def mirrored(directions: Array) -> Array:
    """Step 1 samples both ways: (d^1 .. d^h) -> (d^1 .. d^h, -d^1 .. -d^h)."""
    xp = array_namespace(directions)
    return xp.concat([directions, -directions])


def sample_points(x: Array, sigma_es: Array, directions: Array) -> Array:
    """Step 1: y_k+1^i = x_k + sigma_k^ES d_k^i, a row each."""
    return x + sigma_es * directions


def bounded(d: Array, d_max: float) -> Array:
    """Scale d_k back to ||d_k|| <= d_max (Step 3); a direction that is not finite becomes zero."""
    xp = array_namespace(d)
    length = xp.linalg.vector_norm(d)
    scale = xp.where(length > d_max, d_max / xp.where(length > 0, length, 1.0), 1.0)
    usable = xp.isfinite(length)
    return xp.where(usable, d, 0.0) * xp.where(usable, scale, 0.0)


def trial_point(state: State, d: Array, rule: Rule) -> Array:
    """Step 3: x_k+1^trial = x_k + sigma_k d_k."""
    return state.x + state.sigma * bounded(d, rule.d_max)


def sufficient_decrease(trial: Array, incumbent: Array, sigma: Array, rule: Rule) -> Array:
    """The test of Step 4: f~_trial <= f_k - kappa / 2 sigma_k^2. A barrier value of +inf never passes."""
    xp = array_namespace(sigma)
    return (trial <= incumbent - 0.5 * rule.kappa * sigma**2) & (trial < xp.inf)


def decide(state: State, x_trial: Array, trial: Array, incumbent: Array, rule: Rule) -> tuple[State, Array]:
    """Step 4: accept the trial point only on sufficient decrease of the barrier estimate.

    `trial` is f~_trial (Eq. 4), `incumbent` the estimate f_k; both are scalars. Returns the next state and whether
    the iteration was successful.

    >>> import numpy as np
    >>> rule = Rule.conform(gamma=2.0, kappa=2.0)
    >>> state = init(np.array([1.0]), sigma0=0.5, sigma_es0=0.5)
    >>> state, success = decide(state, np.array([0.5]), trial=np.float64(0.25), incumbent=np.float64(1.0), rule=rule)
    >>> bool(success), state.x, float(state.sigma)
    (True, array([0.5]), 1.0)
    """
    xp = array_namespace(state.x)
    success = sufficient_decrease(trial, incumbent, state.sigma, rule)
    sigma = xp.clip(state.sigma * xp.where(success, rule.gamma, rule.shrink), rule.sigma_min, rule.sigma_max)
    return state._replace(
        x=xp.where(success, x_trial, state.x),
        sigma=xp.asarray(sigma, dtype=state.sigma.dtype),
        k=state.k + 1,
        successes=state.successes + xp.astype(success, state.successes.dtype),
    ), success


def update_sigma_es(state: State, spread: Array, least: float = 0.0, most: float = float("inf")) -> State:
    """Step 5 for sigma_k^ES: the spread of the next samples, kept between `least` and `most`.

    The strategy's own part of Step 5 is its `update`.

    >>> import numpy as np
    >>> state = init(np.array([1.0]), sigma0=0.5, sigma_es0=0.5)
    >>> float(update_sigma_es(state, 2 * state.sigma, most=0.7).sigma_es)
    0.7
    """
    xp = array_namespace(state.x)
    return state._replace(sigma_es=xp.asarray(xp.clip(spread, least, most), dtype=state.x.dtype))
