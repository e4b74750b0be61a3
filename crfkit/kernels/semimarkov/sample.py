"""Segmentations drawn from their distribution.

Shapes as in :mod:`crfkit.kernels.semimarkov.arrays`, ``n`` segmentations of each sequence. They are
drawn from the last segment to the first, each token by a number of its own: that of the last token
of a segment chooses its label, and what is left of it whether the segment begins there; where it
does not, the number of the token before tells whether it begins there, and so on.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH
from crfkit.kernels.chain.sample import drawn_with_rest
from crfkit.kernels.chain.sum import NOTHING, OK
from crfkit.kernels.semimarkov.arrays import (
    LogSegmentWorkspace,
    SegmentPrefixes,
    SegmentScores,
    SegmentTables,
    reached,
)
from crfkit.kernels.semimarkov.sum import forward, forward_log


class SegmentDraws(NamedTuple):
    """The numbers that choose segmentations, and these."""

    uniforms: FloatArray  # (n, N) from 0 to 1
    lengths: FloatArray  # (2, L) room: the weights of lengths, and of all from one on
    codes: CodeArray  # (n, N) out


@part
def _begin(
    longest: int,
    label: int,
    size: int,
    rest: float,  # what the label left of the number of the last token
    n: int,
    last: int,
    draws: SegmentDraws,
) -> int:
    """Draw where a segment begins, given its last token; returns its first one."""
    weights, tail = draws.lengths, 0.0
    for d in range(longest, 0, -1):
        tail += weights[0, d - 1]
        weights[1, d - 1] = tail
    first, uniform = last, rest
    for d in range(1, longest):
        if weights[1, d] == 0.0 or uniform * weights[1, d - 1] < weights[0, d - 1]:
            break
        draws.codes[n, first] = label
        first -= 1
        uniform = draws.uniforms[n, first]
    draws.codes[n, first] = size + label
    return first


@part
def _weigh_lengths(
    scores: SegmentScores,
    tables: SegmentTables,
    prefixes: SegmentPrefixes,
    begin: int,
    t: int,
    k: int,
    lengths: FloatArray,  # (2, L) of which the first row is written
) -> int:
    """Write the weights of the lengths of a segment that ends at a token; returns the longest."""
    ends, row, run = scores.ends, t - begin, 1.0
    q, high = ends.ptr[t], ends.ptr[t + 1]
    longest: int = min(row + 1, tables.longest[k // WIDTH])
    for d in range(1, longest + 1):
        weight = prefixes.begins[row - d + 1, k] * run * tables.lengths[d - 1, k]
        if d == 1:
            weight *= tables.alone[t, k]
        if q < high and ends.length[q] == d:
            weight *= tables.spans[ends.row[q], k]
            q += 1
        lengths[0, d - 1] = weight
        run *= prefixes.going[row - d + 1, k]
    return longest


@kernel
def semimarkov_sample(
    scores: SegmentScores,
    tables: SegmentTables,  # exponentials
    sequences: IntArray,  # (m,) those to be sampled
    prefixes: SegmentPrefixes,
    draws: SegmentDraws,
    status: IntArray,  # (S,) out: codes of a sequence are only written where it is OK
) -> None:
    """Draw segmentations by the forward recurrence, in time ``O(K + L)`` a segment."""
    alpha, weights, index = prefixes.alpha, prefixes.vector, scores.transition_index
    size, stride = scores.pair.shape[1], min(index.shape[0] - 1, 1)
    for place in range(sequences.shape[0]):
        s = sequences[place]
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        status[s] = forward(scores, tables, begin, end, begin, prefixes)
        if status[s] == OK:
            position = reached(alpha, 0.0, begin, end, begin, size)
            status[s] = OK if position == end else position
        for n in range(draws.codes.shape[0] if status[s] == OK else 0):
            t, label, m = end - 1, 0, -1
            while t >= begin:
                for k in range(weights.shape[1]):
                    follows = 1.0 if m < 0 else tables.transitions[m, k, label]
                    weights[0, k] = alpha[t - begin + 1, k] * follows
                label, rest = drawn_with_rest(weights, 0, draws.uniforms[n, t])
                longest = _weigh_lengths(scores, tables, prefixes, begin, t, label, draws.lengths)
                first = _begin(longest, label, size, rest, n, t, draws)
                t, m = first - 1, index[first * stride]


@part
def log_lengths(
    scores: SegmentScores,
    sums: LogSegmentWorkspace,
    begin: int,
    t: int,
    k: int,
    lengths: FloatArray,  # (2, L) of which the first row is written
) -> int:
    """Write logarithms of the weights of lengths as `_weigh_lengths`; returns the longest."""
    unary, pair, ends, row, run = scores.unary, scores.pair, scores.ends, t - begin, 0.0
    q, high, size = ends.ptr[t], ends.ptr[t + 1], pair.shape[1]
    longest: int = min(row + 1, scores.n_lengths)
    for d in range(1, longest + 1):
        weight = sums.begins[row - d + 1, k] + run + pair[scores.n_transitions + d - 1, k]
        if d == 1:
            weight += unary[t, 3 * size + k]
        if q < high and ends.length[q] == d:
            weight += pair[scores.n_transitions + scores.n_lengths + ends.row[q], k]
            q += 1
        lengths[0, d - 1] = weight
        run += unary[t - d + 1, k] - (sums.norm[t - d] if d <= row else 0.0)
    return longest


@part
def _exponentiate(logs: FloatArray, size: int) -> None:
    """Write the exponentials of the first row, relative to the largest one."""
    top = -math.inf
    for k in range(size):
        top = max(top, logs[0, k])
    for k in range(size):
        below = logs[0, k] - top
        logs[0, k] = math.exp(below) if below > NOTHING else 0.0


@kernel
def semimarkov_sample_log(
    scores: SegmentScores, s: int, sums: LogSegmentWorkspace, draws: SegmentDraws
) -> int:
    """Draw segmentations of one sequence that is not empty by logarithms.

    Returns `OK`, or the position that no segment leads to.
    """
    begin: int = scores.offsets[s]
    end, weights, index = scores.offsets[s + 1], sums.beta, scores.transition_index
    size, stride = scores.pair.shape[1], min(index.shape[0] - 1, 1)
    forward_log(scores, begin, end, sums)
    position = reached(sums.alpha, -math.inf, begin, end, begin, size)
    if position < end:
        return position
    for n in range(draws.codes.shape[0]):
        t, label, table = end - 1, 0, -1
        while t >= begin:
            for k in range(size):
                follows = 0.0 if table < 0 else scores.pair[table + k, label]
                weights[0, k] = sums.alpha[t - begin + 1, k] + follows
            _exponentiate(weights, size)
            label, rest = drawn_with_rest(weights, 0, draws.uniforms[n, t])
            longest = log_lengths(scores, sums, begin, t, label, draws.lengths)
            _exponentiate(draws.lengths, longest)
            first = _begin(longest, label, size, rest, n, t, draws)
            t, table = first - 1, index[first * stride] * size
    return OK
