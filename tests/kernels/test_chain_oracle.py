"""The oracle of chains, against matrices; also run without the compiler."""

import itertools
import os

import numpy as np
import pytest
import scipy.sparse as sp

from crfkit._parallel import Chunk, ThreadMap
from crfkit.compiler.jit import kernel
from crfkit.data import PackedSequences
from crfkit.kernels.chain.max import viterbi_path
from crfkit.kernels.chain.oracle import add_cost, apply_counts, scatter_counts
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.oracle import Labeling, gather, list_difference, path_score
from crfkit.oracles.label_order import LabelOrder
from crfkit.oracles.linear_chain import ChainOracle
from crfkit.potentials.attributes import AttributeWeights
from crfkit.potentials.linear import chain_model
from crfkit.structures import Chain, ChainPotentials

LENGTHS = (3, 0, 1, 5, 2, 4, 0, 7, 1, 1)
FORMS = ["sparse", "values", "dense", "both"]
KINDS = ["plain", "boundaries", "input-dependent", "both"]
# Without the compiler, tables of 26 labels for each token take minutes; 9 have a vector and a tail.
SLOW = ["input-dependent", "both"] if os.environ.get("NUMBA_DISABLE_JIT") == "1" else []
SIZES = [1, 3, 9, 26]
SHAPES = [  # every two of the three meet
    (kind, size, FORMS[(KINDS.index(kind) + SIZES.index(size)) % len(FORMS)])
    for kind in KINDS for size in SIZES if size < 26 or kind not in SLOW
]  # fmt: skip


GATHER, SCORE, DIFFER, SCATTER, APPLY = range(5)


@kernel
def asked(question, problem, s, labels, examples, workspace):
    """Ask one of the questions to a problem: a kernel of all takes as long to compile as of one."""
    first = Labeling(labels, 0, problem.offsets[s])
    if question == GATHER:
        gather(problem, s, workspace)
    elif question == SCORE:
        return path_score(problem, s, first, examples, workspace)
    elif question == DIFFER:
        second = Labeling(labels, 1, problem.offsets[s])
        return float(list_difference(problem, s, first, second, workspace))
    elif question == SCATTER:
        return scatter_counts(problem, s, workspace)
    else:
        apply_counts(problem, s, 0.5, workspace)
    return 0.0


def asker(oracle, workspace, labels):
    """What asks a question about a sequence, given one or two labels of each token."""
    examples = oracle.examples(np.ones(len(oracle.problem.offsets) - 1), labels[0])
    return lambda question, s: asked(question, oracle.problem, s, labels, examples, workspace)


@kernel
def find(scores, pair, slots, best, path):
    """Find the best path."""
    return viterbi_path(scores, pair, slots, 0, scores.shape[0], best, path)


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


def make_kind(rng, n_labels, form, kind):
    """The same with weights of first and last labels, and of attributes of transitions."""
    data, _, model, _ = make_case(rng, n_labels, form)
    own = None
    if kind in ("input-dependent", "both"):
        n_sparse, n_dense = 6, 0 if form == "sparse" else 2
        share = rng.choice([0.05, 0.6], size=(n_sparse + n_dense, 1))
        mask = rng.random((n_sparse + n_dense, n_labels**2)) < share
        ptr = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
        own = AttributeWeights(ptr, mask.nonzero()[1], n_columns=n_labels**2, n_sparse=n_sparse)
        pool = rng.random((4, n_sparse + n_dense)).round(1) * (rng.random((4, len(mask))) < 0.6)
        pool = (pool > 0.0).astype(float) if form == "sparse" else pool
        z = pool[rng.integers(4, size=data.n_tokens)]
        rows = PackedSequences(
            sp.csr_array(z[:, :n_sparse]), dense=z[:, n_sparse:] if n_dense else None,
            offsets=data.offsets,
        )  # fmt: skip
        data = data.with_transitions(rows)
    model = chain_model(
        model.state, model.transition_from, model.transition_to,
        boundaries=kind in ("boundaries", "both"), transition_attributes=own,
    )  # fmt: skip
    return data, model


