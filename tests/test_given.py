"""Environments as they are: a class, a function, an environment, a vector environment; made with arguments, cut sooner, drawn."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
import simulators
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.vector import SyncVectorEnv, VectorEnv
from small import FEW, environment
from test_simulators import play
from test_strangers import edited
from typer.testing import CliRunner

import pcces
from pcces.cli import app
from pcces.cli.common import env_args_in
from pcces.envs import Discrete, Step, Task, make, registry
from pcces.envs.lookup import name_of, resolve
from pcces.envs.simulator import simulator
from pcces.rl.arenas import elsewhere

TESTS = Path(__file__).parent
TINY = FEW | dict(iterations=1, epoch_steps=60, certify_episodes=5, workers=1)


def here(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


class Pulled(simulators.Line):
    """A line on which actions pull as hard as is said."""

    def __init__(self, pull=1.0):
        super().__init__()
        self.pull = pull

    def step(self, action):
        return super().step(self.pull * np.asarray(action))


class Lines(VectorEnv):
    """Lines side by side, without a single one behind them."""

    def __init__(self, num_envs=1):
        self.num_envs, self.lines = num_envs, [simulators.Line(costs="cost") for _ in range(num_envs)]
        self.single_observation_space, self.single_action_space = (
            simulators.Line.observation_space,
            simulators.Line.action_space,
        )
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        return np.stack([line.reset(seed=seed)[0] for line in self.lines]), {}

    def step(self, actions):
        o, r, over, cut, infos = zip(*(line.step(action) for line, action in zip(self.lines, actions)))
        return (
            np.stack(o),
            np.array(r),
            np.array(over),
            np.array(cut),
            {"cost": np.array([info["cost"] for info in infos])},
        )


GIVEN = {
    "class": lambda: simulators.Line,
    "function": lambda: lambda: simulators.Line(),
    "environment": simulators.Line,
    "with a limit": lambda: gymnasium.wrappers.TimeLimit(simulators.Line(), 15),
    "by gymnasium": lambda: gymnasium.make("tests/Line-v0"),
    "vector": lambda: SyncVectorEnv([simulators.Line] * 3),
    "vector of one": Lines,
    "function of a vector": lambda: Lines,
}


@pytest.mark.parametrize("kind", GIVEN)
def test_whatever_is_given_is_played_as_its_environment(kind):
    task, engine = resolve(GIVEN[kind](), max_steps=12)
    sent = pickle.loads(pickle.dumps(task))  # as workers get it
    assert engine == "local" and task.max_steps == sent.max_steps == 12
    expected, _ = play(simulator("tests/Line-v0", max_steps=12), seed=5)
    got, _ = play(sent, seed=5)
    assert got.length == 12 and got.returns == pytest.approx(expected.returns)
    assert task.cost_names == (("cost",) if "vector of one" in kind or kind == "function of a vector" else ())


def test_what_it_is_called():
    assert name_of(simulators.Line) == "simulators:Line" and name_of(lambda: None) == "environment"
    assert name_of(gymnasium.make("tests/Line-v0")) == "tests/Line-v0" and name_of(simulators.Line()) == "Line"
    assert name_of(simulator(simulators.Line, max_steps=3)) == "simulators:Line"


def test_copies_are_as_the_environment_was_when_it_was_given():
    env = Pulled(pull=3.0)
    env.position = 1e6  # which a reset forgets
    task, _ = resolve(env, max_steps=9)
    env.pull = 0.0
    copies = [pickle.loads(pickle.dumps(task)).make().env for _ in range(2)]
    assert [copy.pull for copy in copies] == [3.0, 3.0] and copies[0] is not copies[1]


def test_one_that_cannot_be_copied_is_made_again_by_its_id_or_refused():
    env = gymnasium.make("tests/Line-v0")
    env.unwrapped.file = sys.stdout  # which no copy can have
    assert resolve(env)[0].make().env.unwrapped.position == 0.0
    alone = simulators.Line()
    alone.file = sys.stdout
    with pytest.raises(
        TypeError, match=r"Line cannot be copied to workers \(.*give its class, or a function that makes it"
    ):
        resolve(alone, max_steps=9)


@pytest.mark.parametrize(
    ("given", "options", "says"),
    [
        (simulators.Line, {}, r"simulators:Line has no time limit: give max_steps=\.\.\. \(--max-steps\)"),
        (simulators.Line, {"max_steps": 0}, "max_steps must be a whole number of at least 1, got 0"),
        (simulators.Line(), {"max_steps": 9, "env_args": {"costs": "six"}}, "given is as it is: give its class with costs"),
        (simulators.Line, {"max_steps": 9, "engine": "device"}, "simulators:Line is a simulator, not a task in JAX"),
        (Lines(3), {"max_steps": 9}, r"Lines steps 3 environments at once.*\(num_envs=1\)"),
        (len, {}, "missing|takes exactly|argument"),
        (42, {}, "a task is given by its id, as a pcces.envs.Task, or as an environment.*not as 42"),
        (lambda: 3, {}, "environment made 3, which is no Gymnasium environment"),
        (gymnasium.wrappers.vector.ClipReward(SyncVectorEnv([simulators.Line]), 0, 1), {}, "wrap the environment itself"),
        (gymnasium.make("CartPole-v1", render_mode="human"), {}, "opens a window, and so would every worker"),
        (simulator("tests/Line-v0"), {"env_args": {"costs": "six"}}, r"give costs to simulator\(\.\.\.\)"),
    ],
)  # fmt: skip
def test_what_cannot_be_given_is_refused_in_words(given, options, says):
    with pytest.raises((ValueError, TypeError), match=says):
        resolve(given, **options)


def test_an_environment_of_the_older_gym_is_told_of_what_helps():
    class Old(simulators.Line):
        def step(self, action):
            observation, reward, _, over, info = super().step(action)
            return observation, reward, over, info

    with pytest.raises(TypeError, match=r"a step gave 4 values, not five.*Shimmy"):
        simulator(Old, max_steps=9)


def test_a_run_of_what_is_given_is_trained_kept_and_played_again(tmp_path):
    class Local(simulators.Line):  # only this function knows it
        """A line."""

    def cost(observation, action, info):
        return float(observation[0] > 0)

    asked = dict(cost=cost, threshold=25, out=tmp_path / "run", max_steps=20, **TINY)
    run = pcces.train(lambda: Local(), **asked)
    assert run.config["task"] == "environment" and run.final["length"] == 20 and "failed_episodes" not in run.final
    kept = json.loads((tmp_path / "run" / "config.json").read_text())["simulator"]
    assert kept["given"] and kept["cost_function"] and kept["max_steps"] == 20
    with pytest.raises(ValueError, match="come from a function"):
        pcces.load(tmp_path / "run").evaluate(2)
    with pytest.raises(
        ValueError, match=r"was given as an object.*pcces.load\(path, task=\.\.\.\) or --import MODULE:NAME"
    ):
        pcces.load(tmp_path / "run", cost=cost).evaluate(2)
    again = pcces.load(tmp_path / "run", cost=cost, task=Local)
    assert again.evaluate(3) == run.evaluate(3)
    with pytest.raises(ValueError, match=r"PendulumEnv has 3 observations .* in the run's folder environment has 1"):
        pcces.load(tmp_path / "run", cost=cost, task=PendulumEnv)
    with pytest.raises(ValueError, match="given as it is, which the engine device does not know"):
        elsewhere(again, "device")
    (tmp_path / "run" / "policy.npz").unlink()
    assert pcces.load(tmp_path / "run").again().startswith("pcces.train(..., out=")


def test_what_the_main_script_defines_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import gymnasium, numpy as np, pcces\n"
        "from gymnasium.envs.classic_control import PendulumEnv\n"
        "class Mine(PendulumEnv):\n    pass\n"
        "run = pcces.train(Mine, max_steps=30, workers=1, iterations=1, epoch_steps=60, hidden=(4,), certify_episodes=4,\n"
        "                  critic_hidden=(4,), bold=0.0, cost=lambda o, a, i: float(o[0] < 0), threshold=1e3)\n"
        "print(run.config['task'], run.final['length'])\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.stdout == "Mine 30.0\n", done.stderr


# -- arguments and time limits ---------------------------------------------------------------------------------------------


def test_environments_are_made_with_arguments():
    assert resolve("Pendulum-v1", "local", env_args={"g": 3.0})[0].make().env.unwrapped.g == 3.0
    assert resolve(PendulumEnv, env_args={"g": 4.0}, max_steps=7)[0].make().env.g == 4.0
    assert resolve("PointGoal1-v0", "local", env_args={"hazards": 2})[0].observation_size == 60
    fast = resolve("HopperVelocity-v1", env_args={"forward_reward_weight": 2.0})[0]
    assert (fast.thresholds, fast.cost_names, fast.options) == ((25.0,), ("too_fast",), {"forward_reward_weight": 2.0})
    with pytest.raises(TypeError, match="unexpected keyword argument 'gravity'"):
        resolve("Pendulum-v1", "local", env_args={"gravity": 3.0})
    with pytest.raises(TypeError, match=r"CartSafe-v0 is not made with gravity: .*takes no arguments"):
        resolve("CartSafe-v0", env_args={"gravity": 3.0})


class Urn(Task):
    """Draws from an urn."""

    name, observation_size, actions, max_steps = "Urn-v0", 1, Discrete(2), 8

    def __init__(self, balls=3):
        self.balls = balls

    def reset(self, key):
        return jnp.zeros(1)

    def step(self, state, action, key):
        return Step(state + 1, jnp.float32(self.balls), jnp.zeros(0), False)


def test_tasks_in_jax_are_given_as_classes_made_with_arguments_and_cut_sooner(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_own", {"Urn-v0": Urn()})
    assert resolve(Urn)[0] == Urn() and resolve(Urn())[1] == "device"
    task, _ = resolve("Urn-v0", env_args={"balls": 7}, max_steps=5)
    assert (task.balls, task.max_steps, Urn().max_steps) == (7, 5, 8) and task != Urn(7)
    run = pcces.train("Urn-v0", env_args={"balls": 7}, max_steps=5, out=tmp_path / "run", report=False, iterations=1,
                      epoch_steps=20, hidden=(3,), critic_hidden=(3,), certify_episodes=4, bold=0.0)  # fmt: skip
    assert run.final["return"] == 35 and run.words().startswith("NO LIMITS")
    again = pcces.load(tmp_path / "run")
    assert again.task == task and again.evaluate(2)["return"] == 35
    with pytest.raises(ValueError, match="is written in JAX"):
        pcces.load(tmp_path / "run", task=Urn)
    with pytest.raises(ValueError, match=r"costs must be float32\[1\], but is float32\[0\]"):
        resolve(type("Wrong", (Urn,), {"cost_names": ("c",), "thresholds": (1.0,)}))


def test_a_longer_limit_than_the_environments_own_changes_nothing_and_says_so(caplog):
    assert resolve("CartSafe-v0", max_steps=1000)[0].max_steps == 300
    assert resolve("tests/Short-v0", max_steps=1000)[0].max_steps == 7
    assert len(caplog.records) == 2 and "CartSafe-v0 ends after 300 steps by itself" in caplog.records[0].message


# -- on the command line ---------------------------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module with an environment that is registered nowhere, in the current folder."""
    (tmp_path / "mill.py").write_text(
        "import sys\nsys.path.insert(0, " + repr(str(TESTS)) + ")\nfrom test_given import Pulled\n"
        "class Mill(Pulled):\n    def step(self, action):\n        *rest, info = super().step(action)\n"
        "        return *rest, {'cost': 0.5}\n"
        "slow = Mill(0.1)\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("mill", None)


def test_the_command_line_takes_a_class_arguments_and_a_limit(module):
    few = ["--workers", 1, *(f"--set={name}={value}" for name, value in (("hidden", 4), ("epoch_steps", 60)))]
    few += ["--set=critic_hidden=4", "--set=certify_episodes=5", "--set=bold=0", "--iterations", 1]
    done = here("train", "mill:Mill", "--env-arg", "pull=0.5", "--max-steps", 12, "--threshold", 10, *few)
    assert done.exit_code == 0 and "cost at most 6 (limit 10)" in done.stdout, done.stderr
    folder = "runs/mill:Mill/pcces-default-threshold10-pull0.5-max12-seed0"
    config = json.loads((module / folder / "config.json").read_text())
    assert config["task"] == "mill:Mill" and config["simulator"]["options"] == {"pull": 0.5}
    refused = here("evaluate", folder, "--episodes", 3)
    assert (
        refused.exit_code == 2
        and "give it again" in refused.stderr
        and "--import MODULE:NAME (mill:Mill)" in refused.stderr
    )
    again = here("evaluate", folder, "--episodes", 3, "--import", "mill:Mill", "--json")
    (said,) = json.loads(again.stdout)["runs"]
    assert said["length"] == 12 and said["costs"] == [6.0]
    assert here("train", "mill:Mill", "--out", folder, "--resume").stdout == done.stdout
    for bad, says in (
        (["mill:Mil"], "unknown task 'mill:Mil'"),
        (["mill:number", "--max-steps", 3], "unknown task 'mill:number'"),
        (["mill:Mill"], "has no time limit: give max_steps=... (--max-steps)"),
        (["mill:Mill", "--max-steps", 3, "--env-arg", "pull"], "--env-arg takes NAME=VALUE, got 'pull'"),
        (["mill:slow", "--max-steps", 3, "--env-arg", "pull=1"], "give its class with pull"),
    ):
        done = here("train", *bad)
        assert done.exit_code == 2 and says in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_bench_takes_environments_with_costs(module):
    few = ["--workers", 1, "--seconds", 0.1, "--set=hidden=4", "--set=epoch_steps=60", "--set=critic_hidden=4"]
    for words in (["mill:Mill", "--max-steps", 12], ["tests/Line-v0", "--cost", "simulators:late_cost"]):
        done = here("bench", *words, *few, "--json")
        assert done.exit_code == 0 and json.loads(done.stdout)["speeds"][0]["steps"] > 0, done.stderr
    late = here("bench", "tests/Late-v0", *few)
    assert late.exit_code == 2 and "step 15 of tests/Late-v0 has a cost" in late.stderr
    assert here("bench", "tests/Late-v0", "--threshold", 5, *few).exit_code == 0


def test_values_of_arguments_are_what_python_would_read():
    given = env_args_in(["a=1", "b=-2.5e-3", "c=true", "d=None", "e=(1, 2)", "f=4x4", "g='1'", "h=", "i={'j': [1]}"])
    assert given == {
        "a": 1, "b": -2.5e-3, "c": True, "d": None, "e": (1, 2), "f": "4x4", "g": "1", "h": "", "i": {"j": [1]},
    }  # fmt: skip


# -- strangers -------------------------------------------------------------------------------------------------------------


def test_a_strangers_folder_calls_nothing_of_what_it_names(tmp_path, monkeypatch):
    pcces.train(simulators.Line, max_steps=20, out=tmp_path / "run", report=False, **TINY)
    monkeypatch.chdir(tmp_path)
    edited(tmp_path / "run", task="os:getcwd")
    with pytest.raises(ValueError, match=r"policy.npz is of simulators:Line, but config\.json says os:getcwd"):
        pcces.load(tmp_path / "run")
    for name in ("policy.npz", "certificate.json"):
        (tmp_path / "run" / name).unlink()
    with pytest.raises(ValueError, match="this run is not finished"):
        pcces.load(tmp_path / "run").evaluate(2)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    edited(tmp_path / "run", simulator=config["simulator"] | {"options": {"file": "evil_module:run"}})
    done = here("train", "os:getcwd", "--out", "run", "--resume", "--iterations", 2)
    assert done.exit_code == 2 and "a run folder imports no modules: import evil_module first" in done.stderr


def test_arguments_of_a_task_in_jax_from_a_folder_import_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_own", {"Urn-v0": Urn()})
    with pytest.raises(ValueError, match="import evil_module first"):
        pcces.envs.lookup.task_of_run("Urn-v0", {"balls": "evil_module:Balls"})


# -- pictures --------------------------------------------------------------------------------------------------------------

DRAWN = """
import mujoco  # as a module of one's own does, long before anything is drawn
import gymnasium, numpy as np, pcces
from pcces.rl.film import film
XML = "<mujoco><worldbody><light pos='0 0 3'/><body><joint type='slide'/><geom size='.2'/></body></worldbody></mujoco>"

class Own(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    observation_space = gymnasium.spaces.Box(-10, 10, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def __init__(self, render_mode=None):
        self.render_mode, self.model, self.camera = render_mode, mujoco.MjModel.from_xml_string(XML), None
        self.data = mujoco.MjData(self.model)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        return np.float32(self.data.qpos), {}

    def step(self, action):
        self.data.qvel[0] = float(action[0])
        mujoco.mj_step(self.model, self.data)
        return np.float32(self.data.qpos), 0.0, False, False, {}

    def render(self):
        self.camera = self.camera or mujoco.Renderer(self.model, 32, 32)
        self.camera.update_scene(self.data)
        return self.camera.render()

few = dict(iterations=1, epoch_steps=30, hidden=(3,), critic_hidden=(3,), certify_episodes=4, workers=1, bold=0.0, max_steps=9)
for task in (Own, Own()):
    print(film(pcces.train(task, **few)).steps)
"""


def test_a_mujoco_environment_of_ones_own_is_drawn_without_a_display(tmp_path):
    pytest.importorskip("mujoco", reason="needs the extra 'safety'")
    if not os.path.exists("/usr/lib/x86_64-linux-gnu/libEGL.so.1"):
        pytest.skip("needs EGL to draw")
    (tmp_path / "drawn.py").write_text(DRAWN)
    headless = {k: v for k, v in environment().items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")}
    done = subprocess.run([sys.executable, "drawn.py"], cwd=tmp_path, env=headless, capture_output=True, text=True)
    assert done.stdout == "9\n9\n", done.stderr


def test_the_same_is_made_of_an_id_and_of_an_environment():
    assert make("CartSafe-v0").max_steps == 300  # a task in JAX stays one
    assert resolve(gymnasium.make("pcces/CartSafe-v0"))[0].observation_size == 4
