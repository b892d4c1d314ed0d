"""What Gymnasium is told of our tasks: `pcces/CartSafe-v0` and so on.

Gymnasium 1.0 has no plug-ins any more: it knows what was registered since it was imported. So `import pcces` registers all
there is, with Gymnasium imported before or after; without an import of one's own, `gymnasium.make("pcces:pcces/CartSafe-v0")`
does it. Registering imports neither JAX nor MuJoCo; making an environment does, and says what to install if that is missing.
"""

from __future__ import annotations

import sys

from pcces.envs.registry import ALIASES, BUILT_IN, ROBOTS, SCENES, own_tasks


def register(name: str, max_steps: int, reward_threshold: float | None) -> None:
    """Tell Gymnasium of the task `name`, as `pcces/name`, if it is imported; if not, `register_all` will.

    >>> import gymnasium
    >>> register("CartSafe-v0", 300, 520.0)
    >>> gymnasium.spec("pcces/CartSafe-v0").max_episode_steps
    300
    """
    _tell(name, "gymnasium_adapter:TaskEnv", {"task": name}, max_steps, reward_threshold)


def register_all() -> None:
    """Tell Gymnasium of every task there is. `import pcces` sees to it that this is called once Gymnasium is imported."""
    for name in (*BUILT_IN, *ALIASES):
        entry = BUILT_IN[ALIASES.get(name, name)]
        register(name, entry.max_steps, entry.reward_threshold)
    for task in own_tasks():
        register(task.name, task.max_steps, task.reward_threshold)
    for scene in SCENES:
        _tell(f"{scene}-v0", "safety.env:SafetyEnv", {"scene": scene}, 1000, None)
    for robot in ROBOTS:
        for prefix in ("", "Safety"):  # by Safety-Gymnasium's name, too
            _tell(f"{prefix}{robot}Velocity-v1", "velocity:velocity_env", {"robot": robot}, 1000, None)


def _tell(name: str, where: str, options: dict[str, str], max_steps: int, reward_threshold: float | None) -> None:
    if sys.modules.get("gymnasium") is None:
        return
    from gymnasium.envs import registration

    registration.registry.pop(f"pcces/{name}", None)  # Gymnasium warns when an id is registered twice
    registration.register(
        id=f"pcces/{name}",
        entry_point=f"pcces.envs.{where}",
        kwargs=options,
        max_episode_steps=max_steps,
        reward_threshold=reward_threshold,
    )
