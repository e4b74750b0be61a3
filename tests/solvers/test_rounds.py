"""What the mini-batch solvers share: evaluations, Ctrl-C, values that are not finite."""

import numpy as np
import pytest

from crfkit.objective.stochastic import StochasticObjective
from crfkit.solvers import OEG, SAG, SGD
from crfkit.solvers.stochastic.exponentiated_gradient import DualState
from crfkit.solvers.stochastic.sag import SagState
from crfkit.solvers.stochastic.sgd import Descent
from tests.solvers.stochastic import problem

SMALL = {"batch_tokens": 12, "tol": 0.0}


def counted(monkeypatch):
    """All batches that are cut from now on."""
    made, init = [], StochasticObjective.__init__

    def begin(self, *args):
        init(self, *args)
        made.append(self)

    monkeypatch.setattr(StochasticObjective, "__init__", begin)
    return made


# What computes the value between passes.
EVALUATED = {OEG: DualState, SAG: SagState, SGD: Descent}


@pytest.mark.parametrize(
    ("solver", "start", "expected"),
    [
        (OEG(**SMALL, check_every=1, max_iter=3), 0.0, [1, 3, 5, 7]),
        (OEG(**SMALL, check_every=2, max_iter=3), 0.0, [1, 4, 6]),
        (OEG(**SMALL, check_every=1, max_iter=1), 0.1, [2, 4]),
        (SAG(**SMALL, gtol=0.0, check_every=1, max_iter=2), 0.0, [1, 3, 5]),
        (SAG(**SMALL, gtol=0.0, check_every=1, max_iter=2), 0.1, [2, 4, 6]),
        (SGD(**SMALL, eta0=0.1, max_iter=2), 0.1, [1, 3, 5]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_evaluations_are_passes_with_those_of_starts_and_checks(solver, start, expected):
    with problem(count=40) as objective:
        objective.evaluations = 10
        result = solver.solve(objective, np.full(objective.n_parameters, start))
    assert [record.evaluations - 10 for record in result.history] == expected
    assert objective.evaluations == 10 + expected[-1]


def test_a_calibration_counts_with_the_share_of_the_data_that_it_sees(monkeypatch):
    made = counted(monkeypatch)
    with problem(count=200) as objective:
        zeros = np.zeros(objective.n_parameters)
        result = SGD(**SMALL, max_iter=0).solve(objective, zeros)
    (batches,) = made
    sample = max(10, len(batches) // 10)
    trials = (batches.n_computed - len(batches) - sample) / (2 * sample)
    assert trials == int(trials) >= 3
    passes = batches.n_computed / len(batches)
    assert passes <= result.history[0].evaluations < passes + 1


@pytest.mark.parametrize("kind", [OEG, SAG, SGD])
def test_control_c_while_a_pass_is_evaluated_keeps_the_pass(kind, monkeypatch):
    value, calls, seen = EVALUATED[kind].value, [], {}

    def interrupted(self, w, *chosen):
        if not chosen:
            calls.append(w)
            if len(calls) == 3:
                raise KeyboardInterrupt
        return value(self, w, *chosen)

    monkeypatch.setattr(EVALUATED[kind], "value", interrupted)
    with problem() as objective:
        solver = kind(**SMALL).set_params(**({} if kind is SGD else {"check_every": 1}))
        start = np.zeros(objective.n_parameters)
        result = solver.solve(
            objective, start, lambda record, w: seen.update({record.iteration: w})
        )
    assert (result.n_iter, result.interrupted) == (2, True)
    np.testing.assert_array_equal(seen[2], calls[2])


@pytest.mark.parametrize("kind", [OEG, SAG, SGD])
def test_a_value_that_is_not_finite_ends_the_search_at_the_last_good_pass(kind, monkeypatch):
    value, calls = EVALUATED[kind].value, []

    def broken(self, w, *chosen):
        calls.append(not chosen)
        return value(self, w, *chosen) if calls.count(True) < 3 else np.inf

    monkeypatch.setattr(EVALUATED[kind], "value", broken)
    with problem() as objective:
        solver = kind(**SMALL).set_params(**({} if kind is SGD else {"check_every": 1}))
        result = solver.solve(objective, np.zeros(objective.n_parameters))
    assert (result.n_iter, result.converged) == (1, False)
    assert result.message.startswith("the objective became inf")
    assert np.isfinite([record.value for record in result.history]).all()
    assert np.isfinite(result.parameters).all()
