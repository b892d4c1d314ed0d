"""What people write who come from other libraries, or in other units, and what they are told."""

from dataclasses import fields

import pytest
import simulators  # noqa: F401  (registers tests/Line-v0)
from typer.testing import CliRunner

from pcces.cli import app, common
from pcces.cli.common import playable
from pcces.policies import ALGORITHMS, algorithm_name, find_algorithm, prepare
from pcces.rl.arguments import ARGUMENTS
from pcces.rl.meanings import MEANINGS
from pcces.rl.request import Request
from pcces.studies import selection
from pcces.studies.catalogue import EXPERIMENTS


def here(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def is_refused(done, says):
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and says in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("PPO-Lag", "ppo-lag"), ("ppolag", "ppo-lag"), ("PPO_Lagrangian", "ppo-lag"), ("OpenES", "openes"),
        ("OpenAI-ES", "openes"), ("PCCES", "pcces"), ("Cpo", "cpo"), ("A.S.E.B.O.", "asebo"), ("RCPO", "rcpo"),
    ],
)  # fmt: skip
def test_algorithms_are_known_however_they_are_written(written, meant):
    assert algorithm_name(written) == meant == find_algorithm(written).name


def test_an_algorithm_that_is_not_there_is_told_with_the_nearest():
    for written, says in (("ppo", "did you mean 'ppo-lag'?"), ("TRPO", "'cpo'?"), ("sgd", ", ".join(ALGORITHMS))):
        with pytest.raises(ValueError, match=f"unknown algorithm '{written}'; .*{says}"):
            algorithm_name(written)


def test_a_run_and_its_folder_have_the_name_as_it_is_here(tmp_path, monkeypatch):
    training = prepare("CartPole-v0", [0], "PPO-Lag", iterations=1)
    assert training.runs[0].config["algorithm"] == "ppo-lag"
    monkeypatch.chdir(tmp_path)
    refused = here("train", "CartPole-v0", "--algorithm", "PPO-Lag", "--resume")
    is_refused(refused, "there is no run to continue in runs/CartPole-v0/ppo-lag-default-seed0")
    (kept,) = selection.only([EXPERIMENTS["entropy"]], ["CartPole-v0"], ["OpenES"])
    assert {arm.algorithm for arm in kept.arms} == {"openes"}


@pytest.mark.parametrize(
    ("algorithm", "written", "meant"),
    [
        ("pcces", "lr", "rate"), ("ppo-lag", "learning_rate", "rate"), ("openes", "lr", "step_size"),
        ("cpo", "lr", "delta"), ("pcces", "gain", "last_layer"), ("pcces", "lambda", "gae"),
        ("openes", "lambda", "population"), ("pcces", "epochs", "iterations"), ("pcces", "total_timesteps", "steps"),
        ("pcces", "n_steps", "epoch_steps"), ("ppo-lag", "lambda_lr", "multiplier_rate"), ("cpo", "max_kl", "delta"),
        ("ppo-lag", "clip_range", "clip"), ("ppo-lag", "entCoef", "entropy"), ("pcces", "net_arch", "hidden"),
        ("pcces", "n_envs", "workers"), ("pcces", "normalize", "normalise"), ("pcces", "cost_limit", "threshold"),
        ("pcces", "sigma", "sigma0"),
    ],
)  # fmt: skip
def test_settings_of_other_libraries_are_told_by_their_names_here(algorithm, written, meant):
    with pytest.raises(TypeError, match=rf"unknown setting '{written}'.*; did you mean '{meant}'\?"):
        prepare("CartPole-v0", [0], algorithm, **{written: 1})
    option = f"--{meant}" if meant in ("iterations", "steps", "workers", "threshold", "population") else meant
    is_refused(here("train", "CartPole-v0", "--algorithm", algorithm, "--set", f"{written}=1"), f"mean '{option}'?")


