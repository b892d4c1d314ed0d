"""Spaces of any kind: what policies see of them, what their actions become, and what is refused."""

import logging

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
import simulators
from gymnasium import spaces
from small import FEW
from test_simulators import play

import pcces
from pcces.envs.check import check
from pcces.envs.registry import make
from pcces.envs.simulator import simulator
from pcces.envs.spaces import Flattened, flattened
from pcces.envs.task import Continuous, Discrete
from pcces.rl.policy import Policy

INF = np.inf


class Given(gymnasium.Env):
    """An environment of these spaces, which keeps the actions it was given."""

    def __init__(self, actions=None, observations=None):
        self.observation_space = spaces.Box(-1, 1, (2,)) if observations is None else observations
        self.action_space = spaces.Box(-1, 1, (1,)) if actions is None else actions
        self.observation_space.seed(0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        self.taken = action
        return self.observation_space.sample(), 0.0, False, False, {}


def box(low, high, dtype=np.float32):
    return spaces.Box(np.array(low, dtype), np.array(high, dtype), dtype=dtype)


ACTIONS = {
    "multi-discrete": (spaces.MultiDiscrete([3, 4]), Discrete(12)),
    "from elsewhere on": (spaces.MultiDiscrete([[2, 3]], start=[[5, -1]]), Discrete(6)),
    "multi-binary": (spaces.MultiBinary(3), Discrete(8)),
    "grid of switches": (spaces.MultiBinary([2, 2]), Discrete(16)),
    "tuple": (spaces.Tuple((spaces.Discrete(2, start=1), spaces.Discrete(3))), Discrete(6)),
    "many choices": (spaces.MultiDiscrete([11, 2, 5]), Continuous((-1.0,) * 17, (1.0,) * 17)),
    "many switches": (spaces.MultiBinary(8), Continuous((-1.0,) * 8, (1.0,) * 8)),
    "mixed": (
        spaces.Dict({"a": box([-2, 0], [2, 5]), "b": spaces.Discrete(3), "c": spaces.Discrete(1)}),
        Continuous((-2.0, 0.0, -1.0, -1.0, -1.0), (2.0, 5.0, 1.0, 1.0, 1.0)),
    ),
    "whole numbers": (box([0, -3], [10, 3], np.int64), Continuous((0.0, -3.0), (10.0, 3.0))),
    "bytes": (spaces.Box(0, 255, (2, 2), np.uint8), Continuous((0.0,) * 4, (255.0,) * 4)),
    "a number that is fixed": (box([-1, 2, 0], [1, 2, 4]), Continuous((-1.0, 0.0), (1.0, 4.0))),
    "without limits": (spaces.Box(-INF, INF, (2, 1)), Continuous((-INF,) * 2, (INF,) * 2)),
}


@pytest.mark.parametrize("kind", ACTIONS)
def test_what_a_policy_gives_becomes_an_action_of_the_environment(kind):
    space, head = ACTIONS[kind]
    env = flattened(Given(space))
    inner = env.action_space
    if isinstance(head, Discrete):
        assert inner == spaces.Discrete(head.n)
        given = range(head.n)
    else:
        assert Continuous(tuple(inner.low.tolist()), tuple(inner.high.tolist())) == head and len(inner.shape) == 1
        given = 3 * np.random.default_rng(0).standard_normal((50, head.size)).astype(np.float32)
    taken = []
    for action in given:
        env.step(action)
        assert space.contains(env.unwrapped.taken), env.unwrapped.taken
        taken.append(str(env.unwrapped.taken))
    if isinstance(head, Discrete):
        assert len(set(taken)) == head.n  # every combination is one choice


def test_numbers_choose_the_largest_and_switch_by_their_sign_and_are_rounded():
    mixed = flattened(Given(ACTIONS["mixed"][0]))
    assert mixed.action(np.float32([1.5, 9.0, 0.1, 0.3, -0.2])) == {"a": pytest.approx([1.5, 5.0]), "b": 1, "c": 0}
    switches = flattened(Given(spaces.MultiBinary(8)))
    assert switches.action(np.float32([1, -1, 0.1, -0.1, 3, -3, 0.5, 0])).tolist() == [1, 0, 1, 0, 1, 0, 1, 0]
    whole = flattened(Given(ACTIONS["whole numbers"][0])).action(np.float32([3.6, -7.0]))
    assert whole.tolist() == [4, -3] and whole.dtype == np.int64
    assert flattened(Given(ACTIONS["a number that is fixed"][0])).action(np.float32([0.5, 3])).tolist() == [
        0.5,
        2.0,
        3.0,
    ]
    assert flattened(Given(spaces.MultiDiscrete([3, 4]))).action(7).tolist() == [1, 3]


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"a": spaces.Box(-1, 1, (2, 2)), "b": spaces.Discrete(3), "c": spaces.Dict({"d": spaces.MultiBinary(2)})}),
        spaces.Tuple((spaces.MultiDiscrete([2, 3]), spaces.Box(0, 255, (3,), np.uint8))), spaces.Discrete(4, start=2),
        spaces.Box(0, 1, (3, 3)),
    ],
)  # fmt: skip
def test_observations_are_laid_flat_as_gymnasium_does(space):
    env = flattened(Given(observations=space))
    observation, _ = env.reset(seed=0)
    space.seed(0)
    assert np.array_equal(observation, spaces.flatten(space, space.sample()))
    after = env.step(np.zeros(1, np.float32))[0]
    assert np.array_equal(after, spaces.flatten(space, env.own_step[0])) and after.shape == env.observation_space.shape


