"""Best segmentations, scores of given ones, and the adjoint of these.

A segmentation is a code for each token: ``k`` where a segment of label ``k`` goes on, ``K + k``
where one begins. Shapes and letters as in `semimarkov`; the arrays of scores have ``K`` columns
filled up to ``W`` where vectors read them.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, add, fill, larger, load, prefetch, store
from crfkit.kernels._strips import strips_best
from crfkit.kernels.chain.max import AHEAD
from crfkit.kernels.chain.sum import OK


@part
def _best_ending(
    begins: FloatArray,
    stay: FloatArray,
    alone: FloatArray,
    t: int,
    row: int,
    p: int,
    most: int,
    lengths: FloatArray,
    length: IntArray,
    which: IntArray,
    low: int,
    high: int,
    spans: FloatArray,
) -> FloatArray:
    """``max_d (begins_{e-d+1} + sum_u stay_u + length_d + span)`` for eight labels from `p` on."""
    best, run, q = fill(-math.inf), fill(0.0), low
    for d in range(1, most + 1):
        score = add(add(load(begins, row - d + 1, p), run), load(lengths, d - 1, p))
        if d == 1:
            score = add(score, load(alone, t, p))
        if q < high and length[q] == d:
            score = add(score, load(spans, which[q], p))
            q += 1
        best = larger(best, score)
        run = add(run, load(stay, t - d + 1, p))
    return best


@part
def _best_segmentation(
    begin: int,  # rows begin:end of what tokens have
    end: int,
    shift: int,  # the token of row 0, for `ptr`
    stay: FloatArray,  # the arguments of `semimarkov_max`
    start: FloatArray,
    finish: FloatArray,
    alone: FloatArray,
    steps: FloatArray,
    lengths: FloatArray,
    most: IntArray,
    spans: FloatArray,
    ptr: IntArray,
    length: IntArray,
    which: IntArray,
    table: IdArray,
    size: int,
    best: FloatArray,
    begins: FloatArray,
    work: FloatArray,
    codes: CodeArray,
) -> int:
    """Find the best segmentation of a sequence of at least one token; returns the status.

    Of equal ones, that with the lowest last label, then the shortest last segment, and so on.
    """
    width = stay.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    for p in range(0, width, WIDTH):
        store(load(start, begin, p), begins, 0, p)
    for t in range(begin, end):
        row = t - begin
        if row > 0:
            strips_best(best, row, steps, table[t * stride], start, t, begins, row)
        for p in range(0, width, WIDTH):
            found = _best_ending(
                begins, stay, alone, t, row, p, min(row + 1, most[p // WIDTH]), lengths,
                length, which, ptr[shift + t], ptr[shift + t + 1], spans,
            )  # fmt: skip
            store(add(found, load(finish, t, p)), best, row + 1, p)
    return _trace_back(
        shift, stay, alone, steps, lengths, most, spans, ptr, length, which, table, begin, end,
        size, best, begins, codes,
    )  # fmt: skip


@kernel
def semimarkov_max(
    stay: FloatArray,  # (N, W) scores of going on, -inf in the columns that are filled up
    start: FloatArray,  # (N, W) of beginning
    finish: FloatArray,  # (N, W) of ending
    alone: FloatArray,  # (N, W) of being a segment of one token
    steps: FloatArray,  # (M, W, W)
    lengths: FloatArray,  # (L, W)
    most: IntArray,  # (W / 8,) the longest length of eight labels that is allowed
    spans: FloatArray,  # (R, W)
    ptr: IntArray,  # (N + 1,) which segments with a row end at a token
    length: IntArray,  # (n,) their lengths, rising
    which: IntArray,  # (n,) and rows
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    size: int,  # K
    best: FloatArray,  # (T + 1, W) workspace
    begins: FloatArray,  # (T, W) workspace
    work: FloatArray,  # (1, W) workspace
    codes: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the segmentation of the largest score (Sarawagi and Cohen 2004, equation 3).

    Of equal ones as `_best_segmentation` says. The way back finds what was best again, which is
    cheaper than to store it.
    """
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        value[s], status[s] = 0.0, OK
        if begin == end:
            continue
        status[s] = _best_segmentation(
            begin, end, 0, stay, start, finish, alone, steps, lengths, most, spans, ptr, length,
            which, table, size, best, begins, work, codes,
        )  # fmt: skip
        if status[s] == OK:
            value[s] = best[end - begin, _best_label(best, end - begin, size)]


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
    shift: int,  # the arguments of `_best_segmentation`
    stay: FloatArray,
    alone: FloatArray,
    steps: FloatArray,
    lengths: FloatArray,
    most: IntArray,
    spans: FloatArray,
    ptr: IntArray,
    length: IntArray,
    which: IntArray,
    table: IdArray,
    begin: int,
    end: int,
    size: int,
    best: FloatArray,
    begins: FloatArray,
    codes: CodeArray,
) -> int:
    """Write the codes of the best segmentation from its end; returns the status."""
    stride = 0 if table.shape[0] == 1 else 1
    t, label = end - 1, _best_label(best, end - begin, size)
    if best[end - begin, label] == -math.inf:
        return _dead_end(best, begin, end, size)
    while True:
        row, q, run = t - begin, ptr[shift + t], 0.0
        top, chosen = -math.inf, 1
        for d in range(1, min(row + 1, most[label // WIDTH]) + 1):
            score = begins[row - d + 1, label] + run + lengths[d - 1, label]
            if d == 1:
                score += alone[t, label]
            if q < ptr[shift + t + 1] and length[q] == d:
                score += spans[which[q], label]
                q += 1
            if score > top:
                top, chosen = score, d
            run += stay[t - d + 1, label]
        first = t - chosen + 1
        for u in range(first, t + 1):
            codes[u] = label
        codes[first] = size + label
        if first == begin:
            return OK
        m, after = table[first * stride], label
        top, label = -math.inf, 0
        for i in range(size):
            score = best[first - begin, i] + steps[m, i, after]
            if score > top:
                top, label = score, i
        t = first - 1


@kernel
def _dead_end(best: FloatArray, begin: int, end: int, size: int) -> int:
    """Return the first position that no segment leads to, or begins at."""
    reached = begin
    for t in range(begin, end):
        for k in range(size):
            if best[t - begin + 1, k] > -math.inf:
                reached = t + 1
    return reached


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
    unary: FloatArray,  # (N, 4 K) scores of going on, beginning, ending, being alone
    pair: FloatArray,  # (n_steps + L + R, K) scores of steps, lengths and rows
    n_steps: int,
    n_lengths: int,
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    ptr: IntArray,  # (N + 1,) which segments with a row end at a token
    length: IntArray,  # (n,) their lengths, rising
    which: IntArray,  # (n,) and rows
    codes: CodeArray,  # (N,)
    score: FloatArray,  # (S,) out
) -> None:
    """Add up the scores of the parts of a segmentation; ``-inf`` for a segment too long."""
    size, final = pair.shape[1], unary.shape[0] - 1
    stride = 0 if table.shape[0] == 1 else 1
    for s in range(offsets.shape[0] - 1):
        whole, first, before = 0.0, offsets[s], 0
        for t in range(offsets[s], offsets[s + 1]):
            soon = min(t + AHEAD, final)
            prefetch(unary, soon, codes[soon])
            label = codes[t] if codes[t] < size else codes[t] - size
            whole += unary[t, codes[t]]
            if codes[t] >= size:
                if t > offsets[s]:
                    whole += pair[table[t * stride] * size + before, label]
                first = t
            if t + 1 == offsets[s + 1] or codes[t + 1] >= size:
                d = t - first + 1
                whole += unary[t, 2 * size + label]
                if d == 1:
                    whole += unary[t, 3 * size + label]
                whole += pair[n_steps + d - 1, label] if d <= n_lengths else -math.inf
                q = _find(length, ptr[t], ptr[t + 1], d)
                if q >= 0:
                    whole += pair[n_steps + n_lengths + which[q], label]
                before = label
        score[s] = whole


@kernel
def semimarkov_add_path(
    n_steps: int,
    n_lengths: int,
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    ptr: IntArray,  # (N + 1,) as for `semimarkov_score`
    length: IntArray,  # (n,)
    which: IntArray,  # (n,)
    codes: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, 4 K) out, added to
    pair: FloatArray,  # (n_steps + L + R, K) out, added to
) -> None:
    """Add the weight of each sequence to the parts of its segmentation (adjoint of the score)."""
    size, final = pair.shape[1], unary.shape[0] - 1
    stride = 0 if table.shape[0] == 1 else 1
    for s in range(offsets.shape[0] - 1):
        level, first, before = weight[s], offsets[s], 0
        for t in range(offsets[s], offsets[s + 1]):
            soon = min(t + AHEAD, final)
            prefetch(unary, soon, codes[soon])
            label = codes[t] if codes[t] < size else codes[t] - size
            unary[t, codes[t]] += level
            if codes[t] >= size:
                if t > offsets[s]:
                    pair[table[t * stride] * size + before, label] += level
                first = t
            if t + 1 == offsets[s + 1] or codes[t + 1] >= size:
                d = t - first + 1
                unary[t, 2 * size + label] += level
                if d == 1:
                    unary[t, 3 * size + label] += level
                if d <= n_lengths:
                    pair[n_steps + d - 1, label] += level
                q = _find(length, ptr[t], ptr[t + 1], d)
                if q >= 0:
                    pair[n_steps + n_lengths + which[q], label] += level
                before = label
