"""The safety tasks as environments: their rules, their parts, their batches and their pictures."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import simulators
from hypothesis import given, settings
from hypothesis import strategies as st
from small import FEW

pytest.importorskip("mujoco")

import gymnasium
from gymnasium.utils.env_checker import check_env

import pcces
from pcces.envs import safety
from pcces.envs.lookup import resolve, simulator_of_run
from pcces.envs.safety import Button, Buttons, Car, Goal, Gremlins, Hazards, Point, SafetyBatch, SafetyEnv, Scene, Vases
from pcces.envs.safety.drive import Driver
from pcces.envs.safety.layout import LegacyStream, Placement, sample_goal, sample_layout
from pcces.envs.safety.lidar import lidar
from pcces.envs.safety.render import SceneView, TopView
from pcces.envs.safety.simulator import safety_simulator
from pcces.envs.simulator import simulator

TASKS = ["PointGoal1", "PointButton1", "CarGoal1"]
SIZES = {"PointGoal1": 60, "PointButton1": 76, "CarGoal1": 72}


# --- Gymnasium --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TASKS, "CarButton1", "PointGoal2"])
def test_check_env_passes(name: str) -> None:
    env = gymnasium.make(f"pcces/{name}-v0", render_mode="rgb_array")
    check_env(env.unwrapped)
    assert env.observation_space.shape == (SIZES.get(name, env.observation_space.shape[0]),)
    assert env.action_space.shape == (2,)


def test_every_scene_is_registered() -> None:
    ids = {f"pcces/{name}-v0" for name in safety.NAMES}
    assert len(ids) == 12 and ids <= set(gymnasium.registry)
    assert gymnasium.make("pcces/PointGoal1-v0", hazards=2).observation_space.shape == (60,)


def test_without_mujoco_making_one_says_what_to_install() -> None:
    code = "import sys, gymnasium, pcces; sys.modules['mujoco'] = None; gymnasium.make('pcces/PointGoal1-v0')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith(
        "ImportError: the safety tasks need MuJoCo: pip install 'pcces[safety]'"
    )


def test_importing_pcces_does_not_import_mujoco() -> None:
    code = "import sys, pcces, pcces.envs.safety as s; s.scene('CarGoal1'); assert 'mujoco' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_episode_is_truncated_at_the_horizon_and_a_seed_repeats_it() -> None:
    runs = []
    for _ in range(2):
        env = SafetyEnv("PointGoal1", horizon=5)
        rows = [env.reset(seed=4)[0]]
        for t in range(5):
            observation, _, terminated, truncated, info = env.step(np.array([0.5, 0.2]))
            assert (terminated, truncated) == (False, t == 4)
            assert info["cost"] == info["cost_hazards"]
            rows.append(observation)
        runs.append(np.array(rows))
    np.testing.assert_array_equal(*runs)
    assert not np.array_equal(env.reset()[0], runs[0][0])


def test_wrong_use_is_explained() -> None:
    batch = SafetyBatch("PointGoal1", 2)
    with pytest.raises(ValueError, match=r"call reset\(\) before"):
        batch.step(np.zeros((2, 2)))
    batch.reset(seed=0)
    with pytest.raises(ValueError, match=r"shape \(2, 2\), not \(2,\)"):
        batch.step([0.0, 0.0])
    with pytest.raises(ValueError, match="finite"):
        batch.step([[0.0, np.nan], [0.0, 0.0]])
    with pytest.raises(ValueError, match="2 environments need as many seeds, not 3"):
        batch.reset(seed=[1, 2, 3])
    with pytest.raises(ValueError, match="must place agent, goal, hazards, vases; got agent"):
        batch.put(0, {"agent": [0, 0]})
    with pytest.raises(ValueError, match="hazards: 8 to place, but 1"):
        batch.put(0, {"agent": [0, 0], "goal": [1, 1], "hazards": [[0, 1]], "vases": [[1, 0]]})
    with pytest.raises(ValueError, match="there is no scene 'DoggoGoal1'; choose one of PointGoal0"):
        SafetyEnv("DoggoGoal1")
    with pytest.raises(ValueError, match="has no buttons"):
        SafetyEnv("CarGoal1", buttons=2)
    with pytest.raises(ValueError, match="hazards must be a whole number from 0 to 1000, got -1"):
        SafetyEnv("CarGoal1", hazards=-1)
    with pytest.raises(ValueError, match="counts change a scene given by name"):
        SafetyEnv(safety.scene("CarGoal1"), hazards=1)
    with pytest.raises(ValueError, match="each kind of object may appear once"):
        Scene(Point(), Goal(), (Hazards(1), Hazards(2)))
    with pytest.raises(ValueError, match="render_mode"):
        SafetyEnv(render_mode="human")
    with pytest.raises(ValueError, match="view must be one of top, 3d"):
        SafetyEnv(view="side")
    with pytest.raises(ValueError, match="no room for 1 agent, 1 goal, 90 hazards"):
        SafetyBatch("PointGoal0", 1, hazards=90).reset(seed=0)
    with pytest.raises(ValueError, match=r"a keepout of 0\.4 m leaves no room"):
        SafetyBatch("PointGoal0", 1, extent=0.4).reset(seed=0)


# --- parts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scene", "size"),
    [
        (Scene(Car(), Button(), (Hazards(2),)), 24 + 3 * 16),
        (Scene(Point(), Goal(), ()), 12 + 16),
        (Scene(Point(), Button(Buttons(2)), (Gremlins(1), Vases(3), Hazards(1)), extent=2.0), 12 + 5 * 16),
    ],
)
def test_agents_tasks_and_objects_combine(scene: Scene, size: int) -> None:
    batch = SafetyBatch(scene, 2)
    assert batch.reset(seed=0).shape == (2, size)
    observation, *_ = batch.step(np.zeros((2, 2)))
    assert observation.shape == (2, size)
    assert np.isfinite(observation).all()


def test_a_scene_by_name_is_the_scene_from_parts() -> None:
    parts = Scene(Car(), Button(), (Hazards(2), Gremlins(4)), extent=1.5)
    by_name, by_parts = SafetyBatch("CarButton1", 1, hazards=2), SafetyBatch(parts, 1)
    np.testing.assert_array_equal(by_name.reset(seed=5), by_parts.reset(seed=5))
    for _ in range(20):
        for ours, theirs in zip(by_name.step([[0.5, 0.4]])[:5], by_parts.step([[0.5, 0.4]])[:5]):
            np.testing.assert_array_equal(ours, theirs)
    assert list(by_name.scene.observation)[-4:] == ["buttons_lidar", "goal_lidar", "hazards_lidar", "gremlins_lidar"]


def test_objects_can_be_changed_and_subclassed() -> None:
    class Puddles(Hazards):
        name, singular = "puddles", "puddle"

    scene = Scene(Point(), Goal(), (Gremlins(1, travel=0.1), Puddles(1, size=0.5), Vases(1)))
    assert [kind.name for kind in scene.kinds] == ["goal", "puddles", "vases", "gremlins"]
    batch = SafetyBatch(scene, 1)
    layout = {"agent": [0, 0], "goal": [1, 1], "puddles": [[0.45, 0]], "vases": [[-1, 0]], "gremlins": [[-1, 1]]}
    batch.put(0, layout, angles={"agent": np.pi / 2})
    places, costs = [], []
    for _ in range(200):
        places.append(batch.positions[0, batch.slices["gremlins"].start].copy())
        costs.append(batch.step([[0.0, 0.0]])[2][0])
    assert costs == [1.0] * 200
    assert np.hypot(*(np.array(places[50:]) - [-1, 1]).T) == pytest.approx(0.1, abs=0.01)
    batch.put(0, layout, angles={"agent": np.pi / 2})
    for _ in range(20):
        batch.step([[0.05, 0.0]])
    assert batch.agent[0] == pytest.approx([0, 0.22], abs=0.1)  # it looked along y, and so it went


def test_levels_hold_what_the_original_levels_hold() -> None:
    def kinds(name: str) -> list[tuple[str, int]]:
        return [(kind.name, kind.count) for kind in safety.scene(name).kinds]

    assert kinds("PointGoal0") == [("goal", 1)]
    assert kinds("PointGoal1") == [("goal", 1), ("hazards", 8), ("vases", 1)]
    assert kinds("PointGoal2") == [("goal", 1), ("hazards", 10), ("vases", 10)]
    assert kinds("CarButton0") == [("buttons", 4), ("goal", 1)]
    assert kinds("CarButton1") == [("buttons", 4), ("goal", 1), ("hazards", 4), ("gremlins", 4)]
    assert kinds("CarButton2") == [("buttons", 4), ("goal", 1), ("hazards", 8), ("gremlins", 6)]
    assert [safety.scene(f"PointGoal{level}").extent for level in range(3)] == [1.0, 1.5, 2.0]
    assert [safety.scene(f"PointButton{level}").extent for level in range(3)] == [1.0, 1.5, 1.8]


# --- layouts and lidars -----------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["PointGoal1", "PointGoal2", "PointButton0", "CarButton2"]))
def test_layouts_obey_keepouts(seed: int, name: str) -> None:
    scene = safety.scene(name)
    layout = sample_layout(scene.groups, scene.extent, LegacyStream(seed))
    keepouts = np.array([group.keepout for group in scene.groups for _ in range(group.count)])
    assert (np.abs(layout) <= scene.extent - keepouts[:, None]).all()
    distances = np.linalg.norm(layout[:, None] - layout, axis=-1)
    np.fill_diagonal(distances, np.inf)
    assert (distances >= keepouts[:, None] + keepouts - 1e-12).all()


def test_a_stream_mixes_numbers_and_indices_like_the_legacy_generator() -> None:
    stream, legacy = LegacyStream(7), np.random.RandomState(7)
    for n in (3, 2000, 1):
        np.testing.assert_array_equal(stream.take(n), legacy.random_sample(n))
        stream.peek(50)
        assert stream.index(4) == legacy.choice(4)
        stream.skip(n)
        legacy.random_sample(n)


def test_a_goal_keeps_clear_or_is_not_drawn() -> None:
    others, keepouts = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([0.4, 0.2])
    for seed in range(50):
        goal = sample_goal(0.3, 1.5, others, keepouts, LegacyStream(seed))
        assert goal is not None
        assert (np.linalg.norm(goal - others, axis=1) >= keepouts + 0.3).all()
    assert sample_goal(0.3, 0.7, np.zeros((1, 2)), np.array([0.4]), LegacyStream(0)) is None


def plain_lidar(points: np.ndarray) -> np.ndarray:
    bins = np.zeros(16)
    for x, y in points:
        strength = max(0.0, 1 - np.hypot(x, y) / 3)
        turn = (np.arctan2(y, x) % (2 * np.pi)) * 16 / (2 * np.pi)
        own = int(turn)
        for at, share in ((own, 1.0), (own + 1, turn - own), (own - 1, 1 - (turn - own))):
            bins[at % 16] = max(bins[at % 16], share * strength)
    return bins


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 4))
def test_lidars_are_what_a_plain_loop_gives(seed: int, first: int, second: int) -> None:
    offsets = np.random.default_rng(seed).normal(scale=2, size=(3, first + second, 2))
    readings = lidar(offsets, [0, first])
    for row, points in zip(readings, offsets):
        expected = [plain_lidar(points[:first]), plain_lidar(points[first:])]
        np.testing.assert_allclose(row, expected, atol=1e-12)


# --- rules ------------------------------------------------------------------------------------------------------------


def test_a_hazard_costs_while_the_agent_is_on_it() -> None:
    batch = SafetyBatch("PointGoal0", 1, hazards=1)
    batch.put(0, {"agent": [0, 0], "goal": [2, 0], "hazards": [[0.6, 0]]})
    costs, places = [], []
    for _ in range(80):
        costs.append(batch.step([[0.05, 0.0]])[2][0])
        places.append(batch.agent[0, 0])
    expected = np.abs(np.array(places) - 0.6) <= 0.2
    np.testing.assert_array_equal(np.array(costs), expected)
    assert 5 < expected.sum() < 75


def test_rewards_add_up_to_the_way_made_and_the_goals_reached() -> None:
    batch = SafetyBatch("PointGoal0", 1)
    batch.put(0, {"agent": [0, 0], "goal": [0.8, 0]})
    total, met = 0.0, False
    while not met:
        _, reward, _, _, _, info = batch.step([[0.05, 0.0]])
        total, met = total + reward[0], info["goal_met"][0]
    assert total == pytest.approx(1 + batch.agent[0, 0])
    assert batch.distance[0, 0] > 0.7  # the new goal keeps clear of the agent
    _, reward, *_ = batch.step([[0.0, 0.0]])
    assert abs(reward[0]) < 0.1  # and its appearance is not rewarded


def test_an_episode_ends_when_there_is_no_room_for_another_goal() -> None:
    batch = SafetyBatch("PointGoal0", 1, extent=0.75)
    batch.put(0, {"agent": [0, 0], "goal": [0.31, 0]})
    for _ in range(20):
        _, _, _, terminated, _, info = batch.step([[0.05, 0.0]])
        if info["goal_met"][0]:
            break
    assert terminated[0]


def test_buttons_are_dead_for_ten_steps_and_wrong_ones_cost() -> None:
    batch = SafetyBatch("PointButton1", 1, hazards=0, gremlins=0, buttons=2)
    batch.put(0, {"agent": [0, 0], "buttons": [[0.5, 0], [-1, 0]], "goal": [0.5, 0]})
    batch.streams[0] = stream = LegacyStream(0)
    stream.index = lambda n: 1  # type: ignore[method-assign]
    met = []
    for _ in range(100):
        observation, reward, cost, _, _, info = batch.step([[0.05, 0.0]])
        met.append(bool(info["goal_met"][0]))
        assert cost[0] == 0
        if met[-1]:
            break
    assert reward[0] > 0.9
    assert batch.target[0] == 1
    dead, costs = [], []
    for _ in range(15):
        dead.append(bool((observation[0, 12:28] == 0).all()))
        observation, _, cost, *_ = batch.step([[0.05, 0.0]])  # leaning on what is now the wrong button
        costs.append(cost[0])
    assert dead == [True] * 10 + [False] * 5
    assert costs[:10] == [0.0] * 10
    assert sum(costs[10:]) > 0
    free = SafetyBatch("PointButton0", 1)
    free.reset(seed=0)
    assert "cost_buttons" not in free.step([[0.0, 0.0]])[5]


def test_gremlins_and_vases_cost_on_touch() -> None:
    batch = SafetyBatch("PointButton1", 1, hazards=0, gremlins=1, buttons=1)
    batch.put(0, {"agent": [0, 0], "buttons": [[-1.2, -1.2]], "goal": [-1.2, -1.2], "gremlins": [[0.6, -0.2]]})
    costs = [batch.step([[0.05, 0.0]])[5]["cost_gremlins"][0] for _ in range(60)]
    assert 0 < sum(costs) < 60

    batch = SafetyBatch("PointGoal2", 1, hazards=0, vases=1)
    batch.put(0, {"agent": [0, 0], "goal": [-1, 0], "vases": [[0.6, 0]]})
    infos = [batch.step([[0.05, 0.0]])[5] for _ in range(60)]
    contact, velocity = (
        np.array([info[f"cost_vases_{what}"][0] for info in infos]) for what in ("contact", "velocity")
    )
    assert contact[10] == velocity[10] == 0  # it has settled, and is not touched yet
    assert contact.max() == velocity.max() == 1
    assert velocity[contact > 0].all()
    calm = SafetyBatch("PointGoal1", 1, hazards=0)
    calm.put(0, {"agent": [0, 0], "goal": [-1, 0], "vases": [[0.6, 0]]})
    assert sum(calm.step([[0.05, 0.0]])[2][0] for _ in range(60)) == 0


def test_a_sleeping_vase_wakes_when_pushed() -> None:
    batch = SafetyBatch("PointGoal1", 1, hazards=0)
    batch.put(0, {"agent": [0, 0], "goal": [-1, 0], "vases": [[0.6, 0]]})
    for _ in range(60):
        batch.step([[0.05, 0.0]])
    assert batch.positions[0, 1, 0] > 0.7


def test_a_simulation_that_blows_up_shows_as_nan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # MuJoCo leaves a log of its warnings where it runs
    batch = SafetyBatch("PointGoal1", 2)
    batch.reset(seed=0)
    state = batch.data[0]
    batch.set_state(0, state.qpos.copy(), np.full(batch.model.nv, 1e200))
    _, reward, *_ = batch.step(np.zeros((2, 2)))
    assert np.isnan(reward).tolist() == [True, False]


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TASKS, "CarButton1"])
def test_a_batch_is_its_environments_side_by_side(name: str) -> None:
    batch, driver = SafetyBatch(name, 3), Driver(safety.scene(name))
    envs = [SafetyEnv(name) for _ in range(3)]
    observations = batch.reset(seed=11)
    np.testing.assert_array_equal(observations, [env.reset(seed=11 + i)[0] for i, env in enumerate(envs)])
    for _ in range(150):
        actions = driver(observations)
        observations, reward, cost, terminated, truncated, info = batch.step(actions)
        for i, env in enumerate(envs):
            single, r, done, cut, about = env.step(actions[i])
            np.testing.assert_allclose(single, observations[i], atol=1e-12)
            assert (r, done, cut) == (pytest.approx(reward[i]), terminated[i], truncated[i])
            assert about["cost"] == cost[i]
            assert {key: value for key, value in about.items() if key != "cost"} == {k: v[i] for k, v in info.items()}


def test_some_rows_can_be_reset_alone() -> None:
    batch = SafetyBatch("PointGoal1", 3)
    first = batch.reset(seed=[1, 2, 3])
    for _ in range(10):
        batch.step(np.full((3, 2), 0.3))
    before = batch.observe()
    again = batch.reset(seed=[2], envs=[1])
    np.testing.assert_array_equal(again[[0, 2]], before[[0, 2]])
    np.testing.assert_array_equal(again[1], first[1])
    assert batch.steps.tolist() == [10, 0, 10]


def test_what_a_step_returned_stays_as_it_was() -> None:
    batch = SafetyBatch("PointGoal0", 1, hazards=1)
    batch.put(0, {"agent": [0, 0], "goal": [0.9, 0], "hazards": [[0.1, 0]]})
    results = batch.step([[0.5, 0.5]])
    before = [np.copy(array) for array in results[:5]]
    for _ in range(3):
        batch.step([[0.5, 0.5]])
    batch.reset(seed=1)
    for array, copy in zip(results, before):
        np.testing.assert_array_equal(array, copy)


def test_seeds_may_be_long() -> None:
    batch = SafetyBatch("PointGoal1", 3)
    first, second, third = batch.reset(seed=[5, 5 + 2**32, 5 + 2**64])
    assert not np.array_equal(first, second)
    assert not np.array_equal(second, third)
    np.testing.assert_array_equal(batch.reset(seed=[5 + 2**32], envs=[0])[0], second)
    with pytest.raises(ValueError, match="a seed must not be negative; got -1"):
        batch.reset(seed=[1, 2, -1])


def test_actions_beyond_their_bounds_are_clipped() -> None:
    batch = SafetyBatch("CarGoal1", 2)
    batch.reset(seed=[1, 1])
    observation, *_ = batch.step([[5.0, -7.0], [1.0, -1.0]])
    np.testing.assert_array_equal(*observation)


# --- driving and looking ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*TASKS, "CarButton1", "PointGoal2", "CarButton2"])
def test_a_scripted_driver_reaches_goals(name: str) -> None:
    batch = SafetyBatch(name, 8)
    driver, observations, goals = Driver(batch.scene), batch.reset(seed=20), np.zeros(8)
    for _ in range(400):
        observations, _, _, _, _, info = batch.step(driver(observations))
        goals += info["goal_met"]
    assert goals.sum() >= 5
    np.testing.assert_array_equal(driver(observations[0]), driver(observations)[0])


def test_caution_pays() -> None:
    costs = {}
    for caution in (0.0, 2.0):
        batch = SafetyBatch("CarGoal1", 12)
        driver, observations, costs[caution] = Driver(batch.scene, caution), batch.reset(seed=0), 0.0
        for _ in range(300):
            observations, _, cost, *_ = batch.step(driver(observations))
            costs[caution] += cost.sum()
    assert costs[2.0] < 0.5 * costs[0.0]


def seen(frame: np.ndarray, colour: tuple[int, int, int], near: int = 30) -> int:
    return int((np.abs(frame.astype(int) - colour).max(axis=-1) < near).sum())


@pytest.mark.parametrize("name", ["PointGoal1", "PointButton1", "CarGoal1", "CarButton1"])
def test_the_top_view_shows_everything(name: str) -> None:
    env = SafetyEnv(name, render_mode="rgb_array", width=300, height=200)
    env.reset(seed=3)
    env.step(np.zeros(2))
    frame = env.render()
    assert frame is not None
    assert frame.shape == (200, 300, 3)
    assert frame.dtype == np.uint8
    assert seen(frame, (190, 20, 50)) > 20  # the agent
    for kind in env.scene.kinds:
        if kind.solid:
            assert seen(frame, kind.colour, 60) > 20, kind.name
        else:  # marks on the floor let it shine through
            alpha = 110 / 255 if kind.name == "goal" else 80 / 255
            mixed = tuple(round(alpha * c + (1 - alpha) * f) for c, f in zip(kind.colour, (247, 247, 250)))
            assert seen(frame, mixed, 12) > 60, kind.name
    env.close()


def test_the_top_view_shows_costs_and_follows_an_agent_that_leaves() -> None:
    batch = SafetyBatch("PointGoal0", 1, hazards=1)
    view = TopView(batch, 200, 200)
    batch.put(0, {"agent": [0, 0], "goal": [0.9, 0], "hazards": [[0.1, 0]]})
    assert seen(view.draw()[:, :3], (220, 30, 30)) == 0
    batch.step([[0.0, 0.0]])
    assert seen(view.draw()[:, :3], (220, 30, 30)) > 300
    batch.put(0, {"agent": [3, 0], "goal": [0.9, 0], "hazards": [[0.1, 0]]})
    assert seen(view.draw(), (190, 20, 50), 60) > 5


def test_rendering_without_a_mode_warns() -> None:
    env = SafetyEnv("PointGoal0")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert env.render() is None


@pytest.mark.parametrize("backend", ["egl", "osmesa"])
def test_the_3d_view_shows_the_scene_or_says_what_to_install(backend: str) -> None:
    code = """
