"""All solvers: the common optimum, stopping, interruption."""

import numpy as np
import pytest
from scipy.optimize import minimize

from crfkit._parallel import ThreadMap
from crfkit.penalties import ElasticNet
from crfkit.solvers import LBFGS, OWLQN, SOLVERS
from crfkit.solvers.lbfgs import CorrectionPairs
from crfkit.solvers.owlqn import pseudo_gradient
from tests.test_objective import make_data, make_objective


class Quadratic:
    """``1/2 (w - b)' A (w - b)`` with a known optimum."""

    def __init__(self, rng, size=8, l1=0.0):
        root = rng.normal(size=(size, size))
        self.matrix = root @ root.T + 0.1 * np.eye(size)
        self.center = rng.normal(size=size)
        self.l1 = l1
        self.evaluations = 0

    def value_and_grad(self, w):
        self.evaluations += 1
        gradient = self.matrix @ (w - self.center)
        return 0.5 * (w - self.center) @ gradient, gradient


@pytest.fixture(params=sorted(SOLVERS))
def solver(request):
    return SOLVERS[request.param](tol=0.0, gtol=1e-9)


@pytest.fixture
def crf_objective(rng):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=30)), n_features=6)
    with ThreadMap(1) as threads:
        yield make_objective(data, codes, threads, ElasticNet(0.0, 0.3), boundaries=True)


def test_solvers_reach_the_optimum_of_a_quadratic(rng, solver):
    objective = Quadratic(rng)
    result = solver.solve(objective, np.zeros(8))
    assert result.converged
    np.testing.assert_allclose(result.parameters, objective.center, atol=1e-6)


def test_solvers_reach_the_optimum_that_scipy_finds(crf_objective, solver):
    start = np.zeros(crf_objective.n_parameters)
    reference = minimize(
        crf_objective.value_and_grad, start, jac=True, method="BFGS", options={"gtol": 1e-8}
    )
    result = solver.solve(crf_objective, start)
    assert result.converged
    np.testing.assert_allclose(result.value, reference.fun, rtol=1e-12)
    np.testing.assert_allclose(result.parameters, reference.x, atol=1e-6)


def test_any_start_leads_to_the_same_optimum(crf_objective, solver, rng):
    first = solver.solve(crf_objective, np.zeros(crf_objective.n_parameters))
    start = 3.0 * rng.normal(size=crf_objective.n_parameters)
    before = start.copy()
    second = solver.solve(crf_objective, start)
    np.testing.assert_allclose(first.parameters, second.parameters, atol=1e-6)
    np.testing.assert_array_equal(start, before)


def test_a_warm_start_at_the_optimum_stops_at_once(crf_objective, solver):
    solver.set_params(gtol=1e-7)
    first = solver.solve(crf_objective, np.zeros(crf_objective.n_parameters))
    again = solver.solve(crf_objective, first.parameters)
    assert again.converged
    assert again.n_iter <= 1


@pytest.mark.parametrize("l1", [0.5, 3.0])
def test_owlqn_meets_the_optimality_conditions_of_the_l1_penalty(rng, l1):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=30)), n_features=6)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(l1, 0.0), all_states=True)
        result = OWLQN(tol=0.0, gtol=1e-10).solve(objective, np.zeros(objective.n_parameters))
        _, gradient = objective.value_and_grad(result.parameters)
    w, zero = result.parameters, result.parameters == 0.0
    assert 0 < zero.sum() < len(w)
    np.testing.assert_allclose(gradient[~zero], -l1 * np.sign(w[~zero]), atol=1e-5)
    assert (np.abs(gradient[zero]) <= l1 + 1e-9).all()


def test_owlqn_of_a_quadratic_equals_its_closed_form(rng):
    objective = Quadratic(rng, l1=0.7)
    objective.matrix = np.diag(np.linspace(0.5, 3.0, 8))
    result = OWLQN(tol=0.0, gtol=1e-11).solve(objective, np.zeros(8))
    shrunk = np.abs(objective.center) - 0.7 / np.diag(objective.matrix)
    expected = np.sign(objective.center) * np.maximum(shrunk, 0.0)
    np.testing.assert_allclose(result.parameters, expected, atol=1e-9)
    assert ((result.parameters == 0) == (expected == 0)).all()


def test_the_pseudo_gradient_is_the_steepest_one_sided_derivative():
    w, gradient = np.array([1.0, -1.0, 0.0, 0.0, 0.0]), np.array([0.1, 0.1, 2.0, -2.0, 0.5])
    np.testing.assert_allclose(pseudo_gradient(w, gradient, 1.0), [1.1, -0.9, 1.0, -1.0, 0.0])


