"""Labelings of rooted forests drawn from their distribution, and the entropy of that.

Shapes as in :mod:`crfkit.kernels.tree.sum`, ``n`` labelings of each forest. Given the label of its
parent, that of a token depends on what is below it alone.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels._strips import product
from crfkit.kernels.chain.arrays import ChainExponentials
from crfkit.kernels.chain.sample import drawn
from crfkit.kernels.chain.sum import NOTHING, OK
from crfkit.kernels.tree.posterior import TreeBeliefs
from crfkit.kernels.tree.sum import TreeScores, TreeWorkspace, edge, inside_forest

# Entropies given labels of parents are left out where they could add less than this share.
SLIGHT = 1e-20


@kernel
def tree_sample(
    scores: TreeScores,
    exponentials: ChainExponentials,
    uniforms: FloatArray,  # (n, N) from 0 to 1
    work: TreeWorkspace,
    log_z: FloatArray,  # (S,) out
    labels: CodeArray,  # (n, N) out
    status: IntArray,  # (S,) out: labels of a forest are only written where it is OK
) -> None:
    """Draw labels from the roots to the leaves: ``P(y_c = j | y_p = i) ~ factor(i, j) inside(j)``.

    In time ``O(K)`` a token and labeling, after a sum up to the roots.
    """
    factor, row = exponentials.factor, work.row
    for s in range(status.shape[0]):
        begin, end = scores.offsets[s], scores.offsets[s + 1]
        status[s] = inside_forest(scores, exponentials, s, work, log_z)
        for n in range(labels.shape[0] if status[s] == OK else 0):
            for place in range(begin, end):
                c, p, m = edge(scores, begin, place)
                label = labels[n, begin + p] if p >= 0 else 0
                for j in range(row.shape[1]):
                    follows = factor[m, label, j] if p >= 0 else 1.0
                    row[0, j] = follows * work.inside[c, j]
                labels[n, begin + c] = drawn(row, 0, uniforms[n, begin + c])


@kernel
def tree_sample_log(
    scores: TreeScores,
    s: int,
    beliefs: TreeBeliefs,
    uniforms: FloatArray,  # (n, N) from 0 to 1
    row: FloatArray,  # (1, K) workspace
    labels: CodeArray,  # (n, N) out
) -> None:
    """Draw the labels of one forest as `tree_sample` does, given logarithms of beliefs."""
    begin, end = scores.offsets[s], scores.offsets[s + 1]
    for n in range(labels.shape[0]):
        for place in range(begin, end):
            c, p, m = edge(scores, begin, place)
            label = labels[n, begin + p] if p >= 0 else 0
            for j in range(row.shape[1]):
                share = beliefs.inside[begin + c, j]
                if p >= 0:
                    share += scores.pair[m, label, j] - beliefs.message[begin + c, label]
                row[0, j] = math.exp(share) if share > NOTHING else 0.0
            labels[n, begin + c] = drawn(row, 0, uniforms[n, begin + c])


@part
def entropy_of(logs: FloatArray, row: int, size: int) -> float:
    """Return the entropy of so many shares, given logarithms, which need not add up to 1.

    ``log(1 + rest) + sum_k share_k (top - log_k)``: no term is negative, so that the entropy of
    what is all but certain has all its digits.
    """
    top, most = -math.inf, 0
    for k in range(size):
        if logs[row, k] > top:
            top, most = logs[row, k], k
    rest, lost = 0.0, 0.0
    for k in range(size):
        below = logs[row, k] - top
        if k != most and below > NOTHING:
            share = math.exp(below)
            rest += share
            lost -= share * below
    return math.log1p(rest) + lost / (1.0 + rest)


@kernel
def tree_entropy_log(
    scores: TreeScores,
    s: int,
    beliefs: TreeBeliefs,
    row: FloatArray,  # (1, K) workspace
) -> float:
    """Return the entropy of the labelings of one forest by the chain rule, exact where it is tiny.

    ``H(y) = sum_c sum_i P(y_p = i) H(y_c | y_p = i)``, and the entropies of the labels of roots.
    """
    begin, end, size, whole = scores.offsets[s], scores.offsets[s + 1], scores.unary.shape[1], 0.0
    for n in range(begin, end):
        c, p, m = edge(scores, begin, n)
        if p < 0:
            whole += entropy_of(beliefs.marginal, begin + c, size)
            continue
        for i in range(size):
            known = beliefs.marginal[begin + p, i]
            above = math.exp(known) if known > NOTHING else 0.0
            if above * size > SLIGHT * whole:
                for j in range(size):
                    row[0, j] = scores.pair[m, i, j] + beliefs.inside[begin + c, j]
                whole += above * entropy_of(row, 0, size)
    return whole


@part
def _mean_loss(
    scores: TreeScores,
    exponentials: ChainExponentials,
    shift: FloatArray,
    losses: FloatArray,
    s: int,
    work: TreeWorkspace,
) -> float:
    """Return the mean of minus the logarithm of the product of factors, after a sum to the roots.

    ``mean_c(j)`` is that of the subtree below a token, given its label, less its own mean, so that
    it does not grow with the tree.
    """
    begin, end, size, whole = scores.offsets[s], scores.offsets[s + 1], losses.shape[1], 0.0
    mean, inside, row = work.mean, work.inside, work.row
    for t in range(begin, end):
        for k in range(size):
            known = inside[t - begin, k] > 0.0
            mean[t - begin, k] = shift[t] - scores.unary[t, k] if known else 0.0
    for n in range(end - 1, begin - 1, -1):
        c, p, m = edge(scores, begin, n)
        center = 0.0
        for k in range(size):
            center += inside[c, k] * mean[c, k]
        whole += center
        for k in range(size):
            mean[c, k] = inside[c, k] * (mean[c, k] - center)
        if p >= 0:
            product(mean, c, exponentials.transposed, m, row, 0)
            product(inside, c, losses, m, row, 1)
            for i in range(size):
                if work.message[c, i] > 0.0:
                    mean[p, i] += (row[0, i] + row[1, i]) / work.message[c, i]
    return whole


@kernel
def tree_entropy(
    scores: TreeScores,
    exponentials: ChainExponentials,  # with shifts of 0
    shift: FloatArray,  # (N,) those of unary scores
    losses: FloatArray,  # (M, K, K) - factor log factor, transposed
    work: TreeWorkspace,  # with two rows
    log_z: FloatArray,  # (S,) out
    entropy: FloatArray,  # (2, S) out; and the size of the numbers whose differences they are
    status: IntArray,  # (S,) out: the entropy of a forest is only valid where it is OK
) -> None:
    """Entropies of the labelings of forests: ``log Z`` of the factors, and their mean loss.

    Both are of the size of what scores differ by at a token, not of that of the scores.
    """
    for s in range(status.shape[0]):
        status[s] = inside_forest(scores, exponentials, s, work, log_z)
        if status[s] == OK:
            loss = _mean_loss(scores, exponentials, shift, losses, s, work)
            entropy[0, s] = log_z[s] + loss
            entropy[1, s] = scores.offsets[s + 1] - scores.offsets[s] + abs(log_z[s]) + abs(loss)
