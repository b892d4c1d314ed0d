"""It does not matter in what rewards, costs and observations are measured: the course is the same but for rounding."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import pcces
from pcces.envs import Continuous, Step, Task, make
from pcces.rl.normalizer import MOST_GROWTH, carry_over, identity
from pcces.rl.policy import Policy

BATTERY = Path(__file__).parent.parent / "examples" / "battery.py"
SMALL = {"hidden": (8, 8), "certify_episodes": 20, "confidence": 0.5}
OF_EPOCHS = {"iterations": 6, "epoch_steps": 1000, "critic_hidden": (8,), "passes": 3, "minibatches": 2}
OF_POPULATIONS = {"iterations": 4, "population": 8, "metric_episodes": 8, "initial_tries": 8}


class Measured(Task):
    """A task with its rewards, costs (and limits) and observations in other units."""

    def __init__(self, task: Task, reward: float = 1.0, cost: float = 1.0, scale: float = 1.0, shift: float = 0.0):
        self.task, self.reward, self.cost, self.scale, self.shift = task, reward, cost, scale, shift
        self.name, self.observation_size, self.actions = task.name, task.observation_size, task.actions
        self.max_steps, self.cost_names = min(task.max_steps, 100), task.cost_names
        self.thresholds = tuple(cost * limit for limit in task.thresholds)
        self.entropy_bounds = task.entropy_bounds

    def reset(self, key):
        return self.task.reset(key)

    def observe(self, state):
        return self.scale * self.task.observe(state) + self.shift

    def step(self, state, action, key):
        after, reward, costs, terminated = self.task.step(state, action, key)
        return Step(after, self.reward * reward, self.cost * costs, terminated)


def a_task(name: str) -> Task:
    if name != "Battery-v0":
        return make(name)
    spec = importlib.util.spec_from_file_location("battery_in_units", BATTERY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Battery()


def course(task: Task, algorithm: str, units: dict[str, float], **more: float) -> tuple[np.ndarray, ...]:
    """Returns and costs of the iterations in the task's own units, and the last policy."""
    sizes = OF_POPULATIONS if algorithm in ("openes", "asebo") else OF_EPOCHS
    run = pcces.train(Measured(task, **units), algorithm=algorithm, **SMALL, **sizes, **more)
    costs = [run.metrics[f"cost_{name}"] for name in task.cost_names]
    # What the policy does on observations that are usual for it.
    usual = run.normalizer.mean + run.normalizer.std * np.linspace(-1, 1, 5)[:, None]
    actions = np.array([run.policy(row.astype(np.float32)) for row in usual], float)
    return np.array(run.metrics["return"]) / units.get("reward", 1.0), np.array(costs) / units.get("cost", 1.0), actions


# Every task in other units is compiled anew: all units change at once, in both directions over the tasks.
LARGE_REWARDS = {"reward": 128.0, "cost": 0.125, "scale": 2.0**-6, "shift": -0.01}
LARGE_COSTS = {"reward": 2.0**-7, "cost": 8.0, "scale": 64.0, "shift": 3.0}
CALM = {"bold": 0.0}  # it compiles a program less


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "units", "more"),
    [
        ("CartSafe-v0", LARGE_REWARDS, {}),
        ("MountainCarContinuousSafe-v0", LARGE_COSTS, CALM),
        ("Battery-v0", LARGE_COSTS, CALM),
    ],
    ids=["CartSafe-v0", "MountainCarContinuousSafe-v0", "Battery-v0"],
)
def test_pcces_goes_the_same_way_in_any_units(name, units, more):
    task = a_task(name)
    mine, others = course(task, "pcces", {}, **more), course(task, "pcces", units, **more)
    assert np.ptp(mine[0]) > 0
    for one, other in zip(mine, others):
        np.testing.assert_allclose(one, other, rtol=0.02, atol=0.02 * np.abs(one).max() + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo-lag", "rcpo", "cpo", "openes", "asebo"])
def test_rivals_go_the_same_way_in_any_units(algorithm):
    task = make("CartSafe-v0")
    returns, costs, _ = course(task, algorithm, {})
    assert np.ptp(returns) > 0
    for one, other in zip((returns, costs), course(task, algorithm, LARGE_COSTS)):
        np.testing.assert_allclose(one, other, rtol=0.02, atol=0.02 * np.abs(one).max())


class Sometimes(Task):
    """The second observation hardly moves at first, and then does."""

    name, observation_size, actions, max_steps = "Sometimes-v0", 2, Continuous(-1.0, 1.0), 10

    def reset(self, key):
        return jnp.zeros(2)

    def step(self, state, action, key):
        return Step(state, action[0], jnp.zeros(0), jnp.bool_(False))


def test_what_a_policy_made_of_tiny_changes_is_not_blown_up():
    policy = Policy(2, Sometimes.actions, (4,))
    x = policy.init(np.random.default_rng(0).standard_normal(policy.size, dtype=np.float32))
    before = identity(np.zeros(2))._replace(std=np.array([1.0, 1e-9]))
    after = before._replace(std=np.array([1.0, 1.0]))
    first = policy.shapes[0][0] * policy.shapes[0][1]
    weights, carried = (np.reshape(v[:first], policy.shapes[0]) for v in (x, carry_over(policy, x, before, after)))
    np.testing.assert_allclose(carried[0], weights[0])
    np.testing.assert_allclose(carried[1], MOST_GROWTH * weights[1], rtol=1e-5)
