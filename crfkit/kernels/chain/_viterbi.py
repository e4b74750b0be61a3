"""The Viterbi recurrence of one chain, and tracing back: parts of the kernels that find best paths.

Shapes as in :mod:`crfkit.kernels.chain.arrays`. Rows of scores may be longer than there are labels:
``W >= K``.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IdArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import WIDTH
from crfkit.kernels._strips import strips_best
from crfkit.kernels.chain.sum import OK


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


@kernel
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
