"""Kernels of forests against enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crfkit._types import Counts
from crfkit.compiler.jit import frozen
from crfkit.data import Forest
from crfkit.kernels.chain.arrays import ChainExponentials, ChainSums
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.tree.hessian import tree_hessian
from crfkit.kernels.tree.max import TreeLists, tree_lists, tree_max, tree_trace
from crfkit.kernels.tree.sum import TreeScores, TreeWorkspace, sum_forest, tree_sum, tree_sum_log


def random_scores(seed, lengths, size, tables=False, forbidden=0.0, scale=1.0):
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    parent = np.zeros(n, np.int64)
    for begin, length in zip(offsets[:-1], lengths, strict=True):
        rank = rng.permutation(length)
        for place, t in enumerate(rank):
            parent[begin + t] = rank[rng.integers(place)] if place and rng.random() < 0.8 else -1
    unary = rng.normal(scale=scale, size=(n, size))
    pair = rng.normal(scale=scale, size=(n if tables else 1, size, size))
    unary[rng.random(unary.shape) < forbidden] = -np.inf
    pair[rng.random(pair.shape) < forbidden] = -np.inf
    index = rng.integers(len(pair), size=n if tables else 1).astype(np.uint32)
    order = Forest(parent, offsets).order
    return TreeScores(*map(frozen, (unary, pair, index, parent, order, offsets)))


def labelings(scores, s):
    """All labelings of a forest and their scores."""
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    for labels in itertools.product(range(scores.unary.shape[1]), repeat=int(end - begin)):
        value = 0.0
        for c, label in enumerate(labels):
            value += scores.unary[begin + c, label]
            p = scores.parent[begin + c]
            if p >= 0:
                value += scores.pair[table(scores, begin + c), labels[p], label]
        yield labels, value


def table(scores, t):
    return scores.transition_index[t if len(scores.transition_index) > 1 else 0]


def exponentials(scores):
    shift = scores.unary.max(axis=1, initial=-np.inf)
    shift = np.where(np.isneginf(shift), 0.0, shift)
    pair_shift = scores.pair.max(axis=(1, 2))
    pair_shift = np.where(np.isneginf(pair_shift), 0.0, pair_shift)
    factor = np.exp(scores.pair - pair_shift[:, None, None])
    transposed = np.ascontiguousarray(factor.transpose(0, 2, 1))
    raised = np.exp(scores.unary - shift[:, None]), shift, factor, transposed, pair_shift
    return ChainExponentials(*map(frozen, raised))


def workspace(scores):
    n, size = scores.unary.shape
    return TreeWorkspace(*np.zeros((3, n, size)), np.zeros((1, size)))


def outputs(scores):
    pair, count = scores.pair, len(scores.offsets) - 1
    return ChainSums(
        np.zeros_like(scores.unary), np.zeros_like(pair), np.zeros(count),
        np.zeros(count, np.int64),
    )  # fmt: skip


def empty_lists(length, size, count, traced=True):
    made = np.zeros((2, length if traced else 0, size, count), np.int64)
    return TreeLists(
        np.zeros((length + 1, size, count)), np.zeros((1, size, count)), np.zeros(count),
        np.zeros(length + 1, np.int64), *made, np.zeros(length + 1, np.int64),
    )  # fmt: skip


def expected(scores, s):
    """The logarithm of the partition function, marginals and expected transitions."""
    found = [(labels, value) for labels, value in labelings(scores, s) if value > -np.inf]
    if not found:
        return None
    values = np.array([value for _, value in found])
    log_z = np.logaddexp.reduce(values)
    unary, pair = np.zeros_like(scores.unary), np.zeros_like(scores.pair)
    for (labels, _), share in zip(found, np.exp(values - log_z), strict=True):
        add(scores, s, labels, share, unary, pair)
    return log_z, unary, pair


def add(scores, s, labels, share, unary, pair):
    begin = scores.offsets[s]
    for c, label in enumerate(labels):
        unary[begin + c, label] += share
        p = scores.parent[begin + c]
        if p >= 0:
            pair[table(scores, begin + c), labels[p], label] += share


cases = st.builds(
    random_scores, st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 5), min_size=1, max_size=3), st.integers(1, 3),
    tables=st.booleans(), forbidden=st.sampled_from([0.0, 0.3]),
    scale=st.sampled_from([1.0, 30.0, 1e4]),
)  # fmt: skip


@given(cases, st.booleans())
def test_sums_are_those_of_all_labelings(scores, in_logs):
    raised, work, out = exponentials(scores), workspace(scores), outputs(scores)
    weight = frozen(np.linspace(0.5, 2.0, len(scores.offsets) - 1))
    for s in range(len(weight)):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        out.flow[...] = 0.0
        status = sum_forest(scores, raised, s, weight[s], work, out)
        transitions = out.flow * raised.factor
        if status == UNDERFLOW or in_logs:
            out.flow[...] = 0.0
            status = tree_sum_log(scores, s, weight[s], work, out)
            transitions = out.flow
        known = expected(scores, s)
        if known is None:
            assert status >= begin
            return
        assert status == OK
        np.testing.assert_allclose(out.log_z[s], known[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(transitions, weight[s] * known[2], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(
            out.marginals[begin:end], weight[s] * known[1][begin:end], rtol=1e-9, atol=1e-12
        )
    tree_sum(scores, raised, weight, work, out)
    assert set(out.status.tolist()) <= {OK, UNDERFLOW}


@given(cases)
def test_the_best_labeling_has_the_largest_score(scores):
    count = len(scores.offsets) - 1
    best, labels = np.zeros_like(scores.unary), np.zeros(len(scores.unary), np.int32)
    value, status = np.zeros(count), np.zeros(count, np.int64)
    tree_max(scores, best, labels, value, status)
    for s in range(count):
        known = dict(labelings(scores, s))
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        if max(known.values()) == -np.inf:
            assert begin <= status[s] < end
            continue
        np.testing.assert_allclose(value[s], max(known.values()), rtol=1e-12)
        np.testing.assert_allclose(known[tuple(labels[begin:end])], value[s], rtol=1e-12)


@given(cases, st.integers(1, 7))
def test_the_n_best_labelings_are_those_of_the_largest_scores(scores, n):
    size = scores.unary.shape[1]
    for s in range(len(scores.offsets) - 1):
        begin, end = int(scores.offsets[s]), int(scores.offsets[s + 1])
        lists = empty_lists(end - begin, size, n)
        tree_lists(scores, s, frozen(np.zeros(0, np.int32)), False, lists)
        value, labels = lists.best[-1, 0], np.zeros((n, end - begin), np.int32)
        for rank in np.flatnonzero(value > -np.inf):
            tree_trace(scores, s, rank, lists, labels[rank], 0)
        known = dict(labelings(scores, s))
        top = sorted((v for v in known.values() if v > -np.inf), reverse=True)[:n]
        np.testing.assert_allclose(value[: len(top)], top, rtol=1e-12)
        assert np.isneginf(value[len(top) :]).all()
        found = [tuple(row) for row in labels[: len(top)].tolist()]
        assert len(set(found)) == len(found)
        np.testing.assert_allclose([known[row] for row in found], top, rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 300.0])  # the second is summed in logarithms
@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize("forbidden", [0.0, 0.2])
def test_derivatives_are_those_of_the_expected_counts(scale, tables, forbidden):
    for seed in range(8):
        scores = random_scores(seed, [5], 3, tables, forbidden)
        if expected(scores, 0) is None:
            continue
        if scale > 1.0:  # a label that is all but impossible
            falls = np.zeros_like(scores.unary)
            falls[0, 0] = 1000.0
            scores = scores._replace(unary=frozen(scores.unary - falls))
        rng = np.random.default_rng(seed + 100)
        directions = (rng.normal(size=values.shape) for values in (scores.unary, scores.pair))
        raised, work, sums = exponentials(scores), workspace(scores), outputs(scores)
        unary, pair = directions
        tangent = scores._replace(unary=frozen(unary), pair=frozen(pair))
        out = Counts(np.zeros_like(scores.unary), np.zeros_like(scores.pair))
        tree_hessian(scores, raised, tangent, frozen(np.full(1, 2.0)), work, sums, out)
        assert sums.status[0] == OK
        ends = []
        for step in (-1e-5, 1e-5):
            moved = scores._replace(
                unary=scores.unary + step * tangent.unary, pair=scores.pair + step * tangent.pair
            )
            ends.append(expected(moved, 0))
        for found, place in ((out.unary, 1), (out.pair, 2)):
            numeric = 2.0 * (ends[1][place] - ends[0][place]) / 2e-5
            np.testing.assert_allclose(found, numeric, atol=1e-8)


@given(cases, st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_best_labelings_by_errors(scores, last, seed):
    size = scores.unary.shape[1]
    truth = np.random.default_rng(seed).integers(size, size=len(scores.unary)).astype(np.int32)
    for s in range(len(scores.offsets) - 1):
        begin, end = int(scores.offsets[s]), int(scores.offsets[s + 1])
        lists, path = empty_lists(end - begin, size, last + 1), np.zeros(len(truth), np.int32)
        tree_lists(scores, s, frozen(truth), True, lists)
        value = lists.best[-1, 0]
        untraced = empty_lists(end - begin, size, last + 1, traced=False)
        tree_lists(scores, s, frozen(truth), True, untraced)
        np.testing.assert_array_equal(untraced.best[-1, 0], value)
        best = np.full(last + 1, -np.inf)
        for labels, score in labelings(scores, s):
            wrong = min(int(np.sum(truth[begin:end] != labels)), last)
            best[wrong] = max(best[wrong], score)
        np.testing.assert_allclose(value, best, rtol=1e-12)
        for wrong in np.flatnonzero(value > -np.inf):
            tree_trace(scores, s, int(wrong), lists, path, begin)
            found = tuple(path[begin:end].tolist())
            assert min(int(np.sum(truth[begin:end] != found)), last) == wrong
            np.testing.assert_allclose(dict(labelings(scores, s))[found], value[wrong], rtol=1e-12)
