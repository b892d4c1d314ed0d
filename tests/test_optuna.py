"""PccesSampler in real studies of Optuna."""

import functools
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from pcces.integrations.optuna import PccesSampler, certified  # noqa: E402
from pcces.integrations.optuna.parameters import Parameters  # noqa: E402


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


def constraints(trial):
    return trial.user_attrs["c"]


def objective(trial, noise=0.0):
    """Least at (1, 1), and with the constraint at (0.5, 0.5). Noise depends on the trial's number alone."""
    x, y = trial.suggest_float("x", -2, 2), trial.suggest_float("y", -2, 2)
    a, b = noise * np.random.default_rng(trial.number).standard_normal(2)
    trial.set_user_attr("c", (x + y - 1 + b,))
    return (x - 1) ** 2 + (y - 1) ** 2 + a


def noisy(trial):
    return objective(trial, 0.05)


def sampler(evaluations=40, **options):
    return PccesSampler(max_evaluations=evaluations, constraints_func=constraints, seed=0, **options)


def studied(fun=objective, n_trials=200, of=None, n_jobs=1, **given):
    study = optuna.create_study(sampler=of or sampler(), **given)
    study.optimize(fun, n_trials=n_trials, n_jobs=n_jobs)
    return study


def params(study):
    return [trial.params for trial in study.trials]


@functools.cache
def whole():
    """A study that nothing interrupted, to compare others with."""
    return studied(noisy, of=sampler(40))


# -- parameters --------------------------------------------------------------------------------------------------------


ALL = {
    "a": (FloatDistribution(-1.0, 3.0), [-1.0, 0.3, 3.0]),
    "b": (FloatDistribution(1e-5, 1.0, log=True), [1e-5, 0.01, 1.0]),
    "c": (FloatDistribution(0.1, 0.7, step=0.2), [0.1, 0.3, 0.5, 0.7]),
    "d": (IntDistribution(-3, 4), [-3, 0, 4]),
    "e": (IntDistribution(1, 1000, log=True), [1, 30, 1000]),
    "f": (IntDistribution(10, 21, step=5), [10, 15, 20]),
    "g": (CategoricalDistribution([None, True, 1.5, "x"]), [None, True, 1.5, "x"]),
    "h": (CategoricalDistribution([1, True]), [1]),  # equal, and two choices
}


def test_parameters_there_and_back():
    space = Parameters({name: distribution for name, (distribution, _) in ALL.items()})
    for i in range(4):
        given = {name: values[i % len(values)] for name, (_, values) in ALL.items()}
        back = space.params(space.point(given))
        assert back == pytest.approx(given) if i else back == given
        assert [type(v) for v in back.values()] == [type(v) for v in given.values()]
    assert space.point({"a": 0.0}) is None and space.point({**given, "a": 99.0}) is None
    again = Parameters.from_plain(space.plain())
    assert again.plain() == space.plain() and again.bounds == space.bounds
    near = {**given, "a": given["a"] + 1e-9}
    assert space.same(given, near) and not space.same(given, {**given, "a": 0.9}) and not space.same(given, {})


def test_every_kind_of_parameter_is_searched():
    def fun(trial):
        rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
        layers = trial.suggest_int("layers", 2, 14, step=4)
        kind = trial.suggest_categorical("kind", ["a", "b", None])
        grid = trial.suggest_float("grid", 0.0, 1.0, step=0.25)
        width = trial.suggest_int("width", 1, 512, log=True)
        fixed = trial.suggest_int("fixed", 3, 3)
        return (
            (np.log10(rate) + 3) ** 2
            + abs(layers - 10) / 4
            + (kind is not None)
            + (grid - 0.5) ** 2
            + np.log2(width / 64) ** 2
            + fixed
        )

    study = studied(fun, of=PccesSampler(max_evaluations=150, seed=1))
    best = certified(study)
    assert best.holds and best.params["layers"] == 10 and best.params["kind"] is None and best.params["grid"] == 0.5
    assert 3e-4 < best.params["rate"] < 3e-3 and 40 < best.params["width"] < 100 and best.params["fixed"] == 3
    assert best.value < 3.3 and len(study.trials) == 1 + best.result.nfev <= 151  # the first one was random


