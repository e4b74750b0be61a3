"""Graphs in many forms, and skip edges, become the same packed features."""

import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from crfkit.data import FeatureGraph, Forest, graph_from_networkx, graph_from_node_types
from crfkit.data.graph_forms import as_graph
from crfkit.data.packed_graphs import as_graphs, of_nodes
from crfkit.features import GraphVectorizer, SequenceVectorizer, SkipChainFeatures
from crfkit.persistence import dumps, loads

NODES = np.arange(8.0).reshape(4, 2)
EDGES = np.array([[0, 1], [0, 2], [2, 3]])


def in_networkx():
    graph = nx.Graph()
    graph.add_nodes_from(
        (name, {"x": row, "label": 1}) for name, row in zip("abcd", NODES, strict=True)
    )
    graph.add_edges_from((("abcd"[i], "abcd"[j]) for i, j in EDGES), w=np.ones(1))
    return graph


FORMS = {
    "graph": FeatureGraph(NODES, EDGES),
    "tuple": (NODES, EDGES.tolist()),
    "adjacency": (NODES, sp.coo_array((np.ones(3, bool), EDGES.T), shape=(4, 4))),
    "symmetric": (NODES, sp.csr_array((np.ones(6), np.hstack([EDGES.T, EDGES.T[::-1]])))),
    "parents": (NODES, [-1, 0, 0, 2]),
    "sparse nodes": (sp.csr_array(NODES), EDGES),
    "networkx": graph_from_networkx(in_networkx(), features="x", leave_out=["w"]),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_the_same_graph(form):
    expected = GraphVectorizer().fit_transform([(NODES, EDGES), NODES[:1]])
    vectorizer = GraphVectorizer()
    found = vectorizer.fit_transform([FORMS[form], NODES[:1]])
    assert found == expected and vectorizer.transform([FORMS[form], NODES[:1]]) == expected


def test_sequences_are_chains():
    packed = GraphVectorizer().fit_transform([NODES, [{"w": "a"}][:0], NODES[:1]])
    assert packed.topology.source.tolist() == [0, 1, 2]
    assert packed.topology.target.tolist() == [1, 2, 3]


def test_dicts_of_nodes_and_edges_have_names_that_files_keep():
    graph = ([{"w": "a"}, {"w": "b"}], [[1, 0]], [{"far": True, "size": 2.0}])
    vectorizer = GraphVectorizer().fit([graph])
    for again in (vectorizer, pickle.loads(pickle.dumps(vectorizer)), loads(dumps(vectorizer))):
        found = again.transform([([{"w": "b"}, {"w": "c"}], [(0, 1)], [{"size": 3.0}]), [{}]])
        assert found.to_dicts() == [[{"w:b": 1.0}, {}], [{}]]
        assert found.transitions.to_dicts() == [[{"size": 3.0}], []]


@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_damaged_adjacency_matrix_is_refused(kind):
    matrix = sp.eye_array(4).asformat(kind)
    matrix.indices[-1] = 10**7
    with pytest.raises(ValueError, match="the adjacency matrix is a damaged sparse matrix"):
        as_graph((NODES, matrix))


def test_node_types_have_columns_of_their_own():
    edges = [[[0, 1]], [[1, 0]], [], [[0, 1]]]
    rows = [np.ones((1, 1)), 2 * np.ones((1, 2)), np.zeros((0, 1)), np.ones((1, 1))]
    graph = graph_from_node_types([NODES[:2], np.ones((2, 1))], edges, rows)
    assert graph.nodes.toarray().tolist() == [[0, 1, 0], [2, 3, 0], [0, 0, 1], [0, 0, 1]]
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert graph.edge_features.toarray().tolist() == [
        [1, 0, 0, 0, 0],
        [0, 2, 2, 0, 0],
        [0, 0, 0, 0, 1],
    ]
    assert GraphVectorizer().fit_transform([graph]).topology.types.tolist() == [0, 0, 1, 1]


def test_equal_words_are_joined():
    X = [["Ada", "or", "Ada", "Bob", "Ada", "or"], ["x"], [], ["Bob", "Bob"]]
    skip = SequenceVectorizer()
    tokens = [[{"w": word, "end": word[-1]} for word in words] for words in X]
    features = SkipChainFeatures(SequenceVectorizer(), word="w", skip=skip)
    packed = features.fit_transform(tokens)
    pairs = np.column_stack([packed.topology.source, packed.topology.target]).tolist()
    assert pairs == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [0, 2], [0, 4], [2, 4], [0, 1]]
    assert packed.topology.edge_offsets.tolist() == [0, 8, 8, 8, 9]
    rows = packed.transitions.to_dicts()
    assert rows[0][0] == {"chain": 1.0} == rows[3][0]
    assert rows[0][5] == {"skip": 1.0, "skip__w:Ada": 1.0, "skip__end:a": 1.0}
    assert features.transform(tokens) == packed == loads(dumps(features)).transform(tokens)
    nearest = SkipChainFeatures(SequenceVectorizer(), word="w", pairs="next", equal="any")
    found = nearest.fit_transform(tokens).topology
    assert found.source[5:8].tolist() == [0, 1, 2] and found.target[5:8].tolist() == [2, 5, 4]


