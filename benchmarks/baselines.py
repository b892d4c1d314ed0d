"""What docs/baselines.md reports: the baselines tuned, beside other libraries, and beside PCCES.

    make bench-baselines                                       # tune, evosax, ppo, omnisafe: sanity, about an hour
    python benchmarks/baselines.py study safe --seeds 10       # all six algorithms on the two tasks with costs
    python benchmarks/baselines.py study gym --population 40   # PCCES, OpenES, ASEBO on six Gym tasks
    python benchmarks/baselines.py table                       # everything there is, as Markdown

Every part appends one JSON line a run to out/baselines.jsonl, and leaves out what the file already holds. Seeds from
1000 on are for tuning, those from 0 on for results. All seeds of an entry are one compiled program.
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
GYM = ("CartPole-v0", "Pendulum-v1", "MountainCarContinuous-v0", "MountainCar-v0", "Acrobot-v1", "CartPole-v1")
SAFE = {"CartSafe-v0": 30.0, "MountainCarContinuousSafe-v0": 10.0}
FREE = (-math.inf, math.inf)  # entropy bounds: the baselines know none
# Evolution strategies start from the best of 1024 random policies, as PCCES does. The others start from the best of 64
# on the mountain car, where a policy that never saw the flag learns to stand still.
START = {"initial_tries": 1024, "last_layer": 2.0}
SEES_THE_FLAG = {"initial_tries": 64, "last_layer": 2.0}
CHANGES: dict[tuple[str, str], dict[str, Any]] = {
    (algorithm, "MountainCarContinuousSafe-v0"): SEES_THE_FLAG for algorithm in ("ppo-lag", "rcpo", "cpo")
}


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
    from pcces.baselines import ALGORITHMS
    from pcces.engines.device import DeviceEngine, configure
    from pcces.envs import make
    from pcces.rl.policy import Policy
    from pcces.rl.problem import problem_for

    configure()
    task, found = make(task_name), ALGORITHMS[algorithm]
    settings = found.settings(iterations=iterations, **given)
    policy = Policy(task.observation_size, task.actions, settings.hidden)
    problem = problem_for(task, settings.mu, entropy_bounds=FREE)
    engine = DeviceEngine(task, policy, found.program(task, policy, problem, settings), seeds)
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
        for task in ("CartPole-v0", "Pendulum-v1", "MountainCarContinuous-v0"):
            for step_size in GRID:
                entry = f"{algorithm} {task} step_size={step_size}"
                bare(records, "tune", entry, range(1000, 1003), algorithm, task, 150, step_size=step_size, **START)
    for sigma in (1.0, 0.1, 0.02):
        for step_size in (0.1, 0.01):
            entry = f"openes Pendulum-v1 step_size={step_size} sigma={sigma} of a coordinate"
            given = dict(step_size=step_size, sigma=sigma, sigma_of="coordinate", **START)
            bare(records, "tune", entry, range(1000, 1003), "openes", "Pendulum-v1", 150, **given)


EVOSAX = {"CartPole-v0": (0.1, 0.05, 40), "Pendulum-v1": (0.1, 0.05, 100)}  # sigma, Adam's step size, iterations


def evosax(records: Records, args: argparse.Namespace) -> None:
    """OpenES beside evosax's: the same start, network, sigma, step size, population, episodes. Needs evosax installed."""
    for task, (sigma, step_size, iterations) in EVOSAX.items():
        seeds = range(args.seeds)
        given = dict(
            sigma=sigma, sigma_of="coordinate", step_size=step_size, l2=0.0, normalise=False, member_episodes=2
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

    from pcces.baselines import openes, start
    from pcces.envs import make
    from pcces.rl.keys import key
    from pcces.rl.policy import Policy
    from pcces.rl.problem import problem_for
    from pcces.rl.rollout import rollout

    task, settings = make(task_name), openes.OpenESSettings(normalise=False)
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

    found = []
    for seed in seeds:
        x, normalizer = start.first(task, policy, problem, settings, key(seed))
        found.append(np.asarray(train(x, normalizer, seed)))
    return np.stack(found)


PPO = {"CartPole-v1": 40, "Pendulum-v1": 60}


def ppo(records: Records, args: argparse.Namespace) -> None:
    """PPO without multipliers solves CartPole (475 of 500) and reaches -250 on Pendulum; TRPO (CPO without limits) beside it."""
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
    for task in ("SignCartSafe-v0", "MountainCarContinuousSafe-v0"):
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


def study(records: Records, args: argparse.Namespace) -> None:
    """All six algorithms on tasks with costs, or the evolution strategies on Gym tasks, with certificates."""
    entries: list[tuple[str, str, dict[str, Any]]] = []
    if "safe" in args.what:
        for task, threshold in SAFE.items():
            for algorithm in ("pcces", "openes", "asebo", "ppo-lag", "rcpo", "cpo"):
                changes: dict[str, Any] = {"threshold": threshold} | CHANGES.get((algorithm, task), {})
                if algorithm in ("openes", "asebo"):
                    changes |= START
                entries.append((task, algorithm, changes))
    if "gym" in args.what:
        for population in [args.population] if args.population else [40, 80, 240]:
            for task in GYM[:-1]:
                for algorithm in ("pcces", "openes", "asebo"):
                    changes = {"population": population} | (START if algorithm != "pcces" else {})
                    entries.append((task, algorithm, changes))
    for task, algorithm, changes in entries:
        if args.algorithm and algorithm not in args.algorithm:
            continue
        one(records, task, algorithm, changes, args)


def one(records: Records, task: str, algorithm: str, changes: dict[str, Any], args: argparse.Namespace) -> None:
    """One entry of the study."""
    from pcces.rl.train import train_seeds

    named = {name: value for name, value in changes.items() if name not in START}
    entry = " ".join([task, algorithm, *(f"{name}={value:g}" for name, value in named.items())])
    if args.iterations != 300:
        entry += f" iterations={args.iterations}"
    seeds = records.missing("study", entry, range(args.seeds))
    if not seeds:
        return
    say(f"study: {entry}, {len(seeds)} seeds")
    if algorithm != "pcces":  # their limits are on costs alone
        changes = changes | {"entropy_bounds": FREE}
    begin = time.perf_counter()
    runs = train_seeds(task, seeds, algorithm=algorithm, iterations=args.iterations, progress=True, **changes)
    seconds = (time.perf_counter() - begin) / len(runs)
    lines = []
    for run in runs:
        costs = [name for name in run.metrics if name.startswith("cost_")]
        lines.append(
            {
                "part": "study",
                "entry": entry,
                "seed": run.config["seed"],
                "return": run.final["return"],
                "costs": run.final["costs"],
                "certified": run.certificate.holds,
                "upper_bounds": list(run.certificate.upper_bounds),
                "training_over": float(np.mean(run.metrics.get("over_threshold", [0.0]))),
                "last_return": float(np.mean(run.metrics["return"][-15:])),
                "last_costs": [float(np.mean(run.metrics[name][-15:])) for name in costs],
                "steps": run.metrics["steps"][-1],
                "seconds": seconds,
                "curve": thinned(run.metrics["return"]),
                "cost_curve": [thinned(run.metrics[name]) for name in costs],
            }
        )
    records.add(lines)
    say(f"  done in {seconds * len(runs):.0f} s: return {np.mean([line['return'] for line in lines]):.1f}")


# -- tables ------------------------------------------------------------------------------------------------------------


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.1f} ± {np.std(values):.1f}"


