"""Functions and classes on their way to other processes: by name where those can import them, and by value where not."""

from __future__ import annotations

import pickle
import pickletools
from typing import Any

MAIN = "__main__"


def needs_main(data: bytes) -> bool:
    """Whether a pickle names something of the main script, which only a process that runs it can find.

    >>> needs_main(pickle.dumps("__main__ is a word here")), needs_main(pickle.dumps(len))
    (False, False)
    """
    return any(arg == MAIN for _, arg, _ in pickletools.genops(data))


class ByValue:
    """Something as it is, and not as a name to look up elsewhere."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def back(self) -> Any:
        """What it was."""
        return pickle.loads(self.data)


def sendable(value: Any) -> Any:
    """The same, or a `ByValue` of it if other processes could not import it: a lambda, what the main script defines.

    >>> sendable(len) is len, sendable(lambda x: 2 * x).back()(3)
    (True, 6)
    """
    try:
        if not needs_main(pickle.dumps(value)):
            return value
    except Exception:  # a lambda, or something defined inside a function
        pass
    try:
        import cloudpickle

        return ByValue(cloudpickle.dumps(value))
    except Exception:  # whoever sends it says what is wrong
        return value


def received(value: Any) -> Any:
    """What `sendable` was given."""
    return value.back() if isinstance(value, ByValue) else value
