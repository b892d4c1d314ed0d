"""What steps cost: found wherever it is, limited or refused, and within what was said of it; nothing is certified without a limit."""

import dataclasses
import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import simulators  # noqa: F401  (registers tests/...)
from small import FEW
from test_simulators import play
from typer.testing import CliRunner

import pcces
from pcces.cli import app
from pcces.cli.train import conclude
from pcces.core.certificate import Certificate
from pcces.envs import costs
from pcces.envs.lookup import resolve
from pcces.envs.simulator import simulator
from pcces.envs.task import Discrete
from pcces.policies import prepare
from pcces.report.runs import make_page
from pcces.rl.certify import ranges
from pcces.rl.policy import Policy
from pcces.rl.problem import problem_for

TINY = FEW | dict(iterations=1, epoch_steps=100, workers=1)
LATE = "tests/Late-v0"


def here(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


# -- seen late -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", costs.KEYS)
def test_a_cost_that_nobody_asked_for_stops_the_training_at_its_step(key):
    with pytest.raises(
        costs.UnlimitedCostError, match=r"step 15 of tests/Late-v0 has a cost, 1.0.*--threshold"
    ) as said:
        pcces.train(simulator(LATE, key=key), **TINY)
    for place in (*costs.KEYS, "third value of a six-tuple", "in the episode of seed "):
        assert place in str(said.value)


def test_on_the_command_line_it_is_one_line_and_a_request_that_cannot_be_met(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = here("train", LATE, "--workers", 1, "--iterations", 1, "--set", "epoch_steps=100", "--set", "hidden=4")
    assert done.exit_code == 2 and done.stdout == ""
    said = done.stderr.splitlines()
    assert said[-1].startswith("error: step 15 of tests/Late-v0 has a cost") and "CERTIFIED" not in done.stderr


def test_a_cost_that_is_to_be_limited_is_looked_for_in_whole_episodes():
    assert simulator(LATE).cost_names == () and simulator(LATE, thresholds=3).cost_names == ("cost",)
    assert resolve(LATE, limited=True)[0].cost_names == ("cost",)
    run = pcces.train(LATE, threshold=10, **TINY)
    assert run.final["costs"] == [6.0] and run.words().startswith("CERTIFIED: cost at most 6")


def test_a_limit_on_a_cost_that_never_shows_is_refused_with_the_places_that_were_looked_at():
    for asked, what in (
        ({"threshold": 3}, "a threshold of 3 could limit"),
        ({"limits": "heat: P(> 1) <= 0.1"}, "'heat' to"),
    ):
        with pytest.raises(ValueError, match="tests/Line-v0 has no costs, so there is no.*" + what) as said:
            prepare("tests/Line-v0", [0], **asked, **TINY)
        assert all(key in str(said.value) for key in costs.KEYS) and "--cost MODULE:FUNCTION" in str(said.value)
    with pytest.raises(ValueError, match=r"nothing a threshold of 3 could limit$"):
        prepare("CartPole-v1", [0], threshold=3)  # a task in JAX: nothing was looked at


@pytest.mark.parametrize("cost", ["cheap", [], {}])
def test_what_is_no_number_is_no_cost(cost):
    env = simulator(LATE).make()
    env.env.unwrapped.at, env.env.unwrapped.cost = 1, cost
    env.reset(0)
    assert env.step(np.zeros(1))[2] == 0.0


# -- many, and by name -----------------------------------------------------------------------------------------------------


def test_costs_by_name_keep_their_names_and_are_nothing_where_they_are_not_reported():
    sim = simulator("tests/Named-v0")
    assert sim.cost_names == ("heat", "wear")
    outcome, steps = play(sim)
    assert outcome.costs[:, 0].tolist() == [20.0, 5.0]  # every step, and every fourth
    assert steps.costs[1].tolist() == [0.0, 0.0, 0.0, 1.0] * 5


def test_a_cost_of_another_name_or_another_number_of_costs_is_no_failed_episode_but_an_error():
    for options, says in (
        ({"later": {"noise": 1.0}}, "a step has the cost 'noise', but its costs were heat, wear before"),
        ({"later": [1.0, 2.0, 3.0]}, "step 12 of tests/Named-v0 has 3 costs, but it had 2 before: heat, wear"),
    ):
        with pytest.raises(costs.CostError, match=says):
            pcces.train(simulator("tests/Named-v0", **options), threshold=(50, 50), **TINY)


# -- no limits -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unlimited():
    training = prepare("tests/Line-v0", [0, 1], workers=1, iterations=1)
    training.arena.close()
    for run in training.runs:
        run.certificate = Certificate(True, 0.95, (), 20, "none")
        run.final = dict.fromkeys(("return_error", "entropy", "entropy_error", "length", "length_error"), 1.0)
        run.final |= {"return": -3.0, "costs": [], "costs_error": [], "episodes": 20}
        run.metrics = {name: [1.0, 2.0] for name in ("iteration", "return", "entropy", "length", "steps", "seconds")}
    return training.runs


def test_nothing_is_certified_without_a_limit(unlimited, tmp_path, capsys):
    words = "NO LIMITS: nothing to certify. Mean over 20 fresh episodes: return -3"
    assert unlimited[0].words().startswith(words) and "CERTIFIED" not in repr(unlimited[0])
    conclude(unlimited[:1], tmp_path, as_json=False)  # and ends with exit code 0
    conclude(unlimited, tmp_path, as_json=False)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(words) and shown[-2] == "NO LIMITS: nothing to certify"
    assert shown[2].split()[-1] == "certified" and shown[3].endswith("no limits") and "yes" not in "".join(shown)
    conclude(unlimited, tmp_path, as_json=True)
    said = json.loads(capsys.readouterr().out)
    assert said["certified"] == 0 and [run["certificate"] for run in said["runs"]] == [None, None]
    page = make_page(unlimited[:1]).html()
    assert "No limits: nothing to certify" in page and "Certified with" not in page


def test_a_policy_whose_episodes_fail_is_not_certified_though_it_has_no_limits(unlimited, tmp_path):
    (run,) = unlimited[:1]
    run.certificate = Certificate(False, 0.95, (), 20, "t")
    run.final = run.final | {"failed_episodes": 2}
    assert run.words().startswith("NOT CERTIFIED: 2 of 20 fresh episodes failed")
    with pytest.raises(Exception, match="1"):
        conclude([run], tmp_path, as_json=False)


# -- bounds ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"cost_bounds": (0, 0.5)}, costs.CostBoundsError, r"step 15 of tests/Late-v0 cost 1 \(cost, in the episode of seed \d+\), but a step is said to cost 0 to 0.5"),
        ({"cost_bounds": (2, 3)}, costs.CostBoundsError, "step 1 of tests/Late-v0 cost 0 "),
        ({"episode_cost_bounds": (0, 5)}, costs.EpisodeCostBoundsError, r"an episode of tests/Late-v0 cost 6 in all \(cost\) \(in the episode of seed \d+\), but an episode is said to cost 0 to 5"),
    ],
)  # fmt: skip
def test_bounds_that_are_wrong_are_noticed_at_the_step_or_the_episode_that_breaks_them(asked, error, says):
    with pytest.raises(error, match=says) as said:
        pcces.train(LATE, threshold=10, **asked, **TINY)
    assert said.value.option == next(iter(asked))


