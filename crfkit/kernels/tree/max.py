"""Best labelings of rooted forests and lists of them, scores of given ones, the adjoint of these.

Shapes as in :mod:`crfkit.kernels.tree.sum`. Lists have the best labelings, or one for each number
of wrong labels: the place of a labeling in a list of ``n`` is its rank, or its number of errors,
the last of which stands for all from it on. Lists of subtrees are joined child by child: sums of
one score of each (the k-best extension of Viterbi's recurrence: Seshadri and Sundberg 1994; on
trees as Huang and Chiang 2005, algorithm 1).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.compiler.simd import readable
from crfkit.kernels.chain.sum import OK
from crfkit.kernels.k_best import BestPaths
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
    """Score one labeling of each forest: ``sum_t unary_t(y_t) + pair_t(y_parent, y_t)``.

    In runs: the rounding of a long sum grows with the number of terms added to one total.
    """
    for s in range(value.shape[0]):
        begin, end, whole = scores.offsets[s], scores.offsets[s + 1], 0.0
        for start in range(begin, end, 128):
            total = 0.0
            for n in range(start, min(start + 128, end)):
                c, p, m = edge(scores, begin, n)
                label = labels[begin + c]
                total += scores.unary[begin + c, label]
                if p >= 0:
                    total += scores.pair[m, labels[begin + p], label]
            whole += total
        value[s] = whole


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


class TreeLists(NamedTuple):
    """Scores of labelings of the subtrees of one forest of ``T`` tokens; -inf for none.

    Row ``T`` belongs to a token above all roots, which has one label and no score. How a list was
    made is kept for ``R = T`` tokens, or none.
    """

    best: FloatArray  # (T + 1, K, n) by the label of the root of each subtree
    below: FloatArray  # (1, K, n) the same of a child, by the label of its parent
    row: FloatArray  # (n,) those of a parent before a child is joined
    size: IntArray  # (T + 1,) how many tokens of each subtree have been joined
    labels: IntArray  # (R, K, n) n times the label of a child, plus its place, in `below`
    joined: IntArray  # (R, K, n) n times the place of the parent before, plus that of the child
    chosen: IntArray  # (T + 1,) the places that are taken, on the way back


@kernel
def tree_lists(
    scores: TreeScores,
    s: int,
    truth: CodeArray,  # (N,) the true labels
    by_errors: bool,
    lists: TreeLists,  # out: the last row of `best`
) -> None:
    """List the best labelings of one forest, by their errors or the best ones first."""
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    size, best, root = scores.unary.shape[1], lists.best, end - begin
    for t in range(root + 1):
        lists.size[t] = 1 if t < root else 0
        for k in range(size):
            for e in range(best.shape[2]):
                best[t, k, e] = -math.inf
            if t == root:
                best[t, k, 0] = 0.0
            else:
                place = 1 if by_errors and k != truth[begin + t] else 0
                best[t, k, place] = scores.unary[begin + t, k]
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        above = p if p >= 0 else root
        for i in range(size if p >= 0 else 1):
            _list_below(scores, c, p < 0, m, i, by_errors, lists)
            for e in range(best.shape[2]):
                lists.row[e], best[above, i, e] = best[above, i, e], -math.inf
            if by_errors:
                _join_errors(c, above, i, lists)
            else:
                _join_ranks(c, above, i, lists)
        lists.size[above] += lists.size[c]


@part
def _list_below(
    scores: TreeScores, c: int, is_root: bool, m: int, i: int, by_errors: bool, lists: TreeLists
) -> None:
    """List the best labelings below label `i` of a parent, or of a tree."""
    best, below, count = lists.best, lists.below, lists.row.shape[0]
    for e in range(count):
        below[0, i, e] = -math.inf
    for j in range(scores.unary.shape[1]):
        transition = 0.0 if is_root else scores.pair[m, i, j]
        if by_errors:
            for e in range(min(lists.size[c] + 1, count)):
                score = transition + best[c, j, e]
                if score > below[0, i, e]:
                    below[0, i, e] = score
                    if lists.labels.shape[0] > 0:
                        lists.labels[c, i, e] = j * count + e
            continue
        for r in range(count):
            score = transition + best[c, j, r]
            if not score > below[0, i, count - 1]:
                break
            _insert(score, j * count + r, below, 0, lists.labels, c, i)


@part
def _insert(score: float, came: int, best: FloatArray, t: int, source: IntArray, u: int,
            j: int) -> None:  # fmt: skip
    """Put a score behind equal ones among those of label `j` in row `t`, its source beside it."""
    place = best.shape[2] - 1
    while place > 0 and score > best[t, j, place - 1]:
        best[t, j, place] = best[t, j, place - 1]
        source[u, j, place] = source[u, j, place - 1]
        place -= 1
    best[t, j, place] = score
    source[u, j, place] = came


@part
def _join_ranks(c: int, p: int, i: int, lists: TreeLists) -> None:
    """Join the lists of a parent and of a child: the n largest sums of one of each.

    The sum of ranks ``a`` and ``b`` is among the n largest only where ``(a + 1) (b + 1) <= n``.
    """
    best, count = lists.best, lists.row.shape[0]
    for a in range(count):
        for b in range(count // (a + 1)):
            score = lists.row[a] + lists.below[0, i, b]
            if not score > best[p, i, count - 1]:
                break
            _insert(score, a * count + b, best, p, lists.joined, c, i)


@part
def _join_errors(c: int, p: int, i: int, lists: TreeLists) -> None:
    """``best_p(i, e) = max best_p(i, a) + below(b)`` over ``a + b = e``, or at least the last."""
    best, count, last = lists.best, lists.row.shape[0], lists.row.shape[0] - 1
    for a in range(min(lists.size[p], last) + 1):
        for b in range(min(lists.size[c], last) + 1):
            e, score = min(a + b, last), lists.row[a] + lists.below[0, i, b]
            if score > best[p, i, e]:
                best[p, i, e] = score
                if lists.joined.shape[0] > 0:
                    lists.joined[c, i, e] = a * count + b


@kernel
def tree_trace(
    scores: TreeScores,
    s: int,
    place: int,
    lists: TreeLists,
    labels: CodeArray,  # out
    start: int,  # where those of the forest start
) -> None:
    """Write the labels of the labeling of a forest that has a place in the list.

    Children were joined in the reverse of the order, so that on the way back, in the order, each
    finds the labeling of its parent as it was when the child was joined.
    """
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    chosen, count, root = lists.chosen, lists.row.shape[0], end - begin
    chosen[root] = place
    for n in range(begin, end):
        c, p, _ = edge(scores, begin, n)
        above, i = (p, labels[start + p]) if p >= 0 else (root, 0)
        joined = lists.joined[c, i, chosen[above]]
        chosen[above] = joined // count
        own = lists.labels[c, i, joined % count]
        labels[start + c], chosen[c] = own // count, own % count


@kernel
def tree_k_best(
    scores: TreeScores,
    lists: TreeLists,  # workspace for the largest forest: the best labelings of each subtree
    found: BestPaths,  # out
) -> None:
    """Find the labelings of the largest scores of each forest."""
    first, place, count = 0, 0, lists.row.shape[0]
    for s in range(found.counts.shape[0]):
        length, n = scores.offsets[s + 1] - scores.offsets[s], 0
        tree_lists(scores, s, readable(found.codes), False, lists)  # of no truth
        while n < count and lists.best[length, 0, n] > -math.inf:
            found.scores[first + n] = lists.best[length, 0, n]
            tree_trace(scores, s, n, lists, found.codes, place + n * length)
            n += 1
        found.counts[s] = n
        first += n
        place += n * length
