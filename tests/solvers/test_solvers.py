"""All solvers: the common optimum, stopping, interruption."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from crfkit import CRFClassifier
from crfkit._parallel import SERIAL, ThreadMap
from crfkit.datasets import load_ingredients
from crfkit.losses import LogLoss
from crfkit.objective.penalties import ElasticNet
from crfkit.solvers import LBFGS, OWLQN, SOLVERS
from crfkit.solvers.batch import base
from crfkit.solvers.batch.base import Point, Vectors
from crfkit.solvers.batch.lbfgs import CorrectionPairs
from tests.extensions.gradient_descent import GradientDescent
from tests.objective.test_batch import make_data, make_objective


class Quadratic:
    """``1/2 (w - b)' A (w - b)`` with a known optimum."""

    loss, threads, nonnegative, l2, is_convex = LogLoss(), SERIAL, None, 0.0, True

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

    def hessian_product(self, w, direction):
        self.evaluations += 1
        return self.matrix @ direction

    def hessian_diagonal(self, w):
        return np.diag(self.matrix)

    def directions(self, start):
        return sp.eye_array(len(start), format="csr")

    def hessian(self, w, directions, sequences=None):
        return directions @ self.matrix @ directions.T

    @property
    def n_parameters(self):
        return len(self.matrix)


# Those that need no more than derivatives; iterative scaling has tests of its own.
ALL_SOLVERS = SOLVERS | {"gradient descent (an extension)": GradientDescent}
BATCH = [
    name
    for name, kind in ALL_SOLVERS.items()
    if set(kind.requires) <= {"value_and_grad", "hessian_product", "hessian", "directions"}
]
MONOTONE = [name for name in BATCH if name != "rprop"]


def make_solver(name):
    return ALL_SOLVERS[name](tol=0.0, gtol=1e-9, max_iter=5000)


@pytest.fixture(params=BATCH)
def solver(request):
    return make_solver(request.param)


@pytest.fixture
def crf_objective(rng):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=20)), n_features=4)
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
    assert first.converged and again.converged
    assert again.n_iter == 0


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


class Stalled(Quadratic):
    """A value that no longer falls, and a gradient of some size far from the origin."""

    def value_and_grad(self, w):
        self.evaluations += 1
        return 1000.0 - 1e-9 * self.evaluations, np.full(len(w), 1.0)


@pytest.mark.parametrize("convex", [True, False])
@pytest.mark.parametrize(("l2", "near"), [(0.0, False), (0.01, False), (0.2, True)])
def test_a_stall_is_convergence_where_the_penalty_says_that_the_optimum_is_near(
    rng, l2, near, convex
):
    """With eight numbers of 1, the optimum is at most ``8 / (4 l2)`` below: 1 % of the value."""
    objective, converged = Stalled(rng), near and convex
    objective.l2, objective.is_convex = l2, convex
    found = LBFGS(gtol=0.0, max_iter=60).solve(objective, np.full(8, 1e6))
    assert found.converged == converged


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
    found = Vectors(SERIAL, 5).pseudo_gradient(w, gradient, 1.0)
    np.testing.assert_allclose(found, [1.1, -0.9, 1.0, -1.0, 0.0])


def add_pair(pairs, step, change):
    start = np.zeros_like(step)
    pairs.add(Point(0.0, start, 0.0, start, 0.0), Point(1.0, step, 0.0, change, 0.0))


def bfloat(a):
    """The nearest numbers that pairs keep as they are."""
    bits = a.astype(np.float32).view(np.uint32)
    return ((bits + 0x8000) & 0xFFFF0000).view(np.float32).astype(float)


def test_the_direction_is_that_of_dense_bfgs(rng):
    objective = Quadratic(rng, size=5)
    units = 2.0 ** np.array([0, 1, -2, 0, 3])
    pairs, history = CorrectionPairs(4, Vectors(SERIAL, 5), units), []
    for _ in range(6):
        step = bfloat(rng.normal(size=5))
        history.append((step, bfloat(objective.matrix @ step)))
        add_pair(pairs, *history[-1])
        pairs.direction(step)
    step, change = history[-1]
    inverse = np.diag(units**2) * (step @ change) / np.sum((units * change) ** 2)
    for step, change in history[-4:]:
        rho = 1.0 / (step @ change)
        left = np.eye(5) - rho * np.outer(step, change)
        inverse = left @ inverse @ left.T + rho * np.outer(step, step)
    gradient = rng.normal(size=5)
    np.testing.assert_allclose(pairs.direction(gradient), -inverse @ gradient, rtol=1e-10)


