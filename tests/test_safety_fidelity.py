"""Our safety tasks against recordings of the original, step by step. data/safety/README.md says what they hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("mujoco")

from scipy.stats import ks_2samp

from pcces.envs.safety import SafetyBatch, scene
from pcces.envs.safety.layout import LegacyStream, sample_layout

DATA = Path(__file__).parent / "data" / "safety"
FILES = sorted(path.stem for path in DATA.glob("*.npz"))
POINTS = [name for name in FILES if name.startswith("Point")]
CARS = [name for name in FILES if name.startswith("Car")]

# From one centre to the other, beyond which an agent cannot be in contact: its own reach and the object's.
REACH = {"vases": 0.35, "gremlins": 0.35, "buttons": 0.3}


class Recording(NamedTuple):
    task: str
    seed: int
    action: NDArray[np.float64]
    observation: NDArray[np.float64]  # one more than actions
    reward: NDArray[np.float64]
    cost: NDArray[np.float64]
    costs: dict[str, NDArray[np.float64]]
    goal: NDArray[np.float64]
    qpos: NDArray[np.float64]  # one more than actions, in our joints
    qvel: NDArray[np.float64]
    position: dict[str, NDArray[np.float64]]  # at the start


def recording(name: str) -> Recording:
    task, seed = name.split("-seed")
    with np.load(DATA / f"{name}.npz") as file:
        data = {key: file[key] for key in file.files}
    qpos = np.vstack([data["init_qpos"], data["qpos"]]).astype(float)
    qvel = np.vstack([data["init_qvel"], data["qvel"]]).astype(float)
    bodies = data["bodies"].tolist()
    agent = bodies.index("agent")
    if task.startswith("Point"):
        angle = data["init_angle"][agent]
        turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        qpos[:, :2] = qpos[:, :2] @ turn + data["init_position"][agent, :2]
        qpos[:, 2] += angle
        qvel[:, :2] = qvel[:, :2] @ turn
    return Recording(
        task,
        int(seed),
        data["action"].astype(float),
        np.hstack([data["feel"], data["lidar"] / 65535]),
        data["reward"].astype(float),
        data["cost"].astype(float),
        dict(zip(data["cost_names"].tolist(), data["costs"].T.astype(float))),
        data["goal"].astype(float),
        qpos,
        qvel,
        dict(zip(bodies, data["init_position"])),
    )


class Replay(NamedTuple):
    """What came of one step from each recorded state."""

    observation: NDArray[np.float64]
    reward: NDArray[np.float64]
    cost: NDArray[np.float64]
    costs: dict[str, NDArray[np.float64]]
    met: NDArray[np.bool_]
    goal: NDArray[np.float64]
    qpos: NDArray[np.float64]
    qvel: NDArray[np.float64]
    near: NDArray[np.bool_]  # the agent may be in contact with something


_replays: dict[str, Replay] = {}


def replay(name: str) -> Replay:
    if name not in _replays:
        rec = recording(name)
        batch = SafetyBatch(rec.task, 1)
        batch.reset(seed=rec.seed)
        rows = []
        for t, action in enumerate(rec.action):
            batch.set_state(0, rec.qpos[t], rec.qvel[t], steps=t)
            near = touching(batch)
            observation, reward, cost, _, _, info = batch.step(action[None])
            near |= touching(batch)
            data = batch.data[0]
            met, goal = info.pop("goal_met")[0], batch.positions[0, batch.slices["goal"].start].copy()
            costs = {key: value[0] for key, value in info.items()}
            rows.append(
                (observation[0], reward[0], cost[0], costs, met, goal, data.qpos.copy(), data.qvel.copy(), near)
            )
        columns = list(zip(*rows))
        costs = {key: np.array([row[key] for row in columns[3]]) for key in columns[3][0]}
        _replays[name] = Replay(*map(np.array, columns[:3]), costs, *map(np.array, columns[4:]))
    return _replays[name]


def touching(batch: SafetyBatch) -> bool:
    return any((batch.distance[0, at] < REACH[kind]).any() for kind, at in batch.slices.items() if kind in REACH)


@pytest.mark.parametrize("name", FILES)
def test_a_seed_gives_the_layout_of_the_original(name: str) -> None:
    rec = recording(name)
    batch = SafetyBatch(rec.task, 1)
    observation = batch.reset(seed=rec.seed)[0]
    for kind in batch.scene.kinds:
        names = ["goal"] if kind.name == "goal" else kind.names
        expected = [rec.position[n + ("obj" if kind.name == "gremlins" else "")][:2] for n in names]
        np.testing.assert_array_equal(batch.positions[0, batch.slices[kind.name]], expected)
    np.testing.assert_allclose(batch.data[0].qpos, rec.qpos[0], rtol=0, atol=5e-16)
    # A car starts with its wheels exactly on the floor: the last bit decides whether they are in contact at once.
    skip = 3 if rec.task.startswith("Car") else 0
    np.testing.assert_allclose(observation[skip:], rec.observation[0][skip:], atol=1e-5)


@pytest.mark.parametrize("name", FILES)
def test_one_step_gives_the_rewards_costs_and_goals_of_the_original(name: str) -> None:
    rec, ours = recording(name), replay(name)
    np.testing.assert_allclose(ours.reward, rec.reward, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(ours.cost, rec.cost)
    for key, costs in rec.costs.items():
        np.testing.assert_array_equal(ours.costs[key], costs)
    np.testing.assert_array_equal(ours.met, rec.reward > 0.5)
    np.testing.assert_allclose(ours.goal, rec.goal, atol=1e-6)  # also the ones drawn during the episode


def test_the_recordings_hold_what_the_tests_are_about() -> None:
    goals = {name: int(replay(name).met.sum()) for name in FILES}
    assert goals["PointGoal1-seed3"] == 9
    assert goals["PointButton1-seed0"] + goals["PointButton1-seed3"] == 5
    costs: dict[str, float] = {}
    for name in FILES:
        for key, values in recording(name).costs.items():
            costs[key] = costs.get(key, 0) + values.sum()
    assert costs == {"cost_hazards": 134, "cost_buttons": 69, "cost_gremlins": 46}


@pytest.mark.parametrize("name", CARS)
def test_one_step_of_the_car_gives_the_state_and_observation_of_the_original(name: str) -> None:
    rec, ours = recording(name), replay(name)
    assert relative_error(ours.observation, rec.observation[1:]).max() < 3e-4
    np.testing.assert_allclose(ours.qpos, rec.qpos[1:], atol=3e-5)
    np.testing.assert_allclose(ours.qvel, rec.qvel[1:], atol=3e-4)


@pytest.mark.parametrize("name", POINTS)
def test_one_step_of_the_point_gives_the_state_and_observation_of_the_original(name: str) -> None:
    """Away from contacts to 1e-3, save where the recording's last bit is amplified beyond that.

    The Point's turning servo is so stiff for its time step that an error in the turning speed grows about fivefold in
    each of the ten physics steps that does not saturate it. The state is recorded as float32. Those steps are told by
    running them again with that last bit changed.
    """
    rec, ours = recording(name), replay(name)
    error = relative_error(ours.observation, rec.observation[1:]).max(axis=1)
    free = ~ours.near
    sensitive = np.flatnonzero(free & (error > 1e-3))
    assert len(sensitive) <= 0.03 * free.sum()
    for t in sensitive:
        assert error[t] < 4 * last_bit(rec, t), f"step {t}"
    calm = free.copy()
    calm[sensitive] = False
    np.testing.assert_allclose(ours.qpos[calm], rec.qpos[1:][calm], atol=1e-5)
    np.testing.assert_allclose(ours.qvel[calm], rec.qvel[1:][calm], atol=3e-4)
    # Newer MuJoCo finds other contact points between boxes; while they touch, the agent still goes the same way.
    np.testing.assert_allclose(ours.qpos[:, :2], rec.qpos[1:, :2], atol=5e-4)


def relative_error(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.abs(ours - theirs) / np.maximum(1.0, np.abs(theirs))


def last_bit(rec: Recording, t: int) -> float:
    """How far observations go apart when the recorded angle or a velocity changes by one float32 unit."""
    batch = SafetyBatch(rec.task, 9)
    batch.reset(seed=[rec.seed] * 9)
    for i in range(9):
        qpos, qvel = rec.qpos[t].copy(), rec.qvel[t].copy()
        if i:
            which, up = divmod(i - 1, 2)
            values, joint = (qpos, 2) if which == 3 else (qvel, which)
            values[joint] = np.nextafter(np.float32(values[joint]), np.float32(np.inf if up else -np.inf))
        batch.set_state(i, qpos, qvel, steps=t)
    seen = batch.step(rec.action[[t] * 9])[0]
    return float(relative_error(seen[1:], seen[:1]).max())


@pytest.mark.parametrize("name", CARS)
def test_a_car_episode_stays_with_the_original(name: str) -> None:
    rec = recording(name)
    batch = SafetyBatch(rec.task, 1)
    batch.reset(seed=rec.seed)
    batch.set_state(0, rec.qpos[0], rec.qvel[0])
    for t, action in enumerate(rec.action):
        observation = batch.step(action[None])[0][0]
        np.testing.assert_allclose(observation, rec.observation[t + 1], rtol=1e-3, atol=1e-3, err_msg=f"step {t}")


@pytest.mark.parametrize("name", [name for name in FILES if "Button" in name])
def test_gremlins_go_the_way_of_the_original(name: str) -> None:
    """From the start on, until something gets in a gremlin's way; two seconds at least."""
    rec = recording(name)
    batch = SafetyBatch(rec.task, 1)
    batch.reset(seed=rec.seed)
    # They too start exactly on the floor, so the first step needs the recorded start to the last bit.
    batch.set_state(0, rec.qpos[0], rec.qvel[0])
    free = np.ones(4, dtype=bool)
    followed = np.zeros(4, dtype=int)
    buttons = batch.positions[0, batch.slices["buttons"]]
    for t, action in enumerate(rec.action):
        batch.step(action[None])
        theirs, ours = rec.qpos[t + 1, 3:].reshape(4, 7), batch.data[0].qpos[3:].reshape(4, 7)
        for agent in (rec.qpos[t + 1, :2], batch.agent[0]):  # ours drifts away from theirs, if not far
            free &= np.linalg.norm(theirs[:, :2] - agent, axis=-1) > REACH["gremlins"]
        free &= np.linalg.norm(theirs[:, None, :2] - buttons, axis=-1).min(axis=1) > 0.26
        np.testing.assert_allclose(ours[free], theirs[free], atol=1e-5)
        followed += free
    assert (followed >= 100).sum() >= 3


