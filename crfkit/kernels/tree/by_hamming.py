"""Best labelings of rooted forests for each number of wrong labels.

Shapes as in :mod:`crfkit.kernels.tree.arrays`. With ``E`` the last number of errors, which stands
for all from it on.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.tree.arrays import TreeScores


class TreeErrors(NamedTuple):
    """The best labelings of the subtrees of one forest of ``T`` tokens by their errors.

    Attributes
    ----------
    best : ndarray of shape (T + 1, K, E + 1)
        Best score of each subtree by the label of its root and its number of errors. The last row
        belongs to a token above all roots, which has one label and no score.
    size : ndarray of shape (T + 1,)
        How many tokens of each subtree have been joined.
    below, joined : ndarray of shape (E + 1,)
        Best scores below a label of the parent, and of the parent with them.
    before, own : ndarray of shape (R, K, E + 1)
        After a child was joined: the errors of the parent with the children joined before, and
        those of the child; ``R`` is 0 where no labeling is asked for.
    chosen : ndarray of shape (T + 1,)
        The errors of each subtree, on the way back.
    """

    best: FloatArray
    size: IntArray
    below: FloatArray
    joined: FloatArray
    before: CodeArray
    own: CodeArray
    chosen: IntArray


@kernel
def tree_max_by_hamming(
    scores: TreeScores,
    begin: int,
    end: int,
    labels: CodeArray,  # (N,) the true labels
    errors: TreeErrors,
    value: FloatArray,  # (E + 1,) out: the largest score with each number of errors
) -> None:
    """Find the largest score of one forest for each number of wrong labels.

    ``best_t(k, e)`` is the largest over all ways to share ``e`` errors among ``t`` and the subtrees
    of its children, which are joined one by one.
    """
    size, last, root = scores.unary.shape[1], value.shape[0] - 1, end - begin
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    for t in range(root + 1):
        errors.size[t] = 1 if t < root else 0
        for k in range(size):
            for e in range(last + 1):
                errors.best[t, k, e] = -math.inf
            if t == root:
                errors.best[t, k, 0] = 0.0
            else:
                wrong = 1 if k != labels[begin + t] else 0
                errors.best[t, k, wrong] = scores.unary[begin + t, k]
    for n in range(end - 1, begin - 1, -1):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        above = p if p >= 0 else root
        for i in range(size if p >= 0 else 1):
            _find_below(scores, c, p < 0, m, i, errors)
            _join(c, above, i, errors)
        errors.size[above] += errors.size[c]
    for e in range(last + 1):
        value[e] = errors.best[root, 0, e]


@part
def _find_below(
    scores: TreeScores, c: int, is_root: bool, m: int, i: int, errors: TreeErrors
) -> None:
    """``below(e) = max_j pair(i, j) + best_c(j, e)``."""
    last = errors.below.shape[0] - 1
    for e in range(min(errors.size[c], last) + 1):
        top = -math.inf
        for j in range(scores.unary.shape[1]):
            transition = 0.0 if is_root else scores.pair[m, i, j]
            top = max(top, transition + errors.best[c, j, e])
        errors.below[e] = top


@part
def _join(c: int, p: int, i: int, errors: TreeErrors) -> None:
    """``best_p(i, e) = max best_p(i, a) + below(b)`` over ``a + b = e``, or at least ``E``."""
    last = errors.below.shape[0] - 1
    for e in range(last + 1):
        errors.joined[e] = -math.inf
    for a in range(min(errors.size[p], last) + 1):
        for b in range(min(errors.size[c], last) + 1):
            e, value = min(a + b, last), errors.best[p, i, a] + errors.below[b]
            if value > errors.joined[e]:
                errors.joined[e] = value
                if errors.before.shape[0] > 0:
                    errors.before[c, i, e] = a
                    errors.own[c, i, e] = b
    for e in range(last + 1):
        errors.best[p, i, e] = errors.joined[e]


@kernel
def tree_path_at_hamming(
    scores: TreeScores,
    begin: int,
    end: int,
    wrong: int,  # errors to be made
    errors: TreeErrors,  # of `tree_max_by_hamming`
    path: CodeArray,  # (N,) out
) -> None:
    """Write the best labels of one forest with a number of wrong ones."""
    root = end - begin
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    errors.chosen[root] = wrong
    for n in range(begin, end):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        above, i = (p, path[begin + p]) if p >= 0 else (root, 0)
        known = errors.chosen[above]
        errors.chosen[above] = errors.before[c, i, known]
        own, at = errors.own[c, i, known], 0
        errors.chosen[c] = own
        top = -math.inf
        for j in range(scores.unary.shape[1]):
            transition = 0.0 if p < 0 else scores.pair[m, i, j]
            if transition + errors.best[c, j, own] > top:
                top, at = transition + errors.best[c, j, own], j
        path[begin + c] = at
