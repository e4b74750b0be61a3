"""The choice of a solver, and handing over from one to the other."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from crfkit import CRFClassifier
from crfkit._parallel import ThreadMap
from crfkit._types import IterationRecord
from crfkit.objective.penalties import ElasticNet
from crfkit.solvers import LBFGS, OEG, OWLQN, SAG, SGD, AutoSolver, DenseNewton, auto
from crfkit.solvers.auto import choose_solver
from crfkit.solvers.stochastic.exponentiated_gradient import _Dual
from tests.objective.test_batch import make_data, make_objective
from tests.solvers.test_sgd import noisy_hinge


@pytest.fixture
def many(monkeypatch):
    """Let little data count as much."""
    monkeypatch.setattr(auto, "MANY_SCORES", 0)
    monkeypatch.setattr(auto, "MANY_WEIGHTS", 0)


@pytest.fixture
def sparse(rng):
    return make_data(rng, "sparse", lengths=tuple(rng.integers(1, 9, size=40)), n_features=6)


@pytest.fixture
def dense(rng):
    return make_data(rng, "dense", lengths=tuple(rng.integers(1, 9, size=40)), n_features=6)


def chosen_for(objective, random_state=0):
    return choose_solver(objective, np.zeros(objective.n_parameters), random_state)


def test_little_data_is_left_to_a_batch_method(sparse):
    with ThreadMap(1) as threads:
        assert isinstance(chosen_for(make_objective(*sparse, threads)), LBFGS)


def test_the_dual_is_climbed_where_it_is_fast(sparse, many, rng):
    data, codes = sparse
    with ThreadMap(1) as threads:
        chosen = chosen_for(make_objective(data, codes, threads), 7)
        assert isinstance(chosen, OEG)
        assert chosen.random_state == 7
        others = [
            make_objective(data, codes, threads, ElasticNet(0.0, 0.0)),
            make_objective(data, codes, threads, weight=rng.random(len(codes))),
            make_objective(*make_data(rng, "sparse dense"), threads),
            make_objective(*make_data(rng, "sparse", lengths=(1,) * 40, n_features=6), threads),
        ]
        l1 = chosen_for(make_objective(data, codes, threads, ElasticNet(0.1, 0.1)))
        warm = choose_solver(make_objective(data, codes, threads), np.ones(3))
    assert all(isinstance(chosen_for(other), LBFGS) for other in others)
    assert isinstance(warm, LBFGS)
    assert l1.handles_l1
    assert not isinstance(l1, OEG)


def test_a_strong_penalty_and_many_labels_are_enough_for_the_dual(sparse, monkeypatch):
    for name in ("MANY_SEQUENCES", "MANY_LABELS"):
        monkeypatch.setattr(auto, name, 2)
    with ThreadMap(1) as threads:
        assert isinstance(chosen_for(make_objective(*sparse, threads, ElasticNet(0.0, 1.0))), OEG)
        assert isinstance(chosen_for(make_objective(*sparse, threads, ElasticNet(0.0, 0.9))), LBFGS)


def test_the_average_gradient_is_taken_where_the_penalty_is_strong(dense, monkeypatch):
    for name in ("MANY_SEQUENCES", "MANY_LABELS"):
        monkeypatch.setattr(auto, name, 2)
    data, codes = dense
    with ThreadMap(1) as threads:
        chosen = chosen_for(make_objective(data, codes, threads, ElasticNet(0.0, 1.0)), 7)
        assert isinstance(chosen, SAG)
        assert chosen.random_state == 7
        weak = chosen_for(make_objective(data, codes, threads, ElasticNet(0.0, 0.9)))
        assert isinstance(weak, LBFGS)
        objective = make_objective(data, codes, threads, ElasticNet(0.0, 1.0))
        result = AutoSolver().solve(objective, np.zeros(objective.n_parameters))
        best = LBFGS(tol=0.0, gtol=1e-9).solve(objective, np.zeros(objective.n_parameters))
    assert result.converged and result.solver.startswith("SAG")
    assert best.value <= result.value <= best.value * 1.0002


def test_a_slow_average_gradient_is_handed_over(dense, monkeypatch):
    for name in ("MANY_SEQUENCES", "MANY_LABELS", "TRIAL_PASSES", "PATIENCE", "STRONG"):
        monkeypatch.setattr(auto, name, 0)
    with ThreadMap(1) as threads:
        objective = make_objective(*dense, threads, ElasticNet(0.0, 0.01))
        result = AutoSolver().solve(objective, np.zeros(objective.n_parameters))
        best = LBFGS(tol=0.0, gtol=1e-9).solve(objective, np.zeros(objective.n_parameters))
    assert result.message.endswith("passes of SAG)") and result.solver == "SAG, LBFGS"
    assert result.value <= best.value * 1.0001


def test_few_weights_on_much_data_are_left_to_newton(sparse, monkeypatch):
    data, codes = sparse
    with ThreadMap(1) as threads:
        for penalty in (ElasticNet(0.0, 0.1), ElasticNet(0.1, 0.0)):
            assert not isinstance(
                chosen_for(make_objective(*sparse, threads, penalty)), DenseNewton
            )
            with monkeypatch.context() as few:
                few.setattr(auto, "ENOUGH_TOKENS", 100)
                objective = make_objective(*sparse, threads, penalty)
                assert isinstance(chosen_for(objective), DenseNewton)
                few.setattr(auto, "FEW_WEIGHTS", objective.n_parameters - 1)
                assert not isinstance(chosen_for(objective), DenseNewton)


@pytest.mark.parametrize("c1", [0.0, 0.3])
def test_newton_hands_over_after_many_steps(sparse, monkeypatch, c1):
    monkeypatch.setattr(auto, "ENOUGH_TOKENS", 0)
    monkeypatch.setattr(auto, "NEWTON_STEPS", 2)
    with ThreadMap(1) as threads:
        objective = make_objective(*sparse, threads, ElasticNet(c1, 0.1))
        result = AutoSolver().solve(objective, np.zeros(objective.n_parameters))
        best = (OWLQN if c1 else LBFGS)(tol=0.0, gtol=1e-9)
        best = best.solve(objective, np.zeros(objective.n_parameters))
    assert result.converged
    assert result.message.endswith("(after 2 steps of DenseNewton)")
    assert [record.iteration for record in result.history] == list(range(result.n_iter + 1))
    assert result.value <= best.value * 1.0001


@pytest.mark.parametrize("c1", [0.1, 1.0])
def test_an_l1_norm_is_left_to_owlqn(sparse, c1):
    with ThreadMap(1) as threads:
        chosen = chosen_for(make_objective(*sparse, threads, ElasticNet(c1, 0.1)))
    assert isinstance(chosen, OWLQN)


@pytest.mark.parametrize("penalty", [(0.0, 0.3), (0.2, 0.1), (1.0, 0.1), (0.0, 0.0)])
def test_it_reaches_the_optimum(sparse, many, penalty):
    with ThreadMap(1) as threads:
        objective = make_objective(*sparse, threads, ElasticNet(*penalty))
        start = np.zeros(objective.n_parameters)
        result = AutoSolver().solve(objective, start)
        best = chosen_for(objective).set_params(tol=0.0).solve(objective, start)
    assert result.value <= best.value * (1.0 + 1e-4) + 1e-4


@pytest.mark.parametrize(
    "c1, few, solver",
    [(0.0, 2500, "LBFGS, DenseNewton"), (0.0, 0, "LBFGS, NewtonCG"),
     (0.1, 2500, "OWLQN, DenseNewton"), (0.1, 0, "OWLQN")],
)  # fmt: skip
def test_features_of_any_scale_lead_to_the_optimum(rng, monkeypatch, c1, few, solver):
    """A word among numbers of some 10,000, where steps of quasi-Newton methods hardly move."""
    monkeypatch.setattr(auto, "MATRIX_WEIGHTS", few)
    words = rng.integers(0, 20, size=(60, 5))
    X = [[{f"w{w}": 1.0, "n": 1e4 * (1.0 + w % 7), "m": 1e3 * t} for t, w in enumerate(row)]
         for row in words]  # fmt: skip
    y = [np.where(rng.random(5) < 0.2, 0, row % 3) for row in words]
    model = CRFClassifier(c1=c1, c2=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = clone(model).set_params(solver="dense_newton").fit(X, y).objective_
        found = clone(model).fit(X, y)
        short = clone(model).set_params(max_iter=found.n_iter_ - 1).fit(X, y)
    assert found.solver_ == solver
    assert found.objective_ < best * (1.001 if "Newton" in solver else 2.0)
    assert short.n_iter_ == found.n_iter_ - 1
    numbers = [record.iteration for record in found.training_log_]
    assert numbers == [*range(found.n_iter_ + 1)]


@pytest.mark.parametrize("penalty", [(0.0, 0.0), (0.1, 0.1)])
def test_a_hinge_loss_without_a_dual_is_softened_first(penalty):
    with noisy_hinge(penalty) as objective:
        start = np.zeros(objective.n_parameters)
        result = AutoSolver().solve(objective, start)
        alone = SGD(max_iter=100).solve(objective, start)
        value = objective.value_and_grad(result.parameters)[0]
        short = AutoSolver(max_iter=9).solve(objective, start)
        kept = AutoSolver().solve(objective, result.parameters)
        asked = AutoSolver().solve(objective, start, lambda record, w: record.iteration == 3)
    value += penalty[0] * np.abs(result.parameters).sum()
    assert result.value == pytest.approx(value, rel=1e-12) and result.value < alone.value
    assert "SGD" in result.solver and not np.isfinite(result.gap)
    assert kept.value <= result.value * (1.0 + 1e-12)
    assert (short.n_iter, short.converged, asked.n_iter, asked.converged) == (9, False, 3, False)


def test_a_slow_dual_is_handed_over(sparse, many, monkeypatch):
    monkeypatch.setattr(auto, "TRIAL_PASSES", 2)
    monkeypatch.setattr(auto, "PATIENCE", 0)
    seen = []
    with ThreadMap(1) as threads:
        objective = make_objective(*sparse, threads, ElasticNet(0.0, 1e-3))
        start = np.zeros(objective.n_parameters)
        result = AutoSolver().solve(objective, start, lambda r, w: seen.append(r))
        best = LBFGS(tol=0.0, gtol=1e-9).solve(objective, start)
    assert result.converged
    np.testing.assert_allclose(result.value, best.value, rtol=1e-3)
    numbers = [record.iteration for record in result.history]
    assert numbers == sorted(set(numbers))
    assert result.n_iter == numbers[-1]
    assert seen == result.history
    assert any(np.isfinite(record.gap) for record in result.history)
    assert any(np.isfinite(record.gradient_norm) for record in result.history)


def test_a_hopeless_dual_is_handed_over_at_once(sparse, many, monkeypatch):
    monkeypatch.setattr(auto, "HOPELESS", 0.0)
    with ThreadMap(1) as threads:
        objective = make_objective(*sparse, threads, ElasticNet(0.0, 1e-3))
        result = AutoSolver().solve(objective, np.zeros(objective.n_parameters))
    passes = [record for record in result.history if np.isnan(record.gradient_norm)]
    assert passes[-1].iteration < auto.TRIAL_PASSES
    assert result.converged
    assert "OEG" in result.message


def test_max_iter_counts_both(sparse, many, monkeypatch):
    monkeypatch.setattr(auto, "TRIAL_PASSES", 2)
    monkeypatch.setattr(auto, "PATIENCE", 0)
    with ThreadMap(1) as threads:
        objective = make_objective(*sparse, threads, ElasticNet(0.0, 1e-5))
        result = AutoSolver(max_iter=8).solve(objective, np.zeros(objective.n_parameters))
    assert result.n_iter <= 8
    assert not result.converged


def test_no_search_is_handed_over_that_has_no_iterations_left(sparse, many, monkeypatch):
    monkeypatch.setattr(auto, "TRIAL_PASSES", 2)
    monkeypatch.setattr(auto, "PATIENCE", 0)
    with ThreadMap(1) as threads:
        objective = make_objective(*sparse, threads, ElasticNet(0.0, 1e-5))
        result = AutoSolver(max_iter=5).solve(objective, np.zeros(objective.n_parameters))
    assert result.n_iter == 5
    assert "max_iter=5" in result.message


@pytest.mark.parametrize("after", [0, 1])
def test_control_c_while_handing_over_keeps_what_was_reached(sparse, many, monkeypatch, after):
    monkeypatch.setattr(auto, "TRIAL_PASSES", 2)
    monkeypatch.setattr(auto, "PATIENCE", 0)
    with ThreadMap(1) as threads:
        objective = make_objective(*sparse, threads, ElasticNet(0.0, 1e-5))
        evaluate, calls = objective.value_and_grad, []

        def interrupt(w):
            calls.append(w)
            if len(calls) > after:
                raise KeyboardInterrupt
            return evaluate(w)

        objective.value_and_grad = interrupt
        result = AutoSolver().solve(objective, np.zeros(objective.n_parameters))
    assert result.interrupted
    assert not result.converged
    assert result.parameters.any()
    assert result.n_iter == result.history[-1].iteration > 0
    assert (result.value, result.gap) == (result.history[-1].value, result.history[-1].gap)


def test_control_c_during_the_trial_is_no_handing_over(sparse, many, monkeypatch):
    monkeypatch.setattr(auto, "TRIAL_PASSES", 2)
    monkeypatch.setattr(auto, "PATIENCE", 0)
    run_pass, passes = _Dual.run_pass, []

    def interrupt(self, *args):
        passes.append(self)
        if len(passes) == 4:
            raise KeyboardInterrupt
        return run_pass(self, *args)

    monkeypatch.setattr(_Dual, "run_pass", interrupt)
    with ThreadMap(1) as threads:
        objective = make_objective(*sparse, threads, ElasticNet(0.0, 1e-5))
        result = AutoSolver().solve(objective, np.zeros(objective.n_parameters))
    assert (result.n_iter, result.interrupted) == (3, True)


def test_tables_of_steps_count_as_scores_of_batches(sparse):
    with ThreadMap(1) as threads:
        model = make_objective(*sparse, threads).model
    per_token = auto._batch_scores(model, 100) / 100
    assert per_token == pytest.approx(3 + 9 / 100)


def test_more_passes_are_worth_while_with_many_labels(sparse, many):
    with ThreadMap(1) as threads:
        few = make_objective(*sparse, threads, ElasticNet(0.0, 1e-3))
    assert auto.patience(few) == 4 * few.model.n_labels == 12


def test_the_expected_number_of_passes_follows_the_gap():
    watch = auto._Watch(OEG(tol=1e-4), None)

    def record(iteration, gap):
        return IterationRecord(iteration, 1.0, np.nan, 0, 0, 0.0, gap)

    assert watch._expected(record(10, 1e-1), record(15, 1e-2)) == pytest.approx(10.0)
    assert watch._expected(record(10, 1e-1), record(15, 1e-1)) == np.inf
    assert watch._expected(record(10, 1e-1), record(15, 1e-5)) == 0.0
