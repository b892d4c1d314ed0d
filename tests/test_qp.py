"""Small quadratic programs against SciPy and against their optimality conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from pcces.blackbox.models.qp import least_distance, project_polyhedron, quadratic_program


def random_program(seed, n, rows):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((n, n))
    H = root @ root.T + 0.1 * np.eye(n)
    G = rng.standard_normal((rows, n))
    inside = rng.standard_normal(n)
    h = G @ inside + rng.exponential(0.3, rows)  # `inside` satisfies them
    return H, 3 * rng.standard_normal(n), G, h


@pytest.mark.parametrize("seed", range(30))
def test_the_same_answer_as_scipy(seed):
    n, rows = 2 + seed % 5, 1 + seed % 9
    H, g, G, h = random_program(seed, n, rows)
    ours = quadratic_program(H, g, G, h)
    assert ours is not None

    def objective(x):
        return 0.5 * x @ H @ x + g @ x

    theirs = minimize(
        objective,
        np.zeros(n),
        jac=lambda x: H @ x + g,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: h - G @ x, "jac": lambda x: -G},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert np.all(G @ ours.x <= h + 1e-8 * (1 + np.abs(h)))
    assert objective(ours.x) == pytest.approx(theirs.fun, abs=1e-6)
    assert ours.x == pytest.approx(theirs.x, abs=1e-4)


@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(0, 15))
def test_the_multipliers_satisfy_the_optimality_conditions(seed, n, rows):
    H, g, G, h = random_program(seed, n, rows)
    x, multipliers = quadratic_program(H, g, G, h)
    scale = 1 + np.abs(multipliers).max(initial=0.0)
    assert np.allclose(H @ x + g + G.T @ multipliers, 0, atol=1e-6 * scale)  # stationarity
    assert np.all(multipliers >= 0)
    assert np.all(G @ x <= h + 1e-6)
    assert np.allclose(multipliers * (h - G @ x), 0, atol=1e-5 * scale)  # complementarity


def test_without_active_rows_it_is_a_linear_system():
    H, g, G, h = random_program(1, 4, 3)
    answer = quadratic_program(H, g, G, h + 1e6)
    assert answer.x == pytest.approx(np.linalg.solve(H, -g))
    assert answer.multipliers.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("seed", range(20))
def test_contradictions_are_detected(seed):
    H, g, G, h = random_program(seed, 3, 6)
    row = np.random.default_rng(seed).standard_normal(3)
    impossible = np.vstack([G, row, -row]), np.concatenate([h, [1.0, -1.5]])  # row x <= 1 and row x >= 1.5
    assert linprog(np.zeros(3), *impossible, bounds=(None, None)).status == 2
    assert quadratic_program(H, g, *impossible) is None


def test_an_empty_row_is_a_fact_or_a_contradiction():
    H, g = np.eye(2), np.array([-1.0, 0.0])
    assert quadratic_program(H, g, np.zeros((1, 2)), np.array([0.5])).x.tolist() == pytest.approx([1.0, 0.0])
    assert quadratic_program(H, g, np.zeros((1, 2)), np.array([-0.5])) is None


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_the_scale_of_the_problem_does_not_matter(size):
    H, g, G, h = random_program(3, 4, 6)
    reference = quadratic_program(H, g, G, h).x
    assert quadratic_program(H, g * size, G, h * size).x == pytest.approx(reference * size, rel=1e-6, abs=1e-9 * size)
    rows = np.array([size, 1.0, 1.0, 1 / size, 1.0, 1.0])
    assert quadratic_program(H, g, G * rows[:, None], h * rows).x == pytest.approx(reference, abs=1e-6)


def test_least_distance():
    E = np.array([[1.0, 0.0], [0.6, 0.8]])
    assert least_distance(E, np.array([-1.0, -1.0])).x.tolist() == [0.0, 0.0]
    assert least_distance(E, np.array([1.0, -1.0])).x == pytest.approx([1.0, 0.0])
    assert least_distance(E, np.array([1.0, 2.0])).x == pytest.approx([1.2, 1.6])


def test_projection_onto_a_polyhedron():
    G, h = np.array([[1.0, 1.0], [-1.0, 0.0]]), np.array([2.0, 0.0])
    assert project_polyhedron(np.array([-1.0, 0.5]), G, h) == pytest.approx([0.0, 0.5])
    inside = np.array([0.25, 0.5])
    assert project_polyhedron(inside, G, h) is inside
    with pytest.raises(ValueError, match="contradict"):
        project_polyhedron(np.zeros(2), np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0]))