# -- searching -----------------------------------------------------------------------------------------------------------


def test_the_optimum_under_a_constraint_is_found_and_certified():
    study = studied()
    best = certified(study)
    assert best and best.holds and [best.params["x"], best.params["y"]] == pytest.approx([0.5, 0.5], abs=0.05)
    assert best.certificate.holds and best.params["x"] + best.params["y"] <= 1
    assert len(study.trials) == 41 and best.result.nfev == 40 and "x" in repr(best)
    assert best.trials and all(study.trials[i].params == best.params for i in best.trials)
    assert study.trials[-1].system_attrs["constraints"] == list(study.trials[-1].user_attrs["c"])


def test_under_noise_the_repeats_certify():
    study = studied(noisy, of=sampler(80))
    best = certified(study)
    assert best.holds and best.certificate.samples == len(best.trials) >= 8 and best.certificate.grade == "asymptotic"
    repeats = [study.trials[i] for i in best.trials]
    assert best.value == pytest.approx(np.mean([trial.value for trial in repeats]))
    assert np.mean([trial.user_attrs["c"][0] for trial in repeats]) < 0 and best.params["x"] + best.params["y"] < 1
    assert 0.5 <= (best.params["x"] - 1) ** 2 + (best.params["y"] - 1) ** 2 < 0.75
    luckiest = min(study.trials, key=lambda trial: trial.value)
    assert luckiest.params["x"] + luckiest.params["y"] > 1  # what a look at the values alone would give


def test_maximising():
    study = studied(lambda trial: -objective(trial), direction="maximize")
    best = certified(study)
    assert best.holds and best.value == pytest.approx(-0.5, abs=0.05)


def test_options_of_the_optimizer():
    def fun(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.set_user_attr("c", (float(np.random.default_rng(trial.number).random() < x**2),))
        return -x

    of = PccesSampler(
        max_evaluations=400, constraints_func=constraints, seed=0, limits=["P(> 0) <= 0.2"], confidence=0.9
    )
    best = certified(studied(fun, of=of, n_trials=500))
    assert best.holds and best.certificate.grade == "guaranteed" and best.certificate.confidence == 0.9
    assert 0.1 < best.params["x"] < 0.2**0.5


@pytest.mark.skipif(not hasattr(optuna.trial.Trial, "set_constraint"), reason="since Optuna 5")
def test_constraints_that_trials_are_given_by_name():
    def fun(trial):
        value = objective(trial)
        trial.set_constraint("load", trial.params["x"] - 1.9)
        trial.set_constraint("heat", trial.user_attrs["c"][0])
        return value

    best = certified(studied(fun, of=PccesSampler(max_evaluations=40, seed=0)))
    assert best.holds and best.result.setting.constraints == ("heat", "load")
    assert best.result.constr == pytest.approx(
        [best.params["x"] + best.params["y"] - 1, best.params["x"] - 1.9], abs=1e-6
    )


def test_failed_and_pruned_trials_are_failed_evaluations():
    def fun(trial):
        value = objective(trial)
        if trial.params["y"] > 0.6:
            raise optuna.TrialPruned
        if trial.params["x"] > 1.2:
            raise ValueError("no")
        return value

    study = optuna.create_study(sampler=sampler(60))
    study.optimize(fun, n_trials=100, catch=(ValueError,))
    states = [trial.state for trial in study.trials]
    best = certified(study)
    assert TrialState.PRUNED in states and best.holds and best.params["y"] <= 0.6
    asked = [trial for trial in study.trials if "pcces:asked" in trial.system_attrs]
    assert best.result.failures == sum(trial.state != TrialState.COMPLETE for trial in asked) > 0


def test_what_is_not_in_every_trial_is_left_to_another_sampler():
    def fun(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        x = trial.suggest_float("x", -2, 2)
        extra = trial.suggest_float("extra", 0, 1) if kind == "a" else 0.5
        return x**2 + (kind == "a") + extra

    study = studied(fun, of=PccesSampler(max_evaluations=40, seed=0))
    best = certified(study)
    assert set(best.params) == {"kind", "x"} and best.params["kind"] == "b" and abs(best.params["x"]) < 0.1
    extras = [trial.params["extra"] for trial in study.trials if "extra" in trial.params]
    assert len(set(extras)) == len(extras) > 1


def test_enqueued_trials_are_made_and_are_no_evaluations_of_the_search():
    study = optuna.create_study(sampler=sampler())
    study.enqueue_trial({"x": 0.25, "y": 0.25})
    study.optimize(objective, n_trials=10)
    study.enqueue_trial({"x": -1.0})
    study.optimize(objective, n_trials=200)
    assert params(study)[0] == {"x": 0.25, "y": 0.25} == params(study)[1]  # where the search begins
    assert params(study)[10]["x"] == -1.0
    best = certified(study)
    assert best.holds and best.result.nfev == 40 and best.params["x"] == pytest.approx(0.5, abs=0.05)


def test_earlier_trials_are_where_the_search_begins():
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0, constraints_func=constraints))
    study.optimize(objective, n_trials=20)
    feasible = [trial for trial in study.trials if trial.user_attrs["c"][0] <= 0]
    first = min(feasible, key=lambda trial: trial.value)
    study.sampler = sampler()
    study.optimize(objective, n_trials=200)
    assert study.trials[20].params == pytest.approx(first.params) and len(study.trials) == 60
    assert certified(study).value <= first.value


