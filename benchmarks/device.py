"""Generations and useful environment steps per second on CartPole (200 steps), beside evosax. Prints markdown tables.

    make bench-device            # CPU: both, in turns, the best of several rounds each
    python benchmarks/device.py --ours [--populations 40 240 4096 16384]     # on whatever device JAX finds, a GPU for one

Two situations. `full`: no episode ends early, so that all 200 steps of every episode are useful and programs are compared
on equal work. `training`: the first generations from a random policy, where most episodes are short; only steps before
an episode's end count.
"""

import argparse
import json
import subprocess
import sys
import time
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp

HIDDEN = {"4-10-2": (10,), "4-10-10-2": (10, 10)}
STEPS = 200
SIGMA, RATE = 0.1, 0.05
ESTIMATES = dict(episodes=32, metric_episodes=32)  # of the incumbent and of the trial point


def best_time(run, rounds, state):
    """Seconds of the fastest of some equal calls of a compiled function, and the steps it says it took."""
    jax.block_until_ready(run(state))
    best = None
    for _ in range(rounds):
        start = time.perf_counter()
        _, steps = jax.block_until_ready(run(state))
        spent = time.perf_counter() - start
        if best is None or spent < best[0]:
            best = spent, float(steps)
    return best


def measured(who, net, population, situation, generations, seconds, steps):
    line = {
        "who": who, "net": net, "population": population, "situation": situation, "generations": generations / seconds,
        "steps": steps / seconds, "device": jax.devices()[0].device_kind,
    }  # fmt: skip
    print(json.dumps(line), flush=True)


# -- ours --------------------------------------------------------------------------------------------------------------


def tasks():
    from pcces.envs.cartpole import CartPole200

    class Full(CartPole200):
        """The pole may fall: the episode goes on."""

        name = "CartPoleFull-v0"

        def step(self, state, action, key):
            return super().step(state, action, key)._replace(terminated=jnp.bool_(False))

    return {"full": Full(), "training": CartPole200()}


