"""The keywords of `pcces.train` that are no settings of an algorithm, each explained in one line."""

from __future__ import annotations

from pcces.support.settings import FIRST, RESEARCH, SOMETIMES, Explained

# Their defaults stand in `pcces.train`, `pcces.train_seeds` and `pcces.rl.request.Request`.
ARGUMENTS = {
    name: Explained(name, "", words, use)
    for use, group in {
        FIRST: {
            "algorithm": "the algorithm: pcces, openes, asebo, ppo-lag, rcpo or cpo",
            "steps": "budget of environment steps, in place of iterations; the certificate's episodes come on top",
            "threshold": "limit on the mean cost of an episode, one number for each cost; None: the task's own",
            "limits": "limits that are not on means, by the costs' names, such as 'off_centre: P(> 30) <= 0.05'",
            "seed": "the same seed gives the same run; train_seeds takes several as seeds",
            "out": "the folder to write; None: none",
            "workers": "number of processes that play episodes, for the engines local and ray; None: one per core",
            "cost": "cost(observation, action, info) of a step, if the environment reports none",
        },
        SOMETIMES: {
            "preset": "the settings to start from: default; for pcces also paper and paper-literal",
            "iterations": "number of iterations, in place of steps; None: 300",
            "population": "policies per iteration, if the algorithm has a population",
            "engine": "where episodes are played: device, local or ray; None: device for tasks in JAX, else local",
            "init": "a run, or its folder, whose policy training starts from",
            "resume": "continue the run in out",
            "confidence": "confidence of the certificate",
            "certify_episodes": "fresh episodes for the certificate; None: 1000 on the device, 200 with workers",
            "entropy_bounds": "(low, high) for the entropy of an episode's actions; None: the task's own, or none for a baseline",
            "cost_bounds": "(low, high) of a step's cost, or 'none'; with them the certificate is guaranteed",
            "episode_cost_bounds": "(low, high) of an episode's cost, or 'none'",
            "env_args": "keyword arguments of the environment's constructor",
            "max_steps": "maximum steps of an episode, if the environment has no time limit or a later one",
            "max_time": "end the training after this many seconds",
            "target": "end the training at this mean return, with all limits kept",
            "patience": "end the training after this many environment steps without a better return",
            "callback": "callback(runs) after each iteration; True ends the training",
            "progress": "show the progress on standard error; None: on a terminal",
            "trackers": "where the curves are sent: tensorboard, wandb, mlflow, or your own objects",
            "report": "whether to write report.html",
        },
        RESEARCH: {
            "ray_address": "the Ray cluster of the engine ray; None: one on this machine",
            "step_timeout": "seconds after which a step of a simulator counts as hung, and its episode as failed",
        },
    }.items()
    for name, words in group.items()
}
