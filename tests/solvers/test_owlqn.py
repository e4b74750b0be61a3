"""OWL-QN: the directions of the free parameters, its steps, the L1 optimum."""

import numpy as np
import pytest

from crfkit._parallel import SERIAL, ThreadMap
from crfkit.objective.penalties import ElasticNet
from crfkit.solvers import LBFGS, OWLQN
from crfkit.solvers.batch.base import Point, Vectors
from crfkit.solvers.batch.lbfgs import CorrectionPairs
from crfkit.solvers.batch.line_search import orthant_search
from tests.objective.test_batch import make_data, make_objective
from tests.solvers.test_solvers import Quadratic


def pairs_of(rng, n_steps=7, memory=4, size=9, scale=1.0, units=None):
    """The memory after some steps on a quadratic, and the last steps and changes as it has them."""
    objective = Quadratic(rng, size=size)
    vectors = Vectors(SERIAL, size, width=size)
    memory_of_steps, points = CorrectionPairs(memory, vectors, units), []
    for _ in range(n_steps + 1):
        w = np.round(rng.normal(size=size), 3)
        value, gradient = objective.value_and_grad(w)
        points.append(Point(0.0, w, value, scale * gradient))
    for before, after in zip(points, points[1:], strict=False):
        memory_of_steps.add(before, after)
    exact = [np.diff([getattr(p, name) for p in points], axis=0) for name in ("w", "gradient")]
    rows = (memory_of_steps._rows[0].astype(np.uint32) << 16).view(np.float32)
    rows = rows * memory_of_steps._scales[:, None]
    units, places = np.ones(size) if units is None else units, np.array(memory_of_steps._places)
    steps, changes = rows[2 * places] * units, rows[2 * places + 1] / units
    kept = [step @ change > 0.0 for step, change in zip(*exact, strict=True)]
    for found, all_of_them in ((steps, exact[0]), (changes, exact[1])):
        np.testing.assert_allclose(found, all_of_them[kept][-len(found) :], rtol=2.0**-8)
    return memory_of_steps, steps, changes


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_the_direction_is_that_of_dense_bfgs_of_the_free_parameters(rng, scale):
    units = rng.uniform(0.5, 2.0, size=9)
    memory, steps, changes = pairs_of(rng, scale=scale, units=units)
    free = np.array([0, 2, 3, 5, 6, 8])
    steps, changes = steps[:, free], changes[:, free]
    kept = [i for i in range(len(steps)) if steps[i] @ changes[i] > 0.0]
    newest = kept[-1]
    squares = units[free] ** 2
    length = steps[newest] @ changes[newest] / np.sum(squares * changes[newest] ** 2)
    inverse = np.diag(squares * length)
    for i in kept:
        part = np.eye(len(free)) - np.outer(steps[i], changes[i]) / (steps[i] @ changes[i])
        inverse = part @ inverse @ part.T
        inverse += np.outer(steps[i], steps[i]) / (steps[i] @ changes[i])
    descent, w = rng.normal(size=9), rng.normal(size=9)
    direction, slope = memory.direction_within(free, w, descent)
    expected = np.zeros(9)
    expected[free] = -inverse @ descent[free]
    np.testing.assert_allclose(direction, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_allclose(slope, direction @ descent, rtol=1e-12)
    # Parameters that are 0 stay where the direction does not descend.
    from_zero, _ = memory.direction_within(free, np.zeros(9), descent)
    np.testing.assert_array_equal(from_zero, np.where(direction * descent < 0.0, direction, 0.0))


def test_without_pairs_the_direction_is_that_of_steepest_descent(rng):
    memory = CorrectionPairs(3, Vectors(SERIAL, 5, width=5))
    descent = rng.normal(size=5)
    direction, slope = memory.direction_within(np.arange(5), np.zeros(5), descent)
    np.testing.assert_array_equal(direction, -descent)
    np.testing.assert_allclose(slope, -descent @ descent)


@pytest.mark.parametrize("l1", [0.5, 3.0])
@pytest.mark.parametrize("l2", [0.0, 0.2])
def test_the_optimum_meets_the_conditions_of_a_subgradient(rng, l1, l2):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=30)), n_features=6)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(l1, l2), all_states=True)
        start = np.zeros(objective.n_parameters)
        found = OWLQN(tol=0.0, gtol=1e-9).solve(objective, start)
        gradient = objective.value_and_grad(found.parameters)[1]
    assert found.converged
    zero = found.parameters == 0.0
    assert zero.any()
    assert not zero.all()
    assert np.abs(gradient[zero]).max() <= l1 * (1.0 + 1e-9)
    np.testing.assert_allclose(gradient[~zero], -l1 * np.sign(found.parameters[~zero]), atol=1e-6)


