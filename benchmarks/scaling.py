"""How an iteration would scale to thousands of workers: a simulation from what was measured on one machine.

    make bench-scaling                          # measures (two minutes), simulates, writes docs/data/scaling.json and docs/img/scaling.png
    python benchmarks/scaling.py --simulate     # from the numbers in docs/data/scaling.json

Measured: seconds and lengths of PyBullet Ant's episodes in a worker, what a message through Ray costs its driver, what
serialising, drawing directions and adding them up costs. Assumed, as there is no cluster here: CORES workers a node, and
a network of BANDWIDTH bytes a second and LATENCY seconds.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import pickle
import platform
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent.parent
DATA, FIGURE = HERE / "docs" / "data" / "scaling.json", HERE / "docs" / "img" / "scaling.png"
CORES, BANDWIDTH, LATENCY = 32, 1.25e9, 50e-6  # 10 Gbit/s
M = 20  # surrogates
SIZES = {10_000: (80, 80), 1_000_000: (970, 970)}  # parameters: hidden layers that have about so many
POPULATION, TRIAL, FANOUT = 20_000, 32, 8
WORKERS = (1, 10, 100, 1_000, 10_000)


# -- what is measured --------------------------------------------------------------------------------------------------


def seconds(function, repeats: int = 5) -> float:
    """The median time of a call."""
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        found.append(time.perf_counter() - began)
    return float(np.median(found))


def episodes(hidden: tuple[int, ...], count: int) -> tuple[list[int], list[float]]:
    """Lengths and seconds of a population's episodes, played as a worker plays them."""
    from pcces.engines.pool import Watchdog
    from pcces.envs.simulator import simulator
    from pcces.rl.normalizer import identity
    from pcces.rl.policy import Policy
    from pcces.rl.worker import EpisodePlayer
    from pcces.support.streams import quiet

    sim = simulator("AntBulletEnv-v0")
    policy = Policy(sim.observation_size, sim.actions, hidden)
    with quiet():
        env = sim.make()
        player = EpisodePlayer(policy, sim, 0.99, Watchdog(None))
        rng = np.random.default_rng(0)
        x0 = policy.init(rng.standard_normal(policy.size, dtype=np.float32), -1.1, 0.3)
        normalizer = identity(np.zeros(sim.observation_size, np.float32))
        lengths, times = [], []
        for seed in range(count + 1):
            x = x0 + rng.standard_normal(policy.size, dtype=np.float32) / np.float32(policy.size**0.5)
            began = time.perf_counter()
            outcome, _ = player.play(env, x, normalizer, seed, greedy=False)
            times.append(time.perf_counter() - began)
            lengths.append(int(outcome.length[0]))
    return lengths[1:], times[1:]  # the first one warms up


class Echo:
    """A worker that answers with a vector."""

    def share(self, value):
        self.value = value

    def run(self, task):
        return np.zeros(task, np.float32)

    def parts(self, task):
        return [task]

    def join(self, results):
        return results[0]


def messages() -> dict:
    """Driver seconds a chunk through Ray: an empty answer, and one with a vector of n numbers."""
    from pcces.engines.ray import RayPool

    found = {}
    with RayPool(Echo, workers=2) as pool:
        pool.share(0)
        pool.map([1] * 50)
        for n, count in ((1, 400), (10_000, 400), (1_000_000, 40)):
            found[str(n)] = seconds(lambda n=n, count=count: pool.map([n] * count), 3) / count
    return found


def vectors(n: int) -> dict:
    """What one direction, one more vector in a sum, and the shared value cost."""
    from pcces.rl.worker import member_normals

    rng = np.random.default_rng(0)
    basis = rng.standard_normal((M, n), dtype=np.float32)
    total, one = np.zeros(n, np.float32), rng.standard_normal(n, dtype=np.float32)
    data = pickle.dumps((one, basis), protocol=pickle.HIGHEST_PROTOCOL)

    def direction():
        z = member_normals(0, 1, 2, n + M)
        return np.float32(0.7) * z[:n] + z[n:] @ basis

    return {
        "direction": seconds(direction),
        "add": seconds(lambda: np.add(total, one, out=total)),
        "load": seconds(lambda: pickle.loads(data)),
        "dump": seconds(lambda: pickle.dumps((one, basis), protocol=pickle.HIGHEST_PROTOCOL)),
        "basis": seconds(lambda: basis @ basis.T, 3),
    }


