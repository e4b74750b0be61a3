"""Best labelings of rooted forests, one and several.

Shapes as in :mod:`crfkit.kernels.tree.arrays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.tree.arrays import TreeScores


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
        if status[s] == OK:
            value[s] = _descend(scores, begin, end, best, labels)


@kernel
def _best_below(scores: TreeScores, begin: int, end: int, best: FloatArray) -> int:
    """Write the best score of each subtree by the label of its root; returns the status."""
    size = scores.unary.shape[1]
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    for t in range(begin, end):
        for k in range(size):
            best[t - begin, k] = scores.unary[t, k]
    for n in range(end - 1, begin - 1, -1):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        if best[c, _best(best, c)] == -math.inf:
            dead: int = begin + c
            return dead
        if p >= 0:
            for i in range(size):
                top = -math.inf
                for j in range(size):
                    top = max(top, scores.pair[m, i, j] + best[c, j])
                best[p, i] += top
    return OK


@kernel
def _descend(
    scores: TreeScores, begin: int, end: int, best: FloatArray, labels: CodeArray
) -> float:
    """Write the best labels from the roots to the leaves; returns their score."""
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    value = 0.0
    for n in range(begin, end):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        if p < 0:
            labels[begin + c] = _best(best, c)
            value += best[c, labels[begin + c]]
            continue
        above, at = labels[begin + p], 0
        for j in range(1, best.shape[1]):
            if scores.pair[m, above, j] + best[c, j] > scores.pair[m, above, at] + best[c, at]:
                at = j
        labels[begin + c] = at
    return value


class TreeLists(NamedTuple):
    """The best labelings of subtrees, the best ones first, for ``T`` tokens and ``n`` of them.

    Attributes
    ----------
    best : ndarray of shape (T, K, n)
        Scores of the best labelings of each subtree by the label of its root; -inf for none.
    below : ndarray of shape (T, K, n)
        The same by the label of the parent of that root.
    label, rank : ndarray of shape (T, K, n)
        Which label of the root, and which of its labelings, each of `below` is.
    before, own : ndarray of shape (T, K, n)
        After a child was joined: which labeling of the parent with the children joined before,
        and which of `below` of the child, make each of the parent.
    row : ndarray of shape (n,)
        Scores that are being put in order.
    chosen : ndarray of shape (T,)
        Which labeling of each subtree is taken, on the way back.
    """

    best: FloatArray
    below: FloatArray
    label: IntArray
    rank: IntArray
    before: IntArray
    own: IntArray
    row: FloatArray
    chosen: IntArray


@part
def _list_below(
    scores: TreeScores, c: int, is_root: bool, m: int, i: int, lists: TreeLists
) -> None:
    """List the best labelings below label `i` of a parent, or of a tree: by insertion."""
    count = lists.row.shape[0]
    for r in range(count):
        lists.below[c, i, r] = -math.inf
    for j in range(scores.unary.shape[1]):
        transition = 0.0 if is_root else scores.pair[m, i, j]
        for r in range(count):
            value = transition + lists.best[c, j, r]
            if not value > lists.below[c, i, count - 1]:
                break
            at = count - 1
            while at > 0 and value > lists.below[c, i, at - 1]:
                lists.below[c, i, at] = lists.below[c, i, at - 1]
                lists.label[c, i, at] = lists.label[c, i, at - 1]
                lists.rank[c, i, at] = lists.rank[c, i, at - 1]
                at -= 1
            lists.below[c, i, at] = value
            lists.label[c, i, at] = j
            lists.rank[c, i, at] = r


@part
def _join(c: int, p: int, i: int, lists: TreeLists) -> None:
    """Join the lists of a parent and of a child: the n largest sums of one of each.

    The sum of ranks ``a`` and ``b`` is among the n largest only where ``(a + 1) (b + 1) <= n``.
    """
    count = lists.row.shape[0]
    for r in range(count):
        lists.row[r] = -math.inf
    for a in range(count):
        for b in range(count // (a + 1)):
            value = lists.best[p, i, a] + lists.below[c, i, b]
            if not value > lists.row[count - 1]:
                break
            at = count - 1
            while at > 0 and value > lists.row[at - 1]:
                lists.row[at] = lists.row[at - 1]
                lists.before[c, i, at] = lists.before[c, i, at - 1]
                lists.own[c, i, at] = lists.own[c, i, at - 1]
                at -= 1
            lists.row[at] = value
            lists.before[c, i, at] = a
            lists.own[c, i, at] = b
    for r in range(count):
        lists.best[p, i, r] = lists.row[r]


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
    1). A forest is joined below one more token, which has one label and no score.
    """
    size, count = scores.unary.shape[1], value.shape[0]
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    root = end - begin  # the row of the token above all roots
    for t in range(root + 1):
        for k in range(size):
            for r in range(count):
                lists.best[t, k, r] = -math.inf
            lists.best[t, k, 0] = scores.unary[begin + t, k] if t < root else 0.0
    for n in range(end - 1, begin - 1, -1):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        above = p if p >= 0 else root
        for i in range(size if p >= 0 else 1):
            _list_below(scores, c, p < 0, m, i, lists)
            _join(c, above, i, lists)
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
    root = end - begin
    lists.chosen[root] = k
    for n in range(begin, end):
        c = scores.order[n]
        p = scores.parent[begin + c]
        above, i = (p, labels[k, p]) if p >= 0 else (root, 0)
        joined = lists.chosen[above]
        lists.chosen[above] = lists.before[c, i, joined]
        at = lists.own[c, i, joined]
        labels[k, c] = lists.label[c, i, at]
        lists.chosen[c] = lists.rank[c, i, at]


@kernel
def tree_score(
    scores: TreeScores,
    labels: CodeArray,  # (N,)
    value: FloatArray,  # (S,) out
) -> None:
    """Score one labeling of each forest: ``sum_t unary_t(y_t) + pair_t(y_parent, y_t)``."""
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    for s in range(value.shape[0]):
        begin, total = scores.offsets[s], 0.0
        for t in range(begin, scores.offsets[s + 1]):
            total += scores.unary[t, labels[t]]
            if scores.parent[t] >= 0:
                above = labels[begin + scores.parent[t]]
                total += scores.pair[scores.transition_index[t * stride], above, labels[t]]
        value[s] = total


@kernel
def tree_add_counts(
    scores: TreeScores,
    labels: CodeArray,  # (N,)
    weight: FloatArray,  # (S,)
    unary: FloatArray,  # (N, K) out, added to
    pair: FloatArray,  # (M, K, K) out, added to
) -> None:
    """Add a weight to the parts of one labeling of each forest."""
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    for s in range(weight.shape[0]):
        begin = scores.offsets[s]
        for t in range(begin, scores.offsets[s + 1]):
            unary[t, labels[t]] += weight[s]
            if scores.parent[t] >= 0:
                above = labels[begin + scores.parent[t]]
                pair[scores.transition_index[t * stride], above, labels[t]] += weight[s]