# --- layouts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [("PointGoal1", 400), ("PointButton1", 150)])
def test_distances_are_distributed_as_plain_rejection_sampling_makes_them(name: str, count: int) -> None:
    """The sampler tests windows of candidates at once; a loop that takes them one by one must not differ from it."""
    groups, extent = scene(name).groups, 1.5
    rng = np.random.default_rng(1)
    stream = LegacyStream(2)
    ours = [sample_layout(groups, extent, stream) for _ in range(count)]
    keepouts = [group.keepout for group in groups for _ in range(group.count)]
    plain = [plain_layout(keepouts, extent, rng) for _ in range(count)]
    for other in range(1, len(keepouts)):
        distances = [[math.dist(layout[0], layout[other]) for layout in layouts] for layouts in (ours, plain)]
        assert ks_2samp(*distances).pvalue > 1e-3, groups


def plain_layout(keepouts: list[float], extent: float, rng: np.random.Generator) -> list[tuple[float, float]]:
    while True:
        placed: list[tuple[float, float]] = []
        for keepout in keepouts:
            for u, v in rng.uniform(keepout - extent, extent - keepout, (100, 2)).tolist():
                if all((u - x) ** 2 + (v - y) ** 2 >= (keepout + k) ** 2 for (x, y), k in zip(placed, keepouts)):
                    placed.append((u, v))
                    break
            else:
                break
        else:
            return placed