def test_bounds_can_be_corrected_where_a_run_goes_on_and_dropped(tmp_path):
    folder = tmp_path / "run"
    asked = dict(threshold=10, out=folder, report=False, **TINY)
    with pytest.raises(costs.CostBoundsError):
        pcces.train(LATE, cost_bounds=(0, 0.5), **asked)
    with pytest.raises(costs.EpisodeCostBoundsError):
        pcces.train(LATE, cost_bounds="none", episode_cost_bounds=(0, 1), resume=True, **asked)
    run = pcces.train(LATE, cost_bounds=(0, 1), episode_cost_bounds=(0, 8), resume=True, **asked)
    assert run.certificate.guaranteed and (run.task.cost_bounds, run.task.episode_cost_bounds) == ((0, 1), (0, 8))
    again = pcces.load(folder)
    assert (again.task.cost_bounds, again.task.episode_cost_bounds) == ((0, 1), (0, 8)) and again.certificate.guaranteed
    with pytest.raises(ValueError, match=r"episode_cost_bounds = \[0.0, 8.0\], but \[0.0, 9.0\] is asked for"):
        pcces.train(LATE, cost_bounds=(0, 1), episode_cost_bounds=(0, 9), resume=True, **asked)  # it is finished


def test_what_an_episode_can_cost_makes_its_certificate_tighter():
    """Disasters: an episode costs nothing or 1, and steps alone would allow 1 each."""
    task = SimpleNamespace(
        name="Mill-v0", cost_names=("c",), thresholds=(0.1,), max_steps=100, entropy_bounds=(-math.inf, math.inf),
        cost_bounds=(0.0, 1.0), episode_cost_bounds=None,
    )  # fmt: skip
    policy, x = Policy(1, Discrete(2), (2,)), np.zeros(Policy(1, Discrete(2), (2,)).size)
    problem = problem_for(task, 0.0)
    (steps,) = ranges(task, policy, problem, x)
    task.episode_cost_bounds = (0.0, 1.0)
    (episodes,) = ranges(task, policy, problem, x)
    assert steps == pytest.approx((-0.1, 99.9), abs=0.02) and episodes == pytest.approx((-0.1, 0.9), abs=0.02)
    task.cost_bounds = None
    assert ranges(task, policy, problem, x) == [episodes]
    task.cost_bounds, task.episode_cost_bounds = (-2.0, -1.0), None  # an episode has one step or a hundred
    assert costs.episode_range(task) == (-200.0, -1.0)


def test_the_command_line_takes_bounds_of_episodes_and_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for option, given, says in (
        ("--episode-cost-bounds", "0", "episode_cost_bounds are the least and the most that an episode can cost"),
        ("--episode-cost-bounds", "a,b", "--episode-cost-bounds takes two numbers, such as 0,1, or none; got 'a,b'"),
        ("--cost-bounds", "1,0", "cost_bounds are the least and the most that a step can cost"),
    ):
        done = here("train", LATE, "--threshold", 10, option, given)
        assert done.exit_code == 2 and says in done.stderr and done.stderr.count("\n") == 1
    done = here("train", "CartSafe-v0", "--episode-cost-bounds", "0,1")
    assert done.exit_code == 2 and "CartSafe-v0 is a task in JAX, and says itself" in done.stderr


def test_bounds_that_no_episode_comes_near_are_told_where_they_spoil_a_certificate():
    run = pcces.train("CartSafe-v0", threshold=1.0, **FEW)
    assert not run.certificate.holds
    quantiles = run.final["quantiles"]

    def words(mean, most):
        final = run.final | {"costs": [mean], "quantiles": quantiles | {"costs": [[0.0, most]]}}
        return dataclasses.replace(run, final=final).words()

    assert "an episode may cost 300, but none of these cost more than 4" in words(0.5, 4.0)
    for mean, most in ((0.5, 40.0), (1.5, 4.0)):  # episodes do come near; the policy does not keep the limit
        assert words(mean, most).startswith("NOT CERTIFIED") and "episode_cost_bounds" not in words(mean, most)
