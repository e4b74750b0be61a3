"""Groups of arrays that the kernels of segments read and write, and how scores come into them.

Shapes: ``N`` tokens of ``S`` sequences, ``K`` labels, ``W`` the same filled up to whole vectors of
eight, ``M`` tables of transitions, ``L`` lengths, ``R`` rows of scores, which ``n`` segments have.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, fill, larger, largest, load


class SpanIndex(NamedTuple):
    """Segments that have a row of scores, by the token they end at (or begin at). Read-only."""

    ptr: IntArray  # (N + 1,) which of them end at a token
    length: IntArray  # (n,) their lengths, rising for each token
    row: IntArray  # (n,) and rows


class SegmentScores(NamedTuple):
    """Scores of the parts of segmentations; ``-inf`` forbids a part. Read-only."""

    unary: FloatArray  # (N, 4 K) of going on, beginning, ending, being a segment of one token
    pair: FloatArray  # (M K + L + R, K) of transitions, lengths and rows
    transition_index: IdArray  # (N,) or (1,) the table of the transition into each token
    offsets: IntArray  # (S + 1,)
    n_transitions: int  # M K
    n_lengths: int  # L
    ends: SpanIndex
    starts: SpanIndex


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


class SegmentExponentials(NamedTuple):
    """Exponentials of the scores; of going on and beginning, relative to the shift. Read-only."""

    tables: SegmentTables
    transposed: FloatArray  # (M, W, W) transitions, each table transposed
    shift: FloatArray  # (N,) the largest score of going on and beginning


class SegmentPrefixes(NamedTuple):
    """Rooms of the forward recurrence; what is of a token, by its row."""

    alpha: FloatArray  # (T + 1, W) forward vectors: shares of what ends before a token
    begins: FloatArray  # (T, W) what begins at it
    going: FloatArray  # (T, W) scaled factors of going on
    vector: FloatArray  # (1, W)
    norm: FloatArray  # (N,) scales


class SegmentWorkspace(NamedTuple):
    """Rooms of the forward-backward recurrences; what is of a token, by its row."""

    prefixes: SegmentPrefixes
    ends: FloatArray  # (T, W) what follows a segment that ends at it
    message: FloatArray  # (T, W) backward vectors: what follows a transition into it
    started: FloatArray  # (T, W) probabilities that a segment begins at it
    ended: FloatArray  # (T, W) that one ends
    single: FloatArray  # (T, W) that both do


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


@part
def reached(values: FloatArray, none: float, begin: int, end: int, origin: int, size: int) -> int:
    """Return the first position that no segment leads to.

    Row ``n - origin`` is of what ends before token ``n``.
    """
    position = begin
    for t in range(begin, end):
        for k in range(size):
            if values[t - origin + 1, k] > none:
                position = t + 1
    return position


@part
def _top(unary: FloatArray, t: int, columns: int) -> float:
    """``max_c unary[t, c]`` over the first columns."""
    if columns >= WIDTH:
        most = fill(-math.inf)
        for p in range(0, columns, WIDTH):
            most = larger(most, load(unary, t, min(p, columns - WIDTH)))
        return largest(most)
    top = -math.inf
    for c in range(columns):
        top = unary[t, c] if unary[t, c] > top else top
    return top


@kernel
def semimarkov_shift(
    unary: FloatArray,  # (N, 4 K) scores of going on, beginning, ending, being alone
    size: int,  # K
    most: float,
    shifted: FloatArray,  # (N, 4 K) out: the first two minus the shift, others up to `most`
    shift: FloatArray,  # (N,) out: the largest score of going on and beginning
) -> None:
    """``shifted_t = unary_t - shift_t``; the shift is 0 where all of them are ``-inf``."""
    for t in range(unary.shape[0]):
        top = _top(unary, t, 2 * size)
        shift[t] = top if top > -math.inf else 0.0
        for c in range(2 * size):
            shifted[t, c] = unary[t, c] - shift[t]
        for c in range(2 * size, 4 * size):
            shifted[t, c] = min(unary[t, c], most)


@kernel
def semimarkov_part(
    unary: FloatArray,  # (N, 4 K)
    size: int,  # K
    stay: FloatArray,  # (N, W) out: the first K columns, and what it had in further ones
    start: FloatArray,  # (N, W) out: the next
    finish: FloatArray,  # (N, W) out: the next
    alone: FloatArray,  # (N, W) out: the last
) -> None:
    """Write each quarter of the columns into the rows of a table of its own."""
    for t in range(unary.shape[0]):
        for k in range(size):
            stay[t, k] = unary[t, k]
        for k in range(size):
            start[t, k] = unary[t, size + k]
        for k in range(size):
            finish[t, k] = unary[t, 2 * size + k]
        for k in range(size):
            alone[t, k] = unary[t, 3 * size + k]
