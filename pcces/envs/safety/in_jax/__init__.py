"""The navigation tasks in JAX, for the device engine: thousands of episodes side by side on a GPU.

What is learnt here is to be certified on the MuJoCo form (engine "local"): some contacts are simpler here.
"""

from __future__ import annotations

from typing import Any

from .button import ButtonTask, button_task
from .goal import GoalTask, goal_task
from .task import SafetyTask

__all__ = ["ButtonTask", "GoalTask", "SafetyTask", "button_task", "goal_task", "safety_task"]


def safety_task(name: str, **changes: Any) -> SafetyTask:
    """A scene by name, as a task in JAX; `changes` as for `scene`.

    >>> safety_task("PointButton1", gremlins=2).cost_names
    ('cost',)
    """
    return button_task(name, **changes) if "Button" in name else goal_task(name, **changes)
