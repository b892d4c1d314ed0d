"""The GPU kernel plays what the scan plays: run here by the interpreter, which needs no GPU."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu import lowered

from pcces.core import arrays
from pcces.engines.kernels.episodes import LARGEST_STATE, episode, play
from pcces.engines.kernels.numbers import UnsupportedError, as_numbers, numbers
from pcces.engines.kernels.programs import evaluate, in_one_kernel, trace
from pcces.engines.keys import Noise, key
from pcces.envs import make
from pcces.envs.task import Continuous, Discrete, Step, Task
from pcces.rl.normalizer import Normalizer, identity
from pcces.rl.policy import Policy
from pcces.rl.rollout import CHUNK, Acting, in_kernel, kernel_episode, rollout


def short(name, steps):
    """A task whose episodes are cut early, to keep the interpreter's time short."""
    task = make(name)
    task.max_steps = steps
    return task


def both(task, policy, x, normalizer, keys, discount=0.99, greedy=False):
    start = jax.vmap(task.reset, out_axes=-1)(jax.vmap(lambda k: jax.random.fold_in(k, 2**31 - 1))(keys))
    acting = Acting(task, policy, discount, greedy)

    @jax.jit
    def played(x, start):
        return in_kernel(acting, kernel_episode(acting), x, normalizer, keys, start, True, interpret=True)

    return played(x, start), rollout(task, policy, x, normalizer, keys, discount, record=True, greedy=greedy)


@pytest.mark.parametrize(
    ("name", "greedy"),
    [
        ("CartPole-v1", False), ("CartSafe-v0", False), ("CartSafeDelayed-v0", True), ("Acrobot-v1", False),
        ("Pendulum-v1", False), ("MountainCarContinuousSafe-v0", False),
    ],
)  # fmt: skip
def test_the_kernel_plays_what_the_scan_plays(name, greedy):
    task = short(name, 60)
    policy = Policy(task.observation_size, task.actions, (5, 3))
    batch, size = 35, task.observation_size  # one more program than full warps
    x = jax.vmap(policy.init, -1, -1)(jax.random.normal(key(0), (policy.size, batch)))
    mean, std = jnp.linspace(-0.1, 0.1, size), jnp.linspace(0.5, 1.5, size)
    normalizer = Normalizer(jnp.float32(1), mean, mean, mean, std)
    got, expected = both(task, policy, x, normalizer, jax.random.split(key(1), batch), greedy=greedy)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3), got, expected)
    assert np.all(got[0].length == expected[0].length)


def test_one_policy_for_all_and_seeds_side_by_side():
    task = short("CartPole-v0", 30)
    policy = Policy(4, task.actions, (3,))
    normalizer = identity(jnp.zeros(4))
    x = jax.random.normal(key(0), (2, policy.size))
    keys = jax.vmap(lambda k: jax.random.split(k, 5))(jax.random.split(key(1), 2))
    got, expected = jax.vmap(lambda x, k: both(task, policy, x, normalizer, k))(x, keys)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3), got, expected)


def test_the_kernel_compiles_for_a_gpu_as_far_as_that_can_be_told_without_one():
    task = make("CartSafe-v0")
    policy = Policy(4, task.actions)
    acting = Acting(task, policy, 0.99)
    keys, x = jax.random.split(key(0), 40), jnp.zeros((policy.size, 40))

    def played(x):
        start = jax.vmap(task.reset, out_axes=-1)(keys)
        return in_kernel(acting, kernel_episode(acting), x, identity(jnp.zeros(4)), keys, start, True)

    assert "triton" in lowered(played, x)


class Gusty(Task):
    """Draws random numbers in a step."""

    name, observation_size, actions, max_steps = "Gusty-v0", 1, Discrete(2), 5

    def reset(self, key):
        return jnp.zeros(1)

    def step(self, state, action, key):
        return Step(state + jax.random.normal(key, (1,)), jnp.float32(1), jnp.zeros(0), jnp.bool_(False))


