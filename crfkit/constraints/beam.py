"""A labeling that keeps rules, of a large score: search with a beam over states of automata."""

from __future__ import annotations

import numpy as np

from crfkit._types import CodeArray, IntArray
from crfkit.constraints.joint import JointAutomata
from crfkit.structures.lattice import Lattice

# Prefixes that are kept at each node of a graph, and the best ones that are looked at for them.
WIDTH, TRIED = 8, 48


class Beam:
    """Prefixes of paths through a graph: at each node, some of the largest scores.

    Those of a node differ in the states of the automata that have read them.
    """

    def __init__(self, lattice: Lattice, automata: JointAutomata) -> None:
        self._lattice, self._automata = lattice, automata
        count = lattice.n_nodes
        self._score = np.full((count, WIDTH), -np.inf)
        self._states = np.zeros((count, WIDTH, len(automata)), np.int64)
        self._arc = np.zeros((count, WIDTH), np.int64)  # the last one of each prefix
        self._rank = np.zeros((count, WIDTH), np.int64)  # of the prefix that it is longer than
        self._score[0, 0] = 0.0
        self._ends = np.searchsorted(lattice.target, np.arange(count + 1)).tolist()

    def search(self, length: int) -> CodeArray | None:
        """Return the codes of a labeling that all automata accept, (T,); None if none is found."""
        for node in range(1, self._lattice.n_nodes):
            self._extend(node, np.arange(self._ends[node], self._ends[node + 1]))
        accepted = self._automata.accepting(self._states[-1]) & (self._score[-1] > -np.inf)
        ranks = np.flatnonzero(accepted)
        if not len(ranks):
            return None
        node, rank, path = self._lattice.n_nodes - 1, int(ranks[0]), []
        while node:
            path.append(int(self._arc[node, rank]))
            node, rank = int(self._lattice.source[path[-1]]), int(self._rank[node, rank])
        return self._lattice.codes(np.array(path[::-1]), length)

    def _extend(self, node: int, arcs: IntArray) -> None:
        """Find the best prefixes that end with some arcs, all to one node."""
        lattice = self._lattice
        scores = (self._score[lattice.source[arcs]] + lattice.score[arcs, None]).ravel()
        tried = np.argsort(-scores, kind="stable")[:TRIED]
        tried = tried[scores[tried] > -np.inf]
        arc, rank = arcs[tried // WIDTH], tried % WIDTH
        states = self._states[lattice.source[arc], rank]
        if len(arc) and lattice.token[arc[0]] >= 0:
            states = self._automata.after(states, lattice.before[arc], lattice.code[arc])
        kept: list[int] = []
        known: set[bytes] = set()
        for place in np.flatnonzero((states >= 0).all(axis=1)).tolist():
            key = states[place].tobytes()
            if key not in known:
                known.add(key)
                kept.append(place)
                if len(kept) == WIDTH:
                    break
        count = len(kept)
        self._score[node, :count] = scores[tried[kept]]
        self._states[node, :count] = states[kept]
        self._arc[node, :count], self._rank[node, :count] = arc[kept], rank[kept]
