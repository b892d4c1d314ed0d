"""Algorithm 1 line by line, and the same lines on NumPy and under JAX's jit."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcces import strategies
from pcces.core.algorithm import (
    Rule,
    bounded,
    decide,
    init,
    mirrored,
    sample_points,
    sufficient_decrease,
    trial_point,
    update_sigma_es,
)
from pcces.core.barrier import comparable, feasible_first, violation

one = np.float64


def run_decide(trial, incumbent, rule, sigma=0.5):
    state = init(np.array([1.0, 2.0]), sigma, 2 * sigma)
    return decide(state, np.array([0.0, 0.0]), one(trial), one(incumbent), rule)


def test_the_forcing_function_is_half_kappa_sigma_squared():
    rule = Rule.conform(gamma=2.0, kappa=0.8)
    threshold = 3.0 - 0.5 * 0.8 * 0.5**2  # 2.9
    assert run_decide(threshold - 1e-12, 3.0, rule)[1]
    assert not run_decide(threshold + 1e-12, 3.0, rule)[1]
    assert run_decide(2.875, 3.0, Rule.conform(gamma=2.0, kappa=1.0))[1]  # just as much as is asked for is enough
    # simple decrease is not enough, and the demand falls with sigma squared
    assert not sufficient_decrease(one(2.95), one(3.0), one(0.5), rule)
    assert sufficient_decrease(one(2.95), one(3.0), one(0.25), rule)


def test_a_success_moves_and_a_failure_stays():
    rule = Rule.conform(gamma=2.0, kappa=1.0)
    state, success = run_decide(0.0, 3.0, rule)
    assert bool(success) and state.x.tolist() == [0.0, 0.0]
    assert (int(state.k), int(state.successes)) == (1, 1)
    state, success = run_decide(3.0, 3.0, rule)
    assert not bool(success) and state.x.tolist() == [1.0, 2.0]
    assert (int(state.k), int(state.successes)) == (1, 0)
    assert float(state.sigma_es) == 1.0  # sigma^ES is the strategy's business (Step 5)


def test_one_gamma_both_ways():
    rule = Rule.conform(gamma=1.25)
    assert run_decide(0.0, 3.0, rule)[0].sigma == 0.5 * 1.25
    assert run_decide(9.0, 3.0, rule)[0].sigma == pytest.approx(0.5 / 1.25, rel=1e-15)
    up_and_down = decide(run_decide(0.0, 3.0, rule)[0], np.zeros(2), one(9.0), one(3.0), rule)[0]
    assert up_and_down.sigma == pytest.approx(0.5, rel=1e-15)


def test_gamma_and_shrink_can_differ_as_in_table_4():
    rule = Rule(gamma=1.01, shrink=0.99)
    assert run_decide(0.0, 3.0, rule)[0].sigma == pytest.approx(0.505, rel=1e-15)
    assert run_decide(9.0, 3.0, rule)[0].sigma == pytest.approx(0.495, rel=1e-15)


def test_floor_and_ceiling():
    rule = Rule(gamma=2.0, shrink=0.5, sigma_min=0.4, sigma_max=0.6)
    assert run_decide(0.0, 3.0, rule)[0].sigma == 0.6
    assert run_decide(9.0, 3.0, rule)[0].sigma == 0.4
    free = Rule.conform(gamma=2.0)
    state = init(np.zeros(1), 1.0, 1.0)
    for _ in range(200):
        state, _ = decide(state, state.x, one(1.0), one(0.0), free)
    assert state.sigma == 2.0**-200  # no floor: sigma_k -> 0


@pytest.mark.parametrize("incumbent", [3.0, -1e300, math.inf])
def test_nothing_infinite_or_nan_beats_a_finite_incumbent(incumbent):
    rule = Rule.conform(gamma=2.0, kappa=1e-9)
    if math.isfinite(incumbent):
        assert not run_decide(math.inf, incumbent, rule)[1]
    assert not run_decide(math.nan, incumbent, rule)[1]


@given(st.floats(-1e6, 1e6), st.floats(0.0, 1e3), st.floats(1e-6, 1e3))
def test_infinity_is_never_accepted(incumbent, kappa, sigma):
    rule = Rule.conform(gamma=1.5, kappa=kappa)
    assert not sufficient_decrease(one(math.inf), one(incumbent), one(sigma), rule)


@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=6), st.floats(1e-3, 1e3))
def test_no_step_is_longer_than_d_max(numbers, d_max):
    d = np.array(numbers)
    cut = bounded(d, d_max)
    assert np.linalg.norm(cut) <= d_max * (1 + 1e-12)
    if np.linalg.norm(d) <= d_max:
        assert np.array_equal(cut, d)  # and a short one is left alone
    else:
        assert np.linalg.norm(cut) == pytest.approx(d_max)
        assert np.allclose(cut * np.linalg.norm(d), d * d_max, rtol=1e-9)  # the same direction


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_direction_that_is_not_finite_becomes_no_step():
    state = init(np.array([1.0, 2.0]), 0.5, 0.5)
    for bad in (np.nan, np.inf):
        assert trial_point(state, np.array([bad, 1.0]), Rule(d_max=9.0)).tolist() == [1.0, 2.0]


def test_trial_and_sample_points():
    state = init(np.array([1.0, 2.0]), 0.5, 2.0)
    assert trial_point(state, np.array([3.0, 4.0]), Rule(d_max=1.0)).tolist() == pytest.approx([1.3, 2.4])
    assert trial_point(state, np.array([3.0, 4.0]), Rule()).tolist() == [2.5, 4.0]
    assert sample_points(state.x, state.sigma_es, np.eye(2)).tolist() == [[3.0, 2.0], [1.0, 4.0]]


def test_the_spread_follows_within_limits():
    state = init(np.array([1.0, 2.0], dtype=np.float32), 0.5, 2.0)
    assert update_sigma_es(state, 2 * state.sigma).sigma_es == 1.0
    assert update_sigma_es(state, 1e-9).sigma_es == np.float32(1e-9)
    assert update_sigma_es(state, 0.3, least=0.4).sigma_es == np.float32(0.4)
    assert update_sigma_es(state, 0.3, most=0.2).sigma_es == np.float32(0.2)
    after = update_sigma_es(state, 0.3, 0.2, 0.4)
    assert after.sigma_es == np.float32(0.3) and after.sigma_es.dtype == np.float32
    assert after._replace(sigma_es=state.sigma_es) == state  # and nothing else changes


def test_mirrored_directions_come_in_two_halves():
    assert mirrored(np.array([[1.0, 2.0], [0.0, -3.0]])).tolist() == [[1.0, 2.0], [0.0, -3.0], [-1.0, -2.0], [0.0, 3.0]]


# -- one implementation, two array libraries ------------------------------------------------------------------------------

STRATEGIES = {
    "gaussian": strategies.gaussian(),
    "guided": strategies.guided(m=1),  # larger bases are the same up to the signs of their vectors
    "cma": strategies.cma(),
    "asebo": strategies.asebo(m=4, least=1),
}


def run(xp, strategy, transform):
    """Fifty iterations on a quadratic under a linear and a curved constraint, from an infeasible start.

    `transform` is jit, or nothing.
    """
    rule = Rule.conform(gamma=1.5, kappa=1e-3, d_max=10.0)
    target, curvature = xp.asarray([1.0, -2.0, 0.5, 1.5]), xp.asarray([1.0, 3.0, 10.0, 0.3])

    def values(x):
        f = xp.sum(curvature * (x - target) ** 2, axis=-1)
        return f, xp.stack([xp.sum(x, axis=-1) - 0.5, xp.sum(x**2, axis=-1) - 4.0], axis=-1)

    def iteration(state, own, z):
        d = mirrored(strategy.directions(own, z))
        f, c = values(sample_points(state.x, state.sigma_es, d))
        weights = strategy.weights(strategies.SHAPINGS["standardised"](feasible_first(f, violation(c))))
        d_k = weights @ d
        x_trial = trial_point(state, d_k, rule)
        f_trial, c_trial = values(x_trial)
        f_k, c_k = values(state.x)
        trial, incumbent = comparable(f_trial, violation(c_trial), f_k, violation(c_k))
        after, success = decide(state, x_trial, trial, incumbent, rule)
        own = strategy.update(own, d, weights, (after.x - state.x) / state.sigma, d_k)
        return update_sigma_es(after, 1.5 * after.sigma, 1e-6), own, success, f_k

    iteration = transform(iteration)
    state = init(xp.asarray([3.0, 0.0, 0.0, 0.0]), 0.3, 0.3)
    own, decisions, trace = strategy.init(state.x), [], []
    for z in np.random.default_rng(7).standard_normal((50, 8, strategy.normals(4))):
        state, own, success, f = iteration(state, own, xp.asarray(z))
        decisions.append(bool(success))
        trace.append(float(f))
    return {"decisions": decisions, "f": trace, "x": [float(v) for v in state.x], "sigma": float(state.sigma)}


@pytest.fixture(scope="module")
def traced_by_jax():
    """The same runs under jit in float64, in a process of its own: x64 is a setting of the whole process."""
    pytest.importorskip("jax")
    program = (
        "import json, jax, jax.numpy as jnp; from test_algorithm import STRATEGIES, run;"
        "print(json.dumps({name: run(jnp, s, jax.jit) for name, s in STRATEGIES.items()}))"
    )
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent)])
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", STRATEGIES)
def test_numpy_and_jax_take_the_same_decisions(name, traced_by_jax):
    here, there = run(np, STRATEGIES[name], lambda function: function), traced_by_jax[name]
    assert here["decisions"] == there["decisions"]
    assert 5 < sum(here["decisions"]) < 48  # both kinds of decision were taken
    assert here["x"] == pytest.approx(there["x"], abs=1e-9)
    assert here["f"] == pytest.approx(there["f"], abs=1e-9)
    assert here["sigma"] == pytest.approx(there["sigma"], rel=1e-12)
    assert here["f"][-1] < 0.5 * here["f"][0]  # and it optimised something


def test_states_are_plain_tuples_of_arrays():
    state = init(np.zeros(3, dtype=np.float32), 0.1, 0.2)
    assert state.sigma.dtype == state.sigma_es.dtype == np.float32
    after, _ = decide(state, state.x, np.float32(0), np.float32(1), Rule())
    assert after.x.dtype == np.float32 and after.sigma.dtype == np.float32  # nothing drifts to float64
    assert after.successes.dtype == state.successes.dtype and after.k.dtype == state.k.dtype