class Plain(Task):
    """Says what it earns and that it goes on in Python's own numbers."""

    name, observation_size, actions, max_steps = "Plain-v0", 1, Continuous(-1.0, 1.0), 7

    def reset(self, key):
        return jax.random.uniform(key, (1,))

    def step(self, state, action, key):
        return Step(state + 0.1 * action, 1.5, jnp.zeros(0), False)


def test_a_task_may_answer_in_pythons_own_numbers():
    task, policy = Plain(), Policy(1, Plain.actions, (3,))
    keys, normalizer = jax.random.split(key(1), 4), identity(jnp.zeros(1))
    got, expected = both(task, policy, jnp.zeros((policy.size, 4)), normalizer, keys, discount=1.0)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), got, expected)
    assert got[0].returns.tolist() == [10.5] * 4 and got[0].length.tolist() == [7] * 4


def test_what_the_kernel_cannot_play_is_left_to_the_scan():
    cart = make("CartPole-v0")
    assert kernel_episode(Acting(Gusty(), Policy(1, Discrete(2)))) is None
    assert kernel_episode(Acting(cart, Policy(4, cart.actions, (64, 64)))) is None
    wide = jnp.zeros(LARGEST_STATE + 1)
    assert episode(countdown, 1, (1,), Noise(1, False, 4), wide, 5) is None
    assert episode(countdown, 1, (1,), Noise(1, False, 4), wide[1:], 5) is not None


def countdown(x, shared, noise, t, state):
    """Down by x a step, and by a little noise, until nothing is left; what is gained is the number of the step."""
    after = state - x[0] - shared[0] * noise[0]
    return after, jnp.stack([t.astype(jnp.float32), noise[0]]), jnp.stack([after[0], 1.0]), (after <= 0).all()


@pytest.mark.parametrize("normal", [False, True])
def test_the_kernel_knows_nothing_of_tasks_and_draws_what_jax_draws(normal):
    noise, keys = Noise(1, normal, 4), jax.random.split(key(3), 3)
    drawn = np.stack(
        [np.concatenate([noise.drawn(k, jnp.int32(i))[:, 0] for i in range(3)]) for k in keys]
    )  # (episode, step)
    made = episode(countdown, 1, (1,), noise, jnp.zeros(1), 10)
    words, start = jax.random.key_data(keys).T, jnp.array([[2.5, 100.0, 0.5]])
    totals, rows = play(made, jnp.ones(1), jnp.array([0.1]), words, start, record=True, interpret=True)
    assert rows.shape == (12, 2, 3)  # whole chunks
    for b in range(3):
        left = start[0, b] - np.cumsum(1 + 0.1 * drawn[b])
        steps = min(int(np.argmax(left <= 0)) + 1 if (left <= 0).any() else 10, 10)
        np.testing.assert_allclose(rows[:steps, 0, b], left[:steps], rtol=1e-5, atol=1e-5)
        assert rows[:steps, 1, b].all() and not rows[steps:, :, b].any()
        np.testing.assert_allclose(totals[:, b], [sum(range(steps)), drawn[b, :steps].sum()], rtol=1e-5, atol=1e-6)
    assert rows[:, 1].sum(0).tolist() in ([2, 10, 1], [3, 10, 1])


