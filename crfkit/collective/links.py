"""Which nodes are neighbors, as a sparse matrix."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from crfkit._types import BoolArray, CodeArray, FloatArray, IntArray
from crfkit.data import PackedSequences


class Network(NamedTuple):
    """The nodes of all graphs, who their neighbors are, and the labels that are known."""

    data: PackedSequences  # attributes of N nodes
    links: sp.csr_array  # (N, N) symmetric: how many edges join two nodes
    codes: CodeArray  # (N,) of the labels; -1 where these are not known
    n_labels: int

    @property
    def free(self) -> IntArray:
        """The nodes whose labels are not known."""
        return np.flatnonzero(self.codes < 0)

    @property
    def is_known(self) -> BoolArray:
        """Whether the label of each node is known, shape (N,)."""
        known: BoolArray = self.codes >= 0
        return known

    def indicators(self) -> FloatArray:
        """Return 1 for the label of each node that is known, 0 for all others, (N, K)."""
        rows: FloatArray = (self.codes[:, None] == np.arange(self.n_labels)).astype(float)
        return rows

    def attributes(self, nodes: IntArray | None = None) -> Any:
        """Return attributes of nodes, of all if none are given, (n, D); dense where all are."""
        chosen = np.arange(self.data.n_tokens) if nodes is None else nodes
        return self.data.take_tokens(chosen)[0]


def colors(links: sp.csr_array) -> list[IntArray]:
    """Return the nodes in groups without an edge between two of one group.

    To set the labels of a group at once is to set them one after another.
    """
    pointers, neighbors = links.indptr.tolist(), links.indices.tolist()
    found = [-1] * links.shape[0]
    for node, (begin, end) in enumerate(itertools.pairwise(pointers)):
        taken = {found[other] for other in neighbors[begin:end]}
        found[node] = next(color for color in itertools.count() if color not in taken)
    groups = np.array(found, np.int64)
    return [np.flatnonzero(groups == color) for color in range(int(groups.max(initial=-1)) + 1)]


def inverse(sums: FloatArray) -> FloatArray:
    """Return 1 / x, and 0 where x is 0."""
    return np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0.0)


def adjacency_of(data: PackedSequences) -> sp.csr_array:
    """Return how many edges join two nodes, (N, N), in either direction."""
    source, target = data.ends
    source, target = source[source >= 0], target[source >= 0]
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    shape = (data.n_tokens, data.n_tokens)
    return sp.coo_array((np.ones(len(ends[0])), ends), shape).tocsr()
