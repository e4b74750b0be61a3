"""Best paths of linear chains for each Hamming distance to given labels.

Shapes as in :mod:`crfkit.kernels.chain.arrays`. The levels of a token are rows of a table: row
``base + d`` holds the best scores of the paths that end at each label of the token and have `d`
wrong labels so far. The last level, `most`, is at least 1 and holds those of the paths with at
least as many.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.max import viterbi_step
from crfkit.kernels.chain.sum import OK

# Status of a sequence that has no path of the level that was asked for.
NONE = 0


@kernel
def _find_levels(
    scores: ChainScores,
    begin: int,
    end: int,
    labels: CodeArray,  # (N,)
    most: int,
    period: int,  # so many tokens have levels of their own
    work: FloatArray,  # (1, K) workspace
    best: FloatArray,  # (R, K) out: R is at least period * (most + 1)
) -> None:
    """Find the best scores at each token of a sequence, by the number of wrong labels so far.

    ``best_t(d, j) = unary_t(j) + max_i (best_{t-1}(d - [j != y_t], i) + pair(i, j))``: the states
    of the chain are joined with the loss so far (Tsochantaridis et al. 2005, section 3.4).
    """
    unary, pair, index = scores.unary, scores.pair, scores.transition_index
    size = unary.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(begin, end):
        base, gold, m = (t - begin) % period * (most + 1), labels[t], index[t * stride]
        for j in range(size):
            best[base, j] = -math.inf
        if t == begin:
            for j in range(size):
                best[base + 1, j] = unary[t, j]
            best[base, gold] = unary[t, gold]
            best[base + 1, gold] = -math.inf
            continue
        before = (t - 1 - begin) % period * (most + 1)
        for d in range(min(t - begin, most) + 1):
            if d < most:
                viterbi_step(best, before + d, pair, m, unary, t, best, base + d + 1)
                best[base + d, gold] = best[base + d + 1, gold]
                best[base + d + 1, gold] = -math.inf
            else:
                viterbi_step(best, before + d, pair, m, unary, t, work, 0)
                for j in range(size):
                    best[base + d, j] = max(best[base + d, j], work[0, j])


@kernel
def chain_max_by_hamming(
    scores: ChainScores,
    labels: CodeArray,  # (N,)
    work: FloatArray,  # (1, K) workspace
    best: FloatArray,  # (2 L, K) workspace
    value: FloatArray,  # (S, L) out
) -> None:
    """``value[s, d] = max score(y)`` over paths with `d` wrong labels, or more for the last."""
    offsets = scores.offsets
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        for d in range(value.shape[1]):
            value[s, d] = -math.inf
        if begin == end:
            value[s, 0] = 0.0
            continue
        most = min(value.shape[1] - 1, end - begin)
        _find_levels(scores, begin, end, labels, most, 2, work, best)
        base = (end - 1 - begin) % 2 * (most + 1)
        for d in range(most + 1):
            for j in range(best.shape[1]):
                value[s, d] = max(value[s, d], best[base + d, j])


@kernel
def chain_level_path(
    scores: ChainScores,
    labels: CodeArray,  # (N,)
    most: int,  # the last level
    level: IntArray,  # (S,) how many labels are to be wrong, `most` at most
    work: FloatArray,  # (1, K) workspace
    best: FloatArray,  # (R, K) workspace: R is at least T (level + 2) for each sequence
    path: CodeArray,  # (N,) out
    status: IntArray,  # (S,) out: NONE where a sequence has no such path
) -> None:
    """Find the path of the largest score with so many labels that are not the given ones."""
    offsets = scores.offsets
    for s in range(offsets.shape[0] - 1):
        begin, end = offsets[s], offsets[s + 1]
        status[s] = OK
        if level[s] == 0:
            for t in range(begin, end):
                path[t] = labels[t]
            continue
        last = min(level[s] + 1, most, end - begin)
        if level[s] > last:
            status[s] = NONE
            continue
        _find_levels(scores, begin, end, labels, last, end - begin, work, best)
        status[s] = _trace_levels(best, scores, begin, end, labels, last, level[s], path)


@kernel
def _trace_levels(best: FloatArray, scores: ChainScores, begin: int, end: int, labels: CodeArray,
                  most: int, level: int, path: CodeArray) -> int:  # fmt: skip
    """Follow the best path of a level from its end; of equal ones, the lowest labels."""
    pair, index = scores.pair, scores.transition_index
    stride = 0 if index.shape[0] == 1 else 1
    low, high = level, level
    for t in range(end - 1, begin - 1, -1):
        base, label, reached, top = (t - begin) * (most + 1), 0, low, -math.inf
        for i in range(best.shape[1]):
            for d in range(low, min(high, t - begin + 1) + 1):
                score = best[base + d, i]
                if t < end - 1:
                    score += pair[index[(t + 1) * stride], i, path[t + 1]]
                if score > top:
                    label, reached, top = i, d, score
        if top == -math.inf:
            return NONE
        path[t] = label
        wrong = 1 if label != labels[t] else 0
        low = reached - wrong
        high = reached if reached == most else low
    return OK
