"""Graphs go with the sequences: their edges, the types of their nodes, and attributes of edges."""

import copy
import pickle

import numpy as np
import pytest

from crfkit import CRFClassifier, HMMClassifier, MEMMClassifier, SemiMarkovCRF
from crfkit.data import Edges, Forest, PackedSequences
from crfkit.persistence import dumps, loads


def packed():
    """A triangle with a node beside it, a node, nothing, and two nodes with two edges."""
    pairs = [[(0, 1), (1, 2), (2, 0)], [], np.zeros((0, 2)), [(1, 0), (1, 0)]]
    types = [["a", "b", "a", "a"], ["b"], [], ["c", "a"]]
    edges = Edges.of_graphs(pairs, [4, 1, 0, 2], types)
    of_edges = PackedSequences.from_flat(np.arange(5.0)[:, None], [3, 0, 0, 2])
    nodes = PackedSequences.from_flat(np.eye(7), [4, 1, 0, 2])
    return nodes.with_topology(edges).with_transitions(of_edges)


MASKED = np.ma.masked_array([[0, 1], [1, 2]], [[False] * 2, [True] * 2])


def test_parts_keep_their_edges_types_and_attributes():
    data = packed()
    some = data[[3, 0, 3]]
    source, target = some.topology.ends
    assert source.tolist() == [1, 1, 2, 3, 4, 7, 7] and target.tolist() == [0, 0, 3, 4, 2, 6, 6]
    assert some.transitions.dense.ravel().tolist() == [3, 4, 0, 1, 2, 3, 4]
    names = some.topology.type_names
    assert names[some.topology.types].tolist() == ["c", "a", "a", "b", "a", "a", "c", "a"]
    assert some.transition_offsets.tolist() == [0, 2, 5, 7]
    assert data == copy.deepcopy(data) == pickle.loads(pickle.dumps(data)) == loads(dumps(data))
    other = data.topology.take(np.arange(4))
    other.types = other.types[::-1]
    assert other != data.topology and data.topology != Forest([-1] * 7, data.offsets)
    with pytest.raises(TypeError, match="lose the attributes of transitions and topology"):
        data[0]
    with pytest.raises(ValueError, match="sequence 0: X has 4 tokens, but transitions has 3"):
        data.with_topology(None)
    with pytest.raises(ValueError, match="sequence 1: X has 0 edges, but transitions has 3"):
        data.with_transitions(data.transitions[[0, 0, 2, 3]])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Edges([0], [2], [0, 2], [0, 1]), "graph 0, edge 0: it leads from 0 to 2;"),
        (lambda: Edges([0, 1], [1, 1], [0, 2, 4], [0, 1, 2]), "graph 1, edge 0: it leads from 1"),
        (lambda: Edges([0], [-1], [0, 2], [0, 1]), "both must be positions of the 2 nodes"),
        (lambda: Edges([0], [1], [0, 2], [0, 0]), "1 sources, 1 targets, and edge_offsets"),
        (lambda: Edges([], [], [0, 2], [0, 0, 0]), "nodes of 1 graphs, edges of 2"),
        (lambda: Edges([0.5], [1], [0, 2], [0, 1]), "whole numbers"),
        (lambda: Edges([], [], [0, 2], [0, 0], [0, 2], "ab"), "sequence 0, position 1: the type"),
        (lambda: Edges([], [], [0, 2], [0, 0], [0]), "1 types for 2 nodes"),
        (lambda: Edges.of_graphs([[(0, 1, 2)]], [3]), "graph 0: its edges are an array of shape"),
        (lambda: Edges.of_graphs([[], []], [1, 1], ["a", None]), "graph 1: no types for 1 nodes"),
        (lambda: Edges.of_graphs([[]], [1], [[[1]]]), "graph 0, node 0: the type"),
        (lambda: Edges.of_graphs([[]], [1, 2]), "edges of 1 graphs, nodes of 2"),
        (lambda: Edges.of_graphs([MASKED], [3]), "graph 0: its array of edges has masked values"),
        (lambda: Edges(*MASKED.T, [0, 3], [0, 2]), "ends of edges.*has masked values"),
    ],
)
def test_what_is_no_graph_is_refused(make, says):
    with pytest.raises((ValueError, TypeError), match=says):
        make()


def test_damaged_edges_in_files_are_refused():
    edges = copy.copy(packed().topology)
    edges.__dict__["source"] = np.array([0, 1, 2, 1, 5])
    with pytest.raises(ValueError, match="graph 3, edge 1: it leads from 5"):
        edges._check_state()


@pytest.mark.parametrize("kind", [CRFClassifier, HMMClassifier, MEMMClassifier, SemiMarkovCRF])
def test_models_of_sequences_say_that_they_read_no_graphs(kind):
    data = packed().with_transitions(None)[[0, 1, 3]]
    with pytest.raises((TypeError, ValueError), match="GraphCRF"):
        kind().fit(data, [["x", "y", "x", "y"], ["x"], ["y", "x"]])