def test_pairs_without_curvature_are_not_kept():
    pairs = CorrectionPairs(3, Vectors(SERIAL, 2))
    add_pair(pairs, np.array([1.0, 0.0]), np.array([-1.0, 0.0]))
    add_pair(pairs, np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    assert not pairs


@pytest.mark.parametrize("name", MONOTONE)
def test_the_value_never_rises(crf_objective, name):
    result = make_solver(name).solve(crf_objective, np.zeros(crf_objective.n_parameters))
    values = [record.value for record in result.history]
    assert all(b <= a + 1e-12 * abs(a) for a, b in zip(values[:-1], values[1:], strict=True))
    assert [record.iteration for record in result.history] == list(range(result.n_iter + 1))
    searched_in_vain = 60 if "no step decreases" in result.message else 0
    assert result.history[-1].evaluations + searched_in_vain == crf_objective.evaluations


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
        l1, l2, evaluations, nonnegative = 0.0, 0.0, 0, None
        loss, threads, is_convex = LogLoss(), SERIAL, True

        def value_and_grad(self, w):
            self.evaluations += 1
            if w[0] >= 1.0:
                return np.inf, np.full(1, np.nan)
            return float(-np.log(1.0 - w[0]) - 5.0 * w[0]), 1.0 / (1.0 - w) - 5.0

        def hessian_diagonal(self, w):
            return 1.0 / (1.0 - w) ** 2

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


@pytest.mark.parametrize("name", BATCH)
def test_results_are_bit_equal_for_any_number_of_threads(rng, monkeypatch, name):
    monkeypatch.setattr(base, "RANGE", 8)
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=30)), n_features=9)
    results = []
    for n_jobs in (1, 3):
        with ThreadMap(n_jobs) as threads:
            objective = make_objective(data, codes, threads, ElasticNet(0.0, 0.3))
            solver = ALL_SOLVERS[name](max_iter=6)
            results.append(solver.solve(objective, np.zeros(objective.n_parameters)))
    assert results[0].value == results[1].value
    np.testing.assert_array_equal(results[0].parameters, results[1].parameters)


def test_long_vectors_are_cut_into_ranges(rng, monkeypatch):
    monkeypatch.setattr(base, "RANGE", 7)
    a, b = rng.normal(size=(2, 40))
    with ThreadMap(2) as threads:
        long = Vectors(threads, 40)
        np.testing.assert_allclose(long.dot(a, b), a @ b, rtol=1e-12)
        np.testing.assert_allclose(long.size_of(a), [np.linalg.norm(a), np.abs(a).sum()])
        np.testing.assert_allclose(long.step(a, 0.3, b), a + 0.3 * b, rtol=1e-14)
        moved, decrease = long.orthant_step(a, 2.0, b, b)
        expected = np.where((a + 2.0 * b) * a > 0.0, a + 2.0 * b, 0.0)
        np.testing.assert_allclose(moved, expected, rtol=1e-14)
        np.testing.assert_allclose(decrease, b @ (expected - a), rtol=1e-12)
    assert Vectors(SERIAL, 0).dot(np.zeros(0), np.zeros(0)) == 0.0


def test_cg_with_its_preconditioner_reaches_the_same_optimum(crf_objective):
    start = np.zeros(crf_objective.n_parameters)
    plain, scaled = (
        SOLVERS["cg"](tol=0.0, gtol=1e-9, preconditioner=known).solve(crf_objective, start)
        for known in (False, True)
    )
    assert scaled.converged
    assert scaled.history[1].value != plain.history[1].value
    np.testing.assert_allclose(scaled.parameters, plain.parameters, atol=1e-6)


def test_a_feature_without_curvature_is_no_problem_for_the_preconditioner(rng):
    data, codes = make_data(rng, lengths=(3, 1, 5, 2))
    dense = data.dense.copy()
    dense[3:, 0] = 0.0
    data = data._from_arrays(**data.__dict__ | {"dense": dense})
    weight = np.repeat([0.0, 1.0], [3, 8])
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(0.0, 0.0), weight)
        start = np.zeros(objective.n_parameters)
        assert objective.hessian_diagonal(start).min() == 0.0
        result = SOLVERS["cg"](max_iter=5, preconditioner=True).solve(objective, start)
    assert result.n_iter == 5
    assert result.value < result.history[0].value


@pytest.mark.parametrize("l1", [0.5, 3.0])
def test_rprop_with_an_l1_penalty_agrees_with_owlqn(rng, l1):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=30)), n_features=6)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(l1, 0.1), all_states=True)
        start = np.zeros(objective.n_parameters)
        found = make_solver("rprop").solve(objective, start)
        expected = OWLQN(tol=0.0, gtol=1e-9).solve(objective, start)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-10)
    np.testing.assert_allclose(found.parameters, expected.parameters, atol=1e-5)


