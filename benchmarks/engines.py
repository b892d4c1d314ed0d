"""Useful environment steps a second on every engine, beside the usual ways to step Gymnasium environments.

    make bench-engines            # the numbers of docs/results/speed.md

An iteration of PCCES with the preset `paper` is timed: population 240, the episodes of its members, of the incumbent and of
the trial point. Only steps of episodes that had not ended count. The vector environments step the same environments, with
the same policy applied to all of them at once, and nothing else: no search, no surrogate gradients.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import platform
import statistics
import sys
import time
import warnings

import numpy as np

from pcces.envs import make
from pcces.envs.simulator import simulator
from pcces.rl.algorithm import PCCES
from pcces.rl.normalizer import Normalizer, identity, normalise
from pcces.rl.policy import Policy, forward
from pcces.rl.population import program, search, start
from pcces.rl.problem import problem_for
from pcces.support.trees import stacked

SETTINGS = dict(
    population=240, hidden=(64, 64), initial_tries=1, last_layer=0.3, warm_up=0, sigma_es0=0.05, sigma0=1e-6,
    sigma_min=0.0, sigma_max=1e-5,
)  # fmt: skip
EPISODES = {
    "CartPole-v1": dict(member_episodes=2, episodes=32, metric_episodes=32),
    "AntBulletEnv-v0": dict(member_episodes=1, episodes=1, metric_episodes=1),  # an iteration takes a minute or two
}


def balancing(policy: Policy, normalizer: Normalizer) -> np.ndarray:
    """A policy that keeps CartPole's pole up for all 500 steps, also when it is disturbed a little."""
    x = np.zeros(policy.size, np.float32)
    layers, _ = policy.unpack(x)
    layers[0].weights[:, 0] = np.array([0.02, 0.05, 0.5, 0.3]) * np.asarray(normalizer.std)
    layers[1].weights[0, 0] = 1
    layers[2].weights[0] = [-40, 40]
    return x


def on_workers(name: str, kind: str, workers: int, balanced: bool, iterations: int) -> dict:
    from pcces.engines.stepwise import StepwiseEngine
    from pcces.rl.worker_arena import WorkerArena

    if kind == "ray":
        from pcces.engines.ray import RayPool as Pool
    else:
        from pcces.engines.processes import LocalPool as Pool
    sim = simulator(name)
    settings = PCCES.settings("paper", **SETTINGS, **EPISODES[name])
    policy = Policy(sim.observation_size, sim.actions, settings.hidden)
    problem, pool = problem_for(sim, settings.mu), functools.partial(Pool, workers=workers)
    arena = WorkerArena(sim, policy, problem, settings.discount, pool, search(settings))
    engine = StepwiseEngine(arena, program(arena, settings), [0])
    unscaled = identity(np.zeros(sim.observation_size, np.float32))
    try:
        if balanced:
            state = stacked([start(balancing(policy, unscaled), unscaled, len(problem.names), settings)])
        else:
            state = engine.start()
        arena.fresh(state.es.x[0], unscaled, 2 * workers, seed=0)  # all is warm
        rates, sent = [], []
        for _ in range(iterations):
            before, began = arena.pool.traffic, time.perf_counter()
            _, metrics = engine.advance(state, 1)
            rates.append(float(metrics["steps"].sum()) / (time.perf_counter() - began))
            sent.append(arena.pool.traffic - before)
    finally:
        arena.close()
    played = settings.population * settings.member_episodes + settings.episodes + settings.metric_episodes
    return {"rate": statistics.median(rates), "best": max(rates), "bytes": statistics.median(sent) / played}


def on_device(name: str, balanced: bool, iterations: int) -> dict:
    from pcces.engines.device import DeviceEngine, configure
    from pcces.rl.device_arena import DeviceArena

    configure()
    task = make(name)
    settings = PCCES.settings("paper", **SETTINGS, **EPISODES[name])
    policy = Policy(task.observation_size, task.actions, settings.hidden)
    arena = DeviceArena(task, policy, problem_for(task, settings.mu), settings.discount)
    engine = DeviceEngine(program(arena, settings), [0])
    state = engine.start()
    if balanced:
        x = balancing(policy, identity(np.zeros(4, np.float32)))
        state = state._replace(es=state.es._replace(x=x[None]), normalizer=state.normalizer._replace(
            mean=np.zeros((1, 4), np.float32), std=np.ones((1, 4), np.float32)))  # fmt: skip
    engine.advance(state, 1)
    rates = []
    for _ in range(iterations):
        began = time.perf_counter()
        _, metrics = engine.advance(state, 1)
        rates.append(float(metrics["steps"].sum()) / (time.perf_counter() - began))
    return {"rate": statistics.median(rates), "best": max(rates), "bytes": None}


