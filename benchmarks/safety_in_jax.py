"""PointButton1 in JAX beside its MuJoCo form: what three drivers earn and violate in whole episodes.

    python benchmarks/safety_in_jax.py --episodes 200

prints the table of docs/safety-tasks.md; about three minutes on one core. Figures are means over episodes and their
standard errors; z is the difference in units of its own standard error.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable

import jax
import numpy as np
from numpy.typing import NDArray

from pcces.envs.safety import SafetyBatch
from pcces.envs.safety.drive import Driver
from pcces.envs.safety.in_jax import point_button

NAME, STEPS = "PointButton1", 1000
TASK = point_button(NAME)
FIGURES = (
    "return", "buttons pressed", "cost", "cost_hazards", "cost_gremlins", "cost_buttons",
    "steps in touch with a button", "steps in touch with a gremlin", "mean distance to the goal button",
    "mean speed", "distance from the middle at the end",
)  # fmt: skip
Policy = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def drivers(rng: np.random.Generator) -> dict[str, Policy]:
    eager, cautious = Driver(TASK.scene, caution=0.0), Driver(TASK.scene, caution=2.0)
    return {
        "random": lambda o: rng.uniform(-1, 1, (len(o), 2)),
        "straight at the goal": lambda o: eager(o) + 0.05 * rng.normal(size=(len(o), 2)),
        "cautious": lambda o: cautious(o) + 0.05 * rng.normal(size=(len(o), 2)),
    }


def in_mujoco(policy: Policy, episodes: int, seed: int) -> NDArray[np.float64]:
    batch = SafetyBatch(NAME, episodes)
    observation, totals = batch.reset(seed=seed), np.zeros((len(FIGURES), episodes))
    for _ in range(STEPS):
        observation, reward, cost, _, _, info = batch.step(policy(observation))
        touch = [batch.touch[kind].any(1) for kind in ("buttons", "gremlins")]
        speed = np.linalg.norm(observation[:, 3:5], axis=1)
        totals += [
            reward, info["goal_met"], cost, info["cost_hazards"], info["cost_gremlins"], info["cost_buttons"], *touch,
            batch.distance[:, batch.slices["goal"].start] / STEPS, speed / STEPS, np.zeros(episodes),
        ]  # fmt: skip
    totals[-1] = np.linalg.norm(batch.agent, axis=1)
    return totals


def in_jax(policy: Policy, episodes: int, seed: int) -> NDArray[np.float64]:
    def step(state, action, key, t):
        before = TASK.parts(state)
        after, reward, cost, _ = TASK.step(state, action, jax.random.fold_in(key, t))
        now = TASK.parts(after)
        touch = TASK.touch(now)
        found, met = TASK.violations(now._replace(clock=before.clock), touch)
        on = [(touch.depth[part] > 0).any() for part in (slice(None, 4), slice(4, None))]
        figures = [
            reward, met, cost[0], found["cost_hazards"], found["cost_gremlins"], found["cost_buttons"], *on,
            TASK.distance(now) / STEPS, jax.numpy.linalg.norm(now.velocity[:2]) / STEPS, 0.0,
        ]  # fmt: skip
        return after, jax.numpy.stack([jax.numpy.float32(f) for f in figures]), TASK.observe(after)

    keys = jax.random.split(jax.random.key(seed), episodes)
    state = jax.jit(jax.vmap(TASK.reset))(keys)
    observation, totals = jax.jit(jax.vmap(TASK.observe))(state), np.zeros((len(FIGURES), episodes))
    stepped = jax.jit(jax.vmap(step, (0, 0, 0, None)))
    for t in range(STEPS):
        action = policy(np.asarray(observation, np.float64)).astype(np.float32)
        state, figures, observation = stepped(state, action, keys, t)
        totals += np.asarray(figures).T
    totals[-1] = np.linalg.norm(state[:, :2], axis=1)
    return totals


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--episodes", type=int, default=200)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    for name in drivers(np.random.default_rng(0)):
        began = time.time()
        theirs = in_mujoco(drivers(np.random.default_rng(1))[name], chosen.episodes, chosen.seed)
        between = time.time()
        ours = in_jax(drivers(np.random.default_rng(2))[name], 2 * chosen.episodes, chosen.seed)
        print(f"\n{name}: MuJoCo {between - began:.0f} s, JAX {time.time() - between:.0f} s for twice the episodes")
        print("| | MuJoCo | JAX | z |\n| --- | --- | --- | --- |")
        for figure, a, b in zip(FIGURES, theirs, ours):
            errors = [x.std(ddof=1) / math.sqrt(len(x)) for x in (a, b)]
            z = (b.mean() - a.mean()) / max(math.hypot(*errors), 1e-12)
            cells = [f"{x.mean():.3g} ± {e:.2g}" for x, e in zip((a, b), errors)]
            print(f"| {figure} | {cells[0]} | {cells[1]} | {z:+.1f} |", flush=True)


if __name__ == "__main__":
    main()