def report() -> None:
    """Print the table of docs/results/navigation.md: `python tests/test_safety_fidelity.py`."""
    tasks = list(dict.fromkeys(recording(name).task for name in FILES))
    rows: dict[str, list[str]] = {}
    for task in tasks:
        pairs = [(recording(name), replay(name)) for name in FILES if name.startswith(task)]
        near = np.concatenate([ours.near for _, ours in pairs])
        error = np.concatenate([relative_error(o.observation, r.observation[1:]).max(axis=1) for r, o in pairs])[~near]
        differ = sum(int((ours.cost != rec.cost).sum()) for rec, ours in pairs)
        moved = sum(int((ours.met != (rec.reward > 0.5)).sum()) for rec, ours in pairs)
        goals = sum(int((rec.reward > 0.5).sum()) for rec, _ in pairs)
        reward = max(float(np.abs(ours.reward - rec.reward).max()) for rec, ours in pairs)
        figures = {
            "steps compared": f"{len(near)}",
            "of these near something to bump into": f"{near.sum()}",
            "costs that differ": f"{differ}",
            "goals reached at another step": f"{moved} of {goals}",
            "reward, largest error": f"{reward:.0e}",
            "observation away from contacts, median error": f"{np.median(error):.0e}",
            "observation away from contacts, largest error": f"{error.max():.0e}",
            "observation away from contacts, steps above 1e-3": f"{(error > 1e-3).sum()}",
        }
        for label, figure in figures.items():
            rows.setdefault(label, []).append(figure)
    print("\n".join(["| | " + " | ".join(tasks) + " |", "| --- " * (len(tasks) + 1) + "|"]))
    for label, cells in rows.items():
        print(f"| {label} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    report()
