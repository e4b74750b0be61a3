"""Chains and forests whose transitions are normalized at each token.

Shapes as in :mod:`crfkit.kernels.chain.arrays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crfkit._types import FloatArray, IntArray
from crfkit.compiler.jit import kernel
from crfkit.kernels._strips import product
from crfkit.kernels.chain.arrays import ChainScores
from crfkit.kernels.chain.sum import TINY


class LocalExponentials(NamedTuple):
    """Exponentials of the scores of labels, and of transitions relative to each label before.

    Read-only.
    """

    node: FloatArray  # (N, K) exp(unary - shift)
    shift: FloatArray  # (N,) the largest unary score of each token
    leaving: FloatArray  # (M, K, K) exp(pair[m, i, j] - top[m, i]) at [m, j, i]
    top: FloatArray  # (M, K) the largest score of a transition from each label


@kernel
def _log_sum(scores: ChainScores, m: int, t: int, i: int, shift: float) -> float:
    """``log sum_j exp(unary_t(j) - shift + pair(i, j))``."""
    top = -math.inf
    for j in range(scores.unary.shape[1]):
        top = max(top, scores.unary[t, j] - shift + scores.pair[m, i, j])
    if top == -math.inf:
        return top
    total = 0.0
    for j in range(scores.unary.shape[1]):
        total += math.exp(scores.unary[t, j] - shift + scores.pair[m, i, j] - top)
    return top + math.log(total)


@kernel
def local_shift(
    scores: ChainScores,
    exponentials: LocalExponentials,
    before: IntArray,  # (N,) the token that the transition into each one comes from, -1 for none
    sums: FloatArray,  # (1, K) workspace
    out: FloatArray,  # (N, K) the unary scores, which are changed
) -> None:
    """Subtract what makes the probabilities of labels, given the one before, add up to 1.

    With ``N_t(i) = log sum_j exp(unary_t(j) + pair_t(i, j))`` the score of the label i at the token
    before t falls by ``N_t(i)``, or to ``-inf`` where it leads to no label; those of a first token
    fall by the logarithm of their sum. A constant may be taken from either token: from t itself.
    """
    node, shift, leaving, top = exponentials
    index, size = scores.transition_index, node.shape[1]
    stride = 0 if index.shape[0] == 1 else 1
    for t in range(node.shape[0]):
        if shift[t] == -math.inf:
            continue
        origin, own, total = before[t], shift[t], 0.0
        if origin < 0:
            for k in range(size):
                total += node[t, k]
            own += math.log(total)
        for k in range(size):
            out[t, k] -= own
        if origin < 0:
            continue
        m = index[t * stride]
        product(node, t, leaving, m, sums, 0)
        for i in range(size):
            if sums[0, i] >= TINY:
                out[origin, i] -= math.log(sums[0, i]) + top[m, i]
                continue
            norm = _log_sum(scores, m, t, i, shift[t])
            out[origin, i] = out[origin, i] - norm if norm > -math.inf else norm