def test_every_meaning_is_a_setting_or_an_argument_there_is():
    settings = {name for algorithm in ALGORITHMS for name in common.settings_of(algorithm)}
    settings |= set(common.settings_of("pcces", "paper"))
    assert {name for names in MEANINGS.values() for name in names} <= settings | set(ARGUMENTS)
    own = {field.name for field in fields(Request)} - {"task", "seeds", "settings"}
    assert own | {"seed", "progress", "callback", "report", "trackers"} == set(ARGUMENTS)
    assert not set(MEANINGS) & set(ARGUMENTS)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["train", "--lr", "3e-4"], "there is no option --lr; did you mean --set rate=3e-4?"),
        (["train", "--lr=3e-4", "--algorithm", "OpenES"], "did you mean --set step_size=3e-4?"),
        (["train", "--total-timesteps", "1e6"], "did you mean --steps?"),
        (["train", "--cost-limit", "25"], "did you mean --threshold?"),
        (["train", "--cost-bound", "0,1"], "did you mean --cost-bounds?"),
        (["train", "--xyzzy"], "`pcces train --help` shows all"),
        (["evaluate", "--workers", "2"], "there is no option --workers; `pcces evaluate --help` shows all"),
        (["train", "--cost-bounds", "0,1", "--cost-bounds", "0,2"], "--cost-bounds is given 2 times; give it once, it"),
        (["train", "--set", "seed=3"], "give seed as --seed, not with --set"),
        (["train", "--set", "gamma=0.99"], "the discount of returns is called discount"),
    ],
)
def test_options_that_are_not_there_or_twice_are_refused_with_what_was_meant(words, says):
    is_refused(here(words[0], "CartPole-v0", *words[1:]), says)


def test_tasks_without_their_version_and_twins_of_ours_are_told_once():
    is_refused(here("train", "CartPole"), "unknown task 'CartPole'; did you mean 'CartPole-v1' or 'CartPole-v0'")
    is_refused(here("train", "CartSafe"), "did you mean 'CartSafe-v0' or 'CartSafeDelayed-v0'?")


@pytest.mark.parametrize(
    ("task", "asked", "says"),
    [
        ("CartSafe-v0", {"threshold": -5}, "an episode of CartSafe-v0 costs at least 0"),
        ("CartSafe-v0", {"limits": "off_centre: mean <= -5"}, "no policy keeps off_centre <= -5"),
        ("tests/Line-v0", {"threshold": -5, "cost": "one_unit"}, "Is the sign wrong"),
    ],
)  # fmt: skip
def test_a_negative_threshold_is_refused_unless_costs_can_be_negative(task, asked, says):
    if "cost" in asked:
        asked = asked | {"cost": one_unit}
    with pytest.raises(ValueError, match=says):
        prepare(task, [0], iterations=1, **asked)


def one_unit(observation, action, info):
    return 1.0


def test_a_negative_threshold_is_taken_where_the_bounds_allow_it():
    training = prepare(
        "tests/Line-v0", [0], workers=1, iterations=1, threshold=-5, cost=one_unit, cost_bounds=(-1.0, 1.0), hidden=(4,),
        epoch_steps=100,
    )  # fmt: skip
    training.arena.close()
    assert training.runs[0].problem.thresholds == (-5.0,)


@pytest.mark.parametrize(
    ("name", "cause", "hint"), [("tank", None, "tank"), (None, "tank", "tank"), (None, None, "MODULE")]
)
def test_the_module_to_import_has_a_name_in_the_hint(monkeypatch, tmp_path, name, cause, hint):
    class Task:
        name = "tank:Tank-v0"

        def known(self):
            raise ModuleNotFoundError("no such module", name=name) from (cause and ModuleNotFoundError("x", name=cause))

    class Run:
        task = Task()

        def trained(self):
            pass

    monkeypatch.setattr(common, "Simulator", Task)
    monkeypatch.setattr(common, "loaded", lambda *words: [Run()])
    monkeypatch.setattr(common, "elsewhere", lambda run, engine: run)
    with pytest.raises(ImportError, match=rf"go to its folder, and give --import {hint}$"):
        playable([tmp_path], None, None)
