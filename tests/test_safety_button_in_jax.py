"""The Point's Button task in JAX beside the MuJoCo form: step by step, and over episodes.

Run as a script, it prints the tables of docs/results/navigation.md: `python tests/test_safety_button_in_jax.py`.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu import lowered
from scipy.stats import ks_2samp

pytest.importorskip("mujoco")

from pcces.engines.kernels.programs import in_one_kernel
from pcces.engines.keys import key
from pcces.envs.lookup import resolve
from pcces.envs.safety import Button, Buttons, Car, Point, SafetyBatch, Scene, Vases, scene
from pcces.envs.safety.drive import Driver
from pcces.envs.safety.in_jax import ButtonTask, button_task, safety_task
from pcces.envs.safety.in_jax.button import ButtonState

TASK = button_task("PointButton1")
COUNT = 64  # the same everywhere: each other number would be compiled anew
REACH = 0.1 + np.hypot(0.15, 0.05)  # between centres, where a corner of the nose meets the rim of a button
KEYS = jax.random.split(key(0), COUNT)
FIGURES = (
    "return", "buttons pressed", "cost", "cost_hazards", "cost_gremlins", "cost_buttons",
    "steps in touch with a button", "steps in touch with a gremlin", "mean distance to the goal button", "mean speed",
)  # fmt: skip


def one_step(state, action, key):
    """What a step gives, and the figures it adds to."""
    after, reward, cost, _ = TASK.step(state, action, key)
    now = TASK.parts(after)
    touch = TASK.touch(now)
    found, met = TASK.violations(now._replace(clock=TASK.parts(state).clock), touch)
    figures = [
        reward, met, cost[0], found["cost_hazards"], found["cost_gremlins"], found["cost_buttons"],
        (touch.depth[:4] > 0).any(), (touch.depth[4:] > 0).any(), TASK.distance(now), jnp.linalg.norm(now.velocity[:2]),
    ]  # fmt: skip
    return after, jnp.stack([jnp.float32(f) for f in figures]), TASK.observe(after)


stepped = jax.jit(jax.vmap(one_step))
observe = jax.jit(jax.vmap(TASK.observe))
reset = jax.jit(jax.vmap(TASK.reset))
by_name = jax.vmap(TASK.parts)


@pytest.mark.slow
def test_one_kernel_moves_the_point_as_many_do():
    now = by_name(reset(KEYS)[:12])
    # On its way against a button, against a gremlin, and past both.
    place = jnp.concatenate([now.buttons[:4, 0], now.gremlins[4:8, 0], now.pose[8:, :2] + 0.2])
    angle = jnp.linspace(0, 2 * math.pi, 12)
    ahead = jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1)
    now = now._replace(
        pose=jnp.concatenate([place - 0.24 * ahead, angle[:, None]], -1),
        velocity=jnp.concatenate([0.5 * ahead, jnp.zeros((12, 1))], -1),
    )
    states, control = (
        jnp.concatenate([part.reshape(12, -1) for part in now], -1),
        jnp.tile(jnp.array([1.0, 0.3]), (12, 1)),
    )
    expected = by_name(jax.jit(jax.vmap(TASK._moved))(states, control))
    got = by_name(jax.jit(jax.vmap(lambda s, c: in_one_kernel(TASK._moved, s, c, interpret=True)))(states, control))
    moved = np.linalg.norm(expected.velocity[:, :2] - now.velocity[:, :2], axis=-1)
    assert (moved[:8] > 0.05).sum() >= 6 > (moved[8:] > 0.05).sum()  # most bump into what they are held against
    for name in ButtonState._fields:
        tolerance = 1e-3 if name in ("acceleration", "jam") else 1e-4
        np.testing.assert_allclose(
            getattr(got, name), getattr(expected, name), rtol=tolerance, atol=tolerance, err_msg=name
        )


def test_a_gpu_takes_the_kernel(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    step = jax.vmap(TASK.step, (-1, -1, 0), -1)
    states, actions = jax.ShapeDtypeStruct((58, 40), jnp.float32), jax.ShapeDtypeStruct((2, 40), jnp.float32)
    text = lowered(step, states, actions, jax.eval_shape(lambda: jax.random.split(key(0), 40)))
    assert text.count("custom_call @__gpu$xla.gpu.triton") == 1


def state_of(batch, observation):
    """The states in JAX of a batch in MuJoCo."""
    qpos, qvel = (np.array([getattr(data, name) for data in batch.data]) for name in ("qpos", "qvel"))
    gremlins, drift = qpos[:, 3:].reshape(batch.count, -1, 7), qvel[:, 3:].reshape(batch.count, -1, 6)
    parts = ButtonState(
        qpos[:, :3],
        qvel[:, :3],
        observation[:, :2],
        batch.positions[:, batch.slices["buttons"]],
        batch.positions[:, batch.slices["hazards"]],
        gremlins[..., :2],
        drift[..., :2],
        batch._centres,
        2 * np.arctan2(gremlins[..., 6], gremlins[..., 3]),
        np.zeros((batch.count, 3)),
        np.stack([batch.target, batch.timer, batch.steps], axis=1),
    )
    return np.hstack([part.reshape(batch.count, -1) for part in parts]).astype(np.float32)


def figures_of(batch, observation, reward, cost, info):
    """Those of `one_step`, of a step in MuJoCo."""
    return np.array([
        reward, info["goal_met"], cost, info["cost_hazards"], info["cost_gremlins"], info["cost_buttons"],
        batch.touch["buttons"].any(1), batch.touch["gremlins"].any(1), batch.distance[:, batch.slices["goal"].start],
        np.linalg.norm(observation[:, 3:5], axis=1),
    ]).T  # fmt: skip


def driver(caution, noise, seed=0):
    """A scripted driver with shaky hands; `caution` None: hands only."""
    rng = np.random.default_rng(seed)
    if caution is None:
        return lambda observation: rng.uniform(-1, 1, (len(observation), 2))
    drive = Driver(TASK.scene, caution)
    return lambda observation: np.clip(drive(observation) + noise * rng.normal(size=(len(observation), 2)), -1, 1)


def beside(policy, count, steps, seed=0):
    """One step in JAX from each state that MuJoCo comes to: errors and figures, (steps, count) by name."""
    batch = SafetyBatch("PointButton1", count)
    observation, keys, rows = batch.reset(seed=seed), jax.random.split(key(0), count), []
    for _ in range(steps):
        touching = [batch.touch[kind].any(1) for kind in ("buttons", "gremlins")]
        action = policy(observation)
        after, ours, seen = stepped(state_of(batch, observation), action.astype(np.float32), keys)
        observation, *rest, info = batch.step(action)
        theirs = figures_of(batch, observation, *rest[:2], info)
        a, b = by_name(np.asarray(after)), by_name(state_of(batch, observation))
        kept = ~info["goal_met"]  # goals are drawn from other random numbers
        rows.append({
            "button": touching[0] | batch.touch["buttons"].any(1) | (ours[:, 6] > 0),
            "gremlin": touching[1] | batch.touch["gremlins"].any(1) | (ours[:, 7] > 0),
            "gap": batch.distance[:, batch.slices["buttons"]].min(1) - REACH,
            "place": np.linalg.norm(a.pose[:, :2] - b.pose[:, :2], axis=1),
            "gremlins": np.linalg.norm(a.gremlins - b.gremlins, axis=2).max(1),
            "reward": np.abs(ours[:, 0] - theirs[:, 0]),
            "costs": np.abs(ours[:, 2:6] - theirs[:, 2:6]).max(1),
            "pressed": np.abs(ours[:, 1] - theirs[:, 1]),
            "feel": np.where(kept, np.abs(seen - observation)[:, [0, 3, 4, 8]].max(1), 0),
            "sight": np.where(kept, np.abs(seen - observation)[:, 9:].max(1), 0),
            "presses": theirs[:, 1],
            "violations": theirs[:, 2],
        })  # fmt: skip
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.slow
def test_one_step_is_mujocos_from_the_same_state():
    batch = SafetyBatch("PointButton1", COUNT)
    np.testing.assert_allclose(observe(state_of(batch, start := batch.reset(seed=0))), start, atol=1e-5)
    found = beside(driver(0.0, 0.1), COUNT, 120)
    touched = found["button"] | found["gremlin"]
    # Where a corner just reaches a button, one of the two may graze it between the readings of a step.
    free = ~touched & (np.abs(found["gap"]) > 2e-3)
    free[0] = False  # gremlins start on the floor, which holds them back for a moment
    assert free.sum() > 6000 and found["violations"][free].sum() > 50
    assert found["reward"][free].max() < 1e-5 and found["costs"][free].mean() < 1e-3
    assert found["gremlins"][free].max() < 1e-5 and found["sight"][free].max() < 1e-3
    # The turning servo chatters at the scale of a physics step, which blows rounding errors up a little.
    assert np.quantile(found["feel"][free], 0.999) < 0.05
    button, gremlin = found["button"] & ~found["gremlin"], found["gremlin"]
    assert button.sum() > 100 and gremlin.sum() > 30 and found["presses"].sum() > 15
    assert np.median(found["place"][button]) < 1e-6 and found["place"][button].max() < 1e-3
    assert np.median(found["place"][gremlin]) < 1e-4 and np.median(found["gremlins"][gremlin]) < 2e-3
    assert found["pressed"].sum() <= 1 and found["costs"][touched].mean() < 0.03


def still(states, steps, action=(0.0, 0.0)):
    """Figures and states (n, ...) after steps of one action."""
    states, n = np.asarray(states, np.float32), len(states)
    states = np.concatenate([states, np.tile(states[:1], (COUNT - n, 1))])
    for _ in range(steps):
        states, figures, seen = stepped(states, np.tile(np.float32(action), (COUNT, 1)), KEYS)
    return states[:n], figures[:n], seen[:n]


def test_gremlins_circle_as_in_mujoco_for_a_whole_turn():
    batch = SafetyBatch("PointButton1", 2)
    observation = batch.reset(seed=4)
    for i in range(2):  # out of their way
        batch.data[i].qpos[:2] = 5.0
    state = state_of(batch, observation)
    for t in range(32):
        state = still(state, 10)[0]
        for _ in range(10):
            batch.step(np.zeros((2, 2)))
        gap = by_name(state).gremlins - batch.positions[:, batch.slices["gremlins"]]
        assert np.abs(gap).max() < (2e-3 if t < 3 else 2e-5)


def put(buttons=((1, 0), (1, 1), (-1, 1), (-1, -1)), gremlin=(3, 3), hazard=(3, -3), clock=(0, 0, 0), pose=(0, 0, 0)):
    far = np.array([(4, 4), (5, 5), (6, 6), (7, 7)], float)
    gremlins, hazards = far.copy(), far.copy()
    gremlins[0], hazards[0] = gremlin, hazard
    centres = gremlins - [0, 0.35]
    parts = [pose, np.zeros(5), buttons, hazards, gremlins, np.zeros(8), centres, np.zeros(4), np.zeros(3), clock]
    return np.concatenate([np.ravel(part) for part in parts]).astype(np.float32)


def test_presses_costs_and_the_delay():
    near, far = (0.19, 0.0), (1.0, 1.0)
    states = np.stack([
        put(buttons=[near, far, (-1, 1), (-1, -1)]),  # 0: the goal button is pressed
        put(buttons=[far, near, (-1, 1), (-1, -1)]),  # 1: a wrong one
        put(buttons=[far, near, (-1, 1), (-1, -1)], clock=(0, 3, 0)),  # 2: a wrong one that is dead
        put(gremlin=(-0.19, 0.0)),  # 3: a gremlin
        put(hazard=(0.0, 0.19)),  # 4: a hazard
        put(),  # 5: nothing
    ])  # fmt: skip
    after, figures, seen = still(states, 1)
    assert figures[:, 1].tolist() == [1, 0, 0, 0, 0, 0]
    assert figures[:, 2].tolist() == [0, 1, 0, 1, 1, 0]
    assert figures[:, 3].tolist() == [0, 0, 0, 0, 1, 0]
    assert figures[:, 4].tolist() == [0, 0, 0, 1, 0, 0]
    assert figures[:, 5].tolist() == [0, 1, 0, 0, 0, 0]
    assert figures[0, 0] > 0.9 and abs(figures[5, 0]) < 0.1
    assert by_name(after).clock[:, 1].tolist() == [10, 0, 2, 0, 0, 0]
    assert np.asarray(seen[:, 12:28].max(1) > 0).tolist() == [False, True, False, True, True, True]


def test_a_button_stops_the_point_and_a_gremlin_shoves_it():
    stopped = still([put(buttons=[(0.3, 0), (3, 3), (3, 4), (4, 3)])], 60, (1.0, 0.0))[0][0]
    assert 0.049 < stopped[0] < 0.055  # its nose is 0.15 ahead, the button's edge at 0.2
    shoved = still([put(gremlin=(-0.35, 0.35))], 320)[0][0]  # it comes round to where the point is
    np.testing.assert_allclose(shoved[:2], (-0.02, -0.58), atol=0.05)  # where MuJoCo leaves it


def test_a_point_jammed_between_two_buttons_stays_as_in_mujoco():
    batch, action = SafetyBatch("PointButton1", 1), (0.11, 0.43)
    batch.reset(seed=1224)
    qpos = batch.data[0].qpos.copy()
    qpos[:3] = -0.71406, 0.37226, 6.84706  # its sphere at one, its nose at the other
    batch.set_state(0, qpos, np.zeros_like(batch.data[0].qvel))
    state = state_of(batch, batch.observe())
    for _ in range(100):
        batch.step([action])
    after, figures, _ = still(state, 100, action)
    assert batch.touch["buttons"].sum() == 2 and figures[0, 6] == 1
    np.testing.assert_allclose(after[0, :3], batch.data[0].qpos[:3], atol=1e-3)


def test_the_next_goal_is_any_button():
    states = np.tile(put(buttons=[(0.19, 0), (1, 1), (-1, 1), (-1, -1)]), (COUNT, 1))
    drawn = np.zeros(4)
    for t in range(8):
        after = stepped(states, np.zeros((COUNT, 2), np.float32), jax.random.split(key(t), COUNT))[0]
        drawn += np.bincount(np.asarray(by_name(after).clock[:, 0], int), minlength=4)
    assert drawn.sum() == 512 and drawn.min() > 90


@pytest.mark.slow
def test_layouts_keep_clear_and_are_spread_as_in_mujoco():
    now = ButtonState(*map(np.asarray, by_name(reset(jax.random.split(key(1), 400)))))
    agent = now.pose[:, None, :2]
    away = {name: np.linalg.norm(getattr(now, name) - agent, axis=2) for name in ("buttons", "hazards", "gremlins")}
    assert away["buttons"].min() >= 0.6 and away["hazards"].min() >= 0.58 and away["gremlins"].min() >= 0.8
    among = np.linalg.norm(now.gremlins[:, :, None] - now.gremlins[:, None], axis=3) + 9 * np.eye(4)
    assert among.min() >= 0.8
    batch = SafetyBatch("PointButton1", 250)
    batch.reset(seed=5)
    theirs = {name: batch.distance[:, batch.slices[name]] for name in away}
    pairs = [(away[name].min(1), theirs[name].min(1)) for name in away]
    pairs += [(away[name].mean(1), theirs[name].mean(1)) for name in away]
    pairs += [(np.abs(agent[:, 0, 0]), np.abs(batch.agent[:, 0]))]
    for a, b in pairs:
        assert ks_2samp(a, b).pvalue > 1e-3
    keys = jax.random.split(key(1), 400)[::-1]  # whatever is drawn beside it, a key gives its layout
    np.testing.assert_array_equal(by_name(reset(keys)).gremlins[::-1], now.gremlins)


def episodes(policy, count, steps, start=None, seed=0):
    """Figures (count, ...) of episodes in JAX, from states or from fresh ones."""
    keys = jax.random.split(key(seed), count)
    state = reset(keys) if start is None else start
    observation, total = observe(state), 0.0
    for t in range(steps):
        action = policy(np.asarray(observation, float)).astype(np.float32)
        state, figures, observation = stepped(state, action, jax.vmap(jax.random.fold_in, (0, None))(keys, t))
        total = total + np.asarray(figures, float)
    return total / np.where(np.arange(len(FIGURES)) < 8, 1, steps)


def episodes_in_mujoco(policy, count, steps, seed=0):
    """The same in MuJoCo, and the states they started from."""
    batch = SafetyBatch("PointButton1", count)
    observation = batch.reset(seed=seed)
    start, total = state_of(batch, observation), 0.0
    for _ in range(steps):
        observation, reward, cost, _, _, info = batch.step(policy(observation))
        total = total + figures_of(batch, observation, reward, cost, info)
    return total / np.where(np.arange(len(FIGURES)) < 8, 1, steps), start


def test_a_driver_earns_and_costs_the_same_in_both():
    theirs, start = episodes_in_mujoco(driver(0.0, 0.05), COUNT, 200)
    ours = episodes(driver(0.0, 0.05), COUNT, 200, start)
    assert theirs[:, 1].mean() > 1 and theirs[:, 7].mean() > 3  # it presses buttons, and meets gremlins
    difference = ours - theirs  # from equal layouts
    error = difference.std(0, ddof=1) / math.sqrt(len(ours))
    assert (np.abs(difference.mean(0)) < 3.5 * error).all()


def test_equal_scenes_are_equal_tasks_and_others_are_refused():
    assert safety_task("PointButton1") == TASK and hash(button_task("PointButton1")) == hash(TASK)
    assert button_task("PointButton1", gremlins=2) != TASK and safety_task("PointGoal1") != TASK
    for wrong in (
        scene("CarButton1"),
        scene("PointGoal0"),
        Scene(Point(), Button(), (Vases(1),)),
        Scene(Car(), Button()),
    ):
        with pytest.raises(ValueError, match="engine='local'"):
            ButtonTask(wrong)
    with pytest.raises(ValueError, match="buttons of other sizes"):
        ButtonTask(Scene(Point(), Button(Buttons(4, size=0.2))))
    with pytest.raises(ValueError, match="no room"):
        button_task("PointButton1", gremlins=12, extent=1.0)


@pytest.mark.parametrize(("name", "changes"), [("PointButton0", {}), ("PointButton2", {"gremlins": 5, "buttons": 3})])
def test_other_levels_and_counts(name, changes):
    task, batch = button_task(name, **changes), SafetyBatch(scene(name, **changes), 1)
    assert task.observation_size == batch.reset(seed=0).shape[1]
    out = jax.eval_shape(lambda k: task.step(task.reset(k), jnp.zeros(2), k), key(0))
    assert out.state.shape == jax.eval_shape(task.reset, key(0)).shape and out.costs.shape == (1,)


def test_the_device_is_there_for_those_who_ask():
    assert resolve("PointButton1-v0")[1] == "local"
    assert resolve("SafetyPointButton1-v0", "device") == (TASK, "device")
    assert resolve("PointButton1-v0", "device")[0].name == resolve("PointButton1-v0", "local")[0].name
    assert resolve("PointButton1-v0", "local")[0].known().scene.extent == 1.5  # plays what was trained on the device
    with pytest.raises(ValueError, match="not a CarButton"):
        resolve("CarButton1-v0", "device")


def test_it_can_be_drawn():
    picture = TASK.draw(put())
    assert picture.shape == (400, 600, 3) and picture.std() > 5


def report():
    """Print the tables of docs/results/navigation.md; ten minutes on one core."""
    found = beside(driver(0.0, 0.1), 64, 300)
    button, gremlin = found["button"] & ~found["gremlin"], found["gremlin"]
    print("| one step | away from contacts | touching a button | touching a gremlin |\n| --- | --- | --- | --- |")
    groups = [~(button | gremlin), button, gremlin]
    print("| steps compared | " + " | ".join(str(int(g.sum())) for g in groups) + " |")
    for name, label in (("costs", "costs that differ"), ("pressed", "presses that differ")):
        print(f"| {label} | " + " | ".join(str(int(found[name][g].sum())) for g in groups) + " |")
    for name, label in (
        ("place", "place of the point"),
        ("gremlins", "of gremlins"),
        ("reward", "reward"),
        ("sight", "lidars"),
    ):
        cells = [f"{np.median(found[name][g]):.0e} / {np.quantile(found[name][g], 0.99):.0e}" for g in groups]
        print(f"| {label}, median / 99 % | " + " | ".join(cells) + " |")
    for name, caution in (("random", None), ("straight", 0.0), ("cautious", 2.0)):
        theirs, start = episodes_in_mujoco(driver(caution, 0.05, 1), 500, 1000)
        ours = episodes(driver(caution, 0.05, 2), 1500, 1000, seed=1)
        again = [episodes(driver(caution, 0.05, 1 + i), 500, 1000, start, seed=2 + i) for i in range(3)]
        paired = np.mean(again, axis=0) - theirs
        print(f"\n| {name} | MuJoCo | JAX | difference from equal starts |\n| --- | --- | --- | --- |")
        for i, figure in enumerate(FIGURES):
            cells = [
                f"{x.mean():.3g} ± {x.std(ddof=1) / math.sqrt(len(x)):.2g}"
                for x in (theirs[:, i], ours[:, i], paired[:, i])
            ]
            print(f"| {figure} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    report()