def measure() -> dict:
    data: dict = {
        "machine": f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"
    }
    data["message"] = messages()
    for n, hidden in SIZES.items():
        lengths, times = episodes(hidden, 120 if n < 100_000 else 40)
        data[str(n)] = {"lengths": lengths, "seconds": [round(t, 5) for t in times], **vectors(n)}
    return data


# -- what is simulated -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """How an iteration is spread out."""

    name: str
    chunk: int = 8  # episodes a task
    archive: bool = True  # whether all of U_k travels, or only the newest surrogate and an m x m matrix
    tree: bool = False  # values are handed on from node to node, and sums are added up on the way back
    shared_sums: bool = False  # workers add up their own share of d_k from everyone's fitness
    cut: float = 1.0  # the share of the episodes that the direction waits for


TODAY = Design("today")
DESIGNS = (
    TODAY,
    Design("+ new surrogate only", archive=False),
    Design("+ sums over a tree", archive=False, tree=True, shared_sums=True),
    Design("+ single episodes", chunk=1, archive=False, tree=True, shared_sums=True),
    Design("+ no wait for the last 2 %", chunk=1, archive=False, tree=True, shared_sums=True, cut=0.98),
)


@dataclass
class Iteration:
    """Where the time of an iteration went."""

    broadcast: float
    play: float  # from the first task to the last answer that is waited for
    direction: float
    trial: float
    busy: float  # seconds of episodes that were played, over all workers

    @property
    def total(self) -> float:
        return self.broadcast + self.play + self.direction + self.trial


def depth(nodes: int) -> int:
    """Levels of a tree in which each node serves FANOUT others."""
    levels, reached = 0, 1
    while reached < nodes:
        levels, reached = levels + 1, reached * FANOUT
    return levels


def spread(data: float, nodes: int, tree: bool) -> float:
    """Until a value has reached every node: one after the other, or handed on piece by piece."""
    if not tree:
        return LATENCY + nodes * data / BANDWIDTH
    return depth(nodes) * LATENCY * 20 + FANOUT * data / BANDWIDTH * (nodes > 1)


