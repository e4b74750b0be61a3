"""A sequence that is long enough to be split over threads."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit import CRFClassifier, _parallel
from crfkit.data import PackedSequences
from crfkit.potentials import chain_blocks
from crfkit.structures import chain, long_chain


@pytest.fixture
def short_limits(monkeypatch):
    for module in (_parallel, chain_blocks, chain):
        monkeypatch.setattr(module, "LONG_TOKENS", 50)
    monkeypatch.setattr(long_chain, "BLOCK_TOKENS", 40)


def make_data(kind="indicators"):
    rng = np.random.default_rng(0)
    lengths = [3, 330, 40, 51, 2]
    codes = rng.integers(3, size=sum(lengths))
    active = (2 * codes + rng.integers(0, 4, size=len(codes))) % 8
    x = sp.csr_array((np.ones(len(codes)), active, np.arange(len(codes) + 1)), (len(codes), 8))
    x = {"indicators": x, "numbers": x * 0.5, "dense": x.toarray()}[kind]
    data = PackedSequences.from_flat(x, lengths)
    return data, [codes[b:e] for b, e in zip(data.offsets[:-1], data.offsets[1:], strict=True)]


def answers(data, y, n_jobs):
    crf = CRFClassifier(c2=0.1, boundary_weights=True, n_jobs=n_jobs).fit(data, y)
    proba = np.concatenate(crf.predict_proba(data))
    return crf, crf.predict(data), proba, crf.sequence_log_proba(data, y)


@pytest.mark.parametrize("kind", ["indicators", "numbers", "dense"])
def test_splitting_changes_nothing_but_the_last_digits(short_limits, monkeypatch, kind):
    data, y = make_data(kind)
    crf, labels, proba, log_proba = answers(data, y, 2)
    monkeypatch.undo()
    whole, expected_labels, expected_proba, expected_log_proba = answers(data, y, 2)
    np.testing.assert_allclose(crf.objective_, whole.objective_, rtol=1e-10)
    assert labels == expected_labels
    np.testing.assert_allclose(proba, expected_proba, atol=1e-5)
    np.testing.assert_allclose(log_proba, expected_log_proba, atol=1e-3)
    assert crf.predict_proba(data)[1].shape == (330, 3)


def test_the_fit_is_the_same_to_the_last_bit_for_any_number_of_threads(short_limits):
    data, y = make_data()
    results = [answers(data, y, n_jobs) for n_jobs in (1, 2, 3)]
    for crf, labels, proba, log_proba in results[1:]:
        np.testing.assert_array_equal(crf.coef_.data, results[0][0].coef_.data)
        assert labels == results[0][1]
        np.testing.assert_array_equal(proba, results[0][2])
        np.testing.assert_array_equal(log_proba, results[0][3])


def test_a_long_sequence_is_a_block_of_its_own(short_limits):
    data, _ = make_data()
    made = _parallel.make_chunks(data.offsets, 45)
    blocks = _parallel.make_blocks(made, [1] * len(made), 3)
    assert [[chunk.first for chunk in block] for block in blocks] == [[0], [1], [2], [3], [4]]
    assert [_parallel.is_long(block[0]) for block in blocks] == [False, True, False, True, False]
    assert _parallel.cut(slice(3, 10), 3) == [slice(3, 6), slice(6, 9), slice(9, 10)]
    assert _parallel.cut(slice(4, 4), 3) == [slice(4, 4)]
