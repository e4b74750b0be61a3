"""Searches for several segmentations of a sequence.

Shapes and letters as in `semimarkov`; each looks at one sequence of ``T`` tokens.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.k_best import _insert


@kernel
def semimarkov_n_best(
    unary: FloatArray,  # (T, 4 K) scores of going on, beginning, ending, being alone
    pair: FloatArray,  # (n_steps + L + R, K) scores of steps, lengths and rows
    n_steps: int,
    n_lengths: int,
    table: IdArray,  # (T,) or (1,)
    ptr: IntArray,  # (T + 1,) which segments with a row end at a token
    length: IntArray,  # (q,) their lengths, rising
    which: IntArray,  # (q,) and rows
    begins: FloatArray,  # (T + 1, K, n) workspace: the best scores where a segment begins
    before: IntArray,  # (T + 1, K, n) workspace: the label and the rank of what is before each
    ends: FloatArray,  # (T + 1, K, n) workspace: the best scores where a segment has ended
    inside: IntArray,  # (T + 1, K, n) workspace: the length and the rank of each
    value: FloatArray,  # (n,) out: -inf where there are no more segmentations
    codes: CodeArray,  # (n, T) out
) -> None:
    """Find the n segmentations of the largest scores (list Viterbi, as `chain_n_best`).

    ``ends_{e+1}(k)`` are the n largest of ``begins_{e-d+1}(k) + sum_u stay_u + length_d + span``
    over all lengths, and ``begins_s(k)`` those of ``ends_s(i) + step(i, k)`` over all labels; of
    equal ones, those of the shortest lengths and the lowest labels come first.
    """
    count, size, last = value.shape[0], pair.shape[1], unary.shape[0]
    for t in range(last):
        for k in range(size):
            _list_begins(unary, pair, table, t, k, ends, begins, before)
            _list_ends(
                unary, pair, n_steps, n_lengths, ptr, length, which, t, k, begins, ends, inside
            )
    # What would begin behind the last token, after steps of score 0, lists all segmentations.
    for r in range(count):
        begins[last, 0, r] = -math.inf
    for i in range(size):
        for r in range(count):
            if not ends[last, i, r] > begins[last, 0, count - 1]:
                break
            _insert(ends[last, i, r], i * count + r, last, 0, begins, before)
    for n in range(count):
        value[n] = begins[last, 0, n]
        if value[n] == -math.inf:
            continue
        t, came = last, before[last, 0, n]
        while t > 0:
            label = came // count
            found = inside[t, label, came % count]
            first = t - found // count
            for u in range(first, t):
                codes[n, u] = label
            codes[n, first] = size + label
            came = before[first, label, found % count]
            t = first


@kernel
def _list_begins(
    unary: FloatArray,  # the arguments of `semimarkov_n_best`
    pair: FloatArray,
    table: IdArray,
    t: int,
    k: int,
    ends: FloatArray,
    begins: FloatArray,
    before: IntArray,
) -> None:
    """List the best scores where a segment of label `k` begins at token `t`."""
    size, count = begins.shape[1], begins.shape[2]
    for r in range(count):
        begins[t, k, r] = -math.inf
    if t == 0:
        begins[t, k, 0] = 0.0
        before[t, k, 0] = 0
    else:
        first = table[t if table.shape[0] > 1 else 0] * size
        for i in range(size):
            step = pair[first + i, k]
            for r in range(count):
                score = ends[t, i, r] + step
                if not score > begins[t, k, count - 1]:
                    break  # those that follow are no better
                _insert(score, i * count + r, t, k, begins, before)
    for r in range(count):
        begins[t, k, r] += unary[t, size + k]


@kernel
def _list_ends(
    unary: FloatArray,  # the arguments of `semimarkov_n_best`
    pair: FloatArray,
    n_steps: int,
    n_lengths: int,
    ptr: IntArray,
    length: IntArray,
    which: IntArray,
    t: int,
    k: int,
    begins: FloatArray,
    ends: FloatArray,
    inside: IntArray,
) -> None:
    """List the best scores where a segment of label `k` ends at token `t`."""
    size, count = begins.shape[1], begins.shape[2]
    run, q = 0.0, ptr[t]
    for r in range(count):
        ends[t + 1, k, r] = -math.inf
    for d in range(1, min(t + 1, n_lengths) + 1):
        alone = unary[t, 3 * size + k] if d == 1 else 0.0
        own = 0.0
        if q < ptr[t + 1] and length[q] == d:
            own = pair[n_steps + n_lengths + which[q], k]
            q += 1
        for r in range(count):
            score = begins[t - d + 1, k, r] + run + pair[n_steps + d - 1, k] + alone + own
            if not score > ends[t + 1, k, count - 1]:
                break
            _insert(score, d * count + r, t + 1, k, ends, inside)
        run += unary[t - d + 1, k]
    for r in range(count):
        ends[t + 1, k, r] += unary[t, 2 * size + k]
