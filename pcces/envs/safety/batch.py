"""Many environments of one scene, stepped together: the physics in a loop, all else as array operations."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .layout import LegacyStream, sample_layout
from .lidar import BINS, lidar
from .model import compile_model, mujoco
from .objects import Gremlins, Objects, Reading
from .tasks import Scene
from .tasks import scene as named_scene

SUBSTEPS = 10
REWARD_LIMIT = 10.0

Step = tuple[
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.bool_],
    NDArray[np.bool_],
    dict[str, NDArray[np.bool_]],
]


class SafetyBatch:
    """``count`` environments of one scene, each with its own stream of random numbers.

    Environments do not reset by themselves: after a row of ``truncated`` (or, rarely, ``terminated``) is true, call
    ``reset`` with that row's index. Stepping on is allowed.

    >>> batch = SafetyBatch("PointGoal1", 3)
    >>> observation = batch.reset(seed=0)
    >>> observation.shape
    (3, 60)
    >>> observation, reward, cost, terminated, truncated, info = batch.step([[1.0, 0.0]] * 3)
    >>> cost.tolist(), info["cost_hazards"].tolist()
    ([0.0, 0.0, 0.0], [False, False, False])
    """

    def __init__(self, scene: Scene | str, count: int, *, horizon: int = 1000, **changes: Any) -> None:
        if isinstance(scene, str):
            scene = named_scene(scene, **changes)
        elif changes:
            raise ValueError(f"{', '.join(changes)}: counts change a scene given by name, not one already built")
        if count < 1 or horizon < 1:
            raise ValueError(f"count and horizon must be at least 1, not {count} and {horizon}")
        self.scene = scene
        self.count = count
        self.horizon = horizon
        self.model = compile_model(scene)
        self.data = [mujoco.MjData(self.model) for _ in range(count)]
        # Only the last forward pass of a step is read; the ten before it run on a copy of the model without sensors.
        self._blind = copy.copy(self.model)
        self._blind.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_SENSOR
        self._controls = [data.ctrl for data in self.data]
        self._sensordata = [data.sensordata for data in self.data]
        self._sensors = np.zeros((count, self.model.nsensordata))

        self._kinds = scene.kinds
        self.slices: dict[str, slice] = {}
        total = 0
        for kind in self._kinds:
            self.slices[kind.name] = slice(total, total + kind.count)
            total += kind.count
        self._starts = np.array([at.start for at in self.slices.values()])
        self._goal = self.slices["goal"].start
        self._seen = _Readings(self.model, scene, self._sensors)
        self._gremlins = next((kind for kind in self._kinds if isinstance(kind, Gremlins)), None)
        self._leads = []
        if self._gremlins is not None:
            ids = [self._mocap_id(f"{name}_lead") for name in self._gremlins.names]
            self._leads = [data.mocap_pos[ids[0] : ids[-1] + 1, :2] for data in self.data]
            self._centres = np.zeros((count, self._gremlins.count, 2))

        self.streams = [LegacyStream() for _ in range(count)]
        self._started = False
        self._ticks = 0  # steps of the batch, over all episodes,
        self._settled = [0] * count  # and up to which of them the streams have been wound on
        self.steps = np.zeros(count, dtype=np.intp)
        self._points = np.zeros((count, total, 3))  # objects are seen where they stand on the floor
        self.positions = self._points[..., :2]
        self.touch: dict[str, NDArray[np.bool_]] = {}
        self.target = np.zeros(count, dtype=np.intp)
        self.timer = np.zeros(count, dtype=np.intp)
        self.agent = self._seen.agent[:, 0, :2]
        self.distance = np.zeros((count, total))
        self._offsets = np.zeros((count, total, 2))
        self.cost = np.zeros(count)  # of the last step
        self._last = np.zeros(count)
        self.size = sum(scene.observation.values())

    # --- starting -----------------------------------------------------------------------------------------------------

    def reset(self, seed: int | Sequence[int] | None = None, envs: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Start new episodes in all environments, or in ``envs``, and return all observations (k, o).

        ``seed`` is one per environment to be reset, or a number from which they count up, or none to go on drawing. The
        same seed gives the same layout in any batch, and the layout that Safety-Gymnasium 1.0 gives.
        """
        rows = range(self.count) if envs is None else list(envs)
        if seed is not None:
            seeds = [seed + i for i in range(len(rows))] if isinstance(seed, int | np.integer) else list(seed)
            if len(seeds) != len(rows):
                raise ValueError(f"{len(rows)} environments need as many seeds, not {len(seeds)}")
            for i, number in zip(rows, seeds):
                self.streams[i] = LegacyStream(int(number))
                self._settled[i] = self._ticks
        for i in rows:
            self._settle(i)
            xy = sample_layout(self.scene.groups, self.scene.extent, self.streams[i])
            angles = 2 * math.pi * self.streams[i].take(len(xy))
            self._put(i, xy, angles)
        self._look()
        for i in rows:
            self.scene.task.renew(self, i)
        self._look()
        self._begin(rows)
        return self.observe()

    def put(self, i: int, layout: dict[str, ArrayLike], angles: dict[str, ArrayLike] | None = None) -> None:
        """Start environment ``i`` from given positions, by kind and with "agent" and "goal", instead of drawn ones.

        >>> batch = SafetyBatch("PointGoal1", 1, hazards=1, vases=0)
        >>> batch.put(0, {"agent": [0, 0], "goal": [1, 0], "hazards": [[0.5, 0.5]]})
        >>> batch.distance.round(2).tolist()
        [[1.0, 0.71]]
        """
        names = ["agent", *(kind.name for kind in self._kinds)]
        if set(layout) != set(names):
            raise ValueError(f"the layout must place {', '.join(names)}; got {', '.join(layout)}")
        counts = [1, *(kind.count for kind in self._kinds)]
        angles = angles or {}
        turned = [np.broadcast_to(np.asarray(angles.get(n, 0.0), float), (c,)) for n, c in zip(names, counts)]
        placed = [np.asarray(layout[n], float).reshape(-1, 2) for n in names]
        for name, points, c in zip(names, placed, counts):
            if len(points) != c:
                raise ValueError(f"{name}: {c} to place, but {len(points)} positions")
        self._put(i, np.concatenate(placed), np.concatenate(turned))
        if "buttons" in self.slices:
            to_buttons = self.positions[i, self.slices["buttons"]] - self.positions[i, self.slices["goal"]]
            self.target[i] = np.hypot(*to_buttons.T).argmin()
        self._look()
        self._begin([i])

    def set_state(self, i: int, qpos: ArrayLike, qvel: ArrayLike, steps: int = 0) -> None:
        """Move environment ``i`` to a physical state after ``steps`` steps, in the layout it has."""
        data = self.data[i]
        leads = data.mocap_pos.copy(), data.mocap_quat.copy()
        mujoco.mj_resetData(self.model, data)
        data.mocap_pos[:], data.mocap_quat[:] = leads
        data.qpos[:], data.qvel[:] = qpos, qvel
        data.time = steps * SUBSTEPS * self.model.opt.timestep
        mujoco.mj_forward(self.model, data)
        self.steps[i] = steps
        self._look()
        self._last = self._last.copy()
        self._last[i] = self.distance[i, self._goal]

    def _put(self, i: int, xy: NDArray[np.float64], angles: NDArray[np.float64]) -> None:
        data = self.data[i]
        mujoco.mj_resetData(self.model, data)
        pose = self.scene.agent.pose(float(xy[0, 0]), float(xy[0, 1]), float(angles[0]))
        data.qpos[: len(pose)] = pose
        self.positions[i] = xy[1:]
        for kind in self._kinds:
            at = self.slices[kind.name]
            for name, (x, y), angle in zip(kind.names, xy[1:][at].tolist(), angles[1:][at].tolist()):
                self._put_object(data, kind, name, [x, y, kind.height], angle)
        if self._gremlins is not None:
            self._centres[i] = xy[1:][self.slices["gremlins"]]
        mujoco.mj_forward(self.model, data)

    def _put_object(self, data: mujoco.MjData, kind: Objects, name: str, position: list[float], angle: float) -> None:
        quaternion = [math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)]
        if kind.mobile:
            start = self.model.joint(name).qposadr[0]
            data.qpos[start : start + 7] = position + quaternion
        if kind.mocap:
            mocap = self._mocap_id(f"{name}_lead" if kind.mobile else name)
            data.mocap_pos[mocap] = position
            data.mocap_quat[mocap] = quaternion
            if isinstance(kind, Gremlins):
                data.mocap_pos[mocap, 2] = kind.lead_height

    def _mocap_id(self, body: str) -> int:
        return int(self.model.body(body).mocapid[0])

    def _begin(self, rows: Sequence[int]) -> None:
        rows = list(rows)
        self._started = True
        self.steps[rows] = 0
        self.timer[rows] = 0
        # The last step returned these arrays; what it returned must not change.
        self.cost = self.cost.copy()
        self.cost[rows] = 0.0
        self._last = self._last.copy()
        self._last[rows] = self.distance[rows, self._goal]

    def _settle(self, i: int) -> None:
        """Wind stream ``i`` on: at each step the original draws how many physics steps it has, always ten."""
        self.streams[i].skip(self._ticks - self._settled[i])
        self._settled[i] = self._ticks

    # --- stepping -----------------------------------------------------------------------------------------------------

    def step(self, actions: ArrayLike) -> Step:
        """Take one step with ``actions`` (k, 2) in [-1, 1]; beyond that they are clipped.

        Returns observation (k, o), reward (k,), cost (k,), terminated (k,), truncated (k,) and, each (k,), which
        environments violate what ("cost_hazards" and so on) and which reached their goal ("goal_met").
        """
        actions = np.asarray(actions, dtype=np.float64)
        if actions.shape != (self.count, self.model.nu):
            raise ValueError(f"actions must have the shape {(self.count, self.model.nu)}, not {actions.shape}")
        if not math.isfinite(actions.sum()):
            raise ValueError("actions must be finite numbers")
        if not self._started:
            raise ValueError("call reset() before the first step()")
        self._simulate(actions)
        self.steps += 1
        self._ticks += 1
        self._look()

        task = self.scene.task
        distance = self.distance[:, self._goal]
        met = task.reached(self)
        reward = self._last - distance + met
        np.minimum(reward, REWARD_LIMIT, out=reward)
        np.maximum(reward, -REWARD_LIMIT, out=reward)
        info = {**task.costs(self), **self._object_costs()}
        violated = np.zeros(self.count, dtype=np.bool_)
        for single in info.values():
            violated |= single
        self.cost = cost = violated.astype(np.float64)
        info["goal_met"] = met
        if "buttons" in self.slices:
            np.maximum(self.timer - 1, 0, out=self.timer)

        terminated = np.zeros(self.count, dtype=np.bool_)
        if np.count_nonzero(met):
            for i in met.nonzero()[0].tolist():
                self._settle(i)
                terminated[i] = not task.renew(self, i)
            self._look()
        self._last = self.distance[:, self._goal]
        return self.observe(), reward, cost, terminated, self.steps >= self.horizon, info

    def _simulate(self, actions: NDArray[np.float64]) -> None:
        forward, step, model, blind = mujoco.mj_forward, mujoco.mj_step, self.model, self._blind
        if self._gremlins is None:
            finish = mujoco.mj_step2  # the last forward pass did the first half of this step already
            for data, control, action in zip(self.data, self._controls, actions):
                control[:] = action
                finish(blind, data)
                step(blind, data, SUBSTEPS - 1)
                forward(model, data)
            return
        ticks = self.steps[:, None] * SUBSTEPS + np.arange(SUBSTEPS)
        path = self._centres[:, None] + self._gremlins.lead(ticks * model.opt.timestep)[:, :, None]
        for data, control, action, leads, points in zip(self.data, self._controls, actions, self._leads, path):
            control[:] = action
            for point in points:
                leads[:] = point
                step(blind, data)
            forward(model, data)

    def _look(self) -> None:
        """Read the sensors, and work out where everything is as each agent sees it."""
        for row, sensordata in zip(self._sensors, self._sensordata):
            row[:] = sensordata
        seen = self._seen
        for name, positions in seen.position.items():
            self.positions[:, self.slices[name]] = positions
        for name, contacts in seen.touch.items():
            self.touch[name] = contacts > 0
        offsets = self._points - seen.agent
        self.distance = np.hypot(offsets[..., 0], offsets[..., 1])
        self._offsets = np.matmul(offsets, seen.axes)

    def _object_costs(self) -> dict[str, NDArray[np.bool_]]:
        costs: dict[str, NDArray[np.bool_]] = {}
        for kind in self._kinds:
            if kind.constrained:
                velocity = self._seen.velocity.get(kind.name)
                reading = Reading(
                    distance=self.distance[:, self.slices[kind.name]],
                    touch=self.touch.get(kind.name, _NONE),
                    speed=_EMPTY if velocity is None else np.linalg.norm(velocity, axis=-1),
                )
                costs |= kind.costs(reading)
        return costs

    def observe(self) -> NDArray[np.float64]:
        """Return the observations (k, o): what the agent feels, then one lidar of 16 bins a kind of object."""
        felt = self._seen.felt
        observation = np.empty((self.count, self.size))
        own = felt.shape[1]
        observation[:, :own] = felt
        lidars = observation[:, own:].reshape(self.count, -1, BINS)
        lidar(self._offsets, self._starts, out=lidars)
        if "buttons" in self.slices and np.count_nonzero(self.timer):
            lidars[self.timer > 0, 0] = 0.0  # buttons are the first kind
        return observation


