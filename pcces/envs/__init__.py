"""The tasks: `make` one by id, list the ids with `tasks`, add your own with `register_task` (docs/how-to/your-own-task.md).

Gymnasium knows them too, as `pcces/CartSafe-v0` and so on. This imports neither JAX nor Gymnasium: making a task does.
"""

from pcces.envs.registry import make, register_task, tasks
from pcces.envs.task import Continuous, Discrete, Step, Task

__all__ = ["Continuous", "Discrete", "Step", "Task", "make", "register_task", "tasks"]
