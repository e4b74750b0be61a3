"""Potentials of graphs of labeled nodes, and the factor graphs that they stand for."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray, Potentials, taken_rows
from crfkit.compiler.jit import frozen
from crfkit.data.edges import ends_of
from crfkit.graphs.tables import starts
from crfkit.kernels.chain.arrays import TransitionRows
from crfkit.kernels.graph.arrays import FactorTables
from crfkit.kernels.graph.tables import GraphEnds, LiveLabels, fill_edges
from crfkit.structures import ChainPotentials


class _GraphArrays(NamedTuple):
    unary: FloatArray
    pair: FloatArray
    transition_index: IdArray
    offsets: IntArray
    first: int
    source: IntArray
    target: IntArray
    edge_offsets: IntArray


class GraphPotentials(_GraphArrays, Potentials):
    """Potentials of graphs (:class:`crfkit.graphs.structure.GraphStructure`).

    As :class:`crfkit.structures.ChainPotentials`, but that a table of `pair` is that of an edge,
    given by `transition_index`, shape (E,) or (1,): axis 1 is the label of its source, axis 2 that
    of its target. `source`, `target` and `edge_offsets` are those of :class:`crfkit.data.Edges`.
    """

    __slots__ = ()

    n_labels = ChainPotentials.n_labels
    n_codes = ChainPotentials.n_codes
    is_dense = ChainPotentials.is_dense
    in_order = ChainPotentials.in_order

    def take_tokens(self, tokens: IntArray, offsets: IntArray) -> Self:
        """Return the potentials of whole graphs, given all their nodes, shape (n,).

        `offsets` tells where these start. ValueError if a graph lacks a node.
        """
        filled = offsets[:-1] < offsets[1:]
        graphs = np.searchsorted(self.offsets, tokens[offsets[:-1][filled]], side="right") - 1
        _, expected = taken_rows(self.offsets, graphs)
        if not np.array_equal(expected, tokens):
            raise ValueError("a graph is taken as a whole: give all its nodes, in their order.")
        counts = np.zeros(len(offsets) - 1, np.int64)
        counts[filled] = np.diff(self.edge_offsets)[graphs]
        _, rows = taken_rows(self.edge_offsets, graphs)
        index = self.transition_index
        return self._replace(
            unary=self.unary[tokens], transition_index=index[rows] if len(index) > 1 else index,
            offsets=offsets, first=0, source=self.source[rows], target=self.target[rows],
            edge_offsets=starts(counts),
        )  # fmt: skip

    @property
    def rows(self) -> TransitionRows:
        """The ends of edges, by their places in all graphs, and their tables."""
        source, target = ends_of(self.source, self.target, self.offsets, self.edge_offsets)
        return TransitionRows(
            frozen(source), frozen(target), frozen(self.transition_index),
            frozen(self.edge_offsets),
        )  # fmt: skip

    @property
    def ends(self) -> GraphEnds:
        """The ends of edges, by their places in their graphs, and their tables."""
        return GraphEnds(
            frozen(self.source), frozen(self.target), frozen(self.transition_index),
            frozen(self.offsets), frozen(self.edge_offsets),
        )  # fmt: skip


class GraphTables(NamedTuple):
    """Factor graphs of the live labels of nodes: a factor for each node, then one for each edge."""

    graph: FactorTables
    rows: TransitionRows
    live: LiveLabels
    node: IntArray  # (L,) the node of each live label
    places: IntArray  # (L,) where its score stands among those of all factors

    def labels(self, values: IntArray) -> CodeArray:
        """Return the labels that states of nodes are, (..., N)."""
        found: CodeArray = self.live.label[self.live.ptr[:-1] + values].astype(np.int32)
        return found

    def filled(self, unary: FloatArray, pair: FloatArray) -> FloatArray:
        """Return scores, or their derivatives, (N, K) and (M, K, K), as those of all factors."""
        scores = np.empty(self.graph.score_ptr[-1])
        scores[self.places] = unary[self.node, self.live.label]
        fill_edges(self.rows, self.live, frozen(pair), scores)
        return frozen(scores)


def graph_tables(potentials: GraphPotentials, all_labels: bool = False) -> GraphTables:
    """Return the factor graphs of potentials, all of whose nodes have a live label.

    With `all_labels`, labels that are not live are states of score ``-inf``.
    """
    rows, offsets, edge_offsets = potentials.rows, potentials.offsets, potentials.edge_offsets
    node, label = np.nonzero(all_labels | (potentials.unary > -np.inf))
    sizes = np.bincount(node, minlength=len(potentials.unary))
    ptr = starts(sizes)
    nodes, edges = np.arange(len(sizes)), np.arange(len(rows.source))
    nodes += np.repeat(edge_offsets[:-1], np.diff(offsets))  # the numbers of their factors
    edges += np.repeat(offsets[1:], np.diff(edge_offsets))
    arity = np.ones(len(nodes) + len(edges), np.int64)
    cells = np.empty_like(arity)
    arity[edges], cells[nodes] = 2, sizes
    cells[edges] = sizes[rows.source] * sizes[rows.target]
    scope_ptr, score_ptr = starts(arity), starts(cells)
    scope = np.empty(scope_ptr[-1], np.int64)
    scope[scope_ptr[nodes]] = np.arange(len(nodes))
    scope[scope_ptr[edges]], scope[scope_ptr[edges] + 1] = rows.source, rows.target
    live = LiveLabels(*map(frozen, (ptr, label, score_ptr[edges])))
    places = score_ptr[nodes][node] + np.arange(len(node)) - ptr[:-1][node]
    none = np.empty(0)
    graph = FactorTables(
        *map(frozen, (sizes, ptr, scope, scope_ptr, none, score_ptr, offsets,
                      offsets + edge_offsets)),
    )  # fmt: skip
    tables = GraphTables(graph, rows, live, node, places)
    scores = tables.filled(potentials.unary, potentials.pair)
    return tables._replace(graph=graph._replace(scores=scores))
