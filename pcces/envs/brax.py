"""Brax's ant, hopper, walker2d and pendulums as tasks for the device engine: `brax/ant` and so on.

Brax's functions are pure already; what is left to do is to clip actions, as a Gymnasium simulator would, and to say
which numbers are costs (none). Episodes are cut after 1000 steps by whoever plays them, and nothing resets by itself.

The sizes are written down here, so that listing the tasks does not import Brax, which takes seconds.
"""

from __future__ import annotations

import contextlib
import functools
import io
import threading
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from pcces.envs.task import Continuous, Step, Task

BACKENDS = ("spring", "generalized", "positional", "mjx")


class Known(NamedTuple):
    """What training must know of an environment before Brax is imported."""

    observation_size: int
    action_size: int
    entropy_bounds: tuple[float, float]  # of its PyBullet sibling in the paper's Table 5
    reward_threshold: float | None = None


ENVIRONMENTS = {
    "ant": Known(27, 8, (0.0, 5000.0)),
    "hopper": Known(11, 3, (0.0, 1000.0)),
    "walker2d": Known(17, 6, (0.0, 2000.0)),
    "inverted_pendulum": Known(4, 1, (-1000.0, 3000.0), 950.0),
    "inverted_double_pendulum": Known(8, 1, (0.0, 1000.0), 9100.0),
}


class BraxTask(Task):
    """An environment of Brax on one of its physics backends; the first, "spring", is the fastest by far.

    Other backends have their name at the end: `brax/ant-mjx`.

    >>> task = BraxTask("hopper")
    >>> task, task.observation_size, task.actions.size
    (<task brax/hopper>, 11, 3)
    >>> BraxTask("hopper", "mjx")
    <task brax/hopper-mjx>
    """

    max_steps = 1000
    costly = True

    def __init__(self, environment: str, backend: str = BACKENDS[0]) -> None:
        if environment not in ENVIRONMENTS:
            raise ValueError(f"unknown environment of Brax {environment!r}; there are {', '.join(ENVIRONMENTS)}")
        if backend not in BACKENDS:
            raise ValueError(f"unknown backend of Brax {backend!r}; there are {', '.join(BACKENDS)}")
        known = ENVIRONMENTS[environment]
        self.environment, self.backend = environment, backend
        self.name = f"brax/{environment}" + (f"-{backend}" if backend != BACKENDS[0] else "")
        self.observation_size = known.observation_size
        self.actions = Continuous((-1.0,) * known.action_size, (1.0,) * known.action_size)
        self.entropy_bounds = known.entropy_bounds
        self.reward_threshold = known.reward_threshold

    def reset(self, key: jax.Array) -> Any:
        """Brax's own start, and its own state."""
        return _environment(self.environment, self.backend).reset(key)

    def step(self, state: Any, action: jax.Array, key: jax.Array) -> Step:
        """Brax's own step of the clipped action. Physics that diverges ends the episode, and that step earns nothing."""
        after = _environment(self.environment, self.backend).step(state, jnp.clip(action, -1.0, 1.0))
        reward = jnp.asarray(after.reward, jnp.float32)
        finite = jnp.isfinite(reward) & jnp.isfinite(after.obs).all()
        return Step(after, jnp.where(finite, reward, 0.0), jnp.zeros(0), (after.done > 0) | ~finite)

    def observe(self, state: Any) -> jax.Array:
        """What Brax shows."""
        return state.obs


def named(name: str) -> BraxTask:
    """The task of a name such as brax/ant or brax/ant-mjx.

    >>> named("brax/ant-generalized").backend
    'generalized'
    """
    environment, _, backend = name.removeprefix("brax/").partition("-")
    return BraxTask(environment, backend or BACKENDS[0])


_loading = threading.Lock()  # an iteration is traced in one thread while another draws the first policies


@functools.cache
def _load(name: str, backend: str) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):  # it prints which packages it could use, but misses
        from brax import envs
    with jax.ensure_compile_time_eval(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that its authors now work on MJX
        return envs.get_environment(name, backend=backend)


def _environment(name: str, backend: str) -> Any:
    with _loading:
        return _load(name, backend)
