"""The car in JAX beside MuJoCo's: step by step from the same states, over episodes, and as a kernel."""

import math

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from gpu import lowered

from pcces.engines.kernels.numbers import numbers
from pcces.engines.kernels.programs import evaluate, trace
from pcces.envs.lookup import resolve
from pcces.envs.safety import SafetyBatch, scene
from pcces.envs.safety.drive import Driver
from pcces.envs.safety.in_jax import car, goal_task

COUNT = 64
TASK = goal_task("CarGoal1")
step = jax.jit(jax.vmap(TASK.step))
observe = jax.jit(jax.vmap(TASK.observe))
reset = jax.jit(jax.vmap(TASK.reset))


def state_of(batch):
    """The states in JAX of a batch in MuJoCo."""

    def matrix(quaternion):
        out = np.zeros(9)
        mujoco.mju_quat2Mat(out, quaternion)
        return out.reshape(3, 3)

    rows = []
    for data, places in zip(batch.data, batch.positions):
        q, v, a = data.qpos[:13], data.qvel[:11], data.qacc[:11]
        turn, ball = matrix(q[3:7]), matrix(q[9:13])
        spin = turn @ a[3:6]
        last = [a[:3] + np.cross(spin, turn @ car.CENTRE), spin, a[6:8], spin + turn @ (ball @ a[8:11])]
        rows.append(np.concatenate([q[:7], v[:8], ball @ v[8:11], q[9:13], *last, places.ravel()]))
    return np.array(rows, np.float32)


def test_masses_and_softness_are_those_of_mujocos_model():
    model = SafetyBatch("CarGoal1", 1).model
    assert math.isclose(car.MASS, model.body("agent").subtreemass[0], rel_tol=1e-9)
    weights = [model.body(name).invweight0[0] for name in ("left", "left", "right", "right", "rear")]
    np.testing.assert_allclose(car.WEIGHTS, weights, rtol=1e-6)


@pytest.mark.slow
def test_one_step_is_mujocos_from_the_same_state():
    batch = SafetyBatch("CarGoal1", COUNT)
    observation, driver = batch.reset(seed=0), Driver(scene("CarGoal1"), caution=0.0)
    rng, keys = np.random.default_rng(0), jax.random.split(jax.random.key(0), COUNT)
    rewards, places, felt, costs, met = [], [], [], 0, 0
    for t in range(80):
        action = driver(observation)
        if t % 20 >= 15:  # wheels that slip, at full torque or against each other
            action = rng.choice([-1.0, 1.0], (COUNT, 2))
        elif t % 20 >= 10:
            action = rng.uniform(-0.04, 0.04, (COUNT, 2))
        ours = step(state_of(batch), action.astype(np.float32), keys)
        vases = batch.distance[:, batch.slices["vases"]].min(1)
        observation, reward, cost, _, _, info = batch.step(action)
        # On the first step the last bit of the heading decides which wheels touch the floor.
        away = (vases > 0.4) & (t > 0)
        assert np.array_equal(ours.costs[away, 0], cost[away])
        same = away & ~info["goal_met"]  # goals are drawn from other random numbers
        rewards.append(np.abs(ours.reward - reward)[same])
        after, seen = state_of(batch), np.asarray(observe(ours.state))
        places.append(np.abs(ours.state - after)[same, :7].max(1))
        felt.append((np.abs(seen - observation) / np.maximum(1, np.abs(observation)))[same])
        costs, met = costs + cost.sum(), met + info["goal_met"].sum()
    rewards, places, felt = (np.concatenate(part) for part in (rewards, places, felt))
    assert len(places) > 4000 and costs > 10 and met > 0
    # Eight steps of Newton's method are too few in one step of some hundreds, where wheels begin to slip; with 40 there is none.
    for error in (rewards, places):
        assert (error > 1e-5).mean() < 0.005 and error.max() < 0.03
    assert np.quantile(felt[:, :24].max(1), 0.99) < 1e-3 and np.quantile(felt[:, 24:].max(1), 0.99) < 1e-4


@pytest.mark.slow
def test_a_driver_earns_and_costs_the_same_in_both():
    def played(observation, advance):
        totals = np.zeros((2, COUNT))
        for t in range(150):
            observation, reward, cost = advance(t, driver(observation))
            totals += [reward, cost]
        return totals

    driver, batch = Driver(scene("CarGoal1"), caution=0.5), SafetyBatch("CarGoal1", COUNT)
    keys = jax.random.split(jax.random.key(2), COUNT)
    state = reset(keys)

    def in_jax(t, action):
        nonlocal state
        state, reward, cost, _ = step(
            state, action.astype(np.float32), jax.vmap(lambda k: jax.random.fold_in(k, t))(keys)
        )
        return np.asarray(observe(state)), reward, cost[:, 0]

    theirs = played(batch.reset(seed=100), lambda _, action: batch.step(action)[:3])
    ours = played(np.asarray(observe(state)), in_jax)
    assert theirs[0].mean() > 1 and theirs[1].mean() > 1  # it does reach goals, and breaks rules on the way
    for a, b in zip(theirs, ours):
        assert abs(a.mean() - b.mean()) < 3.5 * math.hypot(a.std(), b.std()) / math.sqrt(COUNT)


@pytest.mark.slow
def test_number_by_number_the_car_moves_as_it_does_and_a_gpu_takes_all_of_it_as_one_kernel(monkeypatch):
    rng = np.random.default_rng(0)
    start = jax.vmap(car.CarDriver.start)(jnp.asarray(rng.normal(size=(COUNT, 2))), jnp.asarray(rng.normal(size=COUNT)))
    states = start + 0.1 * rng.normal(size=start.shape).astype(np.float32)

    def later(state):  # a physics step; what the floor does takes a minute to compile for a CPU in this form
        return jnp.concatenate(car.integrated(car.unpacked(state)))

    (got,) = evaluate(trace(later, states[0])[0], numbers((car.SIZE,), list(states.T)))
    np.testing.assert_allclose(np.stack(got).T, jax.vmap(later)(states), rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    shapes = (jax.ShapeDtypeStruct((COUNT, size), jnp.float32) for size in (53, 2))
    text = lowered(jax.vmap(TASK.step), *shapes, jax.eval_shape(lambda: jax.random.split(jax.random.key(0), COUNT)))
    assert text.count("custom_call @__gpu$xla.gpu.triton") == 1


def test_a_vase_in_the_way_is_shoved_aside():
    start = car.CarDriver.start(jnp.array([1.0, 2.0]), jnp.array(0.5))
    ahead = jnp.array([math.sin(0.5), -math.cos(0.5)])  # the car's front looks along its negative y axis
    for far, moves in ((0.2, True), (0.4, False)):
        vase = start[:2] + far * ahead
        after = car.CarDriver.shoved(start, vase[None])[0]
        assert bool(jnp.linalg.norm(after - vase) > 0.01) == moves
        assert jnp.linalg.norm(after - start[:2]) > 0.27


def test_the_device_is_there_for_those_who_ask_and_it_can_be_drawn():
    assert resolve("SafetyCarGoal1-v0")[1] == "local"
    assert resolve("SafetyCarGoal1-v0", "device") == (TASK, "device") and goal_task("PointGoal1") != TASK
    assert TASK.draw(np.ones(53, np.float32)).shape == (400, 600, 3)
