"""One scene as a Gymnasium environment: a batch of one."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from .batch import SUBSTEPS, SafetyBatch
from .tasks import Scene

VIEWS = ("top", "3d")


class SafetyEnv(gymnasium.Env[NDArray[np.float64], NDArray[np.float64]]):
    """A safety-navigation task. ``info["cost"]`` is 1 on a step with any violation; ``info["cost_..."]`` say which.

    ``scene`` is a name such as "PointGoal1", with any of its counts changed by keyword, or a ``Scene`` of your own.
    Rendering gives RGB arrays: the ``view`` from the "top" is drawn without any graphics driver; "3d" is MuJoCo's own
    and needs EGL, OSMesa or a display.

    >>> env = SafetyEnv("CarButton1", hazards=2)
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    >>> sorted(info)
    ['cost', 'cost_buttons', 'cost_gremlins', 'cost_hazards', 'goal_met']
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self,
        scene: Scene | str = "PointGoal1",
        *,
        horizon: int = 1000,
        render_mode: str | None = None,
        view: str = "top",
        width: int = 480,
        height: int = 480,
        **changes: Any,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        if view not in VIEWS:
            raise ValueError(f"view must be one of {', '.join(VIEWS)}, not {view!r}")
        self.batch = SafetyBatch(scene, 1, horizon=horizon, **changes)
        self.scene = self.batch.scene
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": round(1 / (SUBSTEPS * self.scene.agent.timestep))}
        self._view, self._shape = view, (height, width)
        self._renderer: Any = None

        felt = sum(self.scene.agent.observation.values())
        low, high = np.full((2, self.batch.size), np.inf)
        low *= -1
        low[felt:], high[felt:] = 0.0, 1.0
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), dtype=np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Start a new episode; with a seed, in the layout Safety-Gymnasium gives it."""
        super().reset(seed=seed)
        return self.batch.reset(seed)[0], {"cost": 0.0}

    def step(self, action: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Take one step, of 10 physics steps."""
        observation, reward, cost, terminated, truncated, info = self.batch.step(np.asarray(action)[None])
        single: dict[str, Any] = {name: float(values[0]) for name, values in info.items()}
        single["goal_met"] = bool(info["goal_met"][0])
        single["cost"] = float(cost[0])
        return observation[0], float(reward[0]), bool(terminated[0]), bool(truncated[0]), single

    def render(self) -> NDArray[np.uint8] | None:
        """Return the present frame (height, width, 3), or nothing without a render mode."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs render_mode='rgb_array' when the environment is made")
            return None
        if self._renderer is None:
            from .render import SceneView, TopView

            self._renderer = (TopView if self._view == "top" else SceneView)(self.batch, *self._shape)
        return self._renderer.draw(0)

    def close(self) -> None:
        """Free the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
