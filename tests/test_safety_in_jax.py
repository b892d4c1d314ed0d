"""The Point's Goal task in JAX beside the MuJoCo form: step by step, and over episodes."""

import math

import jax
import numpy as np
import pytest
from scipy.stats import ks_2samp

pytest.importorskip("mujoco")

from pcces.envs.lookup import resolve
from pcces.envs.safety import SafetyBatch, scene
from pcces.envs.safety.in_jax import GoalTask, goal_task

COUNT = 64
TASK = goal_task("PointGoal1")
step = jax.jit(jax.vmap(TASK.step))
observe = jax.jit(jax.vmap(TASK.observe))


def state_of(batch, observation):
    """The state in JAX of a batch in MuJoCo."""
    joints = [np.concatenate([data.qpos[:3], data.qvel[:3]]) for data in batch.data]
    places = batch.positions.reshape(batch.count, -1)
    return np.hstack([joints, observation[:, :2], places]).astype(np.float32)


def test_one_step_is_mujocos_from_the_same_state():
    batch = SafetyBatch(scene("PointGoal1"), COUNT)
    observation = batch.reset(seed=0)
    np.testing.assert_allclose(observe(state_of(batch, observation)), observation, atol=1e-5)
    rng, keys = np.random.default_rng(0), jax.random.split(jax.random.key(0), COUNT)
    compared = met = cost_steps = 0
    for t in range(120):
        action = rng.uniform(-1, 1, (COUNT, 2)) if t % 2 else np.column_stack([np.ones(COUNT), rng.normal(size=COUNT)])
        vases = batch.positions[:, batch.slices["vases"]]
        away = np.linalg.norm(vases - batch.agent[:, None], axis=-1).min(1) > 0.4  # contacts are another matter
        ours = step(state_of(batch, observation), action.astype(np.float32), keys)
        observation, reward, cost, _, _, info = batch.step(action)
        np.testing.assert_allclose(ours.reward[away], reward[away], atol=1e-5)
        assert np.array_equal(ours.costs[away, 0], cost[away])
        same = away & ~info["goal_met"]  # goals are drawn from other random numbers
        seen = np.asarray(observe(ours.state))
        # The turning servo chatters at the scale of a physics step, which blows rounding errors up a little.
        np.testing.assert_allclose(seen[same][:, [0, 3, 4, 8]], observation[same][:, [0, 3, 4, 8]], atol=0.05)
        np.testing.assert_allclose(seen[same, 9:], observation[same, 9:], atol=1e-3)
        compared, met, cost_steps = compared + same.sum(), met + info["goal_met"].sum(), cost_steps + cost.sum()
    assert compared > 6000 and cost_steps > 20


def test_layouts_keep_clear_and_are_spread_as_in_mujoco():
    states = jax.jit(jax.vmap(TASK.reset))(jax.random.split(jax.random.key(1), 400))
    agents, goals = np.asarray(states[:, :2]), np.asarray(states[:, 8:10])
    hazards = np.asarray(states[:, 10:26]).reshape(-1, 8, 2)
    assert np.linalg.norm(goals - agents, axis=1).min() >= 0.705
    assert np.linalg.norm(hazards - agents[:, None], axis=2).min() >= 0.58
    batch = SafetyBatch(scene("PointGoal1"), 400)
    batch.reset(seed=5)
    pairs = [
        (np.linalg.norm(goals - agents, axis=1), batch.distance[:, 0]),
        (np.linalg.norm(hazards - agents[:, None], axis=2).min(1), batch.distance[:, 1:9].min(1)),
        (np.abs(agents[:, 0]), np.abs(batch.agent[:, 0])),
    ]
    for ours, theirs in pairs:
        assert ks_2samp(ours, theirs).pvalue > 1e-3


def to_the_goal(observation):
    """Drive where the goal's lidar is brightest."""
    lidar = observation[..., 12:28]
    bearing = (lidar.argmax(-1) + 0.5) * 2 * math.pi / 16
    turn = np.sin(bearing)
    return np.stack([np.where(np.cos(bearing) > 0.3, 0.05, 0.0), 2 * turn], axis=-1)


def test_a_controller_earns_and_costs_the_same_in_both():
    batch = SafetyBatch(scene("PointGoal1"), 100)
    observation, totals, costs = batch.reset(seed=100), np.zeros(100), np.zeros(100)
    for _ in range(200):
        observation, reward, cost, *_ = batch.step(to_the_goal(observation))
        totals, costs = totals + reward, costs + cost
    keys = jax.random.split(jax.random.key(2), 300)
    state, ours, our_costs = jax.jit(jax.vmap(TASK.reset))(keys), np.zeros(300), np.zeros(300)
    for t in range(200):
        action = to_the_goal(np.asarray(observe(state))).astype(np.float32)
        state, reward, cost, _ = step(state, action, jax.vmap(lambda k, t=t: jax.random.fold_in(k, t))(keys))
        ours, our_costs = ours + reward, our_costs + cost[:, 0]
    assert totals.mean() > 2  # it does reach goals
    for a, b in ((totals, ours), (costs, our_costs)):
        error = math.hypot(a.std() / math.sqrt(len(a)), b.std() / math.sqrt(len(b)))
        assert abs(a.mean() - b.mean()) < 3.5 * error


def test_a_vase_in_the_way_is_shoved_aside():
    states = np.zeros((COUNT, 28), np.float32)
    states[:, 26:] = (0.18, 0.05)
    action = np.tile(np.float32([1, 0]), (COUNT, 1))
    after = step(states, action, jax.random.split(jax.random.key(1), COUNT)).state[0]
    assert np.linalg.norm(after[26:] - after[:2]) > 0.21


def test_equal_scenes_are_equal_tasks_and_others_are_refused():
    assert goal_task("PointGoal1") == TASK and hash(goal_task("PointGoal1")) == hash(TASK)
    assert goal_task("PointGoal1", hazards=2) != TASK
    with pytest.raises(ValueError, match="only Point or Car and goal"):
        GoalTask(scene("PointButton1"))
    with pytest.raises(ValueError, match="engine='local'"):
        goal_task("PointGoal2")


def test_the_device_is_there_for_those_who_ask():
    assert resolve("SafetyPointGoal1-v0")[1] == "local"
    assert resolve("SafetyPointGoal1-v0", "device") == (TASK, "device")
    with pytest.raises(ValueError, match="not a CarButton"):
        resolve("CarButton1-v0", "device")


def test_it_can_be_drawn():
    assert TASK.draw(jax.jit(TASK.reset)(jax.random.key(3))).shape == (400, 600, 3)
