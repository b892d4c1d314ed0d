"""How many steps a second the navigation tasks play in JAX, whole episodes with a policy: a markdown table. Run by `make bench-safety-device`.

The median of some rounds, each a rollout of so many episodes of 1000 steps; starting the episodes counts, compiling does not.
"""

from __future__ import annotations

import argparse
import statistics
import time

import jax
import jax.numpy as jnp

from pcces.engines.keys import key
from pcces.envs.lookup import resolve
from pcces.rl.normalizer import identity
from pcces.rl.policy import Policy
from pcces.rl.rollout import rollout

TASKS = ("PointGoal1-v0", "PointButton1-v0", "CarGoal1-v0")


def rate(name: str, episodes: int, rounds: int) -> tuple[float, float]:
    """Steps a second, and seconds until the first rollout was there."""
    task, _ = resolve(name, "device")
    policy = Policy(task.observation_size, task.actions, (10, 10))
    x = policy.init(jax.random.normal(key(0), (policy.size,)))
    start = identity(jnp.zeros(task.observation_size))
    play = jax.jit(lambda keys: rollout(task, policy, x, start, keys)[0])

    def once(seed: int) -> float:
        keys = jax.block_until_ready(jax.random.split(key(seed), episodes))
        began = time.perf_counter()
        jax.block_until_ready(play(keys))
        return time.perf_counter() - began

    first = once(0)
    return episodes * task.max_steps / statistics.median(once(1 + i) for i in range(rounds)), first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--episodes", type=int, nargs="+", default=[256, 1024], help="at once")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}\n")
    print("| | episodes at once | steps/s | first time, compiled |\n| --- | --- | --- | --- |")
    for name in TASKS:
        for episodes in options.episodes:
            steps, first = rate(name, episodes, options.rounds)
            print(f"| {name} | {episodes:,} | {steps:,.0f} | {first:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
