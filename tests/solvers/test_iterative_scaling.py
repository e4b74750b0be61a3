"""Iterative scaling: the common optimum, monotone, only for features that are not negative."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.objective.penalties import ElasticNet
from crfkit.solvers import GIS, IIS, LBFGS
from crfkit.solvers.historical.iterative_scaling import scaling_update
from tests.objective.test_batch import make_objective

BOTH = pytest.mark.parametrize("kind", [GIS, IIS])


def counted_data(rng, values="indicators"):
    lengths = [1, 2, 0, 3, 2, 1, 4, 2, 3, 1]
    x = (rng.random((sum(lengths), 3)) < 0.5).astype(float)
    if values == "numbers":
        x *= rng.integers(1, 4, size=x.shape)
    data = PackedSequences(sp.csr_array(x), offsets=np.concatenate([[0], np.cumsum(lengths)]))
    return data, rng.integers(3, size=len(x)).astype(np.int32)


@BOTH
def test_scaling_reaches_the_common_optimum_and_never_rises(rng, kind):
    data, codes = counted_data(rng, "numbers")
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(0.0, 2.0), boundaries=True)
        start = np.zeros(objective.n_parameters)
        expected = LBFGS(tol=0.0, gtol=1e-10).solve(objective, start)
        result = kind(tol=0.0, gtol=1e-7).solve(objective, start)
    assert result.converged
    np.testing.assert_allclose(result.parameters, expected.parameters, atol=1e-6)
    history = [record.value for record in result.history]
    assert np.all(np.diff(history) <= 1e-12 * abs(history[0]))


@BOTH
def test_scaling_raises_the_likelihood_without_a_penalty(rng, kind):
    data, codes = counted_data(rng)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(0.0, 0.0))
        result = kind(max_iter=30).solve(objective, np.zeros(objective.n_parameters))
        _, gradient = objective.value_and_grad(result.parameters)
    history = [record.value for record in result.history]
    assert np.all(np.diff(history) < 0.0)
    assert np.linalg.norm(gradient) < 0.5 * result.history[0].gradient_norm


def test_told_apart_totals_need_fewer_steps(rng):
    data, codes = counted_data(rng)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(0.0, 2.0))
        steps = [
            kind(tol=0.0, gtol=1e-6).solve(objective, np.zeros(objective.n_parameters)).n_iter
            for kind in (GIS, IIS)
        ]
    assert steps[1] < steps[0]


def test_counts_are_those_of_enumeration(rng):
    data, codes = counted_data(rng, "numbers")
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(0.0, 0.0), boundaries=True)
        w = rng.normal(size=objective.n_parameters)
        everyone = np.ones(len(data), bool)
        expected, observed = objective.expected_counts(w, everyone), objective.observed_counts()
        _, gradient = objective.value_and_grad(w)
        parts = [
            objective.expected_counts(w, np.arange(len(data)) % 2 == parity) for parity in (0, 1)
        ]
        totals = objective.total_counts()
    np.testing.assert_allclose(expected - observed, gradient, atol=1e-12)
    np.testing.assert_allclose(parts[0] + parts[1], expected, atol=1e-12)
    assert observed.sum() == pytest.approx(round(observed.sum()))
    assert totals[2] == 0.0
    assert (totals[np.diff(data.offsets) > 0] >= 1.0).all()
    assert totals.sum() >= observed.sum()


def test_the_update_solves_its_equation(rng):
    w, observed = rng.normal(size=50), rng.random(50) * 10.0
    expected = rng.random((3, 50)) * 10.0 ** rng.integers(-8, 4, size=(3, 50))
    totals, l2 = np.array([2.0, 7.0, 400.0]), 0.1
    delta = scaling_update(w, observed, expected, totals, l2)
    left = (expected * np.exp(totals[:, None] * delta)).sum(axis=0) + 2 * l2 * (w + delta)
    np.testing.assert_allclose(left, observed, rtol=1e-9, atol=1e-9)


def test_the_update_does_not_overflow_where_nothing_is_expected():
    expected, totals = np.array([[0.5, 0.5], [0.0, 0.2]]), np.array([1.0, 1e4])
    wanted = np.array([2.0, 2.0])
    delta = scaling_update(np.zeros(2), wanted, expected[::-1], totals[::-1], 0.0)
    assert delta[0] == pytest.approx(np.log(4.0))
    left = (expected * np.exp(totals[:, None] * np.where(expected > 0.0, delta, 0.0))).sum(axis=0)
    np.testing.assert_allclose(left, wanted, rtol=1e-9)


@BOTH
def test_negative_features_are_an_error(rng, kind):
    data, codes = counted_data(rng)
    data = PackedSequences(dense=rng.normal(size=(data.n_tokens, 2)), offsets=data.offsets)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads)
        with pytest.raises(ValueError, match="not negative"):
            kind().solve(objective, np.zeros(objective.n_parameters))


@BOTH
def test_an_l1_penalty_is_an_error(rng, kind):
    data, codes = counted_data(rng)
    with ThreadMap(1) as threads:
        objective = make_objective(data, codes, threads, ElasticNet(1.0, 0.0))
        with pytest.raises(ValueError, match="differentiable"):
            kind().solve(objective, np.zeros(objective.n_parameters))


@BOTH
def test_a_feature_without_an_optimum_is_an_error(rng, kind):
    data, codes = counted_data(rng)
    codes[:] = codes % 2
    with ThreadMap(1) as threads:
        objective = make_objective(
            data, codes, threads, ElasticNet(0.0, 0.0), all_states=True, all_transitions=True
        )
        with pytest.raises(ValueError, match="c2 > 0"):
            kind().solve(objective, np.zeros(objective.n_parameters))
