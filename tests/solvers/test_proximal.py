"""Proximal quasi-Newton: its model of the Hessian, its steps, the L1 optimum."""

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.objective.penalties import ElasticNet
from crfkit.solvers import OWLQN, ProximalQuasiNewton
from crfkit.solvers.batch.base import Point, Vectors
from crfkit.solvers.batch.proximal import QuadraticModel
from tests.objective.test_batch import make_data, make_objective
from tests.solvers.test_solvers import Quadratic


def a_point(objective, w):
    value, gradient = objective.value_and_grad(w)
    vectors = Vectors(None, len(w))
    descent = vectors.pseudo_gradient(w, gradient, objective.l1) if objective.l1 else gradient
    return Point(0.0, w, value, gradient, 0.0, descent)


def a_model(rng, l1, memory=4):
    """The model after six steps on a quadratic, and the dense BFGS matrix of the last ones."""
    objective = Quadratic(rng, size=5, l1=l1)
    model, points = (QuadraticModel(objective, memory), [a_point(objective, rng.normal(size=5))])
    for _ in range(6):
        points.append(a_point(objective, points[-1].w + rng.normal(size=5)))
        model.add(points[-2], points[-1])
    steps = np.diff([point.w for point in points], axis=0)[-memory:]
    changes = np.diff([point.gradient for point in points], axis=0)[-memory:]
    dense = np.eye(5) * (changes[-1] @ changes[-1]) / (changes[-1] @ steps[-1])
    for s, y in zip(steps, changes, strict=True):
        bs = dense @ s
        dense += np.outer(y, y) / (s @ y) - np.outer(bs, bs) / (s @ bs)
    return points[-1], model.at(points[-1]), dense


def test_without_an_l1_norm_the_step_is_that_of_dense_bfgs(rng):
    point, local, dense = a_model(rng, 0.0)
    step = local.minimize(0.0, 10_000, 1.0)
    np.testing.assert_allclose(step, -np.linalg.solve(dense, point.gradient), rtol=1e-8)


def test_the_step_minimizes_the_model_with_the_l1_norm(rng):
    point, local, dense = a_model(rng, 0.7)

    def value(step):
        smooth = point.gradient @ step + 0.5 * step @ dense @ step
        return smooth + 0.7 * np.abs(point.w + step).sum()

    step = local.minimize(0.7, 10_000, 1.0)
    lowest = value(step)
    for place in range(5):
        for change in (-1e-3, 1e-3):
            moved = step.copy()
            moved[place] += change
            assert value(moved) > lowest


@pytest.mark.parametrize("l1", [0.5, 3.0])
@pytest.mark.parametrize("l2", [0.0, 0.2])
def test_the_optimum_is_that_of_owlqn(rng, l1, l2):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=30)), n_features=6)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(l1, l2), all_states=True)
        start = np.zeros(objective.n_parameters)
        found = ProximalQuasiNewton(tol=0.0, gtol=1e-9).solve(objective, start)
        expected = OWLQN(tol=0.0, gtol=1e-9).solve(objective, start)
    assert found.converged
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-11)
    if l2:
        np.testing.assert_allclose(found.parameters, expected.parameters, atol=1e-6)


def test_results_are_bit_equal_for_any_number_of_threads(rng):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=60)), n_features=30)
    results = []
    for n_jobs in (1, 2):
        with ThreadMap(n_jobs) as threads:
            objective = make_objective(data, codes, threads, ElasticNet(0.3, 0.1))
            solver = ProximalQuasiNewton(max_iter=12)
            results.append(solver.solve(objective, np.zeros(objective.n_parameters)).parameters)
    np.testing.assert_array_equal(results[0], results[1])


def test_steps_that_are_too_long_are_shortened(rng):
    objective = Quadratic(rng, l1=0.1)
    objective.matrix *= 1e6
    result = ProximalQuasiNewton(tol=1e-12, gtol=1e-9).solve(objective, np.zeros(8))
    assert result.converged
    values = [record.value for record in result.history]
    assert np.all(np.diff(values) <= 0.0)