_NONE = np.zeros((0, 0), dtype=np.bool_)
_EMPTY = np.zeros((0, 0))


class _Readings:
    """The sensor readings (k, n) by what they mean: views, so that they are always the latest."""

    def __init__(self, model: mujoco.MjModel, scene: Scene, sensors: NDArray[np.float64]) -> None:
        def view(first: str, *shape: int) -> NDArray[np.float64]:
            start = int(model.sensor(first).adr[0])
            return sensors[:, start : start + math.prod(shape)].reshape(-1, *shape)

        self.felt = view("accelerometer", sum(scene.agent.observation.values()))
        self.agent = view("agent_position", 1, 3)
        self.axes = view("agent_x", 2, 3).transpose(0, 2, 1)
        self.touch: dict[str, NDArray[np.float64]] = {}
        self.position: dict[str, NDArray[np.float64]] = {}
        self.velocity: dict[str, NDArray[np.float64]] = {}
        for kind in scene.kinds:
            first = kind.names[0]
            if kind.feels:
                self.touch[kind.name] = view(f"{first}_touch", kind.count)
            if kind.mobile:
                self.position[kind.name] = view(f"{first}_position", kind.count, 3)[..., :2]
            if kind.mobile and kind.feels and not kind.mocap:
                self.velocity[kind.name] = view(f"{first}_velocity", kind.count, 3)
