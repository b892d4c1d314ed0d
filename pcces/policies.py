"""The front door to policies: `pcces.train`, `pcces.train_seeds`, `pcces.tune`, `pcces.clone`, and the algorithms they know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from pcces.integrations.trackers import Tracking
from pcces.rl.algorithm import PCCES, Algorithm
from pcces.rl.request import Request
from pcces.rl.run import Run
from pcces.rl.training import Training
from pcces.rl.tuning import FIRST_SEED, Tuned, Tuning
from pcces.support.text import suggestion

ALGORITHMS = ("pcces", "openes", "asebo", "ppo-lag", "rcpo", "cpo")
ALIASES = {"ppolagrangian": "ppo-lag", "openaies": "openes"}  # by letters and digits alone
ABOUT_TASKS = (  # keywords of `train` that say what the task is and what a certificate takes
    "threshold", "limits", "entropy_bounds", "cost", "cost_bounds", "episode_cost_bounds", "env_args", "max_steps", "engine",
    "workers", "ray_address", "step_timeout", "confidence", "certify_episodes",
)  # fmt: skip
MEANT = {"ppo": ("ppo-lag",), "lagrangian": ("ppo-lag",), "trpo": ("cpo",), "es": ("openes",), "nes": ("openes",)}


def algorithm_name(name: str) -> str:
    """An algorithm's name as it is here, however it is written.

    >>> algorithm_name("PPO-Lag"), algorithm_name("ppo_lagrangian"), algorithm_name("OpenAI-ES")
    ('ppo-lag', 'ppo-lag', 'openes')
    >>> algorithm_name("sgd")
    Traceback (most recent call last):
    ...
    ValueError: unknown algorithm 'sgd'; there are pcces, openes, asebo, ppo-lag, rcpo, cpo
    """
    known = {"".join(filter(str.isalnum, each)): each for each in ALGORITHMS} | ALIASES
    letters = "".join(filter(str.isalnum, str(name).lower()))
    if letters not in known:
        raise ValueError(f"unknown algorithm {name!r}; {suggestion(str(name), ALGORITHMS, meanings=MEANT)}")
    return known[letters]


def find_algorithm(name: str) -> Algorithm:
    """The algorithm of this name. The baselines are imported when first asked for.

    >>> find_algorithm("PCCES").name
    'pcces'
    """
    name = algorithm_name(name)
    if name == PCCES.name:
        return PCCES
    from pcces.baselines import BASELINES

    return BASELINES[name]


def train(
    task: Any,
    algorithm: str = "pcces",
    preset: str = "default",
    iterations: int | None = None,
    population: int | None = None,
    seed: int = 0,
    threshold: float | Sequence[float] | None = None,
    engine: str | None = None,
    workers: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    steps: float | None = None,
    **further: Any,
) -> Run:
    """Train a policy, and return the best iterate that fresh episodes certify to keep the task's limits.

    `task` is one of `pcces.envs.tasks()`, or an id of `gymnasium.make`. It can also be an environment class, a function that makes
    an environment, an environment, a vector environment, or a `pcces.envs.simulator.simulator(...)`. `env_args` are the keyword
    arguments of its constructor. `max_steps` is the maximum length of an episode, needed if the environment has no time limit.

    `threshold` limits the mean cost of an episode: one number for each cost of the task (None: the task's own). `limits` sets
    limits that are not on means, by the names of the costs: `limits={"off_centre": Probability(above=30, at_most=0.05)}`, or as
    text "off_centre: P(> 30) <= 0.05" (`pcces.limits`). Costs without a name there keep the task's limit.
    `cost(observation, action, info)` returns the cost(s) of a step if the environment reports none. `cost_bounds` is the range of
    a step's cost, and `episode_cost_bounds` that of an episode's cost. With a range the certificate is guaranteed; without it, the
    certificate assumes that the episodes show rare large costs.

    Training takes `iterations` iterations, or a budget of environment `steps`. The fresh episodes for the certificate are extra.
    It ends early after `max_time` seconds; at a mean return of `target` if all limits are kept; after `patience` environment steps
    without a better return; or if `callback(runs)` returns True or raises StopIteration. The callback is called after every
    iteration, or after several if they are short. `runs[0].policy` is then the current policy.

    `engine`: "device" compiles tasks written in JAX; "local" plays episodes in worker processes; "ray" plays them on the cluster at
    `ray_address`, or on this machine. None takes the device if possible. `workers` is the number of workers (None: one per core,
    or per CPU of the cluster); the result does not depend on it. If a step of a simulator takes longer than `step_timeout`
    seconds, its worker is stopped and the episode has failed.

    `out` is the folder of the run. `resume=True` continues the run in it, up to the length asked for now. `init` is a finished run,
    or its folder: training starts from its policy instead of a random one. Its normalisation of observations is taken over, and
    its critics too if they fit.

    `algorithm` is "pcces" or a baseline: "openes", "asebo", "ppo-lag", "rcpo", "cpo". All write the same folder, metrics, report
    and certificate. An iteration of pcces, ppo-lag, rcpo and cpo plays `epoch_steps` environment steps with one policy (pcces
    derives this number from the budget). openes, asebo and the presets `paper` and `paper-literal` of pcces try a `population` of
    policies, by default 40.

    Further keywords are the settings of the algorithm (`pcces.rl.settings.BatchSettings`; for the presets of the paper
    `PopulationSettings`; for a baseline the class in its file of `pcces.baselines`), `entropy_bounds`, `confidence`,
    `certify_episodes`, and those of `train_seeds`: `progress`, `report`, `trackers`. Baselines have no entropy bounds unless you
    give some.

    Many parameters: what people ask for most has a name here; `pcces.rl.request.Request` has all of them.

    >>> run = train("CartPole-v0", steps=8_000, certify_episodes=50)
    >>> run.certificate.holds, len(run.metrics["return"])
    (True, 3)
    """
    return train_seeds(
        task, [seed], algorithm, preset=preset, iterations=iterations, population=population, threshold=threshold,
        engine=engine, workers=workers, out=[out], resume=resume, steps=steps, **further,
    )[0]  # fmt: skip


def train_seeds(
    task: Any,
    seeds: Sequence[int] = range(10),
    algorithm: str = "pcces",
    *,
    progress: bool | None = None,
    callback: Callable[[list[Run]], Any] | None = None,
    report: bool = True,
    trackers: Any = None,
    **asked: Any,
) -> list[Run]:
    """Train several seeds at once, in one compiled program. `out` gets a folder `seed-0`, `seed-1`, .. for each.

    `trackers` send the curves to other tools: "tensorboard", "wandb" or "mlflow" (extras of these names), an object with
    the methods of `pcces.integrations.trackers.Tracker`, a function that makes one for a run, or a list of these.

    `report=False` leaves out the HTML pages, which take seconds. The training ends early only if all seeds have a reason for it.
    Other keywords are those of `train`.

    >>> runs = train_seeds("CartPole-v0", range(2), steps=8_000, certify_episodes=50)
    >>> [run.config["seed"] for run in runs]
    [0, 1]
    """
    tracking = Tracking(trackers, len(seeds))
    training = prepare(task, seeds, algorithm, **asked)

    def follow(runs: list[Run]) -> Any:
        tracking(runs)
        return None if callback is None else callback(runs)

    with closing(tracking):
        training.run(progress, follow if trackers else callback, report)
    return training.runs


def tune(
    task: Any,
    algorithm: str = "pcces",
    *,
    steps: float = 1e6,
    budget: float | None = None,
    out: str | Path | None = None,
    seed: int = FIRST_SEED,
    progress: bool | None = None,
    **asked: Any,
) -> Tuned:
    """Search for settings that suit a task. Each training has `steps` environment steps, and all together `budget` (default: 30
    trainings).

    The search varies the settings that matter: rate, batch, horizon, noise, widths, and the speed of prices. Settings that you give
    are not varied. The best candidate is compared with the defaults on fresh seeds. `settings` of the result is empty unless the
    candidate is clearly better. A stopped search continues from its folder `out`. Other keywords are those of `train`.

    >>> tuning("CartSafe-v0", steps=1e6).trainings
    29
    """
    return tuning(task, algorithm, steps=steps, budget=budget, out=out, seed=seed, **asked).run(progress)


def tuning(
    task: Any,
    algorithm: str = "pcces",
    *,
    steps: float,
    budget: float | None = None,
    out: str | Path | None = None,
    seed: int = FIRST_SEED,
    **asked: Any,
) -> Tuning:
    """Check what can be checked before any work, and make the search of `tune`, ready to go."""
    return Tuning(task, find_algorithm(algorithm), asked, steps, budget, out, seed)


def clone(
    task: Any,
    observations: Any,
    actions: Any,
    *,
    hidden: tuple[int, ...] = (64, 64),
    passes: int = 200,
    rate: float = 1e-3,
    least_std: float = 0.1,
    held_out: float = 0.1,
    seed: int = 0,
    **about: Any,
) -> Run:
    """Learn a policy from demonstrations (behaviour cloning): the policy that makes these actions most likely.

    `observations` (N, size) are those of the environment, and `actions` (N,) or (N, dims) are in its units. The result is
    a run without a certificate. It can act, be evaluated, certified and exported like any other run, and `train(task, init=...)`
    starts from it. Its `metrics` are mean log likelihoods of the training rows and of the held-out rows after each pass.

    Adam with this `rate` makes up to `passes` passes. It stops when the share `held_out` of the rows gets no more likely, and
    the best policy for these rows is returned. Standard deviations of continuous actions, in half widths of the box, are at least
    `least_std`, so that a training that starts from this policy still explores. `about` takes the keywords of `train` that define
    the task: `engine`, `threshold`, `limits`, `cost`, `env_args` and so on.

    Many parameters: the demonstrations, and how they are learnt.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> seen = rng.normal(size=(500, 4))
    >>> taught = clone("CartPole-v0", seen, seen[:, 2] + seen[:, 3] > 0)  # push to where the pole falls
    >>> taught.policy([0.0, 0.0, 0.05, 1.0]), taught.evaluate(episodes=20)["return"] > 150
    (1, True)
    """
    if others := [name for name in about if name not in ABOUT_TASKS]:
        raise TypeError(
            f"clone has no {others[0]}; about the task it takes {', '.join(ABOUT_TASKS)}, and about learning hidden, passes, "
            "rate, least_std, held_out, seed"
        )
    from pcces.rl.cloning import Cloning, cloned  # with JAX behind it

    (run,) = Request.of(task, [seed], find_algorithm("pcces"), about | {"hidden": hidden}).runs()
    return cloned(run, observations, actions, Cloning(passes, rate, least_std, held_out))


def prepare(task: Any, seeds: Sequence[int], algorithm: str = "pcces", **asked: Any) -> Training:
    """Check everything that can be checked before any work, and make the runs of `train_seeds`, ready to go.

    >>> prepare("CartPole-v0", [0], preset="paper", population=7)
    Traceback (most recent call last):
    ...
    ValueError: population must be an even number of at least 4 (directions come in mirrored pairs), got 7
    """
    return Training.of(Request.of(task, seeds, find_algorithm(algorithm), asked))