def test_what_is_flat_already_is_left_alone():
    for env in (Given(), Given(spaces.Discrete(3)), Given(spaces.Box(-INF, INF, (2,)))):
        assert flattened(env) is env


def test_what_cannot_be_an_action_is_refused():
    with pytest.raises(
        ValueError, match=r"Given has the actions .*Text.* is no Discrete, MultiDiscrete, MultiBinary, Box"
    ):
        flattened(Given(spaces.Tuple((spaces.Discrete(2), spaces.Text(3)))))


def test_how_spaces_are_learnt_is_said_once_a_training(caplog):
    with caplog.at_level(logging.WARNING, "pcces"):
        run = pcces.train("tests/Mixed-v0", **FEW | dict(workers=1, iterations=1, epoch_steps=40))
    said = [record.message for record in caplog.records]
    assert len(said) == 2 and said[0].endswith("of tests/Mixed-v0 are flattened to 5 numbers")
    assert said[1].startswith("the actions Dict(") and said[1].endswith("are learnt as 6 numbers")
    assert run.final["length"] == 20 and "failed_episodes" not in run.final
    caplog.clear()
    run.evaluate(2)
    simulator("CartPole-v1")
    assert not caplog.records
    simulator("tests/Boundless-v0")
    (record,) = caplog.records
    assert record.message.startswith(
        "actions of tests/Boundless-v0 without limits (0, 2) begin with a deviation of 1 about 0"
    )


def test_a_cost_function_gets_what_the_environment_has():
    sim = simulator("tests/Mixed-v0", cost=simulators.lamps_and_place)
    assert sim.cost_names == ("cost0", "cost1") and sim.observation_size == 5
    outcome, steps = play(sim)
    assert outcome.costs[1, 0] == sum(range(1, 21))  # the time, which the observation shows
    assert outcome.costs[0, 0] == np.sum(steps.actions[:2] > 0)  # Gymnasium has the parts by their names' order


def test_an_episode_of_a_flattened_environment_is_that_of_its_own():
    sim = simulator("tests/Mixed-v0")
    _, steps = play(sim, seed=4)
    own = simulators.Mixed()
    seen = [own.reset(seed=4)[0]]
    wrapper = Flattened(simulators.Mixed())
    for t in range(20):
        observation, reward, *_ = own.step(wrapper.action(np.clip(steps.actions[:, t], -1, 1)))
        seen.append(observation)
        assert reward == pytest.approx(steps.rewards[t], abs=1e-5)
    assert steps.observations[3] == pytest.approx([o["place"][0, 0] for o in seen[:20]], abs=1e-6)
    assert steps.observations[:3].argmax(0).tolist() == [o["mode"] for o in seen[:20]]


# -- ranges of actions -----------------------------------------------------------------------------------------------------


def test_every_range_of_actions_has_a_middle_and_a_scale():
    policy = Policy(
        1, Continuous((-3.0, 0.0, -INF, -INF, -3e38, 0.0, -1e300), (1.0, INF, 5.0, INF, 3e38, 100.0, 1e300))
    )
    assert policy.scale() == ([-1.0, 1.0, 4.0, 0.0, 0.0, 50.0, 0.0], [2.0, 1.0, 1.0, 1.0, 1.0, 50.0, 1.0])
    zero = np.zeros(7, np.float32)
    assert np.isfinite(policy.entropy(zero, zero)) and np.isfinite(policy.act(zero, zero, zero + 3)).all()
    assert policy.inside(zero - 1000).tolist() == pytest.approx([-3, 0, -1000, -1000, -1000, 0, -1000])


@pytest.mark.parametrize(
    "low_high", [(-INF, INF), (0.0, INF), (-INF, 3.0), (-3e38, 3e38), (-1e300, 1e300), (2.0, 500.0)]
)
def test_a_policy_acts_in_any_range_and_learns(low_high):
    sim = simulator("tests/Ranged-v0", low=low_high[0], high=low_high[1])
    outcome, steps = play(sim, np.zeros(Policy(1, sim.actions, (6, 5)).size, np.float32))
    assert outcome.length == 20 and np.isfinite(steps.actions).all() and np.isfinite(outcome.entropy).all()
    low, high = np.float64(low_high)
    assert np.mean((steps.actions >= low) & (steps.actions <= high)) > 0.4  # the rest is clipped
    assert len(np.unique(steps.actions)) > 15


# -- pictures --------------------------------------------------------------------------------------------------------------


def test_a_task_in_jax_that_shows_pictures_is_refused_too():
    task = make("Pendulum-v1")
    task.observation_size, task.observe = 27648, lambda state: jnp.zeros(27648)
    with pytest.raises(ValueError, match=r"Pendulum-v1 has observations of 27648 numbers, as pictures have"):
        check(task)
