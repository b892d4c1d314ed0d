"""Something to be done once a module is imported, by whomever and whenever that is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def after_import(module: str, then: Callable[[], Any]) -> None:
    """Call `then` when the module has been imported: now if it is imported already.

    >>> after_import("math", lambda: print("math is there"))
    math is there
    """
    if sys.modules.get(module) is not None:
        then()
    else:
        sys.meta_path.insert(0, _Waiting(module, then))


class _Waiting:
    """Finds a module as Python would without it, and has something done when that is loaded."""

    def __init__(self, module: str, then: Callable[[], Any]):
        self.module, self.then = module, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where the module is, if it is the one that is waited for."""
        if fullname != self.module:
            return None
        for finder in list(sys.meta_path):
            if finder is not self and (spec := finder.find_spec(fullname, path, target)) is not None:
                self._watch(spec.loader)
                return spec
        return None

    def _watch(self, loader: Any) -> None:
        load = getattr(loader, "exec_module", None)
        if load is None:
            return

        def load_and_then(module: ModuleType) -> None:
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self.then()

        loader.exec_module = load_and_then
