"""Best labelings of rooted forests, scores of given ones, and the adjoint of these.

Shapes as in :mod:`crfkit.kernels.tree.sum`.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.tree.sum import TreeScores, edge


@part
def _best(values: FloatArray, row: int) -> int:
    """Return the first largest entry of a row."""
    at = 0
    for k in range(1, values.shape[1]):
        if values[row, k] > values[row, at]:
            at = k
    return at


@kernel
def tree_max(
    scores: TreeScores,
    best: FloatArray,  # (R, K) workspace: R at least the tokens of the largest forest
    labels: CodeArray,  # (N,) out
    value: FloatArray,  # (S,) out: the largest score
    status: IntArray,  # (S,) out: `OK`, or a position below which no labeling is left
) -> None:
    """Find the best labeling of each forest: max-product from the leaves to the roots.

    ``best_t(k) = unary_t(k) + sum_c max_j (pair(k, j) + best_c(j))``. On the way back the best
    label of a child is found again from that of its parent: there are no back-pointers. Of equal
    labels the first one is taken.
    """
    for s in range(value.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        status[s] = _best_below(scores, begin, end, best)
        value[s] = 0.0
        for n in range(begin, end if status[s] == OK else begin):
            c, p, m = edge(scores, begin, n)
            at = _best(best, c)
            if p < 0:
                value[s] += best[c, at]
            else:
                above, at = labels[begin + p], 0
                for j in range(1, best.shape[1]):
                    score = scores.pair[m, above, j] + best[c, j]
                    if score > scores.pair[m, above, at] + best[c, at]:
                        at = j
            labels[begin + c] = at


@kernel
def _best_below(scores: TreeScores, begin: int, end: int, best: FloatArray) -> int:
    """Write the best score of each subtree by the label of its root; returns the status."""
    size = scores.unary.shape[1]
    for t in range(begin, end):
        for k in range(size):
            best[t - begin, k] = scores.unary[t, k]
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        if best[c, _best(best, c)] == -math.inf:
            dead: int = begin + c
            return dead
        for i in range(size if p >= 0 else 0):
            top = -math.inf
            for j in range(size):
                top = max(top, scores.pair[m, i, j] + best[c, j])
            best[p, i] += top
    return OK


@kernel
def tree_score(
    scores: TreeScores,
    labels: CodeArray,  # (N,)
    value: FloatArray,  # (S,) out
) -> None:
    """Score one labeling of each forest: ``sum_t unary_t(y_t) + pair_t(y_parent, y_t)``."""
    for s in range(value.shape[0]):
        begin, total = scores.offsets[s], 0.0
        for n in range(begin, scores.offsets[s + 1]):
            c, p, m = edge(scores, begin, n)
            label = labels[begin + c]
            total += scores.unary[begin + c, label]
            if p >= 0:
                total += scores.pair[m, labels[begin + p], label]
        value[s] = total


@kernel
def tree_add_counts(
    scores: TreeScores,
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, K) out, added to
    pair: FloatArray,  # (M, K, K) out, added to
) -> None:
    """Add a weight to the parts of one labeling of each forest (the adjoint of the score)."""
    for s in range(weight.shape[0]):
        begin = scores.offsets[s]
        for n in range(begin, scores.offsets[s + 1]):
            c, p, m = edge(scores, begin, n)
            label = labels[begin + c]
            unary[begin + c, label] += weight[s]
            if p >= 0:
                pair[m, labels[begin + p], label] += weight[s]
