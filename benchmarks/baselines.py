"""What docs/results/baselines.md reports: the baselines' step sizes tuned, and their results beside other libraries'.

    make bench-baselines                                       # tune, evosax, ppo
    make bench-omnisafe                                        # PPO-Lagrangian and CPO beside OmniSafe's
    python benchmarks/baselines.py speed --epochs 5

Every part appends one JSON line a run to out/baselines.jsonl, leaves out what the file already holds, and ends with all
there is of it as a Markdown table. Seeds from 1000 on are for tuning, those from 0 on for results. All seeds of an entry
are one compiled program.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

OUT = Path("out/baselines.jsonl")
GRID = (0.1, 0.01, 0.001, 0.05)  # the paper's step sizes
SAFE = ("SignCartSafe-v0", "MountainCarContinuousSafe-v0")
FREE = (-math.inf, math.inf)  # entropy bounds: the baselines know none
PLAIN = {"initial_tries": 1, "last_layer": 1.0}  # one random policy to start from


# -- records -----------------------------------------------------------------------------------------------------------


class Records:
    """The lines of the file, by part and entry."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def missing(self, part: str, entry: str, seeds: Iterable[int]) -> list[int]:
        there = {line["seed"] for line in self.lines if (line["part"], line["entry"]) == (part, entry)}
        return [seed for seed in seeds if seed not in there]

    def add(self, lines: list[dict[str, Any]]) -> None:
        self.lines += lines
        with self.path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def of(self, part: str) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for line in self.lines:
            if line["part"] == part:
                found.setdefault(line["entry"], []).append(line)
        return found


def say(*words: Any) -> None:
    print(*words, file=sys.stderr, flush=True)


def thinned(values: Any, points: int = 60) -> list[float]:
    """A curve as means over equal parts."""
    return [round(float(np.mean(part)), 4) for part in np.array_split(np.asarray(values), min(points, len(values)))]


# -- training without a folder or a certificate --------------------------------------------------------------------------


def curves(algorithm: str, task_name: str, seeds: list[int], iterations: int, **given: Any) -> dict[str, np.ndarray]:
    """Metrics (seeds, iterations) of a bare training."""
    from pcces.policies import prepare

    engine = prepare(task_name, seeds, algorithm, iterations=iterations, **given).engine
    state, parts, done, begin = engine.start(), [], 0, time.perf_counter()
    while done < iterations:
        count = min(engine.chunk, iterations - done)
        state, metrics = engine.advance(state, count)
        kept = {name: metrics[name] for name in ("return", "costs", "length", "steps", "entropy")}
        parts.append(kept)
        done += count
        if done % 50 < engine.chunk or done == iterations:
            returns = metrics["return"].mean(1)
            say(
                f"  {algorithm} {task_name} {done}/{iterations}: return {returns.mean():.1f}, {time.perf_counter() - begin:.0f} s"
            )
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}