def table(records: Records, args: argparse.Namespace) -> None:
    for part in ("tune", "evosax", "ppo", "omnisafe"):
        groups = records.of(part)
        if not groups:
            continue
        print(
            f"\n### {part}\n\n| | seeds | return, last twentieth | worst seed | cost | steps a seed | s a seed |\n| --- | --- | --- | --- | --- | --- | --- |"
        )
        for entry, lines in groups.items():
            returns = [line["return"] for line in lines]
            costs = [line["costs"][0] for line in lines if line.get("costs")]
            steps = f"{np.mean([line['steps'] for line in lines]) / 1e6:.2f} M" if "steps" in lines[0] else "-"
            seconds = f"{np.mean([line['seconds'] for line in lines]):.0f}" if "seconds" in lines[0] else "-"
            print(
                f"| {entry} | {len(lines)} | {spread(returns)} | {min(returns):.1f} | {spread(costs) if costs else '-'} | {steps} | {seconds} |"
            )
    groups = records.of("study")
    if groups:
        print(
            "\n### study\n\n| | seeds | return | worst seed | cost | certified | return, last 15 | cost, last 15 | iterations over the limit | steps a seed | s a seed |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
        )
        for entry, lines in groups.items():
            returns = [line["return"] for line in lines]
            costs, last = ([line[name][0] for line in lines if line[name]] for name in ("costs", "last_costs"))
            print(
                f"| {entry} | {len(lines)} | {spread(returns)} | {min(returns):.1f} | {spread(costs) if costs else '-'}"
                f" | {sum(line['certified'] for line in lines)} of {len(lines)} | {spread([line['last_return'] for line in lines])}"
                f" | {spread(last) if last else '-'} | {100 * np.mean([line['training_over'] for line in lines]):.0f} %"
                f" | {np.mean([line['steps'] for line in lines]) / 1e6:.1f} M | {np.mean([line['seconds'] for line in lines]):.1f} |"
            )


PARTS = {"tune": tune, "evosax": evosax, "ppo": ppo, "omnisafe": omnisafe, "study": study, "table": table}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("what", nargs="*", default=["safe"], help="of the study: safe, gym")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=300, help="of the study")
    parser.add_argument("--epochs", type=int, default=20, help="of the comparison with OmniSafe")
    parser.add_argument("--population", type=int, help="of the study's Gym tasks, this one only")
    parser.add_argument("--algorithm", nargs="*", help="of the study, these only")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    PARTS[args.part](Records(args.out), args)


if __name__ == "__main__":
    main()