def test_results_are_bit_equal_for_any_number_of_threads(rng):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=60)), n_features=30)
    results = []
    for n_jobs in (1, 2):
        with ThreadMap(n_jobs) as threads:
            objective = make_objective(data, codes, threads, ElasticNet(0.3, 0.1))
            solver = OWLQN(max_iter=12)
            results.append(solver.solve(objective, np.zeros(objective.n_parameters)).parameters)
    np.testing.assert_array_equal(results[0], results[1])


def test_steps_that_are_too_long_are_shortened(rng):
    objective = Quadratic(rng, l1=0.1)
    objective.matrix *= 1e6
    result = OWLQN(tol=1e-12, gtol=1e-9).solve(objective, np.zeros(8))
    assert result.converged
    values = [record.value for record in result.history]
    assert np.all(np.diff(values) <= 1e-14 * np.abs(values[1:]))


@pytest.mark.parametrize("solver", [LBFGS, OWLQN])
@pytest.mark.parametrize("memory", [1, 3, None])
def test_any_number_of_pairs_leads_to_the_optimum(rng, solver, memory):
    objective = Quadratic(rng, l1=0.0)
    result = solver(memory=memory, tol=0.0, gtol=1e-9, max_iter=5000).solve(objective, np.zeros(8))
    best = np.linalg.solve(objective.matrix, -objective.value_and_grad(np.zeros(8))[1])
    assert result.converged
    np.testing.assert_allclose(result.parameters, best, atol=1e-6)


def test_columns_that_are_kept_give_the_directions_of_columns_that_are_read_anew(rng):
    memory, *_ = pairs_of(rng)
    nothing = memory._columns
    all_but_one = [0, 1, 2, 4, 5, 6, 7, 8]  # the other one comes behind them
    few = [[0, 2, 3, 5, 6, 8], [0, 2, 3, 5, 8], [0, 2, 3, 4, 5, 8], [4, 5], [1, 4, 5, 7]]
    for free in (all_but_one, list(range(1, 9)), *few):
        w, descent = np.zeros((2, 9))
        w[free], descent[free] = rng.normal(size=(2, len(free)))
        kept = memory.direction_within(np.array(free), w, descent)
        columns, memory._columns = memory._columns, nothing
        anew = memory.direction_within(np.array(free), w, descent)
        memory._columns = columns
        np.testing.assert_allclose(kept[0], anew[0], rtol=1e-12)
        np.testing.assert_allclose(kept[1], anew[1], rtol=1e-12)


def test_a_step_goes_no_farther_than_a_parabola_that_stays_above_0(rng):
    objective = Quadratic(rng, size=1)
    objective.matrix, objective.center = np.array([[1e8]]), np.array([1e-3])
    result = OWLQN().solve(objective, np.zeros(1))
    np.testing.assert_allclose(result.parameters, objective.center, rtol=1e-12)
    assert objective.evaluations == 2  # of the start, and where the value is 0


@pytest.mark.parametrize("tried", [[64.0, 6.4, 1.0], [3.0, 1.5]])
def test_a_step_that_is_far_too_long_goes_to_the_bottom_of_a_parabola(tried):
    found = []

    def evaluate(w):
        found.append(1000.0 - w[0])
        return 0.5 * (w[0] - 999.0) ** 2, w - 999.0

    start = Point(0.0, np.array([1000.0]), 0.5, np.ones(1), descent=np.ones(1))
    orthant_search(evaluate, Vectors(SERIAL, 1, width=1), start, -np.ones(1), tried[0], 20, 0.5)
    np.testing.assert_allclose(found, tried)
