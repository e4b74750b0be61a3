"""Newton's method with the whole Hessian."""

from functools import partial

import numpy as np
import pytest

from crfkit import CRFClassifier
from crfkit._parallel import ThreadMap
from crfkit.solvers import LBFGS, OWLQN, DenseNewton
from crfkit.solvers.batch import dense_newton
from tests.objective.test_curvature import objective_of

MANY = (4, 7, 2, 5, 1, 3) * 8


def best_of(objective):
    solver = (OWLQN if objective.l1 else LBFGS)(tol=0.0, gtol=1e-10, max_iter=5000)
    return solver.solve(objective, np.zeros(objective.n_parameters))


@pytest.mark.parametrize("n_labels", [2, 3])
@pytest.mark.parametrize("penalty", [(0.0, 0.3), (0.5, 0.1), (2.0, 0.0), (0.3, 0.01)])
@pytest.mark.parametrize("boundaries", [False, True])
def test_it_reaches_the_optimum_in_few_steps(rng, n_labels, penalty, boundaries):
    more = {"all_states": True, "boundaries": boundaries, "lengths": MANY}
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, n_labels, penalty, **more)
        assert objective.has_covariances is not boundaries
        best = best_of(objective)
        solver = DenseNewton(tol=0.0, gtol=1e-9)
        result = solver.solve(objective, np.zeros(objective.n_parameters))
    assert result.converged
    assert result.n_iter <= 25
    np.testing.assert_allclose(result.value, best.value, rtol=1e-9)
    if penalty[1] > 0.1:
        np.testing.assert_allclose(result.parameters, best.parameters, atol=1e-5)


@pytest.mark.parametrize("penalty", [(0.0, 0.1), (0.5, 0.1)])
def test_any_start_will_do(rng, penalty):
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, 2, penalty, lengths=MANY, all_states=True)
        best = best_of(objective)
        start = 3.0 * rng.normal(size=objective.n_parameters)
        result = DenseNewton(tol=0.0).solve(objective, start)
        assert result.converged
        np.testing.assert_allclose(result.value, best.value, rtol=1e-9)
        again = DenseNewton().solve(objective, result.parameters)
        assert again.converged
        assert again.n_iter <= 3


@pytest.mark.parametrize("c1", [0.0, 0.2])
def test_weights_that_no_penalty_holds(rng, c1):
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, 3, (c1, 0.0), lengths=MANY, all_states=True)
        best = best_of(objective)
        result = DenseNewton().solve(objective, np.zeros(objective.n_parameters))
    assert result.converged
    np.testing.assert_allclose(result.value, best.value, rtol=1e-5)


def less(hessian, *arguments):
    return hessian(*arguments) - 3.0


def test_a_matrix_that_is_not_definite_gets_a_larger_diagonal(rng, monkeypatch):
    with ThreadMap(1) as threads:
        for penalty in ((0.0, 0.1), (0.5, 0.1)):
            objective = objective_of(rng, threads, 3, penalty, lengths=MANY)
            best = best_of(objective)
            monkeypatch.setattr(objective, "hessian", partial(less, objective.hessian))
            result = DenseNewton(tol=1e-9).solve(objective, np.zeros(objective.n_parameters))
            assert result.converged
            np.testing.assert_allclose(result.value, best.value, rtol=1e-6)


def test_a_norm_that_holds_all_weights_at_0(rng):
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, 3, (1e4, 0.0), lengths=MANY)
        start = rng.normal(size=objective.n_parameters)
        result = DenseNewton().solve(objective, start)
    assert result.converged
    assert not result.parameters.any()


@pytest.mark.parametrize("c1", [0.0, 0.3])
def test_a_matrix_of_no_numbers_is_no_optimum(rng, monkeypatch, c1):
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, 3, (c1, 0.1), lengths=MANY)
        best, hessian = best_of(objective), objective.hessian
        monkeypatch.setattr(objective, "hessian", lambda *more: np.nan * hessian(*more))
        result = DenseNewton().solve(objective, np.zeros(objective.n_parameters))
    assert not result.converged or result.value <= 1.001 * best.value


@pytest.mark.parametrize("c1", [0.0, 0.3])
def test_it_is_bit_equal_for_any_number_of_threads(rng, c1):
    found = []
    for n_jobs in (1, 2):
        with ThreadMap(n_jobs) as threads:
            random = np.random.default_rng(0)
            objective = objective_of(random, threads, 2, (c1, 0.1), lengths=MANY)
            found.append(DenseNewton().solve(objective, np.zeros(objective.n_parameters)))
    assert (found[0].parameters == found[1].parameters).all()
    assert found[0].history[-1].value == found[1].history[-1].value


def test_too_many_weights_are_refused(rng, monkeypatch):
    monkeypatch.setattr(dense_newton, "MOST_PARAMETERS", 5)
    with ThreadMap(1) as threads, pytest.raises(ValueError, match="at most 5. Use solver='auto'"):
        objective = objective_of(rng, threads, 3)
        DenseNewton().solve(objective, np.zeros(objective.n_parameters))


def test_estimators_take_it_by_name(rng):
    X = [rng.normal(size=(rng.integers(1, 6), 3)) for _ in range(20)]
    y = [(x[:, 0] > 0.0).astype(int).tolist() for x in X]
    found = CRFClassifier(c2=0.1, solver="dense_newton").fit(X, y)
    best = CRFClassifier(c2=0.1, solver="lbfgs").fit(X, y)
    np.testing.assert_allclose(found.objective_, best.objective_, rtol=1e-5)
