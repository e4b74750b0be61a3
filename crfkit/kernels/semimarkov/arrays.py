"""Groups of arrays that the kernels of segments read and write.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``W`` the same filled up to whole vectors of
eight, ``M`` tables of transitions, ``L`` lengths, ``R`` rows of scores of segments, of which ``n``
segments have one. As for chains, arrays that kernels read are read-only.
"""

from __future__ import annotations

from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray


class SegmentScores(NamedTuple):
    """Scores of the parts of segmentations; ``-inf`` forbids a part. Read-only."""

    unary: FloatArray  # (N, 4 K) of going on, beginning, ending, being a segment of one token
    pair: FloatArray  # (M K + L + R, K) of transitions, lengths and rows
    transition_index: IdArray  # (N,) or (1,) the table of the transition into each token
    offsets: IntArray  # (S + 1,)
    n_transitions: int  # M K
    n_lengths: int  # L


class SpanIndex(NamedTuple):
    """Segments that have a row of scores, by the token they end at (or begin at). Read-only."""

    ptr: IntArray  # (N + 1,) which of them end at a token
    length: IntArray  # (n,) their lengths, rising for each token
    row: IntArray  # (n,) and rows


class SegmentTables(NamedTuple):
    """Scores of each kind in rows of whole vectors, or their exponentials. Read-only."""

    stay: FloatArray  # (N, W) of going on
    start: FloatArray  # (N, W) of beginning
    finish: FloatArray  # (N, W) of ending
    alone: FloatArray  # (N, W) of being a segment of one token
    transitions: FloatArray  # (M, W, W)
    lengths: FloatArray  # (L, W)
    spans: FloatArray  # (R, W)
    longest: IntArray  # (W / 8,) the longest length of eight labels that is allowed


class SegmentWorkspace(NamedTuple):
    """Rooms of the forward-backward recurrences; what is of a token, by its row."""

    alpha: FloatArray  # (T + 1, W) forward vectors: shares of what ends before a token
    begins: FloatArray  # (T, W) what begins at it
    going: FloatArray  # (T, W) scaled factors of going on
    ends: FloatArray  # (T, W) what follows a segment that ends at it
    message: FloatArray  # (T, W) backward vectors: what follows a transition into it
    started: FloatArray  # (T, W) probabilities that a segment begins at it
    ended: FloatArray  # (T, W) that one ends
    single: FloatArray  # (T, W) that both do
    vector: FloatArray  # (1, W)
    norm: FloatArray  # (N,) scales


class SegmentSums(NamedTuple):
    """Log partition functions and expected counts, which the kernels write."""

    counts: FloatArray  # (N, 4 K) expected counts
    flow: FloatArray  # (M, W, W) added to: expected transitions divided by their exponentials
    lengths: FloatArray  # (L, W) added to: expected lengths
    spans: FloatArray  # (R, W) added to: expected rows
    log_z: FloatArray  # (S,)
    status: IntArray  # (S,) the other outputs of a sequence are only valid where it is OK


class SegmentViterbi(NamedTuple):
    """Rooms of the search for the best segmentation, and its codes."""

    best: FloatArray  # (T + 1, W) the best scores of what ends before a token
    begins: FloatArray  # (T, W) and of what begins at it
    codes: CodeArray  # (N,) out


class LogSegmentWorkspace(NamedTuple):
    """Rooms of the recurrences by sums of logarithms."""

    alpha: FloatArray  # (T + 1, K)
    begins: FloatArray  # (T, K)
    ends: FloatArray  # (T, K)
    beta: FloatArray  # (2, K)
    norm: FloatArray  # (N,)