def play(times: np.ndarray, design: Design, workers: int, message: float, answer: float) -> float:
    """Seconds until enough of the answers are in, handing tasks out as workers become free.

    One driver sends and receives, one message after the other; with a tree a node's own dispatcher does it for its
    workers, and the driver sees one message a node.
    """
    tasks = [times[i : i + design.chunk].sum() for i in range(0, len(times), design.chunk)]
    heads = max(1, -(-workers // CORES)) if design.tree else 1
    groups = [tasks[i::heads] for i in range(heads)]
    ends: list[float] = []
    for number, group in enumerate(groups):
        crew = len(range(number, workers, heads)) if heads > 1 else workers
        free, running, clock = crew, [], 0.0
        for task in group:
            if not free:
                done = heapq.heappop(running)
                clock = max(clock, done) + answer
                ends.append(clock)
                free += 1
            clock += message
            free -= 1
            heapq.heappush(running, clock + LATENCY + task)
        while running:
            clock = max(clock, heapq.heappop(running)) + answer
            ends.append(clock)
    ends.sort()
    needed = max(1, int(np.ceil(design.cut * len(ends))))
    return ends[needed - 1] + (heads > 1) * depth(heads) * LATENCY * 20


def simulate(data: dict, n: int, workers: int, design: Design, seed: int = 0) -> Iteration:
    """One iteration of POPULATION members, one episode each, and TRIAL episodes of the trial point."""
    rng = np.random.default_rng(seed)
    here, message = data[str(n)], data["message"]["1"]
    measured = np.array(here["seconds"])
    nodes = max(1, -(-workers // CORES))
    vector = 4.0 * n
    value = vector * (1 + (M if design.archive else 1))
    broadcast = here["dump"] * value / (vector * (1 + M)) + spread(value, nodes, design.tree)
    broadcast += here["load"] * value / (vector * (1 + M))
    per_answer = data["message"][str(n)] - message + here["add"]  # a gradient comes with each answer
    if not design.tree:
        per_answer += vector / BANDWIDTH * (nodes > 1)
    times = rng.choice(measured, POPULATION) + here["direction"]
    finish = play(times, design, workers, message / 2, message / 2 + per_answer)
    if design.tree:
        finish += depth(nodes) * (vector / BANDWIDTH + FANOUT * here["add"])
    if design.shared_sums:  # fitness out, partial sums back
        share = -(-POPULATION // 2 // workers)
        direction = share * (here["direction"] + here["add"]) + 2 * spread(vector, nodes, True) + here["basis"]
    else:
        direction = POPULATION // 2 * (here["direction"] + here["add"]) + here["basis"]
    shared = here["load"] / (1 + M) + spread(vector, nodes, design.tree)
    trial = rng.choice(measured, TRIAL)
    last = play(trial, Design("", chunk=1), min(workers, TRIAL), message / 2, message / 2)
    return Iteration(broadcast, finish, direction, shared + last, design.cut * times.sum() + trial.sum())


# -- what comes out ----------------------------------------------------------------------------------------------------


def spaced(number: float, digits: int = 0) -> str:
    return f"{number:,.{digits}f}".replace(",", " ")


def cell(result: Iteration, workers: int) -> str:
    useful = result.busy / workers / result.total
    return f"{spaced(result.total, 1)} s ({100 * useful:.0f} %)"


def tables(data: dict) -> None:
    for n in SIZES:
        print(
            f"\nn = {spaced(n)}: seconds an iteration, and the share of the workers' time in which episodes were played\n"
        )
        print("| workers | " + " | ".join(d.name for d in DESIGNS) + " |")
        print("| ---: |" + " ---: |" * len(DESIGNS))
        for workers in WORKERS:
            found = [simulate(data, n, workers, design) for design in DESIGNS]
            print(f"| {spaced(workers)} | " + " | ".join(cell(r, workers) for r in found) + " |")
        print("\n| seconds | broadcast | episodes | direction | trial |\n| --- | ---: | ---: | ---: | ---: |")
        for workers in WORKERS[-2:]:
            for design in (DESIGNS[0], DESIGNS[-2]):
                r = simulate(data, n, workers, design)
                parts = " | ".join(f"{t:.2f}" for t in (r.broadcast, r.play, r.direction, r.trial))
                print(f"| {spaced(workers)} workers, {design.name} | {parts} |")


def draw(data: dict) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    crews = [1, 3, 10, 32, 100, 320, 1_000, 3_200, 10_000]
    for axis, n in zip(axes, SIZES):
        ideal = simulate(data, n, 1, TODAY).busy
        axis.plot(crews, [ideal / w for w in crews], color="0.7", linestyle="--", label="episodes alone, shared evenly")
        for design in DESIGNS:
            axis.plot(crews, [simulate(data, n, w, design).total for w in crews], label=design.name, marker=".")
        axis.set(xscale="log", yscale="log", xlabel="workers", title=f"n = {spaced(n)}")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds an iteration")
    axes[1].legend(fontsize=7)
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulate", action="store_true", help="from what was measured before")
    if not parser.parse_args().simulate:
        DATA.parent.mkdir(exist_ok=True)
        DATA.write_text(json.dumps(measure(), indent=1))
    data = json.loads(DATA.read_text())
    tables(data)
    draw(data)


if __name__ == "__main__":
    main()
