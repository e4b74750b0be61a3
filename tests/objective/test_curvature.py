"""The Hessian as a matrix: covariances of features, or products with it."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit import _parallel
from crfkit._parallel import ThreadMap
from crfkit.data import PackedSequences
from crfkit.losses import LogLoss
from crfkit.objective.batch import Objective
from crfkit.objective.penalties import ElasticNet
from crfkit.potentials.linear import choose_features
from crfkit.structures import Capability, Chain, MissingCapabilityError, SparseChain, chain

LENGTHS = (3, 0, 1, 9, 2, 5, 6, 1, 2)


def objective_of(rng, threads, n_labels, penalty=(0.0, 0.3), lengths=LENGTHS, ones=False, **more):
    n_tokens = sum(lengths)
    x = rng.normal(size=(n_tokens, 6)) * (rng.random((n_tokens, 6)) < 0.6)
    data = PackedSequences(
        sp.csr_array((x != 0.0).astype(float) if ones else x),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
    )
    codes = rng.integers(n_labels, size=n_tokens).astype(np.int32)
    model = choose_features(data, codes, n_labels, **more)
    weight = np.repeat(rng.choice([0.0, 0.5, 2.0], size=len(lengths)), lengths)
    penalty = ElasticNet(*penalty)
    return Objective(model, model.structure, LogLoss(), penalty, data, codes, weight, threads)


def exact(objective, w):
    return np.array([objective.hessian_product(w, unit) for unit in np.eye(len(w))])


@pytest.fixture
def all_covariances(monkeypatch):
    monkeypatch.setattr(chain, "LEAST_COVARIANCE", 0.0)


@pytest.mark.parametrize("n_labels", [2, 3, 5])
@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("features", [{}, {"all_states": True, "all_transitions": True}])
def test_covariances_are_second_derivatives(rng, all_covariances, n_labels, ones, features):
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, n_labels, ones=ones, **features)
        assert objective.has_covariances
        w = rng.normal(size=objective.n_parameters)
        found = objective.hessian(w, sp.eye_array(len(w), format="csr"))
        np.testing.assert_allclose(found, exact(objective, w), rtol=0, atol=1e-11)
        along = objective.directions(np.zeros(len(w)))
        reduced = objective.hessian(w, along)
    np.testing.assert_allclose(reduced, along @ found @ along.T, rtol=0, atol=1e-11)


def test_forbidden_transitions_have_no_covariance(rng, all_covariances):
    forbidden = np.zeros((3, 3), bool)
    forbidden[1, 2] = True
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, 3, all_transitions=True, forbidden=forbidden)
        w = rng.normal(size=objective.n_parameters)
        found = objective.hessian(w, sp.eye_array(len(w), format="csr"))
        np.testing.assert_allclose(found, exact(objective, w), rtol=0, atol=1e-11)


def test_small_covariances_are_left_out(rng):
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, 3, lengths=(40, 30, 50))
        w = rng.normal(size=objective.n_parameters)
        found = objective.hessian(w, sp.eye_array(len(w), format="csr"))
        close = 30 * chain.LEAST_COVARIANCE
        np.testing.assert_allclose(found, exact(objective, w), rtol=0, atol=close)


@pytest.mark.parametrize("more", [{"boundaries": True}, {"n_labels": 60}])
def test_others_take_a_product_each(rng, more):
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, **{"n_labels": 3} | more)
        assert isinstance(objective.structure, SparseChain if "n_labels" in more else Chain)
        assert not objective.has_covariances
        w = rng.normal(size=objective.n_parameters)
        some = sp.eye_array(len(w), format="csr")[:7]
        found = objective.hessian(w, some)
        np.testing.assert_allclose(found, exact(objective, w)[:7, :7], rtol=0, atol=1e-12)


def test_some_sequences_stand_for_all(rng, all_covariances):
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, 3, lengths=(7,) * 9)
        w = rng.normal(size=objective.n_parameters)
        unit = sp.eye_array(len(w), format="csr")
        assert not np.allclose(objective.hessian(w, unit, 4), exact(objective, w))
        np.testing.assert_allclose(objective.hessian(w, unit, 5), exact(objective, w), atol=1e-11)
        kept = np.repeat(np.arange(9) % 2 == 0, 7)
        objective.weight = objective.weight * 2.0 * kept
        objective.__dict__.pop("_level")
        thinned = exact(objective, w)
        objective.weight = objective.weight / 2.0
        objective.__dict__.pop("_level")
        np.testing.assert_allclose(objective.hessian(w, unit, 4), thinned, atol=1e-11)


def test_weights_of_two_labels_stay_opposite(rng):
    with ThreadMap(1) as threads:
        objective = objective_of(rng, threads, 2, all_states=True)
        size, start = objective.n_parameters, np.zeros(objective.n_parameters)
        along = objective.directions(start)
        assert along.shape == (6 + size - 12, size)
        np.testing.assert_array_equal(abs(along).sum(axis=0), 1.0)
        start[0] = 1.0
        assert objective.directions(start).shape == (size, size)
        other = objective_of(rng, threads, 3)
        assert other.directions(np.zeros(other.n_parameters)).shape[0] == other.n_parameters


def test_the_matrix_is_bit_equal_for_any_number_of_threads(rng, monkeypatch):
    monkeypatch.setattr(_parallel, "CHUNK_CELLS", 30)
    found = []
    for n_jobs in (1, 2, 4):
        with ThreadMap(n_jobs) as threads:
            objective = objective_of(np.random.default_rng(0), threads, 3, lengths=LENGTHS * 5)
            w = np.random.default_rng(1).normal(size=objective.n_parameters)
            found.append(objective.hessian(w, sp.eye_array(len(w), format="csr")))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_a_structure_without_covariances_says_so(rng):
    assert Capability.COVARIANCES not in SparseChain.capabilities
    with pytest.raises(MissingCapabilityError, match="no covariances of features. Use solver"):
        SparseChain(np.zeros(0), np.zeros(0), 3).add_covariances(None, None, 0, None, None)
