"""The point's Button task: press the right one of the buttons, past hazards and gremlins that circle."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pcces.envs.draw import GREEN, WOOD
from pcces.envs.task import Step

from ..agents import Point
from ..objects import Gremlins
from ..tasks import Button, Scene
from .contact import GREMLIN_WEIGHT, GREMLIN_YIELDS, Touch, led, push, with_discs, with_squares
from .layout import sample_layout
from .point import SUBSTEPS, Triple, added, advance, felt, forces, lidar, response, turned
from .task import REWARD_LIMIT, PointTask, named

Array = Any
SIZE = 0.1  # of buttons and gremlins: of another one they would meet the point at another height


class State(NamedTuple):
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
    clock: Array  # (3,) which button is the goal, steps for which buttons stay dead, steps since the start


class PointButton(PointTask):
    """A scene with a point, buttons, hazards and gremlins.

    >>> task = point_button("PointButton1")
    >>> task.observation_size, task.observe(task.reset(jax.random.key(0))).shape
    (76, (76,))
    """

    plays = Button
    known = ("buttons", "goal", "hazards", "gremlins")

    def __init__(self, scene: Scene, name: str | None = None) -> None:
        super().__init__(scene, name)
        self.task: Button = scene.task  # type: ignore[assignment]
        self.gremlins = next((kind for kind in scene.kinds if isinstance(kind, Gremlins)), None)
        b, h, g = (self.counts.get(kind, 0) for kind in ("buttons", "hazards", "gremlins"))
        if any(kind.size != SIZE for kind in scene.kinds if kind.solid):
            raise ValueError(f"buttons and gremlins of another size than {SIZE} need MuJoCo: engine='local'")
        self.shapes = State((3,), (3,), (2,), (b, 2), (h, 2), (g, 2), (g, 2), (g, 2), (g,), (3,))
        self._weight = np.repeat(np.array([0, GREMLIN_WEIGHT], np.float32), [b, g])

    def parts(self, state: Array) -> State:
        """The state by name."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        return State(*(part.reshape(shape) for part, shape in zip(jnp.split(state, ends[:-1]), self.shapes)))

    def reset(self, key: Array) -> Array:
        """Place everything, with a mark that stands for the goal meanwhile; then draw the goal button."""
        places = sample_layout(key, self.scene.groups, self.scene.extent)
        _, buttons, _, hazards, gremlins = jnp.split(places, self._ends)
        angles = jax.random.uniform(
            jax.random.split(key, len(places) + 1)[-1], (1 + len(gremlins),), maxval=2 * math.pi
        )
        target = self._draw_button(jax.random.fold_in(key, 2**31 - 1))
        start = State(
            jnp.append(places[0], angles[0]), jnp.zeros(3), jnp.zeros(2), buttons, hazards,
            gremlins, jnp.zeros_like(gremlins), gremlins, angles[1:], jnp.stack([target, 0.0, 0.0]),
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
        control = jnp.clip(action, -1, 1)
        for tick in range(SUBSTEPS):
            lead = self._lead(now, steps * SUBSTEPS + tick)
            push, pulled = self._contacts(now, self.touch(now), control, lead)
            pose, velocity = advance(now.pose, now.velocity, control, push)
            drift = now.drift + Point.timestep * pulled
            now = now._replace(
                pose=pose, velocity=velocity, gremlins=now.gremlins + Point.timestep * drift, drift=drift
            )
        touch = self.touch(now)
        push, _ = self._contacts(now, touch, control, lead)
        along, across, _ = response(*added(forces(now.pose, now.velocity, control), push))

        violations, reached = self.violations(now, touch)
        cost = jnp.stack(list(violations.values())).any()
        reward = jnp.clip(before - self.distance(now) + reached, -REWARD_LIMIT, REWARD_LIMIT)
        clock = [
            jnp.where(reached, self._draw_button(key), target),
            jnp.where(reached, self.task.delay, jnp.maximum(timer - 1, 0.0)),
            steps + 1,
        ]
        after = flat(now._replace(acceleration=jnp.stack([along, across]), clock=jnp.stack(clock)))
        return Step(after, reward, cost.astype(jnp.float32)[None], jnp.bool_(False))

    def violations(self, now: State, touch: Touch) -> tuple[dict[str, Array], Array]:
        """What is violated, by the names of the MuJoCo form; and whether the goal button is pressed."""
        pressed, bumped = jnp.split(touch.depth > 0, [len(now.buttons)])
        is_goal = jnp.arange(len(pressed)) == now.clock[0]
        wrong = (pressed & ~is_goal).any() & (now.clock[1] == 0) & self.task.buttons.constrained
        found = {"cost_buttons": wrong, "cost_hazards": self.on_hazard(now.pose, now.hazards)}
        if self.gremlins and self.gremlins.constrained:
            found["cost_gremlins"] = bumped.any()
        return found, (pressed & is_goal).any()

    def _goal(self, now: State) -> Array:
        chosen = jnp.arange(len(now.buttons)) == now.clock[0]
        return jnp.where(chosen[:, None], now.buttons, 0.0).sum(0)

    def distance(self, now: State) -> Array:
        """From the point to the goal button."""
        return jnp.linalg.norm(self._goal(now) - now.pose[:2])

    def _lead(self, now: State, tick: Array) -> Array:
        travel = self.gremlins.travel if self.gremlins else 0.0
        time = tick * Point.timestep
        return now.centres + travel * jnp.stack([jnp.sin(time), jnp.cos(time)])

    def touch(self, now: State) -> Touch:
        """The contacts of the point with the buttons, then with the gremlins."""
        x, y = turned(now.pose[2], *(now.buttons - now.pose[:2]).T)
        buttons = with_discs(x, y, SIZE)
        if self.gremlins is None:
            return buttons
        x, y = turned(now.pose[2], *(now.gremlins - now.pose[:2]).T)
        heading = now.headings - now.pose[2]
        gremlins = with_squares(x, y, jnp.cos(heading), jnp.sin(heading), SIZE)
        return Touch(*(jnp.concatenate(pair) for pair in zip(buttons, gremlins)))

    def _contacts(self, now: State, touch: Touch, control: Array, lead: Array) -> tuple[Triple, Array]:
        """The forces on the point, and the accelerations (g, 2) of the gremlins."""
        angle, b = now.pose[2], len(now.buttons)
        pulled = led(now.gremlins, now.drift, lead)

        def of_objects(gremlins: Array) -> tuple[Array, Array]:
            x, y = turned(angle, *gremlins.T)
            return jnp.pad(x, (b, 0)), jnp.pad(y, (b, 0))

        own = *turned(angle, now.velocity[0], now.velocity[1]), now.velocity[2]
        free = response(*forces(now.pose, now.velocity, control))
        along, across = push(touch, own, free, of_objects(now.drift), of_objects(pulled), self._weight)
        torque = touch.x * across - touch.y * along
        x, y = turned(-angle, along[b:], across[b:])
        reaction = GREMLIN_YIELDS * jnp.stack([x, y], axis=-1)
        return (along.sum(), across.sum(), torque.sum()), pulled - reaction

    def observe(self, state: Array) -> Array:
        """What MuJoCo's sensors say, and the lidars; that of the buttons is dark while they are dead."""
        now = self.parts(state)
        seen = [jnp.where(now.clock[1] > 0, 0.0, lidar(now.pose, now.buttons)), lidar(now.pose, self._goal(now)[None])]
        seen += [lidar(now.pose, places) for places in (now.hazards, now.gremlins) if len(places)]
        return jnp.concatenate([felt(now.pose, now.velocity, now.acceleration), *seen])

    def draw(self, state: Array) -> np.ndarray:
        """From above."""
        now = self.parts(state)
        touched = np.asarray(self.touch(now).depth > 0)
        now = State(*(np.asarray(part) for part in now))
        canvas = self.canvas(now.hazards)
        target = int(now.clock[0])
        for i, (x, y) in enumerate(now.buttons):
            canvas.disc((x, y), SIZE, GREEN if i == target else WOOD)
        for (x, y), angle in zip(now.gremlins, now.headings):
            corners = [angle + math.pi / 4 + turn * math.pi / 2 for turn in range(4)]
            reach = SIZE * math.sqrt(2)
            canvas.polygon([(x + reach * math.cos(a), y + reach * math.sin(a)) for a in corners], Gremlins.colour)
        touched[target] = False
        self.draw_point(canvas, now.pose, bool(touched.any() or self.on_hazard(now.pose, now.hazards)))
        return canvas.picture()


def flat(state: State) -> Array:
    """The state as one array."""
    return jnp.concatenate([jnp.ravel(part) for part in state])


def point_button(name: str, **changes: Any) -> PointButton:
    """A scene by name; `changes` as for `scene`.

    >>> point_button("PointButton1", gremlins=2).observation_size
    76
    """
    return PointButton(*named(name, **changes))
