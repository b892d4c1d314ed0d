"""Limits on policies that are not on means: failure probabilities, quantiles and CVaR of what an episode costs."""

import html
import json
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
import small
from scipy.stats import binom
from typer.testing import CliRunner

import pcces
from pcces.cli import app
from pcces.cli.train import default_folder
from pcces.core.estimation import estimate
from pcces.envs import make
from pcces.envs.task import Discrete
from pcces.limits import CVaR, Mean, Probability, Quantile
from pcces.rl import certify, selection
from pcces.rl.folder import load
from pcces.rl.iterates import Candidates
from pcces.rl.outcome import Outcome
from pcces.rl.policy import Policy
from pcces.rl.problem import Limit, Problem, problem_for

NO_ENTROPY = (-math.inf, math.inf)


# -- what is asked for ----------------------------------------------------------------------------------------------------------


def test_a_limit_is_kept_where_the_mean_of_what_episodes_say_is_at_most_zero():
    cost = np.random.default_rng(0).exponential(10.0, 4000)
    for limit in (Mean(9.0), Probability(20.0, 0.1), Quantile(0.8, 15.0), CVaR(0.2, 25.0)):
        on = Limit.on("cost", limit)
        found = limit.estimate(cost)
        most = limit.at_most if limit.kind != "quantile" else 1 - limit.q
        if limit.kind == "quantile":  # at most so much where few enough are above
            found = float(np.mean(cost > limit.at_most))
        assert on.estimate(cost) == pytest.approx(found, rel=1e-3) and on.most == pytest.approx(most)
        assert np.mean(on.samples(cost)) == pytest.approx(found - most, rel=1e-2, abs=1e-3)
    for level in (0.0, 10.0, 40.0):  # a CVaR is never underestimated, whatever the level
        assert np.mean(Limit.on("c", CVaR(0.2, 0.0)).samples(cost, level)) >= CVaR(0.2).estimate(cost) - 1e-9
    assert Limit("entropy", False, 2.0).samples(3.0) == -1.0  # at least


def test_episodes_that_failed_say_nothing_about_quantiles():
    cost = np.array([1.0, np.nan, 3.0, 2.0])
    assert Limit.on("c", CVaR(0.5, 0.0)).level(cost) == 2.0
    limits = Problem(("c",), (0.0,), NO_ENTROPY, 0.0, False, (CVaR(0.5, 0.0),))
    assert certify.quantiles(limits, cost[None]) == [2.0] and certify.quantiles(limits, cost[None, 1:2]) == [0.0]


def test_limits_are_named_and_in_words():
    task = make("CartSafe-v0")
    for given in ("off_centre: P(> 20) <= 0.1", ["off_centre: P(> 20) <= 0.1"], {"off_centre": Probability(20, 0.1)}):
        problem = problem_for(task, 0.0, limits=given)
        assert problem.asked == (Probability(20.0, 0.1),) and problem.thresholds == (20.0,) and not problem.on_means
        assert problem.names[0] == "P(off_centre > 20) <= 0.1"
    assert problem_for(task, 0.0, limits={"off_centre": 25}) == problem_for(task, 0.0, threshold=25)  # a mean's
    words = [Limit.on("c", limit).short for limit in (Mean(3), Quantile(0.9, 4), CVaR(0.1, 5))]
    assert words == ["3", "P(> 4) <= 0.1", "CVaR0.1 <= 5"]