def vectorised(name: str, kind: str, balanced: bool, seconds: float, count: int = 16) -> dict:
    """`count` environments stepped together by one policy: SyncVectorEnv in this process, AsyncVectorEnv in a process each."""
    import gymnasium

    if "Bullet" in name:
        import pybullet_envs_gymnasium  # noqa: F401
    sim = simulator(name)
    policy = Policy(sim.observation_size, sim.actions, (64, 64))
    normalizer = identity(np.zeros(sim.observation_size, np.float32))
    x = balancing(policy, normalizer) if balanced else policy.init(
        np.random.default_rng(0).standard_normal(policy.size).astype(np.float32), last=0.3)  # fmt: skip
    layers, log_std = policy.unpack(x)
    rng = np.random.default_rng(0)
    with quiet():
        envs = gymnasium.make_vec(name, num_envs=count, vectorization_mode=kind)
        observations, _ = envs.reset(seed=0)
        done = np.zeros(count, bool)
        useful, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            head = forward(layers, normalise(normalizer, np.asarray(observations, np.float32).T))
            if policy.discrete:
                actions = policy.act(head, log_std, rng.random(count, dtype=np.float32))
            else:
                z = rng.standard_normal((policy.outputs, count), dtype=np.float32)
                actions = np.clip(
                    policy.act(head, log_std, z).T, envs.single_action_space.low, envs.single_action_space.high
                )
            observations, _, terminated, truncated, _ = envs.step(actions)
            useful += int((~done).sum())  # the step after an end only starts the next episode
            done = terminated | truncated
        rate = useful / (time.perf_counter() - began)
        envs.close()
    return {"rate": rate, "best": rate, "bytes": None}


@contextlib.contextmanager
def quiet():
    from pcces.support.streams import quiet as silent

    with silent(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def table(title: str, rows: list, rounds: int = 1) -> None:
    """The rows in turn, `rounds` times over, so that what slows the machine for a while slows all of them."""
    found: dict[str, list[dict]] = {name: [] for name, _ in rows}
    for i in range(rounds):
        for name, run in rows:
            found[name].append(run())
            print(f"{title}, {name}, round {i + 1} of {rounds}: {found[name][-1]['rate']:,.0f}", file=sys.stderr)
    print(f"\n{title}\n\n| | steps/s | best | bytes an episode |\n| --- | ---: | ---: | ---: |")
    for name, some in found.items():
        rate, best = statistics.median(one["rate"] for one in some), max(one["best"] for one in some)
        sent = "" if some[0]["bytes"] is None else f"{statistics.median(one['bytes'] for one in some):,.0f}"
        print(f"| {name} | {rate:,.0f} | {best:,.0f} | {sent} |".replace(",", " "), flush=True)


def others(name: str, balanced: bool, repeats: int, seconds: float) -> list:
    """The rows that every environment has."""
    return [
        *(
            (f"{kind} x{n}", functools.partial(on_workers, name, kind, n, balanced, repeats))
            for kind in ("local", "ray")
            for n in (1, 2)
        ),
        ("SyncVectorEnv of 16", functools.partial(vectorised, name, "sync", balanced, seconds)),
        ("AsyncVectorEnv of 2", functools.partial(vectorised, name, "async", balanced, seconds, 2)),
        ("AsyncVectorEnv of 16", functools.partial(vectorised, name, "async", balanced, seconds)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short measurement of each, to see that all works")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    repeats, seconds = (1, 0.5) if options.quick else (5, 10.0)

    def measured(rows):
        return [(name, run) for name, run in rows if options.only in name]

    print(f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python "
          f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)  # fmt: skip
    titles = {True: "CartPole-v1, balancing (500 steps an episode)", False: "CartPole-v1, random policies"}
    for balanced, title in titles.items():
        rows = [("device", functools.partial(on_device, "CartPole-v1", balanced, repeats))]
        table(title, measured([*rows, *others("CartPole-v1", balanced, repeats, seconds)]))
    rounds = 1 if options.quick else 3
    table("PyBullet Ant, random policies", measured(others("AntBulletEnv-v0", False, 1, seconds)), rounds)


if __name__ == "__main__":
    main()
