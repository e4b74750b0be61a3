"""Groups of arrays that the kernels of rooted forests read and write.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``M`` tables of pair scores. Each token has a
parent within its sequence, or is a root; the transition from the label of the parent to that of
token ``t`` reads the table ``index[t * stride]``, as in :mod:`crfkit.kernels.chain.arrays`, whose
groups serve forests too.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray


class TreeScores(NamedTuple):
    """Scores of the parts of forests; ``-inf`` forbids a part. Read-only."""

    unary: FloatArray  # (N, K)
    pair: FloatArray  # (M, K, K) each label of a parent (axis 1) with each of a child (axis 2)
    transition_index: IdArray  # (N,) or (1,) the table of the transition into each token
    parent: IntArray  # (N,) the position of the parent within the sequence, -1 for a root
    order: IntArray  # (N,) the positions of each sequence, parents before their children
    offsets: IntArray  # (S + 1,) where the sequences start, and the end


class TreeWorkspace(NamedTuple):
    """Messages of one forest of at most ``R`` tokens."""

    inside: FloatArray  # (R, K) what the subtree below each token says of its label
    message: FloatArray  # (R, K) what it says of the label of the parent
    row: FloatArray  # (1, K)