def bare(
    records: Records,
    part: str,
    entry: str,
    seeds: Iterable[int],
    algorithm: str,
    task: str,
    iterations: int,
    **given: Any,
) -> None:
    """Run what is missing of an entry, and note it."""
    seeds = records.missing(part, entry, seeds)
    if not seeds:
        return
    say(f"{part}: {entry}, seeds {seeds[0]} to {seeds[-1]}")
    start = time.perf_counter()
    m = curves(algorithm, task, seeds, iterations, **given)
    seconds = (time.perf_counter() - start) / len(seeds)
    last = max(1, iterations // 20)
    records.add(
        [
            {
                "part": part,
                "entry": entry,
                "seed": seed,
                "return": float(m["return"][i, -last:].mean()),
                "best": float(m["return"][i].max()),
                "costs": [float(c) for c in m["costs"][i, -last:].mean(0)],
                "steps": float(m["steps"][i].sum()),
                "seconds": seconds,
                "curve": thinned(m["return"][i]),
                "cost_curve": [thinned(c) for c in m["costs"][i].T],
            }
            for i, seed in enumerate(seeds)
        ]
    )


# -- the parts ---------------------------------------------------------------------------------------------------------


def tune(records: Records, args: argparse.Namespace) -> None:
    """The step size of OpenES and ASEBO on the paper's grid, three seeds; sigma in both readings."""
    for algorithm in ("openes", "asebo"):
        for task in ("CartPole-v0", "Pendulum-v1", "MountainCarContinuous-v0", "CartSafe-v0"):
            for step_size in GRID:
                entry = f"{algorithm} {task} step_size={step_size}"
                bare(records, "tune", entry, range(1000, 1003), algorithm, task, 150, step_size=step_size)
    for sigma in (1.0, 0.1, 0.02):
        for step_size in (0.1, 0.01):
            entry = f"openes Pendulum-v1 step_size={step_size} sigma={sigma} of a coordinate"
            given = dict(step_size=step_size, sigma=sigma, sigma_of="coordinate")
            bare(records, "tune", entry, range(1000, 1003), "openes", "Pendulum-v1", 150, **given)


EVOSAX = {"CartPole-v0": (0.1, 0.05, 40), "Pendulum-v1": (0.1, 0.05, 100)}  # sigma, Adam's step size, iterations


def evosax(records: Records, args: argparse.Namespace) -> None:
    """OpenES beside evosax's: the same start, network, sigma, step size, population, episodes. Needs evosax installed."""
    for task, (sigma, step_size, iterations) in EVOSAX.items():
        seeds = range(args.seeds)
        given = dict(
            sigma=sigma, sigma_of="coordinate", step_size=step_size, l2=0.0, normalise=False, member_episodes=2, **PLAIN
        )
        bare(records, "evosax", f"pcces {task}", seeds, "openes", task, iterations, **given)
        missing = records.missing("evosax", f"evosax {task}", seeds)
        if missing:
            say(f"evosax: {task}")
            returns = with_evosax(task, missing, iterations, sigma, step_size)
            last = max(1, iterations // 20)
            records.add(
                [
                    {
                        "part": "evosax",
                        "entry": f"evosax {task}",
                        "seed": seed,
                        "return": float(returns[i, -last:].mean()),
                        "curve": thinned(returns[i]),
                    }
                    for i, seed in enumerate(missing)
                ]
            )


def with_evosax(task_name: str, seeds: list[int], iterations: int, sigma: float, step_size: float) -> np.ndarray:
    """Returns (seeds, iterations) of fresh episodes of evosax's mean, on pcces's episodes."""
    import jax
    import jax.numpy as jnp
    import optax
    from evosax.algorithms import Open_ES

    from pcces.baselines import openes
    from pcces.engines.keys import key
    from pcces.envs import make
    from pcces.rl.device_arena import DeviceArena
    from pcces.rl.policy import Policy
    from pcces.rl.problem import problem_for
    from pcces.rl.rollout import rollout
    from pcces.rl.settings import Start

    task, settings = make(task_name), openes.OpenESSettings(normalise=False, **PLAIN)
    policy = Policy(task.observation_size, task.actions, settings.hidden)
    problem = problem_for(task, 0.0, entropy_bounds=FREE)
    lam, repeats, looks = settings.population, settings.member_episodes, settings.metric_episodes
    es = Open_ES(
        lam, jnp.zeros(policy.size), optimizer=optax.adam(step_size), std_schedule=optax.constant_schedule(sigma)
    )
    params = es.default_params

    @jax.jit
    def train(x: Any, normalizer: Any, seed_key: Any) -> Any:
        def body(state: Any, k: Any) -> tuple:
            ask, tell, play, own = jax.random.split(jax.random.fold_in(jax.random.key(0), k + 10_000 * seed_key), 4)
            points, state = es.ask(ask, state, params)
            keys = jax.random.split(play, lam // 2 * repeats)
            columns = jnp.repeat(points, repeats, axis=0).T
            mean = jnp.broadcast_to(state.mean[:, None], (policy.size, looks))
            everyone = jnp.concatenate([columns, mean], axis=1)
            outcome, _ = rollout(
                task, policy, everyone, normalizer, jnp.concatenate([keys, keys, jax.random.split(own, looks)])
            )
            f = -outcome.returns[: lam * repeats].reshape(lam, repeats).mean(1)
            state, _ = es.tell(tell, points, f, state, params)
            return state, outcome.returns[lam * repeats :].mean()

        state = es.init(jax.random.key(1), x, params)
        return jax.lax.scan(body, state, jnp.arange(iterations))[1]

    arena = DeviceArena(task, policy, problem, settings.discount)
    returns = []
    for seed in seeds:
        x, normalizer, _ = arena.first(Start.of(settings), key(seed))
        returns.append(np.asarray(train(x, normalizer, seed)))
    return np.stack(returns)


PPO = {"CartPole-v0": 30, "Pendulum-v1": 40}  # epochs


def ppo(records: Records, args: argparse.Namespace) -> None:
    """PPO without multipliers solves CartPole (200) and reaches -250 on Pendulum; TRPO (CPO without limits) beside it."""
    for task, iterations in PPO.items():
        bare(records, "ppo", f"PPO {task}", range(args.seeds), "ppo-lag", task, iterations, lagrangian=False)
    for task, iterations in PPO.items():
        bare(records, "ppo", f"TRPO {task}", range(args.seeds), "cpo", task, iterations, constrained=False)


def omnisafe(records: Records, args: argparse.Namespace) -> None:
    """PPO-Lagrangian and CPO where OmniSafe ran (omnisafe_peer.py, which writes out/omnisafe.jsonl)."""
    path = OUT.with_name("omnisafe.jsonl")
    if path.exists():
        for r in map(json.loads, path.read_text().splitlines()):
            entry = f"omnisafe {r['algorithm']} {r['task']}"
            if records.missing("omnisafe", entry, [r["seed"]]):
                last = max(1, len(r["return"]) // 20)
                record = {name: r[name] for name in ("seed", "seconds", "steps")}
                record |= {"part": "omnisafe", "entry": entry, "curve": r["return"], "cost_curve": [r["cost"]]}
                record |= {"return": float(np.mean(r["return"][-last:])), "costs": [float(np.mean(r["cost"][-last:]))]}
                records.add([record])
    register_sign_cart()
    for task in args.tasks:
        for algorithm in ("ppo-lag", "cpo"):
            entry = f"pcces {algorithm} {task}"
            bare(records, "omnisafe", entry, range(args.seeds), algorithm, task, args.epochs)


def register_sign_cart() -> None:
    """CartSafe for libraries without discrete actions: the sign of a number says which way to push."""
    from pcces.envs import register_task
    from pcces.envs.cartpole import CartSafe
    from pcces.envs.task import Continuous

    class SignCartSafe(CartSafe):
        name = "SignCartSafe-v0"
        actions = Continuous(-1.0, 1.0)  # type: ignore[assignment]

        def step(self, state: Any, action: Any, key: Any) -> Any:
            return super().step(state, action[0] > 0, key)

    register_task(SignCartSafe)


def speed(records: Records, args: argparse.Namespace) -> None:
    """CPU seconds of an epoch of 30 000 steps on one core, and how many of them its episodes take."""
    import jax

    from pcces.engines.device import alone
    from pcces.engines.keys import key
    from pcces.policies import find_algorithm, prepare
    from pcces.rl.epochs import epoch_of

    jax.config.update("jax_num_cpu_devices", 1)
    print("| | | epoch | of it episodes | compiling |\n| --- | --- | --- | --- | --- |")
    for task in ("CartSafe-v0", "MountainCarContinuousSafe-v0"):
        for algorithm in ("ppo-lag", "rcpo", "cpo"):
            begin = time.process_time()
            training = prepare(task, [1000], algorithm)
            engine, arena = training.engine, training.arena
            count = find_algorithm(algorithm).from_dict(training.runs[0].config["settings"]).episodes(arena.task)
            state, _ = engine.advance(engine.start(), 1)
            compiling = time.process_time() - begin

            def play(x: Any, normalizer: Any, seed: int, arena: Any = arena, count: int = count) -> Any:
                columns, outcome, _ = arena.epoch(x, normalizer, key(seed), count)
                return epoch_of(normalizer, *columns), outcome

            one, play = jax.tree.map(lambda a: a[0], state), alone(play)

            def epoch(i: int, engine: Any = engine, state: Any = state) -> None:
                engine.advance(state, 1)

            def episodes(i: int, one: Any = one, play: Any = play) -> None:
                jax.block_until_ready(play(one.x, one.normalizer, i))

            episodes(0)
            took = []
            for what in (epoch, episodes):
                begin = time.process_time()
                for i in range(args.epochs):
                    what(i)
                took.append((time.process_time() - begin) / args.epochs)
            print(f"| {task} | {algorithm} | {took[0]:.2f} s | {took[1]:.2f} s | {compiling:.0f} s |", flush=True)


# -- tables ------------------------------------------------------------------------------------------------------------


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values):.1f}"


def table(records: Records, part: str) -> None:
    """What there is of a part, as Markdown."""
    print("| | seeds | return, last twentieth | worst seed | cost | steps a seed | s a seed |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for entry, lines in records.of(part).items():
        returns = [line["return"] for line in lines]
        costs = [line["costs"][0] for line in lines if line.get("costs")]
        steps = f"{np.mean([line['steps'] for line in lines]) / 1e6:.2f} M" if "steps" in lines[0] else "-"
        seconds = f"{np.mean([line['seconds'] for line in lines]):.0f}" if "seconds" in lines[0] else "-"
        print(
            f"| {entry} | {len(lines)} | {spread(returns)} | {min(returns):.1f} | {spread(costs) if costs else '-'} | {steps} | {seconds} |"
        )


PARTS = {"tune": tune, "evosax": evosax, "ppo": ppo, "omnisafe": omnisafe, "speed": speed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=20, help="of the comparison with OmniSafe, and of speed")
    parser.add_argument("--tasks", nargs="*", default=list(SAFE), help="of the comparison with OmniSafe")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    records = Records(args.out)
    PARTS[args.part](records, args)
    if args.part != "speed":
        table(records, args.part)


if __name__ == "__main__":
    main()
