"""Directional derivatives of the expected counts of rooted forests: products with the Hessian.

Shapes as in :mod:`crfkit.kernels.tree.arrays`. The conditional probabilities of a child given its
parent, ``P(y_c = j | y_p = i) ~ exp(pair(i, j)) inside_c(j)``, are read from what a sum has left in
the workspace.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import FloatArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.arrays import ChainExponentials, ChainSums
from crfkit.kernels.chain.sum import OK, UNDERFLOW
from crfkit.kernels.tree.arrays import TreeScores, TreeWorkspace
from crfkit.kernels.tree.sum import sum_forest, tree_sum_log


class TreeTangent(NamedTuple):
    """A direction of the potentials, shapes (N, K) and (M, K, K)."""

    unary: FloatArray
    pair: FloatArray


class SummedForest(NamedTuple):
    """A forest that has been summed: its tokens, and whether in logarithms."""

    begin: int
    end: int
    in_logs: bool


class TreeDerivatives(NamedTuple):
    """Derivatives of the weighted expected counts of labels and, added to, of transitions.

    Shapes (N, K) and (M, K, K); `mean`, shape (R, K), is workspace.
    """

    unary: FloatArray
    pair: FloatArray
    mean: FloatArray


@part
def _conditional(
    scores: TreeScores,
    exponentials: ChainExponentials,
    work: TreeWorkspace,
    c: int,
    m: int,
    i: int,
    in_logs: bool,
) -> None:
    """``row(j) = P(y_c = j | y_p = i)``; zeros where the label of the parent is impossible."""
    size = scores.unary.shape[1]
    if in_logs:
        for j in range(size):
            work.row[0, j] = scores.pair[m, i, j] + work.inside[c, j]
        _exponentiate(work.row, 0)
        return
    total = 0.0
    for j in range(size):
        work.row[0, j] = exponentials.factor[m, i, j] * work.inside[c, j]
        total += work.row[0, j]
    scale = 1.0 / total if total > 0.0 else 0.0
    for j in range(size):
        work.row[0, j] *= scale


@part
def _exponentiate(row: FloatArray, at: int) -> None:
    """``row(j) = exp(row(j)) / sum_k exp(row(k))``; zeros where all are -inf."""
    top, total = -math.inf, 0.0
    for j in range(row.shape[1]):
        top = max(top, row[at, j])
    for j in range(row.shape[1]):
        row[at, j] = math.exp(row[at, j] - top) if top > -math.inf else 0.0
        total += row[at, j]
    for j in range(row.shape[1]):
        row[at, j] = row[at, j] / total if total > 0.0 else 0.0


@kernel
def tree_hessian(
    scores: TreeScores,
    exponentials: ChainExponentials,
    tangent: TreeTangent,
    weight: FloatArray,  # (S,)
    work: TreeWorkspace,
    sums: ChainSums,  # out
    out: TreeDerivatives,
) -> None:
    """Differentiate the expected counts of forests along a direction of their potentials."""
    for s in range(weight.shape[0]):
        status = sum_forest(scores, exponentials, s, weight[s], work, sums)
        in_logs = status == UNDERFLOW
        if in_logs:
            status = tree_sum_log(scores, s, weight[s], work, sums)
        sums.status[s] = status
        if status == OK:
            forest = SummedForest(scores.offsets[s], scores.offsets[s + 1], in_logs)
            _mean_tangents(scores, exponentials, tangent, forest, work, sums, out)
            _derive(scores, exponentials, tangent, forest, work, sums, out)


@kernel
def _mean_tangents(
    scores: TreeScores,
    exponentials: ChainExponentials,
    tangent: TreeTangent,
    forest: SummedForest,
    work: TreeWorkspace,
    sums: ChainSums,
    out: TreeDerivatives,
) -> None:
    """Write the mean tangent of each subtree given the label of its root, less a constant.

    With tangents ``u`` of the unary and ``v`` of the pair scores, the mean tangent of the subtree
    of ``t`` is ``e_t(k) = u_t(k) + sum_c E_c(k)``, ``E_c(i) = sum_j P(y_c = j | y_p = i) (v(i, j) +
    e_c(j))``, up to a constant for each ``t``, which is chosen so that its mean is 0.
    """
    begin, end, size = forest.begin, forest.end, scores.unary.shape[1]
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    for t in range(begin, end):
        for k in range(size):
            out.mean[t - begin, k] = tangent.unary[t, k]
    for n in range(end - 1, begin - 1, -1):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        _center(sums.marginals, begin + c, out.mean, c)
        for i in range(size if p >= 0 else 0):
            _conditional(scores, exponentials, work, c, m, i, forest.in_logs)
            mean = 0.0
            for j in range(size):
                mean += work.row[0, j] * (tangent.pair[m, i, j] + out.mean[c, j])
            work.message[c, i] = mean
            out.mean[p, i] += mean


@kernel
def _derive(
    scores: TreeScores,
    exponentials: ChainExponentials,
    tangent: TreeTangent,
    forest: SummedForest,
    work: TreeWorkspace,
    sums: ChainSums,
    out: TreeDerivatives,
) -> None:
    """Write the derivatives of the expected counts from the roots to the leaves.

    That of an expected transition is ``P(j | i) (P'(y_p = i) + P(y_p = i) (v(i, j) + e_c(j) -
    E_c(i)))``, and that of a marginal the sum over the labels of the parent.
    """
    begin, end, size = forest.begin, forest.end, scores.unary.shape[1]
    stride = 0 if scores.transition_index.shape[0] == 1 else 1
    for n in range(begin, end):
        c = scores.order[n]
        p, m = scores.parent[begin + c], scores.transition_index[(begin + c) * stride]
        for j in range(size):
            root = sums.marginals[begin + c, j] * out.mean[c, j] if p < 0 else 0.0
            out.unary[begin + c, j] = root
        for i in range(size if p >= 0 else 0):
            above, moved = sums.marginals[begin + p, i], out.unary[begin + p, i]
            _conditional(scores, exponentials, work, c, m, i, forest.in_logs)
            for j in range(size):
                slope = tangent.pair[m, i, j] + out.mean[c, j] - work.message[c, i]
                change = work.row[0, j] * (moved + above * slope)
                out.unary[begin + c, j] += change
                out.pair[m, i, j] += change


@part
def _center(marginals: FloatArray, t: int, mean: FloatArray, row: int) -> None:
    """Subtract from a row its mean under the marginals, whatever their weight."""
    total, sum_ = 0.0, 0.0
    for k in range(mean.shape[1]):
        total += marginals[t, k]
        sum_ += marginals[t, k] * mean[row, k]
    center = sum_ / total if total != 0.0 else 0.0
    for k in range(mean.shape[1]):
        mean[row, k] -= center
