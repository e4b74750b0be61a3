"""Which structure the weights of transitions ask for, and that the answers do not depend on it."""

import numpy as np
import pytest

from crfkit import CRFClassifier
from crfkit.data import PackedSequences
from crfkit.potentials import chain_blocks as steps
from crfkit.potentials.linear import choose_features
from crfkit.structures import Chain, SparseChain


def make_data(n_labels=60, n_sequences=80, seed=0):
    """Sequences in which label ``i`` is followed by few others."""
    rng = np.random.default_rng(seed)
    jumps = rng.integers(1, 4, size=(n_sequences, 6))
    codes = (rng.integers(n_labels, size=(n_sequences, 1)) + jumps.cumsum(axis=1)) % n_labels
    x = rng.normal(size=(codes.size, 5)) + np.cos(codes.reshape(-1, 1) * np.arange(1, 6))
    return PackedSequences.from_flat(x, [6] * n_sequences), codes


def test_few_scored_steps_among_many_labels_ask_for_the_sparse_chain():
    data, codes = make_data()
    flat = codes.reshape(-1).astype(np.int32)
    assert isinstance(choose_features(data, flat, 60).structure, SparseChain)
    assert isinstance(choose_features(data, flat, 60, all_transitions=True).structure, Chain)
    few = np.arange(5)
    assert not steps.TransitionBlock(few, few, 10).in_short().is_list


def fitted(data, labels, **options):
    with pytest.warns(UserWarning, match="did not converge"):
        return CRFClassifier(max_iter=8, **options).fit(data, labels)


@pytest.mark.parametrize("boundaries", [False, True])
def test_a_fit_and_its_predictions_do_not_depend_on_the_structure(monkeypatch, boundaries):
    data, codes = make_data()
    sparse = fitted(data, codes.tolist(), boundary_weights=boundaries)
    assert isinstance(sparse._model_for(data).model.structure, SparseChain)
    proba, labels = sparse.predict_proba(data), sparse.predict(data)
    log_proba = sparse.sequence_log_proba(data, codes.tolist())
    monkeypatch.setattr(steps, "SPARSE_LABELS", 1000)
    dense = fitted(data, codes.tolist(), boundary_weights=boundaries)
    assert isinstance(dense._model_for(data).model.structure, Chain)
    assert sparse.transitions_.shape == dense.transitions_.shape == (60, 60)
    np.testing.assert_allclose(sparse.transitions_, dense.transitions_, atol=1e-9)
    np.testing.assert_allclose(sparse.objective_, dense.objective_, rtol=1e-12)
    assert labels == dense.predict(data)
    np.testing.assert_allclose(np.concatenate(proba), np.concatenate(dense.predict_proba(data)),
                               atol=1e-9)  # fmt: skip
    np.testing.assert_allclose(log_proba, dense.sequence_log_proba(data, codes.tolist()), atol=1e-8)


def test_a_sparse_fit_is_the_same_to_the_last_bit_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(steps, "SPARSE_CELLS", 60 * 12)
    data, codes = make_data()
    one, two = (fitted(data, codes.tolist(), n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_.data, two.coef_.data)
    np.testing.assert_array_equal(one.transitions_, two.transitions_)
    assert one.objective_ == two.objective_


def test_transitions_set_by_hand_may_forbid_steps():
    data, codes = make_data()
    crf = fitted(data, codes.tolist())
    forbidden = np.where(crf.transitions_ == 0.0, 0.0, -np.inf)
    crf.transitions_ = forbidden
    assert isinstance(crf._model_for(data).model.structure, SparseChain)
    for labels in crf.predict(data):
        assert np.isfinite(forbidden[labels[:-1], labels[1:]]).all()