@pytest.mark.parametrize("normal", [False, True])
def test_the_noise_of_a_step_is_that_of_its_chunk(normal):
    noise, one_key = Noise(3, normal, 7), key(11)
    a, b = jax.random.key_data(one_key)
    for t in (0, 6, 7, 25):
        step = [float(v) for v in noise.of_step(a, b, jnp.int32(t))]
        expected = noise.drawn(one_key, jnp.int32(t // 7))[t % 7].tolist()
        assert step == (pytest.approx(expected, rel=1e-5) if normal else expected)
    assert Acting(make("Pendulum-v1"), Policy(3, make("Pendulum-v1").actions)).noise == Noise(1, True, CHUNK)


def one_of_each(a, b, i):
    top = jnp.argmax(a, axis=0)
    parts = jnp.concatenate([a, b[None]]).T[::-1], jnp.cumsum(b), jnp.where(b > 0, a, -b), jnp.clip(a, -0.5, 0.5)
    return top, *parts, jnp.round(3 * a), a @ b, jnp.einsum("ij,kj->ik", a, a), jnp.prod(b), a.max(1), i + jnp.arange(3)


def test_functions_evaluated_number_by_number_give_what_they_give():
    rng = np.random.default_rng(0)
    a, b, i = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=3).astype(np.float32), np.int32(4)
    program, _, used = trace(one_of_each, a, b, i)
    assert used == {0, 1, 2}
    outs = evaluate(program, as_numbers(a), as_numbers(b), as_numbers(np.asarray(i)))
    for got, expected in zip(outs, one_of_each(a, b, i), strict=True):
        np.testing.assert_allclose(np.asarray(got.tolist(), float), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(UnsupportedError, match="rows of an array"):
        trace(lambda x: jax.lax.scan(lambda c, row: (c + row, c), 0.0, x), jnp.ones(3))
    with pytest.raises(UnsupportedError, match="while"):
        trace(lambda x: jax.lax.while_loop(lambda v: v < 3, lambda v: v + 1, x), 0.0)


def test_what_is_known_beforehand_is_no_work_for_a_kernel():
    def sparse(x):
        matrix = jnp.eye(3) * x - jnp.array([[0.0, 1.0, 0.0]] * 3)
        return (matrix[0] + (-jnp.ones(3))) @ matrix * jnp.array([1.0, 0.0, 2.0]) + jnp.zeros(3)

    x = jnp.array([0.5, -3.0, 2.0])
    program, _, _ = trace(sparse, x)
    (got,) = evaluate(program, numbers((3,), list(x)))
    np.testing.assert_allclose([float(v) for v in got], sparse(x))
    assert isinstance(got[1], np.generic) and got[1] == 0

    def work(x):
        return list(evaluate(program, numbers((3,), list(x)))[0])

    assert len(jax.make_jaxpr(work)(x).eqns) < 30


def test_what_is_repeated_is_repeated_number_by_number():
    def repeated(x, gain):
        def once(i, carry):
            x, over = carry
            return gain * x + i, over | (x > 9)

        x, over = jax.lax.fori_loop(0, 5, once, (x, x > 9))
        return jnp.where(over, x, -x)

    x, gain = np.array([0.5, -3.0, 0.1], np.float32), np.float32(1.5)
    program, _, _ = trace(repeated, x, gain)
    (got,) = evaluate(program, as_numbers(x), as_numbers(np.asarray(gain)))
    assert got.tolist() == pytest.approx(repeated(x, gain).tolist())
    assert {float(v) > 0 for v in got.flat} == {True, False}
    kernel = jax.vmap(lambda x, gain: in_one_kernel(repeated, x, gain, interpret=True))
    many, gains = jnp.stack([x, 2 * x]), jnp.array([1.5, 0.5])
    np.testing.assert_allclose(kernel(many, gains), jax.vmap(repeated)(many, gains), rtol=1e-6)
    seeds = jax.vmap(kernel, (None, 0))(
        many, jnp.stack([gains, 2 * gains])
    )  # seeds side by side, episodes side by side
    np.testing.assert_allclose(seeds[1], jax.vmap(repeated)(many, 2 * gains), rtol=1e-6)


def test_without_a_way_to_write_kernels_there_are_none(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert arrays.gpu_kernels() and "triton" in lowered(lambda x: in_one_kernel(jnp.sin, x), jnp.ones(2))
    monkeypatch.setattr(arrays, "find_spec", lambda name: None)
    assert not arrays.gpu_kernels() and "triton" not in lowered(lambda x: in_one_kernel(jnp.sin, x), jnp.ones(2))