import numpy as np
from pcces.envs.safety import SafetyEnv
env = SafetyEnv("PointButton1", render_mode="rgb_array", view="3d", width=160, height=120)
env.reset(seed=3)
env.step(np.zeros(2))
frame = env.render()
env.close()
assert frame.shape == (120, 160, 3) and frame.std() > 10, frame.std()
red = (frame[..., 0].astype(int) - frame[..., 1:].max(axis=-1) > 60).sum()
assert red > 10, red
"""
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "MUJOCO_GL": backend}, capture_output=True, text=True
    )
    if "MuJoCo found no OpenGL to draw with" in run.stderr:
        pytest.skip(f"no {backend} on this machine")
    assert run.returncode == 0, run.stderr


def test_no_opengl_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    import mujoco

    def refuse(*_: object) -> None:
        raise RuntimeError("gladLoadGL error")

    monkeypatch.setattr(mujoco, "Renderer", refuse)
    with pytest.raises(RuntimeError, match=r"apt install libegl1 libosmesa6.*view='top'"):
        SceneView(SafetyBatch("PointGoal0", 1), 100, 100)


USES = ["from pcces.envs.safety import SafetyEnv", "import pcces; pcces.train('PointGoal1-v0', iterations=1)"]


@pytest.mark.parametrize("use", USES)
def test_missing_mujoco_is_explained_before_any_work(use: str) -> None:
    assert importlib.util.find_spec("mujoco") is not None
    code = f"import sys; sys.modules['mujoco'] = None; {use}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = run.stderr.splitlines()[-1]
    assert last.startswith("ImportError") and "pip install 'pcces[safety]' (or engine='device'" in last


def test_groups_without_room_are_named() -> None:
    with pytest.raises(ValueError, match="no room for 30 rocks"):
        sample_layout([Placement("rocks", 30, 0.5)], 1.0, LegacyStream(0))


# -- as a simulator to train on --------------------------------------------------------------------------------------------


def test_a_run_folder_holds_what_was_changed_in_a_scene() -> None:
    made = replace(safety_simulator("PointGoal1", hazards=2, extent=2.0), max_steps=30, cost_bounds=(0.0, 2.0))
    kept = json.loads(json.dumps(made.to_dict()))
    again = simulator_of_run(made.name, kept, None)
    assert type(again) is type(made) and again == made and again.options == {"hazards": 2, "extent": 2.0}
    assert again.scene.extent == 2.0 and [kind.count for kind in again.scene.kinds] == [1, 2, 1]
    other = simulator("pcces/PointGoal1-v0", hazards=2, extent=2.0, max_steps=30)
    again = simulator_of_run(other.name, other.to_dict(), None)
    assert again.options == other.options and again.max_steps == 30 and again.scene.extent == 2.0
    kept["options"] = {"hazards": 0}  # one lidar less
    with pytest.raises(ValueError, match=r"has 44 observations .*, but in the run's folder it has 60"):
        simulator_of_run(made.name, kept, None)
    kept["options"] = {"hazards": 10**9}
    with pytest.raises(ValueError, match="hazards must be a whole number from 0 to 1000, got 1000000000"):
        simulator_of_run(made.name, kept, None)


def test_a_scene_takes_a_cost_function(tmp_path) -> None:
    named, engine = resolve("PointGoal1-v0", "local", cost=simulators.effort)
    changed = resolve(safety_simulator("PointGoal1", hazards=2), "local", cost=simulators.effort)[0]
    for asked in (named, changed):
        assert asked.cost_names == ("cost0", "cost1") and asked.thresholds == () and asked.cost_bounds is None
    assert engine == "local" and named.scene != changed.scene and changed.entropy_bounds == (-1000.0, 5000.0)
    run = pcces.train(
        replace(changed, max_steps=5), threshold=(5.0, 5.0), out=tmp_path / "run", workers=1, report=False,
        **FEW | dict(iterations=1, epoch_steps=10, certify_episodes=4),
    )  # fmt: skip
    assert 0 < run.final["costs"][0] <= 5 and run.final["costs"][1] <= 5
    with pytest.raises(ValueError, match=r"come from a function.*give it again"):
        pcces.load(tmp_path / "run").evaluate(2)
    again = pcces.load(tmp_path / "run", cost=simulators.effort)
    assert again.task.options == {"hazards": 2} and [kind.count for kind in again.task.scene.kinds] == [1, 2, 1]
    assert again.evaluate(3, engine="ray") == run.evaluate(3)  # workers of either kind play the same
    with pytest.raises(
        ValueError, match="with options or a cost function, or given as it is, which the engine device does not know"
    ):
        again.evaluate(3, engine="device")
