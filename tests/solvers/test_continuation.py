"""A loss with stages, minimized one after the other; what solvers need of a loss."""

import math

import numpy as np
import pytest

from crfkit._parallel import ThreadMap
from crfkit.losses import AnnealedHingeLoss, HingeLoss, Loss, PerceptronLoss, SoftmaxMarginLoss
from crfkit.objective.penalties import ElasticNet
from crfkit.solvers import LBFGS, SGD, SOLVERS, AutoSolver
from crfkit.solvers.auto import choose_solver
from crfkit.solvers.base import minimize
from tests.objective.test_batch import make_data, make_objective
from tests.sampling import in_turns

TEMPERATURES = (1.0, 0.3, 0.1)


@pytest.fixture
def objective(rng):
    data, codes = make_data(rng, lengths=(3, 1, 5, 2, 4), n_features=4)
    with ThreadMap(1) as threads:
        plain = make_objective(data, codes, threads, ElasticNet(0.0, 0.3))
        yield plain.with_loss(AnnealedHingeLoss(temperatures=TEMPERATURES))


def start_of(objective):
    return np.zeros(objective.n_parameters)


@pytest.mark.parametrize("solver", [LBFGS(), AutoSolver(), SGD(tol=1e-4)], ids=repr)
def test_records_go_on_counting(objective, solver):
    told = []
    result = minimize(solver, objective, start_of(objective), lambda r, w: told.append(r))
    pairs = zip(told, result.history, strict=True)
    other = [i for i, (ours, kept) in enumerate(pairs) if ours != kept]
    assert len(other) == len(TEMPERATURES) - 1  # the first weights of the later stages
    assert all(told[i].iteration == result.history[i].iteration for i in other)
    numbers = [record.iteration for record in told]
    assert numbers == list(range(len(numbers)))
    for name in ("evaluations", "seconds"):
        values = [getattr(record, name) for record in told]
        assert values == sorted(values)
    assert result.n_iter == numbers[-1]


def test_the_last_stage_is_minimized(objective):
    result = minimize(LBFGS(gtol=1e-9, tol=0.0), objective, start_of(objective))
    last = objective.with_loss(objective.loss.stages()[-1])
    direct = LBFGS(gtol=1e-9, tol=0.0).solve(last, start_of(objective))
    assert result.converged and direct.converged
    np.testing.assert_allclose(result.parameters, direct.parameters, atol=1e-7)
    np.testing.assert_allclose(result.value, direct.value, rtol=1e-12)


def test_only_the_last_stage_tells_of_the_gap(objective):
    result = minimize(LBFGS(), objective, start_of(objective))
    gaps = [objective.gap(record) for record in result.history]
    finite = [math.isfinite(gap) for gap in gaps]
    assert finite == sorted(finite) and not finite[0] and finite[-1]


@pytest.mark.parametrize("most", [0, 1, 2, 7])
def test_iterations_are_shared_out(objective, most):
    result = minimize(LBFGS(max_iter=most), objective, start_of(objective))
    assert result.n_iter <= most
    last = objective.with_loss(objective.loss.stages()[-1])
    np.testing.assert_allclose(last.value_and_grad(result.parameters)[0], result.value)


@pytest.mark.parametrize("solver", [LBFGS(), SGD(tol=1e-4)], ids=repr)
def test_a_watch_is_told_of_the_last_stage_from_its_first_weights_on(objective, solver):
    told, watched = [], []
    result = minimize(
        solver, objective, start_of(objective),
        lambda record, w: told.append((record.iteration, w.copy())),
        lambda record, w: watched.append((record, w.copy())),
    )  # fmt: skip
    first = watched[0][0].iteration
    assert 0 < first < result.n_iter
    assert [record for record, _ in watched] == result.history[first:]
    assert [number for number, _ in told] == list(range(result.n_iter + 1))
    last = objective.with_loss(objective.loss.stages()[-1])
    for record, w in watched:
        np.testing.assert_allclose(last.value_and_grad(w)[0], record.value, rtol=1e-11)
    np.testing.assert_array_equal(watched[0][1], told[first][1])


def test_a_watch_stops_the_last_stage(objective):
    result = minimize(LBFGS(), objective, start_of(objective), watch=lambda record, w: True)
    last = objective.with_loss(objective.loss.stages()[-1])
    assert not result.converged and result.n_iter > 0
    np.testing.assert_allclose(last.value_and_grad(result.parameters)[0], result.value)


def test_a_loss_without_stages_is_watched_from_the_start(objective):
    told, watched = [], []
    plain = objective.with_loss(SoftmaxMarginLoss())
    result = minimize(
        LBFGS(), plain, start_of(plain),
        lambda record, w: told.append(record), lambda record, w: watched.append(record),
    )  # fmt: skip
    assert told == watched == result.history


@pytest.mark.parametrize("most", [0, 2, 4])
def test_the_gap_is_known_where_the_last_stage_makes_no_step(objective, most):
    """Some stages have no iteration of their own; the bound is that of the last loss."""
    result = minimize(LBFGS(max_iter=most), objective, start_of(objective))
    last = objective.with_loss(objective.loss.stages()[-1])
    gradient = last.value_and_grad(result.parameters)[1]
    assert result.history[-1].value == result.value
    bound = gradient @ gradient / (4 * objective.l2)
    np.testing.assert_allclose(objective.gap(result.history[-1]), bound, rtol=1e-9)


@pytest.mark.parametrize("most", [1, 7, 50])
def test_the_message_names_the_iterations_that_were_asked_for(objective, most):
    solver = LBFGS(max_iter=most, gtol=0.0, tol=0.0)
    result = minimize(solver, objective, start_of(objective))
    assert result.n_iter == most
    assert result.message.startswith(f"max_iter={most} iterations were not enough")
    assert solver.max_iter == most


