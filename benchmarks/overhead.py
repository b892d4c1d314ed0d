"""What the library itself costs: ask + tell beside evosax, per-iteration cost, start-up. Prints a markdown table.

    make bench-overhead

Population 240, one process; evaluation costs nothing here (f is drawn at random). `lazy` leaves the points unbuilt,
as an engine does that sends seeds; `built` makes every point once, as evosax's ask does. Up to ten million numbers a
population is an array anyhow, and the two are the same. Medians over iterations, and over processes that take turns.
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

POPULATION = 240


def ours(strategy: str, n: int, build: bool, rounds: int) -> float:
    import pcces

    opt = pcces.Optimizer(
        np.zeros(n, dtype=np.float32), strategy=strategy, population=POPULATION, deterministic=True, restarts=False,
        sigma_stop=1e-30, max_evaluations=10**9, rng=0,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    times, spent = [], 0.0
    while len(times) < rounds:
        start = time.perf_counter()
        batch = opt.ask()
        if build:
            for x in batch.points:
                x[0]  # looked at, hence made
        spent += time.perf_counter() - start
        f = rng.standard_normal(len(batch.seeds))
        start = time.perf_counter()
        opt.tell(batch, f)
        spent += time.perf_counter() - start
        if opt.state.phase == "sample":  # an iteration is over: samples and trial point
            times.append(spent)
            spent = 0.0
    return float(np.median(times[1:]))


def evosax(strategy: str, n: int, rounds: int) -> float:
    import evosax.algorithms as algorithms
    import jax
    import jax.numpy as jnp
    import optax

    es = {"gaussian": algorithms.Open_ES, "guided": algorithms.GuidedES}[strategy](
        POPULATION, jnp.zeros(n), optimizer=optax.sgd(0.1)
    )
    params = es.default_params
    key = jax.random.key(0)
    state = es.init(key, jnp.zeros(n), params)
    ask, tell = jax.jit(es.ask), jax.jit(es.tell)
    times = []
    for i in range(rounds + 2):
        key, k1, k2, k3 = jax.random.split(key, 4)
        f = jax.random.normal(k3, (POPULATION,))
        start = time.perf_counter()
        x, state = ask(k1, state, params)
        state, _ = tell(k2, x, f, state, params)
        jax.block_until_ready(state)
        if i >= 2:
            times.append(time.perf_counter() - start)
        del x
    return float(np.median(times))


def one(library: str, strategy: str, n: int, rounds: int) -> None:
    """Runs in a process of its own, so that the peak memory is its own."""
    seconds = {
        "lazy": lambda: ours(strategy, n, False, rounds),
        "built": lambda: ours(strategy, n, True, rounds),
        "evosax": lambda: evosax(strategy, n, rounds),
    }[library]()
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def small(n: int = 10, rounds: int = 300) -> float:
    """Milliseconds of library per iteration on a noise-free constrained quadratic, restarts included."""
    import pcces

    opt = pcces.Optimizer(np.full(n, 0.5), bounds=[(-2, 2)] * n, max_evaluations=10**6, rng=0)
    spent, times = 0.0, []
    seed = 0
    while len(times) < rounds:
        if opt.stop():
            seed += 1
            opt = pcces.Optimizer(np.full(n, 0.5), bounds=[(-2, 2)] * n, max_evaluations=10**6, rng=seed)
        start = time.perf_counter()
        batch = opt.ask()
        spent += time.perf_counter() - start
        x = batch.points
        f, c = ((x - 1) ** 2).sum(1), x.sum(1) - 1
        k = len(opt.history)
        start = time.perf_counter()
        opt.tell(batch, f, c)
        spent += time.perf_counter() - start
        if len(opt.history) > k:
            times.append(spent)
            spent = 0.0
    return 1e3 * float(np.median(times))


STARTUP = """
import pcces
res = pcces.minimize(lambda x: ((x[0] - 1) ** 2 + (x[1] - 1) ** 2, x[0] + x[1] - 1), [0.0, 0.0], bounds=[(-2, 2)] * 2)
assert res.success and abs(res.fun - 0.5) < 1e-6, res
import sys
assert "jax" not in sys.modules
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one", nargs=4)
    arguments = parser.parse_args()
    if arguments.one:
        library, strategy, n, rounds = arguments.one
        one(library, strategy, int(n), int(rounds))
        return
    print(
        "| n | strategy | pcces, lazy | pcces, all points built | evosax | ratio (built) | peak memory, pcces / evosax |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for n, rounds, processes in ((10**3, 200, 5), (10**5, 20, 3), (10**6, 5, 1)):
        for strategy in ("gaussian", "guided"):
            outputs: dict[str, list[list[float]]] = {"lazy": [], "built": [], "evosax": []}
            for library in processes * list(outputs):  # in turns, so that a busy machine slows all of them down alike
                command = [sys.executable, __file__, "--one", library, strategy, str(n), str(rounds)]
                output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                outputs[library].append([float(word) for word in output.split()])
            row = {library: np.median(values, axis=0) for library, values in outputs.items()}
            seconds = {name: f"{1e3 * value[0]:.3g} ms" for name, value in row.items()}
            ratio = row["evosax"][0] / row["built"][0]
            memory = f"{row['built'][1]:.2f} / {row['evosax'][1]:.2f} GB"
            print(
                f"| {n:.0e} | {strategy} | {seconds['lazy']} | {seconds['built']} | {seconds['evosax']} | {ratio:.1f} | {memory} |",
                flush=True,
            )
    print(f"\nPer iteration at n = 10, models included: {small():.2f} ms (median of 300).")
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", STARTUP], check=True)
        times.append(time.perf_counter() - start)
    print(
        f"Import and solve a two-dimensional constrained quadratic, whole process: {np.median(times):.2f} s (median of 5)."
    )


if __name__ == "__main__":
    main()
