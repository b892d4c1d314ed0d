"""The examples' environments do what they say, and train."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from pcces.envs import make, registry, tasks
from pcces.envs.costs import episode_range
from pcces.envs.lookup import resolve
from pcces.rl.problem import problem_for

EXAMPLES = Path(__file__).parent.parent / "examples"
MOST_LINES = 60


@pytest.fixture
def example(monkeypatch):
    """Imports an example; what it registers is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(registry, "_own", {})
    before, modules = set(gymnasium.registry), set(sys.modules)
    yield importlib.import_module
    for name in set(gymnasium.registry) - before:
        del gymnasium.registry[name]
    for name in set(sys.modules) - modules:
        if (EXAMPLES / f"{name}.py").exists():
            del sys.modules[name]


def play(task, act, seed=0):
    """Returns and costs of 16 episodes in which `act(observation)` acts."""

    def episode(key):
        def step(state, key):
            state, reward, costs, _ = task.step(state, act(task.observe(state)), key)
            return state, (reward, costs)

        keys = jax.random.split(key, task.max_steps + 1)
        _, (rewards, costs) = jax.lax.scan(step, task.reset(keys[0]), keys[1:])
        return rewards.sum(), costs.sum(0)

    rewards, costs = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(seed), 16))
    return float(rewards.mean()), np.asarray(costs.mean(0))


@pytest.mark.parametrize(
    "file", ["battery", "cruise", "drone", "greenhouse", "insulin", "lunar_fuel", "reservoir", "servers"]
)
def test_an_environment_takes_less_than_sixty_lines(file):
    assert len((EXAMPLES / f"{file}.py").read_text().splitlines()) < MOST_LINES


def test_the_battery_earns_by_trading_and_pays_for_haste(example):
    example("battery")
    task = make("Battery-v0")
    nothing, none = play(task, lambda o: jnp.zeros(1))
    hasty, costs = play(task, lambda o: jnp.where(o[2] < 1, 1.0, -1.0)[None])
    calm, fewer = play(task, lambda o: jnp.where(o[2] < 1, 0.5, -0.5)[None] * (o[0] > 0.2))
    assert nothing == 0 and list(none) == [0, 0]
    assert hasty > 1 and costs[0] > task.thresholds[0] and costs[1] > task.thresholds[1]
    assert calm > 0.3 and fewer[0] == 0


def test_the_drone_pays_for_the_straight_way_once_or_for_every_step(example):
    example("drone")
    toward = lambda o: jnp.clip(4 * (jnp.array([4.0, 0.0]) - o[:2]) - 2 * o[2:4], -1, 1)  # noqa: E731
    earned, inside = play(make("Drone-v0"), toward)
    same, entered = play(make("DroneStrict-v0"), toward)
    assert earned == same > 40 and inside[0] > 5 and entered[0] == 1.0
    stays, none = play(make("DroneStrict-v0"), lambda o: jnp.zeros(2))
    assert stays < 5 and none[0] < 0.5
    assert episode_range(make("Drone-v0")) == (0.0, 100.0) and episode_range(make("DroneStrict-v0")) == (0.0, 1.0)


def test_the_lander_pays_for_what_its_engines_burn(example):
    pytest.importorskip("Box2D", reason="needs gymnasium[box2d]")
    example("lunar_fuel")
    env = gymnasium.make("LunarFuel-v0")
    env.reset(seed=0)
    paid = [env.step(np.array(action))[4]["cost"] for action in ([-1, 0], [1, 0], [0.2, 0.4], [-1, -0.8])]
    assert paid == pytest.approx([0.0, 1.0, 0.6, 0.08])
    task, engine = resolve("LunarFuel-v0", cost_bounds=(0, 1.1))
    assert (task.cost_names, task.max_steps, engine) == (("cost",), 1000, "local")
    assert problem_for(task, 0.0, threshold=60).names == ("cost <= 60",)


def constant(*values):
    return lambda o: jnp.array(values, jnp.float32)


# An environment, what earns little or breaks a limit, and what keeps its limits and earns more than the first.
CONTROLLERS = {
    "greenhouse": (constant(0, 0), lambda o: jnp.stack([o[0] < 8, o[0] > 26]).astype(jnp.float32)),
    "cruise": (constant(1), lambda o: jnp.clip(0.5 * (o[3] - 1.6) + 0.8 * (o[2] - o[1]), -1, 1)[None]),
    "insulin": (constant(0.35), constant(0.2)),
    "reservoir": (constant(0), lambda o: jnp.clip(0.9 + o[0] + 0.5 * o[1], 0.2, 1)[None]),
    "servers": (
        lambda o: jnp.int32(2),
        lambda o: jnp.where(o[3] + o[6:].sum() / 5 < 0.3, 4, jnp.where(o[3] > 0.9, 0, 2)),
    ),
}


@pytest.mark.parametrize("file", CONTROLLERS)
def test_a_limit_is_broken_by_neglect_and_kept_with_care(file, example):
    example(file)
    (task,) = registry.own_tasks()
    careless, careful = CONTROLLERS[file]
    earned, costs = play(task, careful)
    assert np.all(costs <= task.thresholds) and earned > 0
    other, broken = play(task, careless)
    assert np.any(broken > task.thresholds) and (other < earned or file == "servers")


def test_their_names_are_known_where_the_command_line_finds_them(example):
    example("battery")
    assert "Battery-v0" in tasks()


# -- black boxes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["staffing", "controller", "hyperparameters", "portfolio", "reactor"])
def test_a_black_box_is_solved_and_what_is_certified_is_true(file, example):
    module = example(file)
    res = module.solve(250)
    assert res.nfev <= 250 and (res.failures > 0) == (file == "reactor")
    fresh = [np.random.default_rng(10**6 + seed) for seed in range(400)]
    if file == "staffing":
        truth = np.mean([module.day(res.x, rng) > module.LATE for rng in fresh[:200]]) <= 0.08
    elif file == "controller":
        truth = np.mean([module.move(res.x, rng)[1] > module.FAR for rng in fresh]) <= 0.03
    elif file == "hyperparameters":
        truth = np.mean([module.fitted(res.x, rng)[1] for rng in fresh[:50]]) <= 1.02
    elif file == "reactor":
        truth = np.mean([module.simulate(res.x, rng)[1] for rng in fresh]) >= 0.895
    else:
        truth = module.pcces.limits.CVaR(0.1).estimate([-(res.x @ module.year(rng)) for rng in fresh]) <= 18
    assert truth or not res.success
    assert res.success or "Not certified" in res.message or "no feasible point" in res.message


def test_the_animation_of_a_training_grows(example, tmp_path, monkeypatch):
    module = example("training_gif")
    metrics = {"steps": [3e3, 6e3, 9e3], "return": [100.0, 300.0, 400.0], "cost_off_centre": [60.0, 30.0, 20.0]}
    run = SimpleNamespace(metrics=metrics, words=lambda: "CERTIFIED")
    assert module.smooth([1.0, 3.0], span=2).tolist() == [1.0, 2.0]
    monkeypatch.setattr(module, "FRAMES", 3)
    monkeypatch.setattr(module, "trained", lambda folder: run)
    with Image.open(module.main(path=tmp_path / "training.gif")) as film:
        assert film.n_frames == 2 and film.size[0] > 600  # the last frame is shown twice as one