# -- several at once -----------------------------------------------------------------------------------------------------


def test_several_jobs_at_once():
    together, most = set(), []
    lock = threading.Lock()

    def fun(trial):
        with lock:
            together.add(trial.number)
            most.append(len(together))
        time.sleep(0.002)
        with lock:
            together.discard(trial.number)
        return objective(trial)

    study = studied(fun, of=sampler(60), n_jobs=4)
    best = certified(study)
    assert max(most) > 1 and best.holds
    assert [best.params["x"], best.params["y"]] == pytest.approx([0.5, 0.5], abs=0.1)
    assert all(trial.state.is_finished() for trial in study.trials)


def test_by_hand_in_any_order():
    study = optuna.create_study(sampler=sampler(30))
    out, rng = [], np.random.default_rng(0)
    while len(study.trials) < 200 and (len(study.trials) % 5 or not certified(study).certificate):
        out.append(study.ask())
        out[-1].suggest_float("x", -2, 2), out[-1].suggest_float("y", -2, 2)
        if len(out) >= 3:
            trial = out.pop(int(rng.integers(3)))
            study.tell(trial, objective(trial))
    assert certified(study).holds


def test_a_trial_that_never_comes_back_holds_nothing_up():
    study = optuna.create_study(sampler=sampler(30))
    study.optimize(objective, n_trials=5)
    lost = study.ask()
    lost.suggest_float("x", -2, 2), lost.suggest_float("y", -2, 2)
    study.optimize(objective, n_trials=100)
    assert certified(study).holds and study.trials[5].state == TrialState.RUNNING
    assert sum(trial.params == lost.params for trial in study.trials) >= 2  # somebody else made it


# -- another process -------------------------------------------------------------------------------------------------------


def stored(path, **given):
    return optuna.create_study(study_name="s", storage=f"sqlite:///{path}", load_if_exists=True, **given)


def test_a_study_goes_on_from_its_storage_as_if_nothing_had_happened(tmp_path):
    for n_trials in (1, 13, 100):
        study = stored(tmp_path / "study.db", sampler=sampler(40))
        study.optimize(noisy, n_trials=n_trials)
    again = optuna.load_study(study_name="s", storage=f"sqlite:///{tmp_path / 'study.db'}")
    assert params(again) == params(whole()) and len(again.trials) == 41
    found, expected = certified(again), certified(whole())
    assert found.certificate == expected.certificate and found.params == expected.params


