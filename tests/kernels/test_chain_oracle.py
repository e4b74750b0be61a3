"""Helpers of compiled visits of one sequence, against matrices; also run without the compiler."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import ThreadMap
from crfkit.compiler.jit import frozen, kernel
from crfkit.data import PackedSequences
from crfkit.kernels.chain.oracle import (
    add_cost,
    apply_scratch,
    best_path,
    gather_sequence,
    path_score,
    scatter_sequence,
)
from crfkit.oracles.partition import AlignedWeights, aligned
from crfkit.oracles.token_design import TokenDesign
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.linear_chain import chain_model
from crfkit.structures import Chain, ChainPotentials

LENGTHS = (3, 0, 1, 5, 2, 4, 0, 7, 1, 1)
FORMS = ["sparse", "values", "dense", "both"]


@kernel
def gather(begin, end, flat, table, n_labels, entries, listed, target):
    """Gather the scores of a sequence."""
    gather_sequence(begin, end, flat, table, n_labels, entries, listed, target)


@kernel
def scatter(begin, end, residual, active, flows, entries, bits, scratch, scratch_table):
    """Scatter the residual of a sequence."""
    return scatter_sequence(
        begin, end, residual, active, flows, entries, bits, scratch, scratch_table
    )


@kernel
def apply(begin, end, active, n_labels, factor, entries, scratch, scratch_table, flat, table):
    """Apply what was scattered."""
    apply_scratch(
        begin, end, active, n_labels, factor, entries, scratch, scratch_table, flat, table
    )


@kernel
def find(length, scores, steps, first, size, best, labels):
    """Return the best path, its score twice."""
    value = best_path(length, scores, steps, first, size, best, labels)
    return value, path_score(length, scores, steps, first, labels, 0)


@kernel
def cost_of(row, label, cost, target):
    """Add the cost of a token."""
    add_cost(row, label, cost, target)


def make_case(rng, n_labels, form):
    """Data, their matrix, a model and the mask of its state weights."""
    n_sparse, n_dense = (12, 5) if form in ("dense", "both") else (17, 0)
    n_sparse = 0 if form == "dense" else n_sparse
    share = rng.choice([0.0, 0.2, 1.0], size=(n_sparse + n_dense, 1))
    mask = rng.random((n_sparse + n_dense, n_labels)) < share
    ptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    state = AttributeWeights(ptr, np.nonzero(mask)[1], n_columns=n_labels, n_sparse=n_sparse)
    model = chain_model(state, *np.nonzero(rng.random((n_labels, n_labels)) < 0.6))
    x = (rng.random((sum(LENGTHS), len(mask))) < 0.5).astype(float)
    x *= rng.normal(size=x.shape) if form != "sparse" else 1.0
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    data = PackedSequences(
        sp.csr_array(x[:, :n_sparse]) if n_sparse else None,
        dense=x[:, n_sparse:] if n_dense else None, offsets=offsets,
    )  # fmt: skip
    return data, x, model, mask


def make_entries(model, data):
    weights = AlignedWeights(model)
    with ThreadMap(2) as threads:
        return weights, TokenDesign(weights, data, threads)


@pytest.mark.parametrize("n_labels", [1, 3, 9, 26, 33])
@pytest.mark.parametrize("form", FORMS)
def test_scores_are_those_of_the_matrix(rng, n_labels, form):
    data, x, model, mask = make_case(rng, n_labels, form)
    weights, entries = make_entries(model, data)
    w = rng.normal(size=model.n_parameters)
    flat, table = weights.spread(w), np.zeros(mask.shape)
    table[mask] = w[: model.state.n_parameters]
    expected, size = x @ table, 1 + entries.dense.shape[1]
    target = np.full((max(LENGTHS), weights.width), np.nan)
    listed = np.zeros(size, np.uint32), np.zeros(size)
    for begin, end in itertools.pairwise(data.offsets.tolist()):
        gather(begin, end, frozen(flat), weights.table(frozen(flat)), n_labels, entries.arrays,
               listed, target)  # fmt: skip
        found = target[: end - begin]
        np.testing.assert_allclose(found[:, :n_labels], expected[begin:end], atol=1e-13)
        assert (found[:, n_labels:] == 0.0).all()


@pytest.mark.parametrize("n_labels", [1, 3, 9, 26])
@pytest.mark.parametrize("form", FORMS)
def test_a_residual_goes_back_to_the_weights_and_leaves_no_trace(rng, n_labels, form):
    data, x, model, mask = make_case(rng, n_labels, form)
    weights, entries = make_entries(model, data)
    w = rng.normal(size=model.n_parameters)
    flat, scratch = weights.spread(w), aligned(weights.size)
    table, scratch_table = weights.table(flat), weights.table(scratch)
    state = mask.nonzero()
    for begin, end in itertools.pairwise(data.offsets.tolist()):
        residual = np.zeros((max(LENGTHS), weights.width))
        active = (rng.random(max(LENGTHS)) < 0.7).astype(np.int64)
        residual[:, :n_labels] = rng.normal(size=(max(LENGTHS), n_labels)) * active[:, None]
        flows = np.zeros((n_labels, weights.width))
        flows[:, :n_labels] = rng.normal(size=(n_labels, n_labels))
        square = scatter(begin, end, residual, active, flows, entries.arrays, weights.bits,
                         scratch, scratch_table)  # fmt: skip
        change = x[begin:end].T @ residual[: end - begin, :n_labels]
        steps = flows[model.transition_from, model.transition_to]
        expected = np.concatenate([change[state], steps])
        np.testing.assert_allclose(weights.collect(scratch), expected, atol=1e-12)
        np.testing.assert_allclose(square, expected @ expected, rtol=1e-12)
        w += 0.5 * expected
        apply(begin, end, active, n_labels, 0.5, entries.arrays, scratch, scratch_table, flat,
              table)  # fmt: skip
        np.testing.assert_allclose(weights.collect(flat), w, atol=1e-12)
        assert not scratch.any()
        assert np.count_nonzero(flat) <= model.n_parameters


@pytest.mark.parametrize("n_labels", [1, 2, 3, 8, 9, 26, 33])
@pytest.mark.parametrize("whole", [False, True])
def test_the_best_path_is_that_of_the_chain_with_its_ties(rng, n_labels, whole):
    """Whole numbers have many paths of one score."""
    width = -(-n_labels // 8) * 8
    for length in (1, 2, 7, 30):
        unary, pair = rng.normal(size=(length, n_labels)), rng.normal(size=(n_labels, n_labels))
        if whole:
            unary, pair = np.round(unary), np.round(pair)
        scores, steps = np.zeros((length, width)), np.zeros((n_labels + 2, width))
        scores[:, :n_labels], steps[2:, :n_labels] = unary, pair
        labels = np.empty(length, np.int32)
        value, again = find(length, scores, steps, 2, n_labels, np.empty((length, width)), labels)
        expected, top = Chain().argmax(ChainPotentials.of(unary, pair[None], np.array([0, length])))
        np.testing.assert_array_equal(labels, expected)
        np.testing.assert_allclose([value, again], top[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [1e4, 1e300])
def test_the_best_path_of_large_scores_is_found(rng, scale):
    unary, pair = scale * rng.normal(size=(6, 3)), np.zeros((3, 3))
    scores, steps, labels = np.zeros((6, 8)), np.zeros((3, 8)), np.empty(6, np.int32)
    scores[:, :3] = unary
    find(6, scores, steps, 0, 3, np.empty((6, 8)), labels)
    np.testing.assert_array_equal(labels, unary.argmax(axis=1))
    assert not pair.any()


def test_costs_are_added_to_the_labels_that_are_not_true():
    cost, target = np.zeros((3, 8)), np.zeros((2, 8))
    cost[:, :3] = [[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 6.0, 0.0]]
    cost_of(1, 2, cost, target)
    np.testing.assert_array_equal(target, [[0.0] * 8, [5.0, 6.0, 0.0] + [0.0] * 5])
