"""Nobody is certified for doing nothing without being told."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from typer.testing import CliRunner

import pcces
from pcces import report
from pcces.cli import app
from pcces.envs import Discrete, Step, Task
from pcces.report.concerns import concerns

SMALL = dict(hidden=(4,), critic_hidden=(4,), epoch_steps=200, iterations=8, passes=1, certify_episodes=50)


class Idle(Task):
    """Nothing one does is worth anything; what one may pay is a task's own."""

    name, observation_size, actions, max_steps = "Idle-v0", 1, Discrete(2), 10
    cost_names, thresholds, cost_bounds = ("dear",), (5.0,), (0.0, 1.0)

    def __init__(self, cost: float = 0.0, pays: float = 0.0):
        self.cost, self.pays = cost, pays

    def reset(self, key):
        return jnp.zeros(1)

    def step(self, state, action, key):
        return Step(state, self.pays * action, jnp.array([self.cost]), jnp.bool_(False))


def said(task, **more):
    run = pcces.train(task, report=False, entropy_bounds=(-1e9, 1e9), **SMALL | more)
    return run, concerns(run)


def test_a_policy_that_learnt_nothing_is_told_and_so_is_a_cost_that_never_came(tmp_path):
    run, (nothing, unseen) = said(Idle())
    assert run.certificate.holds
    assert "no better than that of the first random policies" in nothing
    assert unseen.startswith("no episode had any dear")
    again, words = said(Idle(), init=run)  # a policy that was good before it began need not get better
    assert words == [unseen] and f"(the policy it began with had {again.metrics['return'][0]:.4g})" in again.words()
    page = report.write([run], tmp_path / "report.html").read_text()
    assert "Warnings" in page and "learnt to do nothing" in page


def test_a_limit_that_is_out_of_reach_is_told():
    run, words = said(Idle(cost=1.0, pays=1.0))
    assert not run.certificate.holds and "dear was above its limit (5) in every iteration (at least 10)" in words[-1]


def test_a_policy_that_learnt_something_is_told_nothing():
    run, words = said(Idle(cost=0.2, pays=1.0), iterations=40, passes=5, rate=1e-2)
    assert run.final["return"] > run.metrics["return"][0] + 1 and not words
    assert f"(the first policies had {run.metrics['return'][0]:.4g})" in run.words()


@pytest.mark.slow
def test_the_command_line_says_it_too(tmp_path):
    words = ["train", "CartPole-v0", "--out", tmp_path / "run", "--iterations", 6, "--set=rate=1e-9"]
    done = CliRunner().invoke(app, [str(word) for word in [*words, "--set=epoch_steps=2000"]])
    assert "no better than that of the first random policies" in done.stderr