def test_the_direction_is_that_of_dense_bfgs(rng):
    objective = Quadratic(rng, size=5)
    pairs, history = CorrectionPairs(4), []
    for _ in range(6):
        step = rng.normal(size=5)
        history.append((step, objective.matrix @ step))
        pairs.add(*history[-1])
    step, change = history[-1]
    inverse = np.eye(5) * (step @ change) / (change @ change)
    for step, change in history[-4:]:
        rho = 1.0 / (step @ change)
        left = np.eye(5) - rho * np.outer(step, change)
        inverse = left @ inverse @ left.T + rho * np.outer(step, step)
    gradient = rng.normal(size=5)
    np.testing.assert_allclose(pairs.direction(gradient), -inverse @ gradient, rtol=1e-10)


def test_pairs_without_curvature_are_not_kept():
    pairs = CorrectionPairs(3)
    pairs.add(np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    pairs.add(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert not pairs


def test_the_value_never_rises(crf_objective, solver):
    result = solver.solve(crf_objective, np.zeros(crf_objective.n_parameters))
    values = [record.value for record in result.history]
    assert all(b <= a + 1e-12 * abs(a) for a, b in zip(values[:-1], values[1:], strict=True))
    assert [record.iteration for record in result.history] == list(range(result.n_iter + 1))
    assert result.history[-1].evaluations == crf_objective.evaluations


def test_max_iter_stops_and_says_so(crf_objective, solver):
    solver.set_params(max_iter=2)
    result = solver.solve(crf_objective, np.zeros(crf_objective.n_parameters))
    assert (result.n_iter, result.converged) == (2, False)
    assert "max_iter=2" in result.message


def test_a_callback_may_stop_the_search(crf_objective, solver):
    result = solver.solve(
        crf_objective, np.zeros(crf_objective.n_parameters), lambda record, w: record.iteration == 3
    )
    assert (result.n_iter, result.converged) == (3, False)
    assert "callback" in result.message


def test_control_c_keeps_the_last_finished_iteration(crf_objective, solver):
    seen = {}

    def interrupt(record, w):
        seen[record.iteration] = w.copy()
        if record.iteration == 3:
            raise KeyboardInterrupt

    result = solver.solve(crf_objective, np.zeros(crf_objective.n_parameters), interrupt)
    assert (result.n_iter, result.interrupted) == (3, True)
    np.testing.assert_array_equal(result.parameters, seen[3])


def test_lbfgs_refuses_an_l1_penalty(rng):
    with pytest.raises(ValueError, match="LBFGS needs a differentiable objective.*owlqn"):
        LBFGS().solve(Quadratic(rng, l1=1.0), np.zeros(8))


def test_a_start_without_a_finite_value_is_an_error(rng):
    objective = Quadratic(rng)
    objective.value_and_grad = lambda w: (np.inf, w)
    with pytest.raises(ValueError, match="finite"):
        LBFGS().solve(objective, np.zeros(8))


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_iter", -1), ("period", 0), ("memory", 0), ("tol", -1.0), ("gtol", float("nan"))],
)
def test_parameters_out_of_range_are_errors(rng, name, value):
    with pytest.raises(ValueError, match=name):
        LBFGS(**{name: value}).solve(Quadratic(rng), np.zeros(8))


def test_a_line_that_leaves_the_domain_is_searched_nearer():
    class Barrier:
        l1, evaluations = 0.0, 0

        def value_and_grad(self, w):
            self.evaluations += 1
            if w[0] >= 1.0:
                return np.inf, np.full(1, np.nan)
            return float(-np.log(1.0 - w[0]) - 5.0 * w[0]), 1.0 / (1.0 - w) - 5.0

    result = LBFGS(tol=0.0, gtol=1e-10).solve(Barrier(), np.zeros(1))
    np.testing.assert_allclose(result.parameters, [0.8], atol=1e-8)


class BadlyScaled(Quadratic):
    """Curvatures that differ by a factor of 1e14, with the optimum far along the flat ones."""

    def __init__(self, rng):
        super().__init__(rng)
        self.matrix = np.diag(np.logspace(-4, 10, 8))
        self.center = np.full(8, 1e3)


def test_a_stall_far_from_the_optimum_is_not_called_convergence(rng):
    objective = BadlyScaled(rng)
    result = LBFGS(tol=1e-2, gtol=0.0, period=2).solve(objective, np.zeros(8))
    near = result.history[-1].gradient_norm * np.linalg.norm(result.parameters) <= max(
        1.0, abs(result.value)
    )
    assert result.converged == near
    assert result.converged or "Scale numeric features" in result.message


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_owlqn_takes_its_first_step_at_any_scale(rng, scale):
    objective = Quadratic(rng, l1=0.1 * scale)
    objective.matrix *= scale**2
    objective.center /= scale
    result = OWLQN(tol=1e-9, gtol=0.0).solve(objective, np.zeros(8))
    assert result.n_iter > 1
    assert result.value < 0.5 * result.history[0].value


def test_owlqn_does_not_count_steps_that_go_nowhere(rng):
    objective = Quadratic(rng, l1=1.0)
    objective.value_and_grad = lambda w: (1.0, np.full(8, 1e300))
    result = OWLQN().solve(objective, np.zeros(8))
    assert (result.n_iter, result.converged) == (0, False)
