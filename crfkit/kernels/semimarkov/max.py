"""Best segmentations, scores of given ones, and the adjoint of these.

A segmentation is a code for each token: ``k`` where a segment of label ``k`` goes on, ``K + k``
where one begins. Shapes as in :mod:`crfkit.kernels.semimarkov.arrays`; what is filled up in the
rows of tables is ``-inf``.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, add, fill, larger, load, prefetch, store
from crfkit.kernels._strips import strips_best
from crfkit.kernels.chain.max import AHEAD
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.semimarkov.arrays import (
    SegmentScores,
    SegmentTables,
    SegmentViterbi,
    SpanIndex,
    reached,
)


@part
def _best_ending(
    tables: SegmentTables,
    ends: SpanIndex,
    begins: FloatArray,
    shift: int,  # the token of row 0, for `ends`
    t: int,
    row: int,
    p: int,
    most: int,
) -> FloatArray:
    """``max_d (begins_{e-d+1} + sum_u stay_u + length_d + span)`` for eight labels from `p` on."""
    best, run = fill(-math.inf), fill(0.0)
    q, high = ends.ptr[shift + t], ends.ptr[shift + t + 1]
    for d in range(1, most + 1):
        score = add(add(load(begins, row - d + 1, p), run), load(tables.lengths, d - 1, p))
        if d == 1:
            score = add(score, load(tables.alone, t, p))
        if q < high and ends.length[q] == d:
            score = add(score, load(tables.spans, ends.row[q], p))
            q += 1
        best = larger(best, score)
        run = add(run, load(tables.stay, t - d + 1, p))
    return best


@part
def best_prefixes(
    tables: SegmentTables,
    ends: SpanIndex,
    index: IdArray,  # (N,) or (1,)
    begin: int,  # rows begin:end of what tokens have
    end: int,
    shift: int,  # the token of row 0, for `ends`
    search: SegmentViterbi,
) -> None:
    """Write the best scores of what begins at, and ends before, each token of a sequence."""
    best, begins, width = search.best, search.begins, tables.stay.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for p in range(0, width, WIDTH):
        store(load(tables.start, begin, p), begins, 0, p)
    for t in range(begin, end):
        row = t - begin
        if row > 0:
            m = index[t * stride]
            strips_best(best, row, tables.transitions, m, tables.start, t, begins, row)
        for p in range(0, width, WIDTH):
            most = min(row + 1, tables.longest[p // WIDTH])
            top = _best_ending(tables, ends, begins, shift, t, row, p, most)
            store(add(top, load(tables.finish, t, p)), best, row + 1, p)


@part
def _best_segmentation(
    tables: SegmentTables,
    ends: SpanIndex,
    index: IdArray,  # (N,) or (1,)
    size: int,
    begin: int,  # rows begin:end of what tokens have
    end: int,
    shift: int,  # the token of row 0, for `ends`
    search: SegmentViterbi,
) -> int:
    """Find the best segmentation of a sequence that is not empty; returns the status.

    Of equal ones, that with the lowest last label, then the shortest last segment, and so on.
    """
    best_prefixes(tables, ends, index, begin, end, shift, search)
    return _trace_back(tables, ends, index, size, begin, end, shift, search)


@kernel
def semimarkov_max(
    scores: SegmentScores,
    tables: SegmentTables,  # the same scores
    search: SegmentViterbi,
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the best segmentation (Sarawagi and Cohen 2004, equation 3), as `_best_segmentation`."""
    index, size = scores.transition_index, scores.pair.shape[1]
    for s in range(value.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        value[s], status[s] = 0.0, OK
        if begin == end:
            continue
        status[s] = _best_segmentation(tables, scores.ends, index, size, begin, end, 0, search)
        if status[s] == OK:
            label = _best_label(search.best, end - begin, size)
            value[s] = search.best[end - begin, label]


@kernel
def _best_label(best: FloatArray, row: int, size: int) -> int:
    """Return the first label of the largest score."""
    label = 0
    for k in range(1, size):
        if best[row, k] > best[row, label]:
            label = k
    return label


@kernel
def _trace_back(
    tables: SegmentTables,
    ends: SpanIndex,
    index: IdArray,
    size: int,
    begin: int,
    end: int,
    shift: int,
    search: SegmentViterbi,
) -> int:
    """Write the codes of the best segmentation from its end; returns the status."""
    best, begins, codes = search.best, search.begins, search.codes
    stride = 0 if index.shape[0] == 1 else 1
    t, label = end - 1, _best_label(best, end - begin, size)
    if best[end - begin, label] == -math.inf:
        return reached(best, -math.inf, begin, end, begin, size)
    while True:
        row, q, run = t - begin, ends.ptr[shift + t], 0.0
        top, chosen = -math.inf, 1
        for d in range(1, min(row + 1, tables.longest[label // WIDTH]) + 1):
            score = begins[row - d + 1, label] + run + tables.lengths[d - 1, label]
            if d == 1:
                score += tables.alone[t, label]
            if q < ends.ptr[shift + t + 1] and ends.length[q] == d:
                score += tables.spans[ends.row[q], label]
                q += 1
            if score > top:
                top, chosen = score, d
            run += tables.stay[t - d + 1, label]
        first = t - chosen + 1
        for u in range(first, t + 1):
            codes[u] = label
        codes[first] = size + label
        if first == begin:
            return OK
        m, after = index[first * stride], label
        top, label = -math.inf, 0
        for i in range(size):
            score = best[first - begin, i] + tables.transitions[m, i, after]
            if score > top:
                top, label = score, i
        t = first - 1


@kernel
def _find(length: IntArray, low: int, high: int, wanted: int) -> int:
    """Return the place of a length among rising ones, -1 if it is not there."""
    end = high
    while low < high:
        middle = (low + high) // 2
        if length[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and length[low] == wanted else -1


@kernel
def semimarkov_score(
    scores: SegmentScores,
    codes: CodeArray,  # (N,)
    value: FloatArray,  # (S,) out
) -> None:
    """Add up the scores of the parts of a segmentation; ``-inf`` for a segment too long."""
    unary, pair = scores.unary, scores.pair
    size, final = pair.shape[1], unary.shape[0] - 1
    offsets, index, ends = scores.offsets, scores.transition_index, scores.ends
    lengths, n_lengths = scores.n_transitions, scores.n_lengths
    stride = 0 if index.shape[0] == 1 else 1
    for s in range(offsets.shape[0] - 1):
        whole, first, before = 0.0, offsets[s], 0
        for t in range(offsets[s], offsets[s + 1]):
            soon = min(t + AHEAD, final)
            prefetch(unary, soon, codes[soon])
            label = codes[t] if codes[t] < size else codes[t] - size
            whole += unary[t, codes[t]]
            if codes[t] >= size:
                if t > offsets[s]:
                    whole += pair[index[t * stride] * size + before, label]
                first = t
            if t + 1 == offsets[s + 1] or codes[t + 1] >= size:
                d = t - first + 1
                whole += unary[t, 2 * size + label]
                if d == 1:
                    whole += unary[t, 3 * size + label]
                whole += pair[lengths + d - 1, label] if d <= n_lengths else -math.inf
                q = _find(ends.length, ends.ptr[t], ends.ptr[t + 1], d)
                if q >= 0:
                    whole += pair[lengths + n_lengths + ends.row[q], label]
                before = label
        value[s] = whole


@kernel
def semimarkov_add_path(
    scores: SegmentScores,
    codes: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, 4 K) out, added to
    pair: FloatArray,  # (M K + L + R, K) out, added to
) -> None:
    """Add the weight of each sequence to the parts of its segmentation (adjoint of the score)."""
    size, final = pair.shape[1], unary.shape[0] - 1
    offsets, index, ends = scores.offsets, scores.transition_index, scores.ends
    lengths, n_lengths = scores.n_transitions, scores.n_lengths
    stride = 0 if index.shape[0] == 1 else 1
    for s in range(offsets.shape[0] - 1):
        level, first, before = weight[s], offsets[s], 0
        for t in range(offsets[s], offsets[s + 1]):
            soon = min(t + AHEAD, final)
            prefetch(unary, soon, codes[soon])
            label = codes[t] if codes[t] < size else codes[t] - size
            unary[t, codes[t]] += level
            if codes[t] >= size:
                if t > offsets[s]:
                    pair[index[t * stride] * size + before, label] += level
                first = t
            if t + 1 == offsets[s + 1] or codes[t + 1] >= size:
                d = t - first + 1
                unary[t, 2 * size + label] += level
                if d == 1:
                    unary[t, 3 * size + label] += level
                if d <= n_lengths:
                    pair[lengths + d - 1, label] += level
                q = _find(ends.length, ends.ptr[t], ends.ptr[t + 1], d)
                if q >= 0:
                    pair[lengths + n_lengths + ends.row[q], label] += level
                before = label