@pytest.mark.parametrize(("most", "error"), [("10", TypeError), (2.5, TypeError), (-5, ValueError)])
@pytest.mark.parametrize("kind", [LBFGS, SGD, AutoSolver])
def test_iterations_that_cannot_be_shared_are_errors_as_for_other_losses(
    objective, kind, most, error
):
    found = []
    for loss in (objective.loss, SoftmaxMarginLoss()):
        with pytest.raises(error, match="max_iter") as caught:
            minimize(kind(max_iter=most), objective.with_loss(loss), start_of(objective))
        found.append(str(caught.value))
    assert found[0] == found[1]


def test_a_callback_stops_all_stages(objective):
    told = []

    def stop(record, w):
        told.append(record)
        return record.iteration == 2

    result = minimize(LBFGS(), objective, start_of(objective), stop)
    assert result.n_iter == 2 and not result.converged and len(told) == 3


@pytest.mark.parametrize("when", [2, 40])
def test_an_interrupt_ends_all_stages(objective, when):
    def interrupt(record, w):
        if record.iteration == when:
            raise KeyboardInterrupt

    result = minimize(LBFGS(gtol=0.0, tol=0.0), objective, start_of(objective), interrupt)
    assert result.interrupted and result.n_iter == when


def test_no_stages_at_all_are_an_error(objective):
    class Empty(SoftmaxMarginLoss):
        is_staged = True

        def stages(self):
            return []

    with pytest.raises(ValueError, match="loss Empty has no stages"):
        minimize(LBFGS(), objective.with_loss(Empty()), start_of(objective))


def test_a_loss_without_stages_is_minimized_by_the_solver(objective):
    plain = objective.with_loss(SoftmaxMarginLoss())
    result, direct = (
        minimize(LBFGS(), plain, start_of(plain)),
        LBFGS().solve(plain, start_of(plain)),
    )
    np.testing.assert_array_equal(result.parameters, direct.parameters)


SMOOTH_ONLY = sorted(set(SOLVERS) - {"sgd", "auto"})


@pytest.mark.parametrize("name", SMOOTH_ONLY)
@pytest.mark.parametrize("loss", [HingeLoss(), PerceptronLoss()], ids=repr)
def test_a_loss_with_corners_is_refused_by_solvers_that_need_gradients(objective, name, loss):
    solver = SOLVERS[name]()
    other = objective.with_loss(loss)
    with pytest.raises(ValueError, match=f"{type(solver).__name__} needs .*'sgd'"):
        solver.solve(other, start_of(other))


@pytest.mark.parametrize("name", ["oeg", "gis", "iis"])
def test_solvers_made_for_the_log_loss_refuse_others(objective, name):
    other = objective.with_loss(SoftmaxMarginLoss())
    with pytest.raises(ValueError, match="needs the log loss, not SoftmaxMarginLoss.*'lbfgs'"):
        SOLVERS[name]().solve(other, start_of(other))


def test_second_derivatives_are_asked_for(objective):
    class Rough(Loss):
        value_and_grad = SoftmaxMarginLoss.value_and_grad

    other = objective.with_loss(Rough())
    with pytest.raises(
        ValueError, match="NewtonCG needs a loss with second derivatives, not Rough"
    ):
        SOLVERS["newton"]().solve(other, start_of(other))


SMOOTH_SOLVERS = sorted(set(SOLVERS) - {"oeg", "gis", "iis", "sgd", "auto", "rprop"})


@pytest.mark.parametrize(
    ("name", "loss"),
    in_turns([*SMOOTH_SOLVERS, "auto"], [SoftmaxMarginLoss(), AnnealedHingeLoss()]),
)
def test_gradient_solvers_minimize_every_smooth_loss(objective, name, loss):
    """Within what is asked for of the optimum that L-BFGS finds."""
    last = loss.stages()[-1] if loss.is_staged else loss
    reference = LBFGS(tol=0.0, gtol=1e-8, max_iter=5000).solve(
        objective.with_loss(last), start_of(objective)
    )
    found = minimize(SOLVERS[name](), objective.with_loss(loss), start_of(objective))
    np.testing.assert_allclose(found.value, reference.value, rtol=2e-3)


def test_subgradients_come_near_the_optimum_of_the_hinge_loss(rng):
    data, codes = make_data(rng, lengths=tuple(rng.integers(1, 9, size=25)), n_features=4)
    with ThreadMap(1) as threads:
        plain = make_objective(data, codes, threads, ElasticNet(0.0, 3.0))
        hinge = plain.with_loss(HingeLoss())
        best = AutoSolver().solve(hinge, start_of(hinge))
        found = SGD(batch_tokens=8).solve(hinge, start_of(hinge))
        assert hinge.gap(best.history[-1]) <= 1e-3 * best.value
        assert math.isnan(hinge.gap(found.history[-1]))
    assert best.value * (1 - 1e-3) <= found.value <= 1.02 * best.value


def test_the_choice_of_a_solver_depends_on_the_loss(objective):
    def choice(loss):
        return type(choose_solver(objective.with_loss(loss), start_of(objective))).__name__

    assert choice(HingeLoss()) == "BlockFrankWolfe"
    assert choice(PerceptronLoss()) == "SGD"
    assert choice(SoftmaxMarginLoss()) == "LBFGS"
    objective = objective.with_penalty(ElasticNet(0.1, 0.3))
    assert choice(HingeLoss()) == "SGD"
    assert choice(SoftmaxMarginLoss()) == "OWLQN"
