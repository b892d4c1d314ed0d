"""Pictures of the world: from the top, drawn with Pillow and no graphics driver, or MuJoCo's own 3-D view."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from .lidar import BINS
from .model import NO_OPENGL, mujoco
from .objects import Objects

if TYPE_CHECKING:
    from .batch import SafetyBatch

Colour = tuple[int, int, int]
_FLOOR: Colour = (247, 247, 250)
_GRID: Colour = (228, 228, 235)
_AGENT: Colour = (190, 20, 50)
_ALARM: Colour = (220, 30, 30)
_RINGS = 0.24, 0.05  # radius of the innermost lidar ring around the agent and the gap to the next, in metres
_SMOOTH = 2  # the picture is drawn this much larger, then shrunk


class TopView:
    """The scene from above: every object, the lidar as rings around the agent, and a red frame while a step costs.

    >>> from pcces.envs.safety import SafetyBatch
    >>> batch = SafetyBatch("PointGoal1", 1)
    >>> _ = batch.reset(seed=0)
    >>> TopView(batch, 240, 240).draw(0).shape
    (240, 240, 3)
    """

    def __init__(self, batch: SafetyBatch, height: int, width: int) -> None:
        self.batch = batch
        self.height, self.width = height, width

    def draw(self, i: int = 0) -> NDArray[np.uint8]:
        """Return environment ``i`` as an RGB array."""
        batch = self.batch
        image = Image.new("RGB", (self.width * _SMOOTH, self.height * _SMOOTH), _FLOOR)
        pen = ImageDraw.Draw(image, "RGBA")
        agent = batch.agent[i]
        # As far as things are placed, and further when the agent leaves that behind.
        half = max(batch.scene.extent + 0.35, float(np.abs(agent).max()) + 0.4)
        canvas = _Canvas(pen, image.width, image.height, half)
        self._floor(canvas, half)
        for kind in sorted(batch.scene.kinds, key=lambda kind: kind.solid):  # marks below, bodies on top
            self._objects(canvas, kind, i)
        self._agent(canvas, i)
        self._rings(canvas, i)
        self._notes(canvas, i)
        return np.asarray(image.resize((self.width, self.height), Image.Resampling.LANCZOS))

    def close(self) -> None:
        """Nothing to free."""

    def _floor(self, canvas: _Canvas, half: float) -> None:
        for line in np.arange(-math.ceil(2 * half) / 2, half + 0.5, 0.5):
            canvas.line([(line, -9 * half), (line, 9 * half)], _GRID, 1)
            canvas.line([(-9 * half, line), (9 * half, line)], _GRID, 1)

    def _objects(self, canvas: _Canvas, kind: Objects, i: int) -> None:
        batch = self.batch
        goal_button = "buttons" in batch.slices
        for j, (x, y) in enumerate(batch.positions[i, batch.slices[kind.name]]):
            if kind.name == "goal":
                canvas.disc(x, y, kind.size, (*kind.colour, 110), kind.colour)
            elif kind.name == "hazards":
                canvas.disc(x, y, kind.size, (*kind.colour, 80), kind.colour)
            elif kind.name == "buttons":
                live = goal_button and batch.timer[i] == 0
                canvas.disc(x, y, kind.size, (*kind.colour, 255 if live else 90), (120, 70, 15))
            else:
                body = batch.data[i].body(kind.names[j])
                canvas.box(x, y, body.xmat.reshape(3, 3), kind.size, kind.size, (*kind.colour, 215), (50, 50, 60))

    def _agent(self, canvas: _Canvas, i: int) -> None:
        x, y = self.batch.agent[i]
        matrix = self.batch.data[i].body("agent").xmat.reshape(3, 3)
        if self.batch.scene.agent.name == "Point":
            nose = matrix @ [0.1, 0, 0]
            canvas.disc(x, y, 0.1, (*_AGENT, 255), (90, 10, 25))
            canvas.box(x + nose[0], y + nose[1], matrix, 0.05, 0.05, (0, 40, 100, 255), (0, 20, 50))
            return
        for side in (-0.13, 0.13):
            wheel = matrix @ [side, 0.1, 0]
            canvas.box(x + wheel[0], y + wheel[1], matrix, 0.025, 0.05, (60, 60, 70, 255), (30, 30, 35))
        canvas.box(x, y, matrix, 0.1, 0.1, (*_AGENT, 255), (90, 10, 25))
        for along, half_width in ((0.15, 0.1), (-0.165, 0.05)):
            bumper = matrix @ [0, along, 0]
            canvas.box(x + bumper[0], y + bumper[1], matrix, half_width, 0.01, (0, 40, 100, 255), (0, 20, 50))

    def _rings(self, canvas: _Canvas, i: int) -> None:
        """Draw a ring a lidar, in the colour of what it sees; the fuller a dot the nearer the object."""
        matrix = self.batch.data[i].body("agent").xmat.reshape(3, 3)
        for (x, y), colour, strength in lidar_dots(self.batch, i, matrix):
            canvas.disc(x, y, 0.012 + 0.014 * strength, (*colour, int(25 + 230 * strength)), None)

    def _notes(self, canvas: _Canvas, i: int) -> None:
        batch = self.batch
        text = f"{batch.scene.agent.name}{batch.scene.task.name}  step {batch.steps[i]}"
        canvas.text(text)
        if batch.cost[i] > 0:
            canvas.frame(_ALARM)


def lidar_dots(
    batch: SafetyBatch, i: int, matrix: NDArray[np.float64]
) -> list[tuple[NDArray[np.float64], Colour, float]]:
    """Return position, colour and reading of every lidar bin, in rings around agent ``i``."""
    first = sum(batch.scene.agent.observation.values())
    readings = batch.observe()[i, first:].reshape(-1, BINS)
    dots = []
    for ring, (kind, reading) in enumerate(zip(batch.scene.kinds, readings)):
        radius = _RINGS[0] + ring * _RINGS[1]
        for j, strength in enumerate(reading):
            angle = (j + 0.5) * 2 * math.pi / BINS
            offset = matrix[:2, :2] @ [radius * math.cos(angle), radius * math.sin(angle)]
            dots.append((batch.agent[i] + offset, kind.colour, float(strength)))
    return dots


class _Canvas:
    """Drawing in metres, with the origin in the middle and y upwards."""

    def __init__(self, pen: ImageDraw.ImageDraw, width: int, height: int, half: float) -> None:
        self.pen, self.width, self.height = pen, width, height
        self.scale = min(width, height) / (2 * half)

    def at(self, x: float, y: float) -> tuple[float, float]:
        return self.width / 2 + self.scale * float(x), self.height / 2 - self.scale * float(y)

    def line(self, points: list[tuple[float, float]], colour: Colour, width: int) -> None:
        self.pen.line([self.at(*point) for point in points], fill=colour, width=width * _SMOOTH)

    def disc(self, x: float, y: float, radius: float, fill: tuple[int, int, int, int], edge: Colour | None) -> None:
        (u, v), r = self.at(x, y), radius * self.scale
        self.pen.ellipse([u - r, v - r, u + r, v + r], fill=fill, outline=edge, width=_SMOOTH)

    def box(
        self,
        x: float,
        y: float,
        matrix: NDArray[np.float64],
        half_x: float,
        half_y: float,
        fill: tuple[int, int, int, int],
        edge: Colour,
    ) -> None:
        corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [half_x, half_y] @ matrix[:2, :2].T
        self.pen.polygon([self.at(x + dx, y + dy) for dx, dy in corners], fill=fill, outline=edge, width=_SMOOTH)

    def text(self, text: str) -> None:
        size = max(10, self.height // 32)
        self.pen.text((size // 2, size // 3), text, fill=(60, 60, 70), font=ImageFont.load_default(size))

    def frame(self, colour: Colour) -> None:
        self.pen.rectangle([0, 0, self.width - 1, self.height - 1], outline=colour, width=5 * _SMOOTH)


class SceneView:
    """MuJoCo's 3-D view. Goals, hazards and lidar dots are added to what the physics model holds.

    It needs OpenGL without a display: EGL (Debian: libegl1) or OSMesa (libosmesa6), chosen by the environment variable
    MUJOCO_GL=egl or MUJOCO_GL=osmesa before Python starts.
    """

    def __init__(self, batch: SafetyBatch, height: int, width: int) -> None:
        self.batch = batch
        try:
            self._renderer = mujoco.Renderer(batch.model, height, width)
        except Exception as error:  # MuJoCo passes on whatever the GL library at hand raises
            raise RuntimeError(NO_OPENGL) from error
        self._camera = mujoco.MjvCamera()
        self._camera.azimuth, self._camera.elevation = 90, -62

    def draw(self, i: int = 0) -> NDArray[np.uint8]:
        """Return environment ``i`` as an RGB array."""
        batch = self.batch
        half = max(batch.scene.extent, float(np.abs(batch.agent[i]).max()))
        self._camera.distance = 2.7 * half + 0.5
        self._renderer.update_scene(batch.data[i], self._camera)
        for kind in batch.scene.kinds:
            if not kind.solid:
                height = 0.01 if kind.name == "hazards" else kind.size / 2
                for x, y in batch.positions[i, batch.slices[kind.name]]:
                    self._add(mujoco.mjtGeom.mjGEOM_CYLINDER, [kind.size, height, 0], [x, y, height], kind.colour, 0.4)
        matrix = batch.data[i].body("agent").xmat.reshape(3, 3)
        for (x, y), colour, strength in lidar_dots(batch, i, matrix):
            self._add(mujoco.mjtGeom.mjGEOM_SPHERE, [0.025, 0, 0], [x, y, 0.45], colour, 0.08 + 0.92 * strength)
        return self._renderer.render()

    def close(self) -> None:
        """Free the GL context."""
        self._renderer.close()

    def _add(self, shape: int, size: list[float], position: list[float], colour: Colour, alpha: float) -> None:
        scene = self._renderer.scene
        if scene.ngeom < scene.maxgeom:
            rgba = np.array([*(c / 255 for c in colour), alpha], dtype=np.float32)
            mujoco.mjv_initGeom(scene.geoms[scene.ngeom], shape, size, position, np.eye(3).ravel(), rgba)
            scene.ngeom += 1