def make_oracle(model, data, order=None):
    with ThreadMap(2) as threads:
        order = LabelOrder.by_code(model.n_labels) if order is None else order
        return ChainOracle(model, data, order, threads)


@pytest.mark.parametrize("n_labels", [1, 3, 9, 26, 33])
@pytest.mark.parametrize("form", FORMS)
def test_scores_are_those_of_the_matrix(rng, n_labels, form):
    data, x, model, mask = make_case(rng, n_labels, form)
    oracle, w, table = make_oracle(model, data), rng.normal(size=model.n_parameters), mask * 0.0
    table[mask] = w[: model.state.n_parameters]
    expected, workspace = x @ table, oracle.workspace(oracle.weights.pack(w))
    ask = asker(oracle, workspace, np.zeros((1, data.n_tokens), np.int32))
    for s, (begin, end) in enumerate(itertools.pairwise(data.offsets.tolist())):
        workspace.scores[:] = np.nan
        ask(GATHER, s)
        found = workspace.scores[: end - begin]
        np.testing.assert_allclose(found[:, :n_labels], expected[begin:end], atol=1e-13)
        assert (found[:, n_labels:] == 0.0).all()


@pytest.mark.parametrize(("kind", "n_labels", "form"), SHAPES)
def test_scores_of_labels_and_their_features_are_those_of_the_model(rng, n_labels, form, kind):
    """With labels numbered in another order, too."""
    data, model = make_kind(rng, n_labels, form, kind)
    place = rng.permutation(n_labels)
    oracle = make_oracle(model, data, LabelOrder(place, np.argsort(place)))
    w = rng.normal(size=model.n_parameters)
    flat = oracle.weights.pack(w)
    np.testing.assert_array_equal(oracle.weights.unpack(flat), w)
    workspace = oracle.workspace(flat)
    codes = rng.integers(n_labels, size=(2, data.n_tokens)).astype(np.int32)
    whole = Chunk(0, data.offsets)
    expected = [Chain().score(model.scores(model.bind(w), data, whole), y) for y in codes]
    ranked = oracle.order.rank[codes].astype(np.int32)
    ask, ask_of_second = (asker(oracle, workspace, rows) for rows in (ranked, ranked[1:].copy()))
    for s in np.flatnonzero(np.diff(data.offsets)):
        ask(GATHER, s)
        found = [ask(SCORE, s), ask_of_second(SCORE, s)]
        np.testing.assert_allclose(found, [expected[0][s], expected[1][s]], atol=1e-12)
        size = int(ask(DIFFER, s))
        numbers = oracle.parameter_numbers(workspace.positions[:size])
        change = np.bincount(numbers, workspace.changes[:size], model.n_parameters)
        np.testing.assert_allclose(change @ w, expected[0][s] - expected[1][s], atol=1e-11)


