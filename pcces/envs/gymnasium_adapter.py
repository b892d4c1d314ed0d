"""Every task as a Gymnasium environment, `pcces/CartSafe-v0` and so on, for any other RL library (`gymnasium_ids`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from pcces.envs.registry import make
from pcces.envs.task import Discrete, Task


class TaskEnv(gymnasium.Env[np.ndarray, Any]):
    """A task as a Gymnasium environment. The time limit is Gymnasium's wrapper, which `gymnasium.make` puts around it.

    Each step's costs are in `info`: `cost` (their sum), `costs` (by name), `constraint_costs` (a list, as gym-safety).

    >>> env = gymnasium.make("pcces/CartSafe-v0")
    >>> observation, info = env.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = env.step(1)
    >>> info
    {'cost': 0.0, 'costs': {'off_centre': 0.0}, 'constraint_costs': [0.0]}
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012 (Gymnasium's own habit)

    def __init__(self, task: str | Task, render_mode: str | None = None) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        self.task = make(task)  # which says what to install if there is no JAX

        import jax

        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": self.task.frames_per_second}
        size, actions = self.task.observation_size, self.task.actions
        low = np.array(self.task.observation_low or [-np.inf] * size, np.float32)
        high = np.array(self.task.observation_high or [np.inf] * size, np.float32)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        if isinstance(actions, Discrete):
            self.action_space = gymnasium.spaces.Discrete(actions.n)
        else:
            self.action_space = gymnasium.spaces.Box(
                np.array(actions.low, np.float32), np.array(actions.high, np.float32), dtype=np.float32
            )
        # One state at a time: the CPU is much faster at that than an accelerator.
        self._on_cpu = functools.partial(jax.default_device, jax.devices("cpu")[0])
        self._reset, self._step = _compiled(self.task)
        self.state: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode. The seed fixes it and, through Gymnasium's generator, those after it."""
        super().reset(seed=seed)
        with self._on_cpu():
            self.state, self._key, observation = self._reset(int(self.np_random.integers(2**31)))
        self._time = 0
        return np.array(observation), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move on by one action."""
        if self.state is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        with self._on_cpu():
            self.state, after = self._step(self.state, self._action(action), self._key, self._time)
        self._time += 1
        numbers = np.array(after)
        size = self.task.observation_size
        reward, terminated, *costs = numbers[size:].tolist()
        info: dict[str, Any] = {}
        if self.task.cost_names:
            info = {"cost": sum(costs), "costs": dict(zip(self.task.cost_names, costs)), "constraint_costs": costs}
        return numbers[:size], reward, bool(terminated), False, info

    def _action(self, action: Any) -> np.ndarray:
        if isinstance(self.task.actions, Discrete):
            if not self.action_space.contains(action):
                raise ValueError(
                    f"{self.task.name} takes an action from 0 to {self.task.actions.n - 1}, not {action!r}"
                )
            return np.asarray(action, np.int32)
        array = np.asarray(action, np.float32)
        if array.shape != (self.task.actions.size,):
            raise ValueError(
                f"{self.task.name} takes an action of shape ({self.task.actions.size},), not {array.shape}"
            )
        return array if self.task.overshoot else np.clip(array, *self.task.actions.ends)

    def render(self) -> Any:
        """The picture of the state, when the environment was made with `render_mode="rgb_array"`."""
        if self.render_mode is None:
            gymnasium.logger.warn("nothing is rendered: make the environment with render_mode='rgb_array'")
            return None
        if self.state is None:
            raise gymnasium.error.ResetNeeded("call reset before render")
        return self.task.draw(self.state)


@functools.cache
def _compiled(task: Task) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Reset and step. The numbers of a step come as one array: each array fetched from JAX costs more than the step."""
    import jax
    import jax.numpy as jnp

    def reset(seed: Any) -> Any:
        key, start = jax.random.split(jax.random.key(seed))
        state = task.reset(start)
        return state, key, task.observe(state)

    def step(state: Any, action: Any, key: Any, time: Any) -> Any:
        after = task.step(state, action, jax.random.fold_in(key, time))
        numbers = [task.observe(after.state), jnp.stack([after.reward, after.terminated]), after.costs]
        return after.state, jnp.concatenate([jnp.float32(part) for part in numbers])

    return jax.jit(reset), jax.jit(step)