def ours_openes(task, policy, population, generations):
    """A plain ES around our rollout: mirrored samples, standardised returns, a step along their weighted sum."""
    from pcces.engines.device import compiled
    from pcces.rl.normalizer import identity
    from pcces.rl.rollout import rollout

    normalizer = identity(jnp.zeros(task.observation_size))

    def generation(i, carry):
        x, key, steps = carry
        z_key, play_key = jax.random.split(jax.random.fold_in(key, i))
        half = jax.random.normal(z_key, (policy.size, population // 2))
        z = jnp.concatenate([half, -half], axis=1)
        keys = jax.random.split(play_key, population)
        outcome, _ = rollout(task, policy, x[:, None] + SIGMA * z, normalizer, keys)
        f = (outcome.returns - outcome.returns.mean()) / (outcome.returns.std() + 1e-8)
        return x + RATE / (SIGMA * population) * (z @ f), key, steps + outcome.length.sum()

    @compiled()
    def run(state):
        x, key = state
        x, key, steps = jax.lax.fori_loop(0, generations, generation, (x, key, 0.0))
        return x, steps

    return run


def engine_run(engine, states, iterations):
    states, metrics = engine.advance(states, iterations)
    return states, metrics["steps"].sum()


def ours(args):
    from pcces.engines.device import DeviceEngine, configure
    from pcces.engines.keys import key
    from pcces.rl.algorithm import PCCES
    from pcces.rl.device_arena import DeviceArena
    from pcces.rl.policy import Policy
    from pcces.rl.population import program
    from pcces.rl.problem import problem_for

    configure()
    for net, hidden in ((net, HIDDEN[net]) for net in args.nets):
        for population in args.populations:
            for situation, task in ((name, tasks()[name]) for name in args.situations):
                policy = Policy(4, task.actions, hidden)
                run = ours_openes(task, policy, population, args.generations)
                state = jnp.zeros(policy.size), key(0)
                seconds, steps = best_time(run, args.rounds, state)
                measured("pcces rollout, plain ES", net, population, situation, args.generations, seconds, steps)
                if args.plain:
                    continue
                for episodes in (1, 4):
                    settings = PCCES.settings(
                        "paper", population=population, hidden=hidden, member_episodes=episodes, **ESTIMATES
                    )
                    arena = DeviceArena(task, policy, problem_for(task, settings.mu), settings.discount)
                    engine = DeviceEngine(program(arena, settings), [0])
                    run = partial(engine_run, engine, engine.start())
                    seconds, steps = best_time(run, args.rounds, engine.chunk)
                    who = f"pcces iteration, {episodes} episode{'s'[: episodes - 1]} a sample"
                    measured(who, net, population, situation, engine.chunk, seconds, steps)


def split(args):
    """The parts of one PCCES iteration, each alone in a compiled loop, in microseconds."""
    from pcces.engines.device import compiled, configure
    from pcces.engines.keys import key
    from pcces.rl import population as paper
    from pcces.rl.algorithm import PCCES
    from pcces.rl.device_arena import observed
    from pcces.rl.lesson import lesson_of
    from pcces.rl.normalizer import identity
    from pcces.rl.policy import Policy
    from pcces.rl.problem import problem_for
    from pcces.rl.rollout import rollout
    from pcces.strategies.guided import orthonormal_rows

    configure()
    task = tasks()["full"]
    normalizer = identity(jnp.zeros(4))
    for population in args.populations:
        settings = PCCES.settings("paper", population=population, **ESTIMATES)
        policy = Policy(4, task.actions, settings.hidden)
        problem = problem_for(task, 0.0)
        learner = paper.start(jnp.zeros(policy.size), normalizer, len(problem.names), settings)
        learning = paper.learning(learner, settings)
        looks, episodes = settings.metric_episodes, settings.episodes
        columns = 0.1 * jax.random.normal(key(0), (policy.size, population + looks))
        archive = jax.random.normal(key(1), (settings.m, policy.size))
        keys = jax.random.split(key(2), population + looks)
        trajectory = jax.jit(lambda x: rollout(task, policy, x, normalizer, keys, record=True)[1])(columns)  # noqa: B023
        trajectory = jax.tree.map(lambda a: a[..., :population], trajectory)  # noqa: B023

        def recorded(x, keys=keys, policy=policy):
            outcome, trajectory = rollout(task, policy, x, normalizer, keys, record=True)
            return outcome.returns.sum() + trajectory.rewards.sum() + trajectory.observations.sum()

        def trial(x, keys=keys[:episodes], policy=policy):
            return rollout(task, policy, x, normalizer, keys)[0].returns.sum()

        def surrogate(x, played=trajectory, policy=policy, settings=settings, learner=learner, learning=learning):
            lesson = lesson_of(
                policy, learning, observed(played, normalizer.mean), x, normalizer, jnp.moveaxis(played.observations, 1, 0),
                jnp.moveaxis(played.actions, 0, -2), played.rewards, played.alive.astype(jnp.float32),
                settings.discount, task.max_steps,
            )  # fmt: skip
            guide, critic = paper.guidance(learner, lesson, settings)
            return guide.sum() + critic.weights.sum()

        def basis(rows):
            return orthonormal_rows(rows)[0].sum()

        parts = {
            "rollout": (recorded, columns), "surrogate": (surrogate, columns[:, :population]), "basis": (basis, archive),
            "trial": (trial, columns[:, :episodes]),
        }  # fmt: skip
        for name, (function, x) in parts.items():

            @compiled()
            def run(state, function=function):
                def again(i, carry):
                    x, total = carry
                    value = function(x)
                    return x + 1e-30 * value, total + value  # so that no repetition is left out

                return jax.lax.fori_loop(0, args.repeats, again, (state, 0.0))

            seconds, _ = best_time(run, args.rounds, x)
            line = {"population": population, "part": name, "us": 1e6 * seconds / args.repeats}
            print(json.dumps(line), flush=True)


# -- evosax + gymnax ---------------------------------------------------------------------------------------------------


def peers(args):
    import evosax.algorithms as algorithms
    import gymnax
    import optax

    env, env_params = gymnax.make("CartPole-v1")
    env_params = env_params.replace(max_steps_in_episode=STEPS + 1)  # we cut: gymnax would start a new episode

    def network(shapes, x, observation):
        i, h = 0, observation
        for number, (a, b) in enumerate(shapes):
            weights, bias = x[i : i + a * b].reshape(a, b), x[i + a * b : i + a * b + b]
            h = h @ weights + bias
            h = jnp.tanh(h) if number < len(shapes) - 1 else h
            i += a * b + b
        return h

    def episode(shapes, x, key):
        reset_key, key = jax.random.split(key)
        observation, state = env.reset_env(reset_key, env_params)

        def step(carry, key):
            observation, state, alive, total = carry
            action = jax.random.categorical(key, network(shapes, x, observation))
            observation, state, reward, done, _ = env.step_env(key, state, action, env_params)
            return (observation, state, alive * (1 - done), total + alive * reward), None

        keys = jax.random.split(key, STEPS)
        (_, _, _, total), _ = jax.lax.scan(step, (observation, state, jnp.float32(1), jnp.float32(0)), keys)
        return total  # also the number of useful steps: one reward each

    for net, hidden in ((net, HIDDEN[net]) for net in args.nets):
        widths = (4, *hidden, 2)
        shapes = list(pairwise(widths))
        n = sum(a * b + b for a, b in shapes)
        for population in args.populations:
            for name, algorithm in (("OpenES", algorithms.Open_ES), ("GuidedES", algorithms.GuidedES)):
                es = algorithm(population, jnp.zeros(n), optimizer=optax.sgd(RATE))
                params = es.default_params

                def generation(i, carry, es=es, params=params, shapes=shapes, population=population):
                    state, key, steps = carry
                    ask_key, play_key, tell_key = jax.random.split(jax.random.fold_in(key, i), 3)
                    points, state = es.ask(ask_key, state, params)
                    play = jax.vmap(partial(episode, shapes))
                    returns = play(points, jax.random.split(play_key, population))
                    state, _ = es.tell(tell_key, points, -returns, state, params)
                    return state, key, steps + returns.sum()

                @jax.jit
                def run(carry, generation=generation):
                    state, key = carry
                    state, key, steps = jax.lax.fori_loop(0, args.generations, generation, (state, key, 0.0))
                    return state, steps

                state = es.init(jax.random.key(0), jnp.zeros(n), params), jax.random.key(1)
                seconds, steps = best_time(run, args.rounds, state)
                measured(f"evosax {name}", net, population, "training", args.generations, seconds, steps)
                full = STEPS * population * args.generations
                # Its scan runs 200 steps in any case, so it takes as long where all of them are useful.
                measured(f"evosax {name}", net, population, "full", args.generations, seconds, full)


def both(args):
    """The two in turns, each in its own environment; the better of each pair of results."""
    results = {}
    options = [
        "--populations",
        *map(str, args.populations),
        "--generations",
        str(args.generations),
        "--nets",
        *args.nets,
    ]
    for _ in range(args.turns):
        for python, part in ((sys.executable, "--ours"), (args.peers_python, "--peers")):
            done = subprocess.run([python, __file__, part, *options], capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            for line in map(json.loads, done.stdout.splitlines()):
                at = line["who"], line["net"], line["population"], line["situation"]
                if at not in results or line["generations"] > results[at]["generations"]:
                    results[at] = line
    for situation in ("full", "training"):
        print(
            f"\n{situation}\n\n| net | population | | generations/s | useful steps/s |\n| --- | --- | --- | --- | --- |"
        )
        for (who, net, population, where), line in sorted(results.items(), key=lambda item: (item[0][1:3], item[0][0])):
            if where == situation:
                print(f"| {net} | {population} | {who} | {line['generations']:,.0f} | {line['steps'] / 1e6:.2f} M |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--populations", type=int, nargs="+", default=[40, 240])
    parser.add_argument("--nets", nargs="+", default=list(HIDDEN), choices=list(HIDDEN))
    parser.add_argument("--situations", nargs="+", default=["full", "training"], choices=["full", "training"])
    parser.add_argument("--plain", action="store_true", help="leave out the whole PCCES iteration")
    parser.add_argument("--generations", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--peers-python", default=".venv-peers/bin/python")
    for part, what in (("ours", "JSON lines of pcces"), ("peers", "of evosax"), ("split", "of an iteration's parts")):
        parser.add_argument(f"--{part}", action="store_true", help=what)
    args = parser.parse_args()
    chosen = [run for name, run in (("ours", ours), ("peers", peers), ("split", split)) if getattr(args, name)]
    for run in chosen or [both]:
        run(args)


if __name__ == "__main__":
    main()
