"""What a policy does once it is trained: actions inside the box, one or many at a time, as its episodes were played."""

from types import SimpleNamespace

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import FEW

from pcces.core.certificate import Certificate
from pcces.envs.simulator import simulator
from pcces.envs.task import Continuous, Discrete, Step, Task
from pcces.policies import train
from pcces.rl.epochs import Endless
from pcces.rl.normalizer import frozen, identity
from pcces.rl.policy import Policy
from pcces.rl.rollout import rollout
from pcces.rl.run import Run

BOXES = [
    gymnasium.spaces.Box(np.float32([-0.4, 2.0]), np.float32([0.4, 3.0])),
    gymnasium.spaces.Box(np.array([-0.1, -0.7]), np.array([0.1, 0.7]), dtype=np.float64),  # not what float32 can hold
    gymnasium.spaces.Box(np.array([-np.inf, 0.0]), np.array([np.inf, np.inf]), dtype=np.float64),
]


def run_of(actions, x=None, size=3, seed=0):
    """A run whose policy has random weights, large enough to leave any box."""
    shape, rng = Policy(size, actions, (5,)), np.random.default_rng(seed)
    x = 3 * rng.normal(size=shape.size).astype(np.float32) if x is None else x
    normalizer = frozen(*np.float32([[0.5, -1.0, 3.0][:size], [2.0, 0.1, 1.0][:size]]))
    certificate = Certificate(True, 0.95, (), 1, "t")
    return Run({}, SimpleNamespace(), shape, None, x=x, normalizer=normalizer, certificate=certificate)


@pytest.mark.parametrize("box", BOXES, ids=str)
def test_actions_are_inside_any_box(box):
    actions = Continuous(tuple(map(float, box.low)), tuple(map(float, box.high)))
    run, rng = run_of(actions), np.random.default_rng(1)
    observations = rng.normal(size=(200, 3))
    drawn = [run.policy(o, rng) for o in observations]
    assert all(box.contains(action) and action.dtype == np.float32 for action in drawn)
    assert all(box.contains(run.policy(o)) for o in observations)
    assert all(box.contains(action) for action in run.policy(observations, rng))
    at_an_end = [np.any((np.abs(a - box.low) < 1e-6) | (np.abs(a - box.high) < 1e-6)) for a in drawn]
    assert np.mean(at_an_end) > 0.1  # they are clipped, not scaled into the box


@pytest.mark.parametrize("actions", [Discrete(4), Continuous((-2.0, 0.0), (2.0, 1.0))], ids=str)
def test_a_batch_gets_what_its_observations_get_one_by_one(actions):
    run, observations = run_of(actions), np.random.default_rng(2).normal(size=(50, 3))
    for seed in (None, 3):
        alone, together = (None if seed is None else np.random.default_rng(seed) for _ in range(2))
        one_by_one = np.array([run.policy(o, alone) for o in observations])
        batch = run.policy(observations, together)
        assert batch.shape == one_by_one.shape and batch.dtype == one_by_one.dtype
        assert batch == pytest.approx(one_by_one, abs=1e-5)
        assert alone is None or alone.random() == together.random()  # as much was drawn
    assert len(run.policy(observations[:0])) == 0
    assert len(np.unique(batch)) > 2


@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 1), (1, 2, 3), ()])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"shape \(3,\), or \(N, 3\) for a batch of them, got "):
        run_of(Discrete(2)).policy(np.zeros(shape))


class Bare(Task):
    """Pays what it is asked to do, and does not clip it."""

    name, observation_size, actions, max_steps = "Bare-v0", 1, Continuous((-0.5, 0.0), (0.25, 1.0)), 20

    def reset(self, key):
        return jnp.zeros(1)

    def step(self, state, action, key):
        return Step(state, action[0] + 10 * action[1], jnp.zeros(0), jnp.bool_(False))


class Overshooting(Bare):
    name, overshoot = "Overshooting-v0", True


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_task_in_jax_sees_actions_inside_its_box_unless_it_asks_for_all(wrapped):
    kept, seen = [], []
    for task in (Bare(), Overshooting()):
        policy = Policy(1, task.actions, ())
        x = jnp.array([0.0, 0.0, 5.0, -3.0, -5.0, -5.0])  # far above the box in one number, far below it in the other
        keys = jax.random.split(jax.random.key(0), 4)
        played = Endless(task) if wrapped else task
        outcome, trajectory = rollout(played, policy, x, identity(jnp.zeros(1)), keys, record=True)
        kept.append(np.asarray(outcome.returns))
        seen.append(np.asarray(trajectory.actions))
    steps = 21 if wrapped else 20
    assert kept[0] == pytest.approx(steps * (0.25 + 10 * 0.0))
    drawn = seen[1][:steps]
    assert kept[1] == pytest.approx((drawn[:, 0] + 10 * drawn[:, 1]).sum(0), rel=1e-4) and (kept[1] < -100).all()
    assert np.array_equal(*seen)  # what is learnt from is what was drawn


def test_a_task_as_a_gymnasium_environment_sees_actions_inside_its_box():
    gymnasium_adapter = pytest.importorskip("pcces.envs.gymnasium_adapter")
    assert gymnasium_adapter.TaskEnv(Bare())._action([7.0, -1.0]).tolist() == [0.25, 0.0]
    assert gymnasium_adapter.TaskEnv(Overshooting())._action([7.0, -1.0]).tolist() == [7.0, -1.0]


def test_episodes_of_the_policy_are_those_that_were_certified():
    run = train(simulator("Pendulum-v1", max_steps=50), **FEW | dict(workers=1, log_std=1.0))
    env, rng = gymnasium.make("Pendulum-v1", max_episode_steps=50), np.random.default_rng(0)
    returns, outside = [], 0
    for seed in range(40):
        observation, over, total = env.reset(seed=seed)[0], False, 0.0
        while not over:
            action = run.policy(observation, rng)
            outside += not env.action_space.contains(action)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + reward, terminated or truncated
        returns.append(total)
    error = np.hypot(np.std(returns) / np.sqrt(40), run.final["return_error"])
    assert outside == 0 and abs(np.mean(returns) - run.final["return"]) < 4 * error
