"""The tasks: `make` one by id, list the ids with `tasks`, add your own with `register_task` (docs/your-own-task.md).

Importing this tells Gymnasium of them too, as `pcces/CartSafe-v0` and so on. It imports no JAX: making a task does.
"""

from importlib.util import find_spec as _find_spec

from pcces.envs.registry import make, register_task, tasks
from pcces.envs.task import Continuous, Discrete, Step, Task

if _find_spec("gymnasium"):
    from pcces.envs.gymnasium_adapter import register_all as _register_all

    _register_all()

__all__ = ["Continuous", "Discrete", "Step", "Task", "make", "register_task", "tasks"]
