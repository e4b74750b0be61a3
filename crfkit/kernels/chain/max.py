"""Best paths of linear chains, scores of given paths, and the adjoint of these.

Shapes as in :mod:`crfkit.kernels.chain.arrays`. Where it is said, rows of scores may be longer than
there are labels: ``W >= K``.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IdArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH, prefetch
from crfkit.kernels._strips import strips_best
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.sum import OK

# Scores are asked for so many tokens before they are read.
AHEAD = 16


@part
def viterbi_step(source: FloatArray, row: int, pair: FloatArray, m: int, unary: FloatArray, t: int,
                 out: FloatArray, to: int) -> None:  # fmt: skip
    """``out[to, j] = unary[t, j] + max_i (source[row, i] + pair[m, i, j])``."""
    if pair.shape[2] >= WIDTH:
        strips_best(source, row, pair, m, unary, t, out, to)
        return
    for j in range(pair.shape[2]):
        top = -math.inf
        for i in range(pair.shape[1]):
            score = source[row, i] + pair[m, i, j]
            top = score if score > top else top
        out[to, j] = top + unary[t, j]


@part
def viterbi_path(
    unary: FloatArray,  # (N, W) scores, W >= K
    pair: FloatArray,  # (M, K, W) scores
    index: IdArray,  # (N,) or (1,)
    begin: int,  # tokens of a sequence that is not empty
    end: int,
    best: FloatArray,  # (N, W) workspace
    labels: CodeArray,  # (N,) out
) -> int:
    """Find the path of the largest score, ``best[end - 1, labels[end - 1]]``; returns its status.

    Columns beyond the labels may hold any numbers.
    """
    stride = 0 if index.shape[0] == 1 else 1
    for j in range(unary.shape[1]):
        best[begin, j] = unary[begin, j]
    for t in range(begin + 1, end):
        viterbi_step(best, t - 1, pair, index[t * stride], unary, t, best, t)
    return trace_back(best, pair, index, begin, end, labels)


@part
def trace_back(best: FloatArray, pair: FloatArray, index: IdArray, begin: int, end: int,
               labels: CodeArray) -> int:  # fmt: skip
    """Follow the best path from its end; returns the status of the sequence."""
    size = pair.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(end - 1, begin - 1, -1):
        label = 0
        top = -math.inf
        for i in range(size):
            score = best[t, i]
            if t < end - 1:
                score += pair[index[(t + 1) * stride], i, labels[t + 1]]
            if score > top:
                top = score
                label = i
        labels[t] = label
        if top == -math.inf:
            return _dead_end(best, size, begin, end)
    return OK


@kernel
def _dead_end(best: FloatArray, size: int, begin: int, end: int) -> int:
    """Return the first position at which no path is left."""
    for t in range(begin, end):
        alive = False
        for j in range(size):
            if best[t, j] > -math.inf:
                alive = True
        if not alive:
            return t
    return OK


@kernel
def chain_max(
    scores: ChainScores,
    best: FloatArray,  # (N, K) workspace
    labels: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out
    status: IntArray,  # (S,) out
) -> None:
    """Find the path of the largest score (Viterbi 1967); of equal ones, the lowest labels.

    ``best_t(j) = unary_t(j) + max_i (best_{t-1}(i) + pair(i, j))``; the way back finds the ``i``
    again, which is cheaper than to store it for all ``j``.
    """
    unary, pair, index, offsets = scores.unary, scores.pair, scores.transition_index, scores.offsets
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        value[s] = 0.0
        status[s] = OK
        if begin < end:
            status[s] = viterbi_path(unary, pair, index, begin, end, best, labels)
            value[s] = best[end - 1, labels[end - 1]]


@kernel
def chain_score(
    scores: ChainScores,
    labels: CodeArray,  # (N,)
    value: FloatArray,  # (S,) out
) -> None:
    """``value = sum_t unary_t(y_t) + sum_{t > 1} pair_t(y_{t-1}, y_t)``."""
    unary, pair, index, offsets = scores.unary, scores.pair, scores.transition_index, scores.offsets
    stride = 0 if index.shape[0] == 1 else 1
    final = unary.shape[0] - 1
    for s in range(offsets.shape[0] - 1):
        whole, before = 0.0, 0
        for t in range(offsets[s], offsets[s + 1]):
            soon, label = min(t + AHEAD, final), labels[t]
            prefetch(unary, soon, labels[soon])
            whole += unary[t, label]
            if t > offsets[s]:
                whole += pair[index[t * stride], before, label]
            before = label
        value[s] = whole


@kernel
def chain_add_path(
    index: IdArray,  # (N,) or (1,)
    offsets: IntArray,  # (S + 1,)
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, K) out, added to
    pair: FloatArray,  # (M, K, K) out, added to
) -> None:
    """Add the weight of each sequence to the parts on its path (the adjoint of the score)."""
    stride = 0 if index.shape[0] == 1 else 1
    final = unary.shape[0] - 1
    for s in range(offsets.shape[0] - 1):
        level, before = weight[s], 0
        for t in range(offsets[s], offsets[s + 1]):
            soon, label = min(t + AHEAD, final), labels[t]
            prefetch(unary, soon, labels[soon])
            unary[t, label] += level
            if t > offsets[s]:
                pair[index[t * stride], before, label] += level
            before = label
