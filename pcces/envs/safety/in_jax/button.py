"""The point's Button task: press the right one of the buttons, past hazards and gremlins that circle."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcces.engines.kernels.programs import in_one_kernel
from pcces.envs.draw import GREEN, WOOD
from pcces.envs.task import Step

from ..agents import Point
from ..objects import Gremlins
from ..tasks import Button, Scene
from .contact import SIZE, Near, Touch, bumps, led, touch_button, touch_gremlin
from .layout import sample_layout
from .point import AHEAD, SUBSTEPS, added, advance, draw, felt, forces, lidar, response, seen_from
from .task import REWARD_LIMIT, SafetyTask, named

Array = Any
H = Point.timestep
FAR = 1e3


class ButtonState(NamedTuple):
    """The numbers of a state by name, with b buttons, h hazards and g gremlins."""

    pose: Array  # (3,) x, y, angle
    velocity: Array  # (3,) of these
    acceleration: Array  # (2,) along and across
    buttons: Array  # (b, 2)
    hazards: Array  # (h, 2)
    gremlins: Array  # (g, 2)
    drift: Array  # (g, 2) the gremlins' velocities
    centres: Array  # (g, 2) of their circles
    headings: Array  # (g,) of the gremlins, which they keep
    jam: Array  # (3,) the force of a button on the nose, from which the next one is worked out
    clock: Array  # (3,) which button is the goal, steps for which buttons stay dead, steps since the start


class ButtonTask(SafetyTask):
    """A scene with a point, buttons, hazards and gremlins.

    >>> task = button_task("PointButton1")
    >>> task.observation_size, jax.eval_shape(task.reset, jax.random.key(0)).shape
    (76, (58,))
    """

    plays = Button
    known = ("buttons", "goal", "hazards", "gremlins")

    def __init__(self, scene: Scene, name: str | None = None) -> None:
        super().__init__(scene, name)
        self.task: Button = scene.task  # type: ignore[assignment]
        self.gremlins = next((kind for kind in scene.kinds if isinstance(kind, Gremlins)), None)
        b, h, g = (self.counts.get(kind, 0) for kind in ("buttons", "hazards", "gremlins"))
        for kind in scene.kinds:
            if kind.solid and replace(kind, count=1, constrained=True) != type(kind)(1):
                raise ValueError(f"{kind.name} of other sizes or keepouts than the usual need MuJoCo: engine='local'")
        self.shapes = ButtonState((3,), (3,), (2,), (b, 2), (h, 2), (g, 2), (g, 2), (g, 2), (g,), (3,), (3,))

    def parts(self, state: Array) -> ButtonState:
        """The state by name."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        return ButtonState(*(part.reshape(shape) for part, shape in zip(jnp.split(state, ends[:-1]), self.shapes)))

    def reset(self, key: Array) -> Array:
        """Place everything, with a mark that stands for the goal meanwhile; then draw the goal button."""
        places = sample_layout(key, self.scene.groups, self.scene.extent)
        _, buttons, _, hazards, gremlins = jnp.split(places, self._ends)
        angles = jax.random.uniform(
            jax.random.split(key, len(places) + 1)[-1], (1 + len(gremlins),), maxval=2 * math.pi
        )
        target = self._draw_button(jax.random.fold_in(key, 2**31 - 1))
        start = ButtonState(
            jnp.append(places[0], angles[0]), jnp.zeros(3), jnp.zeros(2), buttons, hazards,
            gremlins, jnp.zeros_like(gremlins), gremlins, angles[1:], jnp.zeros(3), jnp.stack([target, 0.0, 0.0]),
        )  # fmt: skip
        return flat(start)

    @property
    def _ends(self) -> np.ndarray:
        return np.cumsum([1, self.counts["buttons"], 1, self.counts.get("hazards", 0)])

    def _draw_button(self, key: Array) -> Array:
        return jax.random.randint(key, (), 0, self.counts["buttons"]).astype(jnp.float32)

    def step(self, state: Array, action: Array, key: Array) -> Step:
        """Ten physics steps, then presses and costs."""
        now = self.parts(state)
        target, timer, steps = now.clock
        before = self.distance(now)
        now = self.parts(in_one_kernel(self._moved, state, jnp.clip(action, -1, 1)))
        touch = self.touch(now)
        violations, reached = self.violations(now, touch)
        cost = jnp.stack(list(violations.values())).any()
        reward = jnp.clip(before - self.distance(now) + reached, -REWARD_LIMIT, REWARD_LIMIT)
        clock = [
            jnp.where(reached, self._draw_button(key), target),
            jnp.where(reached, self.task.delay, jnp.maximum(timer - 1, 0.0)),
            steps + 1,
        ]
        after = flat(now._replace(clock=jnp.stack(clock)))
        return Step(after, reward, cost.astype(jnp.float32)[None], jnp.bool_(False))

    def _moved(self, state: Array, control: Array) -> Array:
        """Ten physics steps later. A loop: written out, they take four times as long to compile."""
        now = self.parts(state)
        start = SUBSTEPS * now.clock[2]

        def physics(tick: Array, carry: tuple) -> tuple:
            pose, velocity, near, gremlins, drift = carry
            ahead = self._ahead(start + tick)
            push, on_nose, pulled = bumps(pose, velocity, control, near, ahead)
            pose, velocity = advance(pose, velocity, control, push)
            near_drift = near.drift + H * pulled
            near = near._replace(gremlin=near.gremlin + H * near_drift, drift=near_drift, on_nose=on_nose)
            drift = drift + H * led(gremlins, drift, now.centres + ahead)
            return pose, velocity, near, gremlins + H * drift, drift

        carry = now.pose, now.velocity, self._near(now), now.gremlins, now.drift
        pose, velocity, near, gremlins, drift = jax.lax.fori_loop(0, SUBSTEPS, physics, carry)
        push, _, _ = bumps(pose, velocity, control, near, self._ahead(start + SUBSTEPS - 1))
        along, across, _ = response(*added(forces(pose, velocity, control), push))
        bumped = near.which[:, None]
        after = now._replace(
            pose=pose,
            velocity=velocity,
            acceleration=jnp.stack([along, across]),
            gremlins=jnp.where(bumped, near.gremlin, gremlins),
            drift=jnp.where(bumped, near.drift, drift),
            jam=jnp.stack(near.on_nose),
        )
        return flat(after)

    def violations(self, now: ButtonState, touch: Touch) -> tuple[dict[str, Array], Array]:
        """What is violated, by the names of the MuJoCo form; and whether the goal button is pressed."""
        pressed, bumped = jnp.split(touch.depth > 0, [len(now.buttons)])
        is_goal = jnp.arange(len(pressed)) == now.clock[0]
        wrong = (pressed & ~is_goal).any() & (now.clock[1] == 0) & self.task.buttons.constrained
        violated = {"cost_buttons": wrong, "cost_hazards": self.on_hazard(now.pose, now.hazards)}
        if self.gremlins and self.gremlins.constrained:
            violated["cost_gremlins"] = bumped.any()
        return violated, (pressed & is_goal).any()

    def _goal(self, now: ButtonState) -> Array:
        return pick(jnp.arange(len(now.buttons)) == now.clock[0], now.buttons)

    def distance(self, now: ButtonState) -> Array:
        """From the point to the goal button."""
        return jnp.linalg.norm(self._goal(now) - now.pose[:2])

    def _ahead(self, tick: Array) -> Array:
        """From the middles of the circles to the leads of the gremlins."""
        travel = self.gremlins.travel if self.gremlins else 0.0
        return travel * jnp.stack([jnp.sin(H * tick), jnp.cos(H * tick)])

    def _near(self, now: ButtonState) -> Near:
        sphere, ahead = now.pose[:2], jnp.stack([jnp.cos(now.pose[2]), jnp.sin(now.pose[2])])

        def nearest(places: Array, to: Array) -> Array:
            return jnp.arange(len(places)) == jnp.argmin(((places - to) ** 2).sum(-1))

        button, other = (pick(nearest(now.buttons, to), now.buttons) for to in (sphere, sphere + AHEAD * ahead))
        jam = now.jam[0], now.jam[1], now.jam[2]
        if not self.gremlins:
            far = jnp.full(2, FAR)
            return Near(button, other, far, jnp.zeros(2), far, jnp.zeros(()), jnp.zeros(0, bool), jam)
        which = nearest(now.gremlins, sphere + AHEAD / 2 * ahead)
        gremlin, drift, centre = (pick(which, part) for part in (now.gremlins, now.drift, now.centres))
        return Near(button, other, gremlin, drift, centre, jnp.where(which, now.headings, 0.0).sum(), which, jam)

    def touch(self, now: ButtonState) -> Touch:
        """The contacts of the point with the buttons, then with the gremlins."""
        buttons = touch_button(now.pose, now.buttons)
        gremlins = touch_gremlin(now.pose, now.gremlins, now.headings)
        return Touch(*(jnp.concatenate(pair) for pair in zip(buttons, gremlins)))

    def observe(self, state: Array) -> Array:
        """What MuJoCo's sensors say, and the lidars; that of the buttons is dark while they are dead."""
        now = self.parts(state)
        things = (now.buttons, self._goal(now)[None], now.hazards, now.gremlins)
        buttons, *seen = [lidar(*seen_from(now.pose, places)) for places in things if len(places)]
        seen = [jnp.where(now.clock[1] > 0, 0.0, buttons), *seen]
        return jnp.concatenate([felt(now.pose, now.velocity, now.acceleration), *seen])

    def draw(self, state: Array) -> np.ndarray:
        """From above."""
        now = self.parts(state)
        violations, _ = self.violations(now, self.touch(now))
        now = ButtonState(*(np.asarray(part) for part in now))
        canvas = self.canvas(now.hazards)
        for i, (x, y) in enumerate(now.buttons):
            canvas.disc((x, y), SIZE, GREEN if i == now.clock[0] else WOOD)
        for (x, y), angle in zip(now.gremlins, now.headings):
            corners = [angle + math.pi / 4 + turn * math.pi / 2 for turn in range(4)]
            reach = SIZE * math.sqrt(2)
            canvas.polygon([(x + reach * math.cos(a), y + reach * math.sin(a)) for a in corners], Gremlins.colour)
        draw(canvas, now.pose, any(bool(violated) for violated in violations.values()))
        return canvas.picture()


def pick(which: Array, places: Array) -> Array:
    """The one of the places (n, 2) for which `which` is true."""
    return jnp.where(which[:, None], places, 0.0).sum(0)


def flat(state: ButtonState) -> Array:
    """The state as one array."""
    return jnp.concatenate([jnp.ravel(part) for part in state])


def button_task(name: str, **changes: Any) -> ButtonTask:
    """A scene by name; `changes` as for `scene`.

    >>> button_task("PointButton1", gremlins=2).observation_size
    76
    """
    return ButtonTask(*named(name, **changes))
