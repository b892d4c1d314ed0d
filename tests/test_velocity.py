"""The velocity tasks: Gymnasium's robots, Safety-Gymnasium's costs."""

import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from small import environment

pytest.importorskip("mujoco", reason="needs the extra 'safety'")

from pcces.envs.lookup import resolve
from pcces.envs.simulator import Simulator
from pcces.envs.velocity import KNOWN, velocity_env, velocity_simulator
from pcces.policies import train
from pcces.rl.folder import load

# safety_gymnasium/tasks/safe_velocity/safety_*_velocity_v1.py
PUBLISHED = {
    "Hopper": 0.7402, "HalfCheetah": 3.2096, "Walker2d": 2.3415, "Ant": 2.6222, "Swimmer": 0.2282, "Humanoid": 1.4149,
}  # fmt: skip


@pytest.mark.parametrize("robot", PUBLISHED)
def test_what_is_known_before_mujoco_is_imported_is_what_gymnasium_has(robot):
    known, env = velocity_simulator(f"{robot}Velocity-v1"), gymnasium.make(f"pcces/{robot}Velocity-v1")
    own = gymnasium.spec(f"{robot}-v5")
    assert env.observation_space.shape == (known.observation_size,)
    assert tuple(env.action_space.low.tolist()) == pytest.approx(known.actions.low)
    assert tuple(env.action_space.high.tolist()) == pytest.approx(known.actions.high)
    assert env.spec.max_episode_steps == known.max_steps == own.max_episode_steps
    assert known.reward_threshold == own.reward_threshold
    assert KNOWN[robot].speed_limit == PUBLISHED[robot]
    assert known.known().observation_size == known.observation_size


def moving(robot, along, sideways=0.0):
    """The speeds and the cost of a step that begins with these speeds."""
    env = velocity_env(robot)
    env.reset(seed=0)
    inner = env.unwrapped
    speeds = np.zeros_like(inner.data.qvel)
    speeds[:2] = along, sideways if robot in ("Ant", "Humanoid", "Swimmer") else 0.0
    inner.set_state(inner.data.qpos.copy(), speeds)
    info = env.step(np.zeros(inner.action_space.shape))[4]
    return info["x_velocity"], info.get("y_velocity", 0.0), info["cost"]


@pytest.mark.parametrize("robot", PUBLISHED)
def test_a_step_costs_one_if_the_robot_is_too_fast(robot):
    limit = PUBLISHED[robot]
    x, _, cost = moving(robot, 3 * limit)
    assert x > limit and cost == 1.0
    x, y, cost = moving(robot, 0.1 * limit)
    assert max(abs(x), abs(y)) < limit and cost == 0.0
    x, _, cost = moving(robot, -3 * limit)  # backwards
    assert x < -limit and cost == float(robot in ("Ant", "Humanoid"))


@pytest.mark.parametrize(("robot", "cost"), [("Ant", 1.0), ("Humanoid", 1.0), ("Swimmer", 0.0)])
def test_speed_sideways_counts_for_those_whose_speed_is_in_the_plane(robot, cost):
    x, y, said = moving(robot, 0.0, 4 * PUBLISHED[robot])
    assert abs(y) > PUBLISHED[robot] > abs(x) and said == cost


def test_the_rest_of_a_step_is_gymnasiums():
    ours, theirs = gymnasium.make("pcces/SafetyHopperVelocity-v1"), gymnasium.make("Hopper-v5")
    assert np.array_equal(ours.reset(seed=3)[0], theirs.reset(seed=3)[0])
    ours.action_space.seed(1)
    for _ in range(5):
        action = ours.action_space.sample()
        mine, other = ours.step(action), theirs.step(action)
        assert np.array_equal(mine[0], other[0]) and mine[1:4] == other[1:4]
        assert {k: v for k, v in mine[4].items() if k != "cost"} == other[4]


@pytest.mark.parametrize("name", ["HopperVelocity-v1", "SafetyHopperVelocity-v1", "pcces/SafetyHopperVelocity-v1"])
def test_all_of_its_names_are_one_task(name):
    task, engine = resolve(name)
    assert isinstance(task, Simulator) and task == velocity_simulator("pcces/HopperVelocity-v1") and engine == "local"
    assert (task.cost_names, task.thresholds, task.cost_bounds) == (("too_fast",), (25.0,), (0.0, 1.0))


def test_other_versions_are_not_taken_for_it():
    with pytest.raises(ValueError, match=r"unknown task 'SafetyHopperVelocity-v0'"):  # other limits on speed
        resolve("SafetyHopperVelocity-v0")
    with pytest.raises(ValueError, match="unknown velocity task 'Hopper-v5'; there are pcces/HopperVelocity-v1, "):
        velocity_simulator("Hopper-v5")
    with pytest.raises(ValueError, match="is a simulator, not a task in JAX"):
        resolve("HopperVelocity-v1", "device")


@pytest.mark.slow
def test_a_run_is_trained_kept_and_drawn_without_a_display(tmp_path):
    run = train(
        "SafetyHopperVelocity-v1", "ppo-lag", iterations=1, epoch_steps=2000, certify_episodes=10, workers=1, hidden=(4,),
        critic_hidden=(4,), out=tmp_path / "run", report=False,
    )  # fmt: skip
    again = load(tmp_path / "run")
    assert again.config["task"] == "pcces/HopperVelocity-v1" and again.problem.thresholds == (25.0,)
    assert np.array_equal(again.x, run.x) and again.evaluate(2)["episodes"] == 2
    if not os.path.exists("/usr/lib/x86_64-linux-gnu/libEGL.so.1"):
        pytest.skip("needs EGL to draw")
    headless = {k: v for k, v in environment().items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")}
    done = subprocess.run(
        [sys.executable, "-m", "pcces", "render", str(tmp_path / "run")], env=headless, capture_output=True, text=True
    )
    assert done.returncode == 0 and (tmp_path / "run" / "policy.gif").stat().st_size > 1000, done.stderr


def test_without_mujoco_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio", None)
    for module in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(ImportError, match=r"pcces/HopperVelocity-v1 needs MuJoCo: pip install 'pcces\[rl,safety\]'"):
        resolve("HopperVelocity-v1")[0].known()
