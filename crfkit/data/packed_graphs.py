"""Packed graphs, from packed sequences whose tokens are joined otherwise, and parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from crfkit._types import BoolArray, IntArray
from crfkit.data.edges import Edges
from crfkit.data.packed import PackedSequences


def as_graphs(data: PackedSequences) -> PackedSequences:
    """Return sequences whose tokens are joined in any way as graphs, with an edge a transition.

    Attributes of transitions become those of edges; those into first tokens are left out.
    """
    if isinstance(data.topology, Edges):
        return data
    source, target = data.ends
    rows = np.flatnonzero(source >= 0)
    source, target = source[rows], target[rows]
    sequence = np.searchsorted(data.offsets, target, side="right") - 1
    counts = np.bincount(sequence, minlength=len(data))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    begin, transitions = data.offsets[sequence], data.transitions
    if transitions is not None:
        transitions = _taken(transitions, rows, offsets)
    edges = Edges(source - begin, target - begin, data.offsets, offsets)
    return data.with_transitions(None).with_topology(edges).with_transitions(transitions)


def of_nodes(data: PackedSequences, kept: BoolArray) -> PackedSequences:
    """Return graphs of some of the nodes, (N,), and the edges between these."""
    graphs, nodes = as_graphs(data), np.flatnonzero(kept)
    source, target = graphs.ends
    topology: Any = graphs.topology
    place = np.append(0, np.cumsum(kept)).astype(np.int64)
    edges = np.flatnonzero(kept[source] & kept[target])
    offsets = place[data.offsets]
    edge_offsets = np.searchsorted(edges, topology.edge_offsets).astype(np.int64)
    begin = np.repeat(offsets[:-1], np.diff(edge_offsets))
    types = None if topology.types is None else topology.types[nodes]
    fewer = Edges(
        place[source[edges]] - begin, place[target[edges]] - begin, offsets, edge_offsets, types,
        None if types is None else topology.type_names,
    )  # fmt: skip
    transitions = graphs.transitions
    if transitions is not None:
        transitions = _taken(transitions, edges, edge_offsets)
    own = _taken(graphs, nodes, offsets)
    return own.with_topology(fewer).with_transitions(transitions)


def _taken(data: PackedSequences, rows: IntArray, offsets: IntArray) -> PackedSequences:
    """Return the attributes of some rows, and where those of each graph start."""
    return PackedSequences._from_arrays(**vars(data.take_tokens(rows)) | {"offsets": offsets})