@pytest.mark.parametrize(
    ("limits", "threshold", "message"),
    [
        ({"off_center": 3}, None, "CartSafe-v0 has no cost called 'off_center'; its costs are off_centre"),
        ({"off_centre": 3}, 2.0, "give either limits or threshold"),
        ("off_centre <= 3", None, "a limit on a cost reads 'NAME: LIMIT'"),
        (["off_centre: median <= 3"], None, "a limit reads 'mean <= 25'"),
        (["off_centre: mean <= 3", "off_centre: P(> 9) <= 0.1"], None, "there are two limits on off_centre"),
        ([Probability(1, 0.1)], None, "limits go by the names of costs"),
        (Probability(1, 0.1), None, "limits go by the names of costs"),
    ],
)
def test_limits_that_make_no_sense(limits, threshold, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        problem_for(make("CartSafe-v0"), 0.0, threshold, limits=limits)


def test_costs_without_a_limit():
    task = SimpleNamespace(name="Mill", cost_names=("wear", "noise"), thresholds=(), entropy_bounds=NO_ENTROPY)
    with pytest.raises(ValueError, match="Mill has no threshold for noise: give a limit on each"):
        problem_for(task, 0.0, limits={"wear": 3})
    assert problem_for(task, 0.0, limits={"wear": 3, "noise": CVaR(0.1, 2)}).asked == (Mean(3.0), CVaR(0.1, 2.0))


@pytest.mark.parametrize("algorithm", ["ppo-lag", "rcpo", "cpo"])
def test_baselines_of_means_refuse_other_limits(algorithm):
    with pytest.raises(ValueError, match=f"{algorithm} only knows limits on means"):
        pcces.train("CartSafe-v0", algorithm=algorithm, limits="off_centre: P(> 20) <= 0.1")


# -- the certificate ------------------------------------------------------------------------------------------------------------


def chosen(limit, draw, seed, bounds=None, iterates=6, episodes=200):
    """What comes of iterates whose costs are drawn like this."""
    task, policy = SimpleNamespace(cost_bounds=bounds, max_steps=1), Policy(1, Discrete(2), (2,))
    problem = Problem(("c",), (limit.origin,), NO_ENTROPY, 0.0, False, (limit,))
    rng = np.random.default_rng(seed)

    def play(x, normalizer, number, seed):
        zero = np.zeros(number)
        return Outcome(rng.standard_normal(number), zero, draw(rng, number)[None], zero, zero + 1)

    candidates = Candidates(1, 1, 2)
    for i in range(iterates):
        y = np.asarray(problem.outputs(play(None, None, 64, 0)), dtype=float)
        candidates.add(np.full(1, i), np.zeros(1), np.ones(1), estimate(y), True)
    return selection.choose(task, policy, problem, play, candidates, episodes, seed)[2], problem, play


CASES = {
    "probability": (Probability(1.0, 0.1), -math.log(0.1), "binomial"),
    "quantile": (Quantile(0.8, 1.0), -math.log(0.2), "binomial"),
    "cvar": (CVaR(0.3, 1.0), 1 - math.log(0.3), "t"),
}


@pytest.mark.parametrize("kind", CASES)
def test_certificates_of_policies_are_wrong_as_seldom_as_they_say(kind):
    """Costs are exponential, with the limited quantity a hair above its limit; and well below it."""
    limit, at_scale_one, method = CASES[kind]
    runs = 100

    def draw(factor):
        return lambda rng, n: rng.exponential(factor / at_scale_one, n)

    wrong = [chosen(limit, draw(1.0001), seed)[0] for seed in range(runs)]
    assert binom.sf(sum(c.holds for c in wrong) - 1, runs, 0.05) > 1e-3
    right = [chosen(limit, draw(0.6), seed)[0] for seed in range(10)]
    assert sum(c.holds for c in right) >= 9 and {c.method for c in right} == {method}
    assert {c.grade for c in right if c.holds} == {"guaranteed" if method == "binomial" else "asymptotic"}


def test_a_cvar_of_costs_within_bounds_is_guaranteed():
    for bounds, method in ((None, "t"), ((0.0, 1.0), "betting")):
        certificate, problem, play = chosen(CVaR(0.2, 0.95), lambda rng, n: 0.8 * rng.random(n), 0, bounds)
        assert certificate.holds and certificate.method == method
        assert 0.72 < 0.95 + certificate.upper_bounds[0] <= 0.95  # the truth, and the limit
    # Without an earlier look a fifth of the episodes says where the quantile is.
    again = certify.certify(problem, play(None, None, 500, 0), [(0.0 - 0.95, 1.0 - 0.95)])
    assert again.holds and again.samples == 400 and again.method == "betting"


# -- runs and their folders -----------------------------------------------------------------------------------------------------


SETTINGS = small.words(small.BATCH | {"certify_episodes": 100})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A training from the command line."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("limits"))
    words = ["train", "CartSafe-v0", "--limit", "off_centre: P(> 290) <= 0.5", "--json", "--iterations", "2", *SETTINGS]
    try:
        yield CliRunner().invoke(app, words)
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def run(done):
    return load(json.loads(done.stdout)["runs"][0]["path"])


def test_the_command_line_takes_limits(done, run):
    said = json.loads(done.stdout)
    assert done.exit_code == 0 and said["runs"][0]["words"].startswith("CERTIFIED: P(off_centre > 290) at most ")
    assert run.path.name == "pcces-default-limit-off-centre-P-290-0.5-seed0"
    assert run.problem.asked == (Probability(290.0, 0.5),)
    bad = CliRunner().invoke(app, ["train", "CartSafe-v0", "--limit", "off_centre <= 3"])
    assert bad.exit_code == 2 and "a limit on a cost reads" in bad.stderr
    assert default_folder("T", {"limits": ["a: mean <= 3"]}, [0], False).name == "pcces-default-limit-a-mean-3-seed0"


def test_a_run_says_what_was_limited(run):
    assert run.certificate.holds and "binomial" in run.certificate.method
    assert run.words().startswith("CERTIFIED: P(off_centre > 290) at most ") and "(limit 0.5)" in run.words()
    assert run.keeps_limits() and run.final["limited"][0] <= 0.5
    assert run.evaluate(100)["limits"] == ["P(off_centre > 290) <= 0.5"]
    page = html.unescape((run.path / "report.html").read_text().replace("\\u003e", ">").replace("\\u003c", "<"))
    assert "P(off_centre > 290)" in page and "limit P(> 290) <= 0.5" in page
    assert "Limits hold for the mean" not in page


def test_a_folder_keeps_its_limits(run, tmp_path):
    again = load(run.path)
    assert again.problem == run.problem and again.certificate == run.certificate and again.words() == run.words()
    config = json.loads((run.path / "config.json").read_text())
    for changed, message in (
        ({"limits": None}, "it is about other limits"),
        (
            {"limits": {"off_centre": {"kind": "probability", "above": 290.0, "at_most": 0.9}}},
            "it is about other limits",
        ),
        ({"limits": {"off_centre": {"kind": "probability", "above": 2.0, "at_most": 0.5}}}, "those of other limits"),
        ({"limits": {"off_centre": {"kind": "hope"}}}, "there is no limit of the kind 'hope'"),
        ({"limits": {"off_centre": 3}}, "is not a run's configuration"),
        ({"limits": {"elsewhere": {"kind": "mean", "at_most": 290.0}}}, "no cost called 'elsewhere'"),
    ):
        for name in ("policy.npz", "certificate.json", "metrics.csv"):
            (tmp_path / name).write_bytes((run.path / name).read_bytes())
        (tmp_path / "config.json").write_text(json.dumps(config | changed))
        with pytest.raises(ValueError, match=message):
            load(tmp_path)


def test_a_run_goes_on_with_its_own_limits_only(run):
    resume = ["train", "CartSafe-v0", "--out", str(run.path), "--resume", "--iterations", "3"]
    refused = CliRunner().invoke(app, [*resume, "--limit", "off_centre: P(> 290) <= 0.4"])
    assert refused.exit_code == 2 and "has limits.off_centre = " in refused.stderr and "0.4" in refused.stderr
    mean = CliRunner().invoke(app, [*resume, "--threshold", "290"])
    assert mean.exit_code == 2 and "cannot continue as that" in mean.stderr
    went_on = CliRunner().invoke(app, resume)
    assert went_on.exit_code == 0 and went_on.stdout.startswith("CERTIFIED: P(off_centre > 290) at most ")
    assert load(run.path).problem == run.problem and len(load(run.path).metrics["return"]) == 3
