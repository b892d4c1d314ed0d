"""Making environments by their Gymnasium ids: of ours, of packages we know, and of whatever else is registered."""

from __future__ import annotations

import contextlib
import ctypes.util
import importlib
import os
import re
import sys
from typing import Any

from pcces.envs.registry import UnknownTaskError, make, tasks
from pcces.support.streams import quiet
from pcces.support.text import suggestion

PACKAGES = {"BulletEnv": ("pybullet_envs_gymnasium", "bullet")}  # in an id: what registers it, and the extra for that


def make_gymnasium(name: Any, **options: Any) -> Any:
    """`gymnasium.make`, with errors that say what to do, and without the wrappers that only count and check.

    Episodes are cut by whoever plays them; Gymnasium's checks cost more than a step of a small environment, and would
    not let a six-tuple through.
    """
    import gymnasium

    import pcces.envs  # noqa: F401  (registers pcces/...)

    if options.get("render_mode") is not None:
        draw_without_a_display()
    chatters = find_id(name) if isinstance(name, str) else _import_package(name.id)
    with quiet() if chatters else contextlib.nullcontext():
        try:
            env = gymnasium.make(name, disable_env_checker=True, **options)
            if chatters:
                env.reset(seed=0)
        except gymnasium.error.DependencyNotInstalled as error:
            raise ImportError(f"{name} needs a package that is not installed: {error}") from error
        except gymnasium.error.Error as error:  # no such id, or none that could be
            raise unknown(name) from error
    return bare(env)


def find_id(name: str) -> bool:
    """Import what registers an id, and say whether that is a package that chatters; an error if Gymnasium does not know it."""
    import gymnasium

    import pcces.envs  # noqa: F401  (registers pcces/...)

    module, _, own = name.rpartition(":")
    chatters = _import_package(own)
    if module:
        importlib.import_module(module)
    if own not in gymnasium.registry:  # one without its version, say
        raise unknown(name)
    return chatters


def bare(env: Any) -> Any:
    """An environment without the wrappers around it that only count and check."""
    from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

    while isinstance(env, TimeLimit | OrderEnforcing | PassiveEnvChecker):
        env = env.env
    return env


def unknown(name: Any) -> UnknownTaskError:
    """The error that says that there is no such task, and which might be meant."""
    import gymnasium

    ours = tasks()
    known = [*ours, *(each for each in gymnasium.registry if each.removeprefix("pcces/") not in ours)]
    hint = suggestion(
        str(name).rpartition(":")[2], known, 3, otherwise="`pcces envs` lists ours, gymnasium.registry all others"
    )
    return UnknownTaskError(f"unknown task {name!r}; {hint}")


def _import_package(name: str) -> bool:
    """Import what registers the id, if we know it; whether that is a package that chatters."""
    import gymnasium

    for part, (package, extra) in PACKAGES.items():
        if part in name:
            if name not in gymnasium.registry:
                try:
                    with quiet():
                        importlib.import_module(package)
                except ImportError as error:
                    raise ImportError(
                        f"{name} needs the extra '{extra}': pip install 'pcces[{extra}]' ({error})"
                    ) from error
            return True
    return False


def draw_without_a_display() -> None:
    """Where there is no display, and nobody said how MuJoCo is to draw (MUJOCO_GL), let it use what is installed for that.

    Left to itself it tries a window first, and then it is too late for anything else.
    """
    shown = any(os.environ.get(name) for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"))
    if shown or not sys.platform.startswith("linux"):
        return
    for library, value in (("EGL", "egl"), ("OSMesa", "osmesa")):
        if ctypes.util.find_library(library):
            os.environ["MUJOCO_GL"] = value
            _choose_again()
            return


def _choose_again() -> None:
    """Have MuJoCo choose how to draw once more: it does when it is imported, and whoever has a task of it has done that."""
    for module in ("mujoco.rendering.classic.gl_context", "mujoco.gl_context"):  # the first one in newer versions
        if (chooser := sys.modules.get(module)) is not None:
            with contextlib.suppress(Exception):  # it cannot draw this way either, and says so when it has to
                importlib.reload(chooser)
                sys.modules["mujoco"].GLContext = chooser.GLContext  # type: ignore[attr-defined]


def gymnasium_id(name: str) -> str:
    """The Gymnasium id of a task: Gymnasium's own environment of that name if it needs no costs, otherwise ours.

    >>> gymnasium_id("CartPole-v1"), gymnasium_id("CartSafe-v0"), gymnasium_id("Ant-v5")
    ('CartPole-v1', 'pcces/CartSafe-v0', 'Ant-v5')
    """
    import gymnasium

    if name not in tasks() or (name in gymnasium.registry and not make(name).cost_names):
        return name
    return f"pcces/{name}"


def check_options(name: str, options: Any) -> None:
    """Check that the options in a run folder name no module that is not imported yet: the environment might import it."""
    parts = options.values() if isinstance(options, dict) else options if isinstance(options, list) else ()
    for part in parts:
        module = re.match(r"\s*(\w+(?:\.\w+)*)\s*:", part) if isinstance(part, str) else None
        if module is not None and module[1] not in sys.modules:
            raise UnknownTaskError(
                f"{name} needs {part!r}, and a run folder imports no modules: import {module[1]} first"
            )
        check_options(name, part)
