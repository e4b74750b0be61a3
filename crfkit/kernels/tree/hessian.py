"""Directional derivatives of the expected counts of rooted forests: products with the Hessian.

Shapes as in :mod:`crfkit.kernels.tree.sum`. With tangents ``u`` of the unary and ``v`` of the pair
scores, the mean tangent of the subtree of ``t`` given the label of ``t`` is ``e_t(k) = u_t(k) +
sum_c E_c(k)`` over its children, ``E_c(i) = sum_j P(y_c = j | y_p = i) (v(i, j) + e_c(j))``, up to
a constant for each ``t`` that makes its mean 0: covariances were small differences of sums that
grow with the size otherwise.
"""

from __future__ import annotations

import math

from crfkit._types import Counts, FloatArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels.chain.arrays import ChainExponentials, ChainSums
from crfkit.kernels.chain.sum import NOTHING, OK, UNDERFLOW, log_sum
from crfkit.kernels.tree.sum import TreeScores, TreeWorkspace, edge, sum_forest, tree_sum_log


@part
def _conditional(
    scores: TreeScores, factor: FloatArray, work: TreeWorkspace, c: int, m: int, i: int,
    in_logs: bool,
) -> None:  # fmt: skip
    """``row(j) = P(y_c = j | y_p = i)``; zeros where the label of the parent is impossible."""
    size, total, row = scores.unary.shape[1], 0.0, work.row
    if in_logs:
        for j in range(size):
            row[0, j] = scores.pair[m, i, j] + work.inside[c, j]
        top = log_sum(row, 0)
        for j in range(size):
            row[0, j] = math.exp(row[0, j] - top) if row[0, j] > top + NOTHING else 0.0
        return
    for j in range(size):
        row[0, j] = factor[m, i, j] * work.inside[c, j]
        total += row[0, j]
    scale = 1.0 / total if total > 0.0 else 0.0
    for j in range(size):
        row[0, j] *= scale


@part
def _center(marginals: FloatArray, t: int, mean: FloatArray, row: int) -> None:
    """Subtract from a row its mean under the marginals, whatever their weight."""
    total, moment = 0.0, 0.0
    for k in range(mean.shape[1]):
        total += marginals[t, k]
        moment += marginals[t, k] * mean[row, k]
    center = moment / total if total != 0.0 else 0.0
    for k in range(mean.shape[1]):
        mean[row, k] -= center


@kernel
def tree_hessian(
    scores: TreeScores,
    exponentials: ChainExponentials,
    tangent: TreeScores,
    weight: FloatArray,  # (S,)
    work: TreeWorkspace,
    sums: ChainSums,  # out
    out: Counts,  # derivatives of the weighted expected counts
) -> None:
    """Differentiate the expected counts of forests along a direction of their potentials."""
    for s in range(weight.shape[0]):
        status = sum_forest(scores, exponentials, s, weight[s], work, sums)
        in_logs = status == UNDERFLOW
        if in_logs:
            status = tree_sum_log(scores, s, weight[s], work, sums)
        sums.status[s] = status
        if status == OK:
            _differentiate(
                scores, exponentials.factor, tangent, s, in_logs, work, sums.marginals, out
            )


@kernel
def _differentiate(
    scores: TreeScores,
    factor: FloatArray,
    tangent: TreeScores,
    s: int,
    in_logs: bool,
    work: TreeWorkspace,  # after a sum; E takes the place of the messages
    marginals: FloatArray,
    out: Counts,
) -> None:
    """Write the mean tangents from the leaves to the roots, and the derivatives on the way back.

    That of an expected transition is ``P(j | i) (P'(y_p = i) + P(y_p = i) (v(i, j) + e_c(j) -
    E_c(i)))``, and that of a marginal the sum over the labels of the parent.
    """
    begin, end, size = scores.offsets[s], scores.offsets[s + 1], scores.unary.shape[1]
    row, mean, unary = work.row, work.mean, out.unary
    for t in range(begin, end):
        for k in range(size):
            mean[t - begin, k] = tangent.unary[t, k]
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        _center(marginals, begin + c, mean, c)
        for i in range(size if p >= 0 else 0):
            _conditional(scores, factor, work, c, m, i, in_logs)
            below = 0.0
            for j in range(size):
                below += row[0, j] * (tangent.pair[m, i, j] + mean[c, j])
            work.message[c, i] = below
            mean[p, i] += below
    for n in range(begin, end):
        c, p, m = edge(scores, begin, n)
        for j in range(size):
            unary[begin + c, j] = marginals[begin + c, j] * mean[c, j] if p < 0 else 0.0
        for i in range(size if p >= 0 else 0):
            above, moved = marginals[begin + p, i], unary[begin + p, i]
            _conditional(scores, factor, work, c, m, i, in_logs)
            for j in range(size):
                slope = tangent.pair[m, i, j] + mean[c, j] - work.message[c, i]
                change = row[0, j] * (moved + above * slope)
                unary[begin + c, j] += change
                out.pair[m, i, j] += change
