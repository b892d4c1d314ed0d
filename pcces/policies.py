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

    `threshold` limits the mean cost of an episode (one number for each of the task's costs; None: the task's own).
    Training takes so many `iterations`, or as many as a budget of environment `steps` holds (for every algorithm; fresh
    episodes for the certificate come on top and are counted apart). With `out` the run writes a folder, and `resume=True`
    goes on with one that is there until it is as long as is asked for now.

    `task` is one of `pcces.envs.tasks()`, or whatever `gymnasium.make` knows, or an environment as it is: its class, a function
    that makes it, itself, a vector environment of it; or a `pcces.envs.simulator.simulator(...)`. `env_args` are the keyword
    arguments it is made with, and `max_steps` the most steps of an episode, needed where it has no time limit of its own.
    `limits` says what else may be limited than the mean, by the costs' names (`pcces.limits`; those that are not named keep
    the task's own): `limits={"off_centre": Probability(above=30, at_most=0.05)}`, or in words "off_centre: P(> 30) <= 0.05".
    `engine`: "device" compiles tasks written in JAX, "local" plays episodes in worker processes, "ray" on a cluster at
    `ray_address` (or on this machine); None takes the device where it can. `workers`: how many (None: one a core, or as
    many as the cluster has CPUs); the result does not depend on it. A simulator's step may take `step_timeout` seconds
    before its worker is ended and the episode counts as failed. `cost(observation, action, info)` gives the cost(s) of a
    step where the environment itself does not, and `cost_bounds` says what it can be at least and at most (or
    `episode_cost_bounds` an episode), so that the certificate need not trust that rare large costs were seen.

    `init` is a finished run, or the folder of one, whose policy training begins with instead of a random one: a warm start,
    perhaps for another limit. Its normalisation of observations comes along, and so do its critics where they fit.

    `algorithm` is "pcces" or one of the baselines it is compared with: "openes", "asebo", "ppo-lag", "rcpo", "cpo". All
    leave the same folder, metrics, report and certificate. An iteration of pcces and of the last three plays a batch of
    `epoch_steps` environment steps with one policy (pcces chooses how many by the budget, unless told); openes, asebo and
    the presets `paper` and `paper-literal` of pcces try a `population` of policies, 40 unless told otherwise.

    A training ends early after `max_time` seconds; with a mean return of `target` at which all limits are kept; after
    `patience` environment steps without a better return; or if `callback(runs)` returns True or raises StopIteration. It is
    called after every iteration, or every few where they are short, and `runs[0].policy` is the policy the search stands at.

    Further keywords are the algorithm's settings (`pcces.rl.settings.BatchSettings`; for the presets of the paper
    `PopulationSettings`, for the baselines the class in their file of `pcces.baselines`), or `entropy_bounds`, `confidence`,
    `certify_episodes`, and those of `train_seeds`: `progress`, `callback`, `report`, `trackers`. Baselines know no entropy bounds, so theirs are infinite unless
    given.

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
    """`train` for several seeds at once, in one compiled program; `out` gets a folder `seed-0`, `seed-1`, .. each.

    `trackers` follow the training elsewhere: "tensorboard", "wandb" or "mlflow" (the extras of these names), an object with
    the methods of `pcces.integrations.trackers.Tracker`, a function that makes one for a run, or a list of such.

    `report=False` leaves out the HTML pages, which take seconds. All seeds have to have a reason for the training to end early.

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
    """Settings that suit a task, found with trainings of so many `steps` each, and so many in all (`budget`; 30 trainings).

    The settings that matter are varied (rate, batch, horizon, noise, widths, how fast prices move); those given here stay as
    they are. The best candidate is compared with the defaults on fresh seeds, and `settings` of the result is empty unless it
    is clearly better. `out` is a folder: a search that was stopped goes on there. `asked`: keywords of `train`.

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
    """A policy from demonstrations (behaviour cloning): the one under which these actions are likeliest, given these observations.

    `observations` (N, size) are as the environment gives them, `actions` (N,) or (N, dims) as it takes them. What comes back is
    a run without a certificate: it can act, be evaluated, certified and exported as any other, and `train(task, init=...)`
    begins with it. Its `metrics` are mean log likelihoods of what was learnt from and of what was held out, pass by pass.

    Adam with this `rate` makes so many `passes` at most. It ends when the share that is `held_out` gets no likelier, and the
    policy under which that was likeliest is returned. Of continuous actions the standard deviations, in half widths of the
    box, are at least `least_std`, because a training that begins with this policy has to try things. `about` the task are
    the keywords of `train` that say what it is: `engine`, `threshold`, `limits`, `cost`, `env_args` and so on.

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