@pytest.mark.parametrize(("kind", "n_labels", "form"), SHAPES)
def test_counts_go_back_to_the_weights_and_leave_no_trace(rng, n_labels, form, kind):
    data, model = make_kind(rng, n_labels, form, kind)
    oracle, w = make_oracle(model, data), rng.normal(size=model.n_parameters)
    flat = oracle.weights.pack(w)
    problem, workspace = oracle.problem, oracle.workspace(flat)
    ask = asker(oracle, workspace, np.zeros((1, data.n_tokens), np.int32))
    slots = getattr(problem, "slots", np.zeros(data.n_tokens, np.int64))
    residual = rng.normal(size=(data.n_tokens, n_labels))
    active = rng.random(data.n_tokens) < 0.7
    residual *= active[:, None]
    flows = rng.normal(size=(data.n_tokens, n_labels, n_labels))  # a table for each slot
    probes = rng.normal(size=(8, model.n_parameters))
    expected = np.array([inner_products(model, data, slots, residual, flows, p) for p in probes])
    for s in np.flatnonzero(np.diff(data.offsets)):
        begin, end = data.offsets[s : s + 2]
        ask(GATHER, s)
        workspace.residual[:], workspace.flows[:] = 0.0, 0.0
        workspace.active[: end - begin] = active[begin:end]
        workspace.residual[: end - begin, :n_labels] = residual[begin:end]
        tables = workspace.flows.reshape(-1, n_labels, workspace.flows.shape[1])
        for slot in np.unique(slots[begin + 1 : end]):
            tables[slot, :, :n_labels] = flows[begin + slot]
        square = ask(SCATTER, s)
        scattered = oracle.weights.unpack(workspace.weights.scratch)
        np.testing.assert_allclose(probes @ scattered, expected[:, s], atol=1e-11)
        np.testing.assert_allclose(square, scattered @ scattered, rtol=1e-12, atol=1e-12)
        w += 0.5 * scattered
        ask(APPLY, s)
        np.testing.assert_allclose(oracle.weights.unpack(flat), w, atol=1e-12)
        assert not workspace.weights.scratch.any()
        assert np.count_nonzero(flat) <= model.n_parameters


def inner_products(model, data, slots, residual, flows, w):
    """The sums, over each sequence, of scores by some weights times counts."""
    scores = model.scores(model.bind(w), data, Chunk(0, data.offsets))
    products = (scores.unary * residual).sum(axis=1)
    tables = scores.pair[np.broadcast_to(scores.transition_index, data.n_tokens)]
    for begin, end in itertools.pairwise(data.offsets.tolist()):
        found, first = np.unique(slots[begin + 1 : end], return_index=True)
        for slot, t in zip(found, begin + first, strict=True):
            products[begin] += (tables[t + 1] * flows[begin + slot]).sum()
    return [products[begin:end].sum() for begin, end in itertools.pairwise(data.offsets.tolist())]


def find_path(unary, pair, width):
    """Return the labels of the best path, and its score."""
    length, n_labels = unary.shape
    scores, steps = np.zeros((length, width)), np.zeros((n_labels, width))
    scores[:, :n_labels], steps[:, :n_labels] = unary, pair
    room = np.zeros((length, width))
    labels = np.zeros(length, np.int32)
    assert find(scores, steps[None], np.zeros(1, np.uint32), room, labels) == OK
    return labels, room[-1, labels[-1]]


@pytest.mark.parametrize("n_labels", [1, 2, 3, 8, 9, 26, 33])
@pytest.mark.parametrize("whole", [False, True])
def test_the_best_path_is_that_of_the_chain_with_its_ties(rng, n_labels, whole):
    """Whole numbers have many paths of one score."""
    for length in (1, 2, 7, 30):
        unary, pair = rng.normal(size=(length, n_labels)), rng.normal(size=(n_labels, n_labels))
        if whole:
            unary, pair = np.round(unary), np.round(pair)
        labels, value = find_path(unary, pair, -(-n_labels // 8) * 8)
        expected, top = Chain().argmax(ChainPotentials.of(unary, pair[None], np.array([0, length])))
        np.testing.assert_array_equal(labels, expected)
        np.testing.assert_allclose(value, top[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [1e4, 1e300])
def test_the_best_path_of_large_scores_is_found(rng, scale):
    unary = scale * rng.normal(size=(6, 3))
    labels, _ = find_path(unary, np.zeros((3, 3)), 8)
    np.testing.assert_array_equal(labels, unary.argmax(axis=1))


def test_costs_are_added_to_the_labels_that_are_not_true():
    cost, target = np.zeros((3, 8)), np.zeros((2, 8))
    cost[:, :3] = [[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 6.0, 0.0]]
    cost_of(1, 2, cost, target)
    np.testing.assert_array_equal(target, [[0.0] * 8, [5.0, 6.0, 0.0] + [0.0] * 5])
