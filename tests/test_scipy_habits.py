"""minimize as SciPy's users call it."""

import inspect
from dataclasses import fields

import numpy as np
import pytest
import scipy
from scipy.optimize import LinearConstraint, NonlinearConstraint

import pcces
from pcces.blackbox.habits import ELSEWHERE
from pcces.blackbox.optimizer import OWN

BOX = [(-2.0, 2.0)] * 2


def shifted(x, a, b=1.0):
    return (x[0] - a) ** 2 + (x[1] - b) ** 2


def test_args_go_to_fun():
    res = pcces.minimize(shifted, [0.0, 0.0], bounds=BOX, args=(0.5, -1.0), maxfev=500, rng=0)
    assert res.x == pytest.approx([0.5, -1.0], abs=1e-3)
    res = pcces.minimize(shifted, [0.0, 0.0], bounds=BOX, args=0.5, maxfev=500, rng=0)  # SciPy takes one alone, too
    assert res.x == pytest.approx([0.5, 1.0], abs=1e-3)

    def seeded(x, rng, a):
        return shifted(x, a) + 0.001 * rng.standard_normal()

    res = pcces.minimize(seeded, [0.0, 0.0], args=(0.5,), common_random_numbers=True, max_evaluations=200, rng=0)
    assert res.x == pytest.approx([0.5, 1.0], abs=0.02)  # f is 0.0004 higher there, and its noise is 0.001


def test_maxfev_maxiter_and_tol():
    res = pcces.minimize(shifted, [0.0, 0.0], args=(1,), maxfev=123, rng=0)
    assert 100 < res.nfev <= 123
    res = pcces.minimize(shifted, [0.0, 0.0], args=(1,), maxiter=3, rng=0)
    assert res.nit == 3 and "3 iterations are done" in res.message
    res = pcces.minimize(shifted, [0.0, 0.0], args=(1,), tol=0.05, rng=0, restarts=False)
    assert "the step size fell below 0.05" in res.message and res.history["sigma"][-1] < 0.05 < res.history["sigma"][-2]


def test_options_are_further_arguments():
    given = {"maxfev": 90, "gamma": 2.0, "workers": None, "disp": False}
    res = pcces.minimize(shifted, [0.0, 0.0], args=(1,), options=given, rng=0)
    assert 70 < res.nfev <= 90 and res.rule.gamma == 2.0


@pytest.mark.parametrize(
    "twice",
    [
        {"maxfev": 90, "max_evaluations": 100},
        {"options": {"maxfev": 100}, "maxfev": 90},
        {"options": {"max_evaluations": 100}, "maxfev": 90},
    ],
)
def test_what_is_given_twice_is_refused(twice):
    with pytest.raises(TypeError, match=r"max_evaluations and maxfev was given twice: (90 and 100|100 and 90)"):
        pcces.minimize(shifted, [0.0, 0.0], args=(1,), **twice)


def test_derivatives_are_not_used_and_that_is_said():
    with pytest.warns(RuntimeWarning, match=r"does not use derivatives \(jac\)") as caught:
        pcces.minimize(shifted, [0.0, 0.0], args=(1,), jac=lambda x: 2 * x, maxfev=60)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("with_gradient", [tuple, list])
def test_fun_with_a_gradient_gives_its_value_alone(with_gradient):
    def fun(x):
        return with_gradient([float(((x - 1) ** 2).sum()), 2 * (x - 1)]) if x[0] < 1.8 else np.nan

    with pytest.warns(RuntimeWarning, match="does not use derivatives"):
        res = pcces.minimize(fun, [0.0, 0.0], bounds=BOX, jac=True, maxfev=300, rng=0)
    assert res.x == pytest.approx([1, 1], abs=1e-3) and len(res.constr) == 0
    with pytest.warns(RuntimeWarning, match="does not use derivatives"):
        res = scipy.optimize.minimize(lambda x: (x[0] ** 2, 2 * x), 3.0, jac=True, method=pcces.minimize)
    assert res.x == pytest.approx([0], abs=1e-3)


@pytest.mark.parametrize("x0", [3.0, 3, np.float64(3), np.array(3.0)])
def test_a_number_is_a_start_in_one_variable(x0):
    res = pcces.minimize(lambda x: (x[0] - 1) ** 2, x0, maxfev=200, rng=0)
    assert res.x == pytest.approx([1], abs=1e-3)


@pytest.mark.parametrize("name", ["intermediate_result", "xk", "result"])
def test_callbacks_get_what_their_parameter_is_called(name):
    seen = []
    callback = eval(f"lambda {name}: seen.append({name})", {"seen": seen})
    res = pcces.minimize(shifted, [0.0, 0.0], args=(1,), callback=callback, maxfev=100, rng=0)
    assert len(seen) == len(res.history) > 2
    assert all(isinstance(each, np.ndarray) if name == "xk" else each.nfev > 0 for each in seen)


