"""Groups of arrays that the kernels of linear chains read and write.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``M`` tables of pair scores. The transition
into token ``t`` reads the table ``index[t * stride]``, where `index` is the one of the scores: the
stride is 0 where it has one entry, because all transitions share a table, and 1 where it has ``N``.

Arrays that kernels read are read-only, as `frozen` returns them, and those that they write are not:
each group has one type, and each kernel one machine code.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import FloatArray, IdArray, IntArray


class ChainScores(NamedTuple):
    """Scores of the parts of chains; ``-inf`` forbids a part. Read-only."""

    unary: FloatArray  # (N, K)
    pair: FloatArray  # (M, K, K)
    transition_index: IdArray  # (N,) or (1,) the table of the transition into each token
    offsets: IntArray  # (S + 1,) where the sequences start, and the end


class TransitionRows(NamedTuple):
    """The tokens that E transitions join, and their tables, of chains, forests and graphs."""

    source: IntArray  # (E,) the token that each comes from, -1 for none
    target: IntArray  # (E,) the token that it leads to
    table: IdArray  # (E,) or (1,) its table of pair scores
    offsets: IntArray  # (S + 1,) where those of each sequence start, and the end


class ChainExponentials(NamedTuple):
    """Exponentials of the scores, relative to the largest ones. Read-only."""

    node: FloatArray  # (N, K) exp(unary - shift)
    shift: FloatArray  # (N,) the largest unary score of each token
    factor: FloatArray  # (M, K, K) exp(pair - pair_shift)
    transposed: FloatArray  # (M, K, K) the same, each table transposed
    pair_shift: FloatArray  # (M,) the largest score of each table


class ChainWorkspace(NamedTuple):
    """Rooms of the forward-backward recurrences."""

    norm: FloatArray  # (N,) scales of the forward vectors
    vector: FloatArray  # (1, K)
    alpha: FloatArray  # (R, K) forward vectors, at least a row for each token of a sequence
    message: FloatArray  # (R, K) backward vectors, times node and scale


class ChainSums(NamedTuple):
    """Log partition functions and expected counts, which the kernels write."""

    marginals: FloatArray  # (N, K) weighted marginals of labels
    flow: FloatArray  # (M, K, K) added to: weighted expected transitions
    log_z: FloatArray  # (S,)
    status: IntArray  # (S,) the other outputs of a sequence are only valid where it is OK


class Run(NamedTuple):
    """Some tokens of a batch, and their rows in the workspace."""

    begin: int
    end: int
    row: int  # of the token `begin`
