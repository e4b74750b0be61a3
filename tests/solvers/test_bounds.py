"""Weights that may not be negative: the optimum among those that are allowed."""

import contextlib

import numpy as np
import pytest
from scipy.optimize import minimize

from crfkit.losses import HingeLoss, LogLoss, PseudolikelihoodLoss
from crfkit.objective.batch import Objective
from crfkit.solvers import LBFGS, OWLQN, SAG, SGD, AutoSolver, DenseNewton
from crfkit.solvers.margin import BlockFrankWolfe, CuttingPlane, Subgradient
from tests.sampling import in_turns
from tests.solvers.margins import TINY, enumerated_optimum, enumerated_value, margin_problem

LENGTHS = (3, 1, 5, 4, 2, 6, 3)
SMOOTH = {"log": LogLoss(), "pseudolikelihood": PseudolikelihoodLoss()}


@contextlib.contextmanager
def bounded_problem(loss, c1=0.0, c2=0.5, which="transitions", **options):
    """A small chain whose transitions, or every other parameter, may not be negative."""
    options = {"lengths": LENGTHS, "all_transitions": True, "blocks": "sparse dense"} | options
    with margin_problem(loss=loss, c2=c2, **options) as plain:
        model, bounds = plain.model, np.zeros(plain.n_parameters, bool)
        first = model.state.n_parameters
        bounds[slice(first, first + 9) if which == "transitions" else slice(0, None, 2)] = True
        model.nonnegative = bounds
        yield Objective(
            model, plain.structure, plain.loss, plain.penalty._replace(l1=c1), plain.data,
            plain.labels, plain.weight, plain.threads,
        )  # fmt: skip


def check_optimal(objective, w, tol=1e-6):
    """The conditions of Karush, Kuhn and Tucker, of a sum with an L1 norm."""
    bounds, gradient = objective.nonnegative, objective.value_and_grad(w)[1]
    assert (w[bounds] >= 0.0).all()
    moved, at_zero = w != 0.0, w == 0.0
    np.testing.assert_allclose(gradient[moved], -objective.l1 * np.sign(w[moved]), atol=tol)
    assert (gradient[at_zero] >= -objective.l1 - tol).all()
    assert (gradient[at_zero & ~bounds] <= objective.l1 + tol).all()
    assert (at_zero & bounds).any()
    assert (moved & bounds).any()


HINGES = {
    "hamming": HingeLoss(), "zero-one": HingeLoss("zero_one"),
    "slack": HingeLoss(rescaling="slack"),
}  # fmt: skip
MARGIN_SOLVERS = {
    "pairwise": (BlockFrankWolfe(tol=1e-6, max_iter=5000), 1e-6),
    "classic": (BlockFrankWolfe(steps="classic", tol=2e-2, max_iter=5000), 2e-2),
    "subgradient": (Subgradient(tol=0.2, max_iter=2000), 0.2),
    "last": (Subgradient(averaging=False, tol=0.3, max_iter=2000), 0.3),
    "auto": (AutoSolver(), 1e-3),
}


@pytest.mark.parametrize(("loss", "which"), in_turns(HINGES, ["transitions", "every other"]))
def test_the_optimum_of_a_margin_within_bounds_is_that_of_the_program(loss, which):
    options = {"lengths": TINY, "blocks": "sparse"}
    with bounded_problem(HINGES[loss], which=which, **options) as objective:
        best, w = enumerated_optimum(objective)
        assert (w[objective.nonnegative] < 1e-8).any()
        for name, (solver, tol) in MARGIN_SOLVERS.items():
            found = solver.solve(objective, -np.ones(objective.n_parameters))
            value = enumerated_value(objective, found.parameters)
            assert found.converged, name
            assert (found.parameters[objective.nonnegative] >= 0.0).all()
            np.testing.assert_allclose(found.value, value, rtol=1e-10)
            assert best * (1 - 1e-7) <= value <= best / (1 - tol) * (1 + 1e-7), name
            for record in found.history:
                assert record.value - record.gap <= best * (1 + 1e-7)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("which", ["transitions", "every other"])
@pytest.mark.parametrize("solver", [LBFGS, OWLQN, AutoSolver])
def test_the_optimum_within_bounds_is_that_of_scipy(loss, which, solver):
    with bounded_problem(SMOOTH[loss], which=which) as objective:
        start = np.zeros(objective.n_parameters)
        chosen = solver() if solver is AutoSolver else solver(tol=0.0, gtol=1e-8)
        found = chosen.solve(objective, start)
        expected = minimize(
            objective.value_and_grad, start, jac=True, method="L-BFGS-B",
            bounds=[(0.0 if one else None, None) for one in objective.nonnegative],
            options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000},
        )  # fmt: skip
        assert found.converged
        rtol = 1e-4 if solver is AutoSolver else 1e-10
        np.testing.assert_allclose(found.value, expected.fun, rtol=rtol)
        assert (found.parameters[objective.nonnegative] >= 0.0).all()
        if solver is not AutoSolver:
            check_optimal(objective, found.parameters)
            assert objective.gap(found.history[-1]) <= 1e-9
        for record in found.history[-3:]:
            assert record.value - expected.fun <= objective.gap(record) + 1e-9


@pytest.mark.parametrize("c1", [0.3, 2.0])
def test_the_optimum_with_an_l1_norm_meets_the_conditions_within_bounds(c1):
    with bounded_problem(LogLoss(), c1=c1, which="every other") as objective:
        solver = OWLQN(tol=0.0, gtol=1e-8)
        for start in (np.zeros(objective.n_parameters), -np.ones(objective.n_parameters)):
            found = solver.solve(objective, start)
            assert found.converged
            check_optimal(objective, found.parameters)
        found = AutoSolver().solve(objective, start)
        assert (found.parameters[objective.nonnegative] >= 0.0).all()


def test_every_iterate_is_within_bounds_also_from_a_start_that_is_not():
    with bounded_problem(LogLoss()) as objective:

        def check(record, w):
            assert (w[objective.nonnegative] >= 0.0).all()

        LBFGS().solve(objective, -np.ones(objective.n_parameters), check)


def test_bounds_that_do_not_bind_change_nothing():
    with bounded_problem(LogLoss()) as objective:
        free = LBFGS(tol=0.0, gtol=1e-9)
        bounds, objective.nonnegative = objective.nonnegative, None
        w = free.solve(objective, np.zeros(objective.n_parameters)).parameters
        objective.nonnegative = bounds & (w > 0.1)
        again = free.solve(objective, np.zeros(objective.n_parameters)).parameters
    np.testing.assert_allclose(again, w, atol=1e-7)


def test_what_cannot_keep_to_bounds_says_so():
    with bounded_problem(LogLoss()) as objective:
        start = np.zeros(objective.n_parameters)
        for solver in (SAG(), DenseNewton()):
            with pytest.raises(ValueError, match="cannot keep weights .* of 9. Use solver='lbfgs'"):
                solver.solve(objective, start)
        hinge = objective.with_loss(HingeLoss())
        for margin in (CuttingPlane(), SGD()):
            with pytest.raises(ValueError, match="Use solver='bcfw' or 'subgradient'"):
                margin.solve(hinge, start)
        model = objective.model
        model.nonnegative = np.zeros(3, bool)
        with pytest.raises(ValueError, match=r"nonnegative of LinearChainModel must be .* \(3,\)"):
            Objective(
                model, objective.structure, objective.loss, objective.penalty, objective.data,
                objective.labels, objective.weight, objective.threads,
            )  # fmt: skip