def test_chains_and_trees_are_graphs_with_an_edge_a_transition():
    steps = SequenceVectorizer().fit_transform([[["a"], ["b"], ["c"]], [], [["d"]], [["e"], ["f"]]])
    plain = steps.with_transitions(steps)
    tree = plain.with_topology(Forest.from_lists([[2, 0, None], [], [None], [1, None]]))
    for data, pairs, names in (
        (plain, [[0, 1], [1, 2], [0, 1]], "bcf"),
        (tree, [[2, 0], [0, 1], [1, 0]], "abe"),
    ):
        found = as_graphs(data)
        assert np.column_stack([found.topology.source, found.topology.target]).tolist() == pairs
        assert found.topology.edge_offsets.tolist() == [0, 2, 2, 2, 3]
        rows = [list(row) for own in found.transitions.to_dicts() for row in own]
        assert rows == [[name] for name in names] and as_graphs(found) is found


def test_some_nodes_keep_the_edges_between_them():
    rows = [{"e": float(i)} for i in (1, 2, 3)]
    graphs = [([{"n": 1.0}, {"n": 2.0}, {"n": 3.0}, {"n": 4.0}], EDGES, rows), ([{"n": 5.0}], [])]
    data = GraphVectorizer().fit_transform(graphs)
    fewer = of_nodes(data, np.array([True, False, True, True, False]))
    assert fewer.to_dicts() == [[{"n": 1.0}, {"n": 3.0}, {"n": 4.0}], []]
    assert fewer.transitions.to_dicts() == [[{"e": 2.0}, {"e": 3.0}], []]
    assert fewer.topology.source.tolist() == [0, 1] and fewer.topology.target.tolist() == [1, 2]
    assert of_nodes(data, np.ones(5, bool)) == data


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ((NODES, [[0, 4]]), "graph 1, edge 0: it leads from 0 to 4"),
        ((NODES, [[0, 1]], NODES, 1), "graph 1: a tuple of 4 parts"),
        ((NODES, sp.csr_array(NODES)), "graph 1: the adjacency matrix has the shape"),
        ((NODES, sp.csr_array([[0, 2.5], [0, 0]])), r"graph 1: .*2.5.* between the nodes 0 and 1"),
        ((NODES, [[0.5, 1.0]]), r"graph 1: its edges are an array of shape \(1, 2\) of float64"),
        ((NODES, [("a", "b")]), r"graph 1: its edges are an array of shape \(1, 2\) of <U1"),
        ((NODES, None), "graph 1: its edges are a NoneType"),
        ((NODES, [-1, 0.0, 1, 2]), "graph 1: node 1: the parent 0.0 is no position"),
        (7, "sequence 1 of X is a single int"),
        (FeatureGraph(NODES, EDGES, NODES[:3]), "graph 0 has no features of edges"),
        (FeatureGraph(NODES, EDGES, None, [0, 1]), "graph 0: no types for 4 nodes"),
    ],
)
def test_errors_name_the_graph(graph, message):
    with pytest.raises((TypeError, ValueError), match=message):
        GraphVectorizer().fit([(NODES, EDGES), graph])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (NODES[:2], "graph 0: 3 edges, features of 2"),
        (np.full((3, 1), np.nan), "features of edges, one row each: sequence 0, position 0"),
        (np.ones(3), "features of edges, one row each: sequence 0 of X must have 2 dimensions"),
    ],
)
def test_errors_tell_features_of_edges_from_those_of_nodes(rows, message):
    with pytest.raises(ValueError, match=message):
        GraphVectorizer().fit([(NODES, EDGES, rows)])
    with pytest.raises(ValueError, match="graph 1 has no features of edges.*had 2"):
        GraphVectorizer().fit([(NODES, EDGES, NODES[:3])]).transform([(NODES, []), (NODES, EDGES)])


def test_what_is_no_list_of_graphs_is_refused():
    with pytest.raises(TypeError, match="X is one graph"):
        GraphVectorizer().fit((NODES, EDGES))
    with pytest.raises(ValueError, match="node 'a' has no attribute 'y'"):
        graph_from_networkx(in_networkx(), features="y")
    with pytest.raises(ValueError, match=r"edge 0 from type 0 to type 1 is \[0, 5\]"):
        graph_from_node_types([NODES, NODES], [[], [[0, 5]], [], []])
    with pytest.raises(ValueError, match="sequence 0, position 0: the token has no 'form'"):
        SkipChainFeatures(SequenceVectorizer(), word="form").fit([[{"w": "A"}]])
    assert as_graph(in_networkx()).nodes[0]["label"] == 1
