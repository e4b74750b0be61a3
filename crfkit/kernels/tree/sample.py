"""Labelings of rooted forests drawn from their distribution, and the entropy of that.

Shapes as in :mod:`crfkit.kernels.tree.sum`, ``n`` labelings of each forest. Given the label of its
parent, that of a token depends on what is below it alone.
"""

from __future__ import annotations

import math

from crfkit._types import CodeArray, FloatArray, IntArray
from crfkit.compiler.jit import kernel, part
from crfkit.kernels._strips import product
from crfkit.kernels.chain.arrays import ChainExponentials, ChainSums
from crfkit.kernels.chain.sample import drawn
from crfkit.kernels.chain.sum import NOTHING, OK
from crfkit.kernels.tree.posterior import TreeBeliefs
from crfkit.kernels.tree.sum import TreeScores, TreeWorkspace, edge, inside_forest, sum_forest

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
def entropy_of(logs: FloatArray, row: int) -> float:
    """Return the entropy of shares, given logarithms, which need not add up to 1.

    ``log(1 + rest) + sum_k share_k (top - log_k)``: no term is negative, so that the entropy of
    what is all but certain has all its digits.
    """
    top, most = -math.inf, 0
    for k in range(logs.shape[1]):
        if logs[row, k] > top:
            top, most = logs[row, k], k
    rest, lost = 0.0, 0.0
    for k in range(logs.shape[1]):
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
            whole += entropy_of(beliefs.marginal, begin + c)
            continue
        for i in range(size):
            known = beliefs.marginal[begin + p, i]
            above = math.exp(known) if known > NOTHING else 0.0
            if above * size > SLIGHT * whole:
                for j in range(size):
                    row[0, j] = scores.pair[m, i, j] + beliefs.inside[begin + c, j]
                whole += above * entropy_of(row, 0)
    return whole


@part
def _sum_of_entropies(
    scores: TreeScores, losses: FloatArray, s: int, work: TreeWorkspace, marginals: FloatArray
) -> float:
    """Return the entropy of one forest after a sum: messages are probabilities over them."""
    begin, end, size, whole = scores.offsets[s], scores.offsets[s + 1], losses.shape[1], 0.0
    for n in range(begin, end):
        c, p, m = edge(scores, begin, n)
        for j in range(size):
            if marginals[begin + c, j] > 0.0:
                whole -= marginals[begin + c, j] * math.log(work.inside[c, j])
        if p >= 0:
            product(work.message, c, losses, m, work.row, 0)
            for k in range(size):
                whole += work.row[0, k] * work.inside[c, k]
                if work.message[c, k] > 0.0:
                    known = marginals[begin + p, k]
                    whole += known * math.log(known / work.message[c, k])
    return whole


@kernel
def tree_entropy(
    scores: TreeScores,
    exponentials: ChainExponentials,
    losses: FloatArray,  # (M, K, K) - factor log factor
    work: TreeWorkspace,
    sums: ChainSums,
    entropy: FloatArray,  # (S,) out: that of a forest is only valid where the status is OK
) -> None:
    """Entropies of the labelings of forests by the chain rule: of each label, given its parent's.

    ``P(i, j) = ratio(i) factor(i, j) inside_c(j)`` and ``- log P(j | i) = log P(i) - log ratio(i) -
    log factor(i, j) - log inside_c(j)``: each part is added up by itself, in place of each pair.
    """
    for s in range(entropy.shape[0]):
        sums.status[s] = sum_forest(scores, exponentials, s, 1.0, work, sums)
        if sums.status[s] == OK:
            entropy[s] = _sum_of_entropies(scores, losses, s, work, sums.marginals)
