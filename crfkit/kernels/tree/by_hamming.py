"""Best labelings of rooted forests for each number of wrong labels.

Shapes as in :mod:`crfkit.kernels.tree.sum`. With ``E`` the last number of errors, which stands for
all from it on.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.tree.sum import TreeScores, edge


class TreeErrors(NamedTuple):
    """The best labelings of the subtrees of one forest of ``T`` tokens by their errors.

    Row ``T`` belongs to a token above all roots, which has one label and no score.
    """

    best: FloatArray  # (T + 1, K, E + 1) scores by the label of the root and the errors
    size: IntArray  # (T + 1,) how many tokens of each subtree have been joined
    below: FloatArray  # (E + 1,) best scores below a label of the parent
    joined: FloatArray  # (E + 1,) and of the parent with them
    before: IntArray  # (R, K, E + 1) errors of a parent before a child was joined, and its own;
    # R is 0 where no labeling is asked for
    chosen: IntArray  # (T + 1,) the errors of each subtree, on the way back


@kernel
def tree_max_by_hamming(
    scores: TreeScores,
    s: int,
    labels: CodeArray,  # (N,) the true labels
    errors: TreeErrors,
    value: FloatArray,  # (E + 1,) out: the largest score with each number of errors
) -> None:
    """Find the largest score of one forest for each number of wrong labels.

    ``best_t(k, e)`` is the largest over all ways to share ``e`` errors among ``t`` and the subtrees
    of its children, which are joined one by one.
    """
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    size, best, root = scores.unary.shape[1], errors.best, end - begin
    for t in range(root + 1):
        errors.size[t] = 1 if t < root else 0
        for k in range(size):
            for e in range(value.shape[0]):
                best[t, k, e] = -math.inf
            if t < root:
                best[t, k, 1 if k != labels[begin + t] else 0] = scores.unary[begin + t, k]
            else:
                best[t, k, 0] = 0.0
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        above = p if p >= 0 else root
        for i in range(size if p >= 0 else 1):
            _find_below(scores, c, p < 0, m, i, errors)
            _join(c, above, i, errors)
        errors.size[above] += errors.size[c]
    for e in range(value.shape[0]):
        value[e] = best[root, 0, e]


@part
def _find_below(
    scores: TreeScores, c: int, is_root: bool, m: int, i: int, errors: TreeErrors
) -> None:
    """``below(e) = max_j pair(i, j) + best_c(j, e)``."""
    best, below = errors.best, errors.below
    known = min(errors.size[c] + 1, below.shape[0])
    for e in range(known):
        below[e] = -math.inf
    for j in range(scores.unary.shape[1]):
        transition = 0.0 if is_root else scores.pair[m, i, j]
        for e in range(known):
            below[e] = max(below[e], transition + best[c, j, e])


@part
def _join(c: int, p: int, i: int, errors: TreeErrors) -> None:
    """``best_p(i, e) = max best_p(i, a) + below(b)`` over ``a + b = e``, or at least ``E``."""
    best, joined, last = errors.best, errors.joined, errors.below.shape[0] - 1
    for e in range(last + 1):
        joined[e] = -math.inf
    for a in range(min(errors.size[p], last) + 1):
        for b in range(min(errors.size[c], last) + 1):
            e, score = min(a + b, last), best[p, i, a] + errors.below[b]
            if score > joined[e]:
                joined[e] = score
                if errors.before.shape[0] > 0:
                    errors.before[c, i, e] = a * (last + 1) + b
    for e in range(last + 1):
        best[p, i, e] = joined[e]


@kernel
def tree_path_at_hamming(
    scores: TreeScores,
    s: int,
    wrong: int,  # errors to be made
    errors: TreeErrors,  # of `tree_max_by_hamming`
    path: CodeArray,  # (N,) out
) -> None:
    """Write the best labels of one forest with a number of wrong ones."""
    begin, end, levels = scores.offsets[s], scores.offsets[s + 1], errors.below.shape[0]
    best, chosen, root = errors.best, errors.chosen, end - begin
    chosen[root] = wrong
    for n in range(begin, end):
        c, p, m = edge(scores, begin, n)
        above, i = (p, path[begin + p]) if p >= 0 else (root, 0)
        shared = errors.before[c, i, chosen[above]]
        chosen[above], own = shared // levels, shared % levels
        chosen[c], top, at = own, -math.inf, 0
        for j in range(best.shape[1]):
            score = (0.0 if p < 0 else scores.pair[m, i, j]) + best[c, j, own]
            if score > top:
                top, at = score, j
        path[begin + c] = at
