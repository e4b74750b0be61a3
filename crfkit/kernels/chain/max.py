"""Best paths of linear chains, scores of given paths, and the adjoint of these.

Shapes as in `chain`.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.compiler.simd import WIDTH, prefetch
from crfkit.kernels._strips import strips_best
from crfkit.kernels.chain.sum import OK

# Scores are asked for so many tokens before they are read.
AHEAD = 16


@kernel
def _extend(best: FloatArray, pair: FloatArray, m: int, t: int) -> None:
    """``best_t(j) = max_i (best_{t-1}(i) + pair(i, j))``."""
    size = best.shape[1]
    if size >= WIDTH:
        strips_best(best, t - 1, pair, m, best, t)
        return
    for j in range(size):
        top = -math.inf
        for i in range(size):
            score = best[t - 1, i] + pair[m, i, j]
            top = score if score > top else top
        best[t, j] = top


@kernel
def chain_max(
    unary: FloatArray,  # (N, K) scores
    pair: FloatArray,  # (M, K, K) scores
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    best: FloatArray,  # (N, K) workspace
    labels: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the path of the largest score (Viterbi 1967); of equal ones, the lowest labels.

    ``best_t(j) = unary_t(j) + max_i (best_{t-1}(i) + pair(i, j))``; the way back finds the ``i``
    again, which is cheaper than to store it for all ``j``.
    """
    size = unary.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    for s in range(offsets.shape[0] - 1):
        begin = offsets[s]
        end = offsets[s + 1]
        value[s] = 0.0
        status[s] = OK
        if begin == end:
            continue
        for t in range(begin, end):
            m = table[t * stride]
            if t == begin:
                for j in range(size):
                    best[t, j] = unary[t, j]
            else:
                _extend(best, pair, m, t)
                for j in range(size):
                    best[t, j] += unary[t, j]
        status[s] = _trace_back(best, pair, table, begin, end, labels)
        value[s] = best[end - 1, labels[end - 1]]


@kernel
def _trace_back(best: FloatArray, pair: FloatArray, table: IdArray, begin: int, end: int,
                labels: CodeArray) -> int:  # fmt: skip
    """Follow the best path from its end; returns the status of the sequence."""
    size = best.shape[1]
    stride = 0 if table.shape[0] == 1 else 1
    for t in range(end - 1, begin - 1, -1):
        label = 0
        top = -math.inf
        for i in range(size):
            score = best[t, i]
            if t < end - 1:
                score += pair[table[(t + 1) * stride], i, labels[t + 1]]
            if score > top:
                top = score
                label = i
        labels[t] = label
        if top == -math.inf:
            return _dead_end(best, begin, end)
    return OK


@kernel
def _dead_end(best: FloatArray, begin: int, end: int) -> int:
    """Return the first position at which no path is left."""
    for t in range(begin, end):
        alive = False
        for j in range(best.shape[1]):
            if best[t, j] > -math.inf:
                alive = True
        if not alive:
            return t
    return OK


@kernel
def chain_score(
    unary: FloatArray,  # (N, K) scores
    pair: FloatArray,  # (M, K, K) scores
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    score: FloatArray,  # (S,) out
) -> None:
    """``score = sum_t unary_t(y_t) + sum_{t > 1} pair_t(y_{t-1}, y_t)``."""
    stride = 0 if table.shape[0] == 1 else 1
    final = unary.shape[0] - 1
    for s in range(offsets.shape[0] - 1):
        whole, before = 0.0, 0
        for t in range(offsets[s], offsets[s + 1]):
            soon, label = min(t + AHEAD, final), labels[t]
            prefetch(unary, soon, labels[soon])
            whole += unary[t, label]
            if t > offsets[s]:
                whole += pair[table[t * stride], before, label]
            before = label
        score[s] = whole


@kernel
def chain_add_path(
    table: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, K) out, added to
    pair: FloatArray,  # (M, K, K) out, added to
) -> None:
    """Add the weight of each sequence to the parts on its path (the adjoint of the score)."""
    stride = 0 if table.shape[0] == 1 else 1
    final = unary.shape[0] - 1
    for s in range(offsets.shape[0] - 1):
        level, before = weight[s], 0
        for t in range(offsets[s], offsets[s + 1]):
            soon, label = min(t + AHEAD, final), labels[t]
            prefetch(unary, soon, labels[soon])
            unary[t, label] += level
            if t > offsets[s]:
                pair[table[t * stride], before, label] += level
            before = label