PROGRAM = """
import sys, warnings
sys.path[:0] = [{tests!r}, {root!r}]
import optuna
from test_optuna import noisy, sampler, stored
optuna.logging.set_verbosity(optuna.logging.ERROR)
stored({path!r}, sampler=sampler(40)).optimize(noisy, n_trials={n})
"""


def test_another_process_goes_on(tmp_path):
    tests = Path(__file__).parent
    for n in (9, 100):
        program = PROGRAM.format(tests=str(tests), root=str(tests.parent), path=str(tmp_path / "study.db"), n=n)
        subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True)
    assert params(stored(tmp_path / "study.db")) == params(whole())


def test_two_samplers_share_a_study():
    """As two processes would: each rebuilds what the other did."""
    study, both = optuna.create_study(), (sampler(40), sampler(40))
    for i in range(len(whole().trials)):
        study.sampler = both[i % 2]
        study.optimize(noisy, n_trials=1)
    assert certified(study).certificate == certified(whole()).certificate
    assert params(study) == params(whole())


def test_other_arguments_begin_another_search_and_no_seed_takes_the_one_that_is_there():
    study = studied(noisy, n_trials=12, of=sampler(40))
    study.sampler = PccesSampler(max_evaluations=40, constraints_func=constraints)
    study.optimize(noisy, n_trials=100)
    assert params(study) == params(whole())
    study.sampler = sampler(60)
    study.optimize(noisy, n_trials=100)
    second = certified(study)
    assert 40 < second.result.nfev <= 60 and len(study.trials) == 41 + second.result.nfev and second.holds


# -- what is said ----------------------------------------------------------------------------------------------------------


def test_what_is_missing_for_a_certificate():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=3)
    assert not certified(study) and "PccesSampler proposed no trial" in str(certified(study))
    study.sampler = sampler(50)
    study.optimize(objective, n_trials=10)
    early = certified(study)
    assert not early.holds and early.certificate is None and set(early.params) == {"x", "y"}
    assert "the search has made 10 of its evaluations; run up to 40 more trials" in early.message
    hopeless = studied(lambda trial: (objective(trial), trial.set_user_attr("c", (1.0,)))[0], of=sampler(30))
    assert not certified(hopeless) and "no feasible point was found" in certified(hopeless).message


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_evaluation": 3}, "did you mean 'max_evaluations'"),
        ({"bounds": [(0, 1)]}, "bounds comes from the study"),
        ({"rng": 3}, "use seed instead of rng"),
        ({"max_evaluations": 0}, "max_evaluations must be a whole number of at least 1"),
        ({"confidence": 2.0}, "confidence must lie in"),
    ],
)
def test_wrong_options_are_refused_at_once(wrong, said):
    with pytest.raises((TypeError, ValueError), match=said):
        PccesSampler(**{"max_evaluations": 30} | wrong)


def test_two_objectives_are_refused():
    study = optuna.create_study(sampler=sampler(), directions=["minimize", "minimize"])
    with pytest.raises(ValueError, match="use constraints for other values"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 1.0), n_trials=2)


def test_trials_with_other_constraints_are_refused():
    def fun(trial):
        value = objective(trial)
        trial.set_user_attr("c", (-1.0,) * (1 + (trial.number > 5)))
        return value

    with pytest.raises(ValueError, match="trial 6 has 2 constraints, but those before it had 1 constraint"):
        studied(fun)


def test_without_optuna_the_extra_is_named():
    program = "import sys; sys.modules['optuna'] = None\nimport pcces.integrations.optuna"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=Path(__file__).parent.parent
    )
    assert "pip install 'pcces[optuna]'" in done.stderr


def test_a_sampler_can_be_copied(tmp_path):
    import copy

    study = studied(noisy, n_trials=5, of=sampler(40))
    study.sampler = copy.deepcopy(study.sampler)
    study.optimize(noisy, n_trials=100)
    assert params(study) == params(whole())
