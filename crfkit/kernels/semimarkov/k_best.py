"""The k best segmentations of a sequence of ``T`` tokens.

Shapes as in :mod:`crfkit.kernels.semimarkov.arrays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.k_best import insert
from crfkit.kernels.semimarkov.arrays import SegmentScores


class PrefixLists(NamedTuple):
    """The best beginnings of segmentations, by the token they reach: rooms of the search."""

    begins: FloatArray  # (T + 1, K, n) the best scores where a segment begins
    before: IntArray  # (T + 1, K, n) the label and the rank of the prefix before each
    ends: FloatArray  # (T + 1, K, n) the best scores where a segment has ended
    inside: IntArray  # (T + 1, K, n) the length of that segment and the rank of each


@kernel
def semimarkov_n_best(
    scores: SegmentScores,  # of one sequence of T tokens
    lists: PrefixLists,
    value: FloatArray,  # (n,) out: -inf where there are no more segmentations
    codes: CodeArray,  # (n, T) out
) -> None:
    """Find the n segmentations of the largest scores (list Viterbi, as `chain_n_best`).

    ``ends_{e+1}(k)`` are the n largest of ``begins_{e-d+1}(k) + sum_u stay_u + length_d + span``
    over all lengths, and ``begins_s(k)`` those of ``ends_s(i) + pair(i, k)`` over all labels; of
    equal ones, those of the shortest lengths and the lowest labels come first.
    """
    begins, before, ends, inside = lists.begins, lists.before, lists.ends, lists.inside
    count, size, last = value.shape[0], scores.pair.shape[1], scores.unary.shape[0]
    for t in range(last):
        for k in range(size):
            _list_begins(scores, t, k, lists)
            _list_ends(scores, t, k, lists)
    # What would begin behind the last token, after transitions of score 0, lists all segmentations.
    for r in range(count):
        begins[last, 0, r] = -math.inf
    for i in range(size):
        for r in range(count):
            if not ends[last, i, r] > begins[last, 0, count - 1]:
                break
            insert(ends[last, i, r], i * count + r, begins, last, before, last, 0)
    for n in range(count):
        value[n] = begins[last, 0, n]
        if value[n] == -math.inf:
            continue
        t, came = last, before[last, 0, n]
        while t > 0:
            label = came // count
            segment = inside[t, label, came % count]
            first = t - segment // count
            for u in range(first, t):
                codes[n, u] = label
            codes[n, first] = size + label
            came = before[first, label, segment % count]
            t = first


@kernel
def _list_begins(scores: SegmentScores, t: int, k: int, lists: PrefixLists) -> None:
    """List the best scores where a segment of label `k` begins at token `t`."""
    unary, pair, index = scores.unary, scores.pair, scores.transition_index
    begins, before, ends = lists.begins, lists.before, lists.ends
    size, count = begins.shape[1], begins.shape[2]
    for r in range(count):
        begins[t, k, r] = -math.inf
    if t == 0:
        begins[t, k, 0] = 0.0
        before[t, k, 0] = 0
    else:
        first = index[t if index.shape[0] > 1 else 0] * size
        for i in range(size):
            transition = pair[first + i, k]
            for r in range(count):
                score = ends[t, i, r] + transition
                if not score > begins[t, k, count - 1]:
                    break  # those that follow are no better
                insert(score, i * count + r, begins, t, before, t, k)
    for r in range(count):
        begins[t, k, r] += unary[t, size + k]


@kernel
def _list_ends(scores: SegmentScores, t: int, k: int, lists: PrefixLists) -> None:
    """List the best scores where a segment of label `k` ends at token `t`."""
    unary, pair, lengths, spans = scores.unary, scores.pair, scores.n_transitions, scores.ends
    begins, ends, inside = lists.begins, lists.ends, lists.inside
    size, count = begins.shape[1], begins.shape[2]
    run, q = 0.0, spans.ptr[t]
    for r in range(count):
        ends[t + 1, k, r] = -math.inf
    for d in range(1, min(t + 1, scores.n_lengths) + 1):
        alone = unary[t, 3 * size + k] if d == 1 else 0.0
        span = 0.0
        if q < spans.ptr[t + 1] and spans.length[q] == d:
            span = pair[lengths + scores.n_lengths + spans.row[q], k]
            q += 1
        for r in range(count):
            score = begins[t - d + 1, k, r] + run + pair[lengths + d - 1, k] + alone + span
            if not score > ends[t + 1, k, count - 1]:
                break
            insert(score, d * count + r, ends, t + 1, inside, t + 1, k)
        run += unary[t - d + 1, k]
    for r in range(count):
        ends[t + 1, k, r] += unary[t, 2 * size + k]
