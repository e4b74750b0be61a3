"""Best labelings of rooted forests, one and several; scores of given ones, and the adjoint.

Shapes as in :mod:`crfkit.kernels.tree.sum`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.k_best import insert
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


class TreeLists(NamedTuple):
    """The ``n`` best labelings of subtrees of ``T`` tokens, the best first; -inf for none.

    Row ``T`` belongs to a token above all roots, which has one label and no score.
    """

    best: FloatArray  # (T + 1, K, n) scores by the label of the root of each subtree
    below: FloatArray  # (T + 1, K, n) the same by the label of the parent of that root
    labels: IntArray  # (T + 1, K, n) the label of the root, and the rank of its labeling, of these
    joined: IntArray  # (T + 1, K, n) ranks of the parent's before a child was joined, and its own
    row: FloatArray  # (n,) scores before a child is joined
    chosen: IntArray  # (T + 1,) which labeling of each subtree is taken, on the way back


@part
def _list_below(
    scores: TreeScores, c: int, is_root: bool, m: int, i: int, lists: TreeLists
) -> None:
    """List the best labelings below label `i` of a parent, or of a tree."""
    best, below, count = lists.best, lists.below, lists.row.shape[0]
    for r in range(count):
        below[c, i, r] = -math.inf
    for j in range(scores.unary.shape[1]):
        transition = 0.0 if is_root else scores.pair[m, i, j]
        for r in range(count):
            score = transition + best[c, j, r]
            if not score > below[c, i, count - 1]:
                break
            insert(score, j * count + r, below, c, lists.labels, c, i)


@part
def _join(c: int, p: int, i: int, lists: TreeLists) -> None:
    """Join the lists of a parent and of a child: the n largest sums of one of each.

    The sum of ranks ``a`` and ``b`` is among the n largest only where ``(a + 1) (b + 1) <= n``.
    """
    best, row, count = lists.best, lists.row, lists.row.shape[0]
    for r in range(count):
        row[r], best[p, i, r] = best[p, i, r], -math.inf
    for a in range(count):
        for b in range(count // (a + 1)):
            score = row[a] + lists.below[c, i, b]
            if not score > best[p, i, count - 1]:
                break
            insert(score, a * count + b, best, p, lists.joined, c, i)


@kernel
def tree_k_best(
    scores: TreeScores,
    begin: int,
    end: int,
    lists: TreeLists,
    value: FloatArray,  # (n,) out: -inf where there are no more labelings
    labels: CodeArray,  # (n, T) out
) -> None:
    """Find the n best labelings of one forest, the tokens ``begin:end``.

    Lists of the n best labelings of each subtree, joined child by child (the k-best extension of
    Viterbi's recurrence: Seshadri and Sundberg 1994; on trees as Huang and Chiang 2005, algorithm
    1). A forest is joined below one more token.
    """
    size, count, root = scores.unary.shape[1], value.shape[0], end - begin
    for t in range(root + 1):
        for k in range(size):
            for r in range(count):
                lists.best[t, k, r] = -math.inf
            lists.best[t, k, 0] = scores.unary[begin + t, k] if t < root else 0.0
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        for i in range(size if p >= 0 else 1):
            _list_below(scores, c, p < 0, m, i, lists)
            _join(c, p if p >= 0 else root, i, lists)
    for r in range(count):
        value[r] = lists.best[root, 0, r]
        if value[r] > -math.inf:
            _trace(scores, begin, end, r, lists, labels)


@part
def _trace(
    scores: TreeScores, begin: int, end: int, k: int, lists: TreeLists, labels: CodeArray
) -> None:
    """Write the labels of the labeling `k`.

    Children were joined in the reverse of the order, so that on the way back, in the order, each
    finds the labeling of its parent as it was when the child was joined.
    """
    chosen, count, root = lists.chosen, lists.row.shape[0], end - begin
    chosen[root] = k
    for n in range(begin, end):
        c, p, _ = edge(scores, begin, n)
        above, i = (p, labels[k, p]) if p >= 0 else (root, 0)
        joined = lists.joined[c, i, chosen[above]]
        chosen[above] = joined // count
        own = lists.labels[c, i, joined % count]
        labels[k, c], chosen[c] = own // count, own % count


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
