"""The point's tasks in JAX, for the device engine: thousands of episodes side by side on a GPU.

What is learnt here is to be certified on the MuJoCo form (engine "local"): contacts are simpler here.
"""

from __future__ import annotations

from typing import Any

from .button import PointButton, point_button
from .goal import PointGoal, point_goal
from .task import PointTask

__all__ = ["PointButton", "PointGoal", "PointTask", "point_button", "point_goal", "point_task"]


def point_task(name: str, **changes: Any) -> PointTask:
    """A scene by name, as a task in JAX; `changes` as for `scene`.

    >>> point_task("PointButton1", gremlins=2).cost_names
    ('cost',)
    """
    return point_button(name, **changes) if "Button" in name else point_goal(name, **changes)
