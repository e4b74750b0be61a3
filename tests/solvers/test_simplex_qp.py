"""The quadratic program over a simplex."""

import numpy as np
import pytest
from scipy.optimize import minimize

from crfkit.solvers.margin.cutting_plane import solve_simplex_qp


def random_program(seed, size, rank):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size, rank))
    return rows @ rows.T, rng.normal(size=size) + 0.5


def reference(gram, linear, total):
    size = len(linear)
    found = minimize(
        lambda a: 0.5 * a @ gram @ a - linear @ a,
        np.full(size, total / (2 * size)),
        jac=lambda a: gram @ a - linear,
        bounds=[(0.0, None)] * size,
        constraints={
            "type": "ineq", "fun": lambda a: total - a.sum(), "jac": lambda a: -np.ones(size),
        },
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )  # fmt: skip
    return -found.fun


@pytest.mark.parametrize("size", [1, 2, 5, 12])
@pytest.mark.parametrize("rank", [1, 3, 20])
@pytest.mark.parametrize("total", [0.3, 1.0, 50.0])
def test_it_is_the_solution_of_a_general_method(size, rank, total):
    for seed in range(3):
        gram, linear = random_program(seed, size, rank)
        found = solve_simplex_qp(gram, linear, total)
        assert (found.shares >= 0.0).all()
        assert found.shares.sum() <= total * (1 + 1e-12)
        value = linear @ found.shares - 0.5 * found.shares @ gram @ found.shares
        np.testing.assert_allclose(found.value, value, atol=1e-10 * max(1.0, abs(value)))
        best = reference(gram, linear, total)
        assert best - found.value <= 1e-7 * max(1.0, abs(best))
        assert found.value + found.gap >= best - 1e-9 * max(1.0, abs(best))


def test_a_start_changes_nothing_but_the_work():
    gram, linear = random_program(0, 8, 4)
    cold = solve_simplex_qp(gram, linear, tol=1e-13)
    warm = solve_simplex_qp(gram, linear, start=cold.shares[:5] * 0.5, tol=1e-13)
    np.testing.assert_allclose(warm.value, cold.value, rtol=1e-12)


def test_nothing_counts_where_nothing_rises():
    found = solve_simplex_qp(np.eye(3), -np.ones(3))
    np.testing.assert_array_equal(found.shares, np.zeros(3))
    assert found.value == 0.0
    assert found.gap == 0.0
    assert solve_simplex_qp(np.empty((0, 0)), np.empty(0)).value == 0.0


def test_a_flat_direction_is_followed_to_its_end():
    found = solve_simplex_qp(np.zeros((2, 2)), np.array([1.0, 2.0]), total=3.0)
    np.testing.assert_allclose(found.shares, [0.0, 3.0])


def test_equal_rows_of_any_size_are_no_trouble():
    gram = np.full((4, 4), 1e8)
    found = solve_simplex_qp(gram, np.full(4, 1e4))
    np.testing.assert_allclose(found.value, 0.5, rtol=1e-9)
    assert found.gap <= 1e-6