METHOD = {
    "bounds": BOX,
    "constraints": [{"type": "ineq", "fun": lambda x, most: most - x.sum(), "args": (1.0,)}, lambda x: x[0] - 1.9],
    "tol": 1e-6,
}


def test_as_a_method_of_scipys_minimize():
    seen = []
    res = scipy.optimize.minimize(
        shifted, [0, 0], args=(1.0,), method=pcces.minimize, **METHOD, options={"maxfev": 600, "rng": 0},
        callback=lambda intermediate_result: seen.append(intermediate_result.nfev),
    )  # fmt: skip
    ours = pcces.minimize(shifted, [0.0, 0.0], args=(1.0,), **METHOD, maxfev=600, rng=0)
    assert res.success and res.certificate.holds and np.array_equal(res.x, ours.x) and len(seen) == res.nit
    assert res.x == pytest.approx([0.5, 0.5], abs=1e-3) and res.x.sum() <= 1


@pytest.mark.parametrize(
    "constraints",
    [
        {"type": "ineq", "fun": lambda x: 1 - x.sum()},
        [{"type": "ineq", "fun": lambda x: [1 - x.sum(), 2 - x[0]]}, {"type": "ineq", "fun": lambda x: 1.5 - x[1]}],
        ({"type": "INEQ", "fun": lambda x, k: k - x.sum(), "args": (1,)},),
        [{"type": "eq", "fun": lambda x: x.sum() - 1}, lambda x: x[0] - 1.5],
        [NonlinearConstraint(lambda x: x[0], -2, 2), {"type": "eq", "fun": lambda x: 1 - x.sum()},
         LinearConstraint([1, 0], ub=1.5)],
    ],
)  # fmt: skip
def test_dict_constraints_have_scipys_sign(constraints):
    """The same answer as SLSQP's, where SLSQP can take them."""
    res = pcces.minimize(shifted, [0.0, 0.0], constraints, BOX, args=(1,), maxfev=1500, rng=0)
    assert res.success and res.x == pytest.approx([0.5, 0.5], abs=2e-3) and res.x.sum() <= 1 + 2e-4
    if not any(callable(each) for each in constraints):
        theirs = scipy.optimize.minimize(shifted, [0.0, 0.0], (1,), "SLSQP", bounds=BOX, constraints=constraints)
        assert res.x == pytest.approx(theirs.x, abs=2e-3)


def test_an_equality_of_several_values_says_what_to_use():
    both = {"type": "eq", "fun": lambda x: x - 1}
    with pytest.raises(TypeError, match="returned 2 values, but its lb and ub limit 1"):
        pcces.minimize(shifted, [0.0, 0.0], both, args=(1,), maxfev=50)


@pytest.mark.parametrize(
    ("wrong", "offered"),
    [("worker", "workers"), ("max_evaluation", "max_evaluations"), ("call_back", "callback"), ("bound", "bounds"),
     ("kapa", "kappa"), ("checkpint", "checkpoint"), ("scales", "scale"), ("max_evals", "max_evaluations"),
     ("constraint", "constraints"), ("n_workers", "workers"), ("func", "fun"), ("x_0", "x0"), ("limit", "limits"),
     ("seed", "rng"), ("n_jobs", "workers"), ("budget", "max_evaluations"), ("random_state", "rng"),
     ("verbose", "progress"), ("crn", "common_random_numbers"), ("method", "strategy")],
)  # fmt: skip
def test_near_names_are_offered_for_all_arguments(wrong, offered):
    with pytest.raises(TypeError, match=f"unknown option '{wrong}'; did you mean '{offered}'"):
        pcces.minimize(shifted, [0.0, 0.0], **{wrong: 1})
    with pytest.raises(TypeError, match=f"unknown option '{wrong}'; did you mean '{offered}'"):
        pcces.minimize(shifted, [0.0, 0.0], options={wrong: 1})
    if offered in ("max_evaluations", "bounds", "kappa", "scale", "rng", "strategy"):
        with pytest.raises(TypeError, match=f"unknown option '{wrong}'; did you mean '{offered}'"):
            pcces.Optimizer([0.0, 0.0], **{wrong: 1})


def test_names_from_elsewhere_mean_names_that_there_are():
    names = {*inspect.signature(pcces.minimize).parameters, *(field.name for field in fields(pcces.Options)), *OWN}
    assert set(ELSEWHERE.values()) <= names and not names & set(ELSEWHERE)
    with pytest.raises(TypeError, match="unknown option 'n_jobs'; there are x0, bounds"):  # an Optimizer has no workers
        pcces.Optimizer([0.0], n_jobs=2)
