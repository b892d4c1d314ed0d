"""Constraints: Eq. 4, its allowance, hidden constraints, restoration and annealing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pcces.core.algorithm import Rule, sufficient_decrease
from pcces.core.barrier import anneal, barrier, comparable, feasible_first, violation

one = np.float64
inf, nan = np.inf, np.nan


def test_violation_is_that_of_the_worst_constraint():
    c = np.array([[-1.0, 0.5], [0.25, -2.0], [-1.0, -0.1], [0.0, -3.0]])
    assert violation(c).tolist() == [0.5, 0.25, 0.0, 0.0]
    assert violation(np.array([0.3, 0.2])) == 0.3


def test_the_allowance_of_equation_4_and_a_margin():
    c = np.array([0.3, -1.0])
    assert violation(c, allowance=0.3) == 0.0  # eps_c sigma
    assert violation(c, allowance=0.2) == pytest.approx(0.1)
    assert violation(np.array([-0.05]), allowance=-0.1) == pytest.approx(0.05)  # a margin is a negative allowance


def test_no_constraints_are_never_broken():
    assert violation(np.zeros((3, 0))).tolist() == [0.0, 0.0, 0.0]
    assert violation(np.zeros((3, 0), np.float32)).dtype == np.float32


def test_a_failed_constraint_is_infinitely_broken():
    assert violation(np.array([inf, -1.0])) == inf
    assert violation(np.array([inf, -1.0]), allowance=1e300) == inf


def test_the_extreme_barrier():
    f = np.array([1.0, 2.0, nan, -inf, inf])
    assert barrier(f, np.array([0.0, 1e-300, 0.0, 1.0, 0.0])).tolist() == [1.0, inf, inf, inf, inf]


# -- the fitness that samples are ranked by -----------------------------------------------------------------------------------

fs = arrays(float, 8, elements=st.floats(-1e3, 1e3))
broken_by = arrays(float, 8, elements=st.one_of(st.just(0.0), st.floats(1e-3, 1e3)))


@given(fs, broken_by, st.sets(st.integers(0, 7)))
def test_feasible_first_orders_feasible_by_f_then_infeasible_by_violation_then_failed(f, broken, failed):
    f, broken = f.copy(), broken.copy()
    for i in failed:
        f[i] = broken[i] = inf
    fitness = feasible_first(f, broken)
    feasible = [i for i in range(8) if i not in failed and broken[i] == 0]
    infeasible = [i for i in range(8) if i not in failed and broken[i] > 0]
    assert np.array_equal(fitness[feasible], f[feasible])
    assert np.all(np.isinf(fitness[list(failed)]))
    assert np.all(np.isfinite(fitness[feasible + infeasible]))
    for i in infeasible:
        assert all(fitness[i] >= fitness[j] for j in feasible)
        assert all((fitness[i] > fitness[j]) >= (broken[i] > 1.001 * broken[j]) for j in infeasible)


def test_violations_count_in_units_of_the_spread_of_f():
    assert feasible_first(np.array([10.0, 30.0, 0.0]), np.array([0.0, 0.0, 0.5])).tolist() == [10.0, 30.0, 40.0]
    # without a feasible one, the violation alone
    assert feasible_first(np.array([7.0, -7.0]), np.array([0.5, 2.0])).tolist() == [0.5, 2.0]


def test_everything_failed():
    assert feasible_first(np.full(3, inf), np.full(3, inf)).tolist() == [inf] * 3
    assert feasible_first(np.array([nan, 1.0]), np.array([0.0, 0.0])).tolist() == [inf, 1.0]


# -- what Step 4 compares -----------------------------------------------------------------------------------------------------


def accepted(f_trial, broken_trial, f_incumbent, broken_incumbent, rho=None):
    rule = Rule.conform(gamma=2.0, kappa=1e-6)
    pair = comparable(one(f_trial), one(broken_trial), one(f_incumbent), one(broken_incumbent), rho)
    return bool(sufficient_decrease(*pair, one(1.0), rule))


def test_a_feasible_incumbent_is_compared_by_the_barrier():
    assert accepted(1.0, 0.0, 2.0, 0.0)
    assert not accepted(3.0, 0.0, 2.0, 0.0)
    assert not accepted(-1e9, 1e-9, 2.0, 0.0)  # no objective is worth a violation
    assert not accepted(inf, 0.0, 2.0, 0.0)
    assert not accepted(nan, 0.0, 2.0, 0.0)


def test_an_infeasible_incumbent_is_left_by_its_violation():
    assert accepted(100.0, 0.2, 1.0, 0.7)  # less broken wins whatever f says
    assert not accepted(-100.0, 0.8, 1.0, 0.7)
    assert accepted(1e9, 0.0, 1.0, 0.7)  # feasible beats infeasible
    assert not accepted(inf, inf, 1.0, 0.7)
    assert not accepted(inf, 0.0, 1.0, 0.7)  # a failed evaluation is not feasible
    assert accepted(5.0, 3.0, inf, inf)  # anything beats a failed incumbent


def test_a_failed_trial_does_not_replace_a_failed_incumbent():
    assert not accepted(inf, inf, inf, inf)


def test_the_merit_does_not_forget_the_objective():
    assert not accepted(100.0, 0.2, 1.0, 0.7, rho=1.0)
    assert accepted(100.0, 0.2, 1.0, 0.7, rho=1000.0)
    assert accepted(-1.0, 0.8, 1.0, 0.7, rho=1.0)  # a little more broken but much better
    assert accepted(1e9, 0.0, 1.0, 0.7, rho=1.0)
    assert comparable(one(2.0), one(0.5), one(3.0), one(0.25), 4.0) == (4.0, 4.0)


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.one_of(st.none(), st.floats(0.1, 100)))
def test_a_failed_trial_is_never_accepted(f_incumbent, broken_incumbent, rho):
    for bad in (inf, nan):
        assert not accepted(bad, inf, f_incumbent, broken_incumbent, rho)


def test_annealing_falls_linearly_to_zero():
    assert anneal(2.0, np.array([0, 1, 5, 10, 50]), 10).tolist() == [2.0, 1.8, 1.0, 0.0, 0.0]
