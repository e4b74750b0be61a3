"""A labeling that keeps rules, of a large score: search with a beam over states of automata."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.constraints.joint import JointAutomata
from crfkit.structures.lattice import Lattice

# Prefixes that are kept at each node of a graph.
WIDTH = 8


class Prefixes(NamedTuple):
    """Prefixes that end at a node, the best ones first, and the states of automata after them."""

    score: FloatArray  # (n,)
    states: IntArray  # (n, A)
    arc: IntArray  # (n,) the last arc of each
    rank: IntArray  # (n,) which prefix of the node before it is longer than


def beam(lattice: Lattice, automata: JointAutomata, length: int) -> CodeArray | None:
    """Return the codes of a labeling that all automata accept, (T,); None if none is found."""
    none = np.zeros(1, np.int64)
    start = Prefixes(np.zeros(1), np.zeros((1, len(automata)), np.int64), none, none)
    ends = np.searchsorted(lattice.target, np.arange(lattice.n_nodes + 1))
    at_nodes = [start]
    for node in range(1, lattice.n_nodes):
        arcs = np.arange(ends[node], ends[node + 1])
        at_nodes.append(_extended(lattice, automata, at_nodes, arcs))
    final = at_nodes[-1]
    accepted = np.flatnonzero(automata.accepting(final.states))
    if not len(accepted):
        return None
    node, rank, path = lattice.n_nodes - 1, int(accepted[0]), []
    while node:
        prefixes = at_nodes[node]
        arc, rank = int(prefixes.arc[rank]), int(prefixes.rank[rank])
        path.append(arc)
        node = int(lattice.source[arc])
    return lattice.codes(np.array(path[::-1]), length)


def _extended(
    lattice: Lattice, automata: JointAutomata, at_nodes: list[Prefixes], arcs: IntArray
) -> Prefixes:
    """Return the best prefixes that end with some arcs, all to one node."""
    sources = [at_nodes[node] for node in lattice.source[arcs].tolist()]
    counts = np.array([len(each.score) for each in sources], np.int64)
    arc = np.repeat(arcs, counts)
    rank = np.arange(len(arc)) - np.repeat(np.cumsum(counts) - counts, counts)
    empty = np.zeros((0, len(automata)), np.int64)
    states = np.concatenate([empty, *(each.states for each in sources)])
    score = np.concatenate([np.zeros(0), *(each.score for each in sources)]) + lattice.score[arc]
    reading = lattice.token[arc] >= 0
    if reading.any():
        states = automata.after(states, lattice.before[arc], lattice.code[arc])
    order = np.argsort(-score, kind="stable")
    order = order[(states[order] >= 0).all(axis=1)]
    kept = order[_first_ones(states[order])][:WIDTH]
    return Prefixes(score[kept], states[kept], arc[kept], rank[kept])


def _first_ones(rows: IntArray) -> BoolArray:
    """Return which rows are not the same as one before."""
    first = np.zeros(len(rows), bool)
    if len(rows):
        first[np.unique(rows, axis=0, return_index=True)[1]] = True
    return first