@pytest.mark.parametrize("name", ["cg", "newton", "gis", "iis"])
def test_solvers_that_need_derivatives_refuse_an_l1_penalty(rng, name):
    data, codes = make_data(rng)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(1.0, 0.0))
        with pytest.raises(ValueError, match="differentiable objective.*owlqn"):
            SOLVERS[name]().solve(objective, np.zeros(objective.n_parameters))


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        ("newton", "max_products", 0), ("rprop", "step", 0.0), ("rprop", "max_step", -1.0),
        ("iis", "max_levels", 0), ("cg", "max_line_search", 0), ("owlqn", "memory", 0),
        ("dense_newton", "max_line_search", 0),
    ],
)  # fmt: skip
def test_parameters_of_each_solver_are_checked(rng, name, parameter, value):
    with pytest.raises(ValueError, match=parameter):
        SOLVERS[name](**{parameter: value}).solve(Quadratic(rng), np.zeros(8))


def test_newton_needs_few_steps_near_the_optimum(crf_objective):
    result = make_solver("newton").solve(crf_objective, np.zeros(crf_objective.n_parameters))
    norms = [record.gradient_norm for record in result.history]
    assert result.n_iter <= 12
    assert norms[-1] < 1e-3 * norms[-2]


def test_a_rejected_newton_step_shrinks_the_region(rng):
    class Cliff(Quadratic):
        def value_and_grad(self, w):
            value, gradient = super().value_and_grad(w)
            return (np.inf, gradient) if np.linalg.norm(w) > 0.5 else (value, gradient)

    objective = Cliff(rng)
    objective.center *= 0.4 / np.linalg.norm(objective.center)
    result = make_solver("newton").solve(objective, np.zeros(8))
    np.testing.assert_allclose(result.parameters, objective.center, atol=1e-6)


def test_rprop_halves_steps_that_leave_the_domain(rng):
    class Cliff(Quadratic):
        def value_and_grad(self, w):
            value, gradient = super().value_and_grad(w)
            return (np.nan, gradient) if np.abs(w).max() > 3.0 else (value, gradient)

    objective = Cliff(rng)
    objective.center = np.full(8, 0.5)
    result = SOLVERS["rprop"](tol=0.0, gtol=1e-8, step=40.0).solve(objective, np.zeros(8))
    np.testing.assert_allclose(result.parameters, objective.center, atol=1e-6)


@pytest.mark.parametrize(("seed", "c2"), [(0, 1.0), (1, 0.01), (2, 0.01)])
def test_features_far_from_1_are_not_called_converged_above_the_optimum(seed, c2):
    random = np.random.default_rng(seed)
    weights = random.normal(size=(5, 3))
    X = [random.normal(size=(random.integers(3, 12), 5)) for _ in range(30)]
    y = [(x @ weights + random.gumbel(size=(len(x), 3))).argmax(1).tolist() for x in X]
    X = [1e4 * (x + 1.0) for x in X]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = CRFClassifier(c2=c2).fit(X, y)
        best = CRFClassifier(c2=c2, solver=SOLVERS["newton"](max_iter=2000)).fit(X, y)
    assert not found.converged_ or found.objective_ <= 1.001 * best.objective_


@pytest.mark.parametrize("solver", ["dense_newton", "lbfgs", "owlqn"])
def test_weights_that_run_off_are_no_convergence(solver):
    """Without a penalty they may grow forever: beside them any gradient is small."""
    corpus = load_ingredients()
    X = [[{"word": w, "suffix": w[-2:]} for w in tokens] for tokens in corpus.tokens[:40]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        crf = CRFClassifier(c2=0.0, solver=solver).fit(X, corpus.tags[:40])
    last = crf.training_log_[-1]
    size = np.sqrt((crf.coef_.data**2).sum() + (crf.transitions_**2).sum())
    near = last.gradient_norm * size <= 0.1 * last.value
    assert not crf.converged_ or near or last.gradient_norm <= 1e-5


def test_conjugate_gradients_that_stall_far_from_the_optimum_do_not_claim_it():
    rng = np.random.default_rng(1)
    weights, rows = rng.normal(size=(5, 3)), rng.normal(size=(15, 8, 5))
    y = (rows @ weights + rng.gumbel(size=(15, 8, 3))).argmax(axis=2).tolist()
    X = list(1e4 * rows)  # at which the gradient is large, and weights small
    best = CRFClassifier(c2=0.01, solver="dense_newton").fit(X, y).objective_
    with pytest.warns(ConvergenceWarning, match="may be far above its optimum"):
        found = CRFClassifier(c2=0.01, solver="cg").fit(X, y)
    assert not found.converged_ and found.objective_ > 1.01 * best
