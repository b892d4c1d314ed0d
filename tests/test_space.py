"""Where x may go: bounds to the last bit, linear sets by projection, scaling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, minimize
from scipy.sparse import csr_array

from pcces.blackbox.space import Space

numbers = st.floats(-1e9, 1e9, allow_subnormal=False)
side = st.one_of(st.none(), numbers)


@st.composite
def boxes(draw):
    n = draw(st.integers(1, 5))
    bounds, x0 = [], []
    for _ in range(n):
        low, high = draw(side), draw(side)
        if low is not None and high is not None and low > high:
            low, high = high, low
        x = draw(numbers)
        bounds.append((low, high))
        x0.append(min(max(x, -np.inf if low is None else low), np.inf if high is None else high))
    return np.array(x0), bounds


@given(boxes(), st.lists(st.floats(-1e12, 1e12), min_size=5, max_size=5))
def test_no_point_leaves_the_bounds_not_even_by_the_last_bit(box, z):
    x0, bounds = box
    space = Space(x0, bounds)
    z = np.array(z[: space.n])
    for x in (space.to_x(z), space.to_x(space.project(z)), space.to_x(space.project(np.stack([z, -z])))):
        assert np.all(x >= space.lower) and np.all(x <= space.upper)


@given(boxes())
def test_the_start_comes_back(box):
    x0, bounds = box
    space = Space(x0, bounds)
    back = space.to_x(space.project(space.to_z(x0)))
    assert np.allclose(back, x0, rtol=1e-9, atol=1e-9 * space.scale.max())


@given(boxes(), st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=5))
def test_projection_onto_bounds_is_the_nearest_point(box, z):
    x0, bounds = box
    space = Space(x0, bounds)
    z = np.array(z[: space.n])
    inside = space.project(z)
    assert np.array_equal(inside, np.minimum(np.maximum(z, space.z_lower), space.z_upper))
    assert np.array_equal(space.project(inside), inside)


def test_finite_bounds_become_the_unit_box():
    space = Space(np.array([1.0, 5.0, 3.0, -7.0]), bounds=[(0, 2), (0, 10), (None, None), (None, 0)])
    assert space.to_z(np.array([2.0, 0.0, 3.0, -7.0])).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert space.scale.tolist() == [2.0, 10.0, 3.0, 7.0]  # |x0| where a bound is missing
    assert Space(np.array([0.0, 0.5])).scale.tolist() == [1.0, 1.0]
    assert Space(np.array([0.0, 0.5]), scale=[3.0, 4.0]).to_x(np.ones(2)).tolist() == [3.0, 4.5]


def test_bounds_as_scipy_writes_them():
    pairs, objects = Space([0.0, 1.0], [(-1, 1), (0, None)]), Space([0.0, 1.0], Bounds([-1, 0], [1, np.inf]))
    assert np.array_equal(pairs.lower, objects.lower) and np.array_equal(pairs.upper, objects.upper)
    assert Space([0.0, 1.0], Bounds(-2, 2)).upper.tolist() == [2.0, 2.0]


@given(boxes(), st.lists(st.floats(-10, 10), min_size=5, max_size=5))
def test_single_precision_stays_within_the_bounds_too(box, z):
    x0, bounds = box
    middle = [(x if a is None else a) / 2 + (x if b is None else b) / 2 for (a, b), x in zip(bounds, x0)]
    space = Space(np.array(middle, dtype=np.float32), bounds)
    x = space.to_x(space.project(np.array(z[: space.n], dtype=np.float32)))
    assert x.dtype == space.dtype
    assert all(a is None or v >= a for v, (a, _) in zip(x.astype(float), bounds))
    assert all(b is None or v <= b for v, (_, b) in zip(x.astype(float), bounds))


def test_float32_stays_float32():
    space = Space(np.array([0.1, 0.2], dtype=np.float32), [(0, 1), (0.2, 0.7)])
    x = space.to_x(space.project(np.array([3.0, -3.0], dtype=np.float32)))
    assert x.dtype == np.float32


@pytest.mark.parametrize(("low", "high", "at"), [(0.7, 1, 0.7), (0, 0.3, 0.3), (-0.1, 0.1, -0.1), (0.1, 2, 0.1)])
def test_single_precision_may_start_on_a_bound(low, high, at):
    """A single-precision 0.7 is less than 0.7, and 0.3 more than 0.3."""
    space = Space(np.array([at, 0.5], dtype=np.float32), [(low, high), (0, 1)])
    x = space.to_x(space.z0)
    assert x.dtype == np.float32 and low <= float(x[0]) <= high and x[0] == pytest.approx(at, abs=1e-7)
    with pytest.raises(ValueError, match=r"x0\[0\] = .* lies outside its bounds"):
        Space(np.array([at - 1e-6 if at == low else at + 1e-6, 0.5], dtype=np.float32), [(low, high), (0, 1)])


def test_bounds_between_which_no_single_precision_number_lies_are_kept_in_double_precision():
    space = Space(np.array([0.7, 0.5], dtype=np.float32), [(0.7, 0.7), (0, 1)])
    assert space.dtype == float and space.to_x(np.array([3.0, 3.0])).tolist() == [0.7, 1.0]
    with pytest.raises(ValueError, match="the bounds of variable 1 are crossed: 1 > 0"):
        Space(np.array([0.7, 0.5], dtype=np.float32), [(0.7, 0.7), (1, 0)])


@pytest.mark.parametrize("seed", range(15))
def test_projection_onto_linear_sets_is_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed % 3
    A = rng.standard_normal((3, n))
    x0 = rng.uniform(-0.5, 0.5, n)
    constraint = LinearConstraint(A, A @ x0 - rng.exponential(1, 3), A @ x0 + rng.exponential(1, 3))
    space = Space(x0, [(-1, 1)] * n, [constraint], scale=1.0)
    z = 3 * rng.standard_normal(n)
    ours = space.project(z)
    x = space.to_x(ours)
    assert np.all(A @ x <= constraint.ub + 1e-9) and np.all(A @ x >= constraint.lb - 1e-9)
    assert np.all(np.abs(x) <= 1)
    theirs = minimize(
        lambda v: ((v - z) ** 2).sum(),
        np.zeros(n),
        jac=lambda v: 2 * (v - z),
        method="SLSQP",
        bounds=list(zip(space.z_lower, space.z_upper)),
        constraints={"type": "ineq", "fun": lambda v: space.h - space.G @ v, "jac": lambda v: -space.G},
        options={"ftol": 1e-15, "maxiter": 300},
    )
    assert np.sum((ours - z) ** 2) == pytest.approx(theirs.fun, abs=1e-7)
    assert ours == pytest.approx(theirs.x, abs=1e-5)
    grid = rng.uniform(-1, 1, (20_000, n))  # brute force: no feasible point is nearer
    feasible = grid[np.all((grid @ A.T <= constraint.ub) & (grid @ A.T >= constraint.lb), axis=1)]
    assert len(feasible) > 10
    assert np.min(((space.to_z(feasible) - z) ** 2).sum(1)) >= np.sum((ours - z) ** 2) - 1e-9


def test_linear_sets_scale_with_the_variables():
    space = Space(np.array([1.0, 10.0]), [(0, 4), (0, 40)], [LinearConstraint(csr_array([[1.0, 0.1]]), ub=3.0)])
    x = space.to_x(space.project(np.array([1.0, 1.0])))  # the corner (4, 40)
    assert x[0] + 0.1 * x[1] == pytest.approx(3.0)
    assert x == pytest.approx([1.5, 15.0])  # nearest in the unit box
    rows = space.project(np.array([[1.0, 1.0], [0.1, 0.1]]))
    assert space.to_x(rows) == pytest.approx(np.array([[1.5, 15.0], [0.4, 4.0]]))


def test_linear_equalities_are_met():
    space = Space(np.zeros(3), None, [LinearConstraint([[1.0, 1.0, 1.0]], 1.0, 1.0)])
    x = space.to_x(space.project(np.array([5.0, 2.0, -1.0])))
    assert x.sum() == pytest.approx(1.0, abs=1e-9)
    assert x == pytest.approx(np.array([5.0, 2.0, -1.0]) - 5 / 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "at least one number"),
        (([[[1.0]]],), r"shape \(1, 1\)"),
        (([0.0, np.nan],), "nan or inf at position 1"),
        (([0.0, 0.0], [(0, 1)]), "2 pairs"),
        (([0.0], [(1, -1)]), "variable 0 are crossed: 1 > -1"),
        (([0.0, 2.0], [(0, 1), (0, 1)]), r"x0\[1\] = 2 lies outside its bounds \[0, 1\]"),
        (([0.0], [(np.nan, 1)]), "bounds contain nan"),
        (([0.0], None, [LinearConstraint([[1.0, 2.0]], 0, 1)]), "2 columns, but x0 has 1"),
        (([0.0], None, None, 0.0), "scale must have positive"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Space(*arguments)
