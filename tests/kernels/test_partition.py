"""Listing the entries of batches; also run without the compiler."""

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap, make_chunks
from crfkit.data import PackedSequences
from crfkit.oracles.design import make_design
from crfkit.oracles.weights import chain_weights
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.linear import chain_model

LENGTHS = (3, 0, 1, 5, 2, 4, 0, 7, 1, 1)


def make_model(rng, n_labels, n_attributes):
    """A model of few and many weights an attribute, and some without."""
    share = rng.choice([0.0, 0.2, 1.0], size=(n_attributes, 1))
    mask = rng.random((n_attributes, n_labels)) < share
    ptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    state = AttributeWeights(ptr, np.nonzero(mask)[1], n_columns=n_labels, n_sparse=n_attributes)
    steps = np.nonzero(rng.random((n_labels, n_labels)) < 0.6)
    return chain_model(state, *steps), mask


@pytest.mark.parametrize("n_labels", [2, 9, 26])
@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("bits", [16, 32])
def test_the_lists_of_each_batch_are_its_matrix(rng, n_labels, values, bits, monkeypatch):
    if bits == 32:
        monkeypatch.setattr("crfkit.oracles.design.SMALL", 0)
    model, mask = make_model(rng, n_labels, 20)
    weights = chain_weights(model)
    x = (rng.random((sum(LENGTHS), 20)) < 0.5).astype(float)
    x *= rng.normal(size=x.shape) if values else 1.0
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    data = PackedSequences(sp.csr_array(x), offsets=offsets)
    chunks = make_chunks(offsets, 8)
    with ThreadMap(2) as threads:
        heads = np.array([chunk.tokens.start for chunk in chunks] + [data.n_tokens])
        design = make_design(weights, data, threads, heads=heads)
    lists = design.batches
    assert len(design.rows) == 0 and lists.token_ptr[-1] == len(lists.tokens)
    small = (design.cells, lists.rows, lists.tokens, lists.ends)
    assert {array.itemsize for array in small} == {bits // 8}
    w = rng.normal(size=model.n_parameters)
    table = np.zeros(mask.shape)
    table[mask] = w[: model.state.n_parameters]
    scores, moved = _by_lists(design, weights.pack(w), chunks, weights)
    np.testing.assert_allclose(scores[:, :n_labels], x @ table, atol=1e-13)
    for index, chunk in enumerate(chunks):
        gradient = np.zeros(mask.shape)
        gradient[mask] = weights.unpack(moved[index])[: model.state.n_parameters]
        expected = x[chunk.tokens].T @ scores[chunk.tokens, :n_labels]
        np.testing.assert_allclose(gradient, np.where(mask, expected, 0.0), atol=1e-12)


def _by_lists(design, flat, chunks, weights):
    """Scores of all tokens, and the gradient to the weights for the scores as residual."""
    stride, table, lists = design.stride, weights.table(flat), design.batches
    scores = np.zeros((lists.heads[-1], weights.width))
    gradients = []
    for batch, chunk in enumerate(chunks):
        own, gradient = scores[chunk.tokens], np.zeros(weights.size)
        cells = range(lists.cell_ptr[batch], lists.cell_ptr[batch + 1])
        for n in cells:
            value = design.cell_values[n * stride] * flat[design.positions[n]]
            own.reshape(-1)[design.cells[n]] += value
        rows = range(lists.ptr[batch], lists.ptr[batch + 1])
        assert (np.diff(lists.rows[rows].astype(int)) > 0).all()
        entries, begin = [], lists.token_ptr[batch]
        for c in rows:
            end = lists.token_ptr[batch] + lists.ends[c]
            assert (np.diff(lists.tokens[begin:end].astype(int)) > 0).all()
            entries += [(n, lists.rows[c]) for n in range(begin, end)]
            begin = end
        assert begin == lists.token_ptr[batch + 1]
        for n, h in entries:
            own[lists.tokens[n]] += lists.values[n * stride] * table[h]
        for n, h in entries:
            weights.table(gradient)[h] += lists.values[n * stride] * own[lists.tokens[n]]
        for n in cells:
            value = design.cell_values[n * stride] * own.reshape(-1)[design.cells[n]]
            gradient[design.positions[n]] += value
        gradients.append(gradient)
    return scores, gradients


def test_a_vector_of_weights_has_a_place_for_each_and_bits_for_those_in_rows(rng):
    for n_labels in (1, 3, 8, 13, 26):
        model, mask = make_model(rng, n_labels, 15)
        weights = chain_weights(model)
        assert len(np.unique(weights.positions)) == model.n_parameters
        w = rng.random(model.n_parameters) + 1.0
        flat = weights.pack(w)
        np.testing.assert_array_equal(weights.unpack(flat), w)
        assert np.count_nonzero(flat) == model.n_parameters
        assert flat.ctypes.data % 64 == 0
        lanes = np.unpackbits(weights.bits, axis=1, bitorder="little")
        n_vectors = weights.width // 8
        bits = lanes[:, : 8 * n_vectors].astype(bool)
        np.testing.assert_array_equal(bits, weights.table(flat) != 0.0)
