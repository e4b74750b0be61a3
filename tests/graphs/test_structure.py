"""Graphs as a structure: extremes, methods that approximate, and what is refused."""

import pickle

import numpy as np
import pytest

from crfkit._types import Counts
from crfkit.graphs.enumeration import Enumeration
from crfkit.graphs.junction_tree import JunctionTree
from crfkit.graphs.methods import BudgetError
from crfkit.graphs.minimum_cut import MinimumCut
from crfkit.graphs.potentials import GraphPotentials
from crfkit.graphs.structure import GraphStructure, NoLabelingError
from crfkit.graphs.tree_reweighted import TreeReweighted
from crfkit.structures import Capability, Chain, ChainPotentials, MissingCapabilityError
from tests.contracts.structures import MAKERS

ONE = np.zeros(1, np.uint32)


def graph(unary, edges, pair, lengths=None):
    ends = np.array(edges, np.int64).reshape(-1, 2).T
    offsets = np.array([0, len(unary)] if lengths is None else lengths)
    starts = np.array([0, ends.shape[1]]) if lengths is None else np.zeros(len(offsets), int)
    return GraphPotentials(
        np.array(unary, float), np.array(pair, float), ONE, offsets, 0, *ends, starts
    )


def test_a_long_chain_has_the_answers_of_chains():
    n, rng = 100_000, np.random.default_rng(0)
    unary, pair = rng.normal(size=(n, 2)), rng.normal(size=(1, 2, 2))
    ours = graph(unary, np.column_stack([np.arange(n - 1), np.arange(1, n)]), pair)
    chain, structure = ChainPotentials.of(unary, pair, ours.offsets), GraphStructure()
    outs = [structure.zeros(ours), Chain().zeros(chain)]
    log_z = structure.log_partition(ours, np.ones(1), outs[0])
    np.testing.assert_allclose(log_z, Chain().log_partition(chain, np.ones(1), outs[1]), rtol=1e-12)
    for found, expected in zip(*outs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(structure.argmax(ours)[0], Chain().argmax(chain)[0])


def test_nodes_alone_labels_alone_and_graphs_of_nothing():
    structure = GraphStructure()
    alone = graph([[0.0, 1.0], [2.0, -np.inf]], [], np.zeros((0, 2, 2)), [0, 1, 1, 2])
    out = structure.zeros(alone)
    log_z = structure.log_partition(alone, np.ones(3), out)
    np.testing.assert_allclose(log_z, [np.logaddexp(0, 1), 0.0, 2.0])
    assert structure.argmax(alone)[0].tolist() == [1, 0]
    one = graph([[1.0], [2.0], [3.0]], [(0, 1), (1, 2), (2, 0)], [[[4.0]]])
    assert structure.answers(one).log_partition.tolist() == [18.0]
    none = graph(np.zeros((0, 2)), [], np.zeros((1, 2, 2)), [0])
    assert structure.argmax(none)[0].shape == (0,)


@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_scores_of_any_size_are_those_of_enumeration(scale):
    case = MAKERS["graph"](3, scale)
    potentials = case.potentials(5, [4, 3], 0.3, True)
    slow, fast = GraphStructure(Enumeration(), Enumeration()), GraphStructure()
    outs = [s.zeros(potentials) for s in (slow, fast)]
    sums = [
        s.log_partition(potentials, np.ones(2), o) for s, o in zip((slow, fast), outs, strict=True)
    ]
    np.testing.assert_allclose(sums[1], sums[0], rtol=1e-12)
    for found, expected in zip(outs[1], outs[0], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_marginals_that_underflow_have_logarithms_and_slopes():
    unary = [[0.0, -800.0], [0.0, 0.0], [0.0, 0.0]]
    scores = graph(unary, [(0, 1), (1, 2), (2, 0)], [np.eye(2)])
    structure, tokens, labels = GraphStructure(), np.array([0, 0]), np.array([0, 1])
    posterior = structure.posterior(scores)
    clamped = [np.array([[k == 0, k == 1], [1, 1], [1, 1]], bool) for k in (0, 1)]
    parts = [structure.zeros(scores) for _ in range(3)]
    log_z = [
        structure.log_partition(scores.clamp(mask), np.ones(1), part)[0]
        for mask, part in zip(clamped, parts, strict=False)
    ]
    whole = structure.log_partition(scores, np.ones(1), parts[2])[0]
    found = posterior.log_probability(tokens, labels)
    np.testing.assert_allclose(found, np.array(log_z) - whole, atol=1e-14)
    slopes, out = np.zeros((3, 2)), structure.zeros(scores)
    slopes[0] = [-1.0, 1.0]  # of the logarithm of the probability of label 1
    posterior.pull_back(slopes, out)
    for found, given, every in zip(out, parts[1], parts[2], strict=True):
        np.testing.assert_allclose(found, given - every, atol=1e-12)


def test_a_method_that_approximates_declares_less_and_answers_with_what_it_has():
    scores = graph(np.zeros((3, 2)), [(0, 1), (1, 2), (2, 0)], [np.eye(2)])
    structure = GraphStructure(TreeReweighted(), Enumeration())
    always = {Capability.CONDITIONALS, Capability.SHARES, Capability.BOUNDED_SEARCH}
    assert structure.capabilities == always
    found, out = structure.answers(scores), structure.zeros(scores)
    assert not found.exact[0] and found.converged[0]
    log_z = structure.log_partition(scores, np.ones(1), out)
    assert log_z == found.log_partition > GraphStructure().answers(scores).log_partition
    for ask in (
        lambda: structure.posterior(scores),
        lambda: structure.entropy(scores),
        lambda: structure.sample(scores, np.zeros((1, 3))),
        lambda: structure.k_best(scores, 2),
        lambda: structure.hessian_product(scores, scores, np.ones(1), out),
    ):
        with pytest.raises(MissingCapabilityError, match="with TreeReweighted.*inference='exact'"):
            ask()


def test_a_graph_without_a_labeling_is_named_and_told_why():
    differ = [[-np.inf, 0.0], [0.0, -np.inf]]
    odd = graph(np.zeros((3, 2)), [(0, 1), (1, 2), (2, 0)], [differ])._replace(first=7)
    structure, uniforms = GraphStructure(), np.full((2, 3), 0.5)
    for ask in (
        structure.answers,
        structure.argmax,
        structure.entropy,
        structure.posterior,
        lambda scores: structure.k_best(scores, 3),
        lambda scores: structure.sample(scores, uniforms),
    ):
        with pytest.raises(NoLabelingError, match="graph 7: each .* do not fit together") as error:
            ask(odd)
        assert (error.value.sequence, error.value.position) == (7, -1)
    bare = odd.clamp(np.array([[1, 1], [0, 0], [1, 1]], bool))
    with pytest.raises(NoLabelingError, match="graph 7: .* every label of node 1 is forbidden"):
        structure.argmax(bare)
    with pytest.raises(ValueError, match="as a whole"):
        odd.take_tokens(np.array([0, 2]), np.array([0, 2]))


def test_a_graph_that_a_method_does_not_take_is_named_by_its_number_in_the_data():
    ring = graph(np.zeros((4, 3)), [[0, 1], [1, 2], [2, 0]], np.eye(3)[None])
    late = ring._replace(offsets=np.array([0, 1, 4]), edge_offsets=np.array([0, 0, 3]), first=100)
    with pytest.raises(BudgetError, match=r"^graph 101: the largest table") as found:
        GraphStructure(JunctionTree(budget=9)).answers(late)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)
    with pytest.raises(ValueError, match="^graph 100: variable 0 has 3 states"):
        GraphStructure(search=MinimumCut()).argmax(late)


def test_pairs_that_may_not_follow_hold_in_both_directions_without_one():
    scores = graph(np.zeros((2, 2)), [(0, 1)], np.zeros((1, 2, 2)))
    steps = np.array([[True, False], [True, True]])
    for directed, count in ((True, 3), (False, 2)):
        structure = GraphStructure(directed=directed)
        for given in ((steps,), (np.stack([steps, ~steps]), np.array([0, 0]))):
            other, fewer = structure.restricted(scores, *given)
            found = other.log_partition(
                fewer, np.ones(1), Counts(np.zeros((2, 2)), np.zeros(fewer.pair.shape))
            )
            np.testing.assert_allclose(found, np.log(count))
