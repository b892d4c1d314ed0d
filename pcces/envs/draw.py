"""A small canvas in world coordinates, on Pillow (which comes with matplotlib): enough to see what a policy does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int] | tuple[int, int, int, int]
Point = tuple[float, float]

PAPER: Colour = (250, 250, 248)
INK: Colour = (38, 50, 56)
GREY: Colour = (120, 130, 136)
GROUND: Colour = (226, 230, 226)
BLUE: Colour = (43, 108, 176)
WOOD: Colour = (214, 158, 84)
GREEN: Colour = (47, 158, 107)
GREEN_TINT: Colour = (47, 158, 107, 60)
RED: Colour = (217, 72, 65)
RED_TINT: Colour = (217, 72, 65, 32)


class Canvas:
    """600 by 400 pixels that show `width` world units around `centre`, the y axis upwards. Line widths are in pixels.

    >>> canvas = Canvas(width=6.0, centre=(0.0, 0.0))
    >>> canvas.disc((0.0, 0.0), 1.0, BLUE)
    >>> picture = canvas.picture()
    >>> tuple(int(v) for v in picture[200, 300]) == BLUE  # one unit is 100 pixels: the middle is inside the disc
    True
    """

    SIZE = (600, 400)
    FINE = 3  # drawn this many times larger, then averaged down: Pillow's own edges are jagged

    def __init__(self, width: float, centre: Point) -> None:
        self.scale = self.SIZE[0] / width * self.FINE
        self.centre = centre
        self.image = Image.new("RGB", (self.SIZE[0] * self.FINE, self.SIZE[1] * self.FINE), PAPER[:3])
        self.pen = ImageDraw.Draw(self.image, "RGBA")

    def _pixel(self, point: Point) -> Point:
        return (
            self.image.width / 2 + (point[0] - self.centre[0]) * self.scale,
            self.image.height / 2 - (point[1] - self.centre[1]) * self.scale,
        )

    def polygon(self, points: Sequence[Point], colour: Colour) -> None:
        """Fill a polygon."""
        self.pen.polygon([self._pixel(p) for p in points], fill=colour)

    def box(self, x0: float, y0: float, x1: float, y1: float, colour: Colour, radius: float = 0.0) -> None:
        """Fill the rectangle between two corners, its own corners rounded by `radius`."""
        (a, b), (c, d) = self._pixel((x0, y0)), self._pixel((x1, y1))
        corners = (min(a, c), min(b, d), max(a, c), max(b, d))
        self.pen.rounded_rectangle(corners, radius * self.scale, fill=colour)

    def line(self, points: Sequence[Point], colour: Colour, pixels: float) -> None:
        """Draw a line through the points, with round ends."""
        width = pixels * self.FINE
        ends = [self._pixel(p) for p in points]
        self.pen.line(ends, fill=colour, width=round(width), joint="curve")
        for x, y in (ends[0], ends[-1]):
            self.pen.ellipse((x - width / 2, y - width / 2, x + width / 2, y + width / 2), fill=colour)

    def disc(self, centre: Point, radius: float, colour: Colour) -> None:
        """Fill a circle."""
        (x, y), r = self._pixel(centre), radius * self.scale
        self.pen.ellipse((x - r, y - r, x + r, y + r), fill=colour)

    def text(self, middle: Point, words: str, colour: Colour, pixels: int = 15) -> None:
        """Write words centred on a point."""
        font = ImageFont.load_default(pixels * self.FINE)
        self.pen.text(self._pixel(middle), words, fill=colour, font=font, anchor="mm")

    def picture(self) -> np.ndarray:
        """The pixels, of shape (400, 600, 3)."""
        return np.array(self.image.reduce(self.FINE))


def bars(values: Any, title: str) -> np.ndarray:
    """A bar for each value: the picture of a task that does not draw itself.

    >>> bars([0.3, -1.0], "Example-v0").shape
    (400, 600, 3)
    """
    heights = np.atleast_1d(np.asarray(values, dtype=float)).ravel()
    canvas = Canvas(width=6.0, centre=(0.0, 0.0))
    canvas.text((0.0, 1.75), title, INK)
    slot = 5.0 / len(heights)
    for i, value in enumerate(heights):
        x = -2.5 + (i + 0.5) * slot
        height = 1.3 * np.tanh(value)  # any range fits, and small values keep their proportions
        canvas.box(x - 0.35 * slot, 0.0, x + 0.35 * slot, height, BLUE if value >= 0 else WOOD)
        if len(heights) <= 12:
            canvas.text((x, -1.65), f"{value:.3g}", GREY)
    canvas.line([(-2.6, 0.0), (2.6, 0.0)], INK, 2)
    return canvas.picture()
