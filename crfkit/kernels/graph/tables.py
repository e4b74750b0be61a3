"""From scores of nodes and edges to the tables of factors, and back from beliefs.

A node keeps its live labels alone, those whose score is above ``-inf``. Shapes: ``N`` nodes, ``E``
edges, ``S`` graphs, ``K`` labels, ``M`` tables of pair scores, ``L`` live labels of all nodes.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.arrays import TransitionRows


class LiveLabels(NamedTuple):
    """The live labels of nodes, and where the tables of edges stand among those of all factors."""

    ptr: IntArray  # (N + 1,) where those of each node start, and the end
    label: IntArray  # (L,) rising for each node
    table: IntArray  # (E,) where the table of each edge starts


@kernel
def fill_edges(
    rows: TransitionRows,
    live: LiveLabels,
    pair: FloatArray,  # (M, K, K)
    scores: FloatArray,  # out: tables of all factors
) -> None:
    """Write the scores of pairs of live labels as the tables of edges, the target fastest."""
    stride = 0 if rows.table.shape[0] == 1 else 1
    for e in range(rows.source.shape[0]):
        place, s, t, m = live.table[e], rows.source[e], rows.target[e], rows.table[e * stride]
        for a in range(live.ptr[s], live.ptr[s + 1]):
            i = live.label[a]
            for b in range(live.ptr[t], live.ptr[t + 1]):
                scores[place] = pair[m, i, live.label[b]]
                place += 1


@kernel
def add_beliefs(
    rows: TransitionRows,
    live: LiveLabels,
    beliefs: FloatArray,  # of the entries of all tables
    weight: FloatArray,  # (S,)
    pair: FloatArray,  # (M, K, K) out, added to
) -> None:
    """Add the beliefs of edges, times the weights of graphs, to the tables of pair scores."""
    stride = 0 if rows.table.shape[0] == 1 else 1
    for g in range(weight.shape[0]):
        for e in range(rows.offsets[g], rows.offsets[g + 1]):
            place, s, t, m = live.table[e], rows.source[e], rows.target[e], rows.table[e * stride]
            for a in range(live.ptr[s], live.ptr[s + 1]):
                i = live.label[a]
                for b in range(live.ptr[t], live.ptr[t + 1]):
                    pair[m, i, live.label[b]] += weight[g] * beliefs[place]
                    place += 1


class GraphEnds(NamedTuple):
    """The ends of edges, by their places in their graphs, and their tables of pair scores."""

    source: IntArray  # (E,)
    target: IntArray  # (E,)
    table: IdArray  # (E,) or (1,)
    offsets: IntArray  # (S + 1,) where the nodes of each graph start, and the end
    edge_offsets: IntArray  # (S + 1,) where its edges start


@kernel
def score_labelings(
    ends: GraphEnds,
    unary: FloatArray,  # (N, K)
    pair: FloatArray,  # (M, K, K)
    labels: CodeArray,  # (N,)
    out: FloatArray,  # (S,) out
) -> None:
    """Write the score of a labeling of each graph."""
    stride = 0 if ends.table.shape[0] == 1 else 1
    for g in range(out.shape[0]):
        first, total = ends.offsets[g], 0.0
        for t in range(first, ends.offsets[g + 1]):
            total += unary[t, labels[t]]
        for e in range(ends.edge_offsets[g], ends.edge_offsets[g + 1]):
            i, j = labels[first + ends.source[e]], labels[first + ends.target[e]]
            total += pair[ends.table[e * stride], i, j]
        out[g] = total


@kernel
def count_labelings(
    ends: GraphEnds,
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, K) out, added to
    pair: FloatArray,  # (M, K, K) out, added to
) -> None:
    """Add the weights of graphs to the parts of a labeling of each."""
    stride = 0 if ends.table.shape[0] == 1 else 1
    for g in range(weight.shape[0]):
        first = ends.offsets[g]
        for t in range(first, ends.offsets[g + 1]):
            unary[t, labels[t]] += weight[g]
        for e in range(ends.edge_offsets[g], ends.edge_offsets[g + 1]):
            i, j = labels[first + ends.source[e]], labels[first + ends.target[e]]
            pair[ends.table[e * stride], i, j] += weight[g]
